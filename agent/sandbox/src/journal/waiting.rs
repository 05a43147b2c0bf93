//! Transactions that are half done where a file system does not answer, or in a directory
//! that cannot be reached.
//!
//! What for: what is half done is taken back before anything is done on top of it, and where
//! nobody answers that cannot be, nor where nothing is any more. All else goes on meanwhile: such a
//! transaction has a name of its own until it is taken back, and stands in the way of nothing
//! but what concerns the same directories.
//!
//! While the thread that was left in it is at its last step, it holds the entry, and nobody
//! takes it up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entry::{Entry, State};
use super::reach::{OPEN_MAX, open_in_time};
use super::recover::{self, Finished};
use super::root::Root;
use super::{CommitId, Journal, JournalError, Kept};

/// How long one that waits is asked for when a journal is opened: nobody there need be
/// concerned.
const GLANCE_MAX: Duration = Duration::from_secs(1);

/// What wait and were looked at.
#[derive(Debug, Default)]
pub(super) struct TakenUp {
    /// Those that wait still, each with a directory it is about.
    pub still: Vec<(CommitId, PathBuf)>,
    /// The numbers of those that can be taken back.
    pub ready: Vec<u64>,
}

impl Journal {
    /// Names every transaction that is not finished as one that waits. Only who has the lock
    /// may, or who was left by who has.
    pub(super) fn have_unfinished_wait(&self) -> Result<(), JournalError> {
        for number in self.listed()?.numbers {
            let Some(mut entry) = Entry::open_if_there(self, number)? else {
                continue;
            };
            if entry.is_unfinished()? {
                self.have_wait(&mut entry)?;
            }
        }
        Ok(())
    }

    /// Says where it lies then.
    pub(super) fn have_wait(&self, entry: &mut Entry<'_>) -> Result<PathBuf, JournalError> {
        entry.call(true)?;
        Ok(PathBuf::from(entry.place()))
    }

    /// Those that wait, as the journal is opened.
    pub(super) fn glance_at_waiting(&self) -> Result<TakenUp, JournalError> {
        let waiting = self.listed()?.waiting;
        self.take_up(&waiting, GLANCE_MAX, &|_| true)
    }

    /// Whether something can be done in these directories: nothing is half done in one of
    /// them, one above, or one below. If something is and can be taken back, it is.
    pub(super) fn ready_for(
        &self,
        finished: &Finished,
        dirs: &[PathBuf],
    ) -> Result<(), JournalError> {
        if finished.waiting.is_empty() {
            return Ok(());
        }
        let concerns = |at: &Path| {
            let mut dirs = dirs.iter();
            dirs.any(|dir| dir.starts_with(at) || at.starts_with(dir))
        };
        let TakenUp { still, ready } = self.take_up(&finished.waiting, OPEN_MAX, &concerns)?;
        if let Some((id, at)) = still.into_iter().next() {
            return Err(JournalError::Waits(id, at));
        }
        let found = recover::recover(self, &ready)?;
        let waits = found.waiting.first().cloned();
        // All else of it is taken back, so one elsewhere is in nobody's way.
        let mut unreached = found.unreached.iter();
        let unreached = unreached.find(|one| !one.is_elsewhere && concerns(&one.at));
        let unreached = unreached.cloned();
        self.note_found(found);
        match (waits, unreached) {
            (Some((id, at)), _) => Err(JournalError::Waits(id, at)),
            (None, Some(unreached)) => Err(JournalError::Unreached(Box::new(unreached))),
            (None, None) => Ok(()),
        }
    }

    /// Says of one that waits where it does.
    pub(super) fn waits_still(&self, entry: &Entry<'_>) -> JournalError {
        let brief = entry.brief().ok().flatten();
        let root = brief.and_then(|brief| brief.roots.first().map(Root::path));
        let at = root.unwrap_or_else(|| PathBuf::from(entry.place()));
        JournalError::Waits(CommitId(entry.number), at)
    }

    /// Every commit that waits, oldest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list_waiting(&self) -> Result<Vec<Kept>, JournalError> {
        let _lock = self.lock()?;
        let mut kept = Vec::new();
        for number in self.listed()?.waiting {
            let Some(entry) = Entry::open_waiting(self, number)? else {
                continue;
            };
            match entry.plan() {
                Ok(Some(plan)) => kept.push(Kept {
                    is_waiting: true,
                    ..Kept::of(&plan, false)
                }),
                Err(error @ JournalError::Foreign(_)) => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(kept)
    }

    /// Looks at those that are about such a directory: which of them wait still, and which
    /// can be taken back like any that is unfinished. They keep their name until they are.
    pub(super) fn take_up(
        &self,
        waiting: &[u64],
        patience: Duration,
        concerns: &dyn Fn(&Path) -> bool,
    ) -> Result<TakenUp, JournalError> {
        let mut taken_up = TakenUp::default();
        for number in waiting {
            let Some(entry) = Entry::open_waiting(self, *number)? else {
                continue;
            };
            let roots = match entry.brief() {
                // What goes anyway is looked for nowhere.
                _ if entry.state()? == Some(State::Dropped) => Vec::new(),
                Ok(brief) => brief.map(|brief| brief.roots).unwrap_or_default(),
                // It is told and set aside like any other that does not hold.
                Err(JournalError::Broken(..)) => Vec::new(),
                Err(error) => return Err(error),
            };
            let is_such = roots.is_empty() || roots.iter().any(|root| concerns(&root.path()));
            if !is_such {
                continue;
            }
            let is_late = |root: &&Root| {
                let opened = open_in_time(root, patience);
                opened.is_err_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
            };
            let late = match entry.hold() {
                true => roots.iter().find(is_late),
                false => roots.first(),
            };
            match late {
                Some(root) => taken_up.still.push((CommitId(*number), root.path())),
                None => taken_up.ready.push(*number),
            }
        }
        Ok(taken_up)
    }
}
