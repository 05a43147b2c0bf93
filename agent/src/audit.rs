//! The ledger on disk.
//!
//! One JSON object a line, each carrying the digest of the one before. The
//! ledger holds no contents, only digests, and lies outside every directory an
//! agent is given.
//!
//! What is on the disk when: [`Ledger::append`] returns after everything it
//! was given, and all before, survives a loss of power, unless it was given
//! only records after which nothing happens (a session opened, a grant made, a
//! note). Those survive the end of the process at once, and a loss of power
//! with the next append. So an intent is on the disk before its effect, and a
//! crash leaves at most the beginning of records nobody acted on, which
//! [`verify`] tells apart and the next start removes. A disk that fails once is
//! not written to again: what it did with the last bytes is not known.
//!
//! While it is written the file is longer than what is in it, and ends with NUL
//! ([`disk::Roomy`]).
//!
//! It does not protect against somebody who can rewrite the whole file. A tail
//! cut off is noticed against the [anchor](crate::state_dir::anchor), or against
//! a head that was published elsewhere.

pub mod beside;
pub mod disk;
pub mod index;
mod ledger;
pub mod printed;
pub mod read;
pub mod show;
pub mod wire;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use hermitcrab_core::{
    audit::{ChainError, Head},
    digest::Digest,
};

use self::disk::Roomy;
pub use self::{
    ledger::{Ledger, Opened, hold},
    read::{Tail, Unfinished, Verified},
    show::each,
    wire::{line, line_of},
};
use crate::state_dir::{
    anchor::{AnchorError, Start},
    own_file::{self, Access, OwnFileError},
    room::{Room, is_lacking},
};

/// The ledger's name in the state directory.
pub const FILE_NAME: &str = "ledger.jsonl";

/// Why the ledger cannot be used.
#[derive(Debug)]
pub enum LedgerError {
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
    /// Its disk has no room: for how many bytes, and how much there is, as far as that is known.
    NoRoom(PathBuf, Option<usize>, Option<Room>),
    /// Something else stands in its place, or others can reach it.
    Own(OwnFileError),
    /// Another process writes it.
    Busy(PathBuf),
    /// What stands where the record with this number should be is not a record.
    Line(PathBuf, u64),
    /// The records are not a chain.
    Chain(PathBuf, ChainError),
    /// It ends before, or says something else at, a record known from elsewhere.
    Cut(PathBuf, Head),
    /// What the ledger has come to cannot be noted in the anchor.
    Anchor(AnchorError),
    /// Writing failed before, for this reason; nothing more is written.
    Stopped(PathBuf, String),
}

impl LedgerError {
    /// Whether nothing is wrong with what is there: the system does not let it be used.
    #[must_use]
    pub const fn is_of_the_system(&self) -> bool {
        match self {
            Self::Io(..) | Self::NoRoom(..) | Self::Own(OwnFileError::Io(..)) => true,
            Self::Own(_)
            | Self::Busy(_)
            | Self::Line(..)
            | Self::Chain(..)
            | Self::Cut(..)
            | Self::Anchor(_)
            | Self::Stopped(..) => false,
        }
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REPAIR: &str = "`hermitcrab doctor --repair` keeps a copy and goes on after the last record that holds";
        match self {
            Self::Io(path, error) => {
                write!(f, "cannot use the ledger `{}`: {error}", path.display())
            }
            Self::NoRoom(path, needed, room) => {
                write!(f, "the ledger `{}` has no room", path.display())?;
                if let Some(needed) = needed {
                    write!(f, " for {needed} more bytes")?;
                }
                match room {
                    Some(room) => write!(f, ": {room}")?,
                    None => f.write_str(": its disk is full")?,
                }
                f.write_str(
                    "; make room there: `hermitcrab undo --forget --all-but 0 --all` shows what is kept of earlier commits and removes it after a yes (`--all-but N` spares the newest N), `hermitcrab undo --forget ID` removes what is kept of one; `hermitcrab audit archive DIR` moves what is on record to another disk",
                )
            }
            Self::Own(error) => write!(f, "the ledger cannot be used: {error}"),
            Self::Busy(path) => {
                write!(
                    f,
                    "the ledger `{}` is in use by another process; wait for its end",
                    path.display()
                )
            }
            Self::Line(path, seq) => write!(
                f,
                "record {seq} of the ledger `{}` is not a record; {REPAIR}",
                path.display()
            ),
            Self::Chain(path, error) => {
                write!(f, "{error} (`{}`); {REPAIR}", path.display())
            }
            Self::Cut(path, head) => write!(
                f,
                "the ledger `{}` lacks records it had: it should hold {} with the last one {}; {REPAIR}",
                path.display(),
                head.next,
                head.digest
            ),
            Self::Anchor(error) => error.fmt(f),
            Self::Stopped(path, why) => write!(
                f,
                "writing the ledger `{}` failed before, so nothing more is done in this session: {why}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LedgerError {}

impl LedgerError {
    /// That the ledger's file could not be used, or written with so many bytes more.
    fn of(path: &Path, error: io::Error, needed: Option<usize>) -> Self {
        match is_lacking(&error) {
            true => Self::NoRoom(path.to_owned(), needed, Room::at(path)),
            false => Self::Io(path.to_owned(), error),
        }
    }

    /// The same of one of the agent's own files, as it is opened or made.
    fn of_own(error: OwnFileError) -> Self {
        match error {
            OwnFileError::Io(path, error) if is_lacking(&error) => Self::of(&path, error, None),
            other => Self::Own(other),
        }
    }
}

/// Checks a ledger from its first record to its last.
///
/// # Errors
/// See [`LedgerError`]; the first record that does not hold is named.
pub fn verify(state_dir: &Path) -> Result<Verified, LedgerError> {
    verify_against(state_dir, &[])
}

/// Checks a ledger, and that it still holds what was known of it before.
///
/// # Errors
/// See [`LedgerError`].
pub fn verify_against(state_dir: &Path, known: &[Head]) -> Result<Verified, LedgerError> {
    let path = state_dir.join(FILE_NAME);
    let file = match own_file::open(&path, Access::Read) {
        Err(error) if error.is_missing() && !known.is_empty() => {
            return Err(known.first().map_or(LedgerError::Own(error), |head| {
                LedgerError::Cut(path, *head)
            }));
        }
        opened => opened.map_err(LedgerError::Own)?,
    };
    let mut disk = Roomy::seen(file).map_err(|error| LedgerError::Io(path.clone(), error))?;
    let mut heads: Vec<Digest> = vec![Digest::NONE];
    let found = read::through(&mut disk, &path, Start::BEGINNING, |record, _| {
        heads.push(record.digest);
    })?;
    match known.iter().find(|head| {
        let at = usize::try_from(head.next).ok().and_then(|at| heads.get(at));
        at != Some(&head.digest)
    }) {
        Some(lacking) => Err(LedgerError::Cut(path, *lacking)),
        None => Ok(found),
    }
}
