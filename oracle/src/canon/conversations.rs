//! What is not compared of whole conversations: what each subject counts, draws
//! or keeps for itself.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

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

/// What stands behind a result where a model goes round in circles begins so.
const WARNED: &str = "\n\n[Tool loop warning: ";

/// Asks the rules about a tool's results of each result its models were given: which tool a
/// result is of, the calls before it say.
pub fn each_result(value: &mut Value, rules: &mut impl FnMut(&str, &mut Value)) {
    let Some(Value::Object(agents)) = value.get_mut("agents") else {
        return;
    };
    for agent in agents.values_mut() {
        let mut called = VecDeque::new();
        let Some(Value::Array(told)) = agent.get_mut("told") else {
            continue;
        };
        for message in told {
            if let Some(Value::Array(calls)) = message.get("calls") {
                called = calls
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect();
            }
            if let Some(Value::String(text)) = message.get("tool")
                && let Some(tool) = called.pop_front()
            {
                message["tool"] = result(text, &tool, rules);
            }
        }
    }
}

fn result(text: &str, tool: &str, rules: &mut impl FnMut(&str, &mut Value)) -> Value {
    let end = text.rfind(WARNED).unwrap_or(text.len());
    let (told, warned) = text.split_at(end);
    let mut told = text_value(told);
    rules(tool, &mut told);
    match told {
        told if warned.is_empty() => told,
        Value::String(told) => Value::String(told + warned),
        told => json!([told, warned]),
    }
}

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

    use super::{each_result, without_own};
    use crate::canon::{Greetings, Names, Siblings, without_own_words};

    fn seen(mut value: Value) -> Value {
        without_own(&mut value, &mut Names::default());
        value
    }

    #[test]
    fn a_result_is_read_by_the_rules_of_the_tool_that_gave_it_also_before_a_warning() {
        let ran = |id: &str, pid: &str, warned: &str| {
            let started = format!(r#"{{"session_id": "{id}", "pid": {pid}, "exit_code": 0}}"#);
            let read = r#"{"pid": 7}"#;
            let mut value = json!({"agents": {"parent": {"told": [
                {"user": "go"},
                {"said": "", "calls": ["terminal", "read_file"]},
                {"tool": format!("{started}{warned}")},
                {"tool": read},
                {"said": "", "calls": ["process"]},
                {"tool": format!("no process {id}")},
            ]}}});
            let mut names = Names::default();
            each_result(&mut value, &mut |tool, value| {
                without_own_words(
                    tool,
                    value,
                    &mut names,
                    &mut Siblings::default(),
                    &mut Greetings::default(),
                );
            });
            value["agents"]["parent"]["told"].take()
        };
        let warned = "\n\n[Tool loop warning: again; count=2]";
        let hermes = ran("proc_0123456789ab", "28", warned);
        assert_eq!(hermes, ran("proc_ba9876543210", "null", warned));
        assert_eq!(
            hermes[2]["tool"],
            json!([{"session_id": "<name 1>", "pid": "<own>", "exit_code": 0}, warned])
        );
        // What a file says of a number is compared.
        assert_eq!(hermes[3]["tool"], json!({"pid": 7}));
        assert_eq!(hermes[5]["tool"], "no process <name 1>");
        assert_ne!(hermes, ran("proc_ba9876543210", "null", ""));
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
