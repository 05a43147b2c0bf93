//! Commands that another agent left running.

use bisim_world::protocol::Step;
use serde_json::Value;

use crate::case::Case;

/// Whether the call is about a command that somebody else left running, of whom who calls
/// is told that there is none. What each left running is its own; nothing of it is passed on.
pub(super) fn is_anothers(case: &Case, at: usize, heard: &Value) -> bool {
    let script = &case.job.script;
    let Some(Step::Call { tool, args, by }) = script.get(at) else {
        return false;
    };
    let begun = args.pointer("/session_id/$from").and_then(Value::as_u64);
    let begun = begun.and_then(|from| usize::try_from(from).ok()?.checked_sub(1));
    let is_anothers = matches!(
        begun.and_then(|begun| script.get(begun)),
        Some(Step::Call { by: other, .. }) if other != by
    );
    let status = heard.get("status").and_then(Value::as_str);
    tool == "process" && is_anothers && status == Some("not_found")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        service::rule,
        testing::{judgement, result, trace},
    };
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    #[test]
    fn a_child_that_finds_nothing_of_its_parents_is_named_and_nobody_else() {
        let found = json!({"status": "not_found", "error": "No process with ID p"});
        let killed = json!({"status": "killed"});
        let named = |name: &str, heard: &Value, other: &[&str]| {
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let steps = case.job.script.len();
            let step = judgement(steps - 1);
            let (hermes, agent) = (trace(steps, &killed, &[]), trace(steps, heard, other));
            rule(&case, &result(&case, &step, hermes, agent), &step)
        };
        let by_a_child = "sequence:0+c24.0+s0+c29.1";
        assert_eq!(named(by_a_child, &found, &[]), Some("runs-for-another"));
        assert_eq!(named(by_a_child, &json!({"status": "gone"}), &[]), None);
        assert_eq!(named(by_a_child, &found, &["/home/u/proj/sq/a.txt"]), None);
        assert_eq!(named("sequence:0+c24.0+s0+c29.0", &found, &[]), None);
        assert_eq!(named("sequence:0+s0+c0.1", &found, &[]), None);
    }
}
