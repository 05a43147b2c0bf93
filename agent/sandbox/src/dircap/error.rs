//! A file operation that did not happen: refused, or failed.

use std::fmt;
use std::io;

use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;

/// A file operation that did not happen.
#[derive(Debug)]
pub enum FsError {
    /// It was refused: a normal result.
    Denied(Denial),
    /// The system failed.
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: RelPath,
        /// Why it failed.
        source: io::Error,
    },
}

impl FsError {
    pub(crate) fn denied(code: DenialCode, path: &RelPath) -> Self {
        Self::Denied(Denial::new(code, path))
    }

    pub(crate) fn io(operation: &'static str, path: &RelPath, errno: rustix::io::Errno) -> Self {
        Self::Io {
            operation,
            path: path.clone(),
            source: errno.into(),
        }
    }

    /// The code of the refusal, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<DenialCode> {
        match self {
            Self::Denied(denial) => Some(denial.code()),
            Self::Io { .. } => None,
        }
    }
}

impl From<Denial> for FsError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => write!(f, "{}: `{}`", denial.code().wording(), denial.about()),
            Self::Io {
                operation,
                path,
                source,
            } => write!(f, "cannot {operation} `{path}`: {source}"),
        }
    }
}

impl std::error::Error for FsError {}

/// Whether there is nothing under a name, or no way to it.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
