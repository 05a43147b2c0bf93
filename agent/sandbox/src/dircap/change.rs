//! Changing files: what is in them, what they are called, whether they are there.
//!
//! Every name is changed in its opened directory, with no link on the way, and what
//! was changed is on the disk when the call returns.

use std::os::fd::{AsFd, BorrowedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, RenameFlags};

use super::open::{open_parent, stat_name};
use super::write::{self, Base};
use super::{DirCap, FsError, Stat, open_plain};
use crate::digest::{digest_file, sha256};

impl DirCap {
    /// Puts a file in place at once and durably; `fs.create` for a new one,
    /// `fs.modify` for an old one, for exactly this content.
    ///
    /// `base` says what must be there; it must fit the permit's verb. `mode`
    /// is the new file's, by default the old one's or 0644.
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if something else was there.
    pub fn write(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        content: &[u8],
        base: Base,
        mode: Option<u32>,
    ) -> Result<(), FsError> {
        self.write_and_stat(permit, path, content, base, mode)
            .map(drop)
    }

    /// The same, with the facts about the file that was put in place: what
    /// others do to it from then on is not in them.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn write_and_stat(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        content: &[u8],
        base: Base,
        mode: Option<u32>,
    ) -> Result<Stat, FsError> {
        self.spend_write(permit, path, content, base)?;
        write::write(self.fd.as_fd(), path, content, base, mode, None).map(Stat::from)
    }

    /// The same, and `keep` is shown what is displaced of a file whose content is known: in a
    /// directory, under a name that is free afterwards if it says so.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub(crate) fn write_keeping(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        content: &[u8],
        (base, mode): (Base, Option<u32>),
        keep: &mut dyn FnMut(BorrowedFd<'_>, &[u8]) -> bool,
    ) -> Result<Stat, FsError> {
        self.spend_write(permit, path, content, base)?;
        let dir = self.fd.as_fd();
        write::write(dir, path, content, base, mode, Some(keep)).map(Stat::from)
    }

    fn spend_write(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        content: &[u8],
        base: Base,
    ) -> Result<(), FsError> {
        let verb = match base {
            Base::Absent => Verb::FsCreate,
            Base::AnyFile | Base::Content(_) => Verb::FsModify,
        };
        self.spend_content(permit, verb, path, sha256(content))
    }

    /// Replaces a file only if it still holds `base`; `fs.modify`.
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if it holds something else.
    pub fn replace_if(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        content: &[u8],
        base: Digest,
    ) -> Result<(), FsError> {
        self.write(permit, path, content, Base::Content(base), None)
    }

    /// Adds to the end of a file; `fs.modify`, for exactly these bytes.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn append(&self, permit: Permit<'_>, path: &RelPath, more: &[u8]) -> Result<(), FsError> {
        self.spend_content(permit, Verb::FsModify, path, sha256(more))?;
        write::append(self.fd.as_fd(), path, more)
    }

    /// Removes a file, a link or an empty directory; `fs.delete`.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn remove(&self, permit: Permit<'_>, path: &RelPath) -> Result<(), FsError> {
        self.spend(permit, Verb::FsDelete, path)?;
        let (parent, name) = open_parent(self.fd.as_fd(), path)?;
        let flags = match stat_name(parent.as_fd(), &name, path)? {
            Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                AtFlags::REMOVEDIR
            }
            _ => AtFlags::empty(),
        };
        rustix::fs::unlinkat(&parent, name.as_slice(), flags)
            .map_err(|errno| FsError::io("remove", path, errno))?;
        rustix::fs::fsync(&parent).map_err(|errno| FsError::io("sync directory", path, errno))
    }

    /// Removes a file only if it still holds `base`; `fs.delete`.
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if it holds something else.
    pub fn remove_if(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        base: Digest,
    ) -> Result<(), FsError> {
        self.spend(permit, Verb::FsDelete, path)?;
        let (parent, name) = open_parent(self.fd.as_fd(), path)?;
        let away = write::temporary_name().map_err(|source| FsError::Io {
            operation: "name a temporary file for",
            path: path.clone(),
            source,
        })?;
        // Out of the way first: what is then looked at cannot be swapped.
        match rustix::fs::renameat_with(
            &parent,
            name.as_slice(),
            &parent,
            away.as_slice(),
            RenameFlags::NOREPLACE,
        ) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => {
                return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
            }
            Err(errno) => return Err(FsError::io("rename", path, errno)),
        }
        let same = open_plain(&parent, &away)
            .and_then(|file| digest_file(&file))
            .is_ok_and(|(digest, _)| digest == base);
        if !same {
            match rustix::fs::renameat_with(
                &parent,
                away.as_slice(),
                &parent,
                name.as_slice(),
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => {}
                // Somebody saved a newer one meanwhile; this one is overtaken.
                Err(rustix::io::Errno::EXIST) => {
                    rustix::fs::unlinkat(&parent, away.as_slice(), AtFlags::empty())
                        .map_err(|errno| FsError::io("remove", path, errno))?;
                }
                Err(errno) => return Err(FsError::io("put back", path, errno)),
            }
            return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
        }
        rustix::fs::unlinkat(&parent, away.as_slice(), AtFlags::empty())
            .map_err(|errno| FsError::io("remove", path, errno))?;
        rustix::fs::fsync(&parent).map_err(|errno| FsError::io("sync directory", path, errno))
    }

    /// Gives a file another name; `fs.delete` for the old one, `fs.create` for
    /// the new one, which must be free.
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if the new name is taken.
    pub fn rename(
        &self,
        away: Permit<'_>,
        here: Permit<'_>,
        from: &RelPath,
        to: &RelPath,
    ) -> Result<(), FsError> {
        // What is there by then can be a directory, and takes along all that lies in it.
        self.spend(away.for_all_below()?, Verb::FsDelete, from)?;
        self.spend(here.for_all_below()?, Verb::FsCreate, to)?;
        let (from_parent, from_name) = open_parent(self.fd.as_fd(), from)?;
        let (to_parent, to_name) = open_parent(self.fd.as_fd(), to)?;
        match rustix::fs::renameat_with(
            &from_parent,
            from_name.as_slice(),
            &to_parent,
            to_name.as_slice(),
            RenameFlags::NOREPLACE,
        ) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                return Err(FsError::denied(DenialCode::ChangedSinceShown, to));
            }
            Err(errno) => return Err(FsError::io("rename", from, errno)),
        }
        for (parent, path) in [(&from_parent, from), (&to_parent, to)] {
            rustix::fs::fsync(parent)
                .map_err(|errno| FsError::io("sync directory", path, errno))?;
        }
        Ok(())
    }
}

/// What a permit for the new name of a thing that is moved is bound to.
#[must_use]
pub fn moved_digest(from: &RelPath) -> Digest {
    sha256(&[b"moved from ", from.as_bytes()].concat())
}
