//! What is told of an exception.

use pyo3::prelude::*;

/// An exception as `Type: text`.
pub(crate) fn describe(py: Python<'_>, error: &PyErr) -> String {
    let kind = error
        .get_type(py)
        .name()
        .map(|name| name.to_string())
        .unwrap_or_default();
    format!("{kind}: {}", error.value(py))
}
