//! The store's key: 32 bytes of the system's randomness, in a file of its own.
//!
//! What for: identifiers are kept only as keyed hashes, and what is kept is
//! sealed, so that a copy of the store is of no use, and a changed one is
//! noticed. The key must never be printed, recorded or handed to a command.
//!
//! It does not protect against somebody who can read the key file: that is
//! whoever is the same user, or root.

use std::{
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::own_file::{self, Access, OwnFileError};

/// The key's name in the state directory.
pub const FILE_NAME: &str = "store.key";
/// Its length.
const KEY_BYTES: usize = 32;

/// A keyed hash.
pub type Tag = [u8; 32];

/// What is hashed, so that a tag of one kind never passes for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The identifier of an object.
    Object,
    /// The content of the store.
    Seal,
    /// The anchor of the ledger.
    Anchor,
}

impl Purpose {
    const fn word(self) -> &'static [u8] {
        match self {
            Self::Object => b"hermitcrab object\0",
            Self::Seal => b"hermitcrab store\0",
            Self::Anchor => b"hermitcrab anchor\0",
        }
    }
}

/// Why there is no key.
#[derive(Debug)]
pub enum KeyError {
    /// The file.
    File(OwnFileError),
    /// It is not as long as a key; its length, as far as it was read.
    Length(PathBuf, usize),
    /// The system has no randomness.
    Random(String),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "the store's key cannot be used: {error}"),
            Self::Length(path, bytes) => write!(
                f,
                "the store's key `{}` has {bytes} bytes instead of {KEY_BYTES}; `hermitcrab doctor --repair` sets it aside with the store it belongs to",
                path.display()
            ),
            Self::Random(what) => write!(f, "the system has no randomness: {what}"),
        }
    }
}

impl std::error::Error for KeyError {}

/// The key.
#[derive(Clone)]
pub struct Key([u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key that is kept nowhere.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut key = [0_u8; KEY_BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// Reads the key of a state directory.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub fn read(state_dir: &Path) -> Result<Self, KeyError> {
        let path = state_dir.join(FILE_NAME);
        let file = own_file::open(&path, Access::Read).map_err(KeyError::File)?;
        let mut bytes = Vec::new();
        file.take(KEY_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| KeyError::File(OwnFileError::Io(path.clone(), error)))?;
        let length = bytes.len();
        bytes
            .try_into()
            .map(Self)
            .map_err(|_| KeyError::Length(path, length))
    }

    /// Makes the key of a state directory that has none.
    ///
    /// # Errors
    /// There is something in its place, or it cannot be written.
    pub fn make(state_dir: &Path) -> Result<Self, KeyError> {
        let key = Self::draw().map_err(|error| KeyError::Random(error.to_string()))?;
        own_file::create_whole(state_dir, FILE_NAME, &key.0).map_err(KeyError::File)?;
        Ok(key)
    }

    /// The keyed hash of some bytes.
    #[must_use]
    pub fn tag(&self, purpose: Purpose, bytes: &[u8]) -> Tag {
        self.mac(purpose, bytes)
            .map_or([0; 32], |mac| mac.finalize().into_bytes().into())
    }

    /// Is it the keyed hash of these bytes? Takes as long whatever differs.
    #[must_use]
    pub fn is_tag(&self, purpose: Purpose, bytes: &[u8], tag: &[u8]) -> bool {
        self.mac(purpose, bytes)
            .is_some_and(|mac| mac.verify_slice(tag).is_ok())
    }

    /// `None` cannot happen: every length of key is taken.
    fn mac(&self, purpose: Purpose, bytes: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(purpose.word());
        mac.update(bytes);
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{FILE_NAME, Key, KeyError, Purpose};

    #[test]
    fn a_key_is_made_once_and_read_again() {
        let dir = tempfile::tempdir().expect("directory");
        assert!(matches!(Key::read(dir.path()), Err(KeyError::File(error)) if error.is_missing()));
        let made = Key::make(dir.path()).expect("made");
        let read = Key::read(dir.path()).expect("read");
        let tag = made.tag(Purpose::Object, b"x");
        assert!(read.is_tag(Purpose::Object, b"x", &tag));
        assert!(!read.is_tag(Purpose::Seal, b"x", &tag), "another purpose");
        assert!(!read.is_tag(Purpose::Object, b"y", &tag), "other bytes");
        assert!(Key::make(dir.path()).is_err(), "a key is never replaced");
        let mode = std::fs::metadata(dir.path().join(FILE_NAME))
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(format!("{made:?}"), "Key(..)");
    }

    #[test]
    fn a_key_of_another_length_is_no_key() {
        let dir = tempfile::tempdir().expect("directory");
        Key::make(dir.path()).expect("made");
        for bytes in [0, 31, 33] {
            std::fs::write(dir.path().join(FILE_NAME), vec![7; bytes]).expect("written");
            assert!(
                matches!(Key::read(dir.path()), Err(KeyError::Length(_, length)) if length == bytes)
            );
        }
    }
}
