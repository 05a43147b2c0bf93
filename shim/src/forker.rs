//! Forking the way the interpreter does it, with its own hooks.
use bisim_world::fork::{Forked, Forker};
use pyo3::prelude::*;
use std::io;

/// Forks through `os.fork`, so that the interpreter's hooks (random state,
/// thread bookkeeping, locks) run on both sides.
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
