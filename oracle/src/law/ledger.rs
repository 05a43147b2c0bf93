//! The ledger as it lies on a disk, whatever happened to that disk.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbitrary::Unstructured;
use hermitcrab::audit::disk::Disk;
use hermitcrab::audit::{Ledger, Tail, wire};
use hermitcrab::digest::sha256;
use hermitcrab_core::audit::{Head, Record};
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Event, Session, SessionConfig};
use hermitcrab_core::time::Instant;

use super::{Verdict, ensure, steps, text};

const NOTES_MAX: usize = 6;
const DAMAGES_MAX: usize = 3;

/// Noise as a ledger, and a real ledger after damage.
pub fn check(bytes: &[u8]) -> Verdict {
    lines(bytes)?;
    opened(bytes.to_vec(), None)?;
    let mut bytes = Unstructured::new(bytes);
    let records = real(&mut bytes);
    let mut written = Vec::new();
    let mut heads = vec![Head::EMPTY];
    for record in &records {
        written.extend(wire::line(record).into_bytes());
        written.push(b'\n');
        heads.push(after(record));
    }
    let whole = opened(written.clone(), Some(&heads))?;
    ensure(whole.as_ref() == heads.last(), || {
        "an undamaged ledger is not read to its end".to_owned()
    })?;
    let damages = bytes.int_in_range(0..=DAMAGES_MAX).unwrap_or(0);
    if damages == 0 {
        // It was opened, and opened again.
        return Ok(());
    }
    for _ in 0..damages {
        damage(&mut bytes, &mut written);
    }
    opened(written, Some(&heads)).map(|_| ())
}

fn after(record: &Record) -> Head {
    Head {
        next: record.seq + 1,
        digest: record.digest,
    }
}

/// A line that is a record is written back as one that says the same.
fn lines(bytes: &[u8]) -> Verdict {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(record) = wire::record(line) else {
            continue;
        };
        let written = wire::line(&record);
        ensure(!written.contains('\n'), || {
            format!("record {} takes several lines", record.seq)
        })?;
        ensure(
            wire::record(written.as_bytes()).as_ref() == Some(&record),
            || format!("record {} reads back as another", record.seq),
        )?;
    }
    Ok(())
}

/// The records of a session that noted a few things.
fn real(bytes: &mut Unstructured<'_>) -> Vec<Record> {
    let (mut session, mut records) = Session::open(SessionConfig {
        id: 7,
        hash: sha256,
        isolation: Isolation::Unknown,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::from_millis(0),
    });
    for at in 0..bytes.int_in_range(0..=NOTES_MAX).unwrap_or(0) {
        let note = text(bytes, &["a", "\n", "\"", "é", "\u{202e}", "}"], 8);
        let at = Instant::from_millis(u64::try_from(at).unwrap_or(0));
        records.extend(session.step(at, Event::Note(note)).into_parts().records);
    }
    records
}

/// What a disk, a crash or a person does to a file.
fn damage(bytes: &mut Unstructured<'_>, file: &mut Vec<u8>) {
    let at = bytes.int_in_range(0..=file.len()).unwrap_or(0);
    match bytes.int_in_range(0..=4_u8).unwrap_or(0) {
        0 => file.truncate(at),
        1 => {
            if let Some(byte) = file.get_mut(at) {
                *byte ^= bytes.int_in_range(1..=255_u8).unwrap_or(1);
            }
        }
        2 => file.insert(at, bytes.arbitrary().unwrap_or(0)),
        3 => {
            let to = bytes.int_in_range(at..=file.len()).unwrap_or(at);
            file.drain(at..to);
        }
        _ => {
            let again = file.get(at..).unwrap_or_default().to_vec();
            file.extend(again);
        }
    }
}

/// Opens a file. What is refused stays as it is; what is taken is a beginning
/// of it, reads the same again, and says nothing that was never `written`.
fn opened(file: Vec<u8>, written: Option<&[Head]>) -> Result<Option<Head>, String> {
    let disk = Shared::holding(file.clone());
    steps::add(1);
    let head = match Ledger::on(Box::new(disk.clone()), Path::new("ledger")) {
        Err(error) => {
            let message = error.to_string();
            ensure(!message.contains('\n'), || {
                format!("several lines: {message}")
            })?;
            ensure(*disk.bytes() == file, || {
                "a refused ledger was changed".to_owned()
            })?;
            return Ok(None);
        }
        Ok((_, opened)) => {
            let cut = disk.bytes();
            ensure(file.starts_with(cut.as_slice()), || {
                "more than the end was removed".to_owned()
            })?;
            ensure(
                (opened.removed == Tail::Whole) == (cut.len() == file.len()),
                || "what was removed is not what was told".to_owned(),
            )?;
            opened.head
        }
    };
    if let Some(written) = written {
        ensure(written.contains(&head), || {
            format!("record {} was never written", head.next)
        })?;
    }
    steps::add(1);
    match Ledger::on(Box::new(disk), Path::new("ledger")) {
        Ok((_, again)) => ensure(again.head == head && again.removed == Tail::Whole, || {
            "a second opening differs".to_owned()
        })?,
        Err(error) => return Err(format!("a second opening fails: {error}")),
    }
    Ok(Some(head))
}

/// A disk in memory that can be looked at after a ledger was opened on it.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn holding(file: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(file)))
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for Shared {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let file = self.bytes();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = file.get(from..).unwrap_or_default();
        // What is behind the end is not there, and a slice takes what fits.
        io::Read::read(&mut &*rest, into)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes()
            .truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    }
}
