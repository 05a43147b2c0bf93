//! Scope paths, their overlap, and how the agent cuts a batch of calls.
//!
//! The planner is the core's, the links are read from the world. All are
//! values, not decisions. A path without a scope is `null`.

use hermitcrab::parity::batch::{scope, segments};
use hermitcrab_core::batch::{Segment, Standing, overlap, parts};
use serde_json::{Value, json};

use super::ProbeError;
use super::input::{HOME, field, positional, text};
use crate::subject::agent_world::AgentWorld;

/// Asks the agent one of the questions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
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

fn as_text(value: &Value) -> Result<&str, ProbeError> {
    value
        .as_str()
        .ok_or_else(|| ProbeError::BadInput(format!("{value} is no text")))
}
