//! A conversation as it is kept: one JSON object a line.
//!
//! The first line says what it is about, so that this is known without what was said.
//! What comes later is added: a message, how things stand, or that the last messages are
//! others now. What was being written when the program ended is no line yet.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::PathBuf,
};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::{Conversation, Mark};
use crate::model::{Message, ProposedCall};

/// In the first line of what older versions wrote, all of it in one line.
const OLDER: &[u8] = b",\"messages\":[";

/// The first line.
pub(super) fn head(said: &Conversation, has_read: bool) -> String {
    let mut facts = standing(said, has_read);
    facts["cwd"] = json!(said.cwd.to_string_lossy());
    // What stands there for other letters is a name that another directory may have.
    if said.cwd.to_str().is_none() {
        facts["cwd_bytes"] = json!(HEXLOWER.encode(said.cwd.as_os_str().as_bytes()));
    }
    facts["title"] = json!(said.title);
    if let Some(started) = said.started {
        facts["started"] = json!(started);
    }
    line(&facts)
}

/// How things stand.
pub(super) fn facts(said: &Conversation, has_read: bool) -> String {
    line(&standing(said, has_read))
}

fn standing(said: &Conversation, has_read: bool) -> Value {
    let mut facts = json!({"updated": said.updated, "read": has_read});
    if let Some(mark) = said.mark {
        facts["session"] = json!(mark.session);
        facts["calls"] = json!(mark.calls);
    }
    if let Some(model) = &said.model {
        facts["model"] = json!(model);
    }
    if let Some(asked) = &said.asked {
        facts["asked"] = json!(asked);
    }
    facts
}

/// The messages from this place on are others now.
pub(super) fn anew_from(place: usize) -> String {
    line(&json!({ "from": place }))
}

/// A message, and when it was said, in milliseconds since 1970, where that is known.
pub(super) fn message(message: &Message, at: Option<u64>) -> String {
    let mut value = match message {
        Message::System(text) => json!({"system": text}),
        Message::User(text) => json!({"user": text}),
        Message::Told(text) => json!({"told": text}),
        Message::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!([call.id, call.tool, call.arguments]))
                .collect();
            json!({"assistant": text, "calls": calls})
        }
        Message::Tool { call, tool, text } => json!({"tool": tool, "call": call, "text": text}),
    };
    if let Some(at) = at {
        value["at"] = json!(at);
    }
    line(&value)
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// What lines say; `None` if they are no conversation.
pub(super) fn read(bytes: &[u8]) -> Option<Conversation> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let head: Value = serde_json::from_slice(lines.next()?).ok()?;
    let mut said = about(&head)?;
    // One of which nobody can say what was read for it counts as read.
    let mut has_read = head.get("read").and_then(Value::as_bool);
    if let Some(older) = head.get("messages") {
        let messages = older.as_array()?.iter().map(read_message);
        said.messages = messages.collect::<Option<_>>()?;
    }
    for line in lines {
        // Of a file that grew before it was written, the rest reads as NUL.
        if line.last() != Some(&b'\n') || line.contains(&0) {
            break;
        }
        let value: Value = serde_json::from_slice(line).ok()?;
        if let Some(updated) = value.get("updated") {
            updated.as_str()?.clone_into(&mut said.updated);
            has_read = Some(value.get("read")?.as_bool()? || has_read == Some(true));
            said.mark = mark(&value);
            if let Some(model) = model(&value) {
                said.model = Some(model);
            }
            if let Some(asked) = asked(&value) {
                said.asked = Some(asked);
            }
        } else if let Some(place) = value.get("from") {
            let place = usize::try_from(place.as_u64()?)
                .ok()?
                .min(said.messages.len());
            said.times.truncate(place);
            let gone = said.messages.drain(place..);
            // What was read is not unread because it was said in other words.
            if gone
                .into_iter()
                .any(|message| matches!(message, Message::Tool { .. }))
            {
                has_read = Some(true);
            }
        } else {
            said.messages.push(read_message(&value)?);
            said.times.resize(said.messages.len() - 1, None);
            said.times.push(value.get("at").and_then(Value::as_u64));
        }
    }
    said.has_read = has_read.unwrap_or(!said.messages.is_empty());
    Some(said)
}

/// What a conversation is about, by the beginning of what is kept, without what was said.
pub(super) fn read_about(beginning: &[u8]) -> Option<Conversation> {
    let end = beginning.iter().position(|byte| *byte == b'\n');
    let head = beginning.get(..end.unwrap_or(beginning.len()))?;
    // Within a string its quotes would not stand alone.
    match head.windows(OLDER.len()).position(|part| part == OLDER) {
        None => about(&serde_json::from_slice(head).ok()?),
        Some(older) => {
            let facts = [head.get(..older)?, b"}"].concat();
            about(&serde_json::from_slice(&facts).ok()?)
        }
    }
}

/// When it was written last, by the end of what is kept; `None` in the midst of a turn.
pub(super) fn read_updated(end: &[u8]) -> Option<String> {
    let last = end.strip_suffix(b"\n")?;
    let last = last.rsplit(|byte| *byte == b'\n').next()?;
    let facts: Value = serde_json::from_slice(last).ok()?;
    facts.get("updated")?.as_str().map(str::to_owned)
}

fn about(head: &Value) -> Option<Conversation> {
    let word = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
    let cwd: PathBuf = match word("cwd_bytes") {
        Some(bytes) => OsString::from_vec(HEXLOWER.decode(bytes.as_bytes()).ok()?).into(),
        None => word("cwd")?.into(),
    };
    Some(Conversation {
        cwd,
        title: word("title"),
        updated: word("updated")?,
        mark: mark(head),
        started: head.get("started").and_then(Value::as_u64),
        model: model(head),
        asked: asked(head),
        ..Conversation::default()
    })
}

fn model(facts: &Value) -> Option<String> {
    facts.get("model")?.as_str().map(str::to_owned)
}

fn asked(facts: &Value) -> Option<String> {
    facts.get("asked")?.as_str().map(str::to_owned)
}

fn mark(facts: &Value) -> Option<Mark> {
    let number = |name: &str| facts.get(name).and_then(Value::as_u64);
    Some(Mark {
        session: number("session")?,
        calls: number("calls")?,
    })
}

fn read_message(value: &Value) -> Option<Message> {
    let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(words) = word("user") {
        return Some(Message::User(words));
    }
    if let Some(words) = word("told") {
        return Some(Message::Told(words));
    }
    if let Some(tool) = word("tool") {
        return Some(Message::Tool {
            call: word("call")?,
            tool,
            text: word("text")?,
        });
    }
    let mut calls = Vec::new();
    for call in value.get("calls")?.as_array()? {
        let part = |place: usize| call.get(place).and_then(Value::as_str).map(str::to_owned);
        calls.push(ProposedCall {
            id: part(0)?,
            tool: part(1)?,
            arguments: part(2)?,
        });
    }
    Some(Message::Assistant {
        text: word("assistant")?,
        calls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_no_other_whatever_letters_its_name_has() {
        let odd = PathBuf::from(OsString::from_vec(b"/w/n\xff".to_vec()));
        for cwd in [odd, "/w/n\u{fffd}".into(), "/w/n".into()] {
            let said = Conversation {
                cwd: cwd.clone(),
                updated: "2026-01-01T00:00:00Z".to_owned(),
                ..Conversation::default()
            };
            let kept = head(&said, false);
            assert_eq!(read(kept.as_bytes()).unwrap().cwd, cwd, "{kept}");
            assert_eq!(read_about(kept.as_bytes()).unwrap().cwd, cwd, "{kept}");
        }
        let wrong = b"{\"updated\":\"x\",\"read\":false,\"cwd\":\"/w\",\"cwd_bytes\":\"0\"}\n";
        assert!(read(wrong).is_none());
    }
}
