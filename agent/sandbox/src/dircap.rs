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

pub(crate) mod access_lists;
pub(crate) mod append_only;
mod change;
mod direct;
mod error;
mod list;
mod long;
mod make;
pub(crate) mod open;
mod spelled;
mod thing;
mod write;

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use hermitcrab_core::Permit;
use hermitcrab_core::authority::{DirId, Extent, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::{PathError, RelPath};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};

pub use self::change::moved_digest;
pub use self::error::FsError;
pub(crate) use self::error::is_missing;
use self::list::list_opened;
pub(crate) use self::list::{DEPTH_MAX, DIR_FLAGS, list_dir, open_plain, read_plain};
pub use self::list::{Entry, Kind, Names, Stat};
pub use self::long::{Content, LongFile, PIECE_BYTES};
pub(crate) use self::make::as_inherited;
pub use self::make::{dir_digest, mode_digest, symlink_digest, time_digest};
pub(crate) use self::open::kernel_contains_paths;
use self::open::{Links, is_mounted, open_beneath, open_file, open_mounted, read_all};
pub(crate) use self::thing::{Thing, is_overlay};
pub(crate) use self::write::temporary_name;
pub use self::write::{Base, TEMPORARY_PREFIX};
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
        Self::whole(fd, id)
    }

    fn whole(fd: OwnedFd, id: DirId) -> io::Result<Self> {
        Ok(Self {
            patience: Patience::with(&fd)?,
            fd,
            id,
            prefix: RelPath::root(),
        })
    }

    /// The first directory on the way from this one to a place that is on another mount, where
    /// this capability ends. In doubt there is none.
    #[must_use]
    pub fn mounted_towards(&self, place: &RelPath) -> Option<RelPath> {
        let mut way = vec![place.clone()];
        while let Some(above) = way.last().and_then(RelPath::parent) {
            way.push(above);
        }
        let mut mounted = way.into_iter().rev().map_while(|path| {
            let is_mounted = is_mounted(self.fd.as_fd(), &path).ok()?;
            Some((path, is_mounted))
        });
        mounted.find_map(|(path, is_mounted)| is_mounted.then_some(path))
    }

    /// Opens a directory below this one although it is on another mount.
    ///
    /// # Errors
    /// A link is on the way, or it cannot be opened.
    pub fn open_mounted(&self, place: &RelPath, id: DirId) -> io::Result<Self> {
        Self::whole(open_mounted(self.fd.as_fd(), place)?, id)
    }

    /// Whether it is mounted read-only. In doubt it is not, and whoever serves a file system
    /// that may never answer is not asked.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let flags = || rustix::fs::fstatvfs(&self.fd).map(|held| held.f_flag);
        self.patience.is_none()
            && flags().is_ok_and(|flags| flags.contains(StatVfsMountFlags::RDONLY))
    }

    /// Whether it is the very directory that is open as `other`, whatever has its name.
    ///
    /// # Errors
    /// The system does not say.
    pub fn is(&self, other: impl AsFd) -> io::Result<bool> {
        let (ours, other) = (rustix::fs::fstat(&self.fd)?, rustix::fs::fstat(other)?);
        Ok((ours.st_dev, ours.st_ino) == (other.st_dev, other.st_ino))
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
            let fd = direct::open_led_to(dir, path)?;
            let stat = rustix::fs::fstat(&fd).map_err(|errno| FsError::io("stat", path, errno))?;
            Ok(Stat::from(stat))
        })
    }

    /// A directory below as a capability of its own, no link on the way: what is
    /// done in it later goes by this name; `fs.list` or `fs.read` of all below it.
    ///
    /// # Errors
    /// See [`FsError`]; `symlink-refused` if there is a link.
    pub fn subdir(&self, permit: Permit<'_>, path: &RelPath) -> Result<Self, FsError> {
        let verb = look_verb(&permit);
        self.spend(permit.for_all_below()?, verb, path)?;
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

    fn spend(&self, permit: Permit<'_>, verb: Verb, path: &RelPath) -> Result<(), FsError> {
        permit.spend_on_path(verb, self.id, &*self.named(path)?)?;
        Ok(())
    }

    /// Spends it on a change of what has a name, or of all that lies below it, too.
    pub(crate) fn spend_change(
        &self,
        permit: Permit<'_>,
        (verb, extent): (Verb, Extent),
        path: &RelPath,
        content: Digest,
    ) -> Result<(), FsError> {
        let permit = match extent {
            Extent::Alone => permit,
            Extent::Tree => permit.for_all_below()?,
        };
        self.spend_content(permit, verb, path, content)
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

/// Looking at a name is part of both listing and reading.
fn look_verb(permit: &Permit<'_>) -> Verb {
    match permit.verb() {
        Verb::FsRead => Verb::FsRead,
        _ => Verb::FsList,
    }
}
