//! What is done to a file itself, where other changes put another one in its place.
//!
//! What for: the layer of a view holds a file that only got another name or mode as a copy of
//! it, and so each file of a directory that got another name. Outside neither needs one: it
//! takes no room on the disk and no longer for a large file than for a small one, and leaves
//! the file what it is besides, its number, its owner, its holes.
//!
//! A file is meant only where nothing else tells what is in the layer from what is below, the
//! time it was changed at included, which a copy that was made by hand does not have; a
//! directory where that holds for all there is in it. A name
//! is given whatever other names there are ([`super::renames`] says what is a rename); a mode only to a
//! file that has none, as it would change with it. It must never pass on anything but what the command saw: what it
//! holds is compared when the step is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::node::{Fingerprint, Holds, Node, USABLE, fingerprint};
use super::renames::{Rename, below, itself_or_above};
use super::{ChangeSet, now};
use crate::dircap::open::open_parent;
use crate::dircap::{FsError, Kind, Thing, is_overlay};

/// One that gets another name, with what is in it.
#[derive(Clone, Debug)]
pub(super) struct Renamed {
    /// Its new name.
    pub to: RelPath,
    /// Which thing it is.
    pub what: Thing,
    /// What it holds.
    pub holds: Fingerprint,
}

impl ChangeSet {
    /// All renamed ones, by their old names. `names` are the ones that are steps of their own:
    /// what comes or goes with a directory is none, and leaves the one or gets into the other.
    pub(super) fn renamed_as_they_are(
        &self,
        root: BorrowedFd<'_>,
        names: &[RelPath],
    ) -> Result<BTreeMap<RelPath, Renamed>, (RelPath, FsError)> {
        let mut found = BTreeMap::new();
        if self.runs() {
            return Ok(found);
        }
        let names: BTreeSet<&RelPath> = names.iter().collect();
        for rename in self.renames.all() {
            let step = |path: &RelPath| itself_or_above(path, |name| names.contains(name));
            let comes = step(&rename.to).is_some_and(|made| !self.before.contains_key(&made));
            let goes = step(&rename.from).is_some_and(|gone| !self.after.contains_key(&gone));
            let can_be = comes && goes && self.can_leave_and_get_there(rename);
            if !can_be || !self.is_as_it_was(root, rename) {
                continue;
            }
            let what = Thing::at(root, &rename.from);
            // One that is gone by now is a conflict, which its step tells.
            if let Some(what) = what.map_err(|error| (rename.from.clone(), error))? {
                let renamed = Renamed {
                    to: rename.to.clone(),
                    what,
                    holds: fingerprint(&below(&self.before, &rename.from)),
                };
                found.insert(rename.from.clone(), renamed);
            }
        }
        Ok(found)
    }

    /// Whether all directories on the way, where they come or go as well, let it.
    fn can_leave_and_get_there(&self, rename: &Rename) -> bool {
        let way = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent);
        let takes = |node: &Node| node.mode & USABLE == USABLE;
        let is_left = way(&rename.from)
            .all(|old| self.after.contains_key(&old) || self.before.get(&old).is_none_or(takes));
        let is_entered = way(&rename.to)
            .all(|new| self.before.contains_key(&new) || self.after.get(&new).is_none_or(takes));
        is_left && is_entered
    }

    /// Whether what has the new name in the layer is what has the old one below, and all that
    /// is in it, and one rename is all it takes.
    fn is_as_it_was(&self, root: BorrowedFd<'_>, rename: &Rename) -> bool {
        let old = below(&self.before, &rename.from);
        let top = old.get(&RelPath::root());
        let can_be_moved = top.is_some_and(|top| match top.kind {
            Kind::Dir => top.mode & USABLE == USABLE && dirs_are_moved_as_one(root, rename),
            _ => true,
        });
        can_be_moved
            && old.iter().all(|(inside, node)| match node.kind {
                Kind::Dir => true,
                Kind::File | Kind::Symlink => {
                    let look = |dir, name: &RelPath| now(dir, &name.join(inside).ok()?);
                    look(self.upper(), &rename.to)
                        .zip(look(root, &rename.from))
                        .is_some_and(|(above, there)| is_untouched(&above, &there))
                }
                _ => false,
            })
    }
}

/// Whether a directory goes from the one place to the other by one rename: an overlay, as which
/// a container has its files, refuses that, and so do file systems with others within them.
fn dirs_are_moved_as_one(root: BorrowedFd<'_>, rename: &Rename) -> bool {
    // One that is to be made comes into being where it is to be.
    let parent = |path: &RelPath| {
        let mut at = Some(path.clone());
        while let Some(name) = at {
            match open_parent(root, &name) {
                Ok((parent, _)) => return Some(parent),
                Err(_) => at = name.parent(),
            }
        }
        None
    };
    let (Some(old), Some(new)) = (parent(&rename.from), parent(&rename.to)) else {
        return false;
    };
    let device = |dir: &OwnedFd| rustix::fs::fstat(dir).map(|stat| stat.st_dev).ok();
    let is_one = device(&old).is_some_and(|of_old| device(&new) == Some(of_old));
    is_one && !is_overlay(old.as_fd()).unwrap_or(true)
}

/// A file that gets another mode, and is otherwise as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherMode {
    /// Which thing it is.
    pub what: Thing,
    /// The mode before and after.
    pub modes: (u32, u32),
    /// What there is before and after, the mode included.
    pub states: (Fingerprint, Fingerprint),
}

impl ChangeSet {
    /// Whether all that happened to a name is that its file got another mode, which it can be
    /// given in its place.
    pub(super) fn only_other_mode(
        &self,
        root: BorrowedFd<'_>,
        path: &RelPath,
    ) -> Result<Option<OtherMode>, FsError> {
        let (Some(old), Some(new)) = (self.before.get(path), self.after.get(path)) else {
            return Ok(None);
        };
        // One that its owner cannot read is not compared by what it holds.
        let is_content =
            |node: &Node| matches!(node.holds, Holds::Content(_)) && node.mode & 0o400 != 0;
        let as_new = Node {
            mode: new.mode,
            ..old.clone()
        };
        if self.runs() || !is_content(old) || !is_content(new) || as_new != *new {
            return Ok(None);
        }
        let (Some(above), Some(there)) = (now(self.upper(), path), now(root, path)) else {
            return Ok(None);
        };
        // A mode is its owner's to give: who may replace a file need not be that.
        let own = rustix::process::geteuid();
        let is_ours = own.is_root() || there.st_uid == own.as_raw();
        if !is_ours || there.st_nlink > 1 || !is_untouched(&above, &there) {
            return Ok(None);
        }
        let state = |node: &Node| fingerprint(&[(RelPath::root(), node.clone())].into());
        Ok(Thing::at(root, path)?.map(|what| OtherMode {
            what,
            modes: (old.mode, new.mode),
            states: (state(old), state(new)),
        }))
    }
}

/// Whether a copy in a layer was only given its name or mode, and is linked to nothing there.
fn is_untouched(above: &Stat, below: &Stat) -> bool {
    let time = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec);
    above.st_nlink == 1 && time(above) == time(below)
}
