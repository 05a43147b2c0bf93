//! A thing that gets another name, whatever it holds.
//!
//! Nothing of it is staged: the step is one rename, bound to the very thing that
//! was there when the move was asked for. Another thing under the same name is
//! never moved, neither there nor back; and where a command saw what it holds, it
//! only stays under its new name while it holds that.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::besides::{Besides, counting};
use super::ground::{Back, Fit, Ground, changed, failed, parent_of, renamed, undone};
use crate::changeset::node::{Fingerprint, fingerprint, read_tree};
use crate::dircap::open::open_parent;
use crate::dircap::{FsError, Thing, is_missing};

/// Moves it, and gives it back if it was not what is meant.
pub(super) fn forward(
    ground: &Ground<'_>,
    from: &RelPath,
    to: &RelPath,
    (what, holds): (Thing, Option<Fingerprint>),
) -> Result<(), FsError> {
    let is_meant = |thing| fault::is(Fault::MoveTakesAnything) || thing == Some(what);
    if holds.is_none() && !is_meant(Thing::at(ground.root, from)?) {
        return Err(changed(from));
    }
    let (old, old_name) = parent_of(ground.root, from)?;
    let (new, new_name) = parent_of(ground.root, to)?;
    let (old, new) = ((old.as_fd(), old_name), (new.as_fd(), new_name));
    rename(ground, &old, &new, (to, "move"))?;
    // Somebody may have put another thing there between the look and the rename, or, where it
    // is known by what it holds, have written into it.
    let stands = match holds {
        Some(_) => ground.state_of_target(to)? == holds,
        None => {
            is_meant(Thing::read(new.0, &new.1).map_err(|errno| FsError::io("look at", to, errno))?)
        }
    };
    if stands {
        return Ok(());
    }
    rename(ground, &new, &old, (from, "give back"))?;
    Err(changed(from))
}

/// Takes the move back if it was made.
pub(super) fn backward(
    ground: &Ground<'_>,
    from: &RelPath,
    to: &RelPath,
    (what, holds): (Thing, Option<Fingerprint>),
) -> Result<Back, FsError> {
    let here = Thing::at(ground.root, from)?;
    let there = Thing::at(ground.root, to);
    if here == Some(what) && !there.as_ref().is_ok_and(|there| *there == Some(what)) {
        // It never left, whatever may keep its new place from being looked at.
        return Ok(Back::Done);
    }
    let there = there?;
    // A file system of layers may have given it another number as it was moved.
    let holds_it = || Ok::<_, FsError>(holds.is_some() && ground.state_of_target(to)? == holds);
    if there == Some(what) || (here.is_none() && there.is_some() && holds_it()?) {
        // Whatever it holds by now: nobody else has it, and it was never to be moved.
        let what = there.unwrap_or(what);
        return undone(forward(ground, to, from, (what, None)));
    }
    // With a name in its old place, or none in the new one, nothing waits to be
    // brought back. Something else in the new place may be what became of it.
    Ok(if here.is_some() || there.is_none() {
        Back::Done
    } else {
        Back::Kept
    })
}

/// Whether what is at a name holds what it is to hold, or at least what counts of it. Which
/// thing it is does not matter: the step is bound to the one that is there when it is made.
pub(super) fn fits(
    root: BorrowedFd<'_>,
    path: &RelPath,
    holds: Fingerprint,
    counts: Option<(Fingerprint, &dyn Besides)>,
) -> Result<Fit, FsError> {
    let (parent, name) = match open_parent(root, path) {
        Err(FsError::Denied(_)) => return Ok(Fit::Not),
        Err(FsError::Io { source, .. }) if is_missing(&source) => return Ok(Fit::Not),
        found => found?,
    };
    let tree =
        read_tree(parent.as_fd(), &name).map_err(|source| failed("look at", path, source))?;
    let found = fingerprint(&tree);
    let is_what_counts = || {
        let (counts, besides) = counts?;
        Some(counting(besides, path, &tree, (root, path))? == counts)
    };
    Ok(match tree.is_empty() {
        true => Fit::Not,
        false if found == holds => Fit::Exactly,
        false if is_what_counts() == Some(true) => Fit::AsFarAsItCounts(found),
        false => Fit::Not,
    })
}

type Name<'a> = (BorrowedFd<'a>, Vec<u8>);

fn rename(
    ground: &Ground<'_>,
    from: &Name<'_>,
    to: &Name<'_>,
    (path, step): (&RelPath, &'static str),
) -> Result<(), FsError> {
    ground
        .steps
        .pass(step)
        .map_err(|source| failed(step, path, source))?;
    let flags = if fault::is(Fault::MoveReplaces) {
        RenameFlags::empty()
    } else {
        RenameFlags::NOREPLACE
    };
    let done = rustix::fs::renameat_with(from.0, from.1.as_slice(), to.0, to.1.as_slice(), flags);
    if done == Err(Errno::XDEV) {
        // A copy would be another thing, which could not be told from a stranger's.
        let why = "the file system does not move it as one (it lies on another one, or in a layer below); copy it, and delete it when the copy is right";
        let why = io::Error::new(io::ErrorKind::CrossesDevices, why);
        return Err(failed(step, path, why));
    }
    renamed(done, step, path)
}
