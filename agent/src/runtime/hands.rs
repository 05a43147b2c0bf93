//! What a tool can do: look, read, list, write, run; each by way of a permit.
//!
//! A tool holds this for one call. It names places, never paths, and gets no
//! capability into its own hands.

mod asked;
mod earlier;
mod held;
mod long;
mod look;
mod many;
mod read;
mod remembered;
mod stops;
mod write;

use std::path::{Path, PathBuf};

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::{CallId, Question, Reply},
    authority::{DirId, Verb},
    digest::Digest,
    grant::AgentId,
    outcome::{Denial, DenialCode, Outcome},
    path::RelPath,
    rules::Sensitivity,
    time::Instant,
    tool::Tool,
};
use hermitcrab_sandbox::{
    Journal,
    dircap::{DirCap, Entry, FsError, Stat},
};

use super::{
    Runtime,
    agent_state::AgentState,
    edit::Before,
    mounts::Mounts,
    place::{self, Place},
    result::{Asked, ChangeSummary},
    standing::StoredGrants,
    turn::{Reach, Stop, Turn},
    visible,
};
use crate::{
    digest::{Running, sha256},
    ports::FileDiff,
};

pub use self::{
    long::{Content, Passed, Taker},
    look::{Link, LinkLeads},
};
pub(super) use self::{
    stops::{stop, stop_at},
    write::{Displaced, Offshoot, Put},
};

/// The longest file a tool reads whole, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// The longest of which a part is changed: it is in memory some times over meanwhile.
pub const CHANGED_BYTES_MAX: usize = 256 << 20;
/// Permission bits of files tools make.
pub(super) const NEW_FILE_MODE: u32 = 0o600;
/// Permission bits of directories tools make, before the user's umask is taken off.
const NEW_DIR_MODE: u32 = 0o777;
/// Those of directories on the way to a file that is its owner's alone.
const OWN_DIR_MODE: u32 = 0o700;

/// A tool's reach during one call.
pub struct Hands<'r> {
    pub(super) runtime: &'r mut Runtime,
    pub(super) by: AgentId,
    pub(super) tool: Tool,
    pub(super) questions: &'r mut Vec<Asked>,
    pub(super) changes: &'r mut ChangeSummary,
    /// Whether something was no longer as it was shown when it was to change.
    pub(super) is_overtaken: bool,
    /// A directory this call has seen to be there.
    pub(super) seen_dir: Option<(DirId, RelPath)>,
    /// Whether this call did anything but look.
    pub(super) has_acted: bool,
    /// The session's calls that a yes let look at places; they run as long as this does.
    pub(super) looking: Vec<CallId>,
}

impl Runtime {
    /// Lets one call have its reach. What it saw leaves this only when the records
    /// of its looks are on the disk.
    pub(super) fn with_hands<R>(
        &mut self,
        (by, tool): (AgentId, Tool),
        questions: &mut Vec<Asked>,
        changes: &mut ChangeSummary,
        act: impl FnOnce(&mut Hands<'_>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let mut hands = Hands {
            runtime: self,
            by,
            tool,
            questions,
            changes,
            is_overtaken: false,
            seen_dir: None,
            has_acted: false,
            looking: Vec::new(),
        };
        let done = act(&mut hands);
        let done = hands.looked(done);
        let has_acted = hands.has_acted;
        self.afoot.bring();
        match self.machine.settle_looks() {
            Ok(()) => done,
            Err(error) if has_acted => Err(Stop::Broken(error.to_string())),
            Err(error) => Err(Stop::refused(Denial::new(
                DenialCode::LedgerUnwritable,
                error,
            ))),
        }
    }
}

impl Hands<'_> {
    /// What this agent's edge remembers.
    pub fn state(&mut self) -> &mut AgentState {
        let config = &self.runtime.config;
        self.runtime
            .agents
            .entry(self.by)
            .or_insert_with(|| AgentState::new(config))
    }

    /// Whether the session is over when this turn is, so that nothing can be told later.
    #[must_use]
    pub const fn ends_with_its_turn(&self) -> bool {
        self.runtime.ends_with_its_turn()
    }

    /// Whether an editor is shown every edit of this agent before its tool is called. One that
    /// was handed work has its tools say what is wrong with an edit.
    #[must_use]
    pub fn is_an_editors(&self) -> bool {
        self.runtime.is_an_editors && self.by == self.runtime.first_agent()
    }

    /// The time on the session's own clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.runtime.clock.now()
    }

    /// How many questions this call has led to so far.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.questions.len()
    }

    /// Whether this call led to questions after the first so many, and the user
    /// said yes to each.
    #[must_use]
    pub fn was_allowed(&self, since: usize) -> bool {
        let asked = self.questions.get(since..).unwrap_or_default();
        !asked.is_empty()
            && asked
                .iter()
                .all(|asked| Reply::parse(&asked.answer).verdict().is_ok())
    }

    /// Where relative paths start.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.runtime.cwd_of(self.by)
    }

    /// Where `~` leads.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.runtime.config.home
    }

    /// Where a path leads.
    pub fn resolve(&self, path: &str) -> Result<Place, Stop> {
        place::resolve(path, &self.cwd(), self.home(), &self.runtime.mounts).map_err(Stop::refused)
    }

    /// The absolute spelling of a path too long to name anything in a known
    /// directory: nothing is there, and nothing can be put there.
    #[must_use]
    pub fn is_too_long(&self, path: &str) -> Option<String> {
        place::too_long(path, &self.cwd(), self.home(), &self.runtime.mounts)
    }

    /// Whether a path begins at the home directory of a user there is none of.
    #[must_use]
    pub fn is_of_nobody(&self, path: &str) -> bool {
        place::is_of_nobody(path)
    }

    /// The place of a name in the directory at `place`.
    pub fn child(&self, place: &Place, name: &[u8]) -> Option<Place> {
        let below = place.below.child(name).ok()?;
        let absolute = self.runtime.mounts.absolute(place.dir, &below)?;
        // A directory opened on its own names what lies in it.
        let (dir, below) = self.runtime.mounts.locate(&absolute)?;
        Some(Place {
            dir,
            below,
            absolute: absolute.to_string_lossy().into_owned(),
        })
    }

    /// Whether names like this one are asked about each time.
    #[must_use]
    pub fn is_sensitive(&self, verb: Verb, place: &Place) -> bool {
        Action::on_path(verb, place.dir, place.below.clone(), Digest::NONE).is_ok_and(|action| {
            self.runtime.machine.look(|session| {
                session.rules().sensitivity(self.tool, &action) != Sensitivity::Plain
            })
        })
    }

    /// Whether the place is one of the agent's own.
    #[must_use]
    pub fn is_protected(&self, place: &Place) -> bool {
        self.runtime
            .machine
            .look(|session| session.rules().is_protected(place.dir, &place.below))
    }

    /// A file with unsaved changes in the user's editor is not changed under
    /// them.
    pub(super) fn is_saved(&mut self, place: &Place, before: &Before) -> Result<(), Stop> {
        let is_saved = match before {
            Before::Nothing | Before::Unread => return Ok(()),
            Before::File(old) => return self.is_saved_as(place, old),
            Before::Long(old) => self
                .in_the_editor(place)
                .is_none_or(|seen| is_text_of(&seen, old.digest)),
        };
        if is_saved {
            Ok(())
        } else {
            Err(not_saved(place))
        }
    }

    /// The same of one that holds this. To be gone or to have another name is a change as well:
    /// what was typed would be saved as a file that nobody meant to be there.
    pub(super) fn is_saved_as(&mut self, place: &Place, old: &[u8]) -> Result<(), Stop> {
        match self.in_the_editor(place) {
            Some(seen) if is_otherwise(&seen, old) => Err(not_saved(place)),
            _ => Ok(()),
        }
    }

    /// The same of one that is moved whatever it holds. What may not be read is nothing that
    /// could be told apart.
    pub(super) fn is_saved_to_move(&mut self, place: &Place) -> Result<(), Stop> {
        let Some(seen) = self.in_the_editor(place) else {
            return Ok(());
        };
        match self.before(place)? {
            Before::File(old) if is_otherwise(&seen, &old) => Err(not_saved(place)),
            Before::Long(old) if !is_text_of(&seen, old.digest) => Err(not_saved(place)),
            _ => Ok(()),
        }
    }

    /// What the user's editor shows for a file, if there is one that hands it out.
    fn in_the_editor(&mut self, place: &Place) -> Option<String> {
        let port = self.runtime.buffers.as_mut()?;
        port.text(&place.absolute)
    }

    /// Has the user's editor show what was put in place.
    pub(super) fn wrote(&mut self, files: impl FnOnce() -> Vec<FileDiff>) {
        if let Some(port) = &mut self.runtime.buffers {
            for file in files() {
                port.wrote(self.by, file);
            }
        }
    }

    /// The names in a directory. A link is followed by asking for the place it leads to.
    pub fn names(&mut self, place: &Place) -> Result<Vec<Entry>, Stop> {
        match self.names_direct(place) {
            Err(stop) if stop.is(DenialCode::SymlinkRefused) => {
                let real = self.real(place)?;
                self.names_direct(&real)
            }
            names => names,
        }
    }

    fn names_direct(&mut self, place: &Place) -> Result<Vec<Entry>, Stop> {
        self.one(Verb::FsList, place, Digest::NONE, |dir, permit| {
            dir.list_direct(permit, &place.below)
        })
    }

    fn one<R>(
        &mut self,
        verb: Verb,
        place: &Place,
        content: Digest,
        act: impl FnOnce(&DirCap, Permit<'_>) -> Result<R, FsError>,
    ) -> Result<R, Stop> {
        let action = action(verb, place, content)?;
        self.perform(
            vec![action],
            |_| format!("{verb} {}", visible::one_line(&place.absolute)),
            |mounts, mut permits| {
                let (Some(mount), Some(permit)) = (mounts.get(place.dir), permits.pop()) else {
                    return Err(unknown(place));
                };
                act(&mount.cap, permit).map_err(|error| stop_at(&error, place))
            },
        )?
    }

    /// Whether there is a file, and what it holds as far as this agent may know.
    pub fn before(&mut self, place: &Place) -> Result<Before, Stop> {
        let stat = self.look(place)?;
        self.before_of(place, stat.as_ref())
    }

    /// The same for a place that was just looked at.
    pub fn before_of(&mut self, place: &Place, stat: Option<&Stat>) -> Result<Before, Stop> {
        match stat {
            None => Ok(Before::Nothing),
            Some(_) => match self.read(place) {
                Ok(content) => Ok(Before::File(content)),
                Err(Stop::Missing) => Ok(Before::Nothing),
                Err(Stop::Refused { denial, .. }) if denial.code() == DenialCode::NoCap => {
                    Ok(Before::Unread)
                }
                Err(stop) => Err(stop),
            },
        }
    }

    /// One call of the session from its start to its end.
    pub(super) fn perform<R, S: Into<super::turn::Shown>>(
        &mut self,
        actions: Vec<Action>,
        shown: impl FnOnce(&Question) -> S,
        act: impl FnOnce(&Mounts, Vec<Permit<'_>>) -> R,
    ) -> Result<R, Stop> {
        self.perform_kept(actions, shown, |mounts, _, permits| act(mounts, permits))
    }

    /// The same for one that keeps what it displaces, if there is a journal.
    pub(super) fn perform_kept<R, S: Into<super::turn::Shown>>(
        &mut self,
        actions: Vec<Action>,
        shown: impl FnOnce(&Question) -> S,
        act: impl FnOnce(&Mounts, Option<&Journal>, Vec<Permit<'_>>) -> R,
    ) -> Result<R, Stop> {
        let only_looks = actions.iter().all(|action| action.verb().only_looks());
        let event = self.looks_or_calls(actions);
        let reach = if only_looks {
            Reach::Looks
        } else {
            self.has_acted = true;
            Reach::Acts
        };
        let asked = self.asked();
        let (mut turn, mounts, journal) = self.turn_and_journal();
        let act = |permits: Vec<Permit<'_>>| act(mounts, journal, permits);
        let (call, done) = turn.begin_reaching(reach, event, shown, act)?;
        match reach {
            Reach::Looks => {
                self.keep_if_asked(call, asked);
                self.end_look(call, Outcome::Done(Digest::NONE))?;
            }
            Reach::Acts => turn.finish(call, Outcome::Done(Digest::NONE))?,
        }
        Ok(done)
    }

    /// The parts a turn needs, apart from the open directories.
    pub(super) fn turn(&mut self) -> (Turn<'_>, &Mounts) {
        let (turn, mounts, _) = self.turn_and_journal();
        (turn, mounts)
    }

    /// The same, and where commits are kept.
    pub(super) fn turn_with_journal(&mut self) -> Result<(Turn<'_>, &Mounts, &Journal), Stop> {
        let broken = |why: String| Stop::Broken(why);
        self.runtime
            .need_journal()
            .map_err(|error| broken(error.to_string()))?;
        let (turn, mounts, journal) = self.turn_and_journal();
        let journal = journal.ok_or_else(|| broken("there is no journal".to_owned()))?;
        Ok((turn, mounts, journal))
    }

    fn turn_and_journal(&mut self) -> (Turn<'_>, &Mounts, Option<&Journal>) {
        let Runtime {
            machine,
            user,
            mounts,
            journal,
            steering,
            afoot,
            adopted,
            desk,
            store,
            ..
        } = &mut *self.runtime;
        let turn = Turn {
            kept: StoredGrants::of(adopted, desk.as_ref(), store.as_mut()),
            machine,
            afoot,
            note: steering.as_ref().map(|steering| steering.note.as_str()),
            user: &mut **user,
            questions: self.questions,
        };
        (turn, mounts, journal.as_ref())
    }

    /// Reports a running call as over.
    pub(super) fn finish(&mut self, call: CallId, outcome: Outcome) -> Result<(), Stop> {
        self.has_acted = true;
        let (mut turn, _) = self.turn();
        turn.finish(call, outcome)
    }
}

pub(super) fn action(verb: Verb, place: &Place, content: Digest) -> Result<Action, Stop> {
    Action::on_path(verb, place.dir, place.below.clone(), content)
        .map_err(|error| Stop::Broken(format!("cannot ask for `{}`: {error}", place.absolute)))
}

/// The same for all that lies below a place as well.
pub(super) fn action_on_tree(verb: Verb, place: &Place, content: Digest) -> Result<Action, Stop> {
    Action::on_tree(verb, place.dir, place.below.clone(), content)
        .map_err(|error| Stop::Broken(format!("cannot ask for `{}`: {error}", place.absolute)))
}

pub(super) fn unknown(place: &Place) -> Stop {
    Stop::refused(Denial::new(DenialCode::NoCap, &place.below))
}

/// Whether an editor that shows this holds changes of a file that holds that.
pub(super) fn is_otherwise(seen: &str, saved: &[u8]) -> bool {
    // Editors keep line ends to themselves, and show a text of bytes that are none as they like.
    let plain = |text: &str| text.replace("\r\n", "\n");
    std::str::from_utf8(saved).is_ok_and(|saved| plain(seen) != plain(saved))
}

fn not_saved(place: &Place) -> Stop {
    Stop::refused(Denial::new(
        DenialCode::ChangedSinceShown,
        format_args!(
            "{}, of which the editor holds changes that are not saved; only its user can save them",
            place.below
        ),
    ))
}

/// Whether this text has that digest, whichever way its lines end: editors keep that to themselves.
fn is_text_of(seen: &str, digest: Digest) -> bool {
    let ending = |end: &str| {
        let mut running = Running::default();
        for line in seen.split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(line) => {
                    running.add(line.strip_suffix('\r').unwrap_or(line).as_bytes());
                    running.add(end.as_bytes());
                }
                None => running.add(line.as_bytes()),
            }
        }
        running.end()
    };
    sha256(seen.as_bytes()) == digest || ending("\r\n") == digest || ending("\n") == digest
}
