//! What is done before anything else: nothing unfinished stays.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};

use super::commit::{Opened, Prepared};
use super::entry::{Entry, State, remove_tree};
use super::failed::Failed;
use super::plan::Root;
use super::{CommitId, Journal, JournalError};

/// What was found when a journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Commits that were cut off and were taken back.
    pub taken_back: Vec<CommitId>,
    /// Commits that were cut off, with the names that somebody else changed
    /// since; these were left as they are, and what they held is kept.
    pub stuck: Vec<(CommitId, Vec<RelPath>)>,
    /// Parts that do not hold: where they are kept now, and why.
    pub broken: Vec<(String, String)>,
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
            State::Stuck => clear_beside(journal, &brief.roots),
            State::Committed if fault::is(Fault::FinishedIsTakenBack) => {
                take_back(journal, entry, &mut recovered)?;
            }
            State::Committed => {
                clear_beside(journal, &brief.roots);
                // It had taken that one's place; only its removal was cut off.
                if let Some(number) = brief.undoes
                    && let Ok(undone) = Entry::open(journal, number)
                {
                    undone.remove()?;
                }
            }
            State::Opening => {
                clear_beside(journal, &brief.roots);
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
    entry: Entry<'_>,
    recovered: &mut Recovered,
) -> Result<(), JournalError> {
    let plan = match entry.plan() {
        Ok(Some(plan)) => plan,
        Ok(None) => return Ok(()),
        Err(JournalError::Broken(_, why)) => {
            recovered.broken.push((entry.set_aside()?, why));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let id = CommitId(plan.number);
    let mut grounds = Vec::new();
    for root in &plan.roots {
        match open_ground(&entry, root) {
            Ok(ground) => grounds.push(ground),
            Err(why) => {
                recovered.broken.push((entry.set_aside()?, why));
                return Ok(());
            }
        }
    }
    let prepared = Prepared {
        entry,
        plan,
        grounds,
    };
    match prepared.take_back(journal) {
        Ok(stuck) if stuck.is_empty() => recovered.taken_back.push(id),
        Ok(stuck) => recovered.stuck.push((id, stuck)),
        Err(Failed { path, error, .. }) => {
            return Err(JournalError::Io {
                operation: "take back a commit of",
                place: format!("{}, at `{path}`", journal.place),
                source: std::io::Error::other(error.to_string()),
            });
        }
    }
    Ok(())
}

fn open_ground(entry: &Entry<'_>, root: &Root) -> Result<Opened, String> {
    let dir = open_root(root)?;
    let area = match root.open_beside(dir.as_fd()) {
        Ok(Some(area)) => area,
        Ok(None) => entry.dir.try_clone().map_err(|error| error.to_string())?,
        Err(error) => {
            return Err(format!(
                "the staging directory in `{}` cannot be opened: {error}",
                path_of(root).display()
            ));
        }
    };
    Ok(Opened { root: dir, area })
}

/// The directory a plan is about, if it is still the same one.
pub(super) fn open_root(root: &Root) -> Result<OwnedFd, String> {
    let path = path_of(root);
    let dir = rustix::fs::open(
        &path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| format!("`{}` cannot be opened: {errno}", path.display()))?;
    let stat = rustix::fs::fstat(&dir).map_err(|errno| errno.to_string())?;
    if stat.st_ino == root.inode {
        Ok(dir)
    } else {
        Err(format!("`{}` is another directory now", path.display()))
    }
}

fn path_of(root: &Root) -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(&root.path)).to_owned()
}

/// Removes staging directories beside workspaces, where these still are.
fn clear_beside(journal: &Journal, roots: &[Root]) {
    for root in roots {
        if let (Some(name), Ok(dir)) = (&root.beside, open_root(root)) {
            let _cleared = remove_tree(journal, dir.as_fd(), name);
        }
    }
}
