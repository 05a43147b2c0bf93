//! A directory as a capability.
//!
//! What for: every file the agent touches is named by an open directory and a
//! [`RelPath`]. Why: the kernel checks at the call itself that the path stays
//! below the directory, so there is no moment between check and use.
//!
//! It must never store or resolve an absolute path, and never do anything
//! without a [`Permit`] for exactly that verb and place.
//!
//! Stated answers to the odd cases: a link that stays inside is followed for
//! reading and refused for changes; a link out is `outside-root`; another
//! mount below is `mount-crossing`; pipes, devices, sockets and directories
//! are `not-regular-file`; a hard link is an ordinary file (its count is in
//! [`Stat::links`]); names are bytes and need not be UTF-8.
//!
//! What it does not protect against: somebody with other rights to the same
//! directory who moves things into it.

mod direct;
mod error;
mod list;
pub(crate) mod open;
mod write;

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use hermitcrab_core::Permit;
use hermitcrab_core::authority::{DirId, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::{PathError, RelPath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};

pub use self::error::FsError;
use self::list::list_opened;
pub use self::list::{Entry, Kind, Names, Stat};
pub(crate) use self::list::{list_dir, open_plain, read_plain};
use self::open::{Links, open_beneath, open_file, open_parent, read_all, stat_name};
pub(crate) use self::write::temporary_name;
pub use self::write::{Base, TEMPORARY_PREFIX};
use crate::digest::{digest_file, sha256};
use crate::patience::Patience;

/// An open directory, with its name in the session.
#[derive(Debug)]
pub struct DirCap {
    fd: OwnedFd,
    id: DirId,
    prefix: RelPath,
    /// For a file system that may not answer.
    patience: Option<Patience>,
}

/// A directory just made, whose mode is not set yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct PendingMode {
    path: RelPath,
    mode: u32,
}

impl DirCap {
    /// Opens a directory by its path, with all the authority of the process.
    ///
    /// # Errors
    /// It does not exist, is no directory, or cannot be opened.
    pub fn open_ambient_dir(path: &Path, id: DirId) -> io::Result<Self> {
        let fd = rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            patience: Patience::with(&fd)?,
            fd,
            id,
            prefix: RelPath::root(),
        })
    }

    /// With every look given up after so long, whatever its file system: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn impatient(self, look_max: Duration) -> Self {
        Self {
            patience: Some(Patience::of(look_max)),
            ..self
        }
    }

    /// How its file system is waited for.
    pub(crate) fn patience(&self) -> Option<&Patience> {
        self.patience.as_ref()
    }

    /// Takes a look at `path`; not for ever, where the file system may not answer.
    fn look<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &RelPath,
        look: impl FnOnce(BorrowedFd<'_>, &RelPath) -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, FsError> {
        let Some(patience) = &self.patience else {
            return look(self.fd.as_fd(), path);
        };
        let failed = |source| FsError::Io {
            operation,
            path: path.clone(),
            source,
        };
        let (dir, place) = (self.fd.try_clone().map_err(failed)?, path.clone());
        let seen = patience.look(move || look(dir.as_fd(), &place));
        seen.map_err(failed)?
    }

    /// Another hold of the same directory, for a command that outlives the
    /// call that started it.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            id: self.id,
            prefix: self.prefix.clone(),
            patience: self.patience.clone(),
        })
    }

    /// Its handle in the session.
    #[must_use]
    pub fn id(&self) -> DirId {
        self.id
    }

    /// Where it lies below the directory the handle stands for.
    #[must_use]
    pub fn prefix(&self) -> &RelPath {
        &self.prefix
    }

    /// The place a permit must name for `path` in this directory.
    ///
    /// # Errors
    /// The whole path would be too long.
    pub fn place(&self, path: &RelPath) -> Result<RelPath, PathError> {
        self.prefix.join(path)
    }

    /// A file's content; `fs.read`.
    ///
    /// # Errors
    /// See [`FsError`]; longer than `bytes_max` is one.
    pub fn read(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        bytes_max: usize,
    ) -> Result<Vec<u8>, FsError> {
        self.spend(permit, Verb::FsRead, path)?;
        self.look("read", path, move |dir, path| {
            let (file, _stat) = open_file(dir, path, Links::Follow)?;
            read_all(&file, bytes_max).map_err(|source| FsError::Io {
                operation: "read",
                path: path.clone(),
                source,
            })
        })
    }

    /// A regular file, open for reading; `fs.read`. What is open can be read on
    /// after the grant has ended.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn open(&self, permit: Permit<'_>, path: &RelPath) -> Result<OwnedFd, FsError> {
        self.spend(permit, Verb::FsRead, path)?;
        self.look("open", path, |dir, path| {
            open_file(dir, path, Links::Follow).map(|(file, _stat)| file)
        })
    }

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
        let verb = match base {
            Base::Absent => Verb::FsCreate,
            Base::AnyFile | Base::Content(_) => Verb::FsModify,
        };
        self.spend_content(permit, verb, path, sha256(content))?;
        write::write(self.fd.as_fd(), path, content, base, mode).map(Stat::from)
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

    /// The names in a directory, sorted by bytes; `fs.list`.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn list(&self, permit: Permit<'_>, path: &RelPath) -> Result<Vec<Entry>, FsError> {
        self.spend(permit, Verb::FsList, path)?;
        self.look("list", path, |dir, path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let dir = open_beneath(dir, path, flags, Links::Follow)?;
            list_dir(&dir).map_err(|source| FsError::Io {
                operation: "list",
                path: path.clone(),
                source,
            })
        })
    }

    /// Facts about what a name leads to, a link inside followed; `fs.list` or `fs.read`.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn stat(&self, permit: Permit<'_>, path: &RelPath) -> Result<Stat, FsError> {
        let verb = look_verb(&permit);
        self.spend(permit, verb, path)?;
        self.look("stat", path, |dir, path| {
            let fd = open_beneath(dir, path, OFlags::PATH, Links::Follow)?;
            let stat = rustix::fs::fstat(&fd).map_err(|errno| FsError::io("stat", path, errno))?;
            Ok(Stat::from(stat))
        })
    }

    /// A directory below as a capability of its own, no link on the way: what is
    /// done in it later goes by this name; `fs.list` or `fs.read`.
    ///
    /// # Errors
    /// See [`FsError`]; `symlink-refused` if there is a link.
    pub fn subdir(&self, permit: Permit<'_>, path: &RelPath) -> Result<Self, FsError> {
        let verb = look_verb(&permit);
        self.spend(permit, verb, path)?;
        let prefix = self
            .place(path)
            .map_err(|error| FsError::denied(error.code(), path))?;
        let fd = self.look("open", path, |dir, path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            open_beneath(dir, path, flags, Links::Refuse)
        })?;
        Ok(Self {
            fd,
            id: self.id,
            prefix,
            patience: self.patience.clone(),
        })
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
        self.spend(away, Verb::FsDelete, from)?;
        self.spend(here, Verb::FsCreate, to)?;
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

    fn spend(&self, permit: Permit<'_>, verb: Verb, path: &RelPath) -> Result<(), FsError> {
        permit.spend_on_path(verb, self.id, &*self.named(path)?)?;
        Ok(())
    }

    pub(crate) fn spend_content(
        &self,
        permit: Permit<'_>,
        verb: Verb,
        path: &RelPath,
        content: Digest,
    ) -> Result<(), FsError> {
        permit.spend_on_content(verb, self.id, &*self.named(path)?, content)?;
        Ok(())
    }

    /// The place a permit must name: the path itself, where the handle stands for
    /// this very directory.
    fn named<'p>(&self, path: &'p RelPath) -> Result<Cow<'p, RelPath>, FsError> {
        if self.prefix.is_root() {
            return Ok(Cow::Borrowed(path));
        }
        self.place(path)
            .map(Cow::Owned)
            .map_err(|error| FsError::denied(error.code(), path))
    }
}

impl AsFd for DirCap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What a permit for the new name of a thing that is moved is bound to.
#[must_use]
pub fn moved_digest(from: &RelPath) -> Digest {
    sha256(&[b"moved from ", from.as_bytes()].concat())
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

/// Whether the kernel refuses to leave a directory when told to; tried once.
pub(crate) fn kernel_contains_paths() -> bool {
    static CONTAINS: OnceLock<bool> = OnceLock::new();
    *CONTAINS.get_or_init(try_to_leave)
}

fn try_to_leave() -> bool {
    let Ok(root) = rustix::fs::open(
        "/proc/self",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return false;
    };
    let open = |path: &str| {
        rustix::fs::openat2(
            &root,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_MAGICLINKS,
        )
    };
    open("status").is_ok() && matches!(open("../stat"), Err(rustix::io::Errno::XDEV))
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

/// Looking at a name is part of both listing and reading.
fn look_verb(permit: &Permit<'_>) -> Verb {
    match permit.verb() {
        Verb::FsRead => Verb::FsRead,
        _ => Verb::FsList,
    }
}
