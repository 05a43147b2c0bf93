//! Scope paths, their overlap, and how a batch of calls is cut.
//!
//! All are functions of values: the decision is `none`. Probes and the world
//! they expect:
//!
//! | probe | input | value |
//! |---|---|---|
//! | `paths_overlap` | `left`, `right` | `overlap` |
//! | `scope_and_overlap` | `left`, `right`, `cwd` | `left`, `right`, `overlap` (`null` without a path) |
//! | `canonical_path` | `args`: path, directory or `null`; `cwd` | `result` |
//! | `extract_parallel_scope_path` | `args`: tool, arguments; `kwargs`, `cwd` | `result` |
//! | `plan_tool_batch_segments` | `calls`, `execution_cwd`, `cwd` | `segments`: kind, and how many or which calls |
//!
//! `cwd` has to exist in the world, with the links its paths go through.

use pyo3::prelude::*;
use serde_json::Value;

use super::ProbeError;
use super::glue::{Glue, source};

const GLUE: Glue = Glue {
    source: source!("batch.py"),
    name: c"hermes_shim_probe_batch",
    probes: &[
        "paths_overlap",
        "scope_and_overlap",
        "canonical_path",
        "extract_parallel_scope_path",
        "plan_tool_batch_segments",
    ],
};

/// Asks one of the functions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub fn answer(py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
    GLUE.ask(py, name, input)
}
