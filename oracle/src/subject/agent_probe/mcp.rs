//! Tools as a model is offered them: the forms of the agent's own, what it offers of
//! servers outside, and what it tells of their answers. Values, not decisions; whether a call may be made is none of this.
//! Servers that run are those of the case's settings.

use hermitcrab::{mcp, runtime::OutsideTool, text::pyjson};
use serde_json::{Value, json};

use super::input::{field, text};
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
    let value = match name {
        "mcp_tool_offer" => {
            let (server, tool) = (text(input, "server")?, text(input, "tool")?);
            let said = input.get("description").and_then(Value::as_str);
            json!({
                "name": mcp::tool_name(server, tool),
                "description": mcp::description(server, tool, said),
                "parameters": mcp::normalised(input.get("form").unwrap_or(&Value::Null)),
            })
        }
        "mcp_tool_answer" => {
            let answer = match input.get("refused").and_then(Value::as_str) {
                Some(why) => mcp::refused(why),
                None => mcp::Answer::of(text(input, "server")?, field(input, "answer")?),
            };
            json!({"text": pyjson::text(&answer.shown)})
        }
        "mcp_tools_offered" => offered(world)?,
        "tool_form" => form(text(input, "tool")?),
        "tool_result_framed" => {
            let (tool, text) = (text(input, "tool")?, text(input, "text")?);
            json!({"text": mcp::framed(tool, text.to_owned())})
        }
        _ => return Err(ProbeError::Unknown),
    };
    Ok(json!({"decision": "none", "value": value}))
}

/// The form of the arguments of one of the agent's own tools, without the words: they are
/// each subject's own.
fn form(tool: &str) -> Value {
    let offers = hermitcrab::chat::offers(true);
    let offer = offers.into_iter().find(|offer| offer.name == tool);
    offer.map_or(Value::Null, |offer| without_words(&offer.parameters))
}

/// The same without descriptions; a property may be called like one.
fn without_words(form: &Value) -> Value {
    let Value::Object(form) = form else {
        return form.clone();
    };
    let parts = form.iter().filter(|(key, _)| *key != "description");
    parts
        .map(|(key, value)| {
            let value = match value {
                Value::Object(properties) if key == "properties" => properties
                    .iter()
                    .map(|(name, property)| (name.clone(), without_words(property)))
                    .collect(),
                other => without_words(other),
            };
            (key.clone(), value)
        })
        .collect()
}

/// The tools of the case's servers as the session's own agent is offered them.
fn offered(world: &AgentWorld<'_>) -> Result<Value, ProbeError> {
    let tools = world.with_runtime(|runtime| runtime.tools_outside(runtime.first_agent()))?;
    let told = |tool: OutsideTool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    Ok(tools.into_iter().map(told).collect())
}
