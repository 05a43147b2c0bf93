//! The state directory as a whole: key, anchor, and whether they belong together.

use std::{fmt, path::Path};

use super::FILE_NAME;
use crate::{
    audit,
    state_dir::{
        anchor::{self, Anchor, AnchorError, Start},
        key::{self, Key, KeyError},
        own_file::{self, OwnFileError},
    },
};

/// Why what is kept cannot be trusted.
#[derive(Debug)]
pub enum StateError {
    /// The directory.
    Directory(OwnFileError),
    /// The key.
    Key(KeyError),
    /// The anchor.
    Anchor(AnchorError),
    /// The key is gone, but what it sealed is there.
    KeyLost,
    /// The anchor is gone, but what it is for is there.
    AnchorLost,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => write!(f, "the state directory cannot be used: {error}; `--state-dir DIR` names another"),
            Self::Key(error) => error.fmt(f),
            Self::Anchor(error) => error.fmt(f),
            Self::KeyLost => f.write_str(
                "the store's key is gone, so nothing kept under it can be trusted; put it back, or `hermitcrab doctor --repair` sets the store aside",
            ),
            Self::AnchorLost => f.write_str(
                "the anchor is gone, so a ledger cut short or an older store would not be noticed; `hermitcrab doctor --repair` makes a new one from what holds",
            ),
        }
    }
}

impl std::error::Error for StateError {}

impl StateError {
    /// Whether nothing is wrong with what is there: the system does not let it be used.
    #[must_use]
    pub const fn is_of_the_system(&self) -> bool {
        matches!(self, Self::Directory(OwnFileError::Io(..)))
    }
}

/// The key and the anchor of a state directory.
#[derive(Debug)]
pub struct State {
    /// The key.
    pub key: Key,
    /// The anchor.
    pub anchor: Anchor,
}

impl State {
    /// The same, known to somebody else.
    #[must_use]
    pub(super) fn another(&self) -> Self {
        Self {
            key: self.key.clone(),
            anchor: self.anchor.another(),
        }
    }

    /// Opens what is there; makes it where nothing is yet.
    ///
    /// # Errors
    /// See [`StateError`]; then nothing that is kept counts.
    pub fn open(state_dir: &Path) -> Result<Self, StateError> {
        own_file::state_dir(state_dir).map_err(StateError::Directory)?;
        if let Some(state) = Self::read(state_dir)? {
            return Ok(state);
        }
        // Two programs may begin here at the same time: one makes both, the
        // other waits and reads them.
        let _held = own_file::hold(state_dir).map_err(StateError::Directory)?;
        Self::make(state_dir)
    }

    /// What is there; `None` if a part is missing, or not there yet.
    fn read(state_dir: &Path) -> Result<Option<Self>, StateError> {
        let key = match Key::read(state_dir) {
            Err(KeyError::File(error)) if error.is_missing() => return Ok(None),
            read => read.map_err(StateError::Key)?,
        };
        match Anchor::read(state_dir, &key) {
            Err(AnchorError::File(error)) if error.is_missing() => Ok(None),
            read => read
                .map(|anchor| Some(Self { key, anchor }))
                .map_err(StateError::Anchor),
        }
    }

    /// Makes what is missing and was never there. Whoever calls holds the directory.
    fn make(state_dir: &Path) -> Result<Self, StateError> {
        let there = |name: &str| {
            std::fs::symlink_metadata(state_dir.join(name)).is_ok_and(|seen| seen.len() > 0)
        };
        let key = match Key::read(state_dir) {
            Err(KeyError::File(error)) if error.is_missing() => {
                if there(anchor::FILE_NAME) || there(FILE_NAME) {
                    return Err(StateError::KeyLost);
                }
                Key::make(state_dir)
            }
            read => read,
        }
        .map_err(StateError::Key)?;
        let anchor = match Anchor::read(state_dir, &key) {
            Err(AnchorError::File(error)) if error.is_missing() => {
                if there(audit::FILE_NAME) || there(FILE_NAME) {
                    return Err(StateError::AnchorLost);
                }
                Anchor::make(state_dir, &key, Start::BEGINNING, 0)
            }
            read => read,
        }
        .map_err(StateError::Anchor)?;
        Ok(Self { key, anchor })
    }

    /// What is there already; `None` if there is nothing and never was.
    ///
    /// # Errors
    /// As for [`State::open`].
    pub fn look(state_dir: &Path) -> Result<Option<Self>, StateError> {
        let there = |name: &str| std::fs::symlink_metadata(state_dir.join(name)).is_ok();
        if there(key::FILE_NAME) || there(anchor::FILE_NAME) {
            Self::open(state_dir).map(Some)
        } else {
            Ok(None)
        }
    }
}
