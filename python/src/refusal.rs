//! Refusals and failures as Python raises them.
//!
//! A refusal is `Denied`, a `PermissionError` with the stable code; whatever
//! the system says is the `OSError` that Python itself would raise for it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use hermitcrab_core::authority::AuthorityError;
use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;
use hermitcrab_sandbox::FsError;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyPermissionError};
use pyo3::prelude::*;

create_exception!(
    hermitcrab_caps,
    Denied,
    PyPermissionError,
    "It was refused; `code` says why in one stable word."
);

/// Why something did not happen.
pub(crate) enum Failure {
    /// It was refused.
    Denied(Denial),
    /// The system failed.
    Os {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: OsString,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Failure {
    pub(crate) fn denied(code: DenialCode, about: impl std::fmt::Display) -> Self {
        Self::Denied(Denial::new(code, about))
    }
}

impl From<Denial> for Failure {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<AuthorityError> for Failure {
    fn from(error: AuthorityError) -> Self {
        Self::Denied(error.into())
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        match error {
            FsError::Denied(denial) => Self::Denied(denial),
            FsError::Io {
                operation,
                path,
                source,
            } => Self::Os {
                operation,
                path: os_string(&path),
                source,
            },
        }
    }
}

/// Nobody was shown anything here, so that a name changed "after it was shown" can only
/// mean that it is taken, or that there is none. Python has words for both.
pub(crate) fn unshown(
    error: FsError,
    means: rustix::io::Errno,
    operation: &'static str,
    path: &RelPath,
) -> FsError {
    match error {
        FsError::Denied(denial) if denial.code() == DenialCode::ChangedSinceShown => FsError::Io {
            operation,
            path: path.clone(),
            source: means.into(),
        },
        error => error,
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Denied(denial) => Python::attach(|py| raised(py, &denial)),
            Failure::Os {
                operation,
                path,
                source,
            } => {
                // An error of our own making has no number; too long is the only one.
                let number = source.raw_os_error().unwrap_or(
                    match source.kind() {
                        std::io::ErrorKind::FileTooLarge => rustix::io::Errno::FBIG,
                        _ => rustix::io::Errno::IO,
                    }
                    .raw_os_error(),
                );
                PyOSError::new_err((number, format!("cannot {operation}: {source}"), path))
            }
        }
    }
}

fn raised(py: Python<'_>, denial: &Denial) -> PyErr {
    let code = denial.code();
    let error = Denied::new_err((
        rustix::io::Errno::ACCESS.raw_os_error(),
        format!(
            "{}: {}; {}",
            code.as_str(),
            code.wording(),
            code.next_step()
        ),
        denial.about().to_owned(),
    ));
    match error.value(py).setattr("code", code.as_str()) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// A name as Python's file functions take it.
pub(crate) fn os_string(path: &RelPath) -> OsString {
    OsString::from_vec(path.as_bytes().to_vec())
}
