//! Another one of what can be known by itself alone.
//!
//! What for: a pipe, a socket, and a file its owner cannot read get another name where they
//! are moved, and no copy can be made of them by reading. But a journal may lie on another
//! file system than the workspace, where nothing gets a name: so there is one like it, and
//! what counts from then on is that one.
//!
//! It must never stand for something other than what was looked at, and never leave a file
//! open to more than its mode says.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};

use crate::changeset::copy::times;
use crate::changeset::node::{Holds, Node, itself, mode_of, xattrs_of};
use crate::dircap::FsError;
use crate::dircap::open::{Links, open_beneath, open_parent, stat_name};

/// How files are opened to be copied.
pub(super) const TO_READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW);

/// Opens a file whose mode lets its owner not read it. For anybody but root it has another
/// mode for that moment, in which it lets its owner read it and nobody else do more.
pub(super) fn open_shut(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    node: &mut Node,
) -> Result<OwnedFd, FsError> {
    let io = |errno| FsError::io("open", path, errno);
    let held = open_beneath(dir, path, OFlags::PATH | OFlags::NOFOLLOW, Links::Refuse)?;
    let stat = rustix::fs::fstat(&held).map_err(io)?;
    if itself(&stat) != node.holds {
        return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
    }
    let by_itself = format!("/proc/self/fd/{}", held.as_raw_fd());
    // The name leads to what is held, and is no link of anybody's.
    let flags = TO_READ.difference(OFlags::NOFOLLOW);
    let open = || rustix::fs::open(&by_itself, flags, Mode::empty());
    // Attributes are read like the content, but each time only if that may be read then.
    let read = |file: OwnedFd| xattrs_of(file.as_fd()).map(|xattrs| (file, xattrs));
    let found = match open() {
        Err(rustix::io::Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(mode_of(&stat));
            rustix::fs::chmod(&by_itself, mode | Mode::RUSR).map_err(io)?;
            let found = open().map(read);
            rustix::fs::chmod(&by_itself, mode).map_err(io)?;
            found
        }
        opened => opened.map(read),
    };
    let (file, xattrs) = found.map_err(io)?.map_err(|source| FsError::Io {
        operation: "read the attributes of",
        path: path.clone(),
        source,
    })?;
    node.xattrs = xattrs;
    Ok(file)
}

/// Makes a pipe, socket or device like this one, and says in `node` which it is now.
pub(super) fn special(
    (dir, from): (BorrowedFd<'_>, &RelPath),
    (area, to): (BorrowedFd<'_>, &RelPath),
    node: &mut Node,
    ids: impl Fn(&Stat) -> (Option<Uid>, Option<Gid>),
) -> Result<(), FsError> {
    let known = |stat: &Stat| Holds::Special {
        device: stat.st_rdev,
        inode: stat.st_ino,
    };
    let look = |dir: BorrowedFd<'_>, path: &RelPath| {
        let (parent, name) = open_parent(dir, path)?;
        let stat = stat_name(parent.as_fd(), &name, path)?;
        stat.ok_or_else(|| FsError::denied(DenialCode::ChangedSinceShown, path))
    };
    let stat = look(dir, from)?;
    if known(&stat) != node.holds {
        return Err(FsError::denied(DenialCode::ChangedSinceShown, from));
    }
    let io = |errno| FsError::io("make another one of", from, errno);
    let (parent, name) = open_parent(area, to)?;
    let (kind, name) = (FileType::from_raw_mode(stat.st_mode), name.as_slice());
    rustix::fs::mknodat(&parent, name, kind, Mode::empty(), stat.st_rdev).map_err(io)?;
    let (owner, group) = ids(&stat);
    // As with files: an ordinary user gives none away.
    let _given = rustix::fs::chownat(&parent, name, owner, group, AtFlags::SYMLINK_NOFOLLOW);
    rustix::fs::chmodat(
        &parent,
        name,
        Mode::from_raw_mode(node.mode),
        AtFlags::empty(),
    )
    .map_err(io)?;
    rustix::fs::utimensat(&parent, name, &times(&stat), AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
    node.holds = known(&look(area, to)?);
    Ok(())
}
