//! Taking back what a command's commit did, with the same authority as any
//! other change of files, and in the ledger like any other.

use std::{collections::BTreeSet, ffi::OsStr, fmt, os::unix::ffi::OsStrExt as _, path::Path};

use hermitcrab_core::{
    action::Action,
    authority::{Cap, DirId, Object, Verb},
    digest::Digest,
    grant::AgentId,
    outcome::{Denial, Outcome},
    path::RelPath,
    rules::{Judgement, Rules},
    session::{Call, Event},
    tool::Tool,
};
use hermitcrab_sandbox::{
    Journal,
    dircap::DirCap,
    journal::{
        Commit, CommitFailure, CommitId, ForgetError, JournalError, Kept, Recovered, Undo,
        UndoError,
    },
};

use crate::{audit::LedgerError, state_dir::own_file};

use super::{
    Runtime, RuntimeError,
    ceilings::Caches,
    machine::Machine,
    mounts::Mounts,
    result::Asked,
    shown,
    standing::StoredGrants,
    turn::{Stop, Turn},
    uncounted::Uncounted,
    words,
};

/// A commit that was taken back.
#[derive(Clone, Debug)]
pub struct UndoReport {
    /// What was taken back.
    pub undone: Kept,
    /// The commit that did so; undoing it brings everything back again.
    pub id: CommitId,
    /// What the user was asked.
    pub questions: Vec<Asked>,
}

/// Why nothing was taken back.
#[derive(Debug)]
pub enum UndoTrouble {
    /// The journal says why not.
    Undo(UndoError),
    /// A directory cannot be opened.
    Runtime(RuntimeError),
    /// It was refused; whether the user was asked.
    Refused(Denial, bool),
    /// The machinery failed.
    Failed(String),
}

/// Why nothing, or not all, was forgotten.
#[derive(Debug)]
pub enum ForgetTrouble {
    /// The journal says why.
    Journal(ForgetError),
    /// It cannot be recorded.
    Unrecorded(RuntimeError),
}

impl fmt::Display for ForgetTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => error.fmt(f),
            Self::Unrecorded(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ForgetTrouble {}

impl Runtime {
    /// Every commit that could be taken back, oldest first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn commits(&self) -> Result<Vec<Kept>, RuntimeError> {
        match &self.journal {
            Some(journal) => Ok(journal.list()?),
            None => Ok(Vec::new()),
        }
    }

    /// Every commit that was cut off and waits for a directory that cannot be reached.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn commits_waiting(&self) -> Result<Vec<Kept>, RuntimeError> {
        match &self.journal {
            Some(journal) => Ok(journal.list_waiting()?),
            None => Ok(Vec::new()),
        }
    }

    /// Whether this session made it.
    #[must_use]
    pub fn has_made(&self, commit: &Kept) -> bool {
        let journal = self.journal.as_ref();
        journal.is_some_and(|journal| journal.has_made(commit.id))
    }

    /// The newest commit this session made.
    #[must_use]
    pub fn last_commit(&self) -> Option<CommitId> {
        self.journal.as_ref()?.last_made()
    }

    /// Whether something held by the first agent lets it change this place. That a directory
    /// above it is open says nothing: a grant on a single file opens the one it lies in.
    #[must_use]
    pub fn may_change(&self, place: &Path) -> bool {
        let Some((dir, below)) = self.mounts.locate(place) else {
            return false;
        };
        let (by, now) = (self.first_agent(), self.clock.now());
        let is_held = |verb| {
            let cap = Cap::new(verb, Object::tree(dir, below.clone()));
            cap.is_ok_and(|cap| {
                self.machine
                    .look(|session| session.table().choose(by, &cap, now).is_ok())
            })
        };
        [Verb::FsCreate, Verb::FsModify, Verb::FsDelete]
            .into_iter()
            .any(is_held)
    }

    /// Removes what is kept of commits, which cannot be taken back then, as a person typed it.
    /// It is on record before it happens. One that waited for a directory which is back by then
    /// is taken back instead; those are returned.
    ///
    /// # Errors
    /// Why nothing, or not all, was forgotten.
    pub fn forget(&mut self, ids: &[CommitId]) -> Result<Vec<CommitId>, ForgetTrouble> {
        let Some(journal) = self.journal.take() else {
            let unknown = ids.first().copied().unwrap_or(CommitId::new(0));
            return Err(ForgetTrouble::Journal(ForgetError::Journal(
                JournalError::Unknown(unknown),
            )));
        };
        let forgot = self
            .note_for_sure(forgotten_words(ids))
            .map_err(ForgetTrouble::Unrecorded)
            .and_then(|()| journal.forget(ids).map_err(ForgetTrouble::Journal));
        self.journal = Some(journal);
        if let Err(error) = &forgot {
            // What is said here is told to the person all the same.
            let _noted = self.note(format!("forgetting: {error}"));
        }
        self.note_recovered().map_err(ForgetTrouble::Unrecorded)?;
        forgot
    }

    /// Says in the ledger what was taken back since the journal was opened, as other sessions
    /// were cut off.
    pub(super) fn note_recovered(&self) -> Result<(), RuntimeError> {
        match &self.journal {
            Some(journal) => note_recovered(&journal.take_recovered(), &self.machine),
            None => Ok(()),
        }
    }

    /// Makes sure that there is a journal.
    pub(super) fn need_journal(&mut self) -> Result<(), RuntimeError> {
        if self.journal.is_none() {
            // Common to all sessions, so that each can take back what another did.
            let common_dir = &self.config.common_dir;
            own_file::state_dir(common_dir)
                .map_err(|error| RuntimeError::Ledger(LedgerError::Own(error)))?;
            self.journal = Some(open_journal(
                common_dir,
                &self.machine,
                &self.ceilings.caches,
            )?);
        }
        Ok(())
    }

    /// Opens the directories a commit changed. What is granted on a place is granted in the
    /// deepest open directory above it, and [`Runtime::undo`] takes back each root in itself:
    /// of two roots of which one lies in the other, both are to be open before.
    ///
    /// # Errors
    /// A directory cannot be opened, or the session holds as many as it may.
    pub fn open_changed(&mut self, commit: &Kept) -> Result<(), RuntimeError> {
        for change in &commit.touched {
            let root = Path::new(OsStr::from_bytes(&change.root));
            self.mounts.open(&self.machine, root)?;
        }
        Ok(())
    }

    /// Takes a commit back on behalf of an agent, which needs the authority
    /// to make, change and delete what that makes, changes and deletes.
    ///
    /// # Errors
    /// See [`UndoTrouble`]; nothing was changed then.
    pub fn undo(&mut self, by: AgentId, id: CommitId) -> Result<UndoReport, UndoTrouble> {
        self.need_journal().map_err(UndoTrouble::Runtime)?;
        let Some(journal) = &self.journal else {
            return Err(UndoTrouble::Failed("there is no journal".to_owned()));
        };
        let undo = journal.prepare_undo(id)?;
        let mut dirs = Vec::new();
        for root in undo.roots() {
            let path = Path::new(OsStr::from_bytes(&root));
            let dir = self
                .mounts
                .open(&self.machine, path)
                .map_err(UndoTrouble::Runtime)?;
            dirs.push((dir, RelPath::root()));
        }
        let actions = undo
            .actions(&dirs)
            .map_err(|error| UndoTrouble::Failed(error.to_string()))?;
        let each_time = self
            .machine
            .look(|session| brought_and_asked(session.rules(), &actions));
        let mut questions = Vec::new();
        let mut turn = Turn {
            machine: &self.machine,
            afoot: &self.afoot,
            kept: StoredGrants::of(&self.adopted, self.desk.as_ref(), self.store.as_mut()),
            note: None,
            user: &mut *self.user,
            questions: &mut questions,
        };
        let mounts = &self.mounts;
        let event = Event::Call(Call {
            by,
            tool: Tool::Undo,
            actions,
        });
        let (call, commit) = turn.begin(
            event,
            |question| {
                let former = journal.former(&undo, &each_time, shown::SHOWN_BYTES_MAX);
                shown::undo(question, &undo, &former)
            },
            |permits| match caps(mounts, &dirs) {
                Some(caps) => Ok(journal.undo(&undo, &caps, permits)),
                None => Err(UndoTrouble::Failed("a directory was not opened".to_owned())),
            },
        )?;
        let roots = undo.roots();
        let done = commit.and_then(|commit| {
            taken_back(&commit, &undo, |failure| {
                super::unkept::stop(failure, &self.config.common_dir, |part| {
                    Some(Path::new(OsStr::from_bytes(roots.get(part)?)))
                })
            })
        });
        turn.finish(
            call,
            match &done {
                Ok(_) => Outcome::Done(Digest::NONE),
                Err(UndoTrouble::Refused(denial, _)) => Outcome::Refused(denial.code()),
                Err(_) => Outcome::Failed,
            },
        )?;
        self.note_recovered().map_err(UndoTrouble::Runtime)?;
        self.afoot.bring();
        Ok(UndoReport {
            undone: undo.kept().clone(),
            id: done?,
            questions,
        })
    }
}

/// Which of these changes bring something back under a name that is asked about each time.
fn brought_and_asked(rules: &Rules, actions: &[Action]) -> BTreeSet<usize> {
    let is_asked = |action: &Action| {
        matches!(action.verb(), Verb::FsCreate | Verb::FsModify)
            && matches!(rules.judge(Tool::Undo, action), Judgement::Ask(..))
    };
    let places = actions.iter().enumerate();
    places
        .filter(|(_, action)| is_asked(action))
        .map(|(at, _)| at)
        .collect()
}

fn caps<'m>(mounts: &'m Mounts, dirs: &[(DirId, RelPath)]) -> Option<Vec<&'m DirCap>> {
    dirs.iter()
        .map(|(dir, _)| mounts.get(*dir).map(|mount| &mount.cap))
        .collect()
}

fn taken_back(
    commit: &Commit,
    undo: &Undo,
    stop: impl FnOnce(&CommitFailure) -> Stop,
) -> Result<CommitId, UndoTrouble> {
    match &commit.failure {
        None => Ok(commit.id.unwrap_or(undo.kept().id)),
        Some(failure) if failure.stuck.is_empty() => Err(stop(failure).into()),
        Some(failure) => Err(UndoTrouble::Failed(format!(
            "{}; not everything could be put back: {}",
            failure.error,
            words::listed(&failure.stuck),
        ))),
    }
}

/// Opens the journal and says in the ledger what was taken back.
pub(super) fn open_journal(
    common_dir: &Path,
    machine: &Machine,
    caches: &Caches,
) -> Result<Journal, RuntimeError> {
    let (mut journal, recovered) = Journal::open(common_dir)?;
    journal.count_without(Box::new(Uncounted(caches.clone())));
    note_recovered(&recovered, machine)?;
    match recovered.broken.into_iter().next() {
        Some((place, why)) => Err(JournalError::Broken(place, why).into()),
        None => Ok(journal),
    }
}

/// Says in the ledger what was taken back of what was cut off.
fn note_recovered(recovered: &Recovered, machine: &Machine) -> Result<(), RuntimeError> {
    for note in recovered_words(recovered) {
        machine.step(Event::Note(note))?;
    }
    Ok(())
}

/// How the ledger has it that commits were forgotten.
#[must_use]
pub fn forgotten_words(ids: &[CommitId]) -> String {
    let ids: Vec<String> = ids.iter().map(CommitId::to_string).collect();
    format!(
        "what is kept of commit {} is removed, as a person typed",
        ids.join(", ")
    )
}

/// How the ledger has it what was taken back of what was cut off.
#[must_use]
pub fn recovered_words(recovered: &Recovered) -> Vec<String> {
    let mut notes = Vec::new();
    for id in &recovered.taken_back {
        notes.push(format!("commit {id} was cut off and is taken back"));
    }
    for (id, stuck) in &recovered.stuck {
        notes.push(format!(
            "commit {id} was cut off and is taken back except at {}",
            words::listed(stuck)
        ));
    }
    for (id, at) in &recovered.waiting {
        notes.push(format!(
            "commit {id} was cut off in {}, whose file system does not answer; it is taken back when it does (only if it is gone for good, `hermitcrab undo --forget {id}` gives it up)",
            at.display()
        ));
    }
    notes.extend(recovered.unreached.iter().map(ToString::to_string));
    for (place, why) in &recovered.broken {
        notes.push(format!("a commit is set aside as {place}: {why}"));
    }
    notes
}

impl From<UndoError> for UndoTrouble {
    fn from(error: UndoError) -> Self {
        Self::Undo(error)
    }
}

impl From<Stop> for UndoTrouble {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused { denial, asked } => Self::Refused(denial, asked),
            Stop::Missing => Self::Failed("a file is gone".to_owned()),
            Stop::Io(error) | Stop::System(_, error) | Stop::Broken(error) => Self::Failed(error),
        }
    }
}

impl fmt::Display for UndoTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undo(error) => error.fmt(f),
            Self::Runtime(error) => error.fmt(f),
            Self::Refused(denial, _) => write!(
                f,
                "cannot undo: {denial}; next step: {}",
                denial.code().next_step()
            ),
            Self::Failed(error) => write!(f, "cannot undo: {error}"),
        }
    }
}

impl std::error::Error for UndoTrouble {}
