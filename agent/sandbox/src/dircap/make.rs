//! Making directories and links, and setting permission bits: changes that have no
//! content, so that a permit is bound to a digest of what is asked for.

use std::os::fd::{AsFd, OwnedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::time::Timespec;

use super::open::open_parent;
use super::{DirCap, FsError};
use crate::digest::sha256;

/// A directory just made, whose mode is not set yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct PendingMode {
    path: RelPath,
    mode: u32,
}

impl DirCap {
    /// Makes a directory; `fs.create`, with the digest [`dir_digest`].
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if the name is taken.
    pub fn make_dir(&self, permit: Permit<'_>, path: &RelPath, mode: u32) -> Result<(), FsError> {
        let mut pending = self.make_dir_usable(permit, path, mode)?;
        let (parent, name) = open_parent(self.fd.as_fd(), path)?;
        let made = rustix::fs::statat(&parent, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| FsError::io("stat", path, errno))?;
        pending.mode = as_inherited(mode, made.st_mode);
        self.settle(&pending)
    }

    /// Makes a directory that can be filled whatever its mode will be; the
    /// mode of the permit is set by [`Self::settle`].
    pub(crate) fn make_dir_usable(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        mode: u32,
    ) -> Result<PendingMode, FsError> {
        self.spend_content(permit, Verb::FsCreate, path, dir_digest(mode))?;
        let (parent, name) = open_parent(self.fd.as_fd(), path)?;
        match rustix::fs::mkdirat(&parent, name.as_slice(), Mode::RWXU) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
            }
            Err(errno) => return Err(FsError::io("make directory", path, errno)),
        }
        rustix::fs::fsync(&parent).map_err(|errno| FsError::io("sync directory", path, errno))?;
        Ok(PendingMode {
            path: path.clone(),
            mode,
        })
    }

    /// Gives a directory the mode it was permitted with. Until then it is its
    /// owner's alone.
    pub(crate) fn settle(&self, pending: &PendingMode) -> Result<(), FsError> {
        let (parent, name) = open_parent(self.fd.as_fd(), &pending.path)?;
        chmod_name(&parent, &name, &pending.path, pending.mode)
    }

    /// Makes a symbolic link; `fs.create`, with the digest [`symlink_digest`].
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if the name is taken.
    pub fn make_symlink(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        target: &[u8],
    ) -> Result<(), FsError> {
        self.spend_content(permit, Verb::FsCreate, path, symlink_digest(target))?;
        let (parent, name) = open_parent(self.fd.as_fd(), path)?;
        match rustix::fs::symlinkat(target, &parent, name.as_slice()) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
            }
            Err(errno) => return Err(FsError::io("make link", path, errno)),
        }
        rustix::fs::fsync(&parent).map_err(|errno| FsError::io("sync directory", path, errno))
    }

    /// Sets permission bits; `fs.modify`, with the digest [`mode_digest`].
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn set_mode(&self, permit: Permit<'_>, path: &RelPath, mode: u32) -> Result<(), FsError> {
        self.spend_content(permit, Verb::FsModify, path, mode_digest(mode))?;
        if path.is_root() {
            return rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(mode))
                .map_err(|errno| FsError::io("set the mode of", path, errno));
        }
        let (parent, name) = open_parent(self.fd.as_fd(), path)?;
        chmod_name(&parent, &name, path, mode)
    }
}

/// What a permit for making a directory is bound to.
#[must_use]
pub fn dir_digest(mode: u32) -> Digest {
    sha256(format!("directory {:o}", mode & 0o7777).as_bytes())
}

/// What a permit for making a link is bound to.
#[must_use]
pub fn symlink_digest(target: &[u8]) -> Digest {
    sha256(&[b"link ", target].concat())
}

/// What a permit for setting permission bits is bound to.
#[must_use]
pub fn mode_digest(mode: u32) -> Digest {
    sha256(format!("mode {:o}", mode & 0o7777).as_bytes())
}

/// What a permit for setting the time of the last change is bound to.
#[must_use]
pub fn time_digest(time: Timespec) -> Digest {
    sha256(format!("time {}.{:09}", time.tv_sec, time.tv_nsec).as_bytes())
}

/// A mode for a directory that was just made and has this one: what it took from
/// the directory it is in, that files in it have its group, stays.
pub(crate) fn as_inherited(mode: u32, made: u32) -> u32 {
    mode | (made & Mode::SGID.as_raw_mode())
}

fn chmod_name(parent: &OwnedFd, name: &[u8], path: &RelPath, mode: u32) -> Result<(), FsError> {
    // fchmodat(2) cannot be told not to follow a link, and an unreadable file
    // cannot be opened for reading; a path descriptor serves for both.
    let file = rustix::fs::openat(
        parent,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| FsError::io("open", path, errno))?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| FsError::io("stat", path, errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => {}
        FileType::Symlink => return Err(FsError::denied(DenialCode::SymlinkRefused, path)),
        _ => return Err(FsError::denied(DenialCode::NotRegularFile, path)),
    }
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    rustix::fs::chmod(itself, Mode::from_raw_mode(mode & 0o7777))
        .map_err(|errno| FsError::io("set the mode of", path, errno))
}
