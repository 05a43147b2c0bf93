//! Handing out the ledger's records, all of them or one session's, and the new
//! ones as they come.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    ops::ControlFlow,
    path::Path,
    thread,
    time::Duration,
};

use hermitcrab_core::audit::Record;

pub use super::read::named;
use super::{FILE_NAME, LedgerError, disk::Roomy, index, read, wire};
use crate::state_dir::own_file::{self, Access};

/// How often a ledger that is followed is looked at.
pub const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Letters of a session's name that tell which one is meant.
pub const NAME_LETTERS_MIN: usize = 4;

/// Whether a session is meant: by its number in the ledger, or by how its name begins.
fn is_meant(number: &str, wanted: &str) -> bool {
    number == wanted || (wanted.len() >= NAME_LETTERS_MIN && named(number).starts_with(wanted))
}

/// What to hand out.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only this session's records: its number, or how its name begins.
    pub session: Option<String>,
    /// Go on with what is written from now on.
    pub follow: bool,
}

/// Hands every record to `show`, checked or not.
///
/// # Errors
/// The file cannot be read, or a line is not a record.
pub fn each(state_dir: &Path, mut show: impl FnMut(&Record)) -> Result<(), LedgerError> {
    selected(state_dir, &Selection::default(), |record| {
        show(record);
        ControlFlow::Continue(())
    })
}

/// Hands the selected records to `show` until it has enough.
///
/// # Errors
/// As for [`each`].
pub fn selected(
    state_dir: &Path,
    selection: &Selection,
    mut show: impl FnMut(&Record) -> ControlFlow<()>,
) -> Result<(), LedgerError> {
    let path = state_dir.join(FILE_NAME);
    let failed = |error| LedgerError::Io(path.clone(), error);
    let mut file = own_file::open(&path, Access::Read).map_err(LedgerError::Own)?;
    if let Some(session) = &selection.session {
        let place = beginning_of(&mut file, state_dir, session).unwrap_or(0);
        file.seek(SeekFrom::Start(place)).map_err(failed)?;
    }
    let mut begins = file.stream_position().map_err(failed)?;
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    let mut number = 0_u64;
    let mut inside = selection.session.is_none();
    let mut is_looked_at_again = false;
    loop {
        line.clear();
        let mut bounded = lines.by_ref().take(read::LINE_BYTES_MAX);
        let got = bounded.read_until(b'\n', &mut line).map_err(failed)? as u64;
        // What is not there yet is the end of the file, or room in it.
        let nothing = line.iter().position(|byte| *byte == 0);
        if line.last() != Some(&b'\n') || nothing.is_some() {
            if !selection.follow {
                let ends = begins.saturating_add(nothing.unwrap_or(line.len()) as u64);
                if end_of(&path)? <= ends {
                    return Ok(());
                }
                // Somebody wrote it while it was read; or it is no record, and must
                // not hide those behind it.
                if is_looked_at_again {
                    return Err(LedgerError::Line(path, number));
                }
                is_looked_at_again = true;
            }
            thread::sleep(LOOK_AGAIN);
            lines.seek(SeekFrom::Start(begins)).map_err(failed)?;
            continue;
        }
        is_looked_at_again = false;
        begins = begins.saturating_add(got);
        let record = wire::record(&line).ok_or_else(|| LedgerError::Line(path.clone(), number))?;
        number = record.seq.saturating_add(1);
        if let (Some(wanted), Some(opened)) = (&selection.session, read::session_opened(&record)) {
            if inside && !selection.follow && !is_meant(opened, wanted) {
                return Ok(());
            }
            inside = is_meant(opened, wanted);
        }
        if inside && show(&record).is_break() {
            return Ok(());
        }
    }
}

/// Where what is in the ledger ends, without room.
fn end_of(path: &Path) -> Result<u64, LedgerError> {
    let file = own_file::open(path, Access::Read).map_err(LedgerError::Own)?;
    let disk = Roomy::seen(file).map_err(|error| LedgerError::Io(path.to_owned(), error))?;
    Ok(disk.bytes())
}

/// Where the index says a session begins, if it does begin there.
fn beginning_of(file: &mut File, state_dir: &Path, session: &str) -> Option<u64> {
    let entry = index::entries(state_dir)
        .into_iter()
        .find(|entry| is_meant(&entry.session, session))?;
    file.seek(SeekFrom::Start(entry.offset)).ok()?;
    let mut line = Vec::new();
    BufReader::new(io::Read::by_ref(file))
        .read_until(b'\n', &mut line)
        .ok()?;
    let record = wire::record(&line)?;
    let begins = record.seq == entry.seq
        && read::session_opened(&record).is_some_and(|opened| is_meant(opened, session));
    begins.then_some(entry.offset)
}
