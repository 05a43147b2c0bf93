//! What a file held before it was given another content.
//!
//! What for: who gives two files each other's names deletes nothing, and is seen in between
//! all the same: one of them was read before, the other after. Carried over so, one content
//! would stand under both names and the other under none. So what a file held is gone like a
//! name that is gone, unless it is known to be nowhere else in the layer: where the very file
//! was written to, or removed.

use std::collections::BTreeSet;
use std::os::fd::{BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::Scan;
use super::look::stat_name;
use crate::changeset::grip::Grip;
use crate::changeset::node::{Node, kind_of};
use crate::dircap::Kind;

/// Files of one look that are held on to.
const GRIPS_MAX: usize = 32;

/// What a file held, which may have another name.
#[derive(Clone, Debug)]
pub(crate) struct Overwritten {
    pub path: RelPath,
    pub held: Digest,
    pub bytes: u64,
}

/// How long files are that were left for later.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    bytes: BTreeSet<u64>,
    /// There are some of which nothing is known.
    is_unknown: bool,
}

impl Waiting {
    pub(super) fn add_unknown(&mut self) {
        self.is_unknown = true;
    }

    /// Whether one of them may hold something so long.
    pub(crate) fn may_hold(&self, bytes: u64) -> bool {
        self.is_unknown || self.bytes.contains(&bytes)
    }
}

impl Scan {
    /// Notes something that is left for later.
    pub(super) fn note_waiting(&mut self, new: &Stat) {
        match kind_of(new) {
            Kind::File => {
                let bytes = u64::try_from(new.st_size).unwrap_or(0);
                self.so_far.waiting.bytes.insert(bytes);
            }
            // What is in it was not looked at.
            Kind::Dir => self.so_far.waiting.add_unknown(),
            Kind::Symlink | Kind::Special => {}
        }
    }

    /// The same of a name that is none of this look's.
    pub(super) fn note_left(&mut self, upper: BorrowedFd<'_>, name: &[u8], path: &RelPath) {
        match stat_name(upper, name, path) {
            Ok(Some(new)) => self.note_waiting(&new),
            // It is elsewhere by now.
            Ok(None) | Err(_) => self.so_far.waiting.add_unknown(),
        }
    }

    /// Notes what a file held that holds something else now.
    pub(super) fn note_overwritten(&mut self, path: &RelPath, new: &Stat, before: &Node) {
        let is_written_to = || self.seen(path).is_some_and(|seen| seen.is_the_one(new));
        let is_nowhere = || is_written_to() || self.settled.was_removed(path);
        if self.while_it_runs.is_some() && before.bytes > 0 && !is_nowhere() {
            self.so_far.overwritten.push(Overwritten {
                path: path.clone(),
                held: before.digest(),
                bytes: before.bytes,
            });
        }
    }

    /// Holds on to a file that was read.
    pub(super) fn hold(&mut self, path: &RelPath, new: &Stat, file: OwnedFd) {
        if self.while_it_runs.is_some()
            && self.so_far.grips.len() < GRIPS_MAX
            && let Some(grip) = Grip::of(file, new)
        {
            self.so_far.grips.insert(path.clone(), grip);
        }
    }
}
