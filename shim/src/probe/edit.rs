//! The gate on edits: proposals, standing approval, answers, V4A patches.
//!
//! | probe | input | decision and value |
//! |---|---|---|
//! | `build_edit_proposal` | `tool`, `arguments` (or recorded `args`) | `none`; `proposal`, or `raised` and `message` |
//! | `should_auto_approve_edit` | `path`, `policy`, `cwd`, `process_cwd` (or recorded `args`) | `permit` or `ask` |
//! | `_is_sensitive_auto_approve_path` | `args`: path | `ask` if it is, else `permit` |
//! | `maybe_require_edit_approval` | as for the proposal, and `requester`: `true`, `false` or `"raise"` | `permit` if the call goes on, else `deny` |
//! | `permission_options` | `allow_permanent`, `smart_denied` | `none`; `options`: id and kind |
//! | `_map_outcome_to_hermes` | `args`: the outcome with its `option_id`; `kwargs.allowed_option_ids` | `none`; `result` |
//! | `parse_v4a_patch` | `patch` | `none`; `ops`, `error` |
//!
//! Files the input names have to be in the world. The answers of a client need
//! the client protocol's package beside Hermes (its extra `acp`).

use pyo3::prelude::*;
use serde_json::Value;

use super::ProbeError;
use super::glue::{Glue, source};

const GLUE: Glue = Glue {
    source: source!("edit.py"),
    name: c"hermes_shim_probe_edit",
    probes: &[
        "build_edit_proposal",
        "should_auto_approve_edit",
        "_is_sensitive_auto_approve_path",
        "maybe_require_edit_approval",
        "permission_options",
        "_map_outcome_to_hermes",
        "parse_v4a_patch",
    ],
};

/// Asks one of the functions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    GLUE.ask(py, name, input)
}
