//! Access lists (POSIX ACLs) of what takes a place, and of where it is built.
//!
//! With such a list the group's permission bits say what the list grants at most, not what
//! the group may. A file that takes another's place with its bits and without its list lets
//! the group do that; and one that was built in a directory which hands a list down lets
//! those in who are named there. So the list goes with the bits, and what is built aside is
//! built where nothing is handed down.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;

/// Whom it lets in, beside what its bits say.
const OWN: &str = "system.posix_acl_access";
/// What a directory hands down to what is made in it.
const HANDED_DOWN: &str = "system.posix_acl_default";
/// As much as the kernel takes for the value of an attribute.
const LIST_BYTES_MAX: usize = 64 * 1024;

/// The list of the file with this name, whoever may read the file.
pub(crate) fn list_of(parent: impl AsFd, name: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
    // The call takes no descriptor that is for looking only, and follows a link by name.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut list = vec![0; LIST_BYTES_MAX];
    match rustix::fs::getxattr(itself, OWN, &mut list) {
        Ok(length) => {
            list.truncate(length);
            Ok(Some(list))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Gives a file that was just made this list, or none, whatever was handed down to it. Its
/// bits are to be set afterwards.
pub(crate) fn give_list(file: BorrowedFd<'_>, list: Option<&[u8]>) -> Result<(), Errno> {
    match list {
        Some(list) => rustix::fs::fsetxattr(file, OWN, list, XattrFlags::empty()),
        None => without(file, OWN),
    }
}

/// Has a directory hand nothing down.
pub(crate) fn hand_nothing_down(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    without(dir, HANDED_DOWN)
}

fn without(file: BorrowedFd<'_>, list: &str) -> Result<(), Errno> {
    match rustix::fs::fremovexattr(file, list) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        done => done,
    }
}
