//! Why a commit did not happen, and where that was noticed.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use hermitcrab_core::path::RelPath;

use super::root::Root;
use super::{Journal, JournalError};
use crate::dircap::FsError;

/// So many names are told that could not be put back; the rest is counted.
const NAMED_MAX: usize = 16;

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
    /// Names that could not be put back.
    pub stuck: Vec<Stuck>,
}

/// A name that could not be put back as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Where, from the root: one of several directories may hold it.
    pub at: PathBuf,
    /// Why, and what became of what was there.
    pub why: StuckWhy,
}

/// Why a name could not be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StuckWhy {
    /// Somebody changed it, too. What was there before lies here, if anything was.
    Changed(Option<PathBuf>),
    /// What was there before, or the directory it was in, lay in a directory of the commit's
    /// own, which somebody removed.
    Lost {
        /// That directory.
        place: PathBuf,
        /// Where it is still, if it was only to get another name.
        still: Option<PathBuf>,
    },
    /// The system failed, in these words; it is tried again before anything else is done.
    Failed(String),
    /// Its file system does not answer, so whether it changed is not known.
    Waits,
}

impl fmt::Display for CommitFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() {
            write!(f, "{}", self.error)?;
        } else {
            write!(f, "`{}`: {}", self.path, self.error)?;
        }
        if !self.stuck.is_empty() {
            write!(f, "; not put back: {}", StuckNames(&self.stuck))?;
        }
        Ok(())
    }
}

impl std::error::Error for CommitFailure {}

/// Names that could not be put back, in a sentence: the first of very many, and how many more.
#[derive(Clone, Copy, Debug)]
pub struct StuckNames<'a>(pub &'a [Stuck]);

impl fmt::Display for StuckNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stuck) in self.0.iter().take(NAMED_MAX).enumerate() {
            let between = if number == 0 { "" } else { ", " };
            write!(f, "{between}{stuck}")?;
        }
        match self.0.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl Stuck {
    /// A name below one of the directories.
    pub(super) fn at(root: &Root, path: &RelPath, why: StuckWhy) -> Self {
        let mut at = root.path();
        if !path.is_root() {
            at.push(OsStr::from_bytes(path.as_bytes()));
        }
        Self { at, why }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.at.display())?;
        match &self.why {
            StuckWhy::Changed(None) => f.write_str(" (changed since)"),
            StuckWhy::Changed(Some(kept)) => {
                write!(f, " (changed since; what it was is `{}`)", kept.display())
            }
            StuckWhy::Lost { place, still: None } => write!(
                f,
                " (what it was lay in `{}`, which somebody removed)",
                place.display()
            ),
            StuckWhy::Lost {
                place,
                still: Some(still),
            } => write!(
                f,
                " (it is `{}` still: the directory it was in lay in `{}`, which somebody removed)",
                still.display(),
                place.display()
            ),
            StuckWhy::Waits => f.write_str(
                " (changed, or about to be: its file system does not answer; it is taken back as soon as it does, before anything else is done there)",
            ),
            StuckWhy::Failed(why) => write!(
                f,
                " (not put back yet: {why}; that is tried again before the next change)"
            ),
        }
    }
}

/// Not all could be taken back, and that is tried again before anything else is done: what
/// waits, and with it what was left alone.
pub(super) struct NotYet(pub Vec<Stuck>);

/// A failure at a name, or of the journal itself.
pub(super) struct Failed {
    pub(super) part: Option<usize>,
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

    /// That not even taking it back was possible.
    pub(super) fn into_stuck(self, roots: &[Root], journal: &Journal) -> Stuck {
        let why = StuckWhy::Failed(self.error.to_string());
        match self.part.and_then(|part| roots.get(part)) {
            Some(root) => Stuck::at(root, &self.path, why),
            None => Stuck {
                at: PathBuf::from(&journal.place),
                why,
            },
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
