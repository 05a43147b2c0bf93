//! The directory on disk in which layers can lie, seen from where sandboxes are made.
//!
//! It lies beside the template, as the directories of the views do, and goes away
//! with the old root when a sandbox enters its own: a command has no path to it. Each
//! sandbox takes a name nobody used there and holds a lock on it, so that nobody
//! takes its layer for one that was left.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, FlockOperation, Mode, OFlags, XattrFlags, flock, fstat};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::time::{ClockId, clock_gettime};

use super::places::{STORE, open_in_old_root};
use crate::spawn::spec::StoreSpec;
use crate::sys::{self, MountAttributes};
use crate::whose::Whose;

/// What is tried out there lies below this.
const TRIAL: &str = "trial";
/// Names that are tried before something else must be wrong.
const TRIES: u32 = 100;

/// What files in it can be to others: nothing.
const WRITABLE: MountAttributes = MountAttributes {
    read_only: false,
    no_suid: true,
    no_dev: true,
};

/// The place of one sandbox's layers.
pub(crate) struct OnDisk {
    pub name: String,
    /// Says that it is in use, for as long as anybody has it open.
    pub held: OwnedFd,
}

/// Gives it its place, and tries whether layers can lie there; or says why not.
pub(super) fn bring(
    store: &StoreSpec,
    tree: Option<Result<OwnedFd, String>>,
) -> Result<(), String> {
    let tree = match tree {
        Some(tree) => tree?,
        None => tree_of(store)?,
    };
    let told = |error: io::Error| error.to_string();
    sys::mount_setattr(tree.as_fd(), c"", true, WRITABLE).map_err(told)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&tree, c"", CWD, STORE, flags).map_err(|errno| errno.to_string())?;
    let disk = OnDisk::make()?;
    let tried = try_out(&disk.path());
    // Should it stay, it is swept as whatever is left.
    let _removed = fs::remove_dir_all(disk.path());
    tried
}

/// A mount of the directory in the machine's root.
fn tree_of(store: &StoreSpec) -> Result<OwnedFd, String> {
    let told = |errno: rustix::io::Errno| errno.to_string();
    let opened = open_in_old_root(&store.source).map_err(told)?;
    is_still(&opened, store)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(&opened, c"", flags).map_err(told)
}

/// Refuses a directory that is not the one the agent has open.
pub(crate) fn is_still(found: impl AsFd, store: &StoreSpec) -> Result<(), String> {
    match Whose::of(found) {
        Ok(found) if found.is_the_same_as(&store.whose) => Ok(()),
        Ok(_) => Err(String::from("it is another directory by now")),
        Err(error) => Err(error.to_string()),
    }
}

/// What an overlay needs of the file system its layer lies on, and does not ask for.
fn try_out(place: &Path) -> Result<(), String> {
    let trial = place.join(TRIAL);
    fs::create_dir(&trial).map_err(|error| error.to_string())?;
    rustix::fs::setxattr(&trial, "user.overlay.hermitcrab", b"y", XattrFlags::empty())
        .map_err(|errno| format!("its file system keeps no attributes of users ({errno})"))?;
    let listed = rustix::fs::open(place, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(Dir::new)
        .map_err(|errno| errno.to_string())?;
    let tells = listed.flatten().any(|entry| {
        entry.file_name().to_bytes() == TRIAL.as_bytes() && entry.file_type() == FileType::Directory
    });
    if tells {
        Ok(())
    } else {
        Err(String::from(
            "its file system does not tell what kind a name is of",
        ))
    }
}

impl OnDisk {
    /// Takes a new name.
    pub(super) fn make() -> Result<Self, String> {
        let dir = rustix::fs::open(
            STORE,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| errno.to_string())?;
        for _ in 0..TRIES {
            let now = clock_gettime(ClockId::Realtime);
            let name = format!("{:x}-{:08x}", now.tv_sec, now.tv_nsec);
            match rustix::fs::mkdirat(&dir, &name, Mode::RWXU) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) => continue,
                Err(errno) => return Err(errno.to_string()),
            }
            if let Some(held) = hold(dir.as_fd(), OsStr::new(&name)) {
                return Ok(Self { name, held });
            }
        }
        Err(String::from("no name could be held there"))
    }

    /// Where it lies, as long as there is the old root.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(STORE).join(&self.name)
    }
}

/// Holds what was just made, unless somebody took it for something that was left.
fn hold(dir: BorrowedFd<'_>, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?;
    flock(&held, FlockOperation::NonBlockingLockExclusive).ok()?;
    let is_there = fstat(&held).is_ok_and(|stat| stat.st_nlink > 0);
    is_there.then_some(held)
}
