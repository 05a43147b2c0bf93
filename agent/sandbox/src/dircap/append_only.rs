//! Directories that only ever get more names (`chattr +a`).
//!
//! What is made under a temporary name in one can get no other name and cannot be removed
//! again, so it would lie there for good, and a commit that has begun there could be neither
//! finished nor taken back. They are told apart before anything is made.

use std::os::fd::{AsFd, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;

use super::FsError;
use super::open::open_parent;

/// Refuses a directory in which the name could be made and not given away again.
pub(crate) fn names_can_change(dir: impl AsFd, path: &RelPath) -> Result<(), FsError> {
    // What cannot be told here fails where it is done.
    match statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::empty()) {
        Ok(seen) if seen.stx_attributes.contains(StatxAttributes::APPEND) => Err(FsError::io(
            "change names in the append-only directory of",
            path,
            Errno::PERM,
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The same of the directory `path` lies in, or is to lie in, below `root`.
pub(crate) fn parent_takes_changes(root: BorrowedFd<'_>, path: &RelPath) -> Result<(), FsError> {
    let mut below = path.clone();
    loop {
        match open_parent(root, &below) {
            Ok((parent, _)) => return names_can_change(parent, path),
            // It is made by the same changes, in a directory above it.
            Err(FsError::Io { source, .. }) if super::is_missing(&source) => match below.parent() {
                Some(parent) => below = parent,
                None => return Ok(()),
            },
            Err(_) => return Ok(()),
        }
    }
}
