//! A thing that gets another name, whatever it holds.
//!
//! Nothing of it is read or staged: the step is one rename, bound to the very
//! thing that was there when the move was asked for. Another thing under the
//! same name is never moved, neither there nor back.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, RenameFlags, StatxFlags};
use rustix::io::Errno;

use super::act::{Back, Ground, changed, failed, parent_of, renamed, undone};
use crate::dircap::FsError;
use crate::dircap::open::open_parent;

/// The mark of an overlay among file systems.
const OVERLAY_MAGIC: u64 = 0x794c_7630;

/// Which thing a name stands for.
///
/// A number alone is given out again once its holder is gone, so there is a
/// time beside it: that of birth; or, where a file system does not say it, or
/// gives a thing a new one when it is copied up, that of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub inode: u64,
    /// The bits of the mode that say what kind of thing it is.
    pub kind: u32,
    pub seconds: i64,
    pub nanos: u32,
}

impl Identity {
    /// Of what a name stands for; `None` if there is nothing.
    pub(crate) fn read(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Self>, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::TYPE | StatxFlags::MTIME | StatxFlags::BTIME;
        let found = match rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let is_overlay = rustix::fs::fstatfs(dir).is_ok_and(|system| {
            u64::try_from(system.f_type).is_ok_and(|kind| kind == OVERLAY_MAGIC)
        });
        let says_birth = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let time = if says_birth && !is_overlay {
            found.stx_btime
        } else {
            found.stx_mtime
        };
        Ok(Some(Self {
            inode: found.stx_ino,
            kind: u32::from(found.stx_mode) & 0o170_000,
            seconds: time.tv_sec,
            nanos: time.tv_nsec,
        }))
    }

    /// Of what a path stands for; a way that is not there leads to nothing.
    pub(crate) fn at(root: BorrowedFd<'_>, path: &RelPath) -> Result<Option<Self>, FsError> {
        let (parent, name) = match open_parent(root, path) {
            Ok(found) => found,
            Err(FsError::Denied(_)) => return Ok(None),
            Err(FsError::Io { source, .. }) if super::act::is_missing(&source) => return Ok(None),
            Err(error) => return Err(error),
        };
        Self::read(parent.as_fd(), &name).map_err(|errno| FsError::io("look at", path, errno))
    }
}

/// Moves it, and gives it back if it was not what is meant.
pub(super) fn forward(
    ground: &Ground<'_>,
    from: &RelPath,
    to: &RelPath,
    what: Identity,
) -> Result<(), FsError> {
    let takes_anything = fault::is(Fault::MoveTakesAnything);
    if !takes_anything && Identity::at(ground.root, from)? != Some(what) {
        return Err(changed(from));
    }
    let (old, old_name) = parent_of(ground.root, from)?;
    let (new, new_name) = parent_of(ground.root, to)?;
    let (old, new) = ((old.as_fd(), old_name), (new.as_fd(), new_name));
    rename(ground, &old, &new, (to, "move"))?;
    let came = Identity::read(new.0, &new.1).map_err(|errno| FsError::io("look at", to, errno))?;
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
    what: Identity,
) -> Result<Back, FsError> {
    let (there, here) = (
        Identity::at(ground.root, to)?,
        Identity::at(ground.root, from)?,
    );
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
