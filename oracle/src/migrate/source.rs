//! A private copy of a Hermes home, and proof that the home stayed as it was.
//!
//! Everything later reads the copy: opening a database, even to read it, may
//! write beside it. The home itself is only ever opened for reading, no link in
//! it is followed, and nothing that could block (a pipe, a device) is opened.

mod copy;
mod folder;
mod lock;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use self::copy::{Digest, Unreadable};
use self::folder::Folder;
use super::note::Note;
use crate::exit::{self, Unwritten};
use crate::interrupt::Interrupt;

/// The database of sessions and messages.
pub const DATABASE: &str = "state.db";
/// Files that make sense alone.
const FILES: [&str; 6] = [
    "config.yaml",
    ".env",
    "auth.json",
    "cron/jobs.json",
    "shell-hooks-allowlist.json",
    DATABASE,
];
/// What SQLite keeps beside the database; without them its newest rows are lost.
const DATABASE_BESIDE: [&str; 2] = ["state.db-wal", "state.db-journal"];
/// Conversations, one a line; Hermes leaves them where it was started.
const TRAJECTORIES: [&str; 2] = ["trajectory_samples.jsonl", "failed_trajectories.jsonl"];
/// A skill's text.
const SKILL: &str = "SKILL.md";
/// Skills are looked for this deep.
const SKILL_DEPTH_MAX: usize = 6;
/// And this many entries of the directory are looked at.
const SKILL_ENTRIES_MAX: usize = 20_000;

/// More than is read of any file but those that are streamed; a copy of more would take a disk.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// How long a file may be to be copied: the database and the conversations as long as they are.
fn bytes_max(name: &str) -> u64 {
    let is = |streamed: &str| name.strip_prefix("workspace/").unwrap_or(name) == streamed;
    let mut streamed = DATABASE_BESIDE
        .iter()
        .chain(&TRAJECTORIES)
        .chain([&DATABASE]);
    if streamed.any(|name| is(name)) {
        return u64::MAX;
    }
    WHOLE_BYTES_MAX
}

/// A copy of what a home holds, in a directory nobody else may enter.
#[derive(Debug)]
pub struct Snapshot {
    folder: Folder,
    interrupt: Interrupt,
    taken: BTreeMap<String, (PathBuf, Digest)>,
    /// What could not be copied, and what is odd about the rest.
    pub notes: Vec<Note>,
}

impl Snapshot {
    /// Copies what is known of a home; of a workspace, the conversations left there.
    ///
    /// Leaving at once takes the copy along from its first byte on.
    ///
    /// # Errors
    /// There is no such directory, nothing can be written here, or it was
    /// interrupted; then nothing is left of it.
    pub fn take(
        home: &Path,
        workspace: Option<&Path>,
        interrupt: &Interrupt,
    ) -> Result<Self, Unwritten> {
        let of_no_use = |message: String| Unwritten {
            message,
            code: exit::USAGE,
        };
        let unreadable = |error: std::io::Error| {
            let usual = match error.kind() {
                std::io::ErrorKind::NotFound => "; the home of Hermes is usually `~/.hermes`",
                _ => "",
            };
            of_no_use(format!("cannot read `{}`: {error}{usual}", home.display()))
        };
        let seen = std::fs::metadata(home).map_err(unreadable)?;
        if !seen.is_dir() {
            return Err(of_no_use(format!(
                "`{}` is not a directory",
                home.display()
            )));
        }
        // Where nobody may enter, every file would be missing, there or not.
        let _entered = std::fs::metadata(home.join(".")).map_err(unreadable)?;
        let folder = Folder::make(interrupt).map_err(|error| {
            let cannot = "cannot make a private directory for the copy";
            Unwritten::new(cannot, &error, "place with TMPDIR")
        })?;
        folder.remove_what_was_left();
        let mut snapshot = Self {
            folder,
            interrupt: interrupt.clone(),
            taken: BTreeMap::new(),
            notes: Vec::new(),
        };
        let me = nix::unistd::geteuid().as_raw();
        if seen.uid() != me {
            snapshot.notes.push(Note::remark(
                home.display().to_string(),
                format!(
                    "this home belongs to user {}, not to you (user {me}); it was only read, and what may be granted is for its owner to say",
                    seen.uid()
                ),
            ));
        }
        for name in FILES {
            if name == DATABASE {
                snapshot.take_database(home);
            } else {
                snapshot.take_file(name, &home.join(name));
            }
        }
        for name in TRAJECTORIES {
            snapshot.take_file(name, &home.join(name));
            if let Some(workspace) = workspace {
                snapshot.take_file(&format!("workspace/{name}"), &workspace.join(name));
            }
        }
        snapshot.take_skills(home);
        if interrupt.is_set() {
            return Err(Unwritten {
                message: "interrupted while the home was copied; nothing is left of it".to_owned(),
                code: exit::INCONCLUSIVE,
            });
        }
        Ok(snapshot)
    }

    /// The copy of a file, if there is one.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.taken
            .contains_key(name)
            .then(|| self.folder.path().join(name))
    }

    /// A digest of the copies that say what is allowed and what is secret.
    #[must_use]
    pub fn terms_digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for name in ["config.yaml", ".env", "auth.json"] {
            if let Some((_, digest)) = self.taken.get(name) {
                hash.update(name);
                hash.update(digest);
            }
        }
        hash.finalize().into()
    }

    /// The names of all copies.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.taken.keys().map(String::as_str)
    }

    /// What is said of a home without anything in it that only Hermes writes: it is another
    /// directory, most likely, and what it allows and denies is not known then. Many a project
    /// has an `.env`.
    #[must_use]
    pub fn is_strange(&self, home: &Path) -> Option<String> {
        if !self.notes.is_empty() || !self.names().all(|name| name == ".env") {
            return None;
        }
        Some(format!(
            "nothing that only Hermes writes is in `{}`: no config.yaml, no state.db, no conversations; its home is usually `~/.hermes`",
            home.display()
        ))
    }

    /// The copies that hold conversations.
    pub fn trajectories(&self) -> impl Iterator<Item = &str> {
        self.names()
            .filter(|name| TRAJECTORIES.iter().any(|end| name.ends_with(end)))
    }

    /// The copies that are skills.
    pub fn skills(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| name.ends_with(SKILL))
    }

    /// Reads a copy of at most this many bytes.
    ///
    /// # Errors
    /// It is longer, or cannot be read.
    pub fn bytes(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, String> {
        use std::io::Read as _;
        let Some(path) = self.path(name) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("the copy cannot be read: {error}"))?;
        if bytes.len() as u64 > bytes_max {
            return Err(format!("it is longer than {bytes_max} bytes"));
        }
        Ok(Some(bytes))
    }

    /// Reads a copied text of at most this many bytes.
    ///
    /// # Errors
    /// It is longer, is not UTF-8, or cannot be read.
    pub fn text(&self, name: &str, bytes_max: u64) -> Result<Option<String>, String> {
        self.bytes(name, bytes_max)?
            .map(String::from_utf8)
            .transpose()
            .map_err(|_| "it is not UTF-8 text".to_owned())
    }

    /// Looks at the home again: what is not as it was when it was copied.
    #[must_use]
    pub fn changed_since(&self) -> Vec<String> {
        self.taken
            .values()
            .filter(|(source, digest)| copy::digest(source).ok() != Some(*digest))
            .map(|(source, _)| source.display().to_string())
            .collect()
    }

    fn take_database(&mut self, home: &Path) {
        let path = home.join(DATABASE);
        if let Some(holder) = lock::holder(&path) {
            self.notes.push(Note::partial(
                DATABASE,
                format!(
                    "{holder} keeps it locked, so its sessions and calls are missing here; end Hermes and run this again"
                ),
            ));
            return;
        }
        // What is beside the database comes first and is looked at again: it
        // must belong to the very state of the database that is copied.
        for _ in 0..copy::TRIES {
            for name in DATABASE_BESIDE {
                self.take_file(name, &home.join(name));
            }
            self.take_file(DATABASE, &path);
            let stable = DATABASE_BESIDE.iter().chain([&DATABASE]).all(|name| {
                let now = copy::digest(&home.join(name)).ok();
                now == self.taken.get(*name).map(|(_, digest)| *digest)
            });
            if stable {
                return;
            }
        }
        self.notes.push(Note::remark(
            DATABASE,
            "Hermes wrote to it while it was copied; the newest calls may be missing",
        ));
    }

    fn take_file(&mut self, name: &str, source: &Path) {
        if self.interrupt.is_set() {
            return;
        }
        let target = self.folder.path().join(name);
        let made = target.parent().map_or(Ok(()), std::fs::create_dir_all);
        let copied = made
            .map_err(Unreadable::Here)
            .and_then(|()| copy::copy(source, &target, bytes_max(name), &self.interrupt));
        match copied {
            Ok(digest) => {
                self.taken
                    .insert(name.to_owned(), (source.to_owned(), digest));
            }
            Err(Unreadable::Missing) => {
                self.taken.remove(name);
            }
            Err(other) => {
                self.taken.remove(name);
                self.notes.push(Note::partial(name, other.to_string()));
            }
        }
    }

    fn take_skills(&mut self, home: &Path) {
        let mut left = SKILL_ENTRIES_MAX;
        let mut waiting = vec![(home.join("skills"), 0_usize)];
        while let Some((folder, depth)) = waiting.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let name = folder.strip_prefix(home).unwrap_or(&folder);
                    self.notes.push(Note::partial(
                        name.to_string_lossy(),
                        format!("it cannot be listed, so skills in it are missing here: {error}"),
                    ));
                    continue;
                }
            };
            for entry in entries.flatten() {
                let Some(fewer) = left.checked_sub(1) else {
                    self.notes.push(Note::partial(
                        "skills",
                        format!("only {SKILL_ENTRIES_MAX} entries were looked at"),
                    ));
                    return;
                };
                left = fewer;
                let path = entry.path();
                // The kind of the entry itself: a link is neither.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < SKILL_DEPTH_MAX => {
                        waiting.push((path, depth + 1));
                    }
                    Ok(kind) if kind.is_file() && entry.file_name() == SKILL => {
                        if let Ok(name) = path.strip_prefix(home) {
                            self.take_file(&name.to_string_lossy(), &path);
                        }
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
}
