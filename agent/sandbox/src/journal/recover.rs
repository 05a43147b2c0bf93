//! What is done before anything else: nothing unfinished stays.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;

use super::areas::clear_area;
use super::commit::Prepared;
use super::entry::{Entry, State};
use super::failed::{NotYet, Stuck, StuckNames, StuckWhy};
use super::reach::{OPEN_MAX, open_grounds, open_in_time, open_root};
use super::root::Root;
use super::{CommitId, Journal, JournalError};

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
    /// What is left of it there.
    pub left: Left,
    /// Where what it displaced is kept, but for what lies in the directory itself.
    pub kept: PathBuf,
}

/// What is left of a commit in a directory that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Some of what it was to do there.
    HalfDone,
    /// Nothing but this directory of its own.
    MadeReady(PathBuf),
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, why, kept, .. } = self;
        let at = self.at.display();
        match &self.left {
            Left::HalfDone => write!(
                f,
                "commit {id} was cut off, and {why}; have `{at}` be there and open as it was, and what is half done in it is taken back; only if it is gone for good, `hermitcrab undo --forget {id}` gives it up, with what it held before, which is kept in `{}`",
                kept.display()
            ),
            Left::MadeReady(place) => write!(
                f,
                "commit {id} was cut off before it changed anything, and {why}; have `{at}` be there and open as it was, and `{}` is removed, which is all that is left of it; only if it is gone for good, `hermitcrab undo --forget {id}` has it not be looked for any more",
                place.display()
            ),
        }
    }
}

impl Recovered {
    /// Whether there was nothing to do.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// Takes back whatever was not finished, and those of these that wait. What does not hold is
/// set aside.
pub(super) fn recover(journal: &Journal, ready: &[u64]) -> Result<Recovered, JournalError> {
    let mut recovered = Recovered::default();
    let plain = journal.numbers()?.into_iter();
    let mut numbers: Vec<_> = plain.map(|number| (number, false)).collect();
    numbers.extend(ready.iter().map(|number| (*number, true)));
    numbers.sort_unstable();
    // The newest first: it may have begun on what an older one left.
    for (number, waits) in numbers.into_iter().rev() {
        let entry = match waits {
            true => Entry::open_waiting(journal, number)?,
            false => Entry::open_if_there(journal, number)?,
        };
        // It may have gone with the one that took it back.
        if let Some(entry) = entry {
            one(journal, entry, &mut recovered)?;
        }
    }
    Ok(recovered)
}

fn one(
    journal: &Journal,
    mut entry: Entry<'_>,
    recovered: &mut Recovered,
) -> Result<(), JournalError> {
    let Some(state) = entry.state()? else {
        // Nothing was written down, so nothing happened.
        return entry.remove();
    };
    let brief = match entry.brief_that_holds() {
        Ok(Some(brief)) => brief,
        // What goes anyway need not hold.
        _ if state == State::Dropped => return entry.remove(),
        Ok(None) => return Ok(()),
        Err(JournalError::Broken(_, why)) => {
            recovered.broken.push((entry.set_aside()?, why));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match state {
        State::Dropped => entry.remove(),
        State::Committed if fault::is(Fault::FinishedIsTakenBack) => {
            take_back(journal, entry, recovered)
        }
        State::Stuck | State::Committed => {
            // It waits for nothing any more.
            entry.call(false)?;
            let _left = clear_beside(journal, &entry, &brief.roots);
            // It had taken that one's place; only its removal was cut off.
            if let Some(number) = brief.undoes.filter(|_| state == State::Committed)
                && let Ok(undone) = Entry::open(journal, number)
            {
                undone.remove()?;
            }
            Ok(())
        }
        State::Opening => unmake(entry, &brief.roots, journal, recovered),
        State::Planned if fault::is(Fault::CutOffStays) => entry.remove(),
        State::Planned => take_back(journal, entry, recovered),
    }
}

/// Clears what was made ready for one that changed nothing.
fn unmake(
    mut entry: Entry<'_>,
    roots: &[Root],
    journal: &Journal,
    recovered: &mut Recovered,
) -> Result<(), JournalError> {
    let left = clear_beside(journal, &entry, roots);
    if left.is_empty() {
        return entry.remove();
    }
    let kept = journal.have_wait(&mut entry)?;
    for (root, why) in left {
        recovered.unreached.push(Unreached {
            id: CommitId(entry.number),
            at: root.path(),
            why,
            is_elsewhere: true,
            left: Left::MadeReady(root.beside_path().unwrap_or_default()),
            kept: kept.clone(),
        });
    }
    Ok(())
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
        journal.have_wait(&mut entry)?;
        recovered.waiting.push((id, root.path()));
        return Ok(());
    }
    let mut unreached_before = usize::MAX;
    loop {
        let (grounds, unreached) = open_grounds(journal, &entry, &plan)?;
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
        let kept = journal.have_wait(&mut entry)?;
        if !stuck.is_empty() {
            recovered.stuck.push((id, stuck));
        }
        for (number, unopened) in unreached {
            if let Some(root) = plan.roots.get(number) {
                recovered.unreached.push(Unreached {
                    id,
                    at: root.path(),
                    why: unopened.why,
                    is_elsewhere: unopened.is_elsewhere,
                    left: Left::HalfDone,
                    kept: kept.clone(),
                });
            }
        }
        return Ok(());
    }
}

/// Gives up what is half done in directories that cannot be reached, of one that waits. Says
/// whether something could not be put back in those that can be: that is kept then.
pub(super) fn give_up(journal: &Journal, entry: Entry<'_>) -> Result<Vec<Stuck>, JournalError> {
    let Some(plan) = entry.plan()? else {
        return Ok(Vec::new());
    };
    if entry.state()? == Some(State::Opening) {
        let _left = clear_beside(journal, &entry, &plan.roots);
        return entry.remove().map(|()| Vec::new());
    }
    let (grounds, _) = open_grounds(journal, &entry, &plan)?;
    let prepared = Prepared {
        entry,
        plan,
        grounds,
    };
    let failed = |NotYet(waits)| not_taken_back(journal, &waits);
    let stuck = prepared.take_back_reached(journal).map_err(failed)?;
    let roots = prepared.plan.roots.clone();
    prepared
        .end_taking_back(journal, stuck)
        .map_err(|error| not_taken_back(journal, &[error.into_stuck(&roots, journal)]))
}

/// Removes staging directories beside workspaces, where these still are; says of which of
/// them that could not be done, and why.
fn clear_beside<'r>(
    journal: &Journal,
    entry: &Entry<'_>,
    roots: &'r [Root],
) -> Vec<(&'r Root, String)> {
    if !entry.may_have_opened() {
        return Vec::new();
    }
    let mut left = Vec::new();
    for root in roots {
        if let Some(name) = &root.beside {
            let cleared = open_root(root)
                .map_err(|unopened| unopened.why)
                .and_then(|dir| {
                    let failed = |error: io::Error| {
                        let place = root.beside_path().unwrap_or_default();
                        format!("`{}` cannot be removed: {error}", place.display())
                    };
                    clear_area(journal, dir.as_fd(), name).map_err(failed)
                });
            left.extend(cleared.err().map(|why| (root, why)));
        }
    }
    if left.is_empty() {
        entry.forget_opening();
    }
    left
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
            let found = recover(self, &[])?;
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
