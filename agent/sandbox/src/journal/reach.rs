//! Reaching the directories of a transaction that is to be taken back.
//!
//! What for: a directory may be gone by then, closed, or behind a way that the transaction
//! itself closed; and where it lay another one may be, in which nothing may be touched. What
//! was staged in it may be gone by itself: then what lay there is lost, and all else in it can
//! be put back.
//!
//! It must never take another directory for the one that is meant.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;

use super::act;
use super::areas::Opened;
use super::back::{brought_by, never_came};
use super::commit::slot_of;
use super::entry::Entry;
use super::failed::{Stuck, StuckNames, StuckWhy};
use super::ground::{Ground, failed};
use super::plan::{Act, Op, Plan};
use super::root::{Marks, Root, Same, mount_of};
use super::{Journal, JournalError, io_error};
use crate::changeset::node::open_dir;
use crate::dircap::FsError;
use crate::patience::Patience;

/// How long a directory's file system may take: less than others wait for the journal.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(8);

/// How the name of a note begins that what was staged in a directory is lost; the number of
/// the directory follows.
const LOST: &str = "lost-";

/// The directories of a plan that are open, and why others are not, by their numbers.
pub(super) type Grounds = (BTreeMap<usize, Opened>, Vec<(usize, Unopened)>);

/// Opens the directories a plan is about.
pub(super) fn open_grounds(
    journal: &Journal,
    entry: &Entry<'_>,
    plan: &Plan,
) -> Result<Grounds, JournalError> {
    let failures = match plan.roots.iter().any(is_closed) {
        true => open_ways(journal, entry, plan),
        false => Vec::new(),
    };
    let (mut grounds, mut unreached) = (BTreeMap::new(), Vec::new());
    for (number, root) in plan.roots.iter().enumerate() {
        match open_ground(journal, entry, (number, root))? {
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
        left.retain(|(number, root)| match root_itself(entry, root) {
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
fn root_itself(entry: &Entry<'_>, root: &Root) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(root.path(), flags, Mode::empty()).ok()?;
    let (inode, marks) = Marks::of(dir.as_fd()).ok()?;
    let is_it = root.is(inode, marks) != Same::No && is_where_it_was(entry, root, &dir);
    is_it.then_some(dir)
}

/// Whether a directory lies where things that are kept in the entry can come from it and go
/// back, if such a one is meant.
fn is_where_it_was(entry: &Entry<'_>, root: &Root, dir: &OwnedFd) -> bool {
    root.beside.is_some() || mount_of(dir).is_ok_and(|mount| Ok(mount) == mount_of(&entry.dir))
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

fn open_ground(
    journal: &Journal,
    entry: &Entry<'_>,
    (number, root): (usize, &Root),
) -> Result<Result<Opened, Unopened>, JournalError> {
    let (dir, same) = match find_root(root) {
        Ok(found) => found,
        Err(unopened) => return Ok(Err(unopened)),
    };
    if !is_where_it_was(entry, root, &dir) {
        return Ok(Err(Unopened::elsewhere(format!(
            "what is mounted at `{}` is not what was there, or is not mounted as it was",
            root.path().display()
        ))));
    }
    if is_read_only(&dir) {
        return Ok(Err(Unopened::closed(format!(
            "`{}` is on a file system that can only be read",
            root.path().display()
        ))));
    }
    let lost = entry.has_lost(number)?;
    let (area, is_lost) = match (root.open_beside(dir.as_fd()), same) {
        (Ok(Some(area)), _) => (area, lost),
        (Ok(None), _) => match entry.dir.try_clone() {
            Ok(area) => (area, false),
            Err(error) => return Ok(Err(Unopened::new(error.to_string(), &error))),
        },
        // Somebody removed it, or put something else there: it does not come again.
        (Err(error), Same::Surely) if is_elsewhere(&error) => {
            entry.note_lost(number)?;
            match anew(journal, root, &dir) {
                Ok(area) => (area, true),
                Err(error) => return Ok(Err(Unopened::new(unstaged(root, &error), &error))),
            }
        }
        // On another disk it never was.
        (Err(error), Same::Perhaps | Same::No) if is_elsewhere(&error) => {
            return Ok(Err(Unopened::elsewhere(format!(
                "{}; another file system may be mounted there, or somebody removed it",
                unstaged(root, &error)
            ))));
        }
        (Err(error), _) => return Ok(Err(Unopened::new(unstaged(root, &error), &error))),
    };
    Ok(Ok(Opened {
        root: dir,
        area,
        is_lost,
    }))
}

fn unstaged(root: &Root, error: &io::Error) -> String {
    format!(
        "`{}`, where it keeps what it displaced there, cannot be opened: {error}",
        root.beside_path().unwrap_or_default().display()
    )
}

/// An empty directory in place of one that things were staged in and that is gone.
fn anew(journal: &Journal, root: &Root, dir: &OwnedFd) -> io::Result<OwnedFd> {
    let name = root.beside.as_deref().unwrap_or_default();
    journal.steps.pass("make a staging directory")?;
    rustix::fs::mkdirat(dir, name, Mode::RWXU)?;
    open_dir(dir.as_fd(), name)
}

fn is_read_only(dir: &OwnedFd) -> bool {
    let told = rustix::fs::fstatvfs(dir);
    told.is_ok_and(|told| told.f_flag.contains(StatVfsMountFlags::RDONLY))
}

impl Entry<'_> {
    /// Notes, durably, that what was staged in a directory is gone.
    fn note_lost(&self, number: usize) -> Result<(), JournalError> {
        let failed = |errno| io_error("note what is lost in", self.place(), errno);
        self.pass("note what is lost")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&self.dir, format!("{LOST}{number}"), flags, mode).map_err(failed)?;
        self.flush()
    }

    /// Whether it is.
    fn has_lost(&self, number: usize) -> Result<bool, JournalError> {
        let name = format!("{LOST}{number}");
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(io_error("look at an entry of", self.place(), errno)),
        }
    }
}

/// Whether a name was not opened since nothing that could be has it.
fn is_elsewhere(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The directory a plan is about, if it is still the same one.
pub(super) fn open_root(root: &Root) -> Result<OwnedFd, Unopened> {
    find_root(root).map(|(dir, _)| dir)
}

/// The same, and how far that is known.
pub(super) fn find_root(root: &Root) -> Result<(OwnedFd, Same), Unopened> {
    let path = root.path();
    match open_in_time(root, OPEN_MAX) {
        Ok((dir, (inode, marks))) => match root.is(inode, marks) {
            Same::No => Err(Unopened::elsewhere(format!(
                "`{}` is another directory now",
                path.display()
            ))),
            same @ (Same::Perhaps | Same::Surely) => Ok((dir, same)),
        },
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
    pub(super) fn new(why: String, error: &io::Error) -> Self {
        Self {
            why,
            may_be_closed: error.kind() == io::ErrorKind::PermissionDenied,
            is_elsewhere: is_elsewhere(error),
        }
    }

    const fn elsewhere(why: String) -> Self {
        Self {
            why,
            may_be_closed: false,
            is_elsewhere: true,
        }
    }

    const fn closed(why: String) -> Self {
        Self {
            why,
            may_be_closed: false,
            is_elsewhere: false,
        }
    }
}

/// Opens a directory with its number and its marks; whatever serves it, that ends.
pub(super) fn open_in_time(root: &Root, most: Duration) -> io::Result<(OwnedFd, (u64, Marks))> {
    let path = root.path();
    Patience::of(most).look(move || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty())?;
        let known = Marks::of(dir.as_fd())?;
        Ok((dir, known))
    })?
}
