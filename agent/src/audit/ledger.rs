//! Writing the ledger.

use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
};

use hermitcrab_core::audit::{Head, Record};

use super::{
    FILE_NAME, LedgerError,
    disk::{Disk, Roomy},
    index::Index,
    read::{self, SessionStart, Tail},
    wire,
};
use crate::state_dir::{
    anchor::{Anchor, Start},
    own_file::{self, Access},
};

/// A ledger longer than this is read, at a start, from its anchor on.
/// `audit verify` always reads all of it.
const WHOLE_BYTES_MAX: u64 = 4 << 20;

/// An open ledger, locked against other writers.
pub struct Ledger {
    disk: Box<dyn Disk>,
    path: PathBuf,
    bytes: u64,
    /// Why what the disk did with the last bytes is not known; then nothing more is written.
    failed: Option<String>,
    index: Index,
    anchor: Option<Anchor>,
    /// Where the last record ended that was written since the start.
    reached: Option<Start>,
    /// Whether records of looks may not be on the disk yet.
    owes_looks: bool,
}

/// What opening found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where the chain stands.
    pub head: Head,
    /// What was removed from the end, because it was never acted on.
    pub removed: Tail,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("path", &self.path)
            .field("bytes", &self.bytes)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens or makes the ledger in a state directory and checks it.
    ///
    /// # Errors
    /// See [`LedgerError`].
    pub fn open(state_dir: &Path) -> Result<(Self, Opened), LedgerError> {
        Self::open_anchored(state_dir, None)
    }

    /// The same, checked against what the anchor knows, which is kept up to
    /// date from then on.
    ///
    /// # Errors
    /// See [`LedgerError`].
    pub fn open_anchored(
        state_dir: &Path,
        anchor: Option<Anchor>,
    ) -> Result<(Self, Opened), LedgerError> {
        let path = state_dir.join(FILE_NAME);
        let file = own_file::open(&path, Access::Make).map_err(LedgerError::of_own)?;
        lock(&file, &path)?;
        let file = Roomy::of(file)
            .and_then(|file| file.named(state_dir, FILE_NAME))
            .map_err(|error| LedgerError::of(&path, error, None))?;
        let length = file.bytes();
        if length == 0 {
            // Records that are on the disk are lost with the name of their file.
            own_file::sync_dir(state_dir).map_err(LedgerError::Own)?;
        }
        let known = anchor.as_ref().and_then(Anchor::place);
        let start = match known {
            Some(place) if length > WHOLE_BYTES_MAX => place,
            _ => Start::BEGINNING,
        };
        let (mut ledger, opened, sessions) = Self::on_from(Box::new(file), path, start, known)?;
        let whole = (start == Start::BEGINNING).then_some(sessions.as_slice());
        ledger.index = Index::open(state_dir, whole);
        ledger.anchor = anchor;
        Ok((ledger, opened))
    }

    /// A ledger on any disk. `path` is for messages only.
    ///
    /// # Errors
    /// See [`LedgerError`].
    pub fn on(disk: Box<dyn Disk>, path: &Path) -> Result<(Self, Opened), LedgerError> {
        Self::on_from(disk, path.to_owned(), Start::BEGINNING, None)
            .map(|(ledger, opened, _)| (ledger, opened))
    }

    fn on_from(
        mut disk: Box<dyn Disk>,
        path: PathBuf,
        start: Start,
        known: Option<Start>,
    ) -> Result<(Self, Opened, Vec<SessionStart>), LedgerError> {
        let mut at_known = known.filter(|known| known.head.next > start.head.next);
        let found = read::through(disk.as_mut(), &path, start, |record, _| {
            at_known = at_known.filter(|known| {
                record.seq.saturating_add(1) != known.head.next
                    || record.digest != known.head.digest
            });
        })?;
        if let Some(lacking) = at_known {
            return Err(LedgerError::Cut(path, lacking.head));
        }
        if found.tail != Tail::Whole {
            disk.cut(found.bytes)
                .map_err(|error| LedgerError::of(&path, error, None))?;
        }
        let ledger = Self {
            disk,
            path,
            bytes: found.bytes,
            failed: None,
            index: Index::none(),
            anchor: None,
            reached: None,
            owes_looks: false,
        };
        let opened = Opened {
            head: found.head,
            removed: found.tail,
        };
        Ok((ledger, opened, found.sessions))
    }

    /// Appends records, and waits until they are on the disk if anything may
    /// happen after them.
    ///
    /// # Errors
    /// The disk; nothing that these records announce may happen then, and
    /// nothing more can be appended.
    pub fn append(&mut self, records: &[Record]) -> Result<(), LedgerError> {
        let waits = records.iter().any(|record| !is_quiet(record));
        self.put(records, waits)
    }

    /// The same for a call that only looks: nothing is other than it was when it
    /// has looked, so its records wait for the next one that waits, or for
    /// [`Ledger::settle_looks`], before which nobody may be told what was seen.
    ///
    /// # Errors
    /// As for [`Ledger::append`].
    pub fn append_look(&mut self, records: &[Record]) -> Result<(), LedgerError> {
        let is_of_look = |record: &Record| matches!(record.kind.as_str(), "intent" | "outcome");
        let waits = records
            .iter()
            .any(|record| !is_quiet(record) && !is_of_look(record));
        self.put(records, waits)?;
        self.owes_looks |= !waits && records.iter().any(is_of_look);
        Ok(())
    }

    /// Waits until the records of every look are on the disk, if some may not be.
    ///
    /// # Errors
    /// The disk; what was seen must not be told then, and nothing more can be
    /// appended.
    pub fn settle_looks(&mut self) -> Result<(), LedgerError> {
        if self.owes_looks {
            self.settle()?;
        }
        Ok(())
    }

    fn put(&mut self, records: &[Record], waits: bool) -> Result<(), LedgerError> {
        if records.is_empty() {
            return Ok(());
        }
        self.goes_on()?;
        let mut lines = Vec::new();
        let mut starts = Vec::new();
        for record in records {
            if let Some(session) = read::session_opened(record) {
                starts.push(SessionStart {
                    session: session.to_owned(),
                    seq: record.seq,
                    offset: self.bytes.saturating_add(lines.len() as u64),
                });
            }
            wire::put_line(record, &mut lines);
            lines.push(b'\n');
        }
        if let Err(error) = self.write(&lines, waits) {
            let error = LedgerError::of(&self.path, error, Some(lines.len()));
            self.failed = Some(error.to_string());
            // Half a record would have to be explained. Whether this works does
            // not matter: if the disk does not even do this, the next start does.
            let _ = self.disk.cut(self.bytes);
            return Err(error);
        }
        self.bytes = self.bytes.saturating_add(lines.len() as u64);
        for start in &starts {
            self.index.add(start);
        }
        self.reached = records.last().map(|last| Start {
            head: Head {
                next: last.seq.saturating_add(1),
                digest: last.digest,
            },
            offset: self.bytes,
        });
        if !waits {
            return Ok(());
        }
        self.owes_looks = false;
        let vouched = self.vouch();
        if records.last().is_some_and(|last| last.kind == "ended") {
            return vouched;
        }
        // An anchor that cannot be moved lags behind, or is found damaged at the
        // next start and then nothing that is kept counts. The records are there.
        Ok(())
    }

    fn goes_on(&self) -> Result<(), LedgerError> {
        match &self.failed {
            Some(why) => Err(LedgerError::Stopped(self.path.clone(), why.clone())),
            None => Ok(()),
        }
    }

    /// Waits until everything appended is on the disk.
    ///
    /// # Errors
    /// The disk; then nothing more can be appended.
    pub fn settle(&mut self) -> Result<(), LedgerError> {
        self.goes_on()?;
        self.disk.sync().map_err(|error| {
            let error = LedgerError::of(&self.path, error, None);
            self.failed = Some(error.to_string());
            error
        })?;
        self.owes_looks = false;
        self.vouch()
    }

    /// Notes in the anchor what is on the disk for certain: a ledger that lacks
    /// it later was cut, also if this program is killed now.
    fn vouch(&mut self) -> Result<(), LedgerError> {
        match (&mut self.anchor, self.reached) {
            (Some(anchor), Some(place)) => anchor.move_to(place).map_err(LedgerError::Anchor),
            _ => Ok(()),
        }
    }

    fn write(&mut self, mut bytes: &[u8], waits: bool) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let taken = self.disk.append(bytes)?;
            if taken == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        if waits { self.disk.sync() } else { Ok(()) }
    }
}

/// Is it a record after which nothing happens?
fn is_quiet(record: &Record) -> bool {
    matches!(record.kind.as_str(), "opened" | "granted" | "note")
}
/// Keeps every session away from a ledger until the file is closed; `None` if there is
/// no ledger.
///
/// # Errors
/// `busy`: a session works with it.
pub fn hold(state_dir: &Path) -> Result<Option<File>, LedgerError> {
    let path = state_dir.join(FILE_NAME);
    let file = match own_file::open(&path, Access::Change) {
        Err(error) if error.is_missing() => return Ok(None),
        opened => opened.map_err(LedgerError::Own)?,
    };
    lock(&file, &path)?;
    Ok(Some(file))
}

fn lock(file: &File, path: &Path) -> Result<(), LedgerError> {
    match rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LedgerError::Busy(path.to_owned())),
        Err(error) => Err(LedgerError::Io(path.to_owned(), error.into())),
    }
}
