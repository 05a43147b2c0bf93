//! What is done before anything else: nothing unfinished stays.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::act;
use super::areas::{Opened, clear_area};
use super::back::{brought_by, never_came};
use super::commit::{Prepared, slot_of};
use super::entry::{Entry, State};
use super::failed::{NotYet, Stuck, StuckNames, StuckWhy};
use super::ground::{Ground, failed};
use super::plan::{Act, Op, Plan, Root};
use super::{CommitId, Journal, JournalError};
use crate::dircap::FsError;
use crate::patience::Patience;

/// How long a directory's file system may take: less than others wait for the journal.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(8);

/// What was found when a journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Commits that were cut off and were taken back.
    pub taken_back: Vec<CommitId>,
    /// Commits that were cut off, with the names that somebody else changed
    /// since; these were left as they are, and what they held is kept.
    pub stuck: Vec<(CommitId, Vec<Stuck>)>,
    /// Commits that were cut off in these directories, whose file system does not answer:
    /// they are taken back when it does, before anything else is done there.
    pub waiting: Vec<(CommitId, PathBuf)>,
    /// Commits that were cut off in directories that cannot be reached: they are taken back
    /// there when these are back.
    pub unreached: Vec<Unreached>,
    /// Parts that do not hold: where they are kept now, and why.
    pub broken: Vec<(String, String)>,
}

/// A commit that is half done in a directory that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Which one.
    pub id: CommitId,
    /// The directory.
    pub at: PathBuf,
    /// Why it cannot be reached, in a sentence with its name.
    pub why: String,
    /// Whether something else, or nothing, is there by now, so that it is in the way of nobody
    /// who does something there.
    pub is_elsewhere: bool,
    /// Where what it displaced is kept.
    pub kept: PathBuf,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id, at, why, kept, ..
        } = self;
        write!(
            f,
            "commit {id} was cut off, and {why}; have `{}` be there and open as it was, and what is half done in it is taken back; only if it is gone for good, remove `{}`, where what it held before is kept",
            at.display(),
            kept.display()
        )
    }
}

impl Recovered {
    /// Whether there was nothing to do.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// Takes back whatever was not finished. What does not hold is set aside.
pub(super) fn recover(journal: &Journal) -> Result<Recovered, JournalError> {
    let mut recovered = Recovered::default();
    // The newest first: it may have begun on what an older one left.
    for number in journal.numbers()?.into_iter().rev() {
        // It may have gone with the one that took it back.
        let Some(entry) = Entry::open_if_there(journal, number)? else {
            continue;
        };
        let Some(state) = entry.state()? else {
            // Nothing was written down, so nothing happened.
            entry.remove()?;
            continue;
        };
        let brief = match entry.brief_that_holds() {
            Ok(Some(brief)) => brief,
            // What goes anyway need not hold.
            _ if state == State::Dropped => {
                entry.remove()?;
                continue;
            }
            Ok(None) => continue,
            Err(JournalError::Broken(_, why)) => {
                recovered.broken.push((entry.set_aside()?, why));
                continue;
            }
            Err(error) => return Err(error),
        };
        match state {
            State::Dropped => entry.remove()?,
            State::Stuck => clear_beside(journal, &entry, &brief.roots),
            State::Committed if fault::is(Fault::FinishedIsTakenBack) => {
                take_back(journal, entry, &mut recovered)?;
            }
            State::Committed => {
                clear_beside(journal, &entry, &brief.roots);
                // It had taken that one's place; only its removal was cut off.
                if let Some(number) = brief.undoes
                    && let Ok(undone) = Entry::open(journal, number)
                {
                    undone.remove()?;
                }
            }
            State::Opening => {
                clear_beside(journal, &entry, &brief.roots);
                entry.remove()?;
            }
            State::Planned if fault::is(Fault::CutOffStays) => entry.remove()?,
            State::Planned => take_back(journal, entry, &mut recovered)?,
        }
    }
    Ok(recovered)
}

fn take_back(
    journal: &Journal,
    mut entry: Entry<'_>,
    recovered: &mut Recovered,
) -> Result<(), JournalError> {
    let mut plan = match entry.plan() {
        Ok(Some(plan)) => plan,
        Ok(None) => return Ok(()),
        Err(JournalError::Broken(_, why)) => {
            recovered.broken.push((entry.set_aside()?, why));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let id = CommitId(plan.number);
    // One that does not answer is no reason to give up what is half done there, and none to
    // do nothing elsewhere.
    let is_late = |root: &&Root| {
        let opened = open_in_time(root, OPEN_MAX);
        opened.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
    };
    let late = match entry.hold() {
        true => plan.roots.iter().find(is_late),
        // Somebody who was left is at a step of it.
        false => plan.roots.first(),
    };
    if let Some(root) = late {
        journal.have_wait(&entry)?;
        recovered.waiting.push((id, path_of(root)));
        return Ok(());
    }
    let mut unreached_before = usize::MAX;
    loop {
        let (grounds, unreached) = match open_grounds(journal, &entry, &plan) {
            Ok(opened) => opened,
            Err(why) => {
                recovered.broken.push((entry.set_aside()?, why));
                return Ok(());
            }
        };
        let prepared = Prepared {
            entry,
            plan,
            grounds,
        };
        if unreached.is_empty() {
            match prepared.take_back(journal) {
                Ok(stuck) if stuck.is_empty() => recovered.taken_back.push(id),
                Ok(stuck) => recovered.stuck.push((id, stuck)),
                Err(NotYet(waits)) => return Err(not_taken_back(journal, &waits)),
            }
            return Ok(());
        }
        let taken_back = prepared.take_back_reached(journal);
        Prepared { entry, plan, .. } = prepared;
        // Together with what cannot be put back yet where it can be reached.
        let stuck = taken_back.map_err(|NotYet(mut waits)| {
            let unreached = unreached.iter().filter_map(|(number, unopened)| {
                let root = plan.roots.get(*number)?;
                let why = StuckWhy::Failed(unopened.why.clone());
                Some(Stuck::at(root, &RelPath::root(), why))
            });
            waits.extend(unreached);
            not_taken_back(journal, &waits)
        })?;
        if unreached.len() < unreached_before {
            // What was taken back may have led to one.
            unreached_before = unreached.len();
            continue;
        }
        let kept = journal.have_wait(&entry)?;
        if !stuck.is_empty() {
            recovered.stuck.push((id, stuck));
        }
        for (number, unopened) in unreached {
            if let Some(root) = plan.roots.get(number) {
                recovered.unreached.push(Unreached {
                    id,
                    at: path_of(root),
                    why: unopened.why,
                    is_elsewhere: unopened.is_elsewhere,
                    kept: kept.clone(),
                });
            }
        }
        return Ok(());
    }
}

/// A journal that nobody else works with while this lives, and in which nothing is unfinished.
#[derive(Debug)]
pub(super) struct Finished {
    pub lock: Arc<OwnedFd>,
    /// The number of what is begun in it.
    pub next: u64,
    /// What is half done where nobody answers.
    pub waiting: Vec<u64>,
}

impl Journal {
    /// Nobody else works with the journal while this lives, and nothing unfinished is in it:
    /// what another process was killed at, or could not take back, is taken back before
    /// anything is done on top of it.
    pub(super) fn lock_finished(&self) -> Result<Finished, JournalError> {
        let lock = self.lock()?;
        // Nothing is begun while something is unfinished, so that can only be the newest.
        let mut listed = self.listed()?;
        let entry = match listed.numbers.last() {
            Some(number) => Entry::open_if_there(self, *number)?,
            None => None,
        };
        if let Some(entry) = entry
            && entry.is_unfinished()?
        {
            let found = recover(self)?;
            self.note_found(found);
            listed = self.listed()?;
        }
        if self.enter_noted()? {
            listed = self.listed()?;
        }
        Ok(Finished {
            lock,
            next: listed.last().map_or(1, |last| last.saturating_add(1)),
            waiting: listed.waiting,
        })
    }

    /// Keeps what was found for whoever asks.
    pub(super) fn note_found(&self, found: Recovered) {
        let mut since = self.found_since();
        since.taken_back.extend(found.taken_back);
        since.stuck.extend(found.stuck);
        since.waiting.extend(found.waiting);
        since.unreached.extend(found.unreached);
        since.broken.extend(found.broken);
    }

    /// What was taken back since the journal was opened, as others were cut off.
    pub fn take_recovered(&self) -> Recovered {
        std::mem::take(&mut *self.found_since())
    }

    fn found_since(&self) -> MutexGuard<'_, Recovered> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_taken_back(journal: &Journal, waits: &[Stuck]) -> JournalError {
    JournalError::Io {
        operation: "take back a commit that was cut off, of",
        place: journal.place.clone(),
        source: io::Error::other(format!(
            "{}; have these names changeable as before",
            StuckNames(waits)
        )),
    }
}

/// The directories of a plan that are open, and why others are not, by their numbers.
type Grounds = (BTreeMap<usize, Opened>, Vec<(usize, Unopened)>);

/// Opens the directories a plan is about; or says why it cannot be taken back at all.
fn open_grounds(journal: &Journal, entry: &Entry<'_>, plan: &Plan) -> Result<Grounds, String> {
    let failures = match plan.roots.iter().any(is_closed) {
        true => open_ways(journal, entry, plan),
        false => Vec::new(),
    };
    let (mut grounds, mut unreached) = (BTreeMap::new(), Vec::new());
    for (number, root) in plan.roots.iter().enumerate() {
        match open_ground(entry, root)? {
            Ok(opened) => {
                grounds.insert(number, opened);
            }
            Err(mut unopened) => {
                if unopened.may_be_closed && !failures.is_empty() {
                    unopened.why = format!("{}; {}", unopened.why, StuckNames(&failures));
                }
                unreached.push((number, unopened));
            }
        }
    }
    Ok((grounds, unreached))
}

/// Takes back the modes by which a plan closed a directory to its user, or the way to one
/// that lies in another. They come last in a directory, so they are the first that are
/// taken back, and what lies behind them can be reached then. Says which could not be: it is
/// tried again with all else, where that can be reached.
fn open_ways(journal: &Journal, entry: &Entry<'_>, plan: &Plan) -> Vec<Stuck> {
    let (brought, back) = (brought_by(plan), entry.noted_back());
    let mut failures = Vec::new();
    let mut left: Vec<(usize, &Root)> = plan.roots.iter().enumerate().collect();
    loop {
        let mut reached = Vec::new();
        left.retain(|(number, root)| match root_itself(root) {
            Some(dir) => {
                reached.push((*number, *root, dir));
                false
            }
            None => true,
        });
        if reached.is_empty() {
            return failures;
        }
        for (number, root, dir) in reached {
            let own = plan.ops.iter().enumerate();
            let own = own.filter(|(_, op)| op.root == number).rev();
            for (at, op) in own.take_while(|(_, op)| matches!(op.act, Act::Meta { .. })) {
                if back.contains(&at) {
                    continue;
                }
                let first = brought
                    .get(&(number, &op.path))
                    .filter(|first| **first < at);
                if let Err(error) = way_back(journal, (entry, root, &dir), (plan, op), first) {
                    let why = StuckWhy::Failed(error.to_string());
                    failures.push(Stuck::at(root, &op.path, why));
                }
            }
        }
    }
}

/// Takes a mode back by which a way was closed, unless what `first` was to bring never came:
/// what has that name then is nobody's that was to be changed.
fn way_back(
    journal: &Journal,
    (entry, root, dir): (&Entry<'_>, &Root, &OwnedFd),
    (plan, op): (&Plan, &Op),
    first: Option<&usize>,
) -> Result<(), FsError> {
    let beside = match first {
        Some(_) => root.open_beside(dir.as_fd()),
        None => Ok(None),
    };
    let beside = beside.map_err(|source| failed("open what is staged for", &op.path, source))?;
    let ground = |area, slot| Ground {
        steps: &journal.steps,
        root: dir.as_fd(),
        area,
        slot,
        links_lead: false,
    };
    if let Some(first) = first {
        let area = beside.as_ref().unwrap_or(&entry.dir).as_fd();
        let staged = |at| Some(ground(area, slot_of(at).as_bytes().to_vec()));
        if never_came(plan, *first, &staged)? {
            return Ok(());
        }
    }
    // A mode has no thing that is staged.
    act::backward(&ground(dir.as_fd(), Vec::new()), op).map(|_| ())
}

/// The directory a plan is about, whatever its mode, if there is a way to it.
fn root_itself(root: &Root) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path_of(root), flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&dir).ok()?;
    (stat.st_ino == root.inode).then_some(dir)
}

/// Whether a directory, or the way to it, is closed to this process.
fn is_closed(root: &Root) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open_in_time(root, OPEN_MAX) {
        // It can be listed, and what is in it not be looked at.
        Ok((dir, _)) => matches!(
            rustix::fs::openat(&dir, ".", flags, Mode::empty()),
            Err(Errno::ACCESS)
        ),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

fn open_ground(entry: &Entry<'_>, root: &Root) -> Result<Result<Opened, Unopened>, String> {
    let dir = match open_root(root) {
        Ok(dir) => dir,
        Err(unopened) => return Ok(Err(unopened)),
    };
    let failed = |error: &io::Error| {
        format!(
            "the staging directory in `{}` cannot be opened: {error}",
            path_of(root).display()
        )
    };
    let area = match root.open_beside(dir.as_fd()) {
        Ok(Some(area)) => area,
        Ok(None) => match entry.dir.try_clone() {
            Ok(area) => area,
            Err(error) => return Ok(Err(Unopened::new(error.to_string(), &error))),
        },
        // Somebody removed it, or put something else there: it does not come again.
        Err(error) if is_elsewhere(&error) => return Err(failed(&error)),
        Err(error) => return Ok(Err(Unopened::new(failed(&error), &error))),
    };
    Ok(Ok(Opened { root: dir, area }))
}

/// Whether a name was not opened since nothing that could be has it.
fn is_elsewhere(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The directory a plan is about, if it is still the same one.
pub(super) fn open_root(root: &Root) -> Result<OwnedFd, Unopened> {
    let path = path_of(root);
    match open_in_time(root, OPEN_MAX) {
        Ok((dir, inode)) if inode == root.inode => Ok(dir),
        Ok(_) => Err(Unopened {
            why: format!("`{}` is another directory now", path.display()),
            may_be_closed: false,
            is_elsewhere: true,
        }),
        Err(error) => Err(Unopened::new(
            format!("`{}` cannot be opened: {error}", path.display()),
            &error,
        )),
    }
}

/// Why the directory of a plan was not opened.
pub(super) struct Unopened {
    pub why: String,
    /// Whether a mode is what is in the way.
    pub may_be_closed: bool,
    /// Whether something else, or nothing, has its name.
    pub is_elsewhere: bool,
}

impl Unopened {
    fn new(why: String, error: &io::Error) -> Self {
        Self {
            why,
            may_be_closed: error.kind() == io::ErrorKind::PermissionDenied,
            is_elsewhere: is_elsewhere(error),
        }
    }
}

fn path_of(root: &Root) -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(&root.path)).to_owned()
}

/// Removes staging directories beside workspaces, where these still are.
fn clear_beside(journal: &Journal, entry: &Entry<'_>, roots: &[Root]) {
    if !entry.may_have_opened() {
        return;
    }
    let mut are_cleared = true;
    for root in roots {
        if let Some(name) = &root.beside {
            let dir = open_root(root);
            are_cleared &= dir.is_ok_and(|dir| clear_area(journal, dir.as_fd(), name).is_ok());
        }
    }
    if are_cleared {
        entry.forget_opening();
    }
}

/// Opens a directory with its number; whatever serves it, that ends.
pub(super) fn open_in_time(root: &Root, most: Duration) -> io::Result<(OwnedFd, u64)> {
    let path = path_of(root);
    Patience::of(most).look(move || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&dir)?;
        Ok((dir, stat.st_ino))
    })?
}
