//! Giving up what a commit displaced, so that it can never be taken back.
//!
//! What for: what is kept takes room, and the disk may be full before anything is too much by
//! the bounds of [`retain`](super::retain). A person says which commits go. One that could not
//! be taken back whole never goes by this: what it displaced may be the only copy there is.
//! One that is half done goes only where it cannot be taken back, for a directory that is not
//! there: it may be gone for good, which only a person can know.
//!
//! A number is never given twice: one that went with the newest commit stays noted, for a
//! session may still know the commit by it.

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, Mode, OFlags};

use super::entry::{Entry, State, dir_name};
use super::reach::OPEN_MAX;
use super::recover::{Finished, give_up, recover};
use super::waiting::TakenUp;
use super::{CommitId, Journal, JournalError, io_error};

/// How the name of the note begins that says which number was given last.
pub(super) const LAST: &str = "last-";

/// Why nothing was forgotten.
#[derive(Debug)]
pub enum ForgetError {
    /// The journal cannot be used, or does not hold one of them.
    Journal(JournalError),
    /// This one could neither be finished nor taken back; what it displaced lies there. Those
    /// before it are gone.
    Stuck(CommitId, String, Vec<CommitId>),
    /// It failed in the midst of it; these are gone.
    Partly(Vec<CommitId>, JournalError),
}

impl Journal {
    /// Removes commits with all that is kept of them. All of them, or, where one cannot be
    /// removed by its state, none. One that waits for a directory which is back is taken back
    /// instead; those are returned. That one which waits cannot be given up may turn out in the
    /// midst of it.
    ///
    /// # Errors
    /// See [`ForgetError`].
    pub fn forget(&self, ids: &[CommitId]) -> Result<Vec<CommitId>, ForgetError> {
        let finished = self.lock_finished().map_err(ForgetError::Journal)?;
        let ids: BTreeSet<CommitId> = ids.iter().copied().collect();
        let taken_back = self
            .take_back_first(&finished, &ids)
            .map_err(ForgetError::Journal)?;
        let mut entries = Vec::new();
        for id in ids.difference(&taken_back) {
            entries.push((id, self.forgettable(*id)?));
        }
        // Those that wait first: one of them may stay after all, and with it the others. Then
        // the oldest: the note of the last number finds room, where there was none.
        entries.sort_by_key(|(_, entry)| !entry.is_waiting());
        let mut gone = Vec::new();
        for (id, entry) in entries {
            let is_last = id.0.saturating_add(1) >= finished.next;
            let noted = if is_last {
                self.note_last(id.0)
            } else {
                Ok(())
            };
            let place = entry.place_then();
            let removed = noted.and_then(|()| match entry.is_waiting() {
                true => give_up(self, entry),
                false => entry.remove().map(|()| Vec::new()),
            });
            match removed {
                Ok(stuck) if stuck.is_empty() => gone.push(*id),
                Ok(_) => return Err(ForgetError::Stuck(*id, place, gone)),
                Err(error) if gone.is_empty() => return Err(ForgetError::Journal(error)),
                Err(error) => return Err(ForgetError::Partly(gone, error)),
            }
        }
        Ok(taken_back.into_iter().collect())
    }

    fn forgettable(&self, id: CommitId) -> Result<Entry<'_>, ForgetError> {
        let unknown = || ForgetError::Journal(JournalError::Unknown(id));
        let plain = Entry::open_if_there(self, id.0).map_err(ForgetError::Journal)?;
        let entry = match plain {
            Some(entry) => Some(entry),
            None => Entry::open_waiting(self, id.0).map_err(ForgetError::Journal)?,
        };
        let entry = entry.ok_or_else(unknown)?;
        match entry.state().map_err(ForgetError::Journal)? {
            Some(State::Committed) => Ok(entry),
            Some(State::Stuck) => Err(ForgetError::Stuck(id, entry.place(), Vec::new())),
            Some(State::Opening | State::Planned) if entry.is_waiting() => match entry.hold() {
                true => Ok(entry),
                // Somebody who was left is at a step of it.
                false => Err(ForgetError::Journal(self.waits_still(&entry))),
            },
            Some(State::Opening | State::Planned | State::Dropped) | None => Err(unknown()),
        }
    }

    /// Takes back those of these that wait and can be; says which were.
    fn take_back_first(
        &self,
        finished: &Finished,
        ids: &BTreeSet<CommitId>,
    ) -> Result<BTreeSet<CommitId>, JournalError> {
        let waiting = finished.waiting.iter().copied();
        let waiting: Vec<u64> = waiting.filter(|id| ids.contains(&CommitId(*id))).collect();
        if waiting.is_empty() {
            return Ok(BTreeSet::new());
        }
        let TakenUp { ready, .. } = self.take_up(&waiting, OPEN_MAX, &|_| true)?;
        let mut found = recover(self, &ready)?;
        // What is given up is not told once more as what waits.
        found.waiting.retain(|(id, _)| !ids.contains(id));
        found.unreached.retain(|one| !ids.contains(&one.id));
        self.note_found(found);
        let left = self.listed()?;
        let is_gone = |id: &u64| !left.numbers.contains(id) && !left.waiting.contains(id);
        let gone = waiting.into_iter().filter(is_gone);
        Ok(gone.map(CommitId).collect())
    }

    /// Notes a number as given. It is a name and no content: that takes the least room.
    fn note_last(&self, last: u64) -> Result<(), JournalError> {
        let name = |number: u64| format!("{LAST}{}", dir_name(number));
        let before = self.listed()?.noted;
        self.pass("note the last number", &self.place)?;
        rustix::fs::openat(
            &self.dir,
            name(last),
            OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| io_error("note the last number in", &self.place, errno))?;
        self.flush()?;
        for older in before.into_iter().filter(|older| *older < last) {
            // Where it stays it says less than the other, and nothing is wrong.
            let _gone = rustix::fs::unlinkat(self.dir.as_fd(), name(older), AtFlags::empty());
        }
        Ok(())
    }
}

impl fmt::Display for ForgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => error.fmt(f),
            Self::Stuck(id, place, gone) => write!(
                f,
                "commit {id} was cut off and could not be taken back whole, so it is not forgotten: what it displaced may be nowhere but in `{place}`; compare that with what is there now, and remove it yourself if it is not wanted{}",
                until_then(gone)
            ),
            Self::Partly(gone, error) => write!(f, "{error}{}", until_then(gone)),
        }
    }
}

/// Which were forgotten before it failed.
fn until_then(gone: &[CommitId]) -> String {
    if gone.is_empty() {
        return String::new();
    }
    let gone: Vec<String> = gone.iter().map(CommitId::to_string).collect();
    format!("; forgotten until then: commit {}", gone.join(", "))
}

impl std::error::Error for ForgetError {}
