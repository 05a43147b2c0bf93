//! What is different when the command of a layer runs still.
//!
//! It may change anything while it is looked at. So nothing in the layer is touched, not
//! even to be read; what is long, what cannot be read and what is another thing by the
//! time it is read is left for another look, or for the end; of a file that grows, what
//! it held when it was read is what it holds; and of each name it is noted what was seen
//! of it, before its content is read.
//!
//! Names are read one after the other, and what gets another name meanwhile may be missed
//! at both. So what is gone only counts where no directory of the layer got or lost a
//! name from before it was read until all was, by times that were over when the look
//! began (`moment`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::BorrowedFd;

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{FileType, Stat};

use super::look::{is_of_now, now};
use super::moment::Moment;
use super::overwritten::{Overwritten, Waiting};
use super::portion::{Amount, BYTES_MAX, NAMES_MAX, Portion};
use super::{Scan, dir_node, failed};
use crate::changeset::ChangeSetError;
use crate::changeset::copied::Seen;
use crate::changeset::grip::Grip;
use crate::changeset::node::{Node, kind_of, mode_of};
use crate::changeset::settled::{Below, Displaced, Settled};
use crate::digest::{digest_at_most, digest_file};
use crate::dircap::Kind;

/// The longest file that is looked at.
const FILE_BYTES_MAX: i64 = 8 << 20;

/// How a layer is looked at whose command runs still.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanwhile {
    /// Names that are not looked at.
    pub left: BTreeSet<RelPath>,
    /// Names that are looked at, each with what it lies in; `None` for all.
    pub only: Option<BTreeSet<RelPath>>,
    /// Whether names that are gone are changes.
    pub tells_gone: bool,
    /// What of it is told at most.
    pub portion: Portion,
}

impl Meanwhile {
    /// Whether a name is not among those that are looked at.
    fn is_beside(&self, path: &RelPath) -> bool {
        let only = self.only.as_ref();
        only.is_some_and(|only| !only.contains(path))
    }
}

/// What was seen of it.
#[derive(Debug, Default)]
pub(crate) struct SoFar {
    /// Each name that is a change, or that it is gone.
    pub seen: Vec<(RelPath, Option<Seen>)>,
    /// Names are gone, changes or not.
    pub is_any_gone: bool,
    /// Its command runs still.
    pub runs: bool,
    /// Something was left for later that may be what is gone elsewhere.
    pub waits: bool,
    /// What files held that hold something else, unless it is known to be nowhere else.
    pub overwritten: Vec<Overwritten>,
    /// What was left for later may hold this.
    pub waiting: Waiting,
    /// Files that were read, some of them.
    pub grips: BTreeMap<RelPath, Grip>,
    /// What was found outside under the names that are changes, or that others are links to.
    pub below: Vec<Below>,
    /// There is more that is new or changed than was told.
    pub is_full: bool,
    /// There is more gone than was told.
    pub is_more_gone: bool,
    /// What was told of what is new or changed, and of what is gone.
    pub(super) told: Amount,
    pub(super) gone: Amount,
    /// When it began to be looked at.
    began: Option<Moment>,
    /// Each directory before its names were read.
    dirs: Vec<(RelPath, Seen)>,
    names: usize,
    bytes: i64,
    /// What its command took away before its end.
    pub displaced: Displaced,
}

impl SoFar {
    /// What carrying it over asks for.
    pub(crate) fn lent(&self) -> Self {
        Self {
            runs: self.runs,
            ..Self::default()
        }
    }

    /// Nothing yet.
    pub(super) fn of(meanwhile: Option<&Meanwhile>, settled: &Settled) -> Self {
        Self {
            runs: meanwhile.is_some(),
            began: meanwhile.map(|_| Moment::now()),
            // While it runs nobody asks.
            displaced: match meanwhile {
                Some(_) => Displaced::default(),
                None => settled.displaced.clone(),
            },
            ..Self::default()
        }
    }

    /// A directory was so before its names were read.
    pub(super) fn note_dir_seen(&mut self, path: &RelPath, seen: Seen) {
        self.dirs.push((path.clone(), seen));
    }

    /// Whether no directory has got or lost a name since it was read.
    pub(crate) fn names_stand(&self, upper: BorrowedFd<'_>) -> bool {
        let mut dirs = self.dirs.iter();
        dirs.all(|(path, seen)| now(upper, path).is_some_and(|now| seen.is(&now)))
    }

    /// Whether a directory was changed so shortly before that its times may not tell of
    /// another change since. A little later they do.
    pub(crate) fn is_blurred(&self) -> bool {
        self.dirs.iter().any(|(_, seen)| self.is_fresh(seen))
    }

    /// Whether something was changed so shortly before it was looked at.
    pub(crate) fn is_fresh(&self, seen: &Seen) -> bool {
        self.began
            .is_some_and(|began| began.may_hide_a_change_of(seen))
    }

    /// The names that are not any more as they were seen.
    pub(crate) fn moved_on(&self, upper: BorrowedFd<'_>) -> Vec<RelPath> {
        let is_it = |seen: &Seen, now: &Stat| match seen.is_dir() {
            // What is in it is a name of its own.
            true => seen.is_the_one(now),
            false => seen.is(now),
        };
        let all = self.seen.iter();
        all.filter_map(|(path, seen)| {
            let seen = seen.as_ref()?;
            let stands = now(upper, path).is_some_and(|now| is_it(seen, &now));
            (!stands).then(|| path.clone())
        })
        .collect()
    }

    /// The names of the layer that were there and are not any more.
    pub(crate) fn given_up(&self, upper: BorrowedFd<'_>) -> impl Iterator<Item = &RelPath> {
        let there = self.seen.iter().filter(|(_, seen)| seen.is_some());
        let names = there.map(|(path, _)| path);
        names.filter(move |path| now(upper, path).is_none())
    }
}

fn is_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
}

impl Scan {
    /// Whether a name is none of this look's.
    pub(super) fn is_left_alone(&self, path: &RelPath) -> bool {
        let meanwhile = self.while_it_runs.as_ref();
        meanwhile
            .is_some_and(|meanwhile| meanwhile.left.contains(path) || meanwhile.is_beside(path))
    }

    /// Notes a name that is left alone: whoever left it may not have known of it.
    pub(super) fn note_left_alone(&mut self, upper: BorrowedFd<'_>, name: &[u8], path: &RelPath) {
        let meanwhile = self.while_it_runs.as_ref();
        self.so_far.waits |= meanwhile.is_some_and(|meanwhile| meanwhile.is_beside(path));
        self.note_left(upper, name, path);
    }

    /// Whether a name is left for later: a long file, a pipe, a socket.
    pub(super) fn waits_for_its_end(
        &mut self,
        new: &Stat,
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        if self.while_it_runs.is_none() {
            return Ok(false);
        }
        self.so_far.names = self.so_far.names.saturating_add(1);
        if self.so_far.names > NAMES_MAX {
            let error = io::Error::other("it holds more names than are looked at meanwhile");
            return Err(failed("look at", path, error));
        }
        Ok(match kind_of(new) {
            Kind::File => {
                let is_long = new.st_size > FILE_BYTES_MAX;
                if is_long {
                    self.so_far.waits = true;
                    self.note_waiting(new);
                }
                is_long
            }
            // The mark of a deletion is a device, too.
            Kind::Special => !is_device(new) || new.st_rdev != 0,
            Kind::Dir | Kind::Symlink => false,
        })
    }

    /// What was found, or nothing if it is to be found later.
    pub(super) fn unless_it_waits<T>(
        &mut self,
        found: Result<T, ChangeSetError>,
    ) -> Result<Option<T>, ChangeSetError> {
        match found {
            Err(error) if self.while_it_runs.is_some() && is_of_now(&error.source) => {
                self.so_far.waits = true;
                self.so_far.waiting.add_unknown();
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Whether a name that is gone is a change of this look.
    pub(super) fn may_be_gone(&mut self) -> bool {
        self.so_far.is_any_gone = true;
        let meanwhile = self.while_it_runs.as_ref();
        meanwhile.is_none_or(|meanwhile| meanwhile.tells_gone)
    }

    /// Notes a directory whose names are read next.
    pub(super) fn note_names_of(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &RelPath,
    ) -> Result<(), ChangeSetError> {
        if self.while_it_runs.is_some() {
            let stat = rustix::fs::fstat(dir).map_err(|errno| failed("stat", path, errno))?;
            self.so_far.note_dir_seen(path, Seen::of(&stat));
        }
        Ok(())
    }

    /// Whether there is no room in this look for a file.
    pub(super) fn is_too_much(&mut self, new: &Stat) -> bool {
        if self.while_it_runs.is_none() {
            return false;
        }
        let is_too_much = self.so_far.bytes >= BYTES_MAX;
        if is_too_much {
            self.so_far.waits = true;
            self.note_waiting(new);
        }
        self.so_far.bytes = self.so_far.bytes.saturating_add(new.st_size);
        is_too_much
    }

    /// Whether what was opened is what the name was found to be: it may be another's by now.
    pub(super) fn is_still(&self, file: BorrowedFd<'_>, found: &Stat) -> io::Result<()> {
        if self.while_it_runs.is_some() && rustix::fs::fstat(file)?.st_ino != found.st_ino {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(())
    }

    /// The digest and length of a file, which may be longer by now than it was.
    pub(super) fn digest_of(&self, file: BorrowedFd<'_>) -> io::Result<(Digest, u64)> {
        match self.while_it_runs {
            Some(_) => digest_at_most(file, FILE_BYTES_MAX.unsigned_abs()),
            None => digest_file(file),
        }
    }

    /// Notes what was found outside under a name.
    pub(super) fn note_below(&mut self, old: &Stat, node: &Node, gets_other_names: bool) {
        if self.while_it_runs.is_some() {
            let mut below = Below::of(old, node);
            below.has_other_names |= gets_other_names;
            self.so_far.below.push(below);
        }
    }

    /// The same of what was decided and may get another name.
    pub(super) fn note_linked(&mut self, path: &RelPath, old: Option<&Stat>) {
        let content = self.settled.seen(path).and_then(|seen| seen.content);
        if let (Some(old), Some(content), Some(_)) = (old, content, &self.while_it_runs) {
            let below = Below::holding(old, content);
            self.so_far.below.push(below);
        }
    }

    /// Notes what was seen of a name, or that it is gone.
    pub(super) fn note(&mut self, path: &RelPath, seen: Option<Seen>) {
        if self.while_it_runs.is_some() {
            self.so_far.seen.push((path.clone(), seen));
        }
    }

    /// Notes that a name is as it was, if its times did not tell and may by now.
    pub(super) fn note_again(&mut self, path: &RelPath) {
        if self.settled.is_fresh(path) {
            self.note(path, self.settled.seen(path).cloned());
        }
    }

    /// The same of a directory, whose attributes count.
    pub(super) fn note_dir(
        &mut self,
        dir: BorrowedFd<'_>,
        stat: &Stat,
        path: &RelPath,
    ) -> Result<(), ChangeSetError> {
        if self.while_it_runs.is_some() {
            let node = dir_node(dir, mode_of(stat), path)?;
            let seen = Seen {
                attributes: crate::changeset::xattr_digest(&node.xattrs),
                ..Seen::of(stat)
            };
            self.note(path, Some(seen));
        }
        Ok(())
    }
}
