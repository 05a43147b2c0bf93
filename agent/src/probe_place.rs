//! An empty directory to try the sandbox out in.
//!
//! What for: the sandbox is tried on a directory of its own, so that nothing of
//! the user's is shown to it. Whoever uses one holds a lock on it, which goes with
//! the process in any manner it ends. So what a killed program left is told from
//! what another one uses, and the next start removes it.
//!
//! It must never remove a directory that holds anything, nor one in use.
//!
//! To be used it needs a name in a session, so one that decides nothing lends it one.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::DirId;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::digest::sha256;

const PREFIX: &str = "hermitcrab-probe-";
/// Names of the parent directory that are looked at.
const NAMES_MAX: usize = 10_000;
/// Another start may take a new directory for a left one before it is held.
const TRIES: u32 = 10;

/// The directory; dropping it removes it.
#[derive(Debug)]
pub(crate) struct ProbePlace {
    path: PathBuf,
    _held: OwnedFd,
}

impl ProbePlace {
    /// Makes one in `parent`, and removes what others left there. `number` gives
    /// a new one each time.
    pub(crate) fn make(
        parent: &Path,
        mut number: impl FnMut() -> io::Result<u64>,
    ) -> io::Result<Self> {
        sweep(parent);
        let mut why_not = None;
        for _ in 0..TRIES {
            let path = parent.join(format!("{PREFIX}{:016x}", number()?));
            fs::create_dir(&path)?;
            match hold(&path) {
                Ok(held) => return Ok(Self { path, _held: held }),
                Err(error) => why_not = Some(error),
            }
            let _gone = fs::remove_dir(&path);
        }
        let parent = parent.display();
        Err(match why_not {
            Some(error) if error.kind() != io::ErrorKind::NotFound => {
                let why = format!("a new directory in {parent} cannot be used: {error}");
                io::Error::new(error.kind(), why)
            }
            _ => io::Error::other(format!(
                "each new directory in {parent} was taken away at once"
            )),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ProbePlace {
    fn drop(&mut self) {
        // What cannot be removed now is at the next start.
        let _gone = fs::remove_dir(&self.path);
    }
}

/// Holds a directory that nobody holds, under the name it has.
fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty())?;
    flock(&dir, FlockOperation::NonBlockingLockExclusive)?;
    // Its last holder may have removed it meanwhile.
    let (held, named) = (rustix::fs::fstat(&dir)?, fs::symlink_metadata(path)?);
    if (held.st_dev, held.st_ino) == (named.dev(), named.ino()) {
        Ok(dir)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Removes what nobody holds. What cannot be looked at stays.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.take(NAMES_MAX).flatten() {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
            && let Ok(_held) = hold(&entry.path())
        {
            // Not one with something in it: no probe leaves anything.
            let _gone = fs::remove_dir(entry.path());
        }
    }
}

/// A directory handle of a session that decides nothing, to try things out with.
///
/// # Errors
/// The refusal, in words.
pub(crate) fn a_handle() -> Result<DirId, String> {
    let (mut session, _) = Session::open(SessionConfig {
        id: 0,
        hash: sha256,
        isolation: Isolation::Unknown,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    session
        .add_dir(RelPath::root())
        .map_err(|denial| denial.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn make(parent: &Path, number: u64) -> ProbePlace {
        ProbePlace::make(parent, || Ok(number)).unwrap()
    }

    #[test]
    fn what_a_killed_program_left_goes_at_the_next_start_and_nothing_else_does() {
        let parent = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let below = |name: &str| parent.path().join(name);
        fs::create_dir(below("hermitcrab-probe-left")).unwrap();
        fs::create_dir_all(below("hermitcrab-probe-full/inner")).unwrap();
        fs::create_dir(below("another")).unwrap();
        fs::write(below("hermitcrab-probe-file"), "").unwrap();
        std::os::unix::fs::symlink(other.path(), below("hermitcrab-probe-link")).unwrap();

        let first = make(parent.path(), 1);
        let second = make(parent.path(), 2);
        let stay = [
            "another",
            "hermitcrab-probe-file",
            "hermitcrab-probe-full",
            "hermitcrab-probe-link",
        ];
        let used = [
            "hermitcrab-probe-0000000000000001",
            "hermitcrab-probe-0000000000000002",
        ];
        let mut all = [&stay[..], &used[..]].concat();
        all.sort_unstable();
        assert_eq!(names(parent.path()), all);
        assert!(other.path().is_dir());

        drop((first, second));
        assert_eq!(names(parent.path()), stay);
    }

    #[test]
    fn a_place_whose_holder_is_gone_without_removing_it_goes() {
        let parent = tempfile::tempdir().unwrap();
        let killed = make(parent.path(), 1);
        // As the kernel closes it for a process that was killed.
        let ProbePlace { path, _held } = &killed;
        flock(_held, FlockOperation::Unlock).unwrap();
        assert!(path.is_dir());
        let _next = make(parent.path(), 2);
        assert_eq!(names(parent.path()), ["hermitcrab-probe-0000000000000002"]);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let _first = make(parent.path(), 1);
        assert!(ProbePlace::make(parent.path(), || Ok(1)).is_err());
        assert!(ProbePlace::make(&parent.path().join("none"), || Ok(1)).is_err());
    }
}
