//! Drives the real Hermes: the only place that knows Python.
//!
//! An extension module that the interpreter of a private venv loads by path.
//! `worker` is called twice in the life of a worker: on the host, where it
//! enters the world's namespaces and template tree and starts the interpreter
//! again from there; and inside, where it imports Hermes (so that every path
//! Hermes captures is a world path) and serves jobs.
//!
//! This package knows neither the agent nor the oracle, and contains nothing
//! of Hermes: it calls the installed package's own functions.
use pyo3::prelude::*;

mod ambient;
mod driver;
mod exception;
mod forker;
pub mod probe;
mod worker;

/// The extension module.
#[pymodule]
fn hermes_shim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(start, module)?)?;
    Ok(())
}

/// Runs the worker; `extension` is the path this module was loaded from.
/// Leaves the process when the oracle says goodbye.
#[pyfunction]
#[pyo3(name = "worker")]
fn start(py: Python<'_>, extension: &str) -> PyResult<()> {
    let status = worker::main(py, extension);
    forker::PythonForker::new(py)?.leave(status)
}
