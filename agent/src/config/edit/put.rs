//! Putting a file in place of another, by one program at a time.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use rustix::{fs::FlockOperation, io::Errno};

use crate::state_dir::own_file;

/// How long somebody else may take to write it, and how often it is looked whether they have.
const HELD_MAX: Duration = Duration::from_secs(10);
const HELD_LOOK: Duration = Duration::from_millis(5);

/// The directory of a file, which is made where there is none.
pub(super) fn made(path: &Path) -> io::Result<&Path> {
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    // Whatever the umask is: a directory that others may write would not be read from, and by
    // the XDG Base Directory Specification one that is made is its user's alone.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    Ok(dir)
}

/// Keeps others from writing in a directory what is written here, until it is closed. Where
/// its file system knows no locks there is none, and that the file is as it was is all there is.
pub(super) fn alone(dir: &Path) -> io::Result<File> {
    let held = File::open(dir)?;
    let mut waited = Duration::ZERO;
    while waited < HELD_MAX {
        match rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                std::thread::sleep(HELD_LOOK);
                waited = waited.saturating_add(HELD_LOOK);
            }
            Ok(()) | Err(_) => return Ok(held),
        }
    }
    Err(io::Error::other(
        "another program changes it at the moment and does not end; see which, and try again",
    ))
}

/// Puts a whole file in place of another; nobody else may read it.
pub(in crate::config) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = made(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = dir.join(name);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&new, path))
        // What a person was told they forbid holds after a loss of power, too.
        .and_then(|()| own_file::flush_dir(&File::open(dir)?));
    if written.is_err() {
        // What is half written must not stay; the first error is the one to tell.
        let _ = std::fs::remove_file(&new);
    }
    written
}
