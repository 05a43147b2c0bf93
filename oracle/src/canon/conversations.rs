//! What is not compared of whole conversations: what each subject counts, draws
//! or keeps for itself.

use serde_json::{Map, Value};

use super::{Names, consent, message_ids, parsers, text_value};

/// The probe whose value is a conversation.
pub const CONVERSATION: &str = "scripted_conversation";

/// What each subject measures by its own clock.
const DURATIONS: [&str; 2] = ["duration_seconds", "total_duration_seconds"];
/// Where Hermes says in which files of its own it keeps a copy.
const OWN_FILES: [&str; 4] = [
    "live_transcript",
    "live_transcripts",
    "live_transcripts_hint",
    "summary_full_path",
];
/// How the lines about such files begin; the last stands where there is none.
const OWN_FILE_LINES: [&str; 4] = [
    "Full live transcript (complete tool/assistant trace): ",
    "Full subagent output saved to: ",
    "To read the omitted middle: ",
    "Full output could not be stored to disk;",
];
const OFFERED: &str = "Available tools: ";

/// Rules `own-count`, `made-up-names`, `own-copies`, `tools-on-offer`, `parser-words`,
/// `asked-by-own-rules` and `message-ids`, in everything the models of a conversation were told.
pub fn without_own(value: &mut Value, names: &mut Names) {
    read(value);
    message_ids::within_conversations(value);
    names.numbered_in("delegation_id", value);
}

fn read(value: &mut Value) {
    match value {
        Value::String(text) => {
            let mut inner = text_value(text);
            if let Value::String(text) = &inner {
                inner = Value::String(plain(text));
            } else {
                read(&mut inner);
            }
            *value = inner;
        }
        Value::Array(items) => items.iter_mut().for_each(read),
        Value::Object(fields) => {
            let kept = std::mem::take(fields).into_iter();
            *fields = kept
                .filter(|(name, _)| !OWN_FILES.contains(&name.as_str()))
                .map(|(name, mut field)| {
                    if DURATIONS.contains(&name.as_str()) && field.is_number() {
                        field = Value::String("<own>".to_owned());
                    }
                    if super::MOMENTS.contains(&name.as_str()) && field.is_string() {
                        field = Value::String("<moment>".to_owned());
                    }
                    read(&mut field);
                    (name, field)
                })
                .collect::<Map<_, _>>();
            consent::without_sentence(fields);
            parsers::without_words(value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn plain(text: &str) -> String {
    let lines = text
        .split('\n')
        .filter(|line| !OWN_FILE_LINES.iter().any(|begin| line.starts_with(begin)));
    lines.map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    if line.starts_with("Dispatched: ") && line.ends_with(" ago)") {
        return "Dispatched: <moment>".to_owned();
    }
    if let Some((before, seconds)) = line.rsplit_once("Total duration: ")
        && is_seconds(seconds)
    {
        return format!("{before}Total duration: <own>");
    }
    if let Some(end) = line.strip_suffix(") ---")
        && let Some((before, seconds)) = end.rsplit_once(", ")
        && before.contains("(status=")
        && is_seconds(seconds)
    {
        return format!("{before}, <own>) ---");
    }
    match line.split_once(OFFERED) {
        Some((before, _)) => format!("{before}{OFFERED}<own>"),
        None => line.to_owned(),
    }
}

fn is_seconds(text: &str) -> bool {
    text.strip_suffix('s')
        .is_some_and(|number| number.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::without_own;
    use crate::canon::Names;

    fn seen(mut value: Value) -> Value {
        without_own(&mut value, &mut Names::default());
        value
    }

    fn told(id: &str, seconds: &str, tools: &str, path: &str, rest: &str) -> Value {
        json!({"told": [
            {"tool": format!("{{\"delegation_id\": \"{id}\", \"total_duration_seconds\": {seconds}{path}, \"k\": \"{rest}\"}}")},
            {"tool": format!("Tool 'x' does not exist. Available tools: {tools}")},
            {"user": format!("[{id}]\nDispatched: 2026-01-02 03:04:05 ({seconds}s ago)\nRole: leaf   Total duration: {seconds}s\n--- 1: g  (status=completed, api_calls=1, {seconds}s) ---\n{rest}")},
        ]})
    }

    #[test]
    fn what_a_subject_counts_draws_and_keeps_for_itself_is_no_difference() {
        let hermes = told(
            "deleg_0123abcd",
            "1.25",
            "a, b",
            ", \"live_transcripts\": [\"/home/u/.hermes/x\"]",
            "r",
        );
        assert_eq!(
            seen(hermes),
            seen(told("deleg_00010001", "0.0", "c", "", "r"))
        );
    }

    #[test]
    fn what_a_parser_says_of_a_file_that_is_not_written_is_its_own_and_the_rest_is_not() {
        let refused = |kind: &str, why: &str, end: &str| {
            let error = format!("fails .x syntax validation ({kind}: {why}). The file was {end}.");
            seen(json!({"told": [{"tool": json!({ "error": error }).to_string()}]}))
        };
        let not = "NOT created or modified";
        assert_eq!(
            refused("TOMLDecodeError", "unclosed", not),
            refused("TOMLDecodeError", "Expected ']'", not)
        );
        assert_ne!(
            refused("TOMLDecodeError", "unclosed", not),
            refused("YAMLError", "unclosed", not)
        );
        assert_ne!(
            refused("TOMLDecodeError", "unclosed", "created"),
            refused("TOMLDecodeError", "Expected ']'", "created")
        );
    }

    #[test]
    fn everything_else_of_a_conversation_is_compared() {
        let one = || told("deleg_0123abcd", "1.25", "a", "", "r");
        assert_ne!(
            seen(one()),
            seen(told("deleg_0123abcd", "1.25", "a", "", "other"))
        );
        assert_ne!(
            seen(one()),
            seen(told("deleg_0123abcd", "\"soon\"", "a", "", "r"))
        );
        assert_ne!(seen(json!("a\nb")), seen(json!("a\nc")));
        assert_ne!(
            seen(json!({"duration_seconds": 1})),
            seen(json!({"duration_seconds": null}))
        );
        assert_ne!(
            seen(json!("Tool 'x' does not exist. Available tools: a")),
            seen(json!("Tool 'y' does not exist. Available tools: a"))
        );
        assert_ne!(
            seen(json!("g  (status=completed, api_calls=1, 0.5s) ---")),
            seen(json!("g  (status=completed, api_calls=2, 0.5s) ---"))
        );
    }
}
