//! Putting finished things beside the place they will take.
//!
//! Everything a transaction brings is written and flushed here first, whole,
//! with its mode, times and attributes, in a directory of the same file system
//! that nobody else uses. What is not finished here is never seen elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Journal;
use super::alike;
use super::besides::counting;
use super::like::Like;
use super::plan::Staged;
use crate::changeset::copy::times;
use crate::changeset::node::{
    Fingerprint, Holds, Node, Tree, Xattrs, fingerprint, itself, kind_of, open_usable, read_tree,
};
use crate::changeset::now;
use crate::digest::{copy_at_most, copy_beginning};
use crate::dircap::open::{Links, open_beneath, open_parent, stat_name};
use crate::dircap::{DIR_FLAGS, FsError, Kind};

/// Where something is copied from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub dir: BorrowedFd<'a>,
    pub at: &'a RelPath,
}

/// Up to so many things are flushed one by one; beyond, their file system is.
const FLUSHED_ONE_BY_ONE_MAX: usize = 16;

/// Why a file cannot be given another name, and is copied.
const NO_SECOND_NAME: [Errno; 5] = [
    Errno::XDEV,
    Errno::PERM,
    Errno::MLINK,
    Errno::OPNOTSUPP,
    Errno::ACCESS,
];

/// Fills one staging directory.
pub(crate) struct Stager<'a> {
    journal: &'a Journal,
    area: BorrowedFd<'a>,
    /// Files with several names in their source, by device and number there: where they
    /// were found, and where they are staged.
    links: BTreeMap<(u64, u64), (RelPath, RelPath)>,
    made: Vec<RelPath>,
    /// Whether what is staged is the journal's own, and may come back itself.
    is_kept: bool,
    /// Whether somebody may add to the files of the source: what they held when they
    /// were read is wanted.
    may_grow: bool,
}

impl<'a> Stager<'a> {
    pub(crate) fn new(journal: &'a Journal, area: BorrowedFd<'a>) -> Self {
        Self {
            journal,
            area,
            links: BTreeMap::new(),
            made: Vec::new(),
            is_kept: false,
            may_grow: false,
        }
    }

    /// What is staged next comes from a layer whose command runs still, or ended.
    pub(crate) fn takes_of_layer(&mut self, of_one_that_runs: bool) {
        self.may_grow = of_one_that_runs;
    }

    /// One whose sources are what a commit displaced: files and links come back
    /// themselves where that is possible, with owners, times and the other names
    /// they have, and not as copies.
    pub(crate) fn of_kept(journal: &'a Journal, area: BorrowedFd<'a>) -> Self {
        Self {
            is_kept: true,
            ..Self::new(journal, area)
        }
    }

    /// Copies a name and everything below it, and says what is there then.
    ///
    /// `nodes` says what there is; modes are taken from it, because the source
    /// may have been unlocked to be read. With `usable` a directory at the top
    /// stays its owner's to move and fill.
    pub(crate) fn copy(
        &mut self,
        source: Source<'_>,
        nodes: &Tree,
        slot: &RelPath,
        like: &Like,
        usable: Usable,
    ) -> Result<(Staged, Tree), FsError> {
        let mut copied = Tree::new();
        for (path, node) in nodes {
            let to = joined(slot, path)?;
            let from = joined(source.at, path)?;
            let mut node = node.clone();
            match node.kind {
                Kind::Dir => {
                    // What cannot be looked at was not listed, and would be lost.
                    if !path.is_root() && node.is_shut() {
                        let (parent, name) = open_parent(source.dir, &from)?;
                        open_usable(parent.as_fd(), &name).map_err(|source| FsError::Io {
                            operation: "look at",
                            path: from.clone(),
                            source,
                        })?;
                    }
                    self.dir(&to)?;
                }
                Kind::File => self.file(source.dir, &from, &to, &mut node, like)?,
                Kind::Symlink => self.symlink(source.dir, &from, &to, &node, like)?,
                Kind::Special => self.special(source.dir, &from, &to, &mut node, like)?,
            }
            self.made.push(to);
            copied.insert(path.clone(), node);
        }
        // Innermost first: a mode may close a directory to its own owner.
        for (path, node) in copied.iter_mut().rev() {
            if node.kind == Kind::Dir {
                if path.is_root() && usable == Usable::ByItsOwner {
                    node.mode |= 0o700;
                }
                let from = joined(source.at, path)?;
                self.finish_dir(source.dir, &from, &joined(slot, path)?, node, like)?;
            }
        }
        // What was closed to this process just then is compared as it is found from here on.
        if copied
            .iter()
            .any(|(path, node)| !path.is_root() && node.is_shut())
        {
            copied = read_tree(self.area, slot.as_bytes()).map_err(|source| FsError::Io {
                operation: "look at",
                path: slot.clone(),
                source,
            })?;
        }
        let staged = Staged {
            inode: self.inode(slot)?,
            state: fingerprint(&copied),
        };
        Ok((staged, copied))
    }

    /// What counts of what was copied for a name, where that is not everything.
    pub(crate) fn counting(
        &self,
        path: &RelPath,
        copied: &Tree,
        slot: &RelPath,
    ) -> Option<Fingerprint> {
        self.counting_of(path, copied, (self.area, slot))
    }

    /// The same of what lies elsewhere and comes to the name as it is.
    pub(crate) fn counting_of(
        &self,
        path: &RelPath,
        tree: &Tree,
        place: (BorrowedFd<'_>, &RelPath),
    ) -> Option<Fingerprint> {
        counting(&*self.journal.besides, path, tree, place)
    }

    /// The same of what lies under a name and goes to another as it is, while it holds this.
    pub(crate) fn counting_at(
        &self,
        root: BorrowedFd<'_>,
        from: &RelPath,
        to: &RelPath,
        holds: Fingerprint,
    ) -> Option<Fingerprint> {
        let (parent, name) = open_parent(root, from).ok()?;
        let tree = read_tree(parent.as_fd(), &name).ok()?;
        (fingerprint(&tree) == holds).then_some(())?;
        self.counting_of(to, &tree, (root, from))
    }

    /// Another name for a file that lies elsewhere on the same file system.
    pub(crate) fn link_to(
        &mut self,
        dir: BorrowedFd<'_>,
        from: &RelPath,
        slot: &RelPath,
        node: &Node,
    ) -> Result<Staged, FsError> {
        self.link(dir, from, slot)?;
        Ok(Staged {
            inode: self.inode(slot)?,
            state: fingerprint(&[(RelPath::root(), node.clone())].into()),
        })
    }

    /// Waits until everything that was staged is on the disk.
    pub(crate) fn flush(&self) -> Result<(), FsError> {
        let failed = |path: &RelPath| {
            let path = path.clone();
            move |source: io::Error| FsError::Io {
                operation: "flush",
                path: path.clone(),
                source,
            }
        };
        let top = RelPath::root();
        self.journal
            .steps
            .pass("flush what is staged")
            .map_err(failed(&top))?;
        if self.made.len() > FLUSHED_ONE_BY_ONE_MAX {
            return rustix::fs::syncfs(self.area).map_err(|errno| failed(&top)(errno.into()));
        }
        let mut is_closed = false;
        for path in &self.made {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            let Ok(file) = open_beneath(self.area, path, flags, Links::Refuse) else {
                // A link has nothing but its name. What a file holds that its owner cannot
                // read is on no disk with its name.
                is_closed |= !self.is_link(path);
                continue;
            };
            self.journal.steps.tick();
            match rustix::fs::fsync(&file) {
                // So is a pipe.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(failed(path)(errno.into())),
            }
        }
        let flushed = match is_closed {
            true => rustix::fs::syncfs(self.area),
            false => rustix::fs::fsync(self.area),
        };
        flushed.map_err(|errno| failed(&top)(errno.into()))
    }

    fn is_link(&self, path: &RelPath) -> bool {
        open_parent(self.area, path)
            .and_then(|(parent, name)| stat_name(parent.as_fd(), &name, path))
            .is_ok_and(|stat| stat.is_some_and(|stat| kind_of(&stat) == Kind::Symlink))
    }

    fn step(&self, step: &'static str, path: &RelPath) -> Result<(), FsError> {
        self.journal.steps.pass(step).map_err(|source| FsError::Io {
            operation: step,
            path: path.clone(),
            source,
        })
    }

    fn dir(&self, to: &RelPath) -> Result<(), FsError> {
        let (parent, name) = open_parent(self.area, to)?;
        self.step("stage a directory", to)?;
        rustix::fs::mkdirat(&parent, name.as_slice(), Mode::RWXU)
            .map_err(|errno| FsError::io("write", to, errno))
    }

    fn symlink(
        &self,
        dir: BorrowedFd<'_>,
        from: &RelPath,
        to: &RelPath,
        node: &Node,
        like: &Like,
    ) -> Result<(), FsError> {
        let Holds::Target(target) = &node.holds else {
            return Err(FsError::denied(DenialCode::ChangedSinceShown, to));
        };
        if self.itself(dir, from, to)? {
            return Ok(());
        }
        let (from_parent, from_name) = open_parent(dir, from)?;
        let stat = stat_name(from_parent.as_fd(), &from_name, from)?;
        let (parent, name) = open_parent(self.area, to)?;
        self.step("stage a link", to)?;
        rustix::fs::symlinkat(target.as_slice(), &parent, name.as_slice())
            .map_err(|errno| FsError::io("write", to, errno))?;
        let Some(stat) = stat else {
            return Ok(());
        };
        let (name, of_link) = (name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
        let (owner, group) = like.ids(&stat);
        // As with files: an ordinary user gives none away.
        let _given = rustix::fs::chownat(&parent, name, owner, group, of_link);
        rustix::fs::utimensat(&parent, name, &times(&stat), of_link)
            .map_err(|errno| FsError::io("set the times of", to, errno))
    }

    /// Whether what is kept could be given its name itself.
    fn itself(&self, dir: BorrowedFd<'_>, from: &RelPath, to: &RelPath) -> Result<bool, FsError> {
        match self.is_kept {
            true => self.is_linked(dir, from, to),
            false => Ok(false),
        }
    }

    /// Whether the very same thing could be given another name. Another file system, or one
    /// that gives nobody a second name for this, wants a copy.
    fn is_linked(
        &self,
        dir: BorrowedFd<'_>,
        from: &RelPath,
        to: &RelPath,
    ) -> Result<bool, FsError> {
        match self.link(dir, from, to) {
            Ok(()) => Ok(true),
            Err(FsError::Io { source, .. })
                if source.raw_os_error().is_some_and(|code| {
                    NO_SECOND_NAME
                        .iter()
                        .any(|errno| errno.raw_os_error() == code)
                }) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A pipe, socket or device: the very same, or one like it where that cannot be.
    fn special(
        &self,
        dir: BorrowedFd<'_>,
        from: &RelPath,
        to: &RelPath,
        node: &mut Node,
        like: &Like,
    ) -> Result<(), FsError> {
        if self.is_linked(dir, from, to)? {
            return Ok(());
        }
        self.step("stage one like it", to)?;
        alike::special((dir, from), (self.area, to), node, |stat| like.ids(stat))
    }

    /// Another name for the very same thing.
    fn link(&self, dir: BorrowedFd<'_>, from: &RelPath, to: &RelPath) -> Result<(), FsError> {
        let (from_parent, from_name) = open_parent(dir, from)?;
        let (parent, name) = open_parent(self.area, to)?;
        self.step("stage another name", to)?;
        rustix::fs::linkat(
            &from_parent,
            from_name.as_slice(),
            &parent,
            name.as_slice(),
            AtFlags::empty(),
        )
        .map_err(|errno| FsError::io("write", to, errno))
    }

    fn file(
        &mut self,
        dir: BorrowedFd<'_>,
        from: &RelPath,
        to: &RelPath,
        node: &mut Node,
        like: &Like,
    ) -> Result<(), FsError> {
        let is_shut = matches!(node.holds, Holds::Itself { .. });
        let is_done = match is_shut {
            true => self.is_linked(dir, from, to)?,
            false => self.itself(dir, from, to)?,
        };
        if is_done {
            return Ok(());
        }
        let file = match is_shut {
            true => alike::open_shut(dir, from, node)?,
            false => open_beneath(dir, from, alike::TO_READ, Links::Refuse)?,
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| FsError::io("stat", from, errno))?;
        let identity = (stat.st_dev, stat.st_ino);
        match self.links.get(&identity).cloned() {
            // What moves while it is read is found under several names, and has one.
            Some((found, first))
                if !self.may_grow
                    || now(dir, &found).is_some_and(|now| now.st_ino == stat.st_ino) =>
            {
                self.link(self.area, &first, to)?;
            }
            _ => {
                let (parent, name) = open_parent(self.area, to)?;
                self.step("stage a file", to)?;
                let staged = rustix::fs::openat(
                    &parent,
                    name.as_slice(),
                    OFlags::WRONLY
                        | OFlags::CREATE
                        | OFlags::EXCL
                        | OFlags::NOFOLLOW
                        | OFlags::CLOEXEC,
                    Mode::RUSR | Mode::WUSR,
                )
                .map_err(|errno| FsError::io("write", to, errno))?;
                self.fill(&file, &stat, &staged, to, node, like)?;
                if stat.st_nlink > 1 {
                    self.links.insert(identity, (from.clone(), to.clone()));
                }
            }
        }
        if node.mode & 0o400 == 0
            && let Some(stat) = {
                let (parent, name) = open_parent(self.area, to)?;
                stat_name(parent.as_fd(), &name, to)?
            }
        {
            // From here on nobody can read it: it is known by itself.
            node.holds = itself(&stat);
            node.xattrs = Xattrs::new();
        }
        Ok(())
    }

    fn fill(
        &self,
        from: &OwnedFd,
        stat: &Stat,
        to: &OwnedFd,
        path: &RelPath,
        node: &mut Node,
        like: &Like,
    ) -> Result<(), FsError> {
        let failed = |operation: &'static str| {
            let path = path.clone();
            move |source: io::Error| FsError::Io {
                operation,
                path,
                source,
            }
        };
        self.step("write what is staged", path)?;
        // Said by whoever copies; the kernel says it, with a number, of what is copied to.
        let changed = |error: &io::Error| {
            error.kind() == io::ErrorKind::FileTooLarge && error.raw_os_error().is_none()
        };
        let tick = || self.journal.steps.tick();
        let copied = match self.may_grow {
            true => copy_beginning(from, to, node.bytes, &tick),
            false => copy_at_most(from, to, node.bytes, &tick),
        };
        let (digest, _) = match copied {
            Err(error) if changed(&error) => {
                return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
            }
            copied => copied.map_err(failed("stage"))?,
        };
        // What cannot be read was known by itself when it was opened.
        if matches!(node.holds, Holds::Content(_)) && digest != node.digest() {
            return Err(FsError::denied(DenialCode::ChangedSinceShown, path));
        }
        like.give_xattrs(to.as_fd(), node, is_top(path))
            .map_err(failed("set attributes of"))?;
        like.keep_owner(to.as_fd(), stat);
        self.step("set a mode", path)?;
        rustix::fs::fchmod(to, Mode::from_raw_mode(node.mode))
            .map_err(|errno| FsError::io("set the mode of", path, errno))?;
        rustix::fs::futimens(to, &times(stat))
            .map_err(|errno| FsError::io("set the times of", path, errno))
    }

    fn finish_dir(
        &self,
        dir: BorrowedFd<'_>,
        from: &RelPath,
        to: &RelPath,
        node: &mut Node,
        like: &Like,
    ) -> Result<(), FsError> {
        let opened = open_beneath(self.area, to, DIR_FLAGS, Links::Refuse)?;
        like.give_xattrs(opened.as_fd(), node, is_top(to))
            .map_err(|source| FsError::Io {
                operation: "set attributes of",
                path: to.clone(),
                source,
            })?;
        let source = open_beneath(dir, from, OFlags::PATH, Links::Refuse)?;
        let stat = rustix::fs::fstat(&source).map_err(|errno| FsError::io("stat", from, errno))?;
        like.keep_owner(opened.as_fd(), &stat);
        self.step("set a mode", to)?;
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(node.mode))
            .map_err(|errno| FsError::io("set the mode of", to, errno))?;
        rustix::fs::futimens(&opened, &times(&stat))
            .map_err(|errno| FsError::io("set the times of", to, errno))
    }

    fn inode(&self, slot: &RelPath) -> Result<u64, FsError> {
        let (parent, name) = open_parent(self.area, slot)?;
        stat_name(parent.as_fd(), &name, slot)?
            .map(|stat| stat.st_ino)
            .ok_or_else(|| FsError::denied(DenialCode::ChangedSinceShown, slot))
    }
}

/// Whether its owner can use a directory that is not in its place yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usable {
    ByItsOwner,
    AsItsModeSays,
}

fn joined(base: &RelPath, path: &RelPath) -> Result<RelPath, FsError> {
    base.join(path)
        .map_err(|error| FsError::Denied(Denial::new(error.code(), path)))
}

/// Whether this place in an area is that of a whole change, and not one within.
fn is_top(slot: &RelPath) -> bool {
    !slot.as_bytes().contains(&b'/')
}
