//! `todo`: the list of what is to do in this session.
//!
//! It lives in the agent's memory alone: no file, no effect, nothing to permit.

use serde_json::{Map, Value, json};

use crate::{
    runtime::{Hands, TodoItem, ToolResult},
    text::{args, pytext},
};

/// Letters of one item at most.
const CONTENT_LETTERS_MAX: usize = 4000;
/// Items at most; the last ones go first.
const ITEMS_MAX: usize = 256;
/// What stands at the end of an item that was cut.
const CUT: &str = "\u{2026} [truncated]";
/// What an item's status can be.
const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];

/// Runs the call.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> ToolResult {
    let list = &mut hands.state().todo;
    let todos = match given.get("todos") {
        None | Some(Value::Null) => return shown(list),
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(value) => value,
            Err(_) => {
                return ToolResult::error(
                    "todos must be a list of objects, got unparseable string",
                );
            }
        },
        Some(value) => value.clone(),
    };
    let Value::Array(todos) = todos else {
        return ToolResult::error(&format!(
            "todos must be a list, got {}",
            args::type_name(Some(&todos))
        ));
    };
    if args::truthy(given.get("merge")) {
        if let Some(odd) = todos.iter().find(|item| !item.is_object()) {
            return ToolResult::error(&format!(
                "'{}' object has no attribute 'get'",
                args::type_name(Some(odd))
            ));
        }
        merge(list, &latest(&todos));
    } else {
        *list = latest(&todos).into_iter().map(item).collect();
    }
    list.truncate(ITEMS_MAX);
    shown(list)
}

fn text(item: &Value, key: &str) -> Option<String> {
    let value = item.get(key)?;
    Some(pytext::strip(&args::text_of(value)).to_owned())
}

/// Of items with the same id the last one, in its place.
fn latest(todos: &[Value]) -> Vec<&Value> {
    let id = |item: &Value| {
        item.is_object().then(|| {
            text(item, "id")
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| "?".to_owned())
        })
    };
    todos
        .iter()
        .enumerate()
        .filter(|(at, item)| {
            let own = id(item);
            own.is_none() || !todos.iter().skip(at + 1).any(|later| id(later) == own)
        })
        .map(|(_, item)| item)
        .collect()
}

fn status(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    STATUSES.contains(&text.as_str()).then_some(text)
}

fn capped(content: String) -> String {
    if content.chars().count() <= CONTENT_LETTERS_MAX {
        return content;
    }
    let kept = CONTENT_LETTERS_MAX - CUT.chars().count();
    format!("{}{CUT}", pytext::head(&content, kept))
}

fn item(value: &Value) -> TodoItem {
    if !value.is_object() {
        return TodoItem {
            id: "?".into(),
            content: "(invalid item)".into(),
            status: "pending".into(),
        };
    }
    let filled = |key: &str, empty: &str| {
        text(value, key)
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| empty.to_owned())
    };
    TodoItem {
        id: filled("id", "?"),
        content: capped(filled("content", "(no description)")),
        status: text(value, "status")
            .and_then(|text| status(&text))
            .unwrap_or_else(|| "pending".to_owned()),
    }
}

/// Changes what is given of known items, adds the others.
fn merge(list: &mut Vec<TodoItem>, todos: &[&Value]) {
    for given in todos {
        let Some(id) = text(given, "id").filter(|id| !id.is_empty()) else {
            continue;
        };
        match list.iter_mut().find(|item| item.id == id) {
            None => list.push(item(given)),
            Some(known) => {
                if args::truthy(given.get("content"))
                    && let Some(content) = text(given, "content")
                {
                    known.content = capped(content);
                }
                if args::truthy(given.get("status"))
                    && let Some(status) = text(given, "status").and_then(|text| status(&text))
                {
                    known.status = status;
                }
            }
        }
    }
    let mut seen = Vec::new();
    list.retain(|item| {
        let fresh = !seen.contains(&item.id);
        seen.push(item.id.clone());
        fresh
    });
}

fn shown(list: &[TodoItem]) -> ToolResult {
    let todos: Vec<Value> = list
        .iter()
        .map(|item| json!({"id": item.id, "content": item.content, "status": item.status}))
        .collect();
    let mut summary = Map::new();
    summary.insert("total".into(), list.len().into());
    for status in STATUSES {
        let count = list.iter().filter(|item| item.status == status).count();
        summary.insert(status.into(), count.into());
    }
    ToolResult::ran(&json!({"todos": todos, "summary": summary}))
}
