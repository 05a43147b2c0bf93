//! `session_search`: what was said in earlier conversations.
//!
//! Four shapes, told apart by what is given, as in Hermes (`tools/session_search_tool.py`):
//! a query discovers, a conversation and a message scroll, a conversation alone is read, and
//! nothing browses. A message goes by a number that is no other conversation's. Hermes' profiles are
//! homes of other agents; here there is one.

mod discover;

use hermitcrab_core::standing::WallTime;
use serde_json::{Map, Value, json};

use crate::{
    ambient,
    recall::{Earlier, Found, Kept, Role, around},
    runtime::{Hands, Stop, ToolResult},
    text::{args, pytext},
};

/// Messages of a long conversation that are read, at its beginning and at its end.
const READ: (usize, usize) = (20, 10);
/// Letters of a conversation's first words when it is listed.
const PREVIEW_LETTERS: usize = 60;

fn failure(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"error": message, "success": false}))
}

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = given.as_object().cloned().unwrap_or_default();
    let mut id = given.get("session_id").and_then(Value::as_str);
    // A link to a conversation has its profile before it. The argument of that name is offered
    // and goes by nothing, as in Hermes' own loop.
    let mut profile = None;
    if let Some((before, after)) = id.and_then(|id| id.split_once('/'))
        && !after.is_empty()
    {
        id = Some(after);
        profile = Some(before).filter(|before| !pytext::strip(before).is_empty());
    }
    if let Some(why) = profile.and_then(no_profile) {
        return Ok(failure(&why));
    }
    let id = id.map(pytext::strip).filter(|id| !id.is_empty());
    let anchor = given.get("around_message_id").filter(|id| !id.is_null());
    let query = given
        .get("query")
        .and_then(Value::as_str)
        .map(pytext::strip)
        .filter(|query| !query.is_empty());
    let kept = hands.earlier(&match (id, query) {
        (Some(id), _) => format!("read the earlier conversation `{}`", short(id)),
        (None, Some(query)) => format!("search earlier conversations for `{}`", short(query)),
        (None, None) => "list earlier conversations".to_owned(),
    })?;
    let told = match (id, anchor, query) {
        (Some(id), Some(anchor), _) => scroll(&kept, id, anchor, &given),
        (Some(id), None, _) => read(&kept, id),
        (None, _, None) => Ok(browse(&kept, limit(&given))),
        (None, _, Some(query)) => discover::run(&kept, query, &given, limit(&given)),
    };
    let beyond = match (id, query) {
        (None, Some(_)) => kept.beyond(),
        _ => 0,
    };
    let left_out = || left_out(kept.elsewhere, beyond);
    Ok(match told {
        Ok(mut told) => {
            if let Some(note) = left_out() {
                told.insert("note".to_owned(), json!(note));
            }
            ToolResult::ran(&Value::Object(told))
        }
        Err(message) => match left_out() {
            None => failure(&message),
            Some(note) => {
                ToolResult::failed(&json!({"error": message, "success": false, "note": note}))
            }
        },
    })
}

/// Why there is no such profile: `default` is the only one there is.
fn no_profile(profile: &str) -> Option<String> {
    let name = pytext::strip(profile).to_lowercase();
    let is_part = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '_' | '-');
    let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.len() <= 64
        && name.chars().all(is_part);
    match &*name {
        "default" => None,
        _ if is_name => Some(format!(
            "profile '{profile}': profile '{name}' does not exist"
        )),
        _ => Some(format!(
            "profile '{profile}': Invalid profile name {}. Must match [a-z0-9][a-z0-9_-]{{0,63}}",
            pytext::quoted(&name)
        )),
    }
}

/// So much of a text that a question about it stays a line.
fn short(text: &str) -> String {
    const LETTERS_MAX: usize = 100;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}\u{2026}", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// What was not looked at, and how it would be.
fn left_out(elsewhere: usize, beyond: usize) -> Option<String> {
    let mut words = Vec::new();
    if elsewhere > 0 {
        words.push(format!(
            "conversations that were had in directories you may not read are left out ({}); the user can grant \
             `fs.read` on such a directory",
            elsewhere
        ));
    }
    if beyond > 0 {
        words.push(format!(
            "the oldest conversations are left out ({beyond}): all together they are too long to be searched"
        ));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

fn limit(given: &Map<String, Value>) -> usize {
    within(given.get("limit"), 3, 10)
}

/// A number from 1 to `most`; what is none is `default`.
fn within(value: Option<&Value>, default: usize, most: i128) -> usize {
    let given = value.and_then(number);
    given.map_or(default, |number| {
        usize::try_from(number.clamp(1, most)).unwrap_or(default)
    })
}

/// A value as a whole number. What a model spells as a text is read as Python reads one, and
/// nothing else is made of it: Hermes' loop takes the arguments of this tool as they come.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Number(_) | Value::Bool(_) => Some(args::wide_or(Some(value), 0)),
        Value::String(text) => {
            let text = pytext::strip(text);
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let is_one = digits
                .split('_')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
            let plain = text.replace('_', "");
            let beyond = match plain.starts_with('-') {
                true => i128::MIN,
                false => i128::MAX,
            };
            is_one.then(|| plain.parse().unwrap_or(beyond))
        }
        _ => None,
    }
}

fn spoken(millis: u64) -> String {
    ambient::spoken_time(WallTime::from_millis(millis))
}

fn about(one: &Earlier) -> Value {
    json!({
        "when": spoken(one.started),
        "source": one.source(),
        "model": one.model,
        "title": one.title,
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The newest conversations.
fn browse(kept: &Kept, limit: usize) -> Map<String, Value> {
    let results: Vec<Value> = kept.newest(limit, |one| {
        json!({
            "session_id": one.id,
            "title": one.title,
            "source": one.source(),
            "started_at": one.started_seconds(),
            "last_active": one.last_active_seconds(),
            "message_count": one.said.len(),
            "preview": preview(one),
        })
    });
    let count = results.len();
    object(json!({
        "success": true,
        "mode": "browse",
        "results": results,
        "count": count,
        "message": format!(
            "Showing {count} most recent sessions. Pass a query= to search, or session_id+around_message_id to scroll."
        ),
    }))
}

/// The first words of the user, on one line. A text ends at a NUL where Hermes cuts it.
fn preview(one: &Earlier) -> String {
    let first = one.said.iter().find(|said| said.role == Role::User);
    let words = first.map(|said| said.text.as_str()).unwrap_or_default();
    let words = words.split('\0').next().unwrap_or_default();
    let line = words.replace(['\n', '\r'], " ");
    let line = pytext::strip(pytext::head(&line, PREVIEW_LETTERS + 3));
    let more = if line.chars().count() > PREVIEW_LETTERS {
        "..."
    } else {
        ""
    };
    format!("{}{more}", pytext::head(line, PREVIEW_LETTERS))
}

/// A whole conversation, or of a long one its beginning and its end.
fn read(kept: &Kept, id: &str) -> Result<Map<String, Value>, String> {
    let Some(found) = kept.by_id(id) else {
        return Err(format!("session_id not found: {id}"));
    };
    let one = match found {
        Found::Earlier(one) | Found::Current(one) => one,
    };
    let total = one.said.len();
    let (head, tail) = READ;
    let is_cut = total > head + tail;
    let messages = match is_cut {
        true => one.told((0..head).chain(total - tail..total), None),
        false => one.told(0..total, None),
    };
    let mut told = object(json!({
        "success": true,
        "mode": "read",
        "session_id": id,
        "session_meta": about(&one),
        "message_count": total,
        "truncated": is_cut,
        "messages": messages,
    }));
    if is_cut {
        let words = format!(
            "Session has {total} messages; showing first {head} + last {tail}. Pass around_message_id (any id above) to \
             scroll the middle."
        );
        told.insert("message".to_owned(), json!(words));
    }
    Ok(told)
}

/// What was said around a message.
fn scroll(
    kept: &Kept,
    id: &str,
    anchor: &Value,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let number = number(anchor).ok_or("scroll requires integer around_message_id")?;
    let reach = within(given.get("window"), 5, 20);
    let one = match kept.by_id(id) {
        Some(Found::Earlier(one)) => one,
        Some(Found::Current(_)) => {
            return Err(
                "scroll rejected: anchor lives in the current session lineage (already in your active context)"
                    .to_owned(),
            );
        }
        None => return Err(format!("session_id not found: {id}")),
    };
    if i64::try_from(number).is_err() {
        return Err(
            "failed to load messages: Python int too large to convert to SQLite INTEGER".to_owned(),
        );
    }
    let place = one
        .place(number)
        .ok_or_else(|| format!("around_message_id {number} not in session_id {id}"))?;
    let window = around(&one.said, place, reach);
    Ok(object(json!({
        "success": true,
        "mode": "scroll",
        "session_id": id,
        "around_message_id": one.number(place),
        "session_meta": about(&one),
        "window": reach,
        "messages": one.told(window.clone(), Some(place)),
        "messages_before": place - window.start,
        "messages_after": window.end - place - 1,
    })))
}
