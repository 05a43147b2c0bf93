//! A thing that gets another name, whatever it holds.
//!
//! Nothing of it is read or staged: the step is one rename, bound to the very
//! thing that was there when the move was asked for. Another thing under the
//! same name is never moved, neither there nor back.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::ground::{Back, Ground, changed, failed, parent_of, renamed, undone};
use crate::dircap::{FsError, Thing};

/// Moves it, and gives it back if it was not what is meant.
pub(super) fn forward(
    ground: &Ground<'_>,
    from: &RelPath,
    to: &RelPath,
    what: Thing,
) -> Result<(), FsError> {
    let takes_anything = fault::is(Fault::MoveTakesAnything);
    if !takes_anything && Thing::at(ground.root, from)? != Some(what) {
        return Err(changed(from));
    }
    let (old, old_name) = parent_of(ground.root, from)?;
    let (new, new_name) = parent_of(ground.root, to)?;
    let (old, new) = ((old.as_fd(), old_name), (new.as_fd(), new_name));
    rename(ground, &old, &new, (to, "move"))?;
    let came = Thing::read(new.0, &new.1).map_err(|errno| FsError::io("look at", to, errno))?;
    if takes_anything || came == Some(what) {
        return Ok(());
    }
    // Somebody put another thing there between the look and the rename.
    rename(ground, &new, &old, (from, "give back"))?;
    Err(changed(from))
}

/// Takes the move back if it was made.
pub(super) fn backward(
    ground: &Ground<'_>,
    from: &RelPath,
    to: &RelPath,
    what: Thing,
) -> Result<Back, FsError> {
    let (there, here) = (Thing::at(ground.root, to)?, Thing::at(ground.root, from)?);
    if there == Some(what) {
        return undone(forward(ground, to, from, what));
    }
    // With a name in its old place, or none in the new one, nothing waits to be
    // brought back. Something else in the new place may be what became of it.
    Ok(if here.is_some() || there.is_none() {
        Back::Done
    } else {
        Back::Kept
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
