//! Single decision functions of Hermes, asked directly.
//!
//! A probe runs no tool. The answer is `{"decision": "permit" | "ask" | "deny"
//! | "none", "value": ...}` plus whatever else the function said, under names
//! of its own; both subjects answer in that shape. Each file answers the
//! probes of one family; only the package decides, nothing is judged here.

mod approval;
mod batch;
mod edit;
mod glue;
mod mcp;
mod path;
mod support;

use pyo3::prelude::*;
use serde_json::Value;

/// Why a probe has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// No family knows this name.
    Unknown,
    /// The input does not fit the probe; the text says how.
    BadInput(String),
    /// Hermes raised; type and text of the exception.
    Raised(String),
}

/// Asks the family that knows `name`.
///
/// # Errors
/// Nobody knows the name, the input does not fit, or Hermes raised.
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    for family in [
        approval::answer,
        path::answer,
        edit::answer,
        batch::answer,
        mcp::answer,
    ] {
        match family(py, name, input) {
            Err(ProbeError::Unknown) => {}
            answered => return answered,
        }
    }
    Err(ProbeError::Unknown)
}
