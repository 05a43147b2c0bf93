//! A new file together with the directories on the way to it, in one step.
//!
//! The directories that are missing are built under a temporary name in the
//! nearest one that is there, the file in the innermost of them, and one rename
//! puts all of it in place. Whoever looks, at whatever moment, finds nothing of
//! it or all of it. They are built there and not in the journal because a new
//! directory takes after the one it is made in: its group, its access list, its
//! file system.
//!
//! No commit: nothing is displaced, and nothing is kept. What a kill leaves under
//! the temporary name is on note ([`super::aside`]).

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::Journal;
use super::aside::Aside;
use super::entry::remove_tree;
use crate::changeset::node::open_dir;
use crate::digest::sha256;
use crate::dircap::append_only::names_can_change;
use crate::dircap::open::{open_parent, write_all};
use crate::dircap::{DirCap, FsError, Stat, as_inherited, dir_digest, temporary_name};

/// A file that is not there yet, and the directories on the way to it that are
/// not there either.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// The missing directories, each in the one before it; at least one.
    pub parents: &'a [RelPath],
    /// The file, in the last of them.
    pub path: &'a RelPath,
    /// What it will hold.
    pub content: &'a [u8],
    /// Its permission bits.
    pub mode: u32,
    /// Those of the directories.
    pub dir_mode: u32,
}

impl Journal {
    /// Puts a new file and its directories in place at once and durably; spends
    /// `fs.create` for each directory, in order, with [`dir_digest`], and then
    /// for the file with its content.
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if the outermost directory is there
    /// by now. Nothing is left then.
    pub fn put_with_parents<'turn>(
        &self,
        dir: &DirCap,
        permits: impl IntoIterator<Item = Permit<'turn>>,
        new: &NewFile<'_>,
    ) -> Result<Stat, FsError> {
        let outermost = spend(dir, permits, new)?;
        let (ground, name) = open_parent(dir.as_fd(), outermost)?;
        names_can_change(&ground, outermost)?;
        let aside = temporary_name().map_err(failed("name a directory for", outermost))?;
        let tree = Tree {
            noted: self.note_aside(ground.as_fd(), &aside)?,
            journal: self,
            ground: &ground,
            name: aside,
            is_placed: false,
        };
        let stat = tree.build(new)?;
        tree.rename(&name, outermost)?;
        self.step("flush what changed", outermost)?;
        rustix::fs::fsync(&ground)
            .map_err(|errno| FsError::io("sync directory", outermost, errno))?;
        Ok(Stat::from(stat))
    }

    fn step(&self, step: &'static str, path: &RelPath) -> Result<(), FsError> {
        self.steps.pass(step).map_err(failed(step, path))
    }
}

/// Checks and spends the permits; the outermost of the directories.
fn spend<'a, 'turn>(
    dir: &DirCap,
    permits: impl IntoIterator<Item = Permit<'turn>>,
    new: &NewFile<'a>,
) -> Result<&'a RelPath, FsError> {
    let unfit = |path: &RelPath| FsError::denied(DenialCode::PermitMismatch, path);
    let mut permits = permits.into_iter();
    let mut above: Option<&RelPath> = None;
    let made = new
        .parents
        .iter()
        .map(|path| (path, dir_digest(new.dir_mode)))
        .chain([(new.path, sha256(new.content))]);
    for (path, digest) in made {
        if above.is_some_and(|above| path.parent().as_ref() != Some(above)) {
            return Err(unfit(path));
        }
        let permit = permits.next().ok_or_else(|| unfit(path))?;
        dir.spend_content(permit, Verb::FsCreate, path, digest)?;
        above = Some(path);
    }
    new.parents.first().ok_or_else(|| unfit(new.path))
}

/// What is built aside; it goes unless it was renamed.
struct Tree<'a> {
    noted: Aside<'a>,
    journal: &'a Journal,
    ground: &'a OwnedFd,
    name: Vec<u8>,
    is_placed: bool,
}

impl Tree<'_> {
    fn build(&self, new: &NewFile<'_>) -> Result<rustix::fs::Stat, FsError> {
        let mut innermost: Option<OwnedFd> = None;
        for path in new.parents {
            // Only the innermost is held: a path may have more parts than a
            // process may have open files.
            let made = match &innermost {
                None => self.make_dir(self.ground, &self.name, path)?,
                Some(above) => {
                    let made = self.make_dir(above, file_name(path)?, path)?;
                    self.finish_dir(above, new, path)?;
                    made
                }
            };
            innermost = Some(made);
        }
        let unfit = || FsError::denied(DenialCode::PermitMismatch, new.path);
        let innermost = innermost.ok_or_else(unfit)?;
        let stat = self.make_file(&innermost, new)?;
        self.finish_dir(&innermost, new, new.path)?;
        Ok(stat)
    }

    fn make_dir(&self, above: &OwnedFd, name: &[u8], path: &RelPath) -> Result<OwnedFd, FsError> {
        self.journal.step("make a directory aside", path)?;
        rustix::fs::mkdirat(above, name, Mode::RWXU)
            .map_err(|errno| FsError::io("make directory", path, errno))?;
        open_dir(above.as_fd(), name).map_err(failed("open", path))
    }

    /// Whatever is in it, a directory gets its mode, and waits for the disk.
    fn finish_dir(&self, dir: &OwnedFd, new: &NewFile<'_>, path: &RelPath) -> Result<(), FsError> {
        self.journal.step("finish a directory aside", path)?;
        let made =
            rustix::fs::fstat(dir).map_err(|errno| FsError::io("stat directory", path, errno))?;
        let mode = as_inherited(new.dir_mode & 0o7777, made.st_mode);
        rustix::fs::fchmod(dir, Mode::from_raw_mode(mode))
            .map_err(|errno| FsError::io("set the mode of", path, errno))?;
        rustix::fs::fsync(dir).map_err(|errno| FsError::io("sync directory", path, errno))
    }

    fn make_file(&self, dir: &OwnedFd, new: &NewFile<'_>) -> Result<rustix::fs::Stat, FsError> {
        let path = new.path;
        let name = file_name(path)?;
        self.journal.step("make a file aside", path)?;
        let file = rustix::fs::openat(
            dir,
            name,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| FsError::io("create", path, errno))?;
        self.journal.step("write a file aside", path)?;
        write_all(&file, new.content).map_err(failed("write", path))?;
        self.journal.step("finish a file aside", path)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(new.mode))
            .map_err(|errno| FsError::io("set the mode of", path, errno))?;
        rustix::fs::fsync(&file).map_err(|errno| FsError::io("sync", path, errno))?;
        rustix::fs::fstat(&file).map_err(|errno| FsError::io("stat", path, errno))
    }

    fn rename(mut self, name: &[u8], path: &RelPath) -> Result<(), FsError> {
        self.journal.step("put what was built in place", path)?;
        let flags = RenameFlags::NOREPLACE;
        let aside = self.name.as_slice();
        match rustix::fs::renameat_with(self.ground, aside, self.ground, name, flags) {
            Ok(()) => {
                self.is_placed = true;
                Ok(())
            }
            Err(Errno::EXIST) => Err(FsError::denied(DenialCode::ChangedSinceShown, path)),
            Err(errno) => Err(FsError::io("make directory", path, errno)),
        }
    }
}

impl Drop for Tree<'_> {
    fn drop(&mut self) {
        // What cannot go now stays on note, and goes when the journal is opened next.
        if self.is_placed || remove_tree(self.journal, self.ground.as_fd(), &self.name).is_ok() {
            self.noted.strike();
        }
    }
}

fn file_name(path: &RelPath) -> Result<&[u8], FsError> {
    path.file_name()
        .ok_or_else(|| FsError::denied(DenialCode::NotRegularFile, path))
}

fn failed(operation: &'static str, path: &RelPath) -> impl Fn(io::Error) -> FsError {
    move |source| FsError::Io {
        operation,
        path: path.clone(),
        source,
    }
}
