//! Copying one file that is somebody else's.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
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
    let digest = through(source, |piece| {
        if interrupt.is_set() {
            return Err(Unreadable::CalledOff);
        }
        match piece {
            Piece::Bytes(bytes) => target.write_all(bytes),
            // A database may be mostly holes, and its copy has no more room than it takes.
            Piece::Zeros(count) => i64::try_from(count)
                .map_err(io::Error::other)
                .and_then(|count| target.seek(SeekFrom::Current(count)).map(drop)),
        }
        .map_err(Unreadable::Here)
    })?;
    let end = target.stream_position().map_err(Unreadable::Here)?;
    target.set_len(end).map_err(Unreadable::Here)?;
    Ok(digest)
}

/// What a file holds.
pub(super) fn digest(path: &Path) -> Result<Digest, Unreadable> {
    through(open(path)?, |_| Ok(()))
}

/// A part of a file.
enum Piece<'b> {
    Bytes(&'b [u8]),
    /// So many bytes that are all zero, be they written or a hole.
    Zeros(u64),
}

/// A file piece by piece; what it held. Holes are not read: of a file that is long and mostly
/// not there only the rest takes time. Zeros that are there count as a hole does.
fn through(
    source: File,
    mut each: impl FnMut(Piece<'_>) -> Result<(), Unreadable>,
) -> Result<Digest, Unreadable> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0_u8; CHUNK_BYTES];
    let (mut at, mut zeros) = (0_u64, 0_u64);
    loop {
        let data = data_from(&source, at).map_err(Unreadable::There)?;
        // Pieces begin at the same places wherever the holes are.
        let hole = data.saturating_sub(at) / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
        let count = match hole {
            0 => filled(&source, &mut chunk, at).map_err(Unreadable::There)? as u64,
            hole => hole,
        };
        let bytes = chunk.get(..usize::try_from(count).unwrap_or(0));
        match bytes.filter(|_| hole == 0) {
            Some([]) => break,
            Some(bytes) if bytes.iter().any(|byte| *byte != 0) => {
                hash.update(zeros.to_le_bytes());
                zeros = 0;
                hash.update(count.to_le_bytes());
                hash.update(bytes);
                each(Piece::Bytes(bytes))?;
            }
            _ => {
                zeros = zeros.saturating_add(count);
                each(Piece::Zeros(count))?;
            }
        }
        at = at.saturating_add(count);
    }
    hash.update(zeros.to_le_bytes());
    Ok(hash.finalize().into())
}

/// Where the next of a file's bytes is that is in no hole: there or behind it; its end if there
/// is none. File systems without holes have all of them.
fn data_from(file: &File, at: u64) -> io::Result<u64> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Ok(data) => Ok(data),
        Err(rustix::io::Errno::NXIO) => Ok(file.metadata()?.len()),
        Err(_) => Ok(at),
    }
}

/// As many bytes as there are from here on and find room; how many that is.
fn filled(file: &File, chunk: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn what_is_long_and_mostly_not_there_takes_no_more_room_as_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = File::create(at("long")).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"middle", 3 << 30).unwrap();
        file.set_len(5 << 30).unwrap();
        let seen = copy(&at("long"), &at("copy"), u64::MAX, &Interrupt::default()).unwrap();
        let copied = std::fs::metadata(at("copy")).unwrap();
        assert_eq!(copied.len(), 5 << 30);
        assert!(copied.blocks() * 512 < 1 << 20, "{}", copied.blocks());
        let mut middle = [1; 8];
        let copied = File::open(at("copy")).unwrap();
        copied.read_exact_at(&mut middle, (3 << 30) - 1).unwrap();
        assert_eq!(&middle, b"\0middle\0");
        assert_eq!(digest(&at("copy")).unwrap(), seen);
        file.write_all_at(b"m", 4 << 30).unwrap();
        assert_ne!(digest(&at("long")).unwrap(), seen);
        file.write_all_at(b"\0", 4 << 30).unwrap();
        assert_eq!(digest(&at("long")).unwrap(), seen, "zeros as in a hole");
        file.set_len((5 << 30) + 1).unwrap();
        assert_ne!(digest(&at("long")).unwrap(), seen);
    }

    #[test]
    fn a_copy_holds_what_the_file_does_wherever_its_zeros_are() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let zeros = |count: usize| vec![0_u8; count];
        let mut digests = std::collections::BTreeSet::new();
        let texts = [
            zeros(0),
            zeros(1),
            zeros(CHUNK_BYTES),
            b"x".to_vec(),
            [zeros(CHUNK_BYTES), b"x".to_vec()].concat(),
            [b"x".to_vec(), zeros(2 * CHUNK_BYTES)].concat(),
            [b"x".to_vec(), zeros(2 * CHUNK_BYTES), b"y".to_vec()].concat(),
            [zeros(CHUNK_BYTES - 1), b"xy".to_vec(), zeros(9)].concat(),
        ];
        for text in &texts {
            std::fs::write(at("from"), text).unwrap();
            let seen = copy(&at("from"), &at("to"), u64::MAX, &Interrupt::default()).unwrap();
            assert!(std::fs::read(at("to")).unwrap() == *text);
            digests.insert(seen);
        }
        assert_eq!(digests.len(), texts.len());
    }
}
