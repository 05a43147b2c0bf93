//! What was recorded: sessions, and calls with what came of them.

use std::collections::BTreeMap;

use bisim_world::protocol::Context;
use serde_json::Value;

use crate::figures::calls;

/// A conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Its id, or the place of a conversation in a file.
    pub id: String,
    /// `cli`, `telegram`, `cron`, ...
    pub source: String,
    /// Where it worked, if that was recorded.
    pub cwd: Option<String>,
    /// When it began, in seconds since 1970; 0 if that is not known.
    pub started: f64,
}

impl Session {
    /// The surroundings that Hermes' approval gate would distinguish.
    #[must_use]
    pub fn context(&self) -> Context {
        match self.source.as_str() {
            "cli" | "tui" | "" => Context::Interactive,
            "cron" => Context::Cron,
            "acp" => Context::Acp,
            "batch" | "library" | "trajectory" => Context::Headless,
            _ => Context::Gateway,
        }
    }
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The model's name for it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// What the model was told; absent if nothing was recorded.
    pub result: Option<String>,
    /// Whether the result is longer than what was kept.
    pub cut: bool,
}

/// Reasons that are told apart, in all files together.
const REASONS_MAX: usize = 100;
/// Letters of a place that are kept.
const PLACE_LETTERS_MAX: usize = 100;

/// Calls that could not be read for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Unreadable {
    /// How many.
    pub count: u64,
    /// Where the first of them is.
    pub first: String,
}

/// How much was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Counts {
    /// Conversations that hold calls.
    pub sessions: u64,
    /// Calls.
    pub calls: u64,
    /// Calls that a conversation file repeats from the database.
    pub repeated: u64,
    /// Calls whose recording makes no sense.
    pub broken: u64,
    /// Why, by file and reason.
    #[serde(default)]
    pub unreadable: BTreeMap<String, Unreadable>,
}

impl Counts {
    /// Counts what cannot be read of a file, at that place of it.
    pub fn cannot_read(&mut self, file: &str, place: &str, why: &str) {
        self.broken += 1;
        let reason = format!("{file}: {why}");
        let is_told = self.unreadable.len() < REASONS_MAX || self.unreadable.contains_key(&reason);
        if is_told {
            let one = self.unreadable.entry(reason).or_default();
            one.count += 1;
            if one.first.is_empty() {
                // A session may be called anything.
                one.first = place.chars().take(PLACE_LETTERS_MAX).collect();
            }
        }
    }

    /// What cannot be read, in sentences.
    pub fn why_unreadable(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().map(|(reason, one)| {
            let which = if one.count == 1 { "in" } else { "first in" };
            format!(
                "{} not readable, {reason}; {which} {}",
                calls(one.count),
                one.first
            )
        })
    }
}

/// Takes what is read, call by call, in the order of a session.
pub trait Sink {
    /// A session begins; the calls that follow are its.
    fn session(&mut self, session: &Session);
    /// A call with its result. Says whether more is wanted.
    fn call(&mut self, call: Call) -> bool;
}

/// One element of an assistant's `tool_calls`.
///
/// # Errors
/// Why it makes no sense.
pub fn parse(element: &Value) -> Result<Call, &'static str> {
    let function = element.get("function").ok_or("it names no function")?;
    let tool = function.get("name").and_then(Value::as_str);
    let tool = tool.filter(|tool| !tool.is_empty()).ok_or(NO_TOOL)?;
    let args = match function.get("arguments") {
        None => return Err("it has no arguments"),
        Some(Value::String(text)) if text.trim().is_empty() => {
            Value::Object(serde_json::Map::new())
        }
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| "its arguments are no JSON")?
        }
        Some(other) => other.clone(),
    };
    let id = ["id", "call_id"]
        .into_iter()
        .find_map(|name| element.get(name).and_then(Value::as_str))
        .ok_or("it has no id, so that its result is not known")?;
    if !args.is_object() {
        return Err(NO_OBJECT);
    }
    Ok(Call {
        id: id.to_owned(),
        tool: tool.to_owned(),
        args,
        result: None,
        cut: false,
    })
}

/// Said of a call without the name of a tool.
pub(super) const NO_TOOL: &str = "it names no tool";
/// Said of arguments that are another kind of value.
pub(super) const NO_OBJECT: &str = "its arguments are no object";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Counts, parse};

    #[test]
    fn what_is_no_call_says_why() {
        let call = |function| json!({"id": "c", "function": function});
        for (element, why) in [
            (json!({"id": "c"}), "it names no function"),
            (call(json!({"arguments": "{}"})), "it names no tool"),
            (
                call(json!({"name": "", "arguments": "{}"})),
                "it names no tool",
            ),
            (call(json!({"name": "t"})), "it has no arguments"),
            (
                call(json!({"name": "t", "arguments": "{"})),
                "its arguments are no JSON",
            ),
            (
                call(json!({"name": "t", "arguments": "[]"})),
                "its arguments are no object",
            ),
            (
                json!({"function": {"name": "t", "arguments": "{}"}}),
                "it has no id, so that its result is not known",
            ),
        ] {
            assert_eq!(parse(&element).map(|_| ()), Err(why), "{element}");
        }
        assert!(parse(&call(json!({"name": "t", "arguments": ""}))).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_counted_by_its_reason_and_its_first_place_is_named() {
        let mut counts = Counts::default();
        for session in ["a", "b"] {
            counts.cannot_read("state.db", &format!("session {session}"), "no JSON");
        }
        counts.cannot_read("t.jsonl", "line 3", "no object");
        assert_eq!(counts.broken, 3);
        assert_eq!(
            counts.why_unreadable().collect::<Vec<_>>(),
            [
                "2 calls not readable, state.db: no JSON; first in session a",
                "1 call not readable, t.jsonl: no object; in line 3",
            ]
        );
        for number in 0..200 {
            counts.cannot_read("f", "p", &number.to_string());
        }
        assert_eq!((counts.broken, counts.unreadable.len()), (203, 100));
    }
}
