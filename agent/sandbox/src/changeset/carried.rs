//! The names that go with a directory when it gets another name in one step.
//!
//! What for: of such a step the directory alone is told, and with it all that lies in it has
//! another name. Where names matter (a rule is about one, somebody runs what has it), these
//! are effects like any other. Nothing is done for them: they are there to be decided about.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{CapError, DirId, Extent, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, openat};
use rustix::io::Errno;

use super::ChangeSet;
use super::node::open_dir;
use crate::dircap::{DEPTH_MAX, DIR_FLAGS, FsError, Kind, list_dir, moved_digest};

/// More names than anybody has moved in one step.
const NAMES_MAX: usize = 1 << 16;

/// The names below a directory, seen from there.
///
/// # Errors
/// There are too many of them, or they cannot be listed.
pub(super) fn names_below(
    parent: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Vec<RelPath>, FsError> {
    let failed = |source| FsError::Io {
        operation: "look through",
        path: path.clone(),
        source,
    };
    let too_much = |what: &str| {
        let why = format!("{what} lie in it than can be looked at before it gets another name");
        failed(io::Error::other(why))
    };
    let mut found = Vec::new();
    let mut dirs: Vec<(OwnedFd, RelPath)> =
        vec![(open_dir(parent, name).map_err(failed)?, RelPath::root())];
    while let Some((dir, below)) = dirs.pop() {
        if below.components().count() > DEPTH_MAX {
            return Err(too_much("more directories in each other"));
        }
        for entry in list_dir(&dir).map_err(failed)? {
            let Ok(place) = below.child(&entry.name) else {
                return Err(too_much("longer paths"));
            };
            if entry.kind == Kind::Dir {
                match openat(&dir, entry.name.as_slice(), DIR_FLAGS, Mode::empty()) {
                    Ok(inner) => dirs.push((inner, place.clone())),
                    // Who moves it cannot look into it, and nobody works in there for them.
                    Err(Errno::ACCESS) => {}
                    Err(errno) => return Err(failed(errno.into())),
                }
            }
            found.push(place);
            if found.len() > NAMES_MAX {
                return Err(too_much("more names"));
            }
        }
    }
    Ok(found)
}

impl ChangeSet {
    /// The effects on the names that go with directories that get another name: each is gone
    /// where it was, and comes where it goes.
    ///
    /// # Errors
    /// One of them has no name there.
    pub fn carried(&self, dir: DirId) -> Result<Vec<Action>, CapError> {
        let mut actions = Vec::new();
        for moved in &self.moves {
            if moved.what.extent() == Extent::Alone {
                continue;
            }
            for below in &moved.below {
                let (Ok(from), Ok(to)) = (moved.from.join(below), moved.to.join(below)) else {
                    continue;
                };
                let whole =
                    |path: &RelPath| self.prefix.join(path).unwrap_or_else(|_| path.clone());
                let (gone, came) = (whole(&from), whole(&to));
                actions.push(Action::on_path(Verb::FsDelete, dir, gone, Digest::NONE)?);
                let digest = moved_digest(&from);
                actions.push(Action::on_path(Verb::FsCreate, dir, came, digest)?);
            }
        }
        Ok(actions)
    }
}
