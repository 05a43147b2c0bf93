//! A second name of a file, for git, which goes by numbers.
//!
//! What for: an overlay copies a file of before that gets a second name, and the new name has
//! the number of the copy. `git clone` of a directory compares the number under the
//! new name with the one it saw under the old, and gives up where they are not the same:
//! somebody might have put another file there. Where a link cannot be made it copies instead.

use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, statat, unlinkat};
use rustix::io::Errno;

use super::super::call::Ends;
use super::{linked, named};

/// Gives the second name, unless that would be known by another number: `EXDEV` then, as
/// between file systems.
pub(super) fn given(ends: &Ends) -> rustix::io::Result<()> {
    let (Some(from), Some(to)) = (named(&ends.from)?, named(&ends.to)?) else {
        let dirs = [ends.from.base.as_fd(), ends.to.base.as_fd()];
        return linked(dirs, [&ends.from.path, &ends.to.path]);
    };
    let before = statat(&from.dir, &from.name, AtFlags::SYMLINK_NOFOLLOW)?;
    let dirs = [from.dir.as_fd(), to.dir.as_fd()];
    linked(dirs, [&from.spelled, &to.spelled])?;
    let made = statat(&to.dir, &to.name, AtFlags::SYMLINK_NOFOLLOW)?;
    if (made.st_dev, made.st_ino) == (before.st_dev, before.st_ino) {
        return Ok(());
    }
    unlinkat(&to.dir, &to.name, AtFlags::empty())?;
    Err(Errno::XDEV)
}
