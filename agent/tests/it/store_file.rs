//! The store's file, whole, damaged, exchanged, in use, and without power.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::kept;

use std::{
    io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::{Arc, Mutex},
};

use hermitcrab::{
    state_dir::key::{Key, Purpose},
    store::{FILE_NAME, State, StoreError, contents::Contents, db, rows},
};
use hermitcrab_core::{
    authority::Verb,
    standing::{Kept, PortableAuthority},
};
use redb::{Database, ReadableDatabase as _, StorageBackend, TableDefinition};

/// A state directory whose store holds this.
fn stored(contents: &Contents) -> (tempfile::TempDir, State) {
    let dir = tempfile::tempdir().unwrap();
    let mut state = State::open(dir.path()).unwrap();
    put(dir.path(), &mut state, contents);
    (dir, state)
}

fn put(dir: &Path, state: &mut State, contents: &Contents) {
    db::change::<_, StoreError>(dir, state, |held| {
        *held = contents.clone();
        Ok(())
    })
    .unwrap();
}

fn as_stored(contents: &Contents, generation: u64) -> Contents {
    Contents {
        generation,
        ..contents.clone()
    }
}

#[test]
fn what_is_kept_is_there_again() {
    let (dir, mut state) = stored(&kept::contents(5));
    let loaded = db::load(dir.path(), &state).unwrap();
    assert_eq!(loaded, as_stored(&kept::contents(5), 1));
    // A change refused is no change.
    let refused = db::change::<(), StoreError>(dir.path(), &mut state, |held| {
        held.standing.clear();
        Err(StoreError::Full)
    });
    assert!(matches!(refused, Err(StoreError::Full)));
    assert_eq!(db::load(dir.path(), &state).unwrap(), loaded);
    put(dir.path(), &mut state, &kept::contents(2));
    assert_eq!(
        db::load(dir.path(), &state).unwrap(),
        as_stored(&kept::contents(2), 2)
    );
}

/// Two programs begin in a directory that is not there yet: one makes the key
/// and the anchor, and all of them go on with the same ones.
#[test]
fn several_that_begin_at_once_agree_on_what_they_begin_with() {
    const AT_ONCE: usize = 6;
    for _ in 0..15 {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = dir.path().join("state");
        let start = std::sync::Barrier::new(AT_ONCE);
        let seals: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let state = State::open(&state_dir).unwrap();
                        state.key.tag(Purpose::Seal, b"x")
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let state = State::open(&state_dir).unwrap();
        for seal in seals {
            assert!(state.key.is_tag(Purpose::Seal, b"x", &seal));
        }
        let left = std::fs::read_dir(&state_dir).unwrap();
        let new = left.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".new")
        });
        assert_eq!(new.count(), 0, "nothing half made is left");
    }
}

/// What a crash left of making them is no obstacle.
#[test]
fn the_rest_of_an_interrupted_beginning_is_swept_away() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["store.key.new", "anchor.new"] {
        std::fs::write(dir.path().join(name), "half").unwrap();
    }
    let made = State::open(dir.path()).unwrap();
    let read = State::open(dir.path()).unwrap();
    let seal = made.key.tag(Purpose::Seal, b"x");
    assert!(read.key.is_tag(Purpose::Seal, b"x", &seal));
    assert!(!dir.path().join("store.key.new").exists());
    assert!(!dir.path().join("anchor.new").exists());
}

#[test]
fn nothing_kept_is_an_empty_store_and_no_identifier_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path()).unwrap();
    assert_eq!(db::load(dir.path(), &state).unwrap(), Contents::default());
    assert!(!dir.path().join(FILE_NAME).exists(), "nothing to keep yet");
}

#[test]
fn rows_survive_the_way_and_rows_that_mean_nothing_are_named() {
    let contents = kept::contents(4);
    let good = rows::rows(&contents);
    assert_eq!(rows::contents(&good), Ok(contents));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at].1 = b"{}".to_vec();
        assert_eq!(rows::contents(&bad), Err(good[at].0.clone()));
    }
    let without: Vec<_> = good
        .iter()
        .filter(|(name, _)| name != "state")
        .cloned()
        .collect();
    assert_eq!(
        rows::contents(&without),
        Err("state".to_owned()),
        "a store without its state is no empty store"
    );
}

/// What was kept before names could be told from trees was kept as a tree, and the person
/// who kept it was told so.
#[test]
fn a_row_that_knows_no_names_alone_is_about_all_that_lies_there() {
    let caps = |authority: PortableAuthority| authority.caps().to_vec();
    let mut contents = kept::contents(2);
    let (tree, name) = (
        kept::place(Verb::FsModify, b"w"),
        kept::name(Verb::FsModify, b"w"),
    );
    contents.standing[0].standing.authority = PortableAuthority::from_caps([name.clone()]).unwrap();
    let mut stored = rows::rows(&contents);
    assert_eq!(rows::contents(&stored), Ok(contents));
    let row = stored
        .iter_mut()
        .find(|(name, _)| name.starts_with("standing"))
        .unwrap();
    let text = String::from_utf8(row.1.clone()).unwrap();
    assert!(text.contains(r#"{"name":"77"}"#), "{text}");
    row.1 = text.replace(r#"{"name":"77"}"#, r#"{"place":"77"}"#).into();
    let mut read = rows::contents(&stored).unwrap();
    let authority = read.standing.remove(0).standing.authority;
    assert_eq!(caps(authority), [tree]);
}

/// Whatever bit falls over: the same contents, or a refusal.
#[test]
fn no_flipped_bit_changes_what_is_held() {
    const FLIPS: usize = 600;
    let (dir, state) = stored(&kept::contents(6));
    let expected = db::load(dir.path(), &state).unwrap();
    let path = dir.path().join(FILE_NAME);
    let good = std::fs::read(&path).unwrap();
    let used: Vec<usize> = (0..good.len()).filter(|at| good[*at] != 0).collect();
    let (mut same, mut refused) = (0, 0);
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..FLIPS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut bad = good.clone();
        let at = used[random as usize % used.len()];
        bad[at] ^= 1 << (random >> 40 & 7);
        std::fs::write(&path, &bad).unwrap();
        match db::load(dir.path(), &state) {
            Ok(contents) => {
                assert_eq!(contents, expected, "byte {at}");
                same += 1;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("hermitcrab doctor --repair"), "{text}");
                refused += 1;
            }
        }
    }
    println!("{same} the same, {refused} refused");
    assert!(same > 0 && refused > 0);
}

#[test]
fn a_truncated_store_is_refused_and_never_an_empty_one() {
    let (dir, state) = stored(&kept::contents(6));
    let path = dir.path().join(FILE_NAME);
    let good = std::fs::read(&path).unwrap();
    for part in 0..60 {
        std::fs::write(&path, &good[..good.len() * part / 60]).unwrap();
        let error = db::load(dir.path(), &state).expect_err("refused");
        assert!(
            matches!(error, StoreError::Damaged(..) | StoreError::Older(..)),
            "{part}: {error}"
        );
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(
        db::load(dir.path(), &state),
        Err(StoreError::Older(_, 0, 1))
    ));
}

#[test]
fn an_older_copy_does_not_bring_a_revoked_grant_back() {
    let mut contents = kept::contents(2);
    let (dir, mut state) = stored(&contents);
    let path = dir.path().join(FILE_NAME);
    let older = std::fs::read(&path).unwrap();
    contents.standing[0].standing.kept = Kept::Revoked;
    put(dir.path(), &mut state, &contents);
    std::fs::write(&path, older).unwrap();
    assert!(matches!(
        db::load(dir.path(), &state),
        Err(StoreError::Older(_, 1, 2))
    ));
    let refused = db::change::<(), StoreError>(dir.path(), &mut state, |_| Ok(()));
    assert!(matches!(refused, Err(StoreError::Older(..))));
}

#[test]
fn a_store_of_another_key_or_another_version_is_refused() {
    let (dir, mut state) = stored(&kept::contents(2));
    let own = state.key.clone();
    state.key = Key::draw().unwrap();
    assert!(matches!(
        db::load(dir.path(), &state),
        Err(StoreError::Damaged(..))
    ));
    state.key = own;
    let seals: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("seal");
    let all = rows::rows(&as_stored(&kept::contents(2), 1));
    let mut bytes = 2_u64.to_le_bytes().to_vec();
    bytes.extend_from_slice(&rows::sealed_bytes(&all));
    let seal = state.key.tag(Purpose::Seal, &bytes);
    {
        let db = Database::open(dir.path().join(FILE_NAME)).unwrap();
        let write = db.begin_write().unwrap();
        {
            let mut table = write.open_table(seals).unwrap();
            table.retain(|_, _| false).unwrap();
            table.insert(2, seal.as_slice()).unwrap();
        }
        write.commit().unwrap();
    }
    assert!(matches!(
        db::load(dir.path(), &state),
        Err(StoreError::Version(_, 2))
    ));
}

#[test]
fn a_store_that_is_a_link_a_directory_or_open_to_others_is_refused() {
    let (dir, state) = stored(&kept::contents(2));
    let path = dir.path().join(FILE_NAME);
    let refused = |what: &str| {
        let error = db::load(dir.path(), &state).expect_err(what);
        assert!(matches!(error, StoreError::File(_)), "{what}: {error}");
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
    refused("open to others");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    std::fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    refused("a link");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("a directory");
    std::fs::remove_dir(&path).unwrap();
    // Another user's: given away where that is possible, borrowed elsewhere.
    std::fs::rename(&elsewhere, &path).unwrap();
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
        refused("another user's");
    } else {
        let passwd = hermitcrab::state_dir::own_file::open(
            Path::new("/etc/passwd"),
            hermitcrab::state_dir::own_file::Access::Read,
        );
        assert!(passwd.is_err(), "another user's");
    }
}

#[test]
fn a_store_in_use_is_waited_for_and_then_refused() {
    let (dir, state) = stored(&kept::contents(2));
    let open = Database::open(dir.path().join(FILE_NAME)).unwrap();
    assert!(matches!(
        db::load(dir.path(), &state),
        Err(StoreError::Busy(_))
    ));
    drop(open);
    db::load(dir.path(), &state).unwrap();
}

/// A disk in memory that keeps what was waited for, and forgets at will.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    durable: Vec<u8>,
    now: Vec<u8>,
    pending: Vec<Write>,
    steps: usize,
    pull_at: Option<usize>,
    full_at: Option<u64>,
    dead: bool,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

fn apply(bytes: &mut Vec<u8>, write: &Write) {
    match write {
        Write::Length(length) => bytes.resize(*length, 0),
        Write::Bytes(at, data) => {
            let end = at + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*at..end].copy_from_slice(data);
        }
    }
}

impl Disk {
    fn holding(bytes: &[u8], pull_at: Option<usize>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            durable: bytes.to_vec(),
            now: bytes.to_vec(),
            pull_at,
            ..Inner::default()
        })))
    }

    fn step(&self, change: impl FnOnce(&mut Inner)) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        if inner.dead {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        inner.steps += 1;
        if inner.pull_at == Some(inner.steps) {
            inner.dead = true;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        change(&mut inner);
        Ok(())
    }

    /// What may be on the disk: all, none, or some of what was not waited for,
    /// in the order written or not.
    fn left(&self) -> Vec<Vec<u8>> {
        let inner = self.0.lock().unwrap();
        let some = |chosen: &dyn Fn(usize) -> bool| {
            let mut bytes = inner.durable.clone();
            for (number, write) in inner.pending.iter().enumerate() {
                if chosen(number) {
                    apply(&mut bytes, write);
                }
            }
            bytes
        };
        let half = inner.pending.len() / 2;
        let mut all = vec![
            inner.now.clone(),
            inner.durable.clone(),
            some(&|number| number < half),
            some(&|number| number >= half),
            some(&|number| number % 2 == 0),
            some(&|number| number % 2 == 1),
        ];
        all.sort();
        all.dedup();
        all
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.0.lock().unwrap();
        let from = usize::try_from(offset).unwrap();
        let found = inner
            .now
            .get(from..from + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self
            .0
            .lock()
            .unwrap()
            .full_at
            .is_some_and(|room| len > room)
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.step(|inner| {
            let write = Write::Length(usize::try_from(len).unwrap());
            apply(&mut inner.now, &write);
            inner.pending.push(write);
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.step(|inner| {
            inner.durable.clone_from(&inner.now);
            inner.pending.clear();
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.step(|inner| {
            let write = Write::Bytes(usize::try_from(offset).unwrap(), data.to_vec());
            apply(&mut inner.now, &write);
            inner.pending.push(write);
        })
    }
}

fn open(disk: &Disk) -> Result<Database, redb::DatabaseError> {
    Database::builder().create_with_backend(disk.clone())
}

/// The power fails at every write and every wait of every change; what was
/// changed before is there, and the change that was under way is there whole
/// or not at all.
#[test]
fn a_store_survives_a_loss_of_power_at_every_step() {
    const CHANGES: u64 = 6;
    let key = Key::draw().unwrap();
    let path = Path::new("disk");
    let mut points = 0;
    for pull_at in 1.. {
        let disk = Disk::holding(b"", Some(pull_at));
        let mut done = 0;
        if let Ok(db) = open(&disk) {
            for number in 1..=CHANGES {
                if db::write(path, &key, &db, &kept::contents(number)).is_err() {
                    break;
                }
                done = number;
            }
        }
        let ended = !disk.0.lock().unwrap().dead;
        for left in disk.left() {
            let db = match open(&Disk::holding(&left, None)) {
                Ok(db) => db,
                // Nothing was ever promised of a store that was not made yet.
                Err(error) => {
                    assert_eq!(done, 0, "step {pull_at}: {error}");
                    continue;
                }
            };
            let found = db::read(path, &key, &db.begin_read().unwrap()).unwrap();
            let expected = |number| match number {
                0 => Contents::default(),
                number => kept::contents(number),
            };
            assert!(
                found == expected(done) || found == expected(done + 1),
                "step {pull_at} after {done} changes: {} grants",
                found.standing.len()
            );
        }
        if ended {
            break;
        }
        points += 1;
    }
    println!("{points} points");
    assert!(points > 50, "only {points} points");
}

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let key = Key::draw().unwrap();
    let path = Path::new("disk");
    let disk = Disk::holding(b"", None);
    let db = open(&disk).unwrap();
    db::write(path, &key, &db, &kept::contents(1)).unwrap();
    let room = disk.len().unwrap();
    disk.0.lock().unwrap().full_at = Some(room);
    let mut last = 1;
    let error = loop {
        match db::write(path, &key, &db, &kept::contents(last * 2)) {
            Ok(()) => last *= 2,
            Err(error) => break error,
        }
        assert!(last < 1 << 14, "it never fills up");
    };
    assert!(matches!(error, StoreError::Write(..)), "{error}");
    drop(db);
    for left in disk.left() {
        let db = open(&Disk::holding(&left, None)).unwrap();
        let found = db::read(path, &key, &db.begin_read().unwrap()).unwrap();
        assert_eq!(found, kept::contents(last));
    }
}
