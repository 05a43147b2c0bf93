//! A tree, a session that holds all of it, and somebody else.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hermitcrab_core::Permit;
use hermitcrab_core::action::Action;
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Verb};
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::changeset::edits::Edit;
use hermitcrab_sandbox::dircap::DirCap;
use hermitcrab_sandbox::journal::{Journal, Part, UndoError};
use hermitcrab_sandbox::sha256;

use super::picture::{Fate, NAMES, Picture};

/// What somebody else writes.
const MINE: &str = "mine\n";

/// The directory and the journal's own.
pub(super) struct Ground {
    _folder: tempfile::TempDir,
    work: PathBuf,
    state: PathBuf,
    touched: std::cell::RefCell<Vec<String>>,
}

impl Ground {
    pub(super) fn new() -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (work, state) = (folder.path().join("work"), folder.path().join("state"));
        for place in [
            &work,
            &state,
            &work.join("d"),
            &work.join("d/s"),
            &work.join("e"),
        ] {
            fs::create_dir(place)?;
            fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
        }
        for (name, text) in [
            ("a", "a\n"),
            ("b", "bb\n"),
            ("d/x", "x\n"),
            ("d/s/z", "z\n"),
            ("e/k", "k\n"),
        ] {
            fs::write(work.join(name), text)?;
            fs::set_permissions(work.join(name), fs::Permissions::from_mode(0o644))?;
        }
        symlink("a", work.join("l"))?;
        Ok(Self {
            _folder: folder,
            work,
            state,
            touched: std::cell::RefCell::default(),
        })
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn picture(&self) -> Result<Picture, String> {
        Picture::of(&self.work).map_err(|error| format!("cannot look: {error}"))
    }

    /// The edits these fates are.
    pub(super) fn edits(&self, fates: &[Fate], makes_dir: bool) -> std::io::Result<Vec<Edit>> {
        let mut edits = Vec::new();
        let mut touched = Vec::new();
        for (name, fate) in NAMES.iter().zip(fates) {
            let to = match fate {
                Fate::Stays => continue,
                Fate::Changed => {
                    if let (true, Some(path)) = (self.is_file(name), path(name)) {
                        touched.push((*name).to_owned());
                        edits.push(Edit::Replace {
                            path,
                            before: Some(sha256(&fs::read(self.work.join(name))?)),
                            content: b"changed\n".to_vec(),
                        });
                    }
                    continue;
                }
                Fate::Deleted => {
                    touched.push((*name).to_owned());
                    self.removed(name, &mut edits)?;
                    continue;
                }
                Fate::Moved => format!("m{name}"),
                Fate::MovedInto => format!("n/{name}"),
            };
            if let (Some(from), Some(new)) = (path(name), path(&to)) {
                touched.extend([(*name).to_owned(), to]);
                edits.push(Edit::Move { from, to: new });
            }
        }
        if let (true, Some(path)) = (makes_dir, path("made/in")) {
            edits.push(Edit::MakeDir { path, mode: 0o755 });
        }
        self.touched.replace(touched);
        Ok(edits)
    }

    fn is_file(&self, name: &str) -> bool {
        let found = self.work.join(name).symlink_metadata();
        found.is_ok_and(|found| found.is_file())
    }

    fn removed(&self, name: &str, edits: &mut Vec<Edit>) -> std::io::Result<()> {
        let place = self.work.join(name);
        let found = place.symlink_metadata()?;
        if found.is_dir() {
            for entry in fs::read_dir(&place)? {
                let below = format!("{name}/{}", entry?.file_name().to_string_lossy());
                self.removed(&below, edits)?;
            }
        }
        if let Some(path) = path(name) {
            edits.push(if found.is_file() {
                let before = sha256(&fs::read(&place)?);
                Edit::Remove { path, before }
            } else {
                Edit::RemoveName { path }
            });
        }
        Ok(())
    }

    /// Commits them; the failure in words.
    pub(super) fn commit(&self, journal: &Journal, edits: &[Edit]) -> Result<(), String> {
        let (mut session, dir) = session().ok_or("the session does not open")?;
        let cap = DirCap::open_ambient_dir(&self.work, dir).map_err(|error| error.to_string())?;
        let incoming = journal
            .incoming(&cap, edits)
            .map_err(|error| error.to_string())?;
        let set = incoming.set().ok_or("there is nothing to commit")?;
        let actions = set.actions(dir).map_err(|error| error.to_string())?;
        let permits = permits(&mut session, actions);
        let part = Part {
            dir: &cap,
            set,
            permits,
        };
        match journal.commit(vec![part], "a law").failure {
            None => Ok(()),
            Some(failure) => Err(failure.error.to_string()),
        }
    }

    /// Takes back the only commit; `Err(None)`: it began and failed.
    pub(super) fn undo(&self, journal: &Journal) -> Result<(), Option<UndoError>> {
        let listed = journal.list().map_err(|error| Some(error.into()))?;
        let Some(id) = listed.first().map(|kept| kept.id) else {
            return Err(None);
        };
        let undo = journal.prepare_undo(id).map_err(Some)?;
        let (mut session, dir) = session().ok_or(None)?;
        let cap = DirCap::open_ambient_dir(&self.work, dir).map_err(|_| None)?;
        let actions = undo.actions(&[(dir, RelPath::root())]).map_err(|_| None)?;
        let permits = permits(&mut session, actions);
        match journal.undo(&undo, &[&cap], permits).failure {
            None => Ok(()),
            Some(_) => Err(None),
        }
    }

    /// Somebody who takes this name, the old one or the one it is moved to.
    pub(super) fn stranger(&self, name: usize, new: bool) -> Stranger {
        let touched = self.touched.borrow();
        let old = NAMES.get(name).copied().unwrap_or("a");
        let moved = [format!("m{old}"), format!("n/{old}")];
        let to = touched.iter().find(|name| moved.contains(name));
        let name = match to.filter(|_| new) {
            Some(to) => to.clone(),
            None => old.to_owned(),
        };
        Stranger {
            place: self.work.join(&name),
            hits: touched.contains(&name),
            inode: AtomicU64::new(0),
        }
    }
}

fn path(name: &str) -> Option<RelPath> {
    RelPath::parse(name.as_bytes()).ok()
}

/// Somebody else who replaces what has a name by a file of their own.
pub(super) struct Stranger {
    place: PathBuf,
    hits: bool,
    /// Their file; 0 while there is none.
    inode: AtomicU64,
}

impl Stranger {
    /// Puts the file there; where that cannot be, they do not come.
    pub(super) fn come(&self) {
        let beside = self.place.with_extension("new");
        // Removed by whoever else comes next; here nobody may fail for it.
        let _gone = fs::remove_dir_all(&self.place);
        let put = fs::write(&beside, MINE).and_then(|()| fs::rename(&beside, &self.place));
        match put.and_then(|()| self.place.symlink_metadata()) {
            Ok(stat) => self.inode.store(stat.ino(), Ordering::Relaxed),
            Err(_) => drop(fs::remove_file(&beside)),
        }
    }

    pub(super) fn came(&self) -> bool {
        self.inode.load(Ordering::Relaxed) != 0
    }

    /// Whether the commit touched that name.
    pub(super) const fn hits_the_commit(&self) -> bool {
        self.hits
    }

    /// Whether the very file is where they put it, as they wrote it.
    pub(super) fn is_there(&self, _ground: &Ground) -> bool {
        let is_it = |stat: fs::Metadata| stat.ino() == self.inode.load(Ordering::Relaxed);
        self.place.symlink_metadata().is_ok_and(is_it)
            && fs::read_to_string(&self.place).is_ok_and(|text| text == MINE)
    }
}

/// A session whose first agent holds every change of files.
fn session() -> Option<(Session, DirId)> {
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let dir = session.add_dir(path("work")?).ok()?;
    let caps: Option<Vec<Cap>> = Verb::FILES
        .into_iter()
        .map(|verb| {
            let below = RelPath::root();
            Cap::new(verb, Object::tree(dir, below)).ok()
        })
        .collect();
    let _granted = session.step(
        Instant::BOOT,
        Event::Grant(GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::from_caps(caps?).ok()?,
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        }),
    );
    Some((session, dir))
}

fn permits(session: &mut Session, actions: Vec<Action>) -> Vec<Permit<'_>> {
    let call = Event::Call(Call {
        by: AgentId::FIRST,
        tool: Tool::Directory,
        actions,
    });
    session.step(Instant::BOOT, call).into_parts().permits
}
