//! What of a conversation is left out when it has to be shorter, and in which order.
//!
//! Each step takes messages without the first one and keeps them a conversation: a result
//! follows the call it is of, arguments stay an object, the user's words stay as they are.

use serde_json::Value;

use crate::model::{Message, ModelRequest, ProposedCall};

/// Rounds at the end whose results are not old.
const FRESH_ROUNDS: usize = 2;
/// A text up to this many bytes is not worth cutting.
const SHORT: usize = 600;
/// What stays of an old text that is cut, in bytes.
const KEPT: usize = 240;
/// The newest texts are not cut to fewer bytes than this.
const NEWEST_LEAST: usize = 1_000;

/// Bytes of these messages, as they are sent.
pub(super) fn length(messages: &[Message]) -> u64 {
    super::bytes(&ModelRequest::new("", messages).text())
}

/// Cuts long results and arguments of calls, the oldest first, until the rest has `room`
/// bytes; those of the last rounds are left alone. How many were cut.
pub(super) fn results(messages: &mut [Message], room: u64) -> usize {
    let starts = starts(messages);
    let fresh = starts.iter().rev().nth(FRESH_ROUNDS.saturating_sub(1));
    let old = fresh.copied().unwrap_or(0);
    let mut left = length(messages);
    let mut cut = 0;
    for message in messages.iter_mut().take(old) {
        if left <= room {
            break;
        }
        let before = length(std::slice::from_ref(message));
        let texts = match message {
            Message::Tool { tool, text, .. } => usize::from(cut_result(tool, text)),
            Message::Assistant { calls, .. } => calls.iter_mut().map(cut_arguments).sum(),
            Message::System(_) | Message::User(_) | Message::Told(_) => 0,
        };
        let after = length(std::slice::from_ref(message));
        left = left.saturating_sub(before.saturating_sub(after));
        cut += texts;
    }
    cut
}

/// Takes whole rounds from the beginning, so that what stays has `room` bytes; the last
/// round stays in any case.
pub(super) fn rounds(messages: &mut Vec<Message>, room: u64) -> Vec<Message> {
    let starts = starts(messages);
    let fits = |start: &&usize| {
        let rest = messages.get(**start..).unwrap_or_default();
        length(rest) <= room
    };
    let start = starts.iter().find(fits).or(starts.last());
    messages.drain(..start.copied().unwrap_or(0)).collect()
}

/// Cuts the longest results there still are, again and again, until the rest has `room`
/// bytes or none is long. How many were cut.
pub(super) fn newest(messages: &mut [Message], room: u64) -> usize {
    let mut cut = std::collections::BTreeSet::new();
    while length(messages) > room {
        let longest = messages
            .iter_mut()
            .enumerate()
            .filter_map(|(place, message)| match message {
                Message::Tool { text, .. } => Some((place, text)),
                Message::System(_)
                | Message::User(_)
                | Message::Told(_)
                | Message::Assistant { .. } => None,
            })
            .max_by_key(|(_, text)| text.len());
        let Some((place, text)) = longest.filter(|(_, text)| text.len() > NEWEST_LEAST) else {
            break;
        };
        let aim = (text.len() / 2).max(NEWEST_LEAST / 2);
        let (front, back) = (head(text, aim / 3 * 2), tail(text, aim / 3));
        let out = text.len().saturating_sub(front.len() + back.len());
        *text = format!("{front}\n[{out} bytes left out here to make room]\n{back}");
        cut.insert(place);
    }
    cut.len()
}

/// Where rounds begin: with the user's words, or with an answer of the model.
fn starts(messages: &[Message]) -> Vec<usize> {
    let begins = |message: &Message| match message {
        Message::System(_) | Message::User(_) | Message::Told(_) | Message::Assistant { .. } => {
            true
        }
        Message::Tool { .. } => false,
    };
    let places = messages.iter().enumerate();
    places
        .filter(|(_, message)| begins(message))
        .map(|(place, _)| place)
        .collect()
}

fn cut_result(tool: &str, text: &mut String) -> bool {
    if text.len() <= SHORT {
        return false;
    }
    let front = head(text, KEPT);
    let out = text.len().saturating_sub(front.len());
    *text = format!(
        "{front}\n[{out} bytes of what `{tool}` told were left out to make room; call it again if they matter]"
    );
    true
}

/// Cuts the long texts within a call's arguments; whether there were any.
fn cut_arguments(call: &mut ProposedCall) -> usize {
    if call.arguments.len() <= SHORT {
        return 0;
    }
    let mut arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
    if !arguments.is_object() {
        // It was no call; what it was is told by its result.
        arguments = Value::Object(serde_json::Map::new());
    }
    cut_texts(&mut arguments);
    let shorter = arguments.to_string();
    let is_shorter = shorter.len() < call.arguments.len();
    if is_shorter {
        call.arguments = shorter;
    }
    usize::from(is_shorter)
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > SHORT => {
            let front = head(text, KEPT);
            let out = text.len().saturating_sub(front.len());
            *text = format!("{front}[{out} bytes left out to make room]");
        }
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The first letters of a text, of at most so many bytes.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

fn tail(text: &str, bytes: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
#[path = "tests/shorter.rs"]
mod tests;
