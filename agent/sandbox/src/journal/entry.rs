//! One transaction on the disk: a directory with a plan and what is kept.
//!
//! Which state it is in is the name its plan has. A plan gets its next name
//! by one rename, so there is no state in between.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::brief::Brief;
use super::plan::{self, PLAN_BYTES_MAX, Plan};
use super::root::{Root, keep_marks, know_marks};
use super::{Journal, JournalError, io_error};
use crate::dircap::{DIR_FLAGS, Kind, list_dir, open_plain, read_plain};

/// How the names of parts that do not hold begin.
const BROKEN: &str = "broken-";
/// How the name of one begins that waits for a directory.
pub(super) const WAITING: &str = "waiting-";
/// A plan that is still being written.
const UNFINISHED: &str = "unfinished";

/// How far a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Directories beside the workspace may be there; nothing has happened.
    Opening,
    /// It is being carried out, or taken back.
    Planned,
    /// It is done, and what it displaced is kept.
    Committed,
    /// It could neither be finished nor taken back whole.
    Stuck,
    /// It is being thrown away.
    Dropped,
}

/// An open entry.
#[derive(Debug)]
pub(super) struct Entry<'j> {
    journal: &'j Journal,
    pub number: u64,
    pub dir: OwnedFd,
    /// Whether it has the name of one that waits.
    is_waiting: bool,
}

impl State {
    /// From the last to the first: a crash may leave an earlier name beside.
    const ALL: [Self; 5] = [
        Self::Dropped,
        Self::Stuck,
        Self::Committed,
        Self::Planned,
        Self::Opening,
    ];

    const fn file(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Planned => "plan",
            Self::Committed => "committed",
            Self::Stuck => "stuck",
            Self::Dropped => "dropped",
        }
    }
}

/// Reads as much as fits or is left.
fn read_at(file: &OwnedFd, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = into.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, at.saturating_add(got as u64)) {
            Ok(0) => break,
            Ok(more) => got = got.saturating_add(more),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(got)
}

/// The number an entry's directory is named by.
pub(super) fn number(name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(name).ok()?;
    let number = text.parse().ok()?;
    (dir_name(number) == text).then_some(number)
}

pub(super) fn dir_name(number: u64) -> String {
    format!("{number:08}")
}

fn name_of(number: u64, is_waiting: bool) -> String {
    match is_waiting {
        true => format!("{WAITING}{}", dir_name(number)),
        false => dir_name(number),
    }
}

/// Nothing, if it is gone.
fn if_there(opened: Result<Entry<'_>, JournalError>) -> Result<Option<Entry<'_>>, JournalError> {
    match opened {
        Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

impl<'j> Entry<'j> {
    /// Makes an empty one.
    pub(super) fn create(journal: &'j Journal, number: u64) -> Result<Self, JournalError> {
        let name = dir_name(number);
        journal.pass("make an entry", &name)?;
        rustix::fs::mkdirat(&journal.dir, &name, Mode::RWXU)
            .map_err(|errno| io_error("make an entry in", &journal.place, errno))?;
        let entry = Self::open(journal, number)?;
        // Nobody else can have it yet.
        let _held = entry.hold();
        Ok(entry)
    }

    /// Whether nobody is at a step of it but this process, by this very opening. Who was left
    /// at a step has it until that is over, with the lock of the journal or without.
    pub(super) fn hold(&self) -> bool {
        // A file system that has no locks for directories holds up nobody by them.
        let held = rustix::fs::flock(&self.dir, FlockOperation::NonBlockingLockExclusive);
        !matches!(held, Err(Errno::WOULDBLOCK))
    }

    pub(super) fn open(journal: &'j Journal, number: u64) -> Result<Self, JournalError> {
        Self::open_named(journal, number, false)
    }

    /// One that waits, if it does still.
    pub(super) fn open_waiting(
        journal: &'j Journal,
        number: u64,
    ) -> Result<Option<Self>, JournalError> {
        if_there(Self::open_named(journal, number, true))
    }

    fn open_named(
        journal: &'j Journal,
        number: u64,
        is_waiting: bool,
    ) -> Result<Self, JournalError> {
        let name = name_of(number, is_waiting);
        let dir = rustix::fs::openat(&journal.dir, name, DIR_FLAGS, Mode::empty())
            .map_err(|errno| io_error("open an entry of", &journal.place, errno))?;
        Ok(Self {
            journal,
            number,
            dir,
            is_waiting,
        })
    }

    /// The same, of one that may be gone.
    pub(super) fn open_if_there(
        journal: &'j Journal,
        number: u64,
    ) -> Result<Option<Self>, JournalError> {
        if_there(Self::open(journal, number))
    }

    /// Where it lies, for messages.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.journal.place, self.name())
    }

    /// Where it lies once it waits for nothing any more.
    pub(super) fn place_then(&self) -> String {
        format!("{}/{}", self.journal.place, dir_name(self.number))
    }

    pub(super) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    fn name(&self) -> String {
        name_of(self.number, self.is_waiting)
    }

    /// Gives it the name of one that waits, or takes that name from it.
    pub(super) fn call(&mut self, is_waiting: bool) -> Result<(), JournalError> {
        if self.is_waiting == is_waiting {
            return Ok(());
        }
        let (journal, flags) = (self.journal, RenameFlags::NOREPLACE);
        let to = name_of(self.number, is_waiting);
        journal.pass("name an entry", &journal.place)?;
        rustix::fs::renameat_with(&journal.dir, self.name(), &journal.dir, to, flags)
            .map_err(|errno| io_error("name an entry of", &journal.place, errno))?;
        self.is_waiting = is_waiting;
        journal.flush()
    }

    /// How far it is; `None` before anything was written down.
    pub(super) fn state(&self) -> Result<Option<State>, JournalError> {
        for state in State::ALL {
            match rustix::fs::statat(&self.dir, state.file(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => return Ok(Some(state)),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(io_error("look at an entry of", self.place(), errno)),
            }
        }
        Ok(None)
    }

    /// Whether directories beside a workspace may be left of it.
    pub(super) fn may_have_opened(&self) -> bool {
        let opening = State::Opening.file();
        rustix::fs::statat(&self.dir, opening, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// None is: nobody looks at the workspace for it any more, which may be on a file system
    /// that does not answer by then.
    pub(super) fn forget_opening(&self) {
        // While the note stays they are looked for again.
        let _gone = rustix::fs::unlinkat(&self.dir, State::Opening.file(), AtFlags::empty());
    }

    /// Of one that was taken back only directories beside workspaces are left. Whoever comes next,
    /// where this is cut off, is told so, and does not miss one that is cleared.
    pub(super) fn begin_to_clear(&self, roots: &[Root]) -> Result<(), JournalError> {
        let are_beside = roots.iter().any(|root| root.beside.is_some());
        if are_beside && self.state()? == Some(State::Planned) {
            self.advance(State::Planned, State::Opening)?;
        }
        Ok(())
    }

    /// Whether it was begun, and neither done nor given up.
    pub(super) fn is_unfinished(&self) -> Result<bool, JournalError> {
        Ok(matches!(
            self.state()?,
            Some(State::Opening | State::Planned)
        ))
    }

    pub(super) fn is_stuck(&self) -> Result<bool, JournalError> {
        Ok(self.state()? == Some(State::Stuck))
    }

    /// What it says it does; `None` before anything was written down.
    pub(super) fn plan(&self) -> Result<Option<Plan>, JournalError> {
        let Some(state) = self.own_state()? else {
            return Ok(None);
        };
        let bytes = read_plain(&self.dir, state.file().as_bytes(), PLAN_BYTES_MAX)
            .map_err(|error| self.is_unread(&error))?;
        let mut plan = Plan::decode(&bytes).map_err(|why| match why {
            // It is as somebody wrote it.
            plan::NO_PLAN | plan::OTHER_VERSION => JournalError::Foreign(self.place()),
            why => self.is_none(why),
        })?;
        if plan.number != self.number {
            return Err(self.is_anothers());
        }
        if let Ok(file) = open_plain(&self.dir, state.file().as_bytes()) {
            know_marks(&file, &mut plan.roots);
        }
        Ok(Some(plan))
    }

    /// What its plan says of itself; `None` before anything was written down. Whether it
    /// holds was looked at when the journal was opened.
    pub(super) fn brief(&self) -> Result<Option<Brief>, JournalError> {
        let Some((file, brief)) = self.briefly()? else {
            return Ok(None);
        };
        brief
            .map(Some)
            .map_err(|why| match plan::holds(file.as_fd()) {
                Ok(true) => JournalError::Foreign(self.place()),
                Ok(false) | Err(_) => self.is_none(why),
            })
    }

    /// The same, of a plan that holds its own digest.
    pub(super) fn brief_that_holds(&self) -> Result<Option<Brief>, JournalError> {
        let Some((file, brief)) = self.briefly()? else {
            return Ok(None);
        };
        match plan::holds(file.as_fd()) {
            Ok(true) => brief
                .map(Some)
                .map_err(|_| JournalError::Foreign(self.place())),
            Ok(false) => Err(self.is_none(plan::OTHER_DIGEST)),
            Err(error) => Err(self.is_unread(&error)),
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "why it is none is told by whoever knows whether it holds"
    )]
    fn briefly(&self) -> Result<Option<(OwnedFd, Result<Brief, &'static str>)>, JournalError> {
        let Some(state) = self.own_state()? else {
            return Ok(None);
        };
        let file = open_plain(&self.dir, state.file().as_bytes());
        let file = file.map_err(|error| self.is_unread(&error))?;
        let stat =
            rustix::fs::fstat(&file).map_err(|errno| io_error("look at", self.place(), errno))?;
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        if length > PLAN_BYTES_MAX as u64 {
            return Err(self.is_unread(&io::ErrorKind::FileTooLarge.into()));
        }
        let read = Brief::read(length, |into, at| read_at(&file, into, at));
        let mut brief = read.map_err(|error| self.is_unread(&error))?;
        if let Ok(brief) = &mut brief {
            know_marks(&file, &mut brief.roots);
        }
        match &brief {
            Ok(brief) if brief.number != self.number => Err(self.is_anothers()),
            _ => Ok(Some((file, brief))),
        }
    }

    /// Its state, if its plan is the agent's.
    fn own_state(&self) -> Result<Option<State>, JournalError> {
        let Some(state) = self.state()? else {
            return Ok(None);
        };
        let stat = rustix::fs::statat(&self.dir, state.file(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| io_error("look at", self.place(), errno))?;
        if stat.st_uid == rustix::process::geteuid().as_raw() {
            Ok(Some(state))
        } else {
            Err(self.is_broken("its plan belongs to somebody else".to_owned()))
        }
    }

    fn is_broken(&self, why: String) -> JournalError {
        JournalError::Broken(self.place(), why)
    }

    fn is_unread(&self, error: &io::Error) -> JournalError {
        self.is_broken(format!("its plan cannot be read: {error}"))
    }

    fn is_none(&self, why: &str) -> JournalError {
        self.is_broken(format!("its plan is not one: {why}"))
    }

    fn is_anothers(&self) -> JournalError {
        self.is_broken("its plan belongs to another entry".to_owned())
    }

    /// Writes the plan down under the name of `state`, durably.
    pub(super) fn write(&self, plan: &Plan, state: State) -> Result<(), JournalError> {
        self.note(plan, state)?;
        self.flush()
    }

    /// The same, of what happened already: after a loss of power the whole plan is there,
    /// or nothing.
    pub(super) fn note(&self, plan: &Plan, state: State) -> Result<(), JournalError> {
        self.pass("write a plan")?;
        let file = rustix::fs::openat(
            &self.dir,
            UNFINISHED,
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| io_error("write a plan in", self.place(), errno))?;
        let bytes = plan.encode();
        if bytes.len() > PLAN_BYTES_MAX {
            let error = io::Error::from(io::ErrorKind::FileTooLarge);
            return Err(io_error("write a plan in", self.place(), error));
        }
        crate::dircap::open::write_all(&file, &bytes)
            .and_then(|()| keep_marks(&file, &plan.roots))
            .map_err(|source| io_error("write a plan in", self.place(), source))?;
        self.pass("flush a plan")?;
        rustix::fs::fsync(&file).map_err(|errno| io_error("flush", self.place(), errno))?;
        self.rename(UNFINISHED, state.file())
    }

    /// Gives the plan its next name, durably.
    pub(super) fn advance(&self, from: State, to: State) -> Result<(), JournalError> {
        self.rename(from.file(), to.file())?;
        self.flush()
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), JournalError> {
        self.pass("name a plan")?;
        rustix::fs::renameat(&self.dir, from, &self.dir, to)
            .map_err(|errno| io_error("name a plan in", self.place(), errno))
    }

    pub(super) fn flush(&self) -> Result<(), JournalError> {
        self.pass("flush an entry")?;
        rustix::fs::fsync(&self.dir).map_err(|errno| io_error("flush", self.place(), errno))
    }

    /// Removes what is kept in it. It is to go then, and does when a journal is opened next.
    pub(super) fn clear(&self) -> Result<(), JournalError> {
        if let Some(state) = self.state()?
            && state != State::Dropped
        {
            self.advance(state, State::Dropped)?;
        }
        let place = self.place();
        let failed = |source| io_error("clear", &place, source);
        // The plan last: without it, what is here would be taken for nothing.
        for entry in list_dir(&self.dir).map_err(failed)? {
            if entry.name != State::Dropped.file().as_bytes() {
                remove_tree(self.journal, self.dir.as_fd(), &entry.name).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes all of it. What is kept in it is gone then.
    pub(super) fn remove(self) -> Result<(), JournalError> {
        self.clear()?;
        let place = self.place();
        let failed = |source| io_error("clear", &place, source);
        remove_tree(
            self.journal,
            self.dir.as_fd(),
            State::Dropped.file().as_bytes(),
        )
        .map_err(failed)?;
        self.journal.pass("remove an entry", &place)?;
        rustix::fs::unlinkat(&self.journal.dir, self.name(), AtFlags::REMOVEDIR)
            .map_err(|errno| failed(errno.into()))
    }

    /// Gives it a name under which nothing looks at it, and says which.
    pub(super) fn set_aside(self) -> Result<String, JournalError> {
        for attempt in 0_u32.. {
            let name = format!("{BROKEN}{}-{attempt}", dir_name(self.number));
            self.journal.pass("set an entry aside", &name)?;
            match rustix::fs::renameat_with(
                &self.journal.dir,
                self.name(),
                &self.journal.dir,
                &name,
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => {
                    self.journal.flush()?;
                    return Ok(format!("{}/{name}", self.journal.place));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(io_error("set aside a part of", self.place(), errno)),
            }
        }
        Ok(self.place())
    }

    pub(super) fn pass(&self, step: &'static str) -> Result<(), JournalError> {
        self.journal.pass(step, &self.place())
    }
}

impl Journal {
    pub(super) fn pass(&self, step: &'static str, place: &str) -> Result<(), JournalError> {
        self.steps
            .pass(step)
            .map_err(|source| io_error(step, place, source))
    }
}

/// Removes a name and everything below it, following nothing.
pub(super) fn remove_tree(journal: &Journal, dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    let flags = if crate::changeset::node::kind_of(&stat) == Kind::Dir {
        if stat.st_mode & 0o700 != 0o700 {
            journal.steps.pass("unlock what goes")?;
            rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
        }
        let below = crate::changeset::node::open_dir_here(dir, name)?;
        for entry in list_dir(&below)? {
            remove_tree(journal, below.as_fd(), &entry.name)?;
        }
        AtFlags::REMOVEDIR
    } else {
        AtFlags::empty()
    };
    journal.steps.pass("remove what goes")?;
    Ok(rustix::fs::unlinkat(dir, name, flags)?)
}
