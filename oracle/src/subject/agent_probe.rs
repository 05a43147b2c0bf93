//! Answers probes for the agent: one decision function asked directly.
//!
//! Each family dispatches by the probe's name and asks the agent's own code;
//! nothing is decided here. The vocabulary is in `docs/CONFORMANCE.md`.

mod batch;
mod command;
mod conversation;
mod edit;
mod input;
mod mcp;
mod path;
mod plan;
mod undo;

pub use plan::PLANNER;
use serde_json::Value;

use super::agent_world::{AgentWorld, ProbeError};

/// A family's half of the dispatch.
type Family = fn(&AgentWorld<'_>, &str, &Value) -> Result<Value, ProbeError>;

/// The answer `{"decision": "permit"|"ask"|"deny"|"none", "value": ...}`.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(world: &AgentWorld<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    let families: [Family; 8] = [
        command::answer,
        path::answer,
        edit::answer,
        batch::answer,
        conversation::answer,
        mcp::answer,
        plan::answer,
        undo::answer,
    ];
    for family in families {
        match family(world, name, input) {
            Err(ProbeError::Unknown) => {}
            other => return other,
        }
    }
    Err(ProbeError::Unknown)
}
