//! Forking with the interpreter's own hooks, and without them.
use crate::driver::FORKING;
use bisim_world::fork::{Forked, Forker};
use pyo3::prelude::*;
use std::io;

/// Forks an interpreter: through `os.fork`, so that its hooks (random state, thread
/// bookkeeping, locks) run on both sides, or through the driver's own, which see.
pub(crate) struct PythonForker {
    fork: Py<PyAny>,
    exit: Py<PyAny>,
}

impl PythonForker {
    /// Looks the functions up once.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let os = py.import("os")?;
        Ok(Self {
            fork: os.getattr("fork")?.unbind(),
            exit: os.getattr("_exit")?.unbind(),
        })
    }

    /// Forks a loaded driver's process, which has one thread, without the hooks.
    pub(crate) fn bare(py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            fork: py
                .import(FORKING.to_string_lossy().as_ref())?
                .getattr("fork")?
                .unbind(),
            ..Self::new(py)?
        })
    }

    /// Leaves the process at once.
    pub(crate) fn leave(&self, status: i32) -> PyResult<()> {
        Python::attach(|py| self.exit.call1(py, (status,)).map(drop))
    }
}

impl Forker for PythonForker {
    fn fork(&self) -> io::Result<Forked> {
        Python::attach(|py| {
            let child = self
                .fork
                .call0(py)
                .and_then(|pid| pid.extract::<i32>(py))
                .map_err(|error| io::Error::other(error.to_string()))?;
            Ok(if child == 0 {
                Forked::Child
            } else {
                Forked::Parent { child }
            })
        })
    }

    fn exit(&self, status: i32) -> ! {
        // Does not return when it works.
        let _ = self.leave(status);
        std::process::exit(status)
    }
}
