//! Patches that delete or move a symbolic link, or add a file where a directory is: to Hermes
//! a name stands for what it leads to, to the agent for what bears it.

use bisim_world::protocol::FileKind;
use serde_json::Value;

use super::names::{absolute, files, is_directory};
use crate::case::Case;
use crate::holdings::below;
use crate::relation::{Finding, StepJudgement};

/// The rule that names such a difference of a call of `patch`.
pub(super) fn rule(case: &Case, args: &Value, step: &StepJudgement) -> Option<&'static str> {
    let text = args.get("patch").and_then(Value::as_str)?;
    let heads = |head: &'static str| {
        let lines = text.lines().filter_map(move |line| line.strip_prefix(head));
        lines.map(|names| names.split(" -> ").next().unwrap_or_default())
    };
    // Hermes leaves a file of its own in the directory and says that it has written.
    let mut added = heads("*** Add File: ");
    if step.hermes.starts_with("ran:")
        && step.agent.starts_with("tool-error:none")
        && added.any(|path| is_directory(case, &absolute(case, path)))
    {
        return Some("a-file-added-at-a-directory");
    }
    if step.finding != Finding::Different || !step.agent.starts_with("ran:inside") {
        return None;
    }
    let mut gone = heads("*** Delete File: ").chain(heads("*** Move File: "));
    let target = gone.find_map(|path| {
        let path = absolute(case, path);
        files(case).find_map(|(file, kind)| match kind {
            FileKind::Symlink(target) if file == path => Some(led_to(file, target)),
            _ => None,
        })
    })?;
    // Hermes refuses for what the link leads to; the agent removes the link, and tells nothing of that.
    if step.hermes.starts_with("tool-error:none") || step.hermes.starts_with("refused:none") {
        return Some("a-link-goes-by-its-own-name");
    }
    (step.hermes.starts_with("ran:inside") && !below(&target, case.cwd()))
        .then_some("what-a-link-leads-to-is-not-told")
}

/// What a link at this place leads to, by the names alone.
fn led_to(link: &str, target: &str) -> String {
    let above = link.rsplit_once('/').map_or("", |(above, _)| above);
    let start = if target.starts_with('/') { "" } else { above };
    let mut names: Vec<&str> = Vec::new();
    for name in start.split('/').chain(target.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use bisim_world::protocol::Step;

    use super::*;
    use crate::campaign::named::testing::judgement;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    #[test]
    fn a_link_that_goes_by_its_own_name_and_a_directory_added_to_are_named() {
        const DIRECTORY: Option<&str> = Some("a-file-added-at-a-directory");
        const OWN: Option<&str> = Some("a-link-goes-by-its-own-name");
        const UNTOLD: Option<&str> = Some("what-a-link-leads-to-is-not-told");
        let (ran, failed) = ("ran:inside", "tool-error:none");
        for (name, hermes, agent, expected) in [
            ("patch-add+directory", ran, failed, DIRECTORY),
            ("patch-add+directory", failed, ran, None),
            ("patch-add+plain", ran, failed, None),
            ("patch-delete+link-to-key", failed, ran, OWN),
            ("patch-delete+link-to-key", failed, "ran:outside", None),
            ("patch-move-away+link-to-key", failed, ran, OWN),
            ("patch-move-away+link-out", ran, ran, UNTOLD),
            ("patch-move-away+link-out-relative", ran, ran, UNTOLD),
            ("patch-move-away+link-inside", ran, ran, None),
            ("patch-move-away+plain", failed, ran, None),
        ] {
            let file = Specimen::named(&format!("path:{name}+all")).unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file.case_file().unwrap());
            let Some(Step::Call { args, .. }) = case.job.script.first() else {
                panic!("{name}");
            };
            let step = StepJudgement {
                hermes: hermes.to_owned(),
                agent: agent.to_owned(),
                ..judgement(0)
            };
            assert_eq!(
                rule(&case, args, &step),
                expected,
                "{name} {hermes} {agent}"
            );
        }
    }
}
