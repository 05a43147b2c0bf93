//! A file that gets another mode in its place.
//!
//! It has no other name, so nothing outside changes with it: one that has is replaced as a
//! whole. The step is bound to what the file was when it was looked at, its content included,
//! and what it comes to is compared afterwards. Whether it was taken is seen by its mode.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::ground::{Back, Fit, Ground, changed, failed, parent_of, state_of};
use crate::changeset::in_place::OtherMode;
use crate::changeset::node::mode_of;
use crate::dircap::open::open_parent;
use crate::dircap::{FsError, Kind, Thing};

/// Gives it the mode, and the one before if it was not what is meant.
pub(super) fn forward(
    ground: &Ground<'_>,
    path: &RelPath,
    change: OtherMode,
) -> Result<(), FsError> {
    let file = open(ground.root, path)?.ok_or_else(|| changed(path))?;
    // By its number as well: the mode is given to what was opened, whatever has the name then.
    let is_it = stat(&file, path)?.st_ino == change.what.inode && is_alone(&file, path)?;
    if !is_it || ground.state_of_target(path)? != Some(change.states.0) {
        return Err(changed(path));
    }
    set(ground, &file, path, change.modes.1)?;
    // By its name: somebody may have put another file there between the looks.
    if ground.state_of_target(path)? == Some(change.states.1) {
        return Ok(());
    }
    set(ground, &file, path, change.modes.0)?;
    Err(changed(path))
}

/// Gives it the mode of before if it got the other.
pub(super) fn backward(
    ground: &Ground<'_>,
    path: &RelPath,
    change: OtherMode,
) -> Result<Back, FsError> {
    let Some(file) = open(ground.root, path)? else {
        // Whoever removed it, or put something else there, has left nothing to take back.
        return Ok(Back::Done);
    };
    let is_it = stat(&file, path)?.st_ino == change.what.inode;
    if !is_it || Thing::at(ground.root, path)? != Some(change.what) {
        // A file system of layers may have given it another number as its mode was changed.
        let is_done = ground.state_of_target(path)? == Some(change.states.1);
        return Ok(if is_done { Back::Kept } else { Back::Done });
    }
    // A mode that is neither is one that somebody gave it since, and stands.
    if mode_of(&stat(&file, path)?) == change.modes.1 {
        set(ground, &file, path, change.modes.0)?;
    }
    Ok(Back::Done)
}

/// Whether what is at a name is as the step expects it.
pub(super) fn fits(
    root: BorrowedFd<'_>,
    path: &RelPath,
    change: OtherMode,
) -> Result<Fit, FsError> {
    let file = match open(root, path) {
        Err(FsError::Denied(_)) => return Ok(Fit::Not),
        opened => opened?,
    };
    let Some(file) = file else {
        return Ok(Fit::Not);
    };
    let found = state_of(root, path)?;
    Ok(match found {
        found if found == Some(change.states.0) && is_alone(&file, path)? => Fit::Exactly,
        found if found == Some(change.states.1) => Fit::Already,
        _ => Fit::Not,
    })
}

/// Waits until its mode is on the disk.
pub(super) fn flush(root: BorrowedFd<'_>, path: &RelPath) -> Result<(), Errno> {
    let readable = open_parent(root, path).ok().and_then(|(parent, name)| {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&parent, name.as_slice(), flags, Mode::empty()).ok()
    });
    match readable {
        Some(file) => rustix::fs::fsync(&file),
        // One its owner cannot read is on the disk with all else.
        None => rustix::fs::syncfs(root),
    }
}

/// The file itself, whatever its mode; `None` where there is none.
fn open(root: BorrowedFd<'_>, path: &RelPath) -> Result<Option<OwnedFd>, FsError> {
    let (parent, name) = parent_of(root, path)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&parent, name.as_slice(), flags, Mode::empty());
    let file = match opened {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        opened => opened.map_err(|errno| FsError::io("open", path, errno))?,
    };
    let is_file = crate::changeset::node::kind_of(&stat(&file, path)?) == Kind::File;
    Ok(is_file.then_some(file))
}

fn stat(file: &OwnedFd, path: &RelPath) -> Result<rustix::fs::Stat, FsError> {
    rustix::fs::fstat(file).map_err(|errno| FsError::io("stat", path, errno))
}

fn is_alone(file: &OwnedFd, path: &RelPath) -> Result<bool, FsError> {
    Ok(stat(file, path)?.st_nlink == 1)
}

fn set(ground: &Ground<'_>, file: &OwnedFd, path: &RelPath, mode: u32) -> Result<(), FsError> {
    let on_the_way = |source: io::Error| failed("set the mode of", path, source);
    ground.steps.pass("set a mode").map_err(on_the_way)?;
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmod(&itself, Mode::from_raw_mode(mode))
        .map_err(|errno| FsError::io("set the mode of", path, errno))
}
