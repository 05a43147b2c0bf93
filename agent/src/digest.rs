//! SHA-256 for the core, which has no hash function of its own.

use hermitcrab_core::digest::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}
