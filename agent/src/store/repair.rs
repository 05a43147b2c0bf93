//! `doctor --repair`: putting a damaged state directory in order.
//!
//! Everything that is about to be touched is first copied, or moved as it is,
//! into a directory of its own beside it; nothing is removed. What is repaired
//! is never more than what held before: a ledger goes on after its last record
//! that holds; a store that cannot be trusted is set aside, and one that can be
//! trusted, but whose age is not known any more, keeps its grants as ones that
//! wait for a new confirmation.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use hermitcrab_core::standing::BootId;

use super::{FILE_NAME, State, StoreError, db};
use crate::{
    audit::{
        self, LedgerError, Tail,
        disk::{Disk as _, Roomy},
        index,
    },
    state_dir::{
        self,
        anchor::{self, Anchor, AnchorError, Start},
        key::{self, Key, KeyError},
        own_file::{self, Access, OwnFileError},
    },
};

/// What is looked after, in the order it is put in order.
const FILES: [&str; 6] = [
    key::FILE_NAME,
    anchor::FILE_NAME,
    audit::FILE_NAME,
    index::FILE_NAME,
    FILE_NAME,
    state_dir::HISTORY_NAME,
];

/// What was done.
#[derive(Debug, Default)]
pub struct Repaired {
    /// Where everything lies as it was found, if anything was touched.
    pub copy: Option<PathBuf>,
    /// What was done, one line each.
    pub done: Vec<String>,
}

struct Repair<'d> {
    dir: &'d Path,
    stamp: u64,
    repaired: Repaired,
}

/// Puts a state directory in order. `stamp` names the copy.
///
/// # Errors
/// A session uses it, it belongs to somebody else, or the system refuses;
/// everything found is in the copy then.
pub fn repair(state_dir: &Path, stamp: u64) -> Result<Repaired, OwnFileError> {
    let mut repair = Repair {
        dir: state_dir,
        stamp,
        repaired: Repaired::default(),
    };
    repair.directory()?;
    let _held = own_file::hold(state_dir)?;
    repair.files()?;
    let _ledger_is_free = repair.lock()?;
    let (key, old_key_holds) = repair.key()?;
    let anchor = repair.anchor(&key, old_key_holds)?;
    let (place, ledger_was_cut) = repair.ledger(anchor.as_ref())?;
    let generation = repair.store(&key, anchor.as_ref())?;
    repair.anchor_again(&key, anchor, place, generation, ledger_was_cut)?;
    Ok(repair.repaired)
}

impl Repair<'_> {
    fn failed(path: &Path) -> impl FnOnce(io::Error) -> OwnFileError {
        let path = path.to_owned();
        move |error| OwnFileError::Io(path, error)
    }

    fn did(&mut self, line: impl Into<String>) {
        self.repaired.done.push(line.into());
    }

    /// The directory for what is touched; everything readable is copied at once.
    fn copy(&mut self) -> Result<PathBuf, OwnFileError> {
        if let Some(copy) = &self.repaired.copy {
            return Ok(copy.clone());
        }
        let copy = (0..1000)
            .map(|number| {
                self.dir
                    .join(format!("before-repair-{}-{number}", self.stamp))
            })
            .find(|copy| std::fs::symlink_metadata(copy).is_err())
            .unwrap_or_else(|| self.dir.join("before-repair"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&copy)
            .map_err(Self::failed(&copy))?;
        for name in FILES {
            let from = self.dir.join(name);
            let is_file = std::fs::symlink_metadata(&from).is_ok_and(|seen| seen.is_file());
            if is_file {
                let to = copy.join(name);
                own_file::copy(&from, &to).map_err(Self::failed(&to))?;
            }
        }
        own_file::sync_dir(&copy)?;
        own_file::sync_dir(self.dir)?;
        self.repaired.copy = Some(copy.clone());
        Ok(copy)
    }

    /// Moves a file out of the way, into the copy.
    fn set_aside(&mut self, name: &str, why: &str) -> Result<(), OwnFileError> {
        let from = self.dir.join(name);
        if std::fs::symlink_metadata(&from).is_err() {
            return Ok(());
        }
        let to = self.copy()?.join(name);
        std::fs::rename(&from, &to).map_err(Self::failed(&from))?;
        own_file::sync_dir(self.dir)?;
        self.did(format!("set `{name}` aside: {why}"));
        Ok(())
    }

    fn directory(&mut self) -> Result<(), OwnFileError> {
        match own_file::state_dir(self.dir) {
            Err(OwnFileError::Mode(path, mode)) => {
                std::fs::set_permissions(&path, Permissions::from_mode(0o700))
                    .map_err(Self::failed(&path))?;
                self.did(format!("closed the directory, which had mode {mode:04o}"));
                own_file::state_dir(self.dir)
            }
            other => other,
        }
    }

    /// Links and the like go aside; files open to others are closed.
    fn files(&mut self) -> Result<(), OwnFileError> {
        for name in FILES {
            let path = self.dir.join(name);
            match own_file::inspect(&path) {
                Ok(()) => {}
                Err(error) if error.is_missing() => {}
                Err(OwnFileError::Mode(_, mode)) => {
                    // Who could read the key could make seals: what it sealed
                    // is no proof any more.
                    self.copy()?;
                    std::fs::set_permissions(&path, Permissions::from_mode(0o600))
                        .map_err(Self::failed(&path))?;
                    self.did(format!("closed `{name}`, which had mode {mode:04o}"));
                    let could_write = mode & 0o022 != 0;
                    if name == key::FILE_NAME || (could_write && name == FILE_NAME) {
                        self.set_aside(name, "others could reach it")?;
                    }
                }
                Err(OwnFileError::Link(_)) => self.set_aside(name, "a symbolic link")?,
                Err(OwnFileError::NotRegular(_)) => {
                    self.set_aside(name, "not a regular file")?;
                }
                Err(error @ (OwnFileError::Io(..) | OwnFileError::Owner(..))) => {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> Result<Option<std::fs::File>, OwnFileError> {
        audit::hold(self.dir).map_err(|error| match error {
            LedgerError::Own(error) => error,
            _ => OwnFileError::Io(
                self.dir.join(audit::FILE_NAME),
                io::Error::other("a session uses it; wait for its end"),
            ),
        })
    }

    fn key(&mut self) -> Result<(Key, bool), OwnFileError> {
        match Key::read(self.dir) {
            Ok(key) => return Ok((key, true)),
            Err(KeyError::File(error)) if error.is_missing() => {}
            Err(KeyError::File(error)) => return Err(error),
            Err(error @ (KeyError::Length(..) | KeyError::Random(_))) => {
                self.set_aside(key::FILE_NAME, &error.to_string())?;
            }
        }
        let key = Key::make(self.dir).map_err(|error| match error {
            KeyError::File(error) => error,
            other => OwnFileError::Io(
                self.dir.join(key::FILE_NAME),
                io::Error::other(other.to_string()),
            ),
        })?;
        self.did("made a new key");
        Ok((key, false))
    }

    fn anchor(&mut self, key: &Key, key_holds: bool) -> Result<Option<Anchor>, OwnFileError> {
        match Anchor::read(self.dir, key) {
            Ok(anchor) => Ok(Some(anchor)),
            Err(AnchorError::File(error)) if error.is_missing() => Ok(None),
            Err(AnchorError::File(error)) => Err(error),
            Err(error @ (AnchorError::Form(_) | AnchorError::Version(..))) => {
                let why = if key_holds {
                    error.to_string()
                } else {
                    "it belongs to the old key".to_owned()
                };
                self.set_aside(anchor::FILE_NAME, &why)?;
                Ok(None)
            }
        }
    }

    /// The end of the ledger that holds, and whether it lacks what the anchor knew.
    fn ledger(&mut self, anchor: Option<&Anchor>) -> Result<(Start, bool), OwnFileError> {
        let path = self.dir.join(audit::FILE_NAME);
        let file = match own_file::open(&path, Access::Change) {
            Err(error) if error.is_missing() => {
                let lacks = anchor.is_some_and(|anchor| anchor.place().is_some());
                if lacks {
                    self.did("the ledger is gone; a new one begins");
                }
                return Ok((Start::BEGINNING, lacks));
            }
            opened => opened?,
        };
        let mut disk = Roomy::seen(file).map_err(Self::failed(&path))?;
        let (end, broken) = audit::read::holding(&mut disk, &path);
        if let Some(why) = broken {
            self.copy()?;
            disk.cut(end.offset).map_err(Self::failed(&path))?;
            self.did(format!(
                "cut the ledger back to its first {} records, which hold: {why}",
                end.head.next
            ));
        }
        let known: Vec<_> = anchor
            .and_then(Anchor::place)
            .map(|place| place.head)
            .into_iter()
            .collect();
        match audit::verify_against(self.dir, &known) {
            Ok(verified) => {
                if let Tail::CutOff { bytes } = verified.tail {
                    self.did(format!(
                        "the next start removes {bytes} bytes of records that were never acted on"
                    ));
                }
                Ok((end, false))
            }
            Err(LedgerError::Cut(_, head)) => {
                self.copy()?;
                self.did(format!(
                    "the ledger lacks records it had: {} of {} are left; it goes on after them",
                    end.head.next, head.next
                ));
                Ok((end, true))
            }
            Err(error) => Err(OwnFileError::Io(path, io::Error::other(error.to_string()))),
        }
    }

    /// The number of the store's last change, after it was put in order.
    fn store(&mut self, key: &Key, anchor: Option<&Anchor>) -> Result<u64, OwnFileError> {
        let path = self.dir.join(FILE_NAME);
        if std::fs::symlink_metadata(&path).is_err() {
            if anchor.is_some_and(|anchor| anchor.generation() > 0) {
                self.did("the store is gone; an empty one begins");
            }
            return Ok(0);
        }
        // Whether it is an older copy is the anchor's business; here only
        // whether it holds by itself.
        match db::load_alone(self.dir, key) {
            Ok(contents) => {
                let known = anchor.map(Anchor::generation);
                match known {
                    Some(known) if contents.generation >= known => Ok(contents.generation),
                    Some(known) => {
                        self.set_aside(
                            FILE_NAME,
                            &StoreError::Older(path, contents.generation, known).to_string(),
                        )?;
                        Ok(0)
                    }
                    None => {
                        self.copy()?;
                        let mut state = State {
                            key: key.clone(),
                            anchor: Anchor::floating(self.dir, key),
                        };
                        let unconfirmed = db::change_alone(self.dir, &mut state, |contents| {
                            for kept in &mut contents.standing {
                                kept.standing.boot = BootId::from_bytes([0; 16]);
                            }
                            contents.remembered.clear();
                        });
                        match unconfirmed {
                            Ok(generation) => {
                                self.did(
                                    "nobody knows whether the store is the newest: its grants wait to be confirmed again, its remembered answers are forgotten",
                                );
                                Ok(generation)
                            }
                            Err(error) => {
                                self.set_aside(FILE_NAME, &error.to_string())?;
                                Ok(0)
                            }
                        }
                    }
                }
            }
            Err(StoreError::File(error)) => Err(error),
            Err(StoreError::Busy(path)) => Err(OwnFileError::Io(
                path,
                io::Error::other("another process uses it; wait for its end"),
            )),
            Err(error) => {
                self.set_aside(FILE_NAME, &error.to_string())?;
                Ok(0)
            }
        }
    }

    fn anchor_again(
        &mut self,
        key: &Key,
        anchor: Option<Anchor>,
        place: Start,
        generation: u64,
        ledger_was_cut: bool,
    ) -> Result<(), OwnFileError> {
        if let Some(anchor) = &anchor {
            let store_fits = generation >= anchor.generation();
            let ledger_fits = anchor
                .place()
                .is_none_or(|known| known.head.next <= place.head.next);
            if store_fits && ledger_fits && !ledger_was_cut {
                return Ok(());
            }
            self.set_aside(anchor::FILE_NAME, "it knew more than is left")?;
        }
        Anchor::make(self.dir, key, place, generation)
            .map_err(|error| match error {
                AnchorError::File(error) => error,
                other => OwnFileError::Io(
                    self.dir.join(anchor::FILE_NAME),
                    io::Error::other(other.to_string()),
                ),
            })
            .map(drop)?;
        self.did("made a new anchor from what holds");
        Ok(())
    }
}
