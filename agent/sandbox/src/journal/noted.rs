//! The list of single writes, until somebody looks at what was done.
//!
//! What for: an entry is a directory with a plan that is waited for, which takes longer
//! than the write it is of. So a write is noted by one line in a list, what it displaced
//! lies beside that under its number, and all of them become entries when the journal is next
//! looked at for anything else: by an undo, a commit, or whoever opens it.
//!
//! The list is waited for by nobody. After a loss of power its end may be missing or be
//! something else, which its digests tell; what is no note any more cannot be taken back.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::entry::{Entry, State};
use super::plan::{PLAN_BYTES_MAX, Plan};
use super::{Journal, JournalError, io_error};
use crate::dircap::{DIR_FLAGS, list_dir, open::write_all, read_plain};

/// The directory of the list, in the journal's.
const DIR: &str = "written";
/// The list in it; all other names are numbers.
const LIST: &str = "list";
/// Where what is displaced lies in an entry: it is of the first step and the only one.
pub(super) const SLOT: &[u8] = b"0";

/// The open list.
#[derive(Debug)]
pub(super) struct Noted {
    /// What was displaced, by number.
    pub dir: OwnedFd,
    list: OwnedFd,
}

/// Under which name it lies what the write with this number displaced.
pub(super) fn name_of(number: u64) -> String {
    number.to_string()
}

impl Noted {
    /// How long the list is.
    pub(super) fn length(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.list)?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Adds a write to it.
    pub(super) fn add(&self, plan: &Plan) -> io::Result<()> {
        let bytes = plan.encode();
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let line = [&length.to_le_bytes()[..], &bytes].concat();
        let before = self.length()?;
        write_all(&self.list, &line).inspect_err(|_| {
            // Half a line would hide all that come after it.
            let _cut = rustix::fs::ftruncate(&self.list, before);
        })
    }

    /// Forgets what one displaced that did not come about.
    pub(super) fn drop_displaced(&self, number: u64) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.dir, name_of(number), AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            gone => gone,
        }
    }
}

impl Journal {
    /// Opens the list, or makes an empty one.
    pub(super) fn open_noted(&self) -> Result<Noted, JournalError> {
        let failed = |errno: Errno| io_error("open the list of", &self.place, errno);
        match rustix::fs::mkdirat(&self.dir, DIR, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let dir = rustix::fs::openat(&self.dir, DIR, DIR_FLAGS, Mode::empty()).map_err(failed)?;
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let list = rustix::fs::openat(&dir, LIST, flags, mode).map_err(failed)?;
        Ok(Noted { dir, list })
    }

    /// Makes entries of all that is on the list; whether there was anything. The lock of the
    /// journal is held. Whoever is cut off in the middle of it does it again from the beginning.
    pub(super) fn enter_noted(&self) -> Result<bool, JournalError> {
        let failed = |source: io::Error| io_error("enter the list of", &self.place, source);
        let found = rustix::fs::openat(&self.dir, DIR, DIR_FLAGS, Mode::empty());
        let dir = match found {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(failed(errno.into())),
        };
        let bytes = match read_plain(&dir, LIST.as_bytes(), PLAN_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        for plan in plans(&bytes) {
            let entry = match Entry::open_if_there(self, plan.number)? {
                Some(entry) => entry,
                None => Entry::create(self, plan.number)?,
            };
            if entry.state()?.is_none() {
                entry.note(&plan, State::Committed)?;
            }
            match rustix::fs::renameat(&dir, name_of(plan.number), &entry.dir, SLOT) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let list = rustix::fs::openat(&dir, LIST, flags, Mode::empty());
        list.and_then(|list| rustix::fs::ftruncate(&list, 0))
            .map_err(|errno| failed(errno.into()))?;
        // Of writes that were cut off before they were noted.
        for left in list_dir(&dir).map_err(failed)? {
            if left.name != LIST.as_bytes() {
                let _gone = rustix::fs::unlinkat(&dir, left.name.as_slice(), AtFlags::empty());
            }
        }
        Ok(true)
    }
}

/// What is noted, up to the first that does not hold.
fn plans(mut bytes: &[u8]) -> Vec<Plan> {
    let mut plans = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((line, rest)) = rest.split_at_checked(length) else {
            break;
        };
        let Ok(plan) = Plan::decode(line) else {
            break;
        };
        plans.push(plan);
        bytes = rest;
    }
    plans
}
