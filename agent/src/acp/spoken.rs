//! What the agent's own machinery says: commands answered, history replayed.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionUpdate, ToolCall, ToolCallStatus,
};
use serde_json::Value;

use super::updates;
use crate::{
    audit::{printed::Printed, show},
    model::Message,
    runtime::Runtime,
};

/// What is held, as a list.
pub fn caps(runtime: &Runtime) -> String {
    let agent = runtime.first_agent();
    let held = runtime.grants_in_words(agent);
    if held.is_empty() {
        return "Nothing is held.".to_owned();
    }
    held.into_iter()
        .map(|(id, words)| format!("- `{id}`: {words}\n"))
        .collect()
}

/// Ends a grant, by the name it has everywhere or by the one a model has for it.
pub fn revoke(runtime: &mut Runtime, name: &str) -> Result<String, String> {
    let agent = runtime.first_agent();
    let held = runtime.grants_in_words(agent);
    let named = held.iter().find(|(id, _)| id.to_string() == name);
    let grant = match named {
        Some((grant, _)) => Ok(*grant),
        None => runtime.cap_named(agent, name),
    };
    let grant = grant
        .map_err(|denial| format!("`{name}` ends nothing: {denial}; `/caps` names what is held"))?;
    let ended = runtime.revoke(grant).map_err(|denial| denial.to_string())?;
    Ok(match ended.len() {
        0 => format!("`{name}` had ended already."),
        1 => format!("`{name}` has ended."),
        more => format!(
            "`{name}` has ended, and {} grants that came from it.",
            more - 1
        ),
    })
}

/// The last records of a session's ledger.
pub fn audit(dir: &Path, count: usize) -> Result<String, String> {
    let mut records = std::collections::VecDeque::new();
    let mut printed = Printed::default();
    show::each(dir, |record| {
        let line = printed.line(record);
        if records.len() == count {
            records.pop_front();
        }
        records.push_back(line);
    })
    .map_err(|error| error.to_string())?;
    let records: Vec<String> = records.into();
    Ok(format!("```text\n{}\n```", records.join("\n")))
}

/// The agent's list.
pub fn plan(runtime: &mut Runtime) -> String {
    let agent = runtime.first_agent();
    let report = runtime.call(agent, "todo", &Value::Object(serde_json::Map::new()));
    let items: Vec<String> = serde_json::from_str::<Value>(&report.text)
        .ok()
        .and_then(|value| value.get("todos")?.as_array().cloned())
        .unwrap_or_default()
        .iter()
        .filter_map(|item| {
            let mark = match item.get("status")?.as_str()? {
                "completed" => "x",
                "in_progress" => ">",
                "cancelled" => "-",
                _ => " ",
            };
            Some(format!("- [{mark}] {}\n", item.get("content")?.as_str()?))
        })
        .collect();
    if items.is_empty() {
        "There is no plan.".to_owned()
    } else {
        items.concat()
    }
}

/// Whether a call came to its end, by its result as the model was told it: what was refused
/// or failed says why, under a name that a result has for that alone.
fn came_of(result: &str) -> ToolCallStatus {
    // Advice to the model may stand below.
    let mut told = serde_json::Deserializer::from_str(result).into_iter::<Value>();
    let Some(Ok(Value::Object(told))) = told.next() else {
        return ToolCallStatus::Completed;
    };
    let has_error = |error: &Value| error.as_str().is_some_and(|error| !error.is_empty());
    let failed = told.get("error").is_some_and(has_error)
        || told.get("success") == Some(&Value::Bool(false));
    if failed {
        ToolCallStatus::Failed
    } else {
        ToolCallStatus::Completed
    }
}

/// A conversation, as updates in its order.
pub fn replayed(messages: &[Message]) -> Vec<SessionUpdate> {
    let chunk = |text: &str| ContentChunk::new(ContentBlock::from(text.to_owned()));
    let mut updates = Vec::new();
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        match message {
            // An editor would show it as its user's words.
            Message::System(_) | Message::Told(_) => {}
            Message::User(text) => updates.push(SessionUpdate::UserMessageChunk(chunk(text))),
            Message::Assistant { text, calls: made } => {
                if !text.is_empty() {
                    updates.push(SessionUpdate::AgentMessageChunk(chunk(text)));
                }
                calls = made
                    .iter()
                    .map(|call| (call.id.clone(), call.tool.clone(), call.arguments.clone()))
                    .collect();
            }
            Message::Tool { call, tool, text } => {
                let arguments = calls
                    .iter()
                    .find(|(id, ..)| id == call)
                    .map_or(Value::Null, |(_, _, arguments)| updates::raw(arguments));
                let described = updates::described(tool, &arguments, Path::new("/"));
                updates.push(SessionUpdate::ToolCall(
                    ToolCall::new(format!("earlier-{place}"), described.title)
                        .kind(described.kind)
                        .status(came_of(text))
                        .raw_input(arguments)
                        .raw_output(updates::raw(text))
                        .content(vec![updates::text(&updates::readable(text))]),
                ));
            }
        }
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_before_is_not_shown_as_done() {
        for (result, expected) in [
            (
                r#"{"output": "x", "exit_code": 1, "error": null}"#,
                ToolCallStatus::Completed,
            ),
            (
                r#"{"success": true, "diff": "-a"}"#,
                ToolCallStatus::Completed,
            ),
            (
                r#"{"output": "", "exit_code": -1, "error": "discarded", "status": "blocked"}"#,
                ToolCallStatus::Failed,
            ),
            (
                r#"{"success": false, "error": "Edit rejected by user"}"#,
                ToolCallStatus::Failed,
            ),
            (
                "{\"error\": \"no such file\"}\n\n[Tool loop warning]",
                ToolCallStatus::Failed,
            ),
            ("error", ToolCallStatus::Completed),
            ("", ToolCallStatus::Completed),
        ] {
            assert_eq!(came_of(result), expected, "{result}");
        }
    }
}
