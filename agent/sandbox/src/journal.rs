//! Commits that happen whole or not at all, and can be taken back.
//!
//! What for: a change set is many changes, and the machine may stop between
//! any two of them. So what a commit brings is staged and flushed first, what
//! it is about to do is written down and flushed, then every change is one
//! rename; what it displaces stays in the journal. Whoever opens the journal
//! next finds either no plan (nothing happened), a plan (everything it did is
//! taken back), or a finished commit (nothing is left to do).
//!
//! The rule is one sentence: a commit that was not finished never happened.
//! `undo` is a commit of its own, of the state before.
//!
//! It must never put anything anywhere without a permit for exactly that,
//! never overwrite what it did not expect, and never throw away the only copy
//! of anything: what cannot be put back is kept and named.
//!
//! Where things lie: in a directory of the agent's own, outside every
//! workspace. Only if that lies on another file system than the workspace is
//! there, for as long as a commit takes, a directory with the prefix
//! [`crate::dircap::TEMPORARY_PREFIX`] in the workspace: a rename cannot leave
//! its file system. What is built in a workspace for a write that makes
//! directories (`parents`) is on note here for as long.
//!
//! What it does not protect against: somebody who can write the agent's own
//! directory, and programs that go on writing through a file they had open
//! before; what they write then lands in the version that is kept.

mod act;
mod alike;
mod areas;
mod aside;
mod back;
mod besides;
mod brief;
mod brought;
mod carry;
mod commit;
mod entry;
mod failed;
mod forget;
mod former;
mod ground;
mod in_time;
mod incoming;
mod like;
mod mode;
mod moved;
mod noted;
mod parents;
mod plan;
mod put_back;
mod reach;
mod record;
mod recover;
mod retain;
mod root;
mod stage;
mod steps;
mod times;
mod undo;
mod waiting;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::path::RelPath;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

pub use self::besides::Besides;
pub use self::commit::{Commit, Part};
pub use self::failed::{CommitFailure, Stuck, StuckNames, StuckWhy};
pub use self::forget::ForgetError;
pub use self::former::Former;
pub use self::incoming::Incoming;
pub use self::parents::{NewFile, Placed};
pub use self::record::{Record, Written};
pub use self::recover::{Left, Recovered, Unreached};
pub use self::retain::{AGE_MAX, BYTES_MAX, ENTRIES_MAX};
pub use self::steps::{Then, Watch};
pub use self::undo::{Undo, UndoError};

use self::entry::Entry;
use self::steps::Steps;
use crate::dircap::access_lists::hand_nothing_down;

/// The journal's directory in the agent's own.
pub const DIR_NAME: &str = "journal";
/// Held while something is done.
const LOCK: &str = "lock";
/// How long another process may take over what it does.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// An open journal. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Journal {
    dir: Arc<OwnedFd>,
    /// For messages.
    place: String,
    steps: Arc<Steps>,
    /// What was committed through this one: others work with the same directory.
    made: Arc<Mutex<BTreeSet<CommitId>>>,
    /// What of what it brings does not count.
    besides: Arc<dyn Besides>,
    /// What others left unfinished since it was opened.
    found: Arc<Mutex<Recovered>>,
    /// The lock, while it is held.
    held: Arc<Mutex<Weak<OwnedFd>>>,
    /// What was written down through it.
    since: Arc<Mutex<record::Since>>,
    /// How long one step may take, where that is not for the file system to say.
    step_max: Option<Duration>,
}

/// The numbers in a journal, each oldest first.
struct Listed {
    /// Of entries that can be looked at.
    numbers: Vec<u64>,
    /// Of entries that wait for a directory.
    waiting: Vec<u64>,
    /// That were given to what is gone.
    noted: Vec<u64>,
}

impl Listed {
    /// The number that was given last.
    fn last(&self) -> Option<u64> {
        let all = self.numbers.iter().chain(&self.waiting).chain(&self.noted);
        all.max().copied()
    }
}

/// Which commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(u64);

/// One commit that can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Which one.
    pub id: CommitId,
    /// When it was made, in seconds since 1970.
    pub made_at: u64,
    /// What it was of, as its maker put it.
    pub note: String,
    /// The commit it took back, if it is an undo itself.
    pub undoes: Option<CommitId>,
    /// Every name it touched, in order.
    pub touched: Vec<KeptChange>,
    /// How much is kept so that it can be taken back.
    pub bytes: u64,
    /// Whether parts of it could neither be kept nor taken back.
    pub is_stuck: bool,
    /// Whether it is half done in a directory that cannot be reached, and waits for that.
    pub is_waiting: bool,
}

/// A name a commit touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptChange {
    /// The directory it lies in.
    pub root: Vec<u8>,
    /// Where in it.
    pub path: RelPath,
    /// What was done there.
    pub verb: Verb,
}

/// The journal cannot be used.
#[derive(Debug)]
pub enum JournalError {
    /// The system failed.
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        place: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Another process works with it.
    Busy(String),
    /// It is not the agent's own directory; it was not touched.
    NotOurs(String, &'static str),
    /// A part of it does not hold; that part was set aside under this name.
    Broken(String, String),
    /// It holds, and another version of the program wrote it; nothing was touched.
    Foreign(String),
    /// There is no such commit.
    Unknown(CommitId),
    /// This one is half done in that directory, whose file system does not answer.
    Waits(CommitId, PathBuf),
    /// This one is half done in a directory that cannot be reached.
    Unreached(Box<Unreached>),
}

impl Journal {
    /// Whether there is a journal in the agent's own directory already.
    #[must_use]
    pub fn is_at(state_dir: &Path) -> bool {
        // What is not a directory is refused when it is opened, not overlooked.
        state_dir.join(DIR_NAME).symlink_metadata().is_ok()
    }

    /// Opens the journal in the agent's own directory, which must exist, and
    /// takes back whatever was not finished.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn open(state_dir: &Path) -> Result<(Self, Recovered), JournalError> {
        Self::open_with(state_dir, Steps::default())
    }

    /// The same, with somebody who sees every step and can stop it.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn open_watched(
        state_dir: &Path,
        watch: Box<dyn Watch>,
    ) -> Result<(Self, Recovered), JournalError> {
        Self::open_with(state_dir, Steps::watched(watch))
    }

    fn open_with(state_dir: &Path, steps: Steps) -> Result<(Self, Recovered), JournalError> {
        let path = state_dir.join(DIR_NAME);
        let place = path.display().to_string();
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(io_error("make", &place, errno)),
        }
        let dir = match rustix::fs::open(
            &path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(dir) => dir,
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(JournalError::NotOurs(place, "it is not a directory"));
            }
            Err(errno) => return Err(io_error("open", &place, errno)),
        };
        let stat = rustix::fs::fstat(&dir).map_err(|errno| io_error("stat", &place, errno))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(JournalError::NotOurs(place, "it belongs to somebody else"));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(JournalError::NotOurs(place, "others can write it"));
        }
        hand_nothing_down(dir.as_fd()).map_err(|errno| io_error("clear", &place, errno))?;
        let journal = Self {
            dir: Arc::new(dir),
            place,
            steps: Arc::new(steps),
            made: Arc::default(),
            besides: Arc::new(besides::Nothing),
            found: Arc::default(),
            held: Arc::default(),
            since: Arc::default(),
            step_max: None,
        };
        let _lock = journal.lock()?;
        if journal.numbers()?.is_empty() {
            // Perhaps just made. Whoever looks for what a loss of power cut off, and
            // for what was taken out of the way, must find the directory.
            let above = rustix::fs::open(
                state_dir,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            );
            above
                .and_then(rustix::fs::fsync)
                .map_err(|errno| io_error("sync the directory of", &journal.place, errno))?;
        }
        let waiting = journal.glance_at_waiting()?;
        let mut recovered = recover::recover(&journal, &waiting.ready)?;
        recovered.waiting.splice(0..0, waiting.still);
        journal.clear_incoming();
        journal.clear_asides();
        journal.enter_noted()?;
        journal.prune_at_first()?;
        Ok((journal, recovered))
    }

    /// From here on, what this knows to be there only besides does not count.
    pub fn count_without(&mut self, besides: Box<dyn Besides>) {
        self.besides = Arc::from(besides);
    }

    /// Every commit in it, oldest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list(&self) -> Result<Vec<Kept>, JournalError> {
        let _lock = self.lock()?;
        self.enter_noted()?;
        let mut kept = Vec::new();
        for number in self.numbers()? {
            let entry = Entry::open(self, number)?;
            match entry.plan() {
                Ok(Some(plan)) => kept.push(Kept::of(&plan, entry.is_stuck()?)),
                // It may be the newest, which nobody may overlook.
                Err(error @ JournalError::Foreign(_)) => return Err(error),
                // What does not hold was reported when the journal was opened.
                Ok(None) | Err(_) => {}
            }
        }
        Ok(kept)
    }

    /// The newest commit that was made through this journal since it was opened.
    pub fn last_made(&self) -> Option<CommitId> {
        self.made().last().copied()
    }

    /// Whether that commit was made through this journal since it was opened.
    pub fn has_made(&self, id: CommitId) -> bool {
        self.made().contains(&id)
    }

    fn made(&self) -> MutexGuard<'_, BTreeSet<CommitId>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of all entries that do not wait, oldest first.
    fn numbers(&self) -> Result<Vec<u64>, JournalError> {
        Ok(self.listed()?.numbers)
    }

    /// What is in it.
    fn listed(&self) -> Result<Listed, JournalError> {
        let entries = crate::dircap::list_dir(&self.dir)
            .map_err(|source| io_error("list", &self.place, source))?;
        let of = |prefix: &str| {
            let names = entries.iter();
            let mut numbers: Vec<u64> = names
                .filter_map(|entry| entry::number(entry.name.strip_prefix(prefix.as_bytes())?))
                .collect();
            numbers.sort_unstable();
            numbers
        };
        Ok(Listed {
            numbers: of(""),
            waiting: of(entry::WAITING),
            noted: of(forget::LAST),
        })
    }

    /// Nobody else works with the journal while this lives.
    fn lock(&self) -> Result<Arc<OwnedFd>, JournalError> {
        const PAUSE_MAX: Duration = Duration::from_millis(20);
        let file = rustix::fs::openat(
            &self.dir,
            LOCK,
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| match errno {
            // A pipe opens for both ends, and can be locked as well.
            Errno::LOOP | Errno::ISDIR | Errno::NXIO => JournalError::NotOurs(
                format!("{}/{LOCK}", self.place),
                "what lies there is no file",
            ),
            errno => io_error("lock", &self.place, errno),
        })?;
        let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let lock = Arc::new(file);
                    let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                    *held = Arc::downgrade(&lock);
                    return Ok(lock);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) if waited < LOCK_WAIT => {
                    std::thread::sleep(pause);
                    waited = waited.saturating_add(pause);
                    // A write has it for a moment, a commit for as long as it takes.
                    pause = pause.saturating_mul(2).min(PAUSE_MAX);
                }
                Err(Errno::WOULDBLOCK) => return Err(JournalError::Busy(self.place.clone())),
                Err(errno) => return Err(io_error("lock", &self.place, errno)),
            }
        }
    }

    fn flush(&self) -> Result<(), JournalError> {
        self.steps
            .pass("flush the journal")
            .map_err(|source| io_error("flush", &self.place, source))?;
        rustix::fs::fsync(self.dir.as_fd()).map_err(|errno| io_error("flush", &self.place, errno))
    }
}

impl CommitId {
    /// The commit with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number, which no other of the same state directory ever has.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Kept {
    fn of(plan: &plan::Plan, is_stuck: bool) -> Self {
        Self {
            id: CommitId(plan.number),
            made_at: plan.made_at,
            note: String::from_utf8_lossy(&plan.note).into_owned(),
            undoes: plan.undoes.map(CommitId),
            touched: changes_of(&plan.roots, &plan.touched),
            bytes: plan.bytes_before,
            is_stuck,
            is_waiting: false,
        }
    }
}

fn changes_of(roots: &[root::Root], touched: &[plan::Touched]) -> Vec<KeptChange> {
    touched
        .iter()
        .filter_map(|touched| {
            Some(KeptChange {
                root: roots.get(touched.root)?.path.clone(),
                path: touched.path.clone(),
                verb: touched.verb,
            })
        })
        .collect()
}

fn io_error(
    operation: &'static str,
    place: impl Into<String>,
    source: impl Into<io::Error>,
) -> JournalError {
    JournalError::Io {
        operation,
        place: place.into(),
        source: source.into(),
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io {
                operation,
                place,
                source,
            } => write!(f, "cannot {operation} the journal `{place}`: {source}"),
            Self::Busy(place) => write!(
                f,
                "the journal `{place}` is in use by another process; wait for its end"
            ),
            Self::NotOurs(place, why) => write!(
                f,
                "the journal `{place}` is not used: {why}; move it away and start again"
            ),
            Self::Broken(place, why) => write!(
                f,
                "a commit in the journal could not be taken back: {why}; it is kept as `{place}`, compare the files it names with what they should be"
            ),
            Self::Foreign(place) => write!(
                f,
                "the commit in `{place}` was written by another version of hermitcrab, which this one cannot read; nothing was touched, use the version that wrote it, or a newer one"
            ),
            Self::Unknown(id) => write!(f, "there is no commit {id} in the journal"),
            Self::Unreached(unreached) => write!(f, "{unreached}"),
            Self::Waits(id, at) => write!(
                f,
                "commit {id} is half done in `{}`, whose file system does not answer, and is taken back before anything else is done there; have it answer, then try again (only if it is gone for good, `hermitcrab undo --forget {id}` gives the commit up)",
                at.display()
            ),
        }
    }
}

impl std::error::Error for JournalError {}
