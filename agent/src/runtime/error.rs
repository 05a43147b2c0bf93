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
                            "; if it is yours, `chmod u+rwx` on it, or on a directory above it, gives it back to you",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_cannot_be_used_is_told_with_what_helps() {
        let told = |kind: io::ErrorKind| {
            let error = JournalError::Io {
                operation: "open",
                place: "/s/journal".to_owned(),
                source: kind.into(),
            };
            RuntimeError::from(error).to_string()
        };
        let plain = told(io::ErrorKind::NotADirectory);
        assert!(!plain.contains(';'), "{plain}");
        for (kind, advice) in [
            (io::ErrorKind::PermissionDenied, "`chmod u+rwx` on it"),
            (io::ErrorKind::StorageFull, "`hermitcrab undo --forget ID`"),
        ] {
            let told = told(kind);
            let (_, next) = told.split_once("; ").unwrap_or_default();
            assert!(next.contains(advice), "{told}");
        }
    }
}
