//! Conversations as JSON lines: one conversation a line, calls as text in it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use serde_json::Value;

use super::history::{Call, Counts, NO_OBJECT, NO_TOOL, Session, Sink};
use super::note::Note;

/// Longest line that is held.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Gives every call of a file to `sink`, until that wants no more; `known` says
/// whether a call was seen before.
///
/// # Errors
/// What could not be read. The rest was given.
pub fn stream(
    path: &Path,
    name: &str,
    sink: &mut dyn Sink,
    known: &mut impl FnMut(&Call) -> bool,
    counts: &mut Counts,
) -> Result<(), Note> {
    let stopped = |line: u64, why: String| {
        Note::partial(
            name,
            format!("line {line} cannot be read and was left out: {why}"),
        )
    };
    let file = File::open(path).map_err(|error| stopped(0, error.to_string()))?;
    let mut reader = BufReader::new(file);
    let (mut line, mut bytes) = (0_u64, Vec::new());
    let mut wrong = None;
    loop {
        line += 1;
        bytes.clear();
        let got = reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| stopped(line, error.to_string()))?;
        if got == 0 {
            return wrong.map_or(Ok(()), Err);
        }
        if bytes.last() != Some(&b'\n') && got as u64 == LINE_BYTES_MAX {
            return Err(stopped(
                line,
                format!(
                    "it is longer than {LINE_BYTES_MAX} bytes; the rest of the file was not read"
                ),
            ));
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(conversation) => {
                if !one(&conversation, (name, line), sink, known, counts) {
                    return wrong.map_or(Ok(()), Err);
                }
            }
            Err(error) => {
                counts.cannot_read(name, &format!("line {line}"), "the line is no JSON");
                wrong.get_or_insert_with(|| stopped(line, error.to_string()));
            }
        }
    }
}

/// One conversation; whether more is wanted.
fn one(
    conversation: &Value,
    (name, line): (&str, u64),
    sink: &mut dyn Sink,
    known: &mut impl FnMut(&Call) -> bool,
    counts: &mut Counts,
) -> bool {
    let place = format!("line {line}");
    let session = Session {
        id: format!("{name}:{line}"),
        source: "trajectory".to_owned(),
        cwd: None,
        started: 0.0,
    };
    let turns = conversation.get("conversations").and_then(Value::as_array);
    let mut begun = false;
    let mut made: Vec<Call> = Vec::new();
    let mut give =
        |calls: &mut Vec<Call>, counts: &mut Counts, sink: &mut dyn FnMut(Option<Call>) -> bool| {
            for call in calls.drain(..) {
                if known(&call) {
                    counts.repeated += 1;
                    continue;
                }
                if !begun {
                    begun = true;
                    counts.sessions += 1;
                    sink(None);
                }
                counts.calls += 1;
                if !sink(Some(call)) {
                    return false;
                }
            }
            true
        };
    let mut hand = |call: Option<Call>| match call {
        None => {
            sink.session(&session);
            true
        }
        Some(call) => sink.call(call),
    };
    for turn in turns.into_iter().flatten() {
        let text = |name: &str| turn.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("from") {
            "gpt" => {
                if !give(&mut made, counts, &mut hand) {
                    return false;
                }
                for part in between(text("value"), "<tool_call>", "</tool_call>") {
                    match called(part) {
                        Ok(call) => made.push(call),
                        Err(why) => counts.cannot_read(name, &place, why),
                    }
                }
            }
            "tool" => {
                let answers = between(text("value"), "<tool_response>", "</tool_response>");
                // Answers stand in the order of the calls; only they know the ids.
                for (call, part) in made
                    .iter_mut()
                    .filter(|call| call.result.is_none())
                    .zip(answers)
                {
                    answered(call, part);
                }
            }
            _ => {}
        }
    }
    give(&mut made, counts, &mut hand)
}

fn called(text: &str) -> Result<Call, &'static str> {
    let value: Value = serde_json::from_str(text.trim()).map_err(|_| "it is no JSON")?;
    let tool = value.get("name").and_then(Value::as_str).ok_or(NO_TOOL)?;
    let args = value.get("arguments").filter(|args| args.is_object());
    Ok(Call {
        id: String::new(),
        tool: tool.to_owned(),
        args: args.ok_or(NO_OBJECT)?.clone(),
        result: None,
        cut: false,
    })
}

fn answered(call: &mut Call, text: &str) {
    let Ok(value) = serde_json::from_str::<Value>(text.trim()) else {
        call.result = Some(text.trim().to_owned());
        return;
    };
    if let Some(id) = value.get("tool_call_id").and_then(Value::as_str) {
        id.clone_into(&mut call.id);
    }
    call.result = Some(match value.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => value.to_string(),
    });
}

/// The texts between pairs of marks.
fn between<'t>(text: &'t str, open: &'static str, close: &'static str) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        match after.split_once(close) {
            Some((inner, after)) => {
                found.push(inner);
                rest = after;
            }
            None => break,
        }
    }
    found
}
