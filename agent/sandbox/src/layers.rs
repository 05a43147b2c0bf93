//! A directory on disk in which the layers of copy-on-write views lie.
//!
//! What for: memory bounds what a command may change, and older kernels keep the
//! marks of an overlay on no file system in memory. A disk removes both limits, and
//! brings two duties: what is there does not vanish by itself, and nothing bounds it
//! but the disk.
//!
//! Each sandbox makes a directory of its own in here, by a name nobody used, and
//! holds a lock on it, which goes with the last process that knows it. So what a
//! killed agent left is told from what is in use, and whoever opens the store next
//! removes it. What one that runs leaves is removed as soon as its changes are
//! committed or discarded.
//!
//! It must never be used where a command would see it, and never remove what is in
//! use.

mod bound;
mod tree;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat};

pub(crate) use self::bound::{Bound, Watch};
use self::tree::{Budget, Removed};
use crate::dircap::DIR_FLAGS;
use crate::whose::Whose;

/// What of the machine every command is shown.
const SHOWN: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc",
];
/// Directories above a store that are looked at.
const ABOVE_MAX: usize = 128;

/// Where the layers of copy-on-write views are to lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// In memory, and on disk where no file system in memory can hold them.
    #[default]
    Memory,
    /// On disk.
    Disk,
}

/// Whether a file system in memory keeps the marks of a layer here, so that none has
/// to lie on disk (Linux 6.6).
#[must_use]
pub fn memory_holds_layers() -> bool {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    rustix::fs::memfd_create(c"hermitcrab", flags).is_ok_and(|file| {
        let none = rustix::fs::XattrFlags::empty();
        rustix::fs::fsetxattr(file, c"user.overlay.hermitcrab", b"y", none).is_ok()
    })
}

/// A directory for layers; clones share it. The last to go removes what is not in
/// use any more.
#[derive(Clone, Debug)]
pub struct LayerStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: OwnedFd,
    /// It, and the directories above it, by device and number.
    above: Vec<(u64, u64)>,
    /// Threads that remove what is big.
    removing: Mutex<Vec<JoinHandle<()>>>,
}

/// The layer of one command; dropping it removes it.
#[derive(Debug)]
pub(crate) struct KeptLayer {
    store: LayerStore,
    name: Vec<u8>,
    /// Nobody else takes it for something that was left.
    held: Option<OwnedFd>,
}

impl LayerStore {
    /// Uses this directory, which should be nobody else's business, and removes
    /// what was left there. It waits for nothing that is big.
    ///
    /// # Errors
    /// The directory cannot be looked at, or others could get in.
    pub fn open(dir: OwnedFd) -> io::Result<Self> {
        let stat = fstat(&dir)?;
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_own || stat.st_mode & 0o077 != 0 {
            return Err(io::Error::other(
                "it is not a directory of the agent's own user that others cannot enter",
            ));
        }
        let store = Self(Arc::new(Inner {
            above: above(&dir)?,
            dir,
            removing: Mutex::default(),
        }));
        store.sweep();
        Ok(store)
    }

    /// Removes what nobody uses any more.
    pub fn sweep(&self) {
        let dir = &self.0.dir;
        let Ok(names) = tree::names(dir.as_fd()) else {
            // What cannot be listed cannot be used either, which is told then.
            return;
        };
        for name in names {
            if let Some(held) = take(dir, &name) {
                self.remove(name, Some(held));
            }
        }
    }

    /// Where it lies and which directory that is, or why a command that sees these cannot
    /// have its layers there.
    pub(crate) fn place<'v>(
        &self,
        seen: impl IntoIterator<Item = (&'v [u8], &'v Whose)>,
    ) -> Result<(Vec<u8>, Whose), String> {
        let whose = Whose::of(&self.0.dir).map_err(|error| error.to_string())?;
        let link = format!("/proc/self/fd/{}", self.0.dir.as_raw_fd());
        let source = std::fs::read_link(link).map_err(|error| error.to_string())?;
        if SHOWN.iter().any(|shown| source.starts_with(shown)) {
            return Err(String::from("it is in a directory that every command sees"));
        }
        let is_within = |(at, whose): (&[u8], &Whose)| {
            self.0.above.contains(&(whose.device, whose.inode))
                || Path::new(OsStr::from_bytes(at)).starts_with(&source)
        };
        if seen.into_iter().any(is_within) {
            return Err(String::from("the command would see it"));
        }
        Bound::has_room(self.0.dir.as_fd())?;
        Ok((source.as_os_str().as_bytes().to_vec(), whose))
    }

    /// Takes over what a sandbox made.
    pub(crate) fn keep(&self, name: Vec<u8>, held: OwnedFd) -> KeptLayer {
        KeptLayer {
            store: self.clone(),
            name,
            held: Some(held),
        }
    }

    /// Removes one, here if it is small.
    fn remove(&self, name: Vec<u8>, held: Option<OwnedFd>) {
        let dir = &self.0.dir;
        match tree::remove(dir.as_fd(), &name, Budget::SMALL) {
            // What cannot be removed is tried again at the next sweep.
            Ok(Removed::All) | Err(_) => return,
            Ok(Removed::Part) => {}
        }
        let Ok(dir) = dir.try_clone() else {
            return;
        };
        let started = std::thread::Builder::new()
            .name("hermitcrab-layers".to_owned())
            .spawn(move || {
                let _held = held;
                let _tried_again_later = tree::remove(dir.as_fd(), &name, Budget::NONE);
            });
        // Without a thread it waits for the next sweep.
        if let Ok(thread) = started {
            let mut removing = self
                .0
                .removing
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            removing.retain(|thread| !thread.is_finished());
            removing.push(thread);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let removing = self
            .removing
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for thread in removing.drain(..) {
            // A panic in there has taken nothing along that is used here.
            let _ended = thread.join();
        }
    }
}

impl KeptLayer {
    /// A watch over it, for a command that begins.
    pub(crate) fn watch(&self, bound: Bound) -> io::Result<Watch> {
        let dir = self
            .held
            .as_ref()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Watch::begin(dir.try_clone()?, bound)
    }
}

impl Drop for KeptLayer {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        let held = self.held.take();
        self.store.remove(name, held);
    }
}

/// Opens one that nobody uses, and holds it.
fn take(dir: &OwnedFd, name: &[u8]) -> Option<OwnedFd> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    let opened = rustix::fs::openat(dir, name, DIR_FLAGS, Mode::empty()).ok()?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_dir.then_some(opened)
}

/// A directory and those above it.
fn above(dir: &OwnedFd) -> io::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let mut at = dir.try_clone()?;
    for _ in 0..ABOVE_MAX {
        let whose = Whose::of(&at)?;
        let this = (whose.device, whose.inode);
        // The topmost is above itself.
        if found.last() == Some(&this) {
            return Ok(found);
        }
        found.push(this);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = rustix::fs::openat(&at, "..", flags, Mode::empty())?;
    }
    Err(io::Error::other("it lies too deep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(at: &Path) -> LayerStore {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(at, mode).unwrap();
        LayerStore::open(std::fs::File::open(at).unwrap().into()).unwrap()
    }

    #[test]
    fn what_is_held_stays_and_what_nobody_holds_is_removed_at_the_next_start() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["held/0/upper/d", "left/0/work/work"] {
            std::fs::create_dir_all(temp.path().join(name)).unwrap();
        }
        let held = std::fs::File::open(temp.path().join("held")).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let store = store(temp.path());
        let names = || tree::names(store.0.dir.as_fd()).unwrap();
        assert_eq!(names(), [b"held".to_vec()]);
        drop(held);
        store.sweep();
        assert_eq!(names(), [b""; 0]);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_no_store() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().unwrap();
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(temp.path(), mode).unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        assert!(LayerStore::open(dir.into()).is_err());
    }

    #[test]
    fn a_command_that_would_see_the_store_does_not_get_it() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path().join("state/layers");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::create_dir_all(at.join("inside")).unwrap();
        std::fs::create_dir_all(temp.path().join("other")).unwrap();
        // Held, or it would be swept.
        let inside = std::fs::File::open(at.join("inside")).unwrap();
        flock(&inside, FlockOperation::LockExclusive).unwrap();
        let store = store(&at);
        let check = |path: &Path, expected: bool| {
            let whose = Whose::of(std::fs::File::open(path).unwrap()).unwrap();
            let got = store.place([(path.as_os_str().as_bytes(), &whose)]);
            assert_eq!(got.is_ok(), expected, "{}: {got:?}", path.display());
        };
        check(&temp.path().join("other"), true);
        check(temp.path(), false);
        check(&temp.path().join("state"), false);
        check(&at, false);
        check(&at.join("inside"), false);
    }
}
