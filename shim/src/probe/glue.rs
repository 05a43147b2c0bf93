//! Asks a file of probes written in Python.
//!
//! Such a file has a function `answer(name, text)` from JSON text to JSON
//! text. It calls the package's own functions and decides nothing.

use std::ffi::CStr;

use pyo3::prelude::*;
use serde_json::Value;

use super::ProbeError;

/// A file of probes.
pub struct Glue {
    /// Its text.
    pub source: &'static CStr,
    /// Its name in tracebacks and among the interpreter's modules.
    pub name: &'static CStr,
    /// The probes it answers.
    pub probes: &'static [&'static str],
}

/// The text of a file as the interpreter wants it.
macro_rules! source {
    ($file:literal) => {
        pyo3::ffi::c_str!(include_str!($file))
    };
}
pub(super) use source;

/// What every file of probes may import.
const PLACE: &CStr = source!("place.py");

impl Glue {
    /// Asks the probe `name`.
    ///
    /// # Errors
    /// The file has no such probe, or the package raised.
    pub fn ask(&self, py: Python<'_>, name: &str, input: &Value) -> Result<Value, ProbeError> {
        if !self.probes.contains(&name) {
            return Err(ProbeError::Unknown);
        }
        loaded(py, PLACE, c"hermes_shim_probe_place")?;
        let module = loaded(py, self.source, self.name)?;
        let answer: String = module
            .getattr("answer")?
            .call1((name, input.to_string()))?
            .extract()?;
        serde_json::from_str(&answer)
            .map_err(|error| ProbeError::BadInput(format!("not JSON: {error}")))
    }
}

/// The module, made when it is first asked for.
fn loaded<'py>(py: Python<'py>, source: &CStr, name: &CStr) -> PyResult<Bound<'py, PyModule>> {
    let known = py
        .import("sys")?
        .getattr("modules")?
        .call_method1("get", (name.to_string_lossy(),))?;
    match known.cast_into::<PyModule>() {
        Ok(module) => Ok(module),
        Err(_) => PyModule::from_code(py, source, name, name),
    }
}
