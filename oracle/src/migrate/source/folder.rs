//! The private directory the copies lie in, and those that others left.
//!
//! It is gone when the program ends, and when somebody leaves at once. A program
//! that is killed cannot remove anything: it holds a lock on its directory, which
//! goes with it, and the next one removes what nobody holds any more.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use tempfile::TempDir;

use crate::interrupt::Interrupt;

const PREFIX: &str = "hermitcrab-migrate-";
/// How often one is made that somebody removes before it is locked.
const TRIES: usize = 5;

/// A directory nobody else may enter.
#[derive(Debug)]
pub(super) struct Folder {
    place: TempDir,
    /// Says that it is in use.
    _lock: File,
}

impl Folder {
    /// Makes one, and has the interrupt take it along.
    pub(super) fn make(interrupt: &Interrupt) -> io::Result<Self> {
        for _ in 0..TRIES {
            let place = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(0o700))
                .tempdir()?;
            interrupt.takes_along(place.path().to_owned());
            let lock = locked(place.path())?;
            // Whoever looked for leftovers may have come between.
            let is_there = std::fs::symlink_metadata(place.path())
                .is_ok_and(|seen| lock.metadata().is_ok_and(|own| own.ino() == seen.ino()));
            if is_there {
                return Ok(Self { place, _lock: lock });
            }
        }
        Err(io::Error::other("somebody removes it each time"))
    }

    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    /// Removes the directories of programs that were killed. What cannot be
    /// removed is said: it holds somebody's secrets.
    pub(super) fn remove_what_was_left(&self) {
        let Some(Ok(entries)) = self.path().parent().map(std::fs::read_dir) else {
            return;
        };
        let me = nix::unistd::geteuid().as_raw();
        for entry in entries.flatten() {
            let path = entry.path();
            let is_one = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(PREFIX))
                && path != self.path();
            // Of the entry itself: a link is no directory.
            let is_mine = std::fs::symlink_metadata(&path)
                .is_ok_and(|seen| seen.is_dir() && seen.uid() == me);
            if !is_one || !is_mine {
                continue;
            }
            let Ok(_unused) = locked(&path) else {
                continue;
            };
            if let Err(error) = std::fs::remove_dir_all(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                eprintln!("cannot remove `{}`: {error}", path.display());
            }
        }
    }
}

/// Opens a directory nobody else has locked.
fn locked(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_is_in_use_is_not() {
        let interrupt = Interrupt::default();
        let used = Folder::make(&interrupt).unwrap();
        std::fs::write(used.path().join(".env"), "KEY=1").unwrap();
        let left = Folder::make(&interrupt).unwrap();
        std::fs::write(left.path().join(".env"), "KEY=1").unwrap();
        // As a kill leaves it: the lock is gone, the directory is not.
        let Folder { place, _lock } = left;
        let left = place.keep();
        drop(_lock);
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("kept"), "").unwrap();
        let beside = used.path().parent().unwrap();
        let link = beside.join(format!("{PREFIX}link-{}", std::process::id()));
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        Folder::make(&interrupt).unwrap().remove_what_was_left();
        assert!(!left.exists());
        assert!(used.path().join(".env").exists());
        assert!(elsewhere.path().join("kept").exists());
        std::fs::remove_file(&link).unwrap();
        interrupt.remove_private();
        assert!(!used.path().exists());
    }

    #[test]
    fn nobody_else_may_enter() {
        let made = Folder::make(&Interrupt::default()).unwrap();
        let mode = std::fs::metadata(made.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
