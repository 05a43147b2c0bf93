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
}
