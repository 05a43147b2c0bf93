//! Where each session begins in the ledger, for going there at once.
//!
//! It is made from the ledger and never believed: whoever uses an entry looks
//! whether the session really begins there, and reads the ledger from its
//! beginning otherwise. Losing the index loses nothing.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    iter,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::read::SessionStart;
use crate::state_dir::own_file::{self, Access, OwnFileError};

/// The index' name in the state directory.
pub const FILE_NAME: &str = "ledger.index";

/// Longer lines are not entries.
const LINE_BYTES_MAX: u64 = 4 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    session: String,
    seq: u64,
    offset: u64,
}

/// The entries that can be read; of a damaged index, those before the damage.
#[must_use]
pub fn entries(state_dir: &Path) -> Vec<SessionStart> {
    let Ok(file) = own_file::open(&state_dir.join(FILE_NAME), Access::Read) else {
        return Vec::new();
    };
    // Line by line, so that what is no index is left at its first line, however long it is.
    let mut lines = BufReader::new(file);
    let next = || {
        let mut line = Vec::new();
        let mut bounded = lines.by_ref().take(LINE_BYTES_MAX);
        bounded.read_until(b'\n', &mut line).ok()?;
        serde_json::from_slice::<Line>(&line).ok()
    };
    iter::from_fn(next)
        .map(|line| SessionStart {
            session: line.session,
            seq: line.seq,
            offset: line.offset,
        })
        .collect()
}

/// The index of an open ledger. It is not worth an error: an entry that cannot
/// be written is found by reading.
#[derive(Debug)]
pub(super) struct Index {
    file: Option<File>,
}

impl Index {
    /// Opens the index and makes it say what the ledger says, if the ledger
    /// was read from its beginning.
    pub(super) fn open(state_dir: &Path, known: Option<&[SessionStart]>) -> Self {
        let path: PathBuf = state_dir.join(FILE_NAME);
        let stale = known.is_some_and(|known| entries(state_dir) != known);
        let file = own_file::open(&path, Access::Append).and_then(|mut file| {
            if stale {
                let failed = |error| OwnFileError::Io(path.clone(), error);
                file.set_len(0).map_err(failed)?;
                for start in known.unwrap_or_default() {
                    write(&mut file, start).map_err(failed)?;
                }
            }
            Ok(file)
        });
        Self { file: file.ok() }
    }

    /// No index at all.
    pub(super) const fn none() -> Self {
        Self { file: None }
    }

    pub(super) fn add(&mut self, start: &SessionStart) {
        if let Some(file) = &mut self.file
            && write(file, start).is_err()
        {
            self.file = None;
        }
    }
}

fn write(file: &mut File, start: &SessionStart) -> io::Result<()> {
    let line = Line {
        session: start.session.clone(),
        seq: start.seq,
        offset: start.offset,
    };
    let mut text = serde_json::to_string(&line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}
