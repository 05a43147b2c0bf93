//! Scope paths, their overlap, and how the agent cuts a batch of calls.
//!
//! The planner is the core's, the links are read from the world. All are
//! values, not decisions. A path without a scope is `null`. `tool_batch` lets
//! a conversation make the calls; it gives what the model is told of each.

use hermitcrab::chat::Chat;
use hermitcrab::model::{Message, ModelError, ModelPort, ModelReply, ModelRequest, ProposedCall};
use hermitcrab::parity::batch::{scope, segments};
use hermitcrab::runtime::GrantWords;
use hermitcrab_core::batch::{Segment, Standing, overlap, parts};
use serde_json::{Value, json};

use super::input::{HOME, field, positional, text};
use crate::case::BATCH_PROBE;
use crate::subject::agent_world::{AgentWorld, ProbeError};

/// Asks the agent one of the questions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    if name == BATCH_PROBE {
        return together(world, input);
    }
    let cwd = input
        .get("cwd")
        .and_then(Value::as_str)
        .or_else(|| world.cwd())
        .unwrap_or("/");
    let standing = Standing {
        cwd,
        home: Some(HOME),
    };
    let value = match name {
        "paths_overlap" => {
            let (left, right) = (text(input, "left")?, text(input, "right")?);
            json!({"overlap": overlap(&parts(left), &parts(right))})
        }
        "scope_and_overlap" => both_scopes(input, standing)?,
        "canonical_path" => {
            let raw = as_text(positional(input, 0)?)?;
            let from = input.pointer("/args/1").unwrap_or(&Value::Null);
            json!({"result": scoped(raw, standing_at(from, standing)?)})
        }
        "extract_parallel_scope_path" => {
            let tool = as_text(positional(input, 0)?)?;
            let from = input
                .pointer("/kwargs/execution_cwd")
                .unwrap_or(&Value::Null);
            let standing = standing_at(from, standing)?;
            let path = positional(input, 1)?.get("path").and_then(Value::as_str);
            let about_a_file = matches!(tool, "read_file" | "write_file" | "patch");
            json!({"result": path.filter(|_| about_a_file).and_then(|path| for_call(path, standing))})
        }
        "plan_tool_batch_segments" => plan(input, standing)?,
        _ => return Err(ProbeError::Unknown),
    };
    Ok(json!({"decision": "none", "value": value}))
}

fn both_scopes(input: &Value, standing: Standing<'_>) -> Result<Value, ProbeError> {
    let left = for_call(text(input, "left")?, standing);
    let right = for_call(text(input, "right")?, standing);
    let overlap = match (&left, &right) {
        (Some(left), Some(right)) => Some(overlap(&parts(left), &parts(right))),
        _ => None,
    };
    Ok(json!({"left": left, "right": right, "overlap": overlap}))
}

/// The scope of a call about this path; a blank path is no path.
fn for_call(raw: &str, standing: Standing<'_>) -> Option<String> {
    if raw.trim().is_empty() {
        None
    } else {
        scoped(raw, standing)
    }
}

fn scoped(raw: &str, standing: Standing<'_>) -> Option<String> {
    scope(raw, standing).ok().map(|path| path.to_string())
}

/// Where the tool will stand, if that is not where the session stands.
fn standing_at<'a>(from: &'a Value, standing: Standing<'a>) -> Result<Standing<'a>, ProbeError> {
    let cwd = match from {
        Value::Null => standing.cwd,
        Value::Object(path) => path.get("$path").map_or(Ok(standing.cwd), as_text)?,
        other => as_text(other)?,
    };
    Ok(Standing { cwd, ..standing })
}

fn plan(input: &Value, standing: Standing<'_>) -> Result<Value, ProbeError> {
    let from = input.get("execution_cwd").unwrap_or(&Value::Null);
    let standing = standing_at(from, standing)?;
    let calls = field(input, "calls")?
        .as_array()
        .ok_or_else(|| ProbeError::BadInput("`calls` is no list".to_owned()))?;
    let mut batch = Vec::with_capacity(calls.len());
    let mut as_written = true;
    for call in calls {
        let arguments = match field(call, "arguments")? {
            Value::String(text) => text.clone(),
            table => {
                as_written = false;
                table.to_string()
            }
        };
        batch.push((text(call, "name")?, arguments));
    }
    let found = segments(
        batch
            .iter()
            .map(|(tool, arguments)| (*tool, arguments.as_str())),
        standing,
    );
    // Calls as a model wrote them are counted, calls of a table are named.
    let mut next = 0_usize;
    let shown = |segment: &Segment| {
        let from = next;
        next += segment.calls;
        let members = if as_written {
            json!(segment.calls)
        } else {
            (from..next).map(|index| json!(index.to_string())).collect()
        };
        json!([segment.lane.as_str(), members])
    };
    Ok(json!({"segments": found.iter().map(shown).collect::<Vec<_>>()}))
}

/// A model that makes these calls in one answer and then has nothing to say.
struct Once(Vec<ProposedCall>);

impl ModelPort for Once {
    fn complete(&mut self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        Ok(ModelReply {
            calls: std::mem::take(&mut self.0),
            ..ModelReply::default()
        })
    }
}

/// Lets a conversation of the agent make the calls of one answer; what its model
/// is told of each.
fn together(world: &AgentWorld<'_>, input: &Value) -> Result<Value, ProbeError> {
    const MODEL: &str = "scripted";
    let calls = field(input, "calls")?
        .as_array()
        .ok_or_else(|| ProbeError::BadInput("`calls` is no list".to_owned()))?;
    let mut proposed = Vec::with_capacity(calls.len());
    for (place, call) in calls.iter().enumerate() {
        proposed.push(ProposedCall {
            id: place.to_string(),
            tool: text(call, "name")?.to_owned(),
            arguments: field(call, "arguments")?.to_string(),
        });
    }
    let turn = world.with_runtime(|runtime| {
        let first = runtime.first_agent();
        runtime
            .grant(first, &GrantWords::new("model.send", MODEL))
            .map_err(|error| error.to_string())?;
        let mut chat = Chat::new(runtime, MODEL);
        chat.turn(runtime, &mut Once(proposed), "go")
            .map_err(|error| error.to_string())?;
        Ok(chat.messages().to_vec())
    })?;
    let messages: Vec<Message> = turn.map_err(ProbeError::Failed)?;
    let told = |place: usize| {
        let id = place.to_string();
        messages.iter().find_map(|message| match message {
            Message::Tool { call, text, .. } if *call == id => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())))
            }
            _ => None,
        })
    };
    let value: Vec<Value> = (0..calls.len())
        .map(|place| told(place).unwrap_or(Value::Null))
        .collect();
    Ok(json!({"decision": "none", "value": value}))
}

fn as_text(value: &Value) -> Result<&str, ProbeError> {
    value
        .as_str()
        .ok_or_else(|| ProbeError::BadInput(format!("{value} is no text")))
}
