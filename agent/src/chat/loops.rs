//! Noticing that a model goes round in circles, and telling it.
//!
//! What for: a model that makes the same failing call again and again, or reads
//! what it has read, is told so under the result, as the compared agent does:
//! the same counts, the same words. It is guidance, not a decision: nothing is
//! refused here, and nothing is counted beyond one turn of the user's.

use std::collections::HashMap;

use hermitcrab_core::digest::Digest;
use serde_json::Value;

use crate::{digest::sha256, pyjson};

/// From this failure of exactly the same call on.
const EXACT_FAILURES: u32 = 2;
/// From this failure of the same tool in a row on.
const TOOL_FAILURES: u32 = 3;
/// From this time on that the same question gets the same answer.
const SAME_ANSWERS: u32 = 2;
/// How far into a result a sign of failure is looked for, in letters.
const LOOKED_AT: usize = 500;

/// Tools that change nothing, whose repeated answer says that nothing changed.
const READING: [&str; 10] = [
    "read_file",
    "search_files",
    "mcp_filesystem_read_file",
    "mcp_filesystem_read_text_file",
    "mcp_filesystem_read_multiple_files",
    "mcp_filesystem_list_directory",
    "mcp_filesystem_list_directory_with_sizes",
    "mcp_filesystem_directory_tree",
    "mcp_filesystem_get_file_info",
    "mcp_filesystem_search_files",
];

/// A call by its tool and a digest of its arguments.
type Call = (String, Digest);

/// What was seen in one turn.
#[derive(Debug, Default)]
pub(super) struct Loops {
    failed: HashMap<Call, u32>,
    failed_in_a_row: HashMap<String, u32>,
    answered: HashMap<Call, (Digest, u32)>,
}

impl Loops {
    /// Takes note of one result; what the model is to be told, if anything.
    pub(super) fn observe(&mut self, tool: &str, args: &Value, result: &str) -> Option<String> {
        let call = (tool.to_owned(), sha256(canonical(args).as_bytes()));
        let warning = if is_failure(tool, result) {
            self.failure(call)
        } else {
            self.success(call, result)
        };
        warning.map(|(code, count, words)| {
            format!("\n\n[Tool loop warning: {code}; count={count}; {words}]")
        })
    }

    fn failure(&mut self, call: Call) -> Option<(&'static str, u32, String)> {
        self.answered.remove(&call);
        let tool = call.0.clone();
        let alike = more(self.failed.entry(call).or_default());
        let in_a_row = more(self.failed_in_a_row.entry(tool.clone()).or_default());
        if alike >= EXACT_FAILURES {
            let words = format!(
                "{tool} has failed {alike} times with identical arguments. This looks like a loop; inspect the error \
                 and change strategy instead of retrying it unchanged."
            );
            return Some(("repeated_exact_failure_warning", alike, words));
        }
        (in_a_row >= TOOL_FAILURES).then(|| {
            (
                "same_tool_failure_warning",
                in_a_row,
                way_out(&tool, in_a_row),
            )
        })
    }

    fn success(&mut self, call: Call, result: &str) -> Option<(&'static str, u32, String)> {
        self.failed.remove(&call);
        self.failed_in_a_row.remove(&call.0);
        let tool = call.0.clone();
        if !READING.contains(&tool.as_str()) {
            return None;
        }
        let answer = serde_json::from_str(result)
            .map_or_else(|_| result.to_owned(), |value| canonical(&value));
        let answer = sha256(answer.as_bytes());
        let (known, count) = self.answered.entry(call).or_insert((answer, 0));
        if *known != answer {
            (*known, *count) = (answer, 0);
        }
        let count = more(count);
        (count >= SAME_ANSWERS).then(|| {
            let words = format!(
                "{tool} returned the same result {count} times. Use the result already provided or change the query \
                 instead of repeating it unchanged."
            );
            ("idempotent_no_progress_warning", count, words)
        })
    }
}

fn more(count: &mut u32) -> u32 {
    *count = count.saturating_add(1);
    *count
}

fn way_out(tool: &str, count: u32) -> String {
    let advice = if tool == "terminal" {
        "For terminal failures, run a small diagnostic such as `pwd && ls -la` in the same tool, then try an absolute \
         path, a simpler command, a different working directory, or a different tool such as read_file/write_file/patch."
    } else {
        "Try different arguments, a narrower query/path, an absolute path when relevant, or a different tool that can \
         make progress. If the blocker is external, report the blocker after one diagnostic attempt instead of \
         repeating the same failing path."
    };
    format!(
        "{tool} has failed {count} times this turn. This looks like a loop. Do not switch to text-only replies; keep \
         using tools, but diagnose before retrying. First inspect the latest error/output and verify your assumptions. \
         {advice}"
    )
}

/// Whether a result looks like a failure. Only a count follows from it, so it
/// may look at words.
fn is_failure(tool: &str, result: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(result).ok();
    let fields = value.as_ref().and_then(Value::as_object);
    let field = |name: &str| fields.and_then(|fields| fields.get(name));
    let has_landed = !field("error").is_some_and(is_something)
        && match tool {
            "write_file" => field("bytes_written").is_some(),
            "patch" => field("success") == Some(&Value::Bool(true)),
            _ => false,
        };
    if has_landed {
        return false;
    }
    if tool == "terminal" {
        return field("exit_code")
            .is_some_and(|code| !code.is_null() && code.as_f64() != Some(0.0));
    }
    let says_why = [field("error"), field("message")]
        .into_iter()
        .flatten()
        .any(is_something);
    let is_unsuccessful = field("success") == Some(&Value::Bool(false));
    if says_why && (is_unsuccessful || field("error").is_some()) {
        return true;
    }
    let start = crate::tools::pytext::head(result, LOOKED_AT).to_lowercase();
    start.contains("\"error\"") || start.contains("\"failed\"") || result.starts_with("Error")
}

/// Neither null, false, zero nor empty.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// The value as text, the fields of every object in the order of their names.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(sorted).collect(),
            Value::Object(fields) => {
                let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                fields
                    .into_iter()
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    pyjson::text(&sorted(value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Loops, is_failure};

    fn code(warning: Option<String>) -> Option<String> {
        let warning = warning?;
        let from = warning.strip_prefix("\n\n[Tool loop warning: ")?;
        from.split("; ")
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
            .into()
    }

    fn seen(calls: &[(&str, Value, &str)]) -> Vec<Option<String>> {
        let mut loops = Loops::default();
        calls
            .iter()
            .map(|(tool, args, result)| code(loops.observe(tool, args, result)))
            .collect()
    }

    const BAD: &str = r#"{"error": "no"}"#;

    #[test]
    fn the_second_failure_of_the_same_call_is_told_whatever_the_order_of_its_fields() {
        let (one, other) = (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}));
        assert_eq!(
            seen(&[("patch", one, BAD), ("patch", other, BAD)]),
            [None, Some("repeated_exact_failure_warning count=2".into())]
        );
    }

    #[test]
    fn the_third_failure_of_a_tool_is_told_and_a_success_between_is_a_new_beginning() {
        let call = |number: u32, result| ("write_file", json!({"path": number}), result);
        assert_eq!(
            seen(&[call(1, BAD), call(2, BAD), call(3, BAD)]),
            [None, None, Some("same_tool_failure_warning count=3".into())]
        );
        let good = r#"{"bytes_written": 1}"#;
        assert_eq!(
            seen(&[call(1, BAD), call(2, BAD), call(4, good), call(3, BAD)]),
            [None, None, None, None]
        );
    }

    #[test]
    fn the_same_answer_twice_is_told_of_what_reads_and_of_nothing_else() {
        let read = |result| ("read_file", json!({"path": "a"}), result);
        assert_eq!(
            seen(&[
                read("{\"content\": \"1|a\"}"),
                read("{\"content\":\"1|a\"}")
            ]),
            [None, Some("idempotent_no_progress_warning count=2".into())]
        );
        assert_eq!(
            seen(&[read("{\"n\": 1}"), read("{\"n\": 2}")]),
            [None, None]
        );
        let run = || {
            (
                "terminal",
                json!({"command": "date"}),
                r#"{"exit_code": 0}"#,
            )
        };
        assert_eq!(seen(&[run(), run(), run()]), [None, None, None]);
    }

    #[test]
    fn what_counts_as_a_failure_follows_the_shape_of_the_result() {
        for (tool, result, expected) in [
            ("terminal", r#"{"exit_code": 1, "error": null}"#, true),
            ("terminal", r#"{"exit_code": 0, "error": "x"}"#, false),
            ("terminal", r#"{"exit_code": null}"#, false),
            ("patch", r#"{"success": true, "error": ""}"#, false),
            ("patch", r#"{"success": true, "error": "x"}"#, true),
            ("write_file", r#"{"bytes_written": 0, "error": "x"}"#, true),
            ("skill_view", r#"{"success": false, "message": "x"}"#, true),
            ("skill_view", r#"{"success": true, "message": "x"}"#, false),
            ("todo", r#"{"error": null}"#, true),
            ("todo", "Error: x", true),
            ("todo", "fine", false),
        ] {
            assert_eq!(is_failure(tool, result), expected, "{tool} {result}");
        }
    }
}
