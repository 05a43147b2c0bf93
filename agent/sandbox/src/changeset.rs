//! What a command did to its copy-on-write view.
//!
//! What for: approval of effects instead of spellings. The private layer of
//! the view is the complete list of what the command changed; this module
//! turns it into a list of [`Change`]s, says what authority each needs, and
//! applies them one file at a time, or lets them vanish.
//!
//! It must never leave half a file visible, and never overwrite a file that is
//! not the one the command saw.
//!
//! Not part of a change set: timestamps, owners, extended attributes, and the
//! difference between a hard link and a copy. A rename is a deletion and a
//! creation.

mod commit;
mod kept;
mod scan;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{CapError, DirId, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::time::Timespec;

pub use self::commit::{Commit, CommitFailure};
use crate::dircap::{DirCap, dir_digest, mode_digest, symlink_digest};

/// Everything one command did to one view.
#[derive(Debug)]
pub struct ChangeSet {
    changes: Vec<Change>,
    /// A file that somebody else changed while the command ran.
    overtaken: Option<RelPath>,
    upper: OwnedFd,
    lower: OwnedFd,
    prefix: RelPath,
}

/// One change to one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which name, seen from the view's root.
    pub path: RelPath,
    /// What happened to it.
    pub what: What,
}

/// What happened to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// There is a new file.
    CreatedFile {
        /// Of its content.
        digest: Digest,
        /// Its length.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// There is a new directory; what is in it is listed apart.
    CreatedDir {
        /// Its permission bits.
        mode: u32,
    },
    /// There is a new symbolic link.
    CreatedSymlink {
        /// Where it points.
        target: Vec<u8>,
    },
    /// There is a new pipe or socket. It is never applied.
    CreatedSpecial,
    /// A file has another content, and perhaps another mode.
    ModifiedFile {
        /// Of the content the command saw; [`Digest::NONE`] if it could not be read.
        base: Digest,
        /// Of the new content.
        digest: Digest,
        /// The new length.
        bytes: u64,
        /// The old permission bits.
        mode_before: u32,
        /// The new ones.
        mode: u32,
    },
    /// Only the permission bits of a file or directory are different.
    ModifiedMode {
        /// The old ones.
        before: u32,
        /// The new ones.
        mode: u32,
    },
    /// A file is gone.
    DeletedFile {
        /// Of the content the command saw; [`Digest::NONE`] if it could not be read.
        base: Digest,
    },
    /// A symbolic link is gone.
    DeletedSymlink {
        /// Where it pointed.
        target: Vec<u8>,
    },
    /// A directory is gone; what was in it is listed apart, before it.
    DeletedDir,
    /// A pipe, socket or device is gone.
    DeletedSpecial,
}

/// The layer could not be read.
#[derive(Debug)]
pub struct ChangeSetError {
    operation: &'static str,
    path: String,
    source: io::Error,
}

impl ChangeSet {
    /// Reads the layer `upper` of a view of `dir`. No process may use it any more.
    ///
    /// Files with holes pretend to be longer than the layer can be; more than
    /// `bytes_max` of them together is an error, or reading would not end.
    /// `started` is when the command had seen nothing yet.
    pub(crate) fn read(
        upper: OwnedFd,
        dir: &DirCap,
        bytes_max: u64,
        started: Timespec,
    ) -> Result<Self, ChangeSetError> {
        let lower = dir
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| ChangeSetError {
                operation: "hold",
                path: String::from("."),
                source,
            })?;
        let (changes, overtaken) = scan::scan(upper.as_fd(), lower.as_fd(), bytes_max, started)?;
        Ok(Self {
            changes,
            overtaken,
            upper,
            lower,
            prefix: dir.prefix().clone(),
        })
    }

    /// The changes, in the order in which they are applied.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether the command changed nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The effects applying it would have, one for each change, in order.
    ///
    /// # Errors
    /// A path would be too long.
    pub fn actions(&self, dir: DirId) -> Result<Vec<Action>, CapError> {
        self.changes
            .iter()
            .map(|change| {
                let place = self
                    .prefix
                    .join(&change.path)
                    .unwrap_or_else(|_| change.path.clone());
                Action::on_path(change.what.verb(), dir, place, change.what.digest())
            })
            .collect()
    }

    /// What a changed file held before, to show a difference.
    ///
    /// # Errors
    /// It is not a regular file (any more), or longer than `bytes_max`.
    pub fn content_before(&self, path: &RelPath, bytes_max: usize) -> io::Result<Vec<u8>> {
        scan::read_below(self.lower.as_fd(), path, bytes_max)
    }

    /// What a created or changed file holds.
    ///
    /// # Errors
    /// It is not a regular file, or longer than `bytes_max`.
    pub fn content_after(&self, path: &RelPath, bytes_max: usize) -> io::Result<Vec<u8>> {
        scan::read_below(self.upper.as_fd(), path, bytes_max)
    }

    /// Lets everything vanish. Dropping does the same; this says it aloud.
    pub fn discard(self) {
        drop(self);
    }
}

impl What {
    /// Which authority applying it needs.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match self {
            Self::CreatedFile { .. }
            | Self::CreatedDir { .. }
            | Self::CreatedSymlink { .. }
            | Self::CreatedSpecial => Verb::FsCreate,
            Self::ModifiedFile { .. } | Self::ModifiedMode { .. } => Verb::FsModify,
            Self::DeletedFile { .. }
            | Self::DeletedSymlink { .. }
            | Self::DeletedDir
            | Self::DeletedSpecial => Verb::FsDelete,
        }
    }

    /// What a permit for it is bound to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::CreatedFile { digest, .. } | Self::ModifiedFile { digest, .. } => *digest,
            Self::CreatedDir { mode } => dir_digest(*mode),
            Self::CreatedSymlink { target } => symlink_digest(target),
            Self::ModifiedMode { mode, .. } => mode_digest(*mode),
            Self::CreatedSpecial
            | Self::DeletedFile { .. }
            | Self::DeletedSymlink { .. }
            | Self::DeletedDir
            | Self::DeletedSpecial => Digest::NONE,
        }
    }
}

impl fmt::Display for ChangeSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}` of the command's view: {}; nothing was applied",
            self.operation, self.path, self.source
        )
    }
}

impl std::error::Error for ChangeSetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
