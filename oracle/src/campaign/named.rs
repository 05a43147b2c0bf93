//! Strictness that needs no entry in the catalogue: a generated case says by
//! itself what is held, so a refusal of what is not held is right by definition.
//!
//! The list of known divergences is for the suites, whose cases prove each
//! entry's edges. Here a closed list of rules is asked instead, by a book of
//! the oracle's own ([`Holdings`]); what none of them names is a finding.

use bisim_world::protocol::{FileKind, Step};

use crate::case::Case;
use crate::holdings::{Holdings, below};
use crate::relation::{Finding, StepJudgement};
use crate::result::CaseResult;
use crate::verdict::EXPECTATION;

/// Whether every difference of the result has a name. To act where Hermes asks
/// needs none: the relation finds that only where nothing left the grants.
pub fn all_named(case: &Case, result: &CaseResult) -> bool {
    let Some(judgement) = &result.judgement else {
        return false;
    };
    // What a case says of the agent on its own is never explained away.
    if result.verdict.fingerprint == EXPECTATION {
        return false;
    }
    judgement.steps.iter().all(|step| match step.finding {
        Finding::Equal | Finding::EqualMasked | Finding::Attenuated => true,
        Finding::Stricter => rule(case, step).is_some(),
        Finding::Different
        | Finding::Inconclusive
        | Finding::Weaker
        | Finding::BeyondGrant
        | Finding::BothUnsafe => false,
    })
}

/// The rule that names a strictness.
fn rule(case: &Case, step: &StepJudgement) -> Option<&'static str> {
    let refused = ["refused:", "asked-refused", "discarded", "tool-error"]
        .iter()
        .any(|class| step.agent.starts_with(class));
    if step.hermes.contains(":outside") && !step.agent.contains(":outside") {
        return Some("hermes-reached-outside");
    }
    (refused && !is_held(case, step.step)).then_some("not-held")
}

/// Whether what is held at this step surely covers all the call may do.
fn is_held(case: &Case, at: usize) -> bool {
    let mut holdings = Holdings::new(case);
    for earlier in case.job.script.iter().take(at) {
        holdings.follow(earlier);
    }
    let (tool, args, by) = match case.job.script.get(at) {
        Some(Step::Call { tool, args, by }) => (tool, args, by),
        Some(Step::Spawn { forward, .. }) => {
            return forward.iter().all(|grant| holdings.is_live(grant));
        }
        _ => return true,
    };
    let path = match tool.as_str() {
        // A command may do anything below its directory, and more.
        "terminal" => Some(case.cwd().to_owned()),
        _ => args
            .get("path")
            .and_then(serde_json::Value::as_str)
            .and_then(|path| plain(case, path)),
    };
    let verbs: &[&str] = match tool.as_str() {
        "read_file" | "search_files" => &["fs.read"],
        _ => &["fs.create", "fs.modify", "fs.delete"],
    };
    // A patch names its files in its text; what leads elsewhere is nobody's.
    path.is_some_and(|path| {
        verbs
            .iter()
            .all(|verb| holdings.may(by.as_deref(), verb, &path))
    })
}

/// The absolute path, if it is one below the workspace that no prepared link,
/// pipe or second name stands in.
fn plain(case: &Case, path: &str) -> Option<String> {
    if path.contains(['\0', '~', '$']) {
        return None;
    }
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", case.cwd())
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            // Where a directory is not there, or is a link, this means something else.
            ".." => return None,
            name => names.push(name),
        }
    }
    let whole = format!("/{}", names.join("/"));
    let special = case
        .job
        .world
        .iter()
        .flat_map(|world| &world.files)
        .any(|file| {
            below(&whole, &file.path)
                && matches!(
                    file.kind,
                    FileKind::Symlink(_) | FileKind::Hardlink(_) | FileKind::Fifo(_)
                )
        });
    (below(&whole, case.cwd()) && !special).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    fn case(name: &str) -> Case {
        let file = Specimen::named(name).unwrap().case_file().unwrap();
        Case::resolve("generated", &Defaults::default(), file)
    }

    #[test]
    fn what_is_plainly_held_is_held_and_nothing_else() {
        for (name, at, held) in [
            ("path:read+plain+nothing", 0, true),
            ("path:write+plain+all", 0, true),
            ("path:write+plain+all+double-slash~0", 0, true),
            ("path:write+plain+reading", 0, false),
            ("path:read+link-out+all", 0, false),
            ("path:read+up-and-in-again+all", 0, false),
            ("path:read+absolute-key+all", 0, false),
            ("path:read+hard-link-out+all", 0, false),
            ("sequence:0+h0+c2.0", 1, true),
            ("sequence:0+h0+r0+c2.0", 2, false),
            ("sequence:0+h1+a2+c2.0", 2, false),
            ("sequence:0+h0+s0+c2.1", 2, false),
            ("sequence:0+h0+s1+c2.1", 2, true),
            ("sequence:0+h0+e+c2.0", 2, false),
            ("sequence:0+h0+c7.0", 1, true),
            ("sequence:0+h0+s1+c2.1", 1, true),
            ("sequence:0+h0+r0+s1+c2.1", 2, false),
        ] {
            assert_eq!(is_held(&case(name), at), held, "{name}");
        }
    }
}
