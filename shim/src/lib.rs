//! Drives the real Hermes.

pub mod probe;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
fn hermes_shim(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
