//! Putting files in place, and keeping what they displace.

use hermitcrab_core::{
    Permit, action::Action, approval::Question, authority::Verb, digest::Digest, outcome::Outcome,
    path::RelPath, session::Call,
};
use hermitcrab_sandbox::{
    Journal,
    dircap::{Base, DirCap, FsError, Stat, dir_digest},
    journal::{NewFile, Placed, Record, Written},
};

use super::{
    super::{
        edit::{Before, Received},
        place::Place,
        shown,
        turn::{Shown, Stop},
    },
    Hands, NEW_DIR_MODE, NEW_FILE_MODE, OWN_DIR_MODE, action, stop, stop_at, unknown,
};
use crate::digest::sha256;

/// A file to be made together with the directories on the way to it.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct Offshoot<'a> {
    /// The directories that are missing, outermost first.
    pub missing: &'a [Place],
    /// Their permission bits.
    pub dir_mode: u32,
    pub place: &'a Place,
    pub content: &'a [u8],
    pub displaced: Displaced,
}

/// What becomes of what a write displaces. A new file counts as well: to take it back is to
/// remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Displaced {
    /// It is kept, and the write can be taken back.
    Kept,
    /// It goes: of the agent's own notes and jobs only the newest counts.
    Gone,
}

/// A file to be put in place, in directories that are there.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct Put<'a> {
    pub path: &'a RelPath,
    pub content: &'a [u8],
    pub base: Base,
    pub mode: Option<u32>,
    /// What it is of, for whoever takes it back.
    pub note: &'a str,
}

impl Put<'_> {
    /// Does it, and keeps what it displaces, if it can be kept.
    pub(in crate::runtime) fn done(
        self,
        dir: &DirCap,
        journal: Option<&Journal>,
        permit: Permit<'_>,
    ) -> Result<Stat, FsError> {
        let Some(record) = record(journal) else {
            return dir.write_and_stat(permit, self.path, self.content, self.base, self.mode);
        };
        let how = (self.base, self.mode);
        let stat = record.write(dir, permit, self.path, self.content, how)?;
        let verb = match self.base {
            Base::Absent => Verb::FsCreate,
            Base::AnyFile | Base::Content(_) => Verb::FsModify,
        };
        let places = std::slice::from_ref(self.path);
        keep(record, dir, (places, verb, self.content), self.note);
        Ok(stat)
    }
}

/// An entry for what is about to be written, if there can be one.
fn record(journal: Option<&Journal>) -> Option<Record<'_>> {
    journal?.record().ok()
}

/// Writes down what was written. Where that fails it cannot be taken back, as nothing of it
/// is in the list of what can.
fn keep(
    record: Record<'_>,
    dir: &DirCap,
    (places, verb, content): (&[RelPath], Verb, &[u8]),
    note: &str,
) {
    let written = Written {
        places,
        verb,
        content: sha256(content),
        note,
    };
    let _kept = record.finish(dir, &written);
}

impl Hands<'_> {
    /// Puts a file in place, with the directories on the way to it; what was put
    /// there. An old file keeps its permission bits.
    pub fn write(&mut self, place: &Place, before: &Before, content: &[u8]) -> Result<Stat, Stop> {
        let mode = matches!(before, Before::Nothing).then_some(NEW_FILE_MODE);
        let dir_mode = self.new_dir_mode();
        let show = |question: &Question| shown::write(question, place, before, content);
        let what = (place, before, content);
        self.write_shown(what, (mode, dir_mode), Displaced::Kept, show)
    }

    /// Opens the journal, so that what is written can be taken back. Where that fails
    /// it is written all the same: commands say what is wrong with the journal.
    pub(in crate::runtime) fn ready_to_keep(&mut self) {
        let _opened = self.runtime.need_journal();
    }

    /// Like [`Hands::write`], and the file is its owner's alone afterwards.
    pub fn write_private(
        &mut self,
        place: &Place,
        before: &Before,
        content: &[u8],
    ) -> Result<Stat, Stop> {
        let modes = (Some(NEW_FILE_MODE), self.new_dir_mode());
        self.write_with(place, before, content, modes)
    }

    /// The same, and so are directories that are made for it.
    pub fn write_apart(
        &mut self,
        place: &Place,
        before: &Before,
        content: &[u8],
    ) -> Result<Stat, Stop> {
        let modes = (Some(NEW_FILE_MODE), OWN_DIR_MODE);
        self.write_with(place, before, content, modes)
    }

    /// A file of somebody else's making, with the words that say whose; its owner's
    /// alone, as directories that are made for it.
    pub(in crate::runtime) fn receive(&mut self, received: &[Received<'_>]) -> Result<(), Stop> {
        let show = |question: &Question| shown::received(question, received);
        if let [one] = received {
            let modes = (Some(NEW_FILE_MODE), OWN_DIR_MODE);
            let what = (&one.place, &Before::Nothing, one.content);
            return self
                .write_shown(what, modes, Displaced::Kept, show)
                .map(drop);
        }
        self.put_all(received, (NEW_FILE_MODE, OWN_DIR_MODE), show)
    }

    /// What a write is of, for whoever takes it back.
    pub(in crate::runtime) fn note_of(&self, place: &Place) -> String {
        format!("{}: {}", self.tool, place.below)
    }

    /// Permission bits of directories on the way to a file, as the user wants them
    /// for others; its owner can always use one.
    pub(in crate::runtime) fn new_dir_mode(&self) -> u32 {
        (NEW_DIR_MODE & !self.runtime.config.umask) | OWN_DIR_MODE
    }

    fn write_with(
        &mut self,
        place: &Place,
        before: &Before,
        content: &[u8],
        modes: (Option<u32>, u32),
    ) -> Result<Stat, Stop> {
        let show = |question: &Question| shown::write(question, place, before, content);
        self.write_shown((place, before, content), modes, Displaced::Gone, show)
    }

    fn write_shown<S: Into<Shown>>(
        &mut self,
        what: (&Place, &Before, &[u8]),
        modes: (Option<u32>, u32),
        displaced: Displaced,
        show: impl FnOnce(&Question) -> S,
    ) -> Result<Stat, Stop> {
        let stat = self.write_asked(what, modes, displaced, show)?;
        let (place, before, content) = what;
        self.wrote(|| vec![shown::file_of(place, before, content)]);
        Ok(stat)
    }

    fn write_asked<S: Into<Shown>>(
        &mut self,
        (place, before, content): (&Place, &Before, &[u8]),
        (mode, dir_mode): (Option<u32>, u32),
        displaced: Displaced,
        show: impl FnOnce(&Question) -> S,
    ) -> Result<Stat, Stop> {
        self.is_saved(place, before)?;
        let missing = match before {
            Before::Nothing => self.missing_parents(place)?,
            Before::File(_) | Before::Long(_) | Before::Unread => Vec::new(),
        };
        let mut actions = Vec::with_capacity(missing.len() + 1);
        for parent in &missing {
            actions.push(action(Verb::FsCreate, parent, dir_digest(dir_mode))?);
        }
        let (verb, base) = match before {
            Before::Nothing => (Verb::FsCreate, Base::Absent),
            Before::File(old) => (Verb::FsModify, Base::Content(sha256(old))),
            Before::Long(old) => (Verb::FsModify, Base::Content(old.digest)),
            Before::Unread => (Verb::FsModify, Base::AnyFile),
        };
        actions.push(action(verb, place, sha256(content))?);
        // The agent's own notes are one file each, and what is made for the first is no work.
        if displaced == Displaced::Kept {
            let ceilings = &self.runtime.ceilings;
            ceilings.check(&actions, |_| false).map_err(Stop::refused)?;
        }
        if !missing.is_empty() {
            let new = Offshoot {
                missing: &missing,
                dir_mode,
                place,
                content,
                displaced,
            };
            return self.perform_with_parents(actions, show, &new);
        }
        let note = self.note_of(place);
        if displaced == Displaced::Kept {
            self.ready_to_keep();
        }
        self.perform_kept(actions, show, |mounts, journal, permits| {
            let mount = mounts.get(place.dir).ok_or_else(|| unknown(place))?;
            let permit = permits.into_iter().next().ok_or_else(|| unknown(place))?;
            let put = Put {
                path: &place.below,
                content,
                base,
                mode,
                note: &note,
            };
            let journal = journal.filter(|_| displaced == Displaced::Kept);
            put.done(&mount.cap, journal, permit)
                .map_err(|error| stop_at(&error, place))
        })?
    }

    /// One call that makes a file and the directories on the way to it: all of
    /// it, or nothing, even if it is cut off in the middle.
    pub(in crate::runtime) fn perform_with_parents<S: Into<Shown>>(
        &mut self,
        actions: Vec<Action>,
        shown: impl FnOnce(&Question) -> S,
        new: &Offshoot<'_>,
    ) -> Result<Stat, Stop> {
        let Offshoot {
            missing,
            dir_mode,
            place,
            content,
            displaced,
        } = *new;
        let parents: Vec<_> = missing.iter().map(|parent| parent.below.clone()).collect();
        let new = NewFile {
            parents: &parents,
            path: &place.below,
            content,
            mode: NEW_FILE_MODE,
            dir_mode,
        };
        let event = self.called(Call {
            by: self.by,
            tool: self.tool,
            actions,
        });
        self.has_acted = true;
        let note = self.note_of(place);
        let (mut turn, mounts, journal) = self.turn_with_journal()?;
        let (call, done) = turn.begin(event, shown, |permits| {
            let mount = mounts.get(place.dir).ok_or_else(|| unknown(place))?;
            let record = record(Some(journal).filter(|_| displaced == Displaced::Kept));
            let Placed { stat, met } = journal
                .put_with_parents(&mount.cap, permits, &new)
                .map_err(|error| stop(&error))?;
            if let Some(record) = record {
                // What another call made is that one's to take back.
                let made = parents.get(met..).unwrap_or_default();
                let places = [made, std::slice::from_ref(new.path)].concat();
                keep(
                    record,
                    &mount.cap,
                    (&places, Verb::FsCreate, content),
                    &note,
                );
            }
            Ok(stat)
        })?;
        let outcome = match &done {
            Ok(_) => Outcome::Done(Digest::NONE),
            Err(_) => Outcome::Failed,
        };
        turn.finish(call, outcome)?;
        done
    }
}
