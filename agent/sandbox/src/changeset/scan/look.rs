//! One look at one name, with what to say where it fails.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, Mode, Stat};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::changeset::ChangeSetError;
use crate::changeset::node::{Holds, Node, xattrs_of};
use crate::dircap::open::open_parent;
use crate::dircap::{DIR_FLAGS, Kind};

pub(super) fn child_of(path: &RelPath, name: &[u8]) -> Result<RelPath, ChangeSetError> {
    path.child(name)
        .map_err(|error| failed("name", path, io::Error::other(error.to_string())))
}

pub(super) fn dir_node(
    dir: BorrowedFd<'_>,
    mode: u32,
    path: &RelPath,
) -> Result<Node, ChangeSetError> {
    Ok(Node {
        kind: Kind::Dir,
        mode,
        bytes: 0,
        holds: Holds::Names,
        xattrs: xattrs_of(dir).map_err(|error| failed("read the attributes of", path, error))?,
    })
}

pub(super) fn node_of(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Node, ChangeSetError> {
    match Node::read(dir, name) {
        Ok(Some((node, _))) => Ok(node),
        Ok(None) => Err(failed("find", path, io::ErrorKind::NotFound)),
        Err(error) => Err(failed("read", path, error)),
    }
}

pub(super) fn stat_name(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Option<Stat>, ChangeSetError> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failed("stat", path, errno)),
    }
}

/// When it was changed last.
pub(super) fn modified(stat: &Stat) -> Timespec {
    Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
    }
}

/// Whether the command wrote a file, or set its time. What comes into a layer keeps its
/// time, but for parts of a second where the layer's file system has none.
pub(super) fn is_retimed(new: &Stat, old: &Stat) -> bool {
    let (new, old) = (modified(new), modified(old));
    new != old && (new.tv_sec != old.tv_sec || new.tv_nsec != 0)
}

/// Whether git keeps its settings here. It writes them again as they were, when a branch
/// is renamed, say; nothing is built by their time, and a question about it, since they can
/// name programs, would be about nothing.
pub(super) fn is_settings_of_git(path: &RelPath) -> bool {
    let is_settings = |name: &[u8]| matches!(name, b"config" | b"config.worktree");
    path.file_name().is_some_and(is_settings) && path.components().any(|name| name == b".git")
}

pub(super) fn read_link(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Vec<u8>, ChangeSetError> {
    rustix::fs::readlinkat(dir, name, Vec::new())
        .map(std::ffi::CString::into_bytes)
        .map_err(|errno| failed("read the link", path, errno))
}

pub(super) fn failed(
    operation: &'static str,
    path: &RelPath,
    source: impl Into<io::Error>,
) -> ChangeSetError {
    ChangeSetError {
        operation,
        path: path.to_string(),
        source: source.into(),
    }
}

/// Reads a regular file below `dir`, following nothing.
pub(in crate::changeset) fn read_below(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    bytes_max: usize,
) -> io::Result<Vec<u8>> {
    let (dir, name) = dir_below(dir, path)?;
    crate::dircap::read_plain(&dir, name, bytes_max)
}

/// The same file, opened.
pub(in crate::changeset) fn open_below(dir: BorrowedFd<'_>, path: &RelPath) -> io::Result<File> {
    let (dir, name) = dir_below(dir, path)?;
    crate::dircap::open_plain(&dir, name).map(File::from)
}

/// The directory a name lies in, through no link, and the last of its components.
fn dir_below<'p>(dir: BorrowedFd<'_>, path: &'p RelPath) -> io::Result<(OwnedFd, &'p [u8])> {
    let mut names: Vec<&[u8]> = path.components().collect();
    let name = names.pop().ok_or(io::ErrorKind::IsADirectory)?;
    let mut here = dir.try_clone_to_owned()?;
    for name in names {
        here = rustix::fs::openat(&here, name, DIR_FLAGS, Mode::empty())?;
    }
    Ok((here, name))
}

/// Whether it says that something is not there any more, is something else or too long by
/// now, or may not be read.
pub(super) fn is_of_now(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::PermissionDenied
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::InvalidInput
            | Kind::FileTooLarge
    ) || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// What a name of the layer is now.
pub(crate) fn now(upper: BorrowedFd<'_>, path: &RelPath) -> Option<Stat> {
    if path.is_root() {
        return rustix::fs::fstat(upper).ok();
    }
    let (parent, name) = open_parent(upper, path).ok()?;
    stat_name(parent.as_fd(), &name, path).ok()?
}
