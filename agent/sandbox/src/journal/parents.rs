//! A new file together with the directories on the way to it, in one step.
//!
//! The directories that are missing are built under a temporary name in the
//! nearest one that is there, the file in the innermost of them, and one rename
//! puts all of it in place. Whoever looks, at whatever moment, finds nothing of
//! it or all of it. They are built there and not in the journal because a new
//! directory takes after the one it is made in: its group, its access list, its
//! file system.
//!
//! Several calls of one answer may make files in the same new directory at the same
//! time. Whoever comes second finds the directory there, and goes on in it if it is
//! just as the one it built aside: then nothing is other than what was shown. Any
//! other one is somebody else's, and ends the call.
//!
//! No commit: nothing is displaced, and nothing is kept. What a kill leaves under
//! the temporary name is on note ([`super::aside`]).

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::Journal;
use super::aside::Aside;
use super::entry::remove_tree;
use crate::changeset::node::open_dir;
use crate::digest::sha256;
use crate::dircap::append_only::names_can_change;
use crate::dircap::open::{Links, open_beneath, open_parent, write_all};
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

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The file as it is there.
    pub stat: Stat,
    /// How many of the directories another call had made meanwhile, the outermost first.
    pub met: usize,
}

impl Journal {
    /// Puts a new file and its directories in place at once and durably; spends
    /// `fs.create` for each directory, in order, with [`dir_digest`], and then
    /// for the file with its content.
    ///
    /// # Errors
    /// See [`FsError`]; `changed-since-shown` if the file is there by now, or a directory
    /// that is not as it would have been made. Nothing is left then.
    pub fn put_with_parents<'turn>(
        &self,
        dir: &DirCap,
        permits: impl IntoIterator<Item = Permit<'turn>>,
        new: &NewFile<'_>,
    ) -> Result<Placed, FsError> {
        spend(dir, permits, new)?;
        let mut met = 0;
        loop {
            let missing = new.parents.get(met..).unwrap_or_default();
            if let Some(stat) = self.put_below(dir, missing, new)? {
                return Ok(Placed { stat, met });
            }
            met += 1;
        }
    }

    /// The file and those of its directories that are missing; `None` if the outermost of
    /// them is there by now, and as it would have been made.
    fn put_below(
        &self,
        dir: &DirCap,
        missing: &[RelPath],
        new: &NewFile<'_>,
    ) -> Result<Option<Stat>, FsError> {
        let outermost = missing.first().unwrap_or(new.path);
        let (ground, name) = open_parent(dir.as_fd(), outermost)?;
        names_can_change(&ground, outermost)?;
        let aside = temporary_name().map_err(failed("name a directory for", outermost))?;
        let mut tree = Tree {
            noted: self.note_aside(ground.as_fd(), &aside)?,
            journal: self,
            ground: &ground,
            name: aside,
            is_placed: false,
        };
        let stat = tree.build(missing, new)?;
        match tree.rename(&name, outermost) {
            Err(error) if error.code() == Some(DenialCode::ChangedSinceShown) => {
                return match missing.first() {
                    Some(path) if tree.is_like(dir, path)? => Ok(None),
                    _ => Err(error),
                };
            }
            renamed => renamed?,
        }
        self.step("flush what changed", outermost)?;
        rustix::fs::fsync(&ground)
            .map_err(|errno| FsError::io("sync directory", outermost, errno))?;
        Ok(Some(Stat::from(stat)))
    }

    fn step(&self, step: &'static str, path: &RelPath) -> Result<(), FsError> {
        self.steps.pass(step).map_err(failed(step, path))
    }
}

/// Checks and spends the permits.
fn spend<'turn>(
    dir: &DirCap,
    permits: impl IntoIterator<Item = Permit<'turn>>,
    new: &NewFile<'_>,
) -> Result<(), FsError> {
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
    if new.parents.is_empty() {
        return Err(unfit(new.path));
    }
    Ok(())
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
    fn build(&self, missing: &[RelPath], new: &NewFile<'_>) -> Result<rustix::fs::Stat, FsError> {
        let mut innermost: Option<OwnedFd> = None;
        for path in missing {
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
        let Some(innermost) = innermost else {
            return self.make_file(self.ground, &self.name, new);
        };
        let stat = self.make_file(&innermost, file_name(new.path)?, new)?;
        self.finish_dir(&innermost, new, new.path)?;
        Ok(stat)
    }

    /// Whether what is at `path` is a directory like the one that was built: on this mount,
    /// with the same owner, group and mode.
    fn is_like(&self, dir: &DirCap, path: &RelPath) -> Result<bool, FsError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let there = match open_beneath(dir.as_fd(), path, flags, Links::Refuse) {
            Ok(there) => there,
            Err(_) => return Ok(false),
        };
        let stat = |done: Result<rustix::fs::Stat, Errno>| {
            done.map_err(|errno| FsError::io("stat directory", path, errno))
        };
        let there = stat(rustix::fs::fstat(&there))?;
        let built = stat(rustix::fs::statat(
            self.ground,
            self.name.as_slice(),
            AtFlags::SYMLINK_NOFOLLOW,
        ))?;
        let looks = |stat: &rustix::fs::Stat| (stat.st_uid, stat.st_gid, stat.st_mode);
        Ok(looks(&there) == looks(&built))
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

    fn make_file(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        new: &NewFile<'_>,
    ) -> Result<rustix::fs::Stat, FsError> {
        let path = new.path;
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

    fn rename(&mut self, name: &[u8], path: &RelPath) -> Result<(), FsError> {
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
