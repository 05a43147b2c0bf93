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
        // In one piece: a record of many effects holds many digests.
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            if let [high, low] = pair {
                *high = digit(byte >> 4);
                *low = digit(byte & 15);
            }
        }
        f.write_str(core::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Half a byte as a letter.
const fn digit(half: u8) -> u8 {
    match half {
        0..=9 => b'0' + half,
        _ => b'a' + half - 10,
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
