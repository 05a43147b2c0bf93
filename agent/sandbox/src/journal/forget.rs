//! Giving up what a commit displaced, so that it can never be taken back.
//!
//! What for: what is kept takes room, and the disk may be full before anything is too much by
//! the bounds of [`retain`](super::retain). A person says which commits go. One that is half
//! done, or that could not be taken back whole, never goes by this: what it displaced may be
//! the only copy there is.
//!
//! A number is never given twice: one that went with the newest commit stays noted, for a
//! session may still know the commit by it.

use std::fmt;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, Mode, OFlags};

use super::entry::{Entry, State, dir_name};
use super::{CommitId, Journal, JournalError, io_error};

/// How the name of the note begins that says which number was given last.
pub(super) const LAST: &str = "last-";

/// Why nothing was forgotten.
#[derive(Debug)]
pub enum ForgetError {
    /// The journal cannot be used, or does not hold one of them.
    Journal(JournalError),
    /// This one could neither be finished nor taken back; what it displaced lies there.
    Stuck(CommitId, String),
    /// It failed in the midst of it; these are gone.
    Partly(Vec<CommitId>, JournalError),
}

impl Journal {
    /// Removes commits with all that is kept of them. All of them, or, where one cannot be
    /// removed by its state, none.
    ///
    /// # Errors
    /// See [`ForgetError`].
    pub fn forget(&self, ids: &[CommitId]) -> Result<(), ForgetError> {
        let finished = self.lock_finished().map_err(ForgetError::Journal)?;
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let mut entries = Vec::new();
        for id in &ids {
            entries.push(self.forgettable(*id)?);
        }
        let mut gone = Vec::new();
        // The oldest first: the note of the last number finds room, where there was none.
        for (id, entry) in ids.iter().zip(entries) {
            let is_last = id.0.saturating_add(1) >= finished.next;
            let noted = if is_last {
                self.note_last(id.0)
            } else {
                Ok(())
            };
            if let Err(error) = noted.and_then(|()| entry.remove()) {
                return Err(match gone.is_empty() {
                    true => ForgetError::Journal(error),
                    false => ForgetError::Partly(gone, error),
                });
            }
            gone.push(*id);
        }
        Ok(())
    }

    fn forgettable(&self, id: CommitId) -> Result<Entry<'_>, ForgetError> {
        let unknown = || ForgetError::Journal(JournalError::Unknown(id));
        let entry = Entry::open_if_there(self, id.0).map_err(ForgetError::Journal)?;
        let entry = entry.ok_or_else(unknown)?;
        match entry.state().map_err(ForgetError::Journal)? {
            Some(State::Committed) => Ok(entry),
            Some(State::Stuck) => Err(ForgetError::Stuck(id, entry.place())),
            Some(State::Opening | State::Planned | State::Dropped) | None => Err(unknown()),
        }
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
            Self::Stuck(id, place) => write!(
                f,
                "commit {id} was cut off and could not be taken back whole, so it is not forgotten: what it displaced may be nowhere but in `{place}`; compare that with what is there now, and remove it yourself if it is not wanted"
            ),
            Self::Partly(gone, error) => {
                let gone: Vec<String> = gone.iter().map(CommitId::to_string).collect();
                write!(
                    f,
                    "{error}; forgotten until then: commit {}",
                    gone.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for ForgetError {}
