//! Which thing a name stands for, whatever it holds.

use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::authority::Extent;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Errno;

use super::error::{FsError, is_missing};
use super::open::open_parent;

/// The mark of an overlay among file systems.
const OVERLAY_MAGIC: u64 = 0x794c_7630;

/// Whether a directory lies in a file system of layers.
pub(crate) fn is_overlay(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let kind = rustix::fs::fstatfs(dir)?.f_type;
    Ok(u64::try_from(kind).is_ok_and(|kind| kind == OVERLAY_MAGIC))
}

/// Which thing a name stands for.
///
/// A number alone is given out again once its holder is gone, so there is a
/// time beside it: that of birth; or, where a file system does not say it, or
/// gives a thing a new one when it is copied up, that of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    pub inode: u64,
    /// The bits of the mode that say what kind of thing it is.
    pub kind: u32,
    pub seconds: i64,
    pub nanos: u32,
}

impl Thing {
    /// How much there is of it: below a directory more goes by its name.
    pub(crate) fn extent(self) -> Extent {
        match FileType::from_raw_mode(self.kind) {
            FileType::Directory => Extent::Tree,
            _ => Extent::Alone,
        }
    }

    /// Of what a name stands for; `None` if there is nothing.
    pub(crate) fn read(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Self>, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::TYPE | StatxFlags::MTIME | StatxFlags::BTIME;
        let found = match rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let is_overlay = is_overlay(dir).unwrap_or(false);
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
            Err(FsError::Io { source, .. }) if is_missing(&source) => return Ok(None),
            Err(error) => return Err(error),
        };
        Self::read(parent.as_fd(), &name).map_err(|errno| FsError::io("look at", path, errno))
    }
}
