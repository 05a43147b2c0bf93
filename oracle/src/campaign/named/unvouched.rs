//! Calls of a batch that are refused for what was read before them.

use bisim_world::protocol::{Context, FsEffect, RawTrace, Step};
use serde_json::Value;

use crate::case::Case;

/// Whether some calls of a batch were refused because a call before them had read
/// something and nobody is there to say that this is well, and nothing else differs but
/// what later calls tell of the files that were left alone, and these files.
pub(super) fn is_in(
    case: &Case,
    (hermes, agent): (&RawTrace, &RawTrace),
    other: &[FsEffect],
    at: usize,
) -> bool {
    let nobody_is_there = match case.job.context {
        Context::Headless | Context::Cron => true,
        Context::Interactive | Context::Gateway | Context::Acp => false,
    };
    let calls = match case.job.script.get(at) {
        Some(Step::Probe { name, input }) if name == "tool_batch" => {
            input.get("calls").and_then(Value::as_array)
        }
        _ => None,
    };
    let Some(calls) = calls else {
        return false;
    };
    let named = |place: usize| {
        let path = calls.get(place)?.pointer("/arguments/path")?.as_str()?;
        Some(path.trim_start_matches("./"))
    };
    let answers = |trace: &RawTrace| {
        let answer = trace.steps.get(at)?.answer.get("value")?.as_array();
        answer.cloned()
    };
    let (Some(told), Some(heard)) = (answers(hermes), answers(agent)) else {
        return false;
    };
    let is_refused = |heard: &Value| {
        let error = heard.get("error").and_then(Value::as_str);
        error.is_some_and(|error| error.starts_with("Denied (untrusted-flow): "))
    };
    let mut left_alone: Vec<&str> = Vec::new();
    for (place, (told, heard)) in told.iter().zip(&heard).enumerate() {
        if is_refused(heard) {
            left_alone.extend(named(place));
        } else if told != heard && !named(place).is_some_and(|path| left_alone.contains(&path)) {
            return false;
        }
    }
    let is_left_alone = |effect: &FsEffect| {
        let mut paths = left_alone.iter();
        paths.any(|path| effect.path == **path || effect.path.ends_with(&format!("/{path}")))
    };
    nobody_is_there
        && told.len() == heard.len()
        && heard.iter().any(is_refused)
        && other.iter().all(is_left_alone)
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

    #[test]
    fn a_refusal_after_reading_is_named_in_a_batch_where_nobody_is_there() {
        let batch = |context: &str| {
            let file = json!({
                "id": "x", "context": context, "user": "grant_once",
                "script": [{"probe": {"name": "tool_batch", "input": {"calls": [
                    {"name": "read_file", "arguments": {"path": "b"}},
                    {"name": "write_file", "arguments": {"path": "a", "content": "2\n"}},
                    {"name": "read_file", "arguments": {"path": "./a"}},
                ]}}}],
                "expect": {"agent": "either", "reason": "x"}, "source": {"from": "made"},
            });
            let file = serde_json::from_value(file).unwrap();
            Case::resolve("generated", &Defaults::default(), file)
        };
        let named = |context: &str, told: Value, heard: Value| {
            let (case, step) = (batch(context), judgement(0));
            let answered = |value: Value| {
                let mut trace = trace(1, &json!({}), &[]);
                trace.steps[0].answer = json!({"decision": "none", "value": value});
                trace
            };
            let result = result(&case, &step, answered(told), answered(heard));
            rule(&case, &result, &step) == Some("nobody-vouches-for-what-was-read")
        };
        let refused = json!({"error": "Denied (untrusted-flow): what the agent has read"});
        let told = json!([{"content": "1|a"}, {"bytes_written": 2}]);
        let heard = json!([{"content": "1|a"}, refused]);
        assert!(named("cron", told.clone(), heard.clone()));
        assert!(named("headless", told.clone(), heard.clone()));
        // What is told later of the file that was left alone follows from that.
        let after =
            |text: &str, other: &str| json!([{"content": text}, refused, {"content": other}]);
        let written = json!([{"content": "1|a"}, {"bytes_written": 2}, {"content": "1|2"}]);
        assert!(named("cron", written.clone(), after("1|a", "1|1")));
        assert!(!named("cron", written, after("1|b", "1|1")));
        for (context, told, heard) in [
            ("interactive", told.clone(), heard.clone()),
            ("cron", told.clone(), told.clone()),
            ("cron", told.clone(), json!([{"content": "1|b"}, refused])),
            ("cron", told.clone(), json!([{"content": "1|a"}])),
            (
                "cron",
                told,
                json!([{"content": "1|a"}, {"error": "Denied (no-cap): x"}]),
            ),
        ] {
            assert!(!named(context, told.clone(), heard), "{context} {told}");
        }
    }
}
