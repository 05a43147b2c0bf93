//! What becomes of a command.
//!
//! The agent has no detector to ask: it runs the command in its view, under
//! the case's grants and user, and the answer is what became of it. The
//! world's effects are there for the relation to look at.

use hermitcrab::parity::command::{ApprovalMode, without_comments};
use hermitcrab::runtime::{CallReport, Fate};
use serde_json::{Value, json};

use crate::subject::agent_world::{AgentWorld, ProbeError};

/// Seconds a command may run before it is killed.
const COMMAND_SECONDS: u32 = 8;

/// Answers the family's probes.
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    match name {
        // Whatever guard Hermes is asked about, the agent has one way only.
        "classify_command" | "user_deny_rule" => {
            let args = json!({"command": text(input, "command")?, "timeout": COMMAND_SECONDS});
            decided(world.call("terminal", &args)?)
        }
        "container_skip" => {
            // The name of a backend is a word in a file. Does a word let an uncovered write through?
            let cwd = world.cwd().unwrap_or("/");
            let args = json!({"path": format!("{cwd}/written-without-a-grant"), "content": "x\n"});
            decided(world.call("write_file", &args)?)
        }
        "normalize_approval_mode" => {
            let mode = ApprovalMode::read(input.get("mode").unwrap_or(&Value::Null));
            Ok(json!({"decision": "none", "value": {"mode": mode.as_str()}}))
        }
        "strip_shell_comments" => {
            let text = without_comments(text(input, "command")?);
            Ok(json!({"decision": "none", "value": {"text": text}}))
        }
        _ => Err(ProbeError::Unknown),
    }
}

fn decided(report: CallReport) -> Result<Value, ProbeError> {
    let (decision, code) = match report.fate {
        // A tool that fails by itself was let through.
        Fate::Ran | Fate::ToolError => ("permit", ""),
        Fate::RanDiscarded(code) | Fate::AskedRefused(code) => ("ask", code.as_str()),
        Fate::Refused(code) => ("deny", code.as_str()),
        Fate::Failed(why) => return Err(ProbeError::Failed(why)),
    };
    Ok(json!({"decision": decision, "value": null, "code": code}))
}

fn text<'i>(input: &'i Value, name: &str) -> Result<&'i str, ProbeError> {
    input
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ProbeError::BadInput(format!("`{name}` is no text")))
}
