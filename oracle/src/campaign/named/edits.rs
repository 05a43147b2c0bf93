//! Edits of a text that is no longer the same for both.

use bisim_world::protocol::{Context, RawTrace, Step};

use crate::case::Case;
use crate::relation::StepJudgement;
use crate::result::CaseResult;

/// Whether an edit cannot be shown to an editor any more, because the agent made an edit
/// before that it was granted and that Hermes' user turned down: the two are asked
/// about different texts.
pub(super) fn is_about_another_text(
    case: &Case,
    result: &CaseResult,
    step: &StepJudgement,
) -> bool {
    let before = |trace: &Option<RawTrace>| {
        let at = step.step.checked_sub(1)?;
        Some(trace.as_ref()?.steps.get(at)?.effects.clone())
    };
    let (hermes, agent) = (before(&result.hermes), before(&result.agent));
    case.job.context == Context::Acp
        && matches!(
            case.job.script.get(step.step),
            Some(Step::Call { tool, .. }) if tool == "patch"
        )
        && step.hermes.starts_with("asked-refused")
        && step.agent == "refused:none:bad-arguments"
        && hermes.is_some()
        && hermes != agent
}

/// Whether an editor was to be shown an edit of a file named from where the shell went: Hermes
/// looks for it where the shell began, and asks about the file of that name there, if there
/// is one. The agent, as Hermes' tool would with a yes, means the one where the shell is.
pub(super) fn is_about_another_file(case: &Case, step: &StepJudgement) -> bool {
    let calls = |step: &Step, wanted: &[&str]| match step {
        Step::Call { tool, args, .. } if wanted.contains(&tool.as_str()) => Some(args.clone()),
        _ => None,
    };
    let script = &case.job.script;
    let has_moved = script.iter().take(step.step).any(|earlier| {
        let args = calls(earlier, &["terminal"]);
        let command = args.as_ref().and_then(|args| args.get("command"));
        let command = command.and_then(|command| command.as_str());
        command.is_some_and(|command| command.contains("cd ") || command.contains("pushd "))
    });
    let is_relative = script
        .get(step.step)
        .and_then(|step| calls(step, &["patch", "write_file"]))
        .is_some_and(
            |args| match args.get("path").and_then(|path| path.as_str()) {
                Some(path) => !path.starts_with(['/', '~']),
                None => args.get("patch").is_some(),
            },
        );
    case.job.context == Context::Acp
        && has_moved
        && is_relative
        && step.hermes.starts_with("asked-refused")
        && step.agent == "refused:none:bad-arguments"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{judgement, result, trace};
    use super::*;
    use crate::case::Defaults;
    use crate::relation::Finding;

    #[test]
    fn an_edit_of_a_text_that_another_edit_made_is_named_behind_an_editor_alone() {
        let named = |context: &str, agent: &str, changed: bool| {
            let call = json!({"call": {"tool": "patch", "args": {}}});
            let file = json!({
                "id": "x", "context": context, "user": "deny_all", "script": [call, call],
                "expect": {"agent": "either", "reason": "x"}, "source": {"from": "made"},
            });
            let file = serde_json::from_value(file).unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let step = StepJudgement {
                finding: Finding::Stricter,
                hermes: "asked-refused+asked:none".to_owned(),
                agent: agent.to_owned(),
                ..judgement(1)
            };
            let mut other = trace(
                1,
                &json!({}),
                if changed { &["/home/u/proj/a"] } else { &[] },
            );
            other.steps.extend(trace(1, &json!({}), &[]).steps);
            let result = result(&case, &step, trace(2, &json!({}), &[]), other);
            is_about_another_text(&case, &result, &step)
        };
        let unprepared = "refused:none:bad-arguments";
        assert!(named("acp", unprepared, true));
        assert!(!named("acp", unprepared, false));
        assert!(!named("interactive", unprepared, true));
        assert!(!named("acp", "refused:none:no-cap", true));
    }

    #[test]
    fn an_edit_shown_from_where_the_shell_began_is_named_behind_an_editor_after_it_went() {
        let named = |context: &str, command: &str, args: serde_json::Value, agent: &str| {
            let file = json!({
                "id": "x", "context": context, "user": "deny_all",
                "script": [
                    {"call": {"tool": "terminal", "args": {"command": command}}},
                    {"call": {"tool": "patch", "args": args}},
                ],
                "expect": {"agent": "either", "reason": "x"}, "source": {"from": "made"},
            });
            let file = serde_json::from_value(file).unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let step = StepJudgement {
                finding: Finding::Stricter,
                hermes: "asked-refused+asked:none".to_owned(),
                agent: agent.to_owned(),
                ..judgement(1)
            };
            is_about_another_file(&case, &step)
        };
        let unprepared = "refused:none:bad-arguments";
        let (there, whole) = (
            json!({"path": "a.txt"}),
            json!({"path": "/home/u/proj/a.txt"}),
        );
        assert!(named("acp", "cd lib", there.clone(), unprepared));
        assert!(named("acp", "pushd lib", json!({"patch": "x"}), unprepared));
        assert!(!named("acp", "cd lib", whole, unprepared));
        assert!(!named("acp", "ls", there.clone(), unprepared));
        assert!(!named("interactive", "cd lib", there.clone(), unprepared));
        assert!(!named("acp", "cd lib", there, "refused:none:no-cap"));
    }
}
