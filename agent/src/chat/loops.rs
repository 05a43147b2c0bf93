//! Noticing that a model goes round in circles, telling it, and ending it.
//!
//! What for: a model that makes the same failing call again and again, or reads
//! what it has read, is told so under the result, as the compared agent does:
//! the same counts, the same words. Where the user wants it, such a call is not
//! made any more and the turn ends. Nothing is counted beyond one turn of the
//! user's, and nothing is allowed here that would not be allowed anyway.

use std::collections::HashMap;

use hermitcrab_core::{
    digest::Digest,
    fault::{self, Fault},
};
use serde_json::{Value, json};

use crate::{digest::sha256, runtime::Guard, text::pyjson};

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
    guard: Guard,
    failed: HashMap<Call, u32>,
    failed_in_a_row: HashMap<String, u32>,
    answered: HashMap<Call, (Digest, u32)>,
    ended: Option<Ended>,
}

/// What ended a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ended {
    tool: String,
    code: &'static str,
    count: u32,
}

/// What is said of one call.
struct Word {
    code: &'static str,
    count: u32,
    words: String,
}

impl Loops {
    pub(super) fn of(guard: Guard) -> Self {
        Self {
            guard,
            ..Self::default()
        }
    }

    /// The same guard, and nothing seen.
    pub(super) fn anew(&self) -> Self {
        Self::of(self.guard)
    }

    /// What the model is told in place of a call that is not made any more.
    pub(super) fn refused(&mut self, tool: &str, args: &Value) -> Option<String> {
        if !self.guard.stops || fault::is(Fault::LoopsGoOn) {
            return None;
        }
        let call = call(tool, args);
        let failed = self.failed.get(&call).copied().unwrap_or_default();
        let answered = self.answered.get(&call).map_or(0, |(_, count)| *count);
        let word = if failed >= self.guard.ended.same_call {
            Word {
                code: "repeated_exact_failure_block",
                count: failed,
                words: format!(
                    "Blocked {tool}: the same tool call failed {failed} times with identical arguments. Stop retrying \
                     it unchanged; change strategy or explain the blocker."
                ),
            }
        } else if READING.contains(&tool) && answered >= self.guard.ended.same_answer {
            Word {
                code: "idempotent_no_progress_block",
                count: answered,
                words: format!(
                    "Blocked {tool}: this read-only call returned the same result {answered} times. Stop repeating it \
                     unchanged; use the result already provided or try a different query."
                ),
            }
        } else {
            return None;
        };
        let text = pyjson::text(&json!({
            "error": word.words,
            "guardrail": {
                "action": "block",
                "code": word.code,
                "message": word.words,
                "tool_name": tool,
                "count": word.count,
                "signature": {"tool_name": tool, "args_hash": call.1.to_string()},
            },
        }));
        self.end(tool, &word);
        Some(text)
    }

    /// The model's last words in its place, if the turn is to end.
    pub(super) fn ended(&self) -> Option<String> {
        let Ended { tool, code, count } = self.ended.as_ref()?;
        Some(format!(
            "I stopped retrying {tool} because it hit the tool-call guardrail ({code}) after {count} repeated \
             non-progressing attempts. The last tool result explains the blocker; the next step is to change strategy \
             instead of repeating the same call."
        ))
    }

    fn end(&mut self, tool: &str, word: &Word) {
        self.ended.get_or_insert_with(|| Ended {
            tool: tool.to_owned(),
            code: word.code,
            count: word.count,
        });
    }

    /// Takes note of one result; what the model is to be told, if anything.
    pub(super) fn observe(&mut self, tool: &str, args: &Value, result: &str) -> Option<String> {
        let call = call(tool, args);
        if is_failure(tool, result) {
            return self.failure(call);
        }
        let word = self.success(call, result)?;
        Some(told("warning", &word))
    }

    fn failure(&mut self, call: Call) -> Option<String> {
        self.answered.remove(&call);
        let tool = call.0.clone();
        let alike = more(self.failed.entry(call).or_default());
        let in_a_row = more(self.failed_in_a_row.entry(tool.clone()).or_default());
        let Guard {
            warns,
            stops,
            told: from,
            ended,
        } = self.guard;
        if stops && in_a_row >= ended.same_tool && !fault::is(Fault::LoopsGoOn) {
            let word = Word {
                code: "same_tool_failure_halt",
                count: in_a_row,
                words: format!(
                    "Stopped {tool}: it failed {in_a_row} times this turn. Stop retrying the same failing tool path \
                     and choose a different approach."
                ),
            };
            self.end(&tool, &word);
            return Some(told("hard stop", &word));
        }
        if warns && alike >= from.same_call {
            let words = format!(
                "{tool} has failed {alike} times with identical arguments. This looks like a loop; inspect the error \
                 and change strategy instead of retrying it unchanged."
            );
            return Some(told(
                "warning",
                &Word {
                    code: "repeated_exact_failure_warning",
                    count: alike,
                    words,
                },
            ));
        }
        (warns && in_a_row >= from.same_tool).then(|| {
            told(
                "warning",
                &Word {
                    code: "same_tool_failure_warning",
                    count: in_a_row,
                    words: way_out(&tool, in_a_row),
                },
            )
        })
    }

    fn success(&mut self, call: Call, result: &str) -> Option<Word> {
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
        (self.guard.warns && count >= self.guard.told.same_answer).then(|| Word {
            code: "idempotent_no_progress_warning",
            count,
            words: format!(
                "{tool} returned the same result {count} times. Use the result already provided or change the query \
                 instead of repeating it unchanged."
            ),
        })
    }
}

fn call(tool: &str, args: &Value) -> Call {
    (tool.to_owned(), sha256(canonical(args).as_bytes()))
}

fn told(kind: &str, Word { code, count, words }: &Word) -> String {
    format!("\n\n[Tool loop {kind}: {code}; count={count}; {words}]")
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
pub(super) fn is_failure(tool: &str, result: &str) -> bool {
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
    let start = crate::text::pytext::head(result, LOOKED_AT).to_lowercase();
    start.contains("\"error\"") || start.contains("\"failed\"") || result.starts_with("Error")
}

/// Neither null, false, zero nor empty.
pub(super) fn is_something(value: &Value) -> bool {
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
    // A `Value` has no failing case.
    serde_json::to_string(&sorted(value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Guard, Loops, is_failure};

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

    fn stopping() -> Loops {
        Loops::of(Guard {
            stops: true,
            ..Guard::default()
        })
    }

    #[test]
    fn a_call_that_failed_five_times_is_not_made_a_sixth_time_where_that_is_wanted() {
        let args = json!({"path": "a"});
        let (mut stopping, mut usual) = (stopping(), Loops::default());
        for _ in 0..5 {
            assert_eq!(stopping.refused("read_file", &args), None);
            stopping.observe("read_file", &args, BAD);
            usual.observe("read_file", &args, BAD);
        }
        let told: Value =
            serde_json::from_str(&stopping.refused("read_file", &args).expect("refused"))
                .expect("JSON");
        assert_eq!(told["guardrail"]["code"], "repeated_exact_failure_block");
        assert_eq!(told["guardrail"]["count"], 5);
        assert!(stopping.ended().is_some());
        assert_eq!(stopping.refused("read_file", &json!({"path": "b"})), None);
        assert_eq!(usual.refused("read_file", &args), None);
        assert_eq!(usual.ended(), None);
        assert_eq!(stopping.anew().refused("read_file", &args), None);
    }

    #[test]
    fn the_same_answer_five_times_is_enough_of_what_reads_where_that_is_wanted() {
        let mut loops = stopping();
        for (tool, is_refused) in [("search_files", true), ("terminal", false)] {
            let args = json!({"pattern": "x", "command": "x"});
            for _ in 0..5 {
                assert_eq!(loops.refused(tool, &args), None);
                loops.observe(tool, &args, "{\"exit_code\": 0}");
            }
            assert_eq!(loops.refused(tool, &args).is_some(), is_refused, "{tool}");
        }
    }

    #[test]
    fn a_tool_that_failed_eight_times_in_a_row_ends_the_turn_where_that_is_wanted() {
        let (mut stopping, mut usual) = (stopping(), Loops::default());
        for number in 0..8 {
            let args = json!({"path": number});
            assert_eq!(stopping.ended(), None);
            let told = stopping.observe("write_file", &args, BAD);
            usual.observe("write_file", &args, BAD);
            if number == 7 {
                let told = told.expect("a word");
                assert!(
                    told.starts_with("\n\n[Tool loop hard stop: same_tool_failure_halt; count=8;")
                );
            }
        }
        assert!(
            stopping
                .ended()
                .is_some_and(|words| words.starts_with("I stopped retrying write_file"))
        );
        assert_eq!(usual.ended(), None);
    }

    #[test]
    fn nothing_is_told_where_that_is_not_wanted() {
        let mut loops = Loops::of(Guard {
            warns: false,
            ..Guard::default()
        });
        for _ in 0..4 {
            assert_eq!(loops.observe("patch", &json!({}), BAD), None);
            assert_eq!(loops.observe("read_file", &json!({}), "{}"), None);
        }
    }
}
