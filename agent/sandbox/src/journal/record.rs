//! What a single write displaced, kept so that it can be taken back.
//!
//! What for: a file that a tool writes is put in place by itself, all of it or nothing
//! ([`DirCap::write`], [`super::parents`]), and needs no plan. But its user
//! takes back what was done without a thought for how it was done. So what the write displaced
//! comes here instead of going, and afterwards it is noted what was done, in the form of a
//! commit that is finished ([`super::noted`]).
//!
//! It must never fail a write: whatever cannot be kept is gone as it would have been without
//! this. What somebody leaves who is killed between the two goes when the list is entered next.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::sync::{Arc, MutexGuard, PoisonError};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::Denial;
use hermitcrab_core::path::{PathError, RelPath};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::areas::path_of;
use super::like::Like;
use super::noted::{Noted, name_of};
use super::plan::{Act, Op, Plan, Staged, Touched};
use super::recover::Finished;
use super::root::Root;
use super::stage::{Source, Stager, Usable};
use super::{CommitId, Journal, JournalError, io_error, retain};
use crate::changeset::node::{Holds, Tree, fingerprint, read_tree};
use crate::dircap::open::{open_parent, stat_name};
use crate::dircap::{Base, DirCap, FsError, Stat};

/// After so many records, or so many bytes in them, it is looked which of the oldest commits
/// are too many. Before that they are no burden, and to remove one for each that comes would
/// be most of its work.
const RECORDS_UNPRUNED_MAX: u64 = 2048;
const BYTES_UNPRUNED_MAX: u64 = 64 << 20;
/// Who opens the journal looks where there are more, and each so many times for their bytes.
const LOOKED_AT_EACH: u64 = 8;

/// What was written down since it was last looked which commits are too many.
#[derive(Clone, Debug, Default)]
pub(super) struct Since {
    records: u64,
    bytes: u64,
    known: Option<Known>,
}

/// What is known of the journal, as long as nobody else did anything with it.
#[derive(Clone, Debug)]
struct Known {
    noted: Arc<Noted>,
    /// When a name was last made or removed in its directory, and how long its list is. Either
    /// is another once somebody else had the lock and did anything.
    at: Option<((i64, i64), u64)>,
    /// The number of the next commit.
    next: u64,
}

/// A write that is about to happen. It leaves nothing here unless it is written down.
#[derive(Debug)]
pub struct Record<'j> {
    journal: &'j Journal,
    noted: Arc<Noted>,
    number: u64,
    /// Whether what lies there under the number is what this write displaced, all of it.
    is_kept: Cell<bool>,
    is_done: bool,
    /// Nobody else works with the journal meanwhile.
    _lock: Arc<OwnedFd>,
}

/// A write that happened.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The directories that were made for it, each in the one before, then the file.
    pub places: &'a [RelPath],
    /// Whether there was a file, or there is one now.
    pub verb: Verb,
    /// What was written.
    pub content: Digest,
    /// What it was of, for people.
    pub note: &'a str,
}

impl Journal {
    /// Begins a write.
    ///
    /// # Errors
    /// The journal cannot be used; the write need not care.
    pub fn record(&self) -> Result<Record<'_>, JournalError> {
        let lock = self.lock()?;
        let known = self.since().known.clone();
        if let Some(known) = known.filter(|known| known.at == self.looks(&known.noted)) {
            return Ok(self.begun(known.noted, known.next, lock));
        }
        drop(lock);
        let Finished { lock, next, .. } = self.lock_finished()?;
        let noted = Arc::new(self.open_noted()?);
        // Of somebody who was killed before it was noted; what this one displaces is another.
        noted
            .drop_displaced(next)
            .map_err(|errno| io_error("clear the list of", &self.place, errno))?;
        Ok(self.begun(noted, next, lock))
    }

    const fn begun(&self, noted: Arc<Noted>, number: u64, lock: Arc<OwnedFd>) -> Record<'_> {
        Record {
            journal: self,
            noted,
            number,
            is_kept: Cell::new(false),
            is_done: false,
            _lock: lock,
        }
    }

    /// By what it is known that nobody did anything.
    fn looks(&self, noted: &Noted) -> Option<((i64, i64), u64)> {
        let stat = rustix::fs::fstat(&*self.dir).ok()?;
        let touched = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).ok()?);
        Some((touched, noted.length().ok()?))
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what is too much of what they wrote down who ended before it was.
    pub(super) fn prune_at_first(&self) -> Result<(), JournalError> {
        let numbers = self.numbers()?;
        let Some(newest) = numbers.last() else {
            return Ok(());
        };
        if numbers.len() > retain::ENTRIES_MAX || newest % LOOKED_AT_EACH == 0 {
            // That they stay is no failure.
            let _pruned = retain::prune(self, *newest);
        }
        Ok(())
    }

    /// Notes that a write was written down, and removes what is too much, if that was not
    /// looked at for long.
    fn count(&self, noted: &Arc<Noted>, number: u64, bytes: u64) {
        let mut since = self.since();
        since.known = Some(Known {
            noted: Arc::clone(noted),
            at: self.looks(noted),
            next: number.saturating_add(1),
        });
        since.records = since.records.saturating_add(1);
        since.bytes = since.bytes.saturating_add(bytes);
        if since.records >= RECORDS_UNPRUNED_MAX || since.bytes >= BYTES_UNPRUNED_MAX {
            *since = Since::default();
            drop(since);
            // That they stay is no failure.
            let _pruned = self.enter_noted().and_then(|_| retain::prune(self, number));
        }
    }
}

impl Record<'_> {
    /// Puts a file in place as [`DirCap::write`] does, and keeps the version it displaces.
    ///
    /// # Errors
    /// As for that.
    pub fn write(
        &self,
        dir: &DirCap,
        permit: Permit<'_>,
        path: &RelPath,
        content: &[u8],
        how: (Base, Option<u32>),
    ) -> Result<Stat, FsError> {
        dir.write_keeping(permit, path, content, how, &mut |parent, name| {
            self.take(parent, name)
        })
    }

    /// Takes a file that is displaced out of a directory, or a copy of it; whether the name
    /// is free now.
    fn take(&self, parent: BorrowedFd<'_>, name: &[u8]) -> bool {
        // Under another name somebody may go on writing in it, and sees how many it has.
        let has_others = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.st_nlink > 1);
        let renamed = match has_others {
            true => Err(Errno::XDEV),
            false => rustix::fs::renameat(parent, name, &self.noted.dir, name_of(self.number)),
        };
        let is_free = renamed.is_ok();
        let is_kept = match renamed {
            // Half of a copy is no version of anything.
            Err(Errno::XDEV) => self.copy(parent, name).is_ok(),
            renamed => renamed.is_ok(),
        };
        self.is_kept.set(is_kept);
        is_free
    }

    fn copy(&self, parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), FsError> {
        let own = name_of(self.number);
        // Names that were made up here.
        let denied = |error: PathError| FsError::Denied(Denial::new(error.code(), "a name"));
        let at = RelPath::root().child(name).map_err(denied)?;
        let slot = RelPath::root().child(own.as_bytes()).map_err(denied)?;
        let tree = read_tree(parent, name).map_err(|source| FsError::Io {
            operation: "keep",
            path: at.clone(),
            source,
        })?;
        let source = Source {
            dir: parent,
            at: &at,
        };
        let like = Like::kept(parent, &at);
        Stager::new(self.journal, self.noted.dir.as_fd())
            .copy(source, &tree, &slot, &like, Usable::AsItsModeSays)
            .map(drop)
    }

    /// Writes down what was done, and its name among the commits; `None` where somebody
    /// changed the place since, or what was there could not be kept.
    ///
    /// # Errors
    /// It could not be written down, and cannot be taken back.
    pub fn finish(
        mut self,
        dir: &DirCap,
        written: &Written<'_>,
    ) -> Result<Option<CommitId>, JournalError> {
        let place = || self.journal.place.clone();
        let Some(top) = written.places.first() else {
            return Ok(None);
        };
        let failed = |error: FsError| {
            io_error(
                "look at what was written for",
                place(),
                io::Error::other(error.to_string()),
            )
        };
        let io = |source| io_error("look at what was written for", place(), source);
        let (parent, name) = open_parent(dir.as_fd(), top).map_err(failed)?;
        let now = read_tree(parent.as_fd(), &name).map_err(io)?;
        let stat = stat_name(parent.as_fd(), &name, top).map_err(failed)?;
        let Some(stat) = stat.filter(|_| holds(&now, top, written)) else {
            return Ok(None);
        };
        let before = match self.is_kept.get() {
            true => read_tree(self.noted.dir.as_fd(), name_of(self.number).as_bytes()),
            false => Ok(Tree::new()),
        };
        let before = before.map_err(io)?;
        if before.is_empty() != (written.verb == Verb::FsCreate) {
            return Ok(None);
        }
        let staged = Staged {
            inode: stat.st_ino,
            state: fingerprint(&now),
        };
        let act = if before.is_empty() {
            Act::Put { staged }
        } else {
            Act::Swap {
                staged,
                before: fingerprint(&before),
            }
        };
        let path = path_of(dir.as_fd()).map_err(io)?;
        let root = Root::of(dir.as_fd(), path.into_os_string().into_vec(), None).map_err(io)?;
        let number = self.number;
        let plan = Plan {
            number,
            made_at: crate::ambient::seconds_since_1970(),
            note: written.note.as_bytes().to_vec(),
            undoes: None,
            roots: vec![root],
            ops: vec![Op {
                root: 0,
                path: top.clone(),
                act,
            }],
            touched: written
                .places
                .iter()
                .map(|path| touched(path, written.verb))
                .collect(),
            bytes_before: before.values().map(|node| node.bytes).sum(),
        };
        self.noted.add(&plan).map_err(io)?;
        self.is_done = true;
        self.journal.count(&self.noted, number, plan.bytes_before);
        let id = CommitId(number);
        self.journal.made().insert(id);
        Ok(Some(id))
    }
}

fn touched(path: &RelPath, verb: Verb) -> Touched {
    Touched {
        root: 0,
        path: path.clone(),
        verb,
    }
}

/// Whether what is there is what was written, in directories that hold nothing else.
fn holds(now: &Tree, top: &RelPath, written: &Written<'_>) -> bool {
    let file = written.places.last().and_then(|file| {
        let mut below = file.components().skip(top.components().count());
        let below = below.try_fold(RelPath::root(), |path, name| path.child(name));
        now.get(&below.ok()?)
    });
    now.len() == written.places.len()
        && file.is_some_and(|file| file.holds == Holds::Content(written.content))
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // What stays is cleared by whoever is given the number.
            let _gone = self.noted.drop_displaced(self.number);
        }
    }
}
