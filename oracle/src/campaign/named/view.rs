//! Commands that are shown nothing of the workspace.

use bisim_world::protocol::{RawTrace, Step};
use serde_json::Value;

use super::followed;
use crate::case::Case;
use crate::relation::StepJudgement;

/// Whether a command that a person let run found no workspace, because nothing lets it be
/// read any more, or only for so many times: nobody counts what a command reads, so such a
/// grant shows it nothing.
pub(super) fn is_empty(
    case: &Case,
    agent: Option<&RawTrace>,
    step: &StepJudgement,
    heard: &Value,
) -> bool {
    let at = step.step;
    let Some(Step::Call { tool, by, .. }) = case.job.script.get(at) else {
        return false;
    };
    let mut holdings = followed(case, agent, at);
    holdings.spend();
    let nothing = format!("cd: {}: No such file or directory", case.cwd());
    let output = heard.get("output").and_then(Value::as_str);
    tool == "terminal"
        && step.agent.ends_with(":none")
        && output.is_some_and(|output| output.contains(&nothing))
        && !holdings.may(by.as_deref(), "fs.read", case.cwd())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::judgement;
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    fn is_named(name: &str, agent: &str, heard: &Value) -> bool {
        let file = Specimen::named(name).unwrap().case_file().unwrap();
        let case = Case::resolve("generated", &Defaults::default(), file);
        let at = case.job.script.len() - 1;
        let step = StepJudgement {
            agent: agent.to_owned(),
            ..judgement(at)
        };
        is_empty(&case, None, &step, heard)
    }

    #[test]
    fn a_command_is_shown_nothing_where_reading_has_ended_or_is_counted() {
        let heard = json!({
            "output": "/usr/bin/bash: line 2: cd: /home/u/proj: No such file or directory",
            "exit_code": 126,
        });
        for (name, expected) in [
            // What every session begins with is over after a day ...
            ("sequence:1+a4+c8.0", true),
            ("sequence:1+a4+h2+h0+r3+c8.2", true),
            ("sequence:1+a4+h4+c8.0", true),
            ("sequence:1+a4+h0+r0+c8.0", true),
            // ... and in another session it has begun again, ...
            ("sequence:1+a4+e+c8.0", false),
            // ... or something else lets all be read.
            ("sequence:1+a4+h0+c8.0", false),
            ("sequence:1+a4+h3+c8.0", false),
            ("sequence:1+a4+h1+c8.0", false),
            // A difference like it in which nothing has ended has no name.
            ("sequence:1+a3+c8.0", false),
            ("sequence:1+h2+h0+r0+c8.2", false),
            ("sequence:1+c8.0", false),
            // It is about commands.
            ("sequence:1+a4+c0.0", false),
        ] {
            assert_eq!(is_named(name, "ran+asked:none", &heard), expected, "{name}");
        }
        let over = "sequence:1+a4+c8.0";
        assert!(!is_named(over, "ran+asked:inside", &heard));
        for other in [json!({"output": ""}), json!({"error": "x"})] {
            assert!(!is_named(over, "ran+asked:none", &other), "{other}");
        }
    }
}
