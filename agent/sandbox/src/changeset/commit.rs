//! Applying a change set, one file at a time.
//!
//! Each file appears, changes or goes at once or not at all, and only if the
//! place still looks as it did to the command. The first conflict stops the
//! rest: what was applied before it is reported, nothing is taken back.

use std::io;

use hermitcrab_core::Permit;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::{Denial, DenialCode};

use super::{Change, ChangeSet, What};
use crate::dircap::{Base, DirCap, FsError, PendingMode};

/// What came of applying a change set.
#[derive(Debug)]
pub struct Commit {
    /// How many changes were applied, from the beginning of the list.
    pub applied: usize,
    /// Why the rest was not.
    pub failure: Option<CommitFailure>,
}

/// The change that could not be applied.
#[derive(Debug)]
pub struct CommitFailure {
    /// Which one.
    pub change: Change,
    /// Why.
    pub error: FsError,
}

impl ChangeSet {
    /// Applies the changes in order, spending one permit for each.
    ///
    /// With too few permits, or with a change that is never kept, nothing is
    /// applied; a permit for something else stops at its change.
    pub fn commit(&self, dir: &DirCap, permits: Vec<Permit<'_>>) -> Commit {
        let mut applied = 0_usize;
        if let (true, Some(change)) = (permits.len() != self.changes.len(), self.changes.first()) {
            return Commit {
                applied,
                failure: Some(CommitFailure {
                    change: change.clone(),
                    error: FsError::Denied(Denial::new(
                        DenialCode::PermitMismatch,
                        format_args!(
                            "{} permits for {} changes",
                            permits.len(),
                            self.changes.len()
                        ),
                    )),
                }),
            };
        }
        if let Some((change, denial)) = self.never_kept() {
            return Commit {
                applied,
                failure: Some(CommitFailure {
                    change: change.clone(),
                    error: FsError::Denied(denial),
                }),
            };
        }
        let mut pending = Vec::new();
        let mut failure = None;
        for (change, permit) in self.changes.iter().zip(permits) {
            match self.apply(dir, permit, change, &mut pending) {
                Ok(()) => applied = applied.saturating_add(1),
                Err(error) => {
                    failure = Some(CommitFailure {
                        change: change.clone(),
                        error,
                    });
                    break;
                }
            }
        }
        // Innermost first: a mode may close a directory to its own owner.
        for (change, made) in pending.into_iter().rev() {
            if let Err(error) = dir.settle(&made) {
                failure.get_or_insert(CommitFailure { change, error });
            }
        }
        Commit { applied, failure }
    }

    fn apply(
        &self,
        dir: &DirCap,
        permit: Permit<'_>,
        change: &Change,
        pending: &mut Vec<(Change, PendingMode)>,
    ) -> Result<(), FsError> {
        let path = &change.path;
        match &change.what {
            What::CreatedFile { mode, .. } => {
                let content = self.content(change)?;
                dir.write(permit, path, &content, Base::Absent, Some(*mode))
            }
            What::ModifiedFile { base, mode, .. } => {
                let content = self.content(change)?;
                let base = match *base {
                    Digest::NONE => Base::AnyFile,
                    known => Base::Content(known),
                };
                dir.write(permit, path, &content, base, Some(*mode))
            }
            What::CreatedDir { mode } => {
                let made = dir.make_dir_usable(permit, path, *mode)?;
                pending.push((change.clone(), made));
                Ok(())
            }
            What::CreatedSymlink { target } => dir.make_symlink(permit, path, target),
            What::CreatedSpecial => Err(FsError::Denied(Denial::new(
                DenialCode::NotRegularFile,
                path,
            ))),
            What::ModifiedMode { mode, .. } => dir.set_mode(permit, path, *mode),
            What::DeletedFile { base } if *base != Digest::NONE => {
                dir.remove_if(permit, path, *base)
            }
            What::DeletedFile { .. }
            | What::DeletedSymlink { .. }
            | What::DeletedDir
            | What::DeletedSpecial => dir.remove(permit, path),
        }
    }

    fn content(&self, change: &Change) -> Result<Vec<u8>, FsError> {
        self.content_after(&change.path, usize::MAX)
            .map_err(|source: io::Error| FsError::Io {
                operation: "read from the command's view",
                path: change.path.clone(),
                source,
            })
    }
}
