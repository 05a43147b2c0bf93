//! The ledger on disk.
//!
//! One JSON object a line, each carrying the digest of the one before. A line
//! is on the disk before the effect it announces happens. The ledger holds no
//! contents, only digests, and lies outside every directory an agent is given.
//!
//! It does not protect against somebody who can rewrite the whole file:
//! publish the head elsewhere to notice a lost tail.

mod wire;

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, Write},
    path::{Path, PathBuf},
};

use hermitcrab_core::audit::{ChainError, Head, Record, Verifier};

use crate::digest::sha256;

/// The ledger's name in the state directory.
pub const FILE_NAME: &str = "ledger.jsonl";
/// Longer lines are not records.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Why the ledger cannot be used.
#[derive(Debug)]
pub enum LedgerError {
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
    /// Another process writes it.
    Busy(PathBuf),
    /// A line is not a record; its number, from 1.
    Line(PathBuf, u64),
    /// The records are not a chain.
    Chain(PathBuf, ChainError),
}

impl std::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(path, error) => {
                write!(f, "cannot use the ledger `{}`: {error}", path.display())
            }
            Self::Busy(path) => {
                write!(
                    f,
                    "the ledger `{}` is in use by another process; wait for its end",
                    path.display()
                )
            }
            Self::Line(path, line) => write!(
                f,
                "line {line} of the ledger `{}` is not a record; keep the file and start with a new state directory",
                path.display()
            ),
            Self::Chain(path, error) => write!(
                f,
                "{error} (`{}`); keep the file and start with a new state directory",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LedgerError {}

/// An open ledger, locked against other writers.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
}

impl Ledger {
    /// Opens or makes the ledger in a state directory and checks all of it.
    ///
    /// A last line that was cut off by a crash was never acted on; it is removed.
    ///
    /// # Errors
    /// See [`LedgerError`].
    pub fn open(state_dir: &Path) -> Result<(Self, Head), LedgerError> {
        let path = state_dir.join(FILE_NAME);
        let failed = |error| LedgerError::Io(path.clone(), error);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(LedgerError::Busy(path)),
            Err(error) => return Err(failed(error.into())),
        }
        let read = read(&mut file, &path)?;
        if read.cut_off {
            file.set_len(read.whole_bytes).map_err(failed)?;
            file.sync_all().map_err(failed)?;
        }
        Ok((Self { file, path }, read.head))
    }

    /// Appends records and waits until they are on the disk.
    ///
    /// # Errors
    /// The disk; nothing that these records announce may happen then.
    pub fn append(&mut self, records: &[Record]) -> Result<(), LedgerError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut lines = String::new();
        for record in records {
            lines.push_str(&wire::line(record));
            lines.push('\n');
        }
        self.file
            .write_all(lines.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|error| LedgerError::Io(self.path.clone(), error))
    }
}

/// What reading a ledger to its end found.
#[derive(Clone, Copy, Debug)]
struct ReadThrough {
    head: Head,
    whole_bytes: u64,
    cut_off: bool,
}

fn read(file: &mut File, path: &Path) -> Result<ReadThrough, LedgerError> {
    let failed = |error| LedgerError::Io(path.to_owned(), error);
    file.rewind().map_err(failed)?;
    let mut lines = BufReader::new(io::Read::by_ref(file));
    let mut verifier = Verifier::new(sha256);
    let (mut number, mut whole_bytes) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = io::Read::take(&mut lines, LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(failed)?;
        if got == 0 {
            return Ok(ReadThrough {
                head: verifier.head(),
                whole_bytes,
                cut_off: false,
            });
        }
        number += 1;
        if line.last() != Some(&b'\n') {
            if got as u64 == LINE_BYTES_MAX {
                return Err(LedgerError::Line(path.to_owned(), number));
            }
            return Ok(ReadThrough {
                head: verifier.head(),
                whole_bytes,
                cut_off: true,
            });
        }
        let record =
            wire::record(&line).ok_or_else(|| LedgerError::Line(path.to_owned(), number))?;
        verifier
            .check(&record)
            .map_err(|error| LedgerError::Chain(path.to_owned(), error))?;
        whole_bytes += got as u64;
    }
}

/// Checks a ledger from its first record to its last.
///
/// # Errors
/// See [`LedgerError`]; the first place that does not hold is named.
pub fn verify(state_dir: &Path) -> Result<Head, LedgerError> {
    let path = state_dir.join(FILE_NAME);
    let mut file = File::open(&path).map_err(|error| LedgerError::Io(path.clone(), error))?;
    read(&mut file, &path).map(|read| read.head)
}

/// Hands every record to `show`, checked or not.
///
/// # Errors
/// The file cannot be read, or a line is not a record.
pub fn each(state_dir: &Path, mut show: impl FnMut(&Record)) -> Result<(), LedgerError> {
    let path = state_dir.join(FILE_NAME);
    let failed = |error| LedgerError::Io(path.clone(), error);
    let file = File::open(&path).map_err(failed)?;
    for (at, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(failed)?;
        let record =
            wire::record(&line).ok_or_else(|| LedgerError::Line(path.clone(), at as u64 + 1))?;
        show(&record);
    }
    Ok(())
}
