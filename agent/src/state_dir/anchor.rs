//! How far the ledger and the store were known to reach, kept beside them.
//!
//! What for: a chain cannot show that its tail was cut off, nor a store that an
//! older copy was put in its place (in which a revoked grant still stands). The
//! anchor says, under the key, how far the ledger was known to be on the disk
//! and which change of the store was the last.
//!
//! It may lag behind after a crash of the machine, and is never ahead. It does not protect against
//! somebody who exchanges the whole directory for an older copy, or who has the
//! key: against them only a head published elsewhere helps
//! (`hermitcrab audit head`, `audit verify --expect`).

use std::{
    fmt,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use hermitcrab_core::{audit::Head, digest::Digest};
use serde::{Deserialize, Serialize};

use super::{
    key::{Key, Purpose},
    own_file::{self, Access, OwnFileError},
};

/// The anchor's name in the state directory.
pub const FILE_NAME: &str = "anchor";
/// It is written in place, in one piece of this length: small enough never to
/// be torn.
const BYTES: usize = 512;
/// The version this program writes and reads.
const VERSION: u32 = 1;

/// A place in the ledger somebody vouches for: reading may begin there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The chain up to there.
    pub head: Head,
    /// The place in the file.
    pub offset: u64,
}

impl Start {
    /// The first record.
    pub const BEGINNING: Start = Start {
        head: Head::EMPTY,
        offset: 0,
    };
}

/// Why the anchor cannot be used.
#[derive(Debug)]
pub enum AnchorError {
    /// The file.
    File(OwnFileError),
    /// It is not an anchor under this key.
    Form(PathBuf),
    /// Another version wrote it.
    Version(PathBuf, u32),
}

impl fmt::Display for AnchorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REPAIR: &str =
            "`hermitcrab doctor --repair` keeps a copy and makes a new one from what holds";
        match self {
            Self::File(error) => write!(f, "the anchor cannot be used: {error}"),
            Self::Form(path) => write!(
                f,
                "the anchor `{}` is damaged or belongs to another key; {REPAIR}",
                path.display()
            ),
            Self::Version(path, version) => write!(
                f,
                "the anchor `{}` has version {version}, this program reads {VERSION}; use the program that wrote it, or {REPAIR}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for AnchorError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Values {
    place: Start,
    generation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u32,
    ledger_records: u64,
    ledger_digest: String,
    ledger_bytes: u64,
    store_generation: u64,
    tag: String,
}

/// The anchor of a state directory.
#[derive(Debug)]
pub struct Anchor {
    path: PathBuf,
    key: Key,
    values: Values,
}

impl Anchor {
    /// Reads the anchor.
    ///
    /// # Errors
    /// See [`AnchorError`].
    pub fn read(state_dir: &Path, key: &Key) -> Result<Self, AnchorError> {
        let path = state_dir.join(FILE_NAME);
        let file = own_file::open(&path, Access::Read).map_err(AnchorError::File)?;
        // Nobody is in the middle of writing it then.
        own_file::lock(&file, own_file::Lock::Shared)
            .map_err(|error| AnchorError::File(OwnFileError::Io(path.clone(), error)))?;
        let values = values(&file, &path, key)?;
        Ok(Self {
            path,
            key: key.clone(),
            values,
        })
    }

    /// Makes the anchor of a state directory that has none.
    ///
    /// # Errors
    /// There is something in its place, or it cannot be written.
    pub fn make(
        state_dir: &Path,
        key: &Key,
        place: Start,
        generation: u64,
    ) -> Result<Self, AnchorError> {
        let path = state_dir.join(FILE_NAME);
        let values = Values { place, generation };
        own_file::create_whole(state_dir, FILE_NAME, &text(&path, key, values)?)
            .map_err(AnchorError::File)?;
        Ok(Self {
            path,
            key: key.clone(),
            values,
        })
    }

    /// One that knows nothing and is not in any file, for putting things in order.
    pub fn floating(state_dir: &Path, key: &Key) -> Self {
        Self {
            path: state_dir.join(FILE_NAME),
            key: key.clone(),
            values: Values {
                place: Start::BEGINNING,
                generation: 0,
            },
        }
    }

    /// The same, known to somebody else, who reads it for himself.
    pub fn another(&self) -> Self {
        Self {
            path: self.path.clone(),
            key: self.key.clone(),
            values: self.values,
        }
    }

    /// Where the ledger stood; `None` before its first record.
    #[must_use]
    pub fn place(&self) -> Option<Start> {
        (self.values.place.head.next > 0).then_some(self.values.place)
    }

    /// The last change of the store there was.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.values.generation
    }

    /// The ledger has grown up to `place`.
    ///
    /// # Errors
    /// See [`AnchorError`].
    pub fn move_to(&mut self, place: Start) -> Result<(), AnchorError> {
        self.change(|values| values.place = place)
    }

    /// Knows of no record any more, on the disk before this returns: those there were go, and
    /// others get their numbers.
    ///
    /// # Errors
    /// See [`AnchorError`].
    pub fn begin_anew(&mut self) -> Result<(), AnchorError> {
        self.move_to(Start::BEGINNING)?;
        own_file::open(&self.path, Access::Change)
            .map_err(AnchorError::File)?
            .sync_all()
            .map_err(|error| AnchorError::File(OwnFileError::Io(self.path.clone(), error)))
    }

    /// The store was changed.
    ///
    /// # Errors
    /// See [`AnchorError`].
    pub fn store_changed(&mut self, generation: u64) -> Result<(), AnchorError> {
        self.change(|values| values.generation = values.generation.max(generation))
    }

    /// A session and a command may have it at the same time, so it is read
    /// again before it is written.
    fn change(&mut self, change: impl FnOnce(&mut Values)) -> Result<(), AnchorError> {
        let failed =
            |error: io::Error| AnchorError::File(OwnFileError::Io(self.path.clone(), error));
        let file = own_file::open(&self.path, Access::Change).map_err(AnchorError::File)?;
        own_file::lock(&file, own_file::Lock::Alone).map_err(failed)?;
        let mut values = values(&file, &self.path, &self.key)?;
        change(&mut values);
        write(&file, &self.path, &self.key, values)?;
        self.values = values;
        Ok(())
    }
}

fn tag_bytes(values: Values) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&values.place.head.next.to_le_bytes());
    bytes.extend_from_slice(values.place.head.digest.as_bytes());
    bytes.extend_from_slice(&values.place.offset.to_le_bytes());
    bytes.extend_from_slice(&values.generation.to_le_bytes());
    bytes
}

fn values(file: &File, path: &Path, key: &Key) -> Result<Values, AnchorError> {
    let form = || AnchorError::Form(path.to_owned());
    let mut bytes = [0_u8; BYTES];
    file.read_exact_at(&mut bytes, 0).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            form()
        } else {
            AnchorError::File(OwnFileError::Io(path.to_owned(), error))
        }
    })?;
    let wire: Wire = serde_json::from_slice(&bytes).map_err(|_| form())?;
    if wire.version != VERSION {
        return Err(AnchorError::Version(path.to_owned(), wire.version));
    }
    let bytes = |text: &str| HEXLOWER.decode(text.as_bytes()).ok();
    let digest: [u8; 32] = bytes(&wire.ledger_digest)
        .and_then(|digest| digest.try_into().ok())
        .ok_or_else(form)?;
    let values = Values {
        place: Start {
            head: Head {
                next: wire.ledger_records,
                digest: Digest::from_bytes(digest),
            },
            offset: wire.ledger_bytes,
        },
        generation: wire.store_generation,
    };
    let tag = bytes(&wire.tag).ok_or_else(form)?;
    if !key.is_tag(Purpose::Anchor, &tag_bytes(values), &tag) {
        return Err(form());
    }
    Ok(values)
}

fn write(file: &File, path: &Path, key: &Key, values: Values) -> Result<(), AnchorError> {
    file.write_all_at(&text(path, key, values)?, 0)
        .map_err(|error| AnchorError::File(OwnFileError::Io(path.to_owned(), error)))
}

fn text(path: &Path, key: &Key, values: Values) -> Result<Vec<u8>, AnchorError> {
    let wire = Wire {
        version: VERSION,
        ledger_records: values.place.head.next,
        ledger_digest: HEXLOWER.encode(values.place.head.digest.as_bytes()),
        ledger_bytes: values.place.offset,
        store_generation: values.generation,
        tag: HEXLOWER.encode(&key.tag(Purpose::Anchor, &tag_bytes(values))),
    };
    let failed = |error| AnchorError::File(OwnFileError::Io(path.to_owned(), error));
    let mut text = serde_json::to_vec(&wire).map_err(|error| failed(error.into()))?;
    text.resize(BYTES - 1, b' ');
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{audit::Head, digest::Digest};

    use super::{Anchor, AnchorError, FILE_NAME};
    use crate::state_dir::{anchor::Start, key::Key};

    fn at(next: u64) -> Start {
        Start {
            head: Head {
                next,
                digest: Digest::from_bytes([3; 32]),
            },
            offset: next * 100,
        }
    }

    #[test]
    fn an_anchor_moves_and_is_read_again() {
        let dir = tempfile::tempdir().expect("directory");
        let key = Key::make(dir.path()).expect("key");
        let mut anchor = Anchor::make(dir.path(), &key, Start::BEGINNING, 0).expect("made");
        assert_eq!(anchor.place(), None);
        // A command changes the store while a session has the anchor, too.
        let mut other = Anchor::read(dir.path(), &key).expect("read");
        other.store_changed(4).expect("changed");
        anchor.move_to(at(7)).expect("moved");
        let again = Anchor::read(dir.path(), &key).expect("read");
        assert_eq!((again.place(), again.generation()), (Some(at(7)), 4));
        assert!(Anchor::make(dir.path(), &key, at(1), 0).is_err());
    }

    #[test]
    fn a_changed_anchor_or_one_of_another_key_is_none() {
        let dir = tempfile::tempdir().expect("directory");
        let key = Key::make(dir.path()).expect("key");
        drop(Anchor::make(dir.path(), &key, at(7), 2).expect("made"));
        let path = dir.path().join(FILE_NAME);
        let good = std::fs::read(&path).expect("bytes");
        let end = good.iter().rposition(|byte| *byte == b'}').expect("json");
        for at in 0..end {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                std::fs::write(&path, &bytes).expect("written");
                assert!(
                    Anchor::read(dir.path(), &key).is_err(),
                    "byte {at} bit {bit}"
                );
            }
        }
        for length in [0, 1, end, good.len() - 1] {
            std::fs::write(&path, &good[..length]).expect("written");
            assert!(matches!(
                Anchor::read(dir.path(), &key),
                Err(AnchorError::Form(_))
            ));
        }
        std::fs::write(&path, &good).expect("written");
        Anchor::read(dir.path(), &key).expect("the good one");
        std::fs::remove_file(dir.path().join("store.key")).expect("removed");
        let other = Key::make(dir.path()).expect("key");
        assert!(matches!(
            Anchor::read(dir.path(), &other),
            Err(AnchorError::Form(_))
        ));
    }
}
