//! Why a commit did not happen, and where that was noticed.

use hermitcrab_core::path::RelPath;

use super::JournalError;
use crate::dircap::FsError;

/// Why a commit did not happen.
#[derive(Debug)]
pub struct CommitFailure {
    /// In which of the directories it was noticed, by its place among those that
    /// were given; none if it was in the journal itself.
    pub part: Option<usize>,
    /// At which name there, seen from the view.
    pub path: RelPath,
    /// Why.
    pub error: FsError,
    /// Names that could not be put back, because somebody changed them too;
    /// what they held is kept in the journal.
    pub stuck: Vec<RelPath>,
}

/// A failure at a name, or of the journal itself.
pub(super) struct Failed {
    part: Option<usize>,
    pub(super) path: RelPath,
    pub(super) error: FsError,
}

impl Failed {
    /// At a name in one of the directories.
    pub(super) fn at(part: usize, path: &RelPath, error: impl Into<FsError>) -> Self {
        Self {
            part: Some(part),
            path: path.clone(),
            error: error.into(),
        }
    }

    /// In the journal itself.
    pub(super) fn in_journal(error: impl Into<FsError>) -> Self {
        Self {
            part: None,
            path: RelPath::root(),
            error: error.into(),
        }
    }
}

/// The same failure under the name a person knows: nobody has heard of the one a
/// thing is staged under.
pub(super) fn unstaged(error: FsError, slot: &RelPath, path: &RelPath) -> FsError {
    match error {
        FsError::Io {
            operation,
            path: at,
            source,
        } if at.starts_with(slot) && !at.starts_with(path) => FsError::Io {
            operation,
            path: path.clone(),
            source,
        },
        other => other,
    }
}

impl From<JournalError> for FsError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Io {
                operation, source, ..
            } => Self::Io {
                operation,
                path: RelPath::root(),
                source,
            },
            other => Self::Io {
                operation: "use the journal for",
                path: RelPath::root(),
                source: std::io::Error::other(other.to_string()),
            },
        }
    }
}

impl From<JournalError> for CommitFailure {
    fn from(error: JournalError) -> Self {
        Failed::in_journal(error).into()
    }
}

impl From<Failed> for CommitFailure {
    fn from(failed: Failed) -> Self {
        let Failed { part, path, error } = failed;
        Self {
            part,
            path,
            error,
            stuck: Vec::new(),
        }
    }
}
