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
    bare: Option<Bare>,
}

/// What is called around a fork without the hooks.
struct Bare {
    check: Py<PyAny>,
    born: Py<PyAny>,
}

impl PythonForker {
    /// Looks the functions up once.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let os = py.import("os")?;
        Ok(Self {
            fork: os.getattr("fork")?.unbind(),
            exit: os.getattr("_exit")?.unbind(),
            bare: None,
        })
    }

    /// Forks a loaded driver's process, which has one thread, without the hooks.
    pub(crate) fn bare(py: Python<'_>) -> PyResult<Self> {
        let forking = py.import(FORKING.to_string_lossy().as_ref())?;
        Ok(Self {
            fork: forking.getattr("fork")?.unbind(),
            bare: Some(Bare {
                check: forking.getattr("check")?.unbind(),
                born: forking.getattr("born")?.unbind(),
            }),
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
        let failed = |error: PyErr| io::Error::other(error.to_string());
        Python::attach(|py| {
            if let Some(bare) = &self.bare {
                bare.check.call0(py).map_err(failed)?;
            }
            let child = self.fork.call0(py).map_err(failed)?;
            match child.extract::<i32>(py).map_err(failed)? {
                0 => {
                    let born = self.bare.as_ref().map(|bare| bare.born.call0(py));
                    match born {
                        // It would go on as a second zygote.
                        Some(Err(_)) => self.exit(70),
                        Some(Ok(_)) | None => Ok(Forked::Child),
                    }
                }
                // As the C library says it; `os.fork` raises.
                child if child < 0 => Err(io::Error::last_os_error()),
                child => Ok(Forked::Parent { child }),
            }
        })
    }

    fn exit(&self, status: i32) -> ! {
        // Does not return when it works.
        let _ = self.leave(status);
        std::process::exit(status)
    }
}
