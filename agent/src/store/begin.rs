//! What a session begins with: the ledger, and the key and anchor of what is
//! kept, as far as they can be trusted.
//!
//! Every front end begins here, so that none of them trusts more than another:
//! a ledger that is not what it was refuses the start; a key or an anchor that
//! is not what it was means that nothing kept counts, and is said.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::state::{State, StateError};
use crate::{
    audit::{Ledger, LedgerError, Opened, beside},
    state_dir::{anchor::Anchor, own_file::OwnFileError},
};

/// What a session begins with.
#[derive(Debug)]
pub struct Begun {
    /// The ledger, checked, and whether anything was removed from its end.
    pub ledger: (Ledger, Opened),
    /// The directory the ledger is in: the state directory, or one beside its
    /// ledger, which another session has.
    pub place: PathBuf,
    /// The key and the anchor; `None`: nothing that is kept counts.
    pub state: Option<State>,
    /// Why nothing that is kept counts, for the person.
    pub doubt: Option<StateError>,
}

/// Why no session begins.
#[derive(Debug)]
pub enum NotBegun {
    /// The state directory.
    Directory(OwnFileError),
    /// The ledger.
    Ledger(LedgerError),
    /// The key or the anchor of a ledger beside the first.
    Beside(PathBuf, StateError),
}

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => {
                write!(
                    f,
                    "the state directory cannot be used: {error}; `--state-dir DIR` names another"
                )
            }
            Self::Ledger(error) => error.fmt(f),
            Self::Beside(place, error) => write!(
                f,
                "another session has the ledger, and the one beside it in `{}` cannot be used: {error}",
                place.display()
            ),
        }
    }
}

impl std::error::Error for NotBegun {}

impl NotBegun {
    /// Whether nothing is wrong with what is there: the system does not let it be used.
    #[must_use]
    pub const fn is_of_the_system(&self) -> bool {
        match self {
            Self::Directory(error) => matches!(error, OwnFileError::Io(..)),
            Self::Ledger(error) => error.is_of_the_system(),
            Self::Beside(_, error) => error.is_of_the_system(),
        }
    }
}

/// Opens the ledger of a state directory, and looks whether what is kept there
/// can be trusted.
///
/// # Errors
/// See [`NotBegun`]; then nothing may happen.
pub fn begin(state_dir: &Path) -> Result<Begun, NotBegun> {
    let (state, doubt) = match State::open(state_dir) {
        Ok(state) => (Some(state), None),
        Err(StateError::Directory(error)) => return Err(NotBegun::Directory(error)),
        Err(doubt) => (None, Some(doubt)),
    };
    let anchor = state.as_ref().map(|state| state.another().anchor);
    let (ledger, place) = ledger(state_dir, anchor)?;
    Ok(Begun {
        ledger,
        place,
        state,
        doubt,
    })
}

/// The ledger of a state directory, or the first one beside it that nobody has, and
/// the directory it is in.
///
/// # Errors
/// See [`NotBegun`]; then nothing may happen.
pub fn ledger(
    state_dir: &Path,
    anchor: Option<Anchor>,
) -> Result<((Ledger, Opened), PathBuf), NotBegun> {
    match Ledger::open_anchored(state_dir, anchor) {
        Err(LedgerError::Busy(first)) => beside(state_dir, first),
        opened => Ok((opened.map_err(NotBegun::Ledger)?, state_dir.to_owned())),
    }
}

/// The first ledger beside `first` that nobody has.
fn beside(state_dir: &Path, first: PathBuf) -> Result<((Ledger, Opened), PathBuf), NotBegun> {
    for number in 1..=beside::MOST {
        let place = beside::place(state_dir, number);
        let state = State::open(&place).map_err(|error| NotBegun::Beside(place.clone(), error))?;
        match Ledger::open_anchored(&place, Some(state.anchor)) {
            Err(LedgerError::Busy(_)) => {}
            opened => return Ok((opened.map_err(NotBegun::Ledger)?, place)),
        }
    }
    Err(NotBegun::Ledger(LedgerError::Busy(first)))
}
