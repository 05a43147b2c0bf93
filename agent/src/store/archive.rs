//! Moving a ledger to another place, so that the next one begins empty.
//!
//! What for: a ledger grows with all that is done, and nothing of it is ever removed. Somebody
//! who keeps the old records elsewhere wants the room back, and a chain that still holds: the
//! copy is a whole ledger, checked before the original goes, and whoever calls this writes down
//! in the next one where it ended.
//!
//! It must never remove a record that is not in a copy on the disk, nor one of a ledger that
//! does not hold: what is wrong with that is the owner's to look at first.

use std::{
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use hermitcrab_core::audit::Head;

use super::{State, StateError};
use crate::{
    audit::{self, LedgerError, index},
    state_dir::{
        anchor::AnchorError,
        own_file::{self, Access, OwnFileError},
    },
};

/// A ledger that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archived {
    /// Where it ended.
    pub head: Head,
    /// Its length.
    pub bytes: u64,
}

/// Why one was not moved; it is as it was then.
#[derive(Debug)]
pub enum ArchiveError {
    /// It does not hold, or a session writes it.
    Ledger(LedgerError),
    /// What tells how far it reaches does not hold.
    State(StateError),
    /// That cannot be changed.
    Anchor(AnchorError),
    /// A file or a directory.
    File(OwnFileError),
    /// The copy is not what was to be copied.
    Differs(PathBuf),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
            Self::Anchor(error) => error.fmt(f),
            Self::File(error) => error.fmt(f),
            Self::Differs(path) => write!(
                f,
                "the copy `{}` is not what was copied, so the ledger stays; look after that disk",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ArchiveError {}

/// Moves the ledger in `dir` into the directory `to`, which is made; `None` where nothing is
/// recorded.
///
/// # Errors
/// See [`ArchiveError`].
pub fn archive(dir: &Path, to: &Path) -> Result<Option<Archived>, ArchiveError> {
    let path = dir.join(audit::FILE_NAME);
    // No session begins with it meanwhile: one that wants to has another one beside it.
    let Some(_nobody_has_it) = audit::hold(dir).map_err(ArchiveError::Ledger)? else {
        return Ok(None);
    };
    let state = State::look(dir).map_err(ArchiveError::State)?;
    let known = state.as_ref().and_then(|state| state.anchor.place());
    let known: Vec<Head> = known.map(|place| place.head).into_iter().collect();
    let verified = audit::verify_against(dir, &known).map_err(ArchiveError::Ledger)?;
    if verified.head.next == 0 {
        return Ok(None);
    }
    let copy = to.join(audit::FILE_NAME);
    copied(&path, &copy, verified.bytes).map_err(ArchiveError::File)?;
    let found = audit::verify(to).map_err(ArchiveError::Ledger)?;
    if found.head != verified.head {
        return Err(ArchiveError::Differs(copy));
    }
    // First what knows how far it reaches: cut off after this it is a ledger that knows less
    // of itself, and holds.
    if let Some(mut state) = state {
        state.anchor.begin_anew().map_err(ArchiveError::Anchor)?;
    }
    for name in [audit::FILE_NAME, index::FILE_NAME] {
        let gone = dir.join(name);
        match fs::remove_file(&gone) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ArchiveError::File(OwnFileError::Io(gone, error)));
            }
            Ok(()) | Err(_) => {}
        }
    }
    own_file::sync_dir(dir).map_err(ArchiveError::File)?;
    Ok(Some(Archived {
        head: verified.head,
        bytes: verified.bytes,
    }))
}

/// Copies so many bytes, and waits until they are on the disk.
fn copied(from: &Path, to: &Path, bytes: u64) -> Result<(), OwnFileError> {
    let failed = |error| OwnFileError::Io(to.to_owned(), error);
    let above = to.parent().unwrap_or(to);
    // Closed to others, and with the names on the way to it on the disk.
    own_file::state_dir(above)?;
    let mut old = own_file::open(from, Access::Read)?.take(bytes);
    let mut new = own_file::create_new(to)?;
    let copied = io::copy(&mut old, &mut new).and_then(|_| new.sync_all());
    if let Err(error) = copied {
        // Part of a copy is of no use, and would be in the way of the next.
        let _gone = fs::remove_file(to).and_then(|()| fs::remove_dir(above));
        return Err(failed(error));
    }
    own_file::sync_dir(above)
}
