//! What was replayed once, on disk, so that it is not replayed again.
//!
//! Calls that are alike in everything a world is made of have the same key: in one
//! run they are replayed once, and a run after ^C, a spent budget or a kill goes on
//! where the last one stopped. Only the keys are held in memory. A record holds no
//! secret of the home, and a key no guess at one: it covers what only the home knows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};

use super::replay::Outcome;

/// The file, beside the plan.
pub const NAME: &str = "replay.journal";
/// Its first line; another one is another form, and what follows is not taken.
const HEAD: &str = "hermitcrab replay journal 1";
/// Longest record that is read back, in bytes.
const RECORD_BYTES_MAX: usize = 4 << 20;

/// Tells one thing that was replayed from every other.
pub type Key = [u8; 32];

/// Where a record is.
#[derive(Clone, Copy, Debug)]
struct Place {
    from: u64,
    bytes: u32,
    kept: bool,
}

/// Remembers what became of calls.
#[derive(Debug)]
pub struct Journal {
    file: File,
    end: u64,
    places: HashMap<Key, Place>,
    /// Whether something could not be written; it is then replayed again.
    pub broken: bool,
}

/// Whether a record is from this run or from one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// This one.
    ThisRun,
    /// One before.
    Before,
}

impl Journal {
    /// Opens the journal of a directory, or begins one. A record that was not
    /// finished is cut off, what is no journal is replaced.
    ///
    /// # Errors
    /// It cannot be written, or another run is writing it.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join(NAME);
        let said = |error: std::io::Error| format!("cannot open `{}`: {error}", path.display());
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path)
            .map_err(said)?;
        if !file.metadata().map_err(said)?.is_file() {
            return Err(format!("`{}` is not a file", path.display()));
        }
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!(
                "another migration is writing to `{}`; wait for it, or name another place with --out",
                folder.display()
            )
        })?;
        Self::load(file).map_err(said)
    }

    fn load(file: File) -> std::io::Result<Self> {
        let mut journal = Self {
            file,
            end: 0,
            places: HashMap::new(),
            broken: false,
        };
        let mut reader = BufReader::new(journal.file.try_clone()?);
        reader.seek(SeekFrom::Start(0))?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            let whole = line.strip_suffix(b"\n");
            let good = match (journal.end, whole) {
                (0, Some(head)) => head == HEAD.as_bytes(),
                (_, Some(record)) => journal.note(record, true),
                (_, None) => false,
            };
            if !good {
                break;
            }
            journal.end += read as u64;
        }
        journal.file.set_len(journal.end)?;
        if journal.end == 0 {
            let head = format!("{HEAD}\n");
            journal.file.write_all_at(head.as_bytes(), 0)?;
            journal.end = head.len() as u64;
        }
        Ok(journal)
    }

    /// Notes the place of the record that begins at the end.
    fn note(&mut self, record: &[u8], kept: bool) -> bool {
        let key = record
            .get(..64)
            .and_then(|hex| data_encoding::HEXLOWER.decode(hex).ok())
            .and_then(|bytes| Key::try_from(bytes).ok());
        let body = record.len().checked_sub(65).map(u32::try_from);
        let (Some(key), Some(Ok(bytes)), Some(b' ')) = (key, body, record.get(64)) else {
            return false;
        };
        let from = self.end + 65;
        self.places.insert(key, Place { from, bytes, kept });
        true
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What became of the calls with this key, if that is known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<(Vec<Outcome>, From)> {
        let place = self.places.get(key)?;
        let bytes = usize::try_from(place.bytes).ok()?;
        let mut record = vec![0; Some(bytes).filter(|bytes| *bytes <= RECORD_BYTES_MAX)?];
        self.file.read_exact_at(&mut record, place.from).ok()?;
        let outcomes = serde_json::from_slice(&record).ok()?;
        let from = if place.kept {
            From::Before
        } else {
            From::ThisRun
        };
        Some((outcomes, from))
    }

    /// Remembers what became of calls; the texts are without secrets already.
    pub fn put(&mut self, key: &Key, outcomes: &[Outcome]) {
        let Ok(body) = serde_json::to_string(outcomes) else {
            self.broken = true;
            return;
        };
        let record = format!("{} {body}", data_encoding::HEXLOWER.encode(key));
        let mut line = record.into_bytes();
        line.push(b'\n');
        if self.broken || self.file.write_all_at(&line, self.end).is_err() {
            self.broken = true;
            return;
        }
        line.pop();
        self.note(&line, false);
        self.end += line.len() as u64 + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{From, Journal, NAME};
    use crate::migrate::replay::{Class, Outcome};

    fn outcome(call: &str) -> Vec<Outcome> {
        vec![Outcome {
            class: Class::Same,
            tool: "terminal".into(),
            call: call.into(),
            why: String::new(),
            needs: Vec::new(),
            missing: Vec::new(),
            code: String::new(),
            is_known: false,
        }]
    }

    #[test]
    fn what_was_replayed_is_known_after_a_kill_and_half_a_record_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.put(&[1; 32], &outcome("a\nb"));
        assert_eq!(
            journal.get(&[1; 32]),
            Some((outcome("a\nb"), From::ThisRun))
        );
        assert!(
            Journal::open(folder.path())
                .unwrap_err()
                .contains("another")
        );
        drop(journal);
        let mut file = std::fs::File::options()
            .append(true)
            .open(folder.path().join(NAME))
            .unwrap();
        write!(file, "{} [{{\"class\"", "02".repeat(32)).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.get(&[1; 32]), Some((outcome("a\nb"), From::Before)));
        assert_eq!(journal.get(&[2; 32]), None);
        journal.put(&[2; 32], &outcome("c"));
        drop(journal);
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.len(), 2);
        assert_eq!(journal.get(&[2; 32]), Some((outcome("c"), From::Before)));
    }

    #[test]
    fn what_is_no_journal_is_not_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in ["", "something\nelse\n", "hermitcrab replay journal 0\n"] {
            std::fs::write(folder.path().join(NAME), wrong).unwrap();
            assert!(Journal::open(folder.path()).unwrap().is_empty(), "{wrong}");
        }
        std::fs::remove_file(folder.path().join(NAME)).unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(NAME)).unwrap();
        assert!(Journal::open(folder.path()).is_err());
    }
}
