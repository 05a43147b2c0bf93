//! Transactions that are half done where a file system does not answer, or in a directory
//! that cannot be reached.
//!
//! What for: what is half done is taken back before anything is done on top of it, and where
//! nobody answers that cannot be, nor where nothing is any more. All else goes on meanwhile: such a transaction has a name of
//! its own, and stands in the way of nothing but what concerns the same directories.
//!
//! While the thread that was left in it is at its last step, it holds the entry, and nobody
//! takes it up.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::RenameFlags;

use super::entry::{Entry, WAITING, dir_name};
use super::plan::Root;
use super::recover::{self, Finished, OPEN_MAX, open_in_time};
use super::{CommitId, Journal, JournalError, io_error};

/// How long one that waits is asked for when a journal is opened: nobody there need be
/// concerned.
const GLANCE_MAX: Duration = Duration::from_secs(1);

impl Journal {
    /// Names every transaction that is not finished as one that waits. Only who has the lock
    /// may, or who was left by who has.
    pub(super) fn have_unfinished_wait(&self) -> Result<(), JournalError> {
        for number in self.listed()?.numbers {
            let Some(entry) = Entry::open_if_there(self, number)? else {
                continue;
            };
            if entry.is_unfinished()? {
                self.have_wait(&entry)?;
            }
        }
        Ok(())
    }

    /// Says where it lies then.
    pub(super) fn have_wait(&self, entry: &Entry<'_>) -> Result<PathBuf, JournalError> {
        let plain = dir_name(entry.number);
        let waiting = format!("{WAITING}{plain}");
        self.name_entry(&plain, &waiting)?;
        Ok(Path::new(&self.place).join(waiting))
    }

    fn name_entry(&self, from: &str, to: &str) -> Result<(), JournalError> {
        self.pass("name an entry", &self.place)?;
        rustix::fs::renameat_with(&self.dir, from, &self.dir, to, RenameFlags::NOREPLACE)
            .map_err(|errno| io_error("name an entry of", &self.place, errno))?;
        self.flush()
    }

    /// Those that still wait, each with a directory it is about, as the journal is opened.
    pub(super) fn glance_at_waiting(&self) -> Result<Vec<(CommitId, PathBuf)>, JournalError> {
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
        let still = self.take_up(&finished.waiting, OPEN_MAX, &concerns)?;
        if let Some((id, at)) = still.into_iter().next() {
            return Err(JournalError::Waits(id, at));
        }
        let found = recover::recover(self)?;
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

    /// Has those that are about such a directory, and answer, be unfinished ones like any
    /// other; says which of them wait still.
    fn take_up(
        &self,
        waiting: &[u64],
        patience: Duration,
        concerns: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<(CommitId, PathBuf)>, JournalError> {
        let mut still = Vec::new();
        for number in waiting {
            let Some(entry) = Entry::open_waiting(self, *number)? else {
                continue;
            };
            let roots = match entry.brief() {
                Ok(brief) => brief.map(|brief| brief.roots).unwrap_or_default(),
                // It is told and set aside like any other that does not hold.
                Err(JournalError::Broken(..)) => Vec::new(),
                Err(error) => return Err(error),
            };
            let path = |root: &Root| Path::new(OsStr::from_bytes(&root.path)).to_owned();
            let is_such = roots.is_empty() || roots.iter().any(|root| concerns(&path(root)));
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
                Some(root) => still.push((CommitId(*number), path(root))),
                None => {
                    let plain = dir_name(*number);
                    self.name_entry(&format!("{WAITING}{plain}"), &plain)?;
                }
            }
        }
        Ok(still)
    }
}
