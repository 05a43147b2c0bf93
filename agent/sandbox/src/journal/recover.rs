//! What is done before anything else: nothing unfinished stays.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::act;
use super::commit::{Opened, Prepared};
use super::entry::{Entry, State, remove_tree};
use super::failed::Failed;
use super::ground::Ground;
use super::plan::{Act, Plan, Root};
use super::{CommitId, Journal, JournalError};
use crate::dircap::FsError;

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
    let grounds = match open_grounds(journal, &entry, &plan)? {
        Ok(grounds) => grounds,
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
    match prepared.take_back(journal) {
        Ok(stuck) if stuck.is_empty() => recovered.taken_back.push(id),
        Ok(stuck) => recovered.stuck.push((id, stuck)),
        Err(Failed { path, error, .. }) => return Err(not_taken_back(journal, &path, &error)),
    }
    Ok(())
}

fn not_taken_back(journal: &Journal, path: &RelPath, error: &FsError) -> JournalError {
    JournalError::Io {
        operation: "take back a commit of",
        place: format!("{}, at `{path}`", journal.place),
        source: std::io::Error::other(error.to_string()),
    }
}

/// Opens the directories a plan is about; or says why one cannot be.
fn open_grounds(
    journal: &Journal,
    entry: &Entry<'_>,
    plan: &Plan,
) -> Result<Result<Vec<Opened>, String>, JournalError> {
    if plan.roots.iter().any(is_closed) {
        open_ways(journal, plan)?;
    }
    let opened = plan.roots.iter().map(|root| open_ground(entry, root));
    Ok(opened.collect())
}

/// Takes back the modes by which a plan closed a directory to its user, or the way to one
/// that lies in another. They come last in a directory, so they are the first that are
/// taken back, and what lies behind them can be reached then.
fn open_ways(journal: &Journal, plan: &Plan) -> Result<(), JournalError> {
    let mut left: Vec<(usize, &Root)> = plan.roots.iter().enumerate().collect();
    loop {
        let mut reached = Vec::new();
        left.retain(|(number, root)| match root_itself(root) {
            Some(dir) => {
                reached.push((*number, dir));
                false
            }
            None => true,
        });
        if reached.is_empty() {
            return Ok(());
        }
        for (number, dir) in reached {
            let own = plan.ops.iter().filter(|op| op.root == number);
            let modes = own.rev();
            for op in modes.take_while(|op| matches!(op.act, Act::Meta { .. })) {
                let ground = Ground {
                    steps: &journal.steps,
                    root: dir.as_fd(),
                    // A mode has no thing that is staged.
                    area: dir.as_fd(),
                    slot: Vec::new(),
                };
                act::backward(&ground, op)
                    .map_err(|error| not_taken_back(journal, &op.path, &error))?;
            }
        }
    }
}

/// The directory a plan is about, whatever its mode, if there is a way to it.
fn root_itself(root: &Root) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path_of(root), flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&dir).ok()?;
    (stat.st_ino == root.inode).then_some(dir)
}

/// Whether a directory, or the way to it, is closed to this process.
pub(super) fn is_closed(root: &Root) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path_of(root), flags, Mode::empty());
    match opened {
        // It can be listed, and what is in it not be looked at.
        Ok(dir) => matches!(
            rustix::fs::openat(&dir, ".", flags, Mode::empty()),
            Err(Errno::ACCESS)
        ),
        Err(errno) => errno == Errno::ACCESS,
    }
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
