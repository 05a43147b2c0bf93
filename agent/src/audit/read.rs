//! Reading a ledger and saying where it stops being one.
//!
//! What a crash can leave behind is the beginning of records that were never
//! acted on, at the very end. That is told apart from everything else that is
//! wrong with a ledger, and is the only thing ever removed from one.

use std::{
    collections::BTreeMap,
    fmt,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
};

use hermitcrab_core::audit::{Head, Record, Verifier};

use super::{
    LedgerError,
    disk::{self, Disk},
    wire,
};
use crate::{digest::sha256, state_dir::anchor::Start};

/// Longer lines are not records.
pub(super) const LINE_BYTES_MAX: u64 = 16 << 20;
/// Read from the disk at a time: many lines, and little to clear for a ledger that has few.
const BUFFER_BYTES: usize = 8 << 10;

/// What follows the last whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Whole,
    /// The beginning of records whose writing was cut off: so many bytes.
    /// Nothing they announce has happened, because it waits for the disk.
    CutOff {
        /// How many.
        bytes: u64,
    },
}

/// A call that was begun and of whose end the ledger says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The record of its intent.
    pub seq: u64,
    /// The session.
    pub session: String,
    /// The call, as the ledger names it.
    pub call: String,
}

/// What checking a ledger to its end found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The end of the chain.
    pub head: Head,
    /// Bytes up to the end of the last whole record.
    pub bytes: u64,
    /// What follows them.
    pub tail: Tail,
    /// Where each session begins.
    pub sessions: Vec<SessionStart>,
    /// Calls begun and not ended, of all sessions read.
    pub unfinished: Vec<Unfinished>,
}

impl Verified {
    /// Whether there is nothing to be told of it but its end.
    #[must_use]
    pub fn is_all_well(&self) -> bool {
        self.tail == Tail::Whole && self.unfinished.is_empty()
    }
}

/// Where a session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStart {
    /// Its number, as the ledger writes it.
    pub session: String,
    /// The number of its first record.
    pub seq: u64,
    /// Where in the file that record begins.
    pub offset: u64,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} records, whole; head {}",
            self.head.next, self.head.digest
        )?;
        if let Tail::CutOff { bytes } = self.tail {
            write!(
                f,
                "\nthe last {bytes} bytes are records whose writing was cut off; nothing they announce was done, and the next start removes them"
            )?;
        }
        for call in &self.unfinished {
            write!(
                f,
                "\nrecord {}: {} of session {} was begun and its end is not recorded; its effect may have happened",
                call.seq,
                call.call,
                named(&call.session)
            )?;
        }
        Ok(())
    }
}

/// Checks every record from `start` on and hands it to `seen`, with the place
/// in the file where it ends.
pub(super) fn through(
    disk: &mut dyn Disk,
    path: &Path,
    start: Start,
    mut seen: impl FnMut(&Record, u64),
) -> Result<Verified, LedgerError> {
    let failed = |error| LedgerError::Io(path.to_owned(), error);
    let mut lines = BufReader::with_capacity(BUFFER_BYTES, disk::From::new(disk, start.offset));
    let mut verifier = Verifier::resuming(start.head, sha256);
    let mut found = Verified {
        head: start.head,
        bytes: start.offset,
        tail: Tail::Whole,
        sessions: Vec::new(),
        unfinished: Vec::new(),
    };
    let mut calls = Calls::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(failed)? as u64;
        if got == 0 {
            break;
        }
        let seq = verifier.head().next;
        let cut_off = line.last() != Some(&b'\n');
        if cut_off && got == LINE_BYTES_MAX {
            return Err(LedgerError::Line(path.to_owned(), seq));
        }
        // A file system may have made the file longer before it wrote all of
        // it; such holes read as NUL, which no record holds.
        if cut_off || line.contains(&0) {
            let mut bytes = got;
            loop {
                let more = lines.fill_buf().map_err(failed)?.len();
                if more == 0 {
                    break;
                }
                lines.consume(more);
                bytes = bytes.saturating_add(more as u64);
            }
            found.tail = Tail::CutOff { bytes };
            break;
        }
        let record = wire::record(&line).ok_or_else(|| LedgerError::Line(path.to_owned(), seq))?;
        verifier
            .check(&record)
            .map_err(|error| LedgerError::Chain(path.to_owned(), error))?;
        if let Some(session) = session_opened(&record) {
            calls.begin_session(session);
            found.sessions.push(SessionStart {
                session: session.to_owned(),
                seq: record.seq,
                offset: found.bytes,
            });
        }
        calls.note(&record);
        found.bytes = found.bytes.saturating_add(got);
        seen(&record, found.bytes);
    }
    found.head = verifier.head();
    found.unfinished = calls.unfinished;
    found.unfinished.extend(calls.open.into_values());
    Ok(found)
}

/// The end of the records that hold, and what is wrong after them, if anything
/// is; the beginning of a record cut off at the very end is not.
pub fn holding(disk: &mut dyn Disk, path: &Path) -> (Start, Option<LedgerError>) {
    let mut end = Start::BEGINNING;
    let found = through(disk, path, Start::BEGINNING, |record, offset| {
        end = Start {
            head: Head {
                next: record.seq.saturating_add(1),
                digest: record.digest,
            },
            offset,
        };
    });
    match found {
        Ok(found) => {
            let end = Start {
                head: found.head,
                offset: found.bytes,
            };
            (end, None)
        }
        Err(error) => (end, Some(error)),
    }
}

/// The session of this number as a person is told of it.
#[must_use]
pub fn named(number: &str) -> String {
    match number.parse::<u64>() {
        Ok(number) => format!("{number:016x}"),
        Err(_) => number.to_owned(),
    }
}

/// The number of the session a record opens.
pub(super) fn session_opened(record: &Record) -> Option<&str> {
    (record.kind == "opened").then_some(())?;
    let words = record.text.strip_prefix("session=")?;
    words.split(' ').next()
}

/// Which calls of the session being read have begun and not ended.
#[derive(Debug, Default)]
struct Calls {
    session: String,
    open: BTreeMap<String, Unfinished>,
    unfinished: Vec<Unfinished>,
}

impl Calls {
    fn begin_session(&mut self, session: &str) {
        self.unfinished
            .extend(std::mem::take(&mut self.open).into_values());
        session.clone_into(&mut self.session);
    }

    fn note(&mut self, record: &Record) {
        let Some(call) = record
            .text
            .split([' ', ':'])
            .next()
            .filter(|word| word.starts_with("call"))
        else {
            return;
        };
        match record.kind.as_str() {
            "intent" => {
                self.open.entry(call.to_owned()).or_insert(Unfinished {
                    seq: record.seq,
                    session: self.session.clone(),
                    call: call.to_owned(),
                });
            }
            "outcome" => {
                self.open.remove(call);
            }
            _ => {}
        }
    }
}
