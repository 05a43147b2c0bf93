//! A path within a directory: the check as Hermes has it, and the use.
//!
//! `validate_within_dir` answers about a moment that is over when its caller
//! opens the file; it is here so that nothing has to change at once.
//! `open_within_dir` takes the same two paths and opens, with the kernel
//! refusing to leave the directory however the tree changes meanwhile. A
//! [`crate::held::PathWithin`] passes the check and is held in every later use.

use std::path::PathBuf;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::handle::DirCap;
use crate::refusal::Failure;

/// `None` if `path` resolves to a place within `root`, else a sentence why not.
#[pyfunction]
pub(crate) fn validate_within_dir(
    path: &Bound<'_, PyAny>,
    root: &Bound<'_, PyAny>,
) -> PyResult<Option<String>> {
    match relative(path, root) {
        Ok(_) => Ok(None),
        Err(error) if is_no(path.py(), &error) => {
            let why = error.value(path.py());
            Ok(Some(format!("Path escapes allowed directory: {why}")))
        }
        Err(other) => Err(other),
    }
}

/// Opens a file within `root` for reading, wherever in it `path` leads.
#[pyfunction]
pub(crate) fn open_within_dir<'py>(
    path: &Bound<'py, PyAny>,
    root: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = path.py();
    let (real_root, below) = below(path, root)?;
    let root: PathBuf = real_root.extract()?;
    DirCap::open_dir(py, &root, &[Verb::FsRead])?.open_file(py, &below)
}

/// The root with its links followed, and where in it a path leads now.
pub(crate) fn below<'py>(
    path: &Bound<'py, PyAny>,
    root: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, RelPath)> {
    let py = path.py();
    let (real_root, below) = relative(path, root).map_err(|error| {
        if error.is_instance_of::<PyValueError>(py) {
            PyErr::from(Failure::denied(DenialCode::OutsideRoot, path))
        } else {
            error
        }
    })?;
    let bytes = py.import("os")?.call_method1("fsencode", (&below,))?;
    let below = RelPath::parse(bytes.extract()?)
        .map_err(|error| PyErr::from(Failure::denied(error.code(), &below)))?;
    Ok((real_root, below))
}

/// Outside, not to be looked at, or (`RuntimeError`, before Python 3.13) a loop.
fn is_no(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOSError>(py)
        || error.is_instance_of::<PyRuntimeError>(py)
}

/// The root with its links followed, and where `path` lies below it, as
/// Python's own `pathlib` resolves both.
fn relative<'py>(
    path: &Bound<'py, PyAny>,
    root: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let resolved = path.call_method0("resolve")?;
    let root = root.call_method0("resolve")?;
    let below = resolved.call_method1("relative_to", (&root,))?;
    Ok((root, below))
}
