//! One transaction on the disk: a directory with a plan and what is kept.
//!
//! Which state it is in is the name its plan has. A plan gets its next name
//! by one rename, so there is no state in between.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::plan::{PLAN_BYTES_MAX, Plan, Root};
use super::{Journal, JournalError, io_error};
use crate::dircap::{DIR_FLAGS, Kind, list_dir, read_plain};

/// How the names of parts that do not hold begin.
const BROKEN: &str = "broken-";
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

/// The number an entry's directory is named by.
pub(super) fn number(name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(name).ok()?;
    let number = text.parse().ok()?;
    (dir_name(number) == text).then_some(number)
}

fn dir_name(number: u64) -> String {
    format!("{number:08}")
}

impl<'j> Entry<'j> {
    /// Makes an empty one.
    pub(super) fn create(journal: &'j Journal, number: u64) -> Result<Self, JournalError> {
        let name = dir_name(number);
        journal.pass("make an entry", &name)?;
        rustix::fs::mkdirat(&journal.dir, &name, Mode::RWXU)
            .map_err(|errno| io_error("make an entry in", &journal.place, errno))?;
        Self::open(journal, number)
    }

    pub(super) fn open(journal: &'j Journal, number: u64) -> Result<Self, JournalError> {
        let dir = rustix::fs::openat(&journal.dir, dir_name(number), DIR_FLAGS, Mode::empty())
            .map_err(|errno| io_error("open an entry of", &journal.place, errno))?;
        Ok(Self {
            journal,
            number,
            dir,
        })
    }

    /// Where it lies, for messages.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.journal.place, dir_name(self.number))
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

    pub(super) fn is_stuck(&self) -> Result<bool, JournalError> {
        Ok(self.state()? == Some(State::Stuck))
    }

    /// What it says it does; `None` before anything was written down.
    pub(super) fn plan(&self) -> Result<Option<Plan>, JournalError> {
        let Some(state) = self.state()? else {
            return Ok(None);
        };
        let broken = |why: String| JournalError::Broken(self.place(), why);
        let stat = rustix::fs::statat(&self.dir, state.file(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| io_error("look at", self.place(), errno))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(broken(String::from("its plan belongs to somebody else")));
        }
        let bytes = read_plain(&self.dir, state.file().as_bytes(), PLAN_BYTES_MAX)
            .map_err(|error| broken(format!("its plan cannot be read: {error}")))?;
        let plan =
            Plan::decode(&bytes).map_err(|why| broken(format!("its plan is not one: {why}")))?;
        if plan.number == self.number {
            Ok(Some(plan))
        } else {
            Err(broken(String::from("its plan belongs to another entry")))
        }
    }

    /// Writes the plan down under the name of `state`, durably.
    pub(super) fn write(&self, plan: &Plan, state: State) -> Result<(), JournalError> {
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
            .map_err(|source| io_error("write a plan in", self.place(), source))?;
        self.pass("flush a plan")?;
        rustix::fs::fsync(&file).map_err(|errno| io_error("flush", self.place(), errno))?;
        self.rename(UNFINISHED, state.file())?;
        self.flush()
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

    fn flush(&self) -> Result<(), JournalError> {
        self.pass("flush an entry")?;
        rustix::fs::fsync(&self.dir).map_err(|errno| io_error("flush", self.place(), errno))
    }

    /// Removes all of it. What is kept in it is gone then.
    pub(super) fn remove(self) -> Result<(), JournalError> {
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
        remove_tree(
            self.journal,
            self.dir.as_fd(),
            State::Dropped.file().as_bytes(),
        )
        .map_err(failed)?;
        self.journal.pass("remove an entry", &place)?;
        let name = dir_name(self.number);
        rustix::fs::unlinkat(&self.journal.dir, &name, AtFlags::REMOVEDIR)
            .map_err(|errno| failed(errno.into()))
    }

    /// Gives it a name under which nothing looks at it, and says which.
    pub(super) fn set_aside(self) -> Result<String, JournalError> {
        for attempt in 0_u32.. {
            let name = format!("{BROKEN}{}-{attempt}", dir_name(self.number));
            self.journal.pass("set an entry aside", &name)?;
            match rustix::fs::renameat_with(
                &self.journal.dir,
                dir_name(self.number),
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

    fn pass(&self, step: &'static str) -> Result<(), JournalError> {
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

impl Root {
    /// The directory where things for this root are staged, if it is not the
    /// entry itself.
    pub(super) fn open_beside(&self, root: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
        match &self.beside {
            None => Ok(None),
            Some(name) => Ok(Some(crate::changeset::node::open_dir(root, name)?)),
        }
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
