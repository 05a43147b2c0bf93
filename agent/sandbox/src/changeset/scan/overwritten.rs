//! What a file held before it was given another content.
//!
//! What for: who gives two files each other's names deletes nothing, and is seen in between
//! all the same: one of them was read before, the other after. Carried over so, one content
//! would stand under both names and the other under none. So what a file held is gone like a
//! name that is gone, unless it is known to have no other name in the layer: where the very
//! file was written to, or removed. Then it may have been copied into a file that was read
//! before that: it is looked for in what was written since the look began.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, Stat};

use super::Scan;
use super::look::{is_of_now, now, stat_name};
use super::portion::NAMES_MAX;
use crate::changeset::ChangeSet;
use crate::changeset::copied::Seen;
use crate::changeset::grip::Grip;
use crate::changeset::node::{Node, kind_of, open_dir, too_deep};
use crate::digest::digest_beginning;
use crate::dircap::{DEPTH_MAX, Kind, list_dir, open_plain};

/// Files of one look that are held on to.
const GRIPS_MAX: usize = 32;

/// What a file held, which may be elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Overwritten {
    pub path: RelPath,
    pub held: Digest,
    pub bytes: u64,
    /// The very file was written to, or removed: so it is not under another name, but what
    /// it held may have been copied into a file that was read before.
    pub has_no_other_name: bool,
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
        if self.while_it_runs.is_some() && before.bytes > 0 {
            self.so_far.overwritten.push(Overwritten {
                path: path.clone(),
                held: before.digest(),
                bytes: before.bytes,
                has_no_other_name: is_written_to() || self.settled.was_removed(path),
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

impl ChangeSet {
    /// Whether a name was changed since it was looked for.
    pub(crate) fn was_written_meanwhile(&self, path: &RelPath) -> bool {
        let now = now(self.upper(), path);
        now.is_none_or(|now| self.so_far.is_fresh(&Seen::of(&now)))
    }

    /// Whether a file that was written since the look began holds what another one held.
    /// What cannot be told counts as yes.
    pub(crate) fn may_hold_by_now(&self, file: &Overwritten) -> bool {
        let mut names = NAMES_MAX;
        self.holds_by_now(self.upper(), file, &mut names, 0)
            .unwrap_or(true)
    }

    fn holds_by_now(
        &self,
        dir: BorrowedFd<'_>,
        file: &Overwritten,
        names: &mut usize,
        depth: usize,
    ) -> io::Result<bool> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        for entry in list_dir(dir)? {
            *names = names
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("it holds too many names"))?;
            match self.one_holds_by_now(dir, &entry.name, file, names, depth) {
                Ok(false) => {}
                // What is not there any more was read, or is found by the next look.
                Err(error) if is_of_now(&error) => {}
                found => return found,
            }
        }
        Ok(false)
    }

    fn one_holds_by_now(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        file: &Overwritten,
        names: &mut usize,
        depth: usize,
    ) -> io::Result<bool> {
        let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match kind_of(&found) {
            Kind::Dir => {
                let inner = open_dir(dir, name)?;
                self.holds_by_now(inner.as_fd(), file, names, depth.saturating_add(1))
            }
            Kind::File => {
                let is_as_long = u64::try_from(found.st_size) == Ok(file.bytes);
                if !is_as_long || !self.so_far.is_fresh(&Seen::of(&found)) {
                    return Ok(false);
                }
                let (held, _) = digest_beginning(open_plain(dir, name)?, file.bytes)?;
                Ok(held == file.held)
            }
            Kind::Symlink | Kind::Special => Ok(false),
        }
    }
}
