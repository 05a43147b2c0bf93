//! SHA-256 of bytes and of open files, holes included.
//!
//! A hole reads as zeroes and counts as such, but is never read and, in a
//! copy, never written: three gigabytes of nothing stay nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use hermitcrab_core::digest::Digest;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// How much of a file is in memory at one time, at most: of a short one that is all of it,
/// as clearing so much for each of thousands takes longer than reading them.
const PIECE_BYTES: usize = 256 * 1024;
/// What a hole reads as.
static ZEROES: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// The digest of these bytes; the function to give to the core.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// The digest and length of an open file, from its beginning to its end.
pub(crate) fn digest_file(file: impl AsFd) -> io::Result<(Digest, u64)> {
    digest_at_most(file, u64::MAX)
}

/// The same of a file that somebody may write to meanwhile; one that is longer than this
/// by then is an error, however long it gets.
pub(crate) fn digest_at_most(file: impl AsFd, bytes_max: u64) -> io::Result<(Digest, u64)> {
    through(file.as_fd(), Bound::AtMost(bytes_max), |_, _| Ok(()))
}

/// The digest of the first bytes of an open file, and how many there were.
pub(crate) fn digest_beginning(file: impl AsFd, bytes: u64) -> io::Result<(Digest, u64)> {
    through(file.as_fd(), Bound::Beginning(bytes), |_, _| Ok(()))
}

/// Fills the empty file `to` with what `from` holds, holes kept; the digest
/// and length of it.
///
/// Where both lie on a file system that shares blocks, nothing is copied.
pub(crate) fn copy_file(from: impl AsFd, to: impl AsFd) -> io::Result<(Digest, u64)> {
    copy_at_most(from, to, u64::MAX, &|| ())
}

/// The same of a file that somebody may write to meanwhile, as [`digest_at_most`].
pub(crate) fn copy_at_most(
    from: impl AsFd,
    to: impl AsFd,
    bytes_max: u64,
    tick: &dyn Fn(),
) -> io::Result<(Digest, u64)> {
    copy(from.as_fd(), to.as_fd(), Bound::AtMost(bytes_max), tick)
}

/// The same of the first bytes of it, whatever somebody added meanwhile.
pub(crate) fn copy_beginning(
    from: impl AsFd,
    to: impl AsFd,
    bytes: u64,
    tick: &dyn Fn(),
) -> io::Result<(Digest, u64)> {
    copy(from.as_fd(), to.as_fd(), Bound::Beginning(bytes), tick)
}

fn copy(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    bound: Bound,
    tick: &dyn Fn(),
) -> io::Result<(Digest, u64)> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        let (digest, bytes) = through(to, bound, |_, _| {
            tick();
            Ok(())
        })?;
        // What follows the beginning is not wanted.
        rustix::fs::ftruncate(to, bytes)?;
        return Ok((digest, bytes));
    }
    let mut written = 0;
    let (digest, bytes) = through(from, bound, |piece, at| {
        tick();
        written = at.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        write_at(to, piece, at)
    })?;
    if written != bytes {
        // A hole at the end has been written by nobody.
        rustix::fs::ftruncate(to, bytes)?;
    }
    Ok((digest, bytes))
}

/// How much of a file is wanted.
#[derive(Clone, Copy)]
enum Bound {
    /// All of it; more than so much is an error.
    AtMost(u64),
    /// So much and no more.
    Beginning(u64),
}

impl Bound {
    /// So far, if it may be as long.
    fn held(self, to: u64) -> io::Result<u64> {
        match self {
            Self::AtMost(max) if to > max => Err(io::ErrorKind::FileTooLarge.into()),
            Self::AtMost(_) => Ok(to),
            Self::Beginning(bytes) => Ok(to.min(bytes)),
        }
    }

    /// Where nothing more is wanted.
    const fn end(self) -> u64 {
        match self {
            Self::AtMost(_) => u64::MAX,
            Self::Beginning(bytes) => bytes,
        }
    }
}

/// Hands every piece of data to `each` with its place, in order.
fn through(
    file: BorrowedFd<'_>,
    bound: Bound,
    mut each: impl FnMut(&[u8], u64) -> io::Result<()>,
) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = Vec::new();
    let mut at = 0_u64;
    while at < bound.end() {
        // The next data; everything before it is a hole.
        match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => {
                let data = bound.held(data)?;
                hash_zeroes(&mut hasher, data.saturating_sub(at));
                at = at.max(data);
            }
            Err(Errno::NXIO) => {
                // A hole up to the end, or the end itself.
                let end = bound.held(rustix::fs::seek(file, SeekFrom::End(0))?)?;
                hash_zeroes(&mut hasher, end.saturating_sub(at));
                return Ok((Digest::from_bytes(hasher.finalize().into()), at.max(end)));
            }
            // Not every file system says where its holes are.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
        let end = rustix::fs::seek(file, SeekFrom::Hole(at)).unwrap_or(u64::MAX);
        let end = end.min(bound.end());
        while at < end {
            let wanted = usize::try_from(end.saturating_sub(at))
                .unwrap_or(PIECE_BYTES)
                .min(PIECE_BYTES);
            if buffer.len() < wanted {
                buffer.resize(wanted, 0_u8);
            }
            let piece = buffer.get_mut(..wanted).unwrap_or_default();
            let count = match rustix::io::pread(file, &mut *piece, at) {
                Ok(0) => return Ok((Digest::from_bytes(hasher.finalize().into()), at)),
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let data = buffer.get(..count).unwrap_or_default();
            hasher.update(data);
            each(data, at)?;
            at = bound.held(at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX)))?;
        }
    }
    Ok((Digest::from_bytes(hasher.finalize().into()), at))
}

fn hash_zeroes(hasher: &mut Sha256, mut count: u64) {
    while count > 0 {
        let piece = usize::try_from(count)
            .unwrap_or(PIECE_BYTES)
            .min(PIECE_BYTES);
        hasher.update(ZEROES.get(..piece).unwrap_or_default());
        count = count.saturating_sub(u64::try_from(piece).unwrap_or(u64::MAX));
    }
}

fn write_at(file: BorrowedFd<'_>, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = bytes.get(count..).unwrap_or_default();
                at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};
    use std::os::unix::fs::MetadataExt as _;

    use super::{copy_beginning, copy_file, digest_at_most, digest_file, sha256};

    #[test]
    fn holes_count_as_zeroes_and_stay_holes_in_a_copy() {
        let check = |parts: &[(u64, &[u8])], length: u64| {
            let mut file = tempfile::tempfile().expect("file");
            let mut plain = vec![0_u8; usize::try_from(length).expect("length")];
            for (at, bytes) in parts {
                file.seek(SeekFrom::Start(*at)).expect("seek");
                file.write_all(bytes).expect("write");
                let at = usize::try_from(*at).expect("place");
                plain[at..at + bytes.len()].copy_from_slice(bytes);
            }
            file.set_len(length).expect("length");
            let expected = (sha256(&plain), length);
            assert_eq!(digest_file(&file).expect("digest"), expected, "{parts:?}");
            let copy = tempfile::tempfile().expect("copy");
            assert_eq!(copy_file(&file, &copy).expect("copied"), expected);
            assert_eq!(digest_file(&copy).expect("digest"), expected);
            let blocks = |file: &std::fs::File| file.metadata().expect("stat").blocks();
            assert!(blocks(&copy) <= blocks(&file).saturating_add(16));
        };
        check(&[], 0);
        check(&[(0, b"plain")], 5);
        check(&[], 4 << 20);
        check(&[(0, b"head"), (2 << 20, b"middle")], 4 << 20);
        check(&[((1 << 20) + 7, b"tail")], (1 << 20) + 11);
    }

    #[test]
    fn of_a_file_that_grows_its_beginning_can_be_had() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(b"plain and more").expect("write");
        let check = |file: &std::fs::File, bytes: u64, expected: &[u8]| {
            let copy = tempfile::tempfile().expect("copy");
            let expected = (sha256(expected), expected.len() as u64);
            let copied = copy_beginning(file, &copy, bytes, &|| ()).expect("copied");
            assert_eq!(
                (copied, digest_file(&copy).expect("digest")),
                (expected, expected)
            );
        };
        check(&file, 5, b"plain");
        check(&file, 0, b"");
        // It may be shorter by now, or end in a hole.
        check(&file, 99, b"plain and more");
        file.set_len(1 << 42).expect("length");
        let zeroes = [b"plain and more".as_slice(), &[0; 1 << 20]].concat();
        check(&file, zeroes.len() as u64, &zeroes);
    }

    #[test]
    fn what_is_longer_than_it_was_is_not_read_to_its_end() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(b"plain").expect("write");
        assert!(digest_at_most(&file, 5).is_ok());
        let too_long = |file: &std::fs::File| {
            let error = digest_at_most(file, 5).expect_err("too long");
            assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
        };
        file.write_all(b"!").expect("write");
        too_long(&file);
        // Of nothing at all, but more than anybody would wait for.
        file.set_len(1 << 42).expect("length");
        too_long(&file);
        file.set_len(0).expect("length");
        file.set_len(1 << 42).expect("length");
        too_long(&file);
    }
}
