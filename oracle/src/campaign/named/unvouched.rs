//! Calls of a batch that are refused for what was read before them.

use bisim_world::protocol::{Context, FsEffect, RawTrace, Step};
use serde_json::Value;

use crate::canon;
use crate::case::{BATCH_PROBE, Case};

/// Whether some calls of a batch were refused because a call before them had read
/// something and nobody is there to say that this is well, and nothing else differs but
/// what later calls tell of the files that were left alone, these files, and a warning
/// that a tool fails again and again, which counts the refusals.
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
        Some(Step::Probe { name, input }) if name == BATCH_PROBE => {
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
    let tool = |place: usize| calls.get(place)?.get("name")?.as_str();
    let mut left_alone: Vec<&str> = Vec::new();
    let mut refused: Vec<&str> = Vec::new();
    for (place, (told, heard)) in told.iter().zip(&heard).enumerate() {
        if is_refused(heard) {
            left_alone.extend(named(place));
            refused.extend(tool(place));
            continue;
        }
        let refusals = refused.iter().filter(|of| Some(**of) == tool(place));
        let is_as_told = told == heard || is_warned_more(told, heard, refusals.count());
        if !is_as_told && !named(place).is_some_and(|path| left_alone.contains(&path)) {
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

/// Whether the call was refused, a warning behind that left out.
fn is_refused(heard: &Value) -> bool {
    let (heard, _) = without_warning(heard);
    let error = heard.get("error").and_then(Value::as_str);
    error.is_some_and(|error| error.starts_with("Denied (untrusted-flow): "))
}

/// Whether both were told the same but for a warning that counts up to so many failures more.
fn is_warned_more(told: &Value, heard: &Value, refusals: usize) -> bool {
    let ((told, before), (heard, count)) = (without_warning(told), without_warning(heard));
    let most = before.unwrap_or(UNWARNED_MAX).saturating_add(refusals);
    told == heard && count > before && count.is_some_and(|count| count <= most)
}

/// Failures of one tool of which nothing is said.
const UNWARNED_MAX: usize = 2;

/// A result without the warning behind it that a tool fails again and again, and how often
/// that says it failed.
fn without_warning(value: &Value) -> (Value, Option<usize>) {
    let parts = value.as_str().and_then(|text| {
        let (text, warning) = text.split_once("\n\n[Tool loop warning: ")?;
        let (code, rest) = warning.split_once("; count=")?;
        let (count, _) = rest.split_once("; ")?;
        let is_of_failures = code.ends_with("_failure_warning");
        let count = count.parse().ok().filter(|_| is_of_failures)?;
        Some((canon::text_value(text), Some(count)))
    });
    parts.unwrap_or_else(|| (value.clone(), None))
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

    #[test]
    fn a_warning_that_counts_refusals_is_named_and_no_other() {
        let refused = json!({"error": "Denied (untrusted-flow): x"});
        let failed = json!({"success": false, "error": "no match"});
        let warned = |value: &Value, code: &str, count: usize| {
            json!(format!(
                "{value}\n\n[Tool loop warning: {code}; count={count}; Look first.]"
            ))
        };
        let same_tool = |value: &Value, count| warned(value, "same_tool_failure_warning", count);
        for (told, heard, refusals, expected) in [
            (failed.clone(), same_tool(&failed, 3), 1, true),
            (failed.clone(), same_tool(&failed, 4), 2, true),
            (same_tool(&failed, 3), same_tool(&failed, 4), 1, true),
            (
                failed.clone(),
                warned(&failed, "repeated_exact_failure_warning", 2),
                1,
                true,
            ),
            // Nothing was refused, or not as often as is counted; or the rest differs.
            (failed.clone(), same_tool(&failed, 3), 0, false),
            (failed.clone(), same_tool(&failed, 4), 1, false),
            (same_tool(&failed, 4), same_tool(&failed, 3), 3, false),
            (json!({"success": true}), same_tool(&failed, 3), 2, false),
            (
                failed.clone(),
                warned(&failed, "idempotent_no_progress_warning", 2),
                1,
                false,
            ),
            (same_tool(&failed, 3), failed.clone(), 1, false),
        ] {
            assert_eq!(
                is_warned_more(&told, &heard, refusals),
                expected,
                "{told} {heard}"
            );
        }
        assert!(is_refused(&refused));
        assert!(is_refused(&same_tool(&refused, 3)));
        assert!(!is_refused(&same_tool(&failed, 3)));
    }
}
