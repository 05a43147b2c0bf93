//! Covers what rules withhold of a view.
//!
//! A command that sees a directory reads it without asking. What it must not read is
//! covered by a mount that nobody can open, so its name shows and its content does
//! not, and the kernel lets nobody remove a name something is mounted on, or give it
//! another. It is looked for when the command is known; what somebody else makes while
//! the command runs is not covered.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::super::places::{WITHHELD_DIR, WITHHELD_FILE};
use super::super::tools::{READ_ONLY, open_dir};
use crate::spawn::spec::ViewSpec;
use crate::step::{AtStep, Step, StepError};
use crate::sys;

/// Names that are looked at for one view.
const NAMES_MAX: usize = 1 << 20;
/// Mounts made over parts of one view.
const COVERS_MAX: usize = 1 << 13;

/// Covers what is withheld of a view that is mounted at `target`.
///
/// Directories of a copy can be renamed with all that is in them, and what they hold
/// would be at a place no rule is about; those of an overlay cannot.
pub(super) fn cover(view: &ViewSpec, target: &Path, is_copy: bool) -> Result<(), StepError> {
    if view.withheld.is_empty() {
        return Ok(());
    }
    let mut covers = Covers {
        view,
        root: open_dir(target, Step::Withhold)?,
        is_copy,
        held_fast: BTreeSet::new(),
        covered: BTreeSet::new(),
    };
    for place in &view.withheld.places {
        covers.cover(Path::new(OsStr::from_bytes(place.as_bytes())))?;
    }
    if view.withheld.names.is_empty() {
        return Ok(());
    }
    covers.look_for_names()
}

/// Holds fast what is above the place of a view that lies in a copy: there a directory could
/// be given another name with the view in it, which an overlay refuses.
pub(super) fn hold_above(outer: &ViewSpec, root: &OwnedFd, below: &Path) -> Result<(), StepError> {
    let mut covers = Covers {
        view: outer,
        root: root.try_clone().at(Step::ViewPlace, "the view around it")?,
        is_copy: true,
        held_fast: BTreeSet::new(),
        covered: BTreeSet::new(),
    };
    covers.hold_fast(below).map(drop)
}

struct Covers<'v> {
    view: &'v ViewSpec,
    root: OwnedFd,
    is_copy: bool,
    /// Directories that have something mounted on them, and so keep their names.
    held_fast: BTreeSet<PathBuf>,
    covered: BTreeSet<PathBuf>,
}

impl Covers<'_> {
    fn on(&self, below: &Path) -> String {
        let at = Path::new(OsStr::from_bytes(&self.view.at));
        at.join(below).display().to_string()
    }

    fn error(&self, below: &Path, why: &str) -> StepError {
        let why = io::Error::other(why.to_owned());
        StepError::new(Step::Withhold, self.on(below), why)
    }

    /// Opens what has a name below the view. A link is nothing by itself: what it leads
    /// to has a name of its own, and rules are about that.
    fn open(&self, below: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        rustix::fs::openat2(
            &self.root,
            if below.as_os_str().is_empty() {
                Path::new(".")
            } else {
                below
            },
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
    }

    /// Covers one place, if something is there.
    fn cover(&mut self, below: &Path) -> Result<(), StepError> {
        if below.ancestors().any(|above| self.covered.contains(above)) {
            return Ok(());
        }
        let opened = match self.open(below, OFlags::PATH) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            opened => opened.at(Step::Withhold, self.on(below))?,
        };
        let stat = rustix::fs::fstat(&opened).at(Step::Withhold, self.on(below))?;
        let cover = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => return Ok(()),
            FileType::Directory => WITHHELD_DIR,
            _ => WITHHELD_FILE,
        };
        let opened = if self.is_copy && self.hold_fast(below)? {
            // What was opened is below what lies under the mounts made since.
            self.open(below, OFlags::PATH)
                .at(Step::Withhold, self.on(below))?
        } else {
            opened
        };
        self.covered.insert(below.to_owned());
        self.count(below)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(CWD, cover, flags).at(Step::Withhold, cover)?;
        self.mount(&tree, &opened, below)
    }

    /// Mounts the directories above a place on themselves, and says whether there were any.
    fn hold_fast(&mut self, below: &Path) -> Result<bool, StepError> {
        let mut above: Vec<PathBuf> = below.ancestors().skip(1).map(Path::to_owned).collect();
        above.retain(|dir| !dir.as_os_str().is_empty());
        let any = !above.is_empty();
        // The outermost first: the others are in it.
        for dir in above.into_iter().rev() {
            if !self.held_fast.insert(dir.clone()) {
                continue;
            }
            self.count(&dir)?;
            let opened = self
                .open(&dir, OFlags::PATH)
                .at(Step::Withhold, self.on(&dir))?;
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_EMPTY_PATH;
            let tree = open_tree(&opened, c"", flags).at(Step::Withhold, self.on(&dir))?;
            self.place(&tree, &opened, &dir)?;
        }
        Ok(any)
    }

    fn count(&self, below: &Path) -> Result<(), StepError> {
        if self.covered.len().saturating_add(self.held_fast.len()) <= COVERS_MAX {
            return Ok(());
        }
        Err(self.error(
            below,
            "rules withhold more names of the view than can be covered",
        ))
    }

    fn mount(&self, tree: &OwnedFd, over: &OwnedFd, below: &Path) -> Result<(), StepError> {
        // What covers is the same for all commands: none may leave anything in it.
        sys::mount_setattr(tree.as_fd(), c"", true, READ_ONLY)
            .at(Step::Withhold, self.on(below))?;
        self.place(tree, over, below)
    }

    fn place(&self, tree: &OwnedFd, over: &OwnedFd, below: &Path) -> Result<(), StepError> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(tree, c"", over, c"", flags).at(Step::Withhold, self.on(below))
    }

    /// Covers everything that has one of the names, wherever it is.
    fn look_for_names(&mut self) -> Result<(), StepError> {
        let mut looked_at = 0_usize;
        let mut dirs = vec![PathBuf::new()];
        while let Some(dir) = dirs.pop() {
            let opened = match self.open(&dir, OFlags::RDONLY | OFlags::DIRECTORY) {
                // Somebody outside is at work there.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                // Nobody here can list it, and a name in it can be known all the same.
                Err(Errno::ACCESS) if !dir.as_os_str().is_empty() => {
                    self.cover(&dir)?;
                    continue;
                }
                opened => opened.at(Step::Withhold, self.on(&dir))?,
            };
            for entry in Dir::new(opened).at(Step::Withhold, self.on(&dir))? {
                let entry = entry.at(Step::Withhold, self.on(&dir))?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                looked_at = looked_at.saturating_add(1);
                if looked_at > NAMES_MAX {
                    let why = "a rule withholds names, and there are too many to look for them";
                    return Err(self.error(&dir, why));
                }
                let below = dir.join(OsStr::from_bytes(name));
                if self.view.withheld.has_name(name) {
                    self.cover(&below)?;
                } else if self.is_open_directory(&below, entry.file_type()) {
                    dirs.push(below);
                }
            }
        }
        Ok(())
    }

    /// Whether it is a directory, and none that is covered.
    fn is_open_directory(&self, below: &Path, told: FileType) -> bool {
        let kind = match told {
            FileType::Unknown => self
                .open(below, OFlags::PATH)
                .and_then(rustix::fs::fstat)
                .map_or(FileType::Unknown, |stat| {
                    FileType::from_raw_mode(stat.st_mode)
                }),
            told => told,
        };
        kind == FileType::Directory && !self.covered.contains(below)
    }
}
