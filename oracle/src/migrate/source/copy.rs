//! Copying one file that is somebody else's.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use crate::interrupt::Interrupt;

/// How often a file that is being written to is copied again.
pub(super) const TRIES: usize = 3;
const CHUNK_BYTES: usize = 1 << 16;

/// What a file held.
pub(super) type Digest = [u8; 32];

/// Why a file was not copied.
#[derive(Debug)]
pub(super) enum Unreadable {
    Missing,
    NoFile,
    /// It is longer than what is made of it could be; so many bytes may be.
    TooLong(u64),
    There(io::Error),
    Here(io::Error),
    CalledOff,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "it is not there"),
            Self::NoFile => write!(
                f,
                "it is a link, a pipe or a device and not a file, so it was not read"
            ),
            Self::TooLong(bytes_max) => {
                write!(f, "it is longer than {bytes_max} bytes, so it was not read")
            }
            Self::There(error) => write!(f, "it cannot be read: {error}"),
            Self::Here(error) => write!(
                f,
                "its copy cannot be written: {error}; make room where TMPDIR says, or have it name another place"
            ),
            Self::CalledOff => write!(f, "it was interrupted"),
        }
    }
}

/// Opens a regular file for reading, and nothing else.
pub(super) fn open(path: &Path) -> Result<File, Unreadable> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // Without leaving a time of access; only the owner may ask for that.
    let file = rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty())
        .or_else(|_| rustix::fs::open(path, flags, Mode::empty()))
        .map_err(|error| match error {
            rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR => Unreadable::Missing,
            rustix::io::Errno::LOOP | rustix::io::Errno::NXIO => Unreadable::NoFile,
            other => Unreadable::There(other.into()),
        })?;
    let file = File::from(file);
    match file.metadata() {
        Ok(seen) if seen.is_file() => Ok(file),
        Ok(_) => Err(Unreadable::NoFile),
        Err(error) => Err(Unreadable::There(error)),
    }
}

/// Copies, and says what was copied. Whoever interrupts it waits for a chunk,
/// not for a database.
pub(super) fn copy(
    source: &Path,
    target: &Path,
    bytes_max: u64,
    interrupt: &Interrupt,
) -> Result<Digest, Unreadable> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let source = open(source)?;
    if source.metadata().map_err(Unreadable::There)?.len() > bytes_max {
        return Err(Unreadable::TooLong(bytes_max));
    }
    let mut target = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(target)
        .map_err(Unreadable::Here)?;
    through(source, |bytes| {
        if interrupt.is_set() {
            return Err(Unreadable::CalledOff);
        }
        target.write_all(bytes).map_err(Unreadable::Here)
    })
}

/// What a file holds.
pub(super) fn digest(path: &Path) -> Result<Digest, Unreadable> {
    through(open(path)?, |_| Ok(()))
}

fn through(
    mut source: File,
    mut each: impl FnMut(&[u8]) -> Result<(), Unreadable>,
) -> Result<Digest, Unreadable> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0_u8; CHUNK_BYTES];
    loop {
        let count = match source.read(&mut chunk) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unreadable::There(error)),
        };
        let bytes = chunk.get(..count).unwrap_or_default();
        hash.update(bytes);
        each(bytes)?;
    }
}
