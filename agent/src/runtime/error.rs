//! What can go wrong with the runtime itself.

use std::{fmt, io, path::PathBuf};

use hermitcrab_core::outcome::Denial;
use hermitcrab_sandbox::journal::JournalError;

use crate::{audit::LedgerError, state_dir::room::is_lacking};

/// Why the runtime itself (not a call) failed.
#[derive(Debug)]
pub enum RuntimeError {
    /// A directory cannot be opened.
    Directory(PathBuf, io::Error),
    /// A path is not absolute, or not usable as one.
    Path(PathBuf),
    /// The ledger.
    Ledger(LedgerError),
    /// What commits displaced cannot be kept, or does not hold.
    Journal(JournalError),
    /// Too many of something.
    Limit(Denial),
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path, error) => {
                write!(f, "cannot open the directory `{}`: {error}", path.display())
            }
            Self::Path(path) => write!(
                f,
                "`{}` is not an absolute path without `..`",
                path.display()
            ),
            Self::Ledger(error) => error.fmt(f),
            Self::Journal(error) => {
                error.fmt(f)?;
                match error {
                    JournalError::Io { source, .. } if is_lacking(source) => f.write_str(
                        "; make room there: `hermitcrab undo --forget ID` removes what is kept of an earlier commit",
                    ),
                    JournalError::Io { source, .. }
                        if source.kind() == io::ErrorKind::PermissionDenied =>
                    {
                        f.write_str(
                            "; if it is yours, `chmod u+rwx` gives it back to you, and so it does a directory above it",
                        )
                    }
                    _ => Ok(()),
                }
            }
            Self::Limit(denial) => write!(f, "{denial}"),
        }
    }
}

impl std::error::Error for RuntimeError {}

impl From<JournalError> for RuntimeError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<LedgerError> for RuntimeError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}
