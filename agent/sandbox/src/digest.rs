//! SHA-256 of bytes and of open files.

use std::io;
use std::os::fd::AsFd;

use hermitcrab_core::digest::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of these bytes; the function to give to the core.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// The digest and length of an open file, from where it stands to its end.
pub(crate) fn digest_file(file: impl AsFd) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut length = 0_u64;
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        match rustix::io::read(file.as_fd(), &mut buffer) {
            Ok(0) => return Ok((Digest::from_bytes(hasher.finalize().into()), length)),
            Ok(count) => {
                hasher.update(buffer.get(..count).unwrap_or_default());
                length = length.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
