//! Tools of MCP servers: what is offered of them, and what is told of their answers.
//!
//! The server is a stand-in for its session; the decision is `none`.
//!
//! | probe | input | value |
//! |---|---|---|
//! | `mcp_tool_offer` | `server`, `tool`, `description`, `form` | `name`, `description`, `parameters` |
//! | `mcp_tool_answer` | `server`, `tool`, and `answer` (as the protocol spells it) or `refused` (words) | `text` |
//! | `tool_result_framed` | `tool`, `text` | `text` as it enters the conversation |

use pyo3::prelude::*;
use serde_json::Value;

use super::ProbeError;
use super::glue::{Glue, source};

const GLUE: Glue = Glue {
    source: source!("mcp.py"),
    name: c"hermes_shim_probe_mcp",
    probes: &["mcp_tool_offer", "mcp_tool_answer", "tool_result_framed"],
};

/// Asks one of the functions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    GLUE.ask(py, name, input)
}
