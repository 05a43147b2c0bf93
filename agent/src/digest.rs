//! SHA-256 for the core, which has no hash function of its own.

use hermitcrab_core::digest::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// A digest of bytes that come one after the other.
#[derive(Clone, Debug, Default)]
pub struct Running(Sha256);

impl Running {
    /// The next of them.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all.
    #[must_use]
    pub fn end(self) -> Digest {
        Digest::from_bytes(self.0.finalize().into())
    }
}
