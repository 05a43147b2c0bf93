//! The store's file: read whole, checked whole, changed whole.
//!
//! Each reading and each change opens the file for itself and lets go of it, so
//! that a grant can be revoked while a session runs. The library that keeps the
//! file finds what a crash left and most damage; everything else, a bit that
//! fell over in a row or an older copy put in its place, is found by the seal
//! and the anchor. It can also panic on a damaged file, which counts as damage.
//!
//! It must never hand out part of what it holds.

use std::{
    fmt,
    fs::File,
    io::ErrorKind,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase as _, ReadableTable as _,
    StorageError, TableDefinition, backends::FileBackend,
};
use rustix::{fs::RenameFlags, io::Errno};

use super::{
    FILE_NAME,
    contents::Contents,
    rows::{self, Rows},
    state::State,
};
use crate::state_dir::{
    anchor::AnchorError,
    key::{Key, Purpose},
    own_file::{self, Access, OwnFileError},
};

/// The version of the rows this program writes and reads.
const VERSION: u64 = 1;
/// Memory the library may use: more than a store ever holds.
const CACHE_BYTES: usize = 4 << 20;
/// How often a store in use is tried again, and how long between.
const TRIES: u32 = 60;
const TRY_AGAIN: Duration = Duration::from_millis(50);

const ROWS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("rows");
const SEAL: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("seal");

/// Why the store cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// The file.
    File(OwnFileError),
    /// Another process has it open, and did not let go.
    Busy(PathBuf),
    /// It is not what was written; what is wrong.
    Damaged(PathBuf, String),
    /// Another version wrote it.
    Version(PathBuf, u64),
    /// An older copy stands in its place: what it has, what it should have.
    Older(PathBuf, u64, u64),
    /// It cannot be written; what it held before, it holds still.
    Write(PathBuf, String),
    /// It holds as much as it takes.
    Full,
    /// It was changed, but the anchor could not be.
    Anchor(AnchorError),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REPAIR: &str = "`hermitcrab doctor --repair` keeps a copy and starts an empty one";
        match self {
            Self::File(error) => write!(f, "the store cannot be used: {error}"),
            Self::Busy(path) => write!(
                f,
                "the store `{}` is in use by another process; try again when it has ended",
                path.display()
            ),
            Self::Damaged(path, what) => {
                write!(
                    f,
                    "the store `{}` is damaged: {what}; {REPAIR}",
                    path.display()
                )
            }
            Self::Version(path, version) => write!(
                f,
                "the store `{}` has version {version}, this program reads {VERSION}; use the program that wrote it, or {REPAIR}",
                path.display()
            ),
            Self::Older(path, has, known) => write!(
                f,
                "the store `{}` is an older one: it was changed {has} times, and {known} are known; put the newer one back, or {REPAIR}",
                path.display()
            ),
            Self::Write(path, what) => write!(
                f,
                "the store `{}` cannot be written, and is as it was: {what}; make room or mend the disk, or name \
                 another place with `--state-dir DIR`",
                path.display()
            ),
            Self::Full => f.write_str(
                "the store is full; `hermitcrab caps revoke` and `remembered clear` make room",
            ),
            Self::Anchor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}

/// Everything kept under a state directory.
///
/// # Errors
/// See [`StoreError`]; then nothing that is kept counts.
pub fn load(state_dir: &Path, state: &State) -> Result<Contents, StoreError> {
    let contents = load_alone(state_dir, &state.key)?;
    is_not_older(&state_dir.join(FILE_NAME), &contents, state)?;
    Ok(contents)
}

/// The same, without asking the anchor whether it is the newest.
pub(super) fn load_alone(state_dir: &Path, key: &Key) -> Result<Contents, StoreError> {
    let path = state_dir.join(FILE_NAME);
    let contents = match own_file::open(&path, Access::Read) {
        Err(error) if error.is_missing() => Contents::default(),
        Err(error) => return Err(StoreError::File(error)),
        Ok(_) => guarded(&path, || {
            let db = reader(&path)?;
            let all = match &db {
                Reader::Clean(db) => db.begin_read(),
                Reader::Recovered(db) => db.begin_read(),
            };
            read(&path, key, &all.map_err(|error| damaged(&path, error))?)
        })?,
    };
    Ok(contents)
}

/// Changes a store whose anchor is gone; the number of the change.
pub(super) fn change_alone(
    state_dir: &Path,
    state: &mut State,
    change: impl FnOnce(&mut Contents),
) -> Result<u64, StoreError> {
    change_without_anchor(state_dir, state, |contents| {
        change(contents);
        Ok::<(), StoreError>(())
    })
    .map(|((), generation)| generation)
}

/// Changes what is kept under a state directory, whole or not at all.
///
/// # Errors
/// See [`StoreError`]; or what `change` refuses with, and nothing is changed.
pub fn change<T, E: From<StoreError>>(
    state_dir: &Path,
    state: &mut State,
    change: impl FnOnce(&mut Contents) -> Result<T, E>,
) -> Result<T, E> {
    let (done, generation) = change_without_anchor(state_dir, state, change)?;
    state
        .anchor
        .store_changed(generation)
        .map_err(StoreError::Anchor)?;
    Ok(done)
}

fn change_without_anchor<T, E: From<StoreError>>(
    state_dir: &Path,
    state: &mut State,
    change: impl FnOnce(&mut Contents) -> Result<T, E>,
) -> Result<(T, u64), E> {
    let path = state_dir.join(FILE_NAME);
    let db = writer(&path)?;
    let (done, generation) = guarded_as(&path, || -> Result<(T, u64), E> {
        let mut contents = {
            let all = db.begin_read().map_err(|error| damaged(&path, error))?;
            read(&path, &state.key, &all)?
        };
        is_not_older(&path, &contents, state)?;
        let before = contents.generation.max(state.anchor.generation());
        let done = change(&mut contents)?;
        if contents.is_too_much() {
            return Err(StoreError::Full.into());
        }
        contents.generation = before.saturating_add(1);
        write(&path, &state.key, &db, &contents)?;
        Ok((done, contents.generation))
    })?;
    // Its result does not matter: the change is on the disk, and what closing
    // fails to bring in order, the next opening does.
    let _ = guarded(&path, || db.close().map_err(|error| damaged(&path, error)));
    Ok((done, generation))
}

fn is_not_older(path: &Path, contents: &Contents, state: &State) -> Result<(), StoreError> {
    let (has, known) = (contents.generation, state.anchor.generation());
    if has < known {
        return Err(StoreError::Older(path.to_owned(), has, known));
    }
    Ok(())
}

/// A store as it was left, or one that had to be brought in order first.
enum Reader {
    Clean(ReadOnlyDatabase),
    Recovered(Database),
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn backend(path: &Path, file: File) -> Result<FileBackend, StoreError> {
    FileBackend::new(file).map_err(|error| damaged(path, error))
}

fn reader(path: &Path) -> Result<Reader, StoreError> {
    let open = || own_file::open(path, Access::Read).map_err(StoreError::File);
    for _ in 0..TRIES {
        match builder().open_read_only_with_backend(backend(path, open()?)?) {
            Ok(db) => return Ok(Reader::Clean(db)),
            Err(DatabaseError::DatabaseAlreadyOpen) => thread::sleep(TRY_AGAIN),
            // A process ended in the middle; who opens it to write puts it in order.
            Err(DatabaseError::RepairAborted) => return writer(path).map(Reader::Recovered),
            Err(error) => return Err(damaged(path, error)),
        }
    }
    Err(StoreError::Busy(path.to_owned()))
}

fn writer(path: &Path) -> Result<Database, StoreError> {
    for _ in 0..TRIES {
        let file = match own_file::open(path, Access::Change) {
            Err(error) if error.is_missing() => {
                make(path)?;
                continue;
            }
            opened => opened.map_err(StoreError::File)?,
        };
        let opened = guarded(path, || {
            Ok(builder().create_with_backend(backend(path, file)?))
        })?;
        match opened {
            Ok(db) => return Ok(db),
            Err(DatabaseError::DatabaseAlreadyOpen) => thread::sleep(TRY_AGAIN),
            // That its disk takes nothing more says nothing of what is on it.
            Err(DatabaseError::Storage(StorageError::Io(error)))
                if matches!(
                    error.kind(),
                    ErrorKind::StorageFull
                        | ErrorKind::QuotaExceeded
                        | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                return Err(StoreError::Write(path.to_owned(), error.to_string()));
            }
            Err(error) => return Err(damaged(path, error)),
        }
    }
    Err(StoreError::Busy(path.to_owned()))
}

/// Makes an empty store, which appears under its name when all of it is on the disk:
/// one that is half made would be taken for a damaged one.
fn make(path: &Path) -> Result<(), StoreError> {
    let failed = |what: String| StoreError::Write(path.to_owned(), what);
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| failed(error.to_string()))?;
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{:016x}.new", u64::from_le_bytes(number)));
    let fresh = PathBuf::from(fresh);
    let file = own_file::create_new(&fresh).map_err(StoreError::File)?;
    let made = guarded(path, || {
        let io = |error: &dyn fmt::Display| failed(error.to_string());
        let backend = FileBackend::new(file).map_err(|error| io(&error))?;
        let db = builder().create_with_backend(backend);
        db.and_then(Database::close).map_err(|error| io(&error))?;
        let (here, flags) = (rustix::fs::CWD, RenameFlags::NOREPLACE);
        match rustix::fs::renameat_with(here, &fresh, here, path, flags) {
            Ok(()) => Ok(()),
            // Another process made one meanwhile.
            Err(Errno::EXIST) => Err(StoreError::Busy(path.to_owned())),
            Err(errno) => Err(io(&errno)),
        }
    });
    match made {
        Ok(()) => own_file::sync_dir(path.parent().unwrap_or(path)).map_err(StoreError::File),
        Err(error) => {
            let _gone = std::fs::remove_file(&fresh);
            match error {
                StoreError::Busy(_) => Ok(()),
                error => Err(error),
            }
        }
    }
}

/// What an open store holds. `path` is for messages.
///
/// # Errors
/// See [`StoreError`].
pub fn read(path: &Path, key: &Key, all: &redb::ReadTransaction) -> Result<Contents, StoreError> {
    let table = match all.open_table(ROWS) {
        Ok(table) => table,
        // Made, and then the process ended before anything was in it.
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Contents::default()),
        Err(error) => return Err(damaged(path, error)),
    };
    let mut found: Rows = Vec::new();
    for row in table.iter().map_err(|error| damaged(path, error))? {
        let (name, bytes) = row.map_err(|error| damaged(path, error))?;
        found.push((name.value().to_owned(), bytes.value().to_vec()));
    }
    let seals = all.open_table(SEAL).map_err(|error| damaged(path, error))?;
    let seal = seals
        .iter()
        .map_err(|error| damaged(path, error))?
        .next()
        .ok_or_else(|| damaged(path, "it has no seal"))?
        .map_err(|error| damaged(path, error))?;
    let version = seal.0.value();
    let holds = key.is_tag(Purpose::Seal, &sealed(version, &found), seal.1.value());
    if !holds {
        return Err(damaged(
            path,
            "it is not as it was sealed, or was sealed with another key",
        ));
    }
    if version != VERSION {
        return Err(StoreError::Version(path.to_owned(), version));
    }
    rows::contents(&found)
        .map_err(|name| damaged(path, format_args!("the row `{name}` means nothing")))
}

fn sealed(version: u64, rows: &Rows) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.extend_from_slice(&rows::sealed_bytes(rows));
    bytes
}

/// Puts these contents in place of what an open store holds, durably.
///
/// # Errors
/// See [`StoreError`]; then it holds what it held before.
pub fn write(path: &Path, key: &Key, db: &Database, contents: &Contents) -> Result<(), StoreError> {
    let rows = rows::rows(contents);
    let seal = key.tag(Purpose::Seal, &sealed(VERSION, &rows));
    put(db, &rows, &seal).map_err(|error| StoreError::Write(path.to_owned(), error.to_string()))
}

fn put(db: &Database, rows: &Rows, seal: &[u8]) -> Result<(), redb::Error> {
    let mut all = db.begin_write()?;
    // A commit counts only once both of its halves are on the disk.
    all.set_two_phase_commit(true);
    {
        let mut table = all.open_table(ROWS)?;
        table.retain(|_, _| false)?;
        for (name, bytes) in rows {
            table.insert(name.as_str(), bytes.as_slice())?;
        }
        let mut seals = all.open_table(SEAL)?;
        seals.retain(|_, _| false)?;
        seals.insert(VERSION, seal)?;
    }
    all.commit()?;
    Ok(())
}

fn damaged(path: &Path, what: impl fmt::Display) -> StoreError {
    StoreError::Damaged(path.to_owned(), what.to_string())
}

/// A panic of the library is damage of the file.
fn guarded<T>(path: &Path, run: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    guarded_as(path, run)
}

fn guarded_as<T, E: From<StoreError>>(
    path: &Path,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(damaged(path, "the library that reads it gave up").into()))
}
