//! The places in which things are staged: the entry, or a directory beside the workspace.

#![expect(
    clippy::result_large_err,
    reason = "a failure is made at most once for each commit, and says all there is to show"
)]

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};

use super::Journal;
use super::entry::{Entry, State, remove_tree};
use super::failed::Failed;
use super::plan::{Act, Plan};
use super::root::{Root, mount_of};
use crate::dircap::access_lists::hand_nothing_down;
use crate::dircap::append_only::{names_can_change, parent_takes_changes};
use crate::dircap::{FsError, temporary_name};

/// An open root and its staging directory.
pub(super) struct Opened {
    pub root: OwnedFd,
    pub area: OwnedFd,
    /// Whether what was staged for it is gone, and the place for it is a new one.
    pub is_lost: bool,
}

impl Journal {
    /// Opens every root and finds, or makes, a place to stage things for it.
    pub(super) fn open_grounds(
        &self,
        entry: &Entry<'_>,
        plan: &mut Plan,
        dirs: &[BorrowedFd<'_>],
    ) -> Result<Vec<Opened>, Failed> {
        let stat = |errno| FsError::io("stat", &RelPath::root(), errno);
        let own = mount_of(&entry.dir).map_err(|errno| Failed::in_journal(stat(errno)))?;
        let mut roots = Vec::new();
        for (part, dir) in dirs.iter().enumerate() {
            let root = dir.try_clone_to_owned().map_err(at_top(part, "hold"))?;
            let path = path_of(root.as_fd()).map_err(at_top(part, "name"))?;
            let mount =
                mount_of(&root).map_err(|errno| Failed::at(part, &RelPath::root(), stat(errno)))?;
            let beside = if mount == own {
                None
            } else {
                Some(temporary_name().map_err(at_top(part, "name a place for changes in"))?)
            };
            let path = path.into_os_string().into_vec();
            let spec = Root::of(root.as_fd(), path, beside).map_err(at_top(part, "stat"))?;
            plan.roots.push(spec);
            roots.push(root);
        }
        if plan.roots.iter().any(|root| root.beside.is_some()) {
            // Written down first: whoever comes after a crash must find them.
            entry
                .write(plan, State::Opening)
                .map_err(Failed::in_journal)?;
        }
        let roots = roots.into_iter().zip(&plan.roots).enumerate();
        let opened: Result<Vec<Opened>, Failed> = roots
            .map(|(part, (root, spec))| self.open_ground(entry, part, root, spec))
            .collect();
        if opened.is_err() {
            // The entry goes, and with it what names those that were made.
            clear_areas(self, plan.roots.iter().zip(dirs.iter().copied()));
        }
        opened
    }

    fn open_ground(
        &self,
        entry: &Entry<'_>,
        part: usize,
        root: OwnedFd,
        spec: &Root,
    ) -> Result<Opened, Failed> {
        if let Some(name) = &spec.beside {
            names_can_change(&root, &RelPath::root())
                .map_err(|error| Failed::at(part, &RelPath::root(), error))?;
            let made = at_top(part, "make a place for changes in");
            self.steps.pass("make a staging directory").map_err(&made)?;
            rustix::fs::mkdirat(&root, name.as_slice(), Mode::RWXU)
                .map_err(|errno| made(errno.into()))?;
        }
        let area = match spec
            .open_beside(root.as_fd())
            .map_err(at_top(part, "open"))?
        {
            Some(area) => area,
            None => entry.dir.try_clone().map_err(at_top(part, "hold"))?,
        };
        // What is staged lets nobody in whom the workspace lets into what is made in it.
        hand_nothing_down(area.as_fd()).map_err(|errno| at_top(part, "clear")(errno.into()))?;
        Ok(Opened {
            root,
            area,
            is_lost: false,
        })
    }
}

/// Where a directory is.
pub(super) fn path_of(dir: BorrowedFd<'_>) -> std::io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))
}

/// Where directories are.
pub(super) fn paths_of(dirs: &[BorrowedFd<'_>]) -> Result<Vec<PathBuf>, Failed> {
    let dirs = dirs.iter().enumerate();
    dirs.map(|(part, dir)| path_of(*dir).map_err(at_top(part, "name")))
        .collect()
}

/// Removes the staging directories beside workspaces; whether none is left. One that cannot be
/// removed now goes when the journal is opened next, if a plan names it still.
pub(super) fn clear_areas<'r>(
    journal: &Journal,
    roots: impl Iterator<Item = (&'r Root, BorrowedFd<'r>)>,
) -> bool {
    let mut are_cleared = true;
    for (spec, root) in roots {
        if let Some(name) = &spec.beside {
            are_cleared &= clear_area(journal, root, name).is_ok();
        }
    }
    are_cleared
}

/// Removes one, for good: what names it goes next, and would be missed if the power went and
/// only that had reached the disk.
pub(super) fn clear_area(
    journal: &Journal,
    root: BorrowedFd<'_>,
    name: &[u8],
) -> std::io::Result<()> {
    remove_tree(journal, root, name)?;
    journal.steps.pass("flush what is cleared")?;
    // Where they are read only by names, what is on the disk is the system's to say.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(root, c".", flags, Mode::empty())?;
    Ok(rustix::fs::fsync(&opened)?)
}

fn at_top(part: usize, operation: &'static str) -> impl Fn(std::io::Error) -> Failed {
    move |source| {
        let path = RelPath::root();
        let error = FsError::Io {
            operation,
            path: path.clone(),
            source,
        };
        Failed::at(part, &path, error)
    }
}

/// Every step can be done and taken back: none gives, takes or exchanges a name in a directory
/// that only ever gets more of them.
pub(super) fn can_be_taken(plan: &Plan, grounds: &[Opened]) -> Result<(), Failed> {
    let mut seen = BTreeSet::new();
    for op in &plan.ops {
        let Some(ground) = grounds.get(op.root) else {
            continue;
        };
        let names = match &op.act {
            Act::Meta { .. } | Act::Mode(_) => [None, None],
            Act::Move { to, .. } => [Some(&op.path), Some(to)],
            Act::Put { .. } | Act::Swap { .. } | Act::Take { .. } => [Some(&op.path), None],
        };
        for path in names.into_iter().flatten() {
            if seen.insert((op.root, path.parent())) {
                parent_takes_changes(ground.root.as_fd(), path)
                    .map_err(|error| Failed::at(op.root, path, error))?;
            }
        }
    }
    Ok(())
}
