//! Digests of what is shown, spent and recorded.
//!
//! The core holds no hash function: the edge passes one in (SHA-256), so the
//! core stays free of dependencies and a test can use a cheap stand-in.

use core::fmt;

/// 32 bytes naming some content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The hash function the edge supplies; SHA-256 in the shipped agent.
pub type HashFn = fn(&[u8]) -> Digest;

impl Digest {
    /// Stands where an action carries no content, such as a listing.
    pub const NONE: Digest = Digest([0; 32]);

    /// Wraps the output of a hash function.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
