//! Notes of what is being built beside files of a workspace.
//!
//! What for: something that is built under a temporary name in a workspace
//! stays there if the process is killed, and nobody looks through workspaces
//! for such names. So a note says where it is, before it is made; the note is
//! struck out afterwards, and whoever opens the journal next clears what those
//! notes name whose writers are gone.
//!
//! A note waits for no disk: after a loss of power it may be missing, and then
//! an unfinished directory stays. It must never lead to anything but a temporary
//! name in the very directory it was written for.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use super::entry::remove_tree;
use super::plan::{PLAN_BYTES_MAX, Plan};
use super::reach::open_root;
use super::root::{Marks, Root};
use super::{Journal, JournalError, io_error, retain};
use crate::dircap::open::write_all;
use crate::dircap::{TEMPORARY_PREFIX, read_plain};

/// How the names of notes begin; none is an entry's.
const PREFIX: &[u8] = b"aside-";
/// After this long nobody is still writing a note.
const UNREADABLE_SECONDS_MAX: u64 = 3600;

/// A note; whoever holds it is at work on what it names.
#[derive(Debug)]
pub(super) struct Aside<'j> {
    journal: &'j Journal,
    name: Vec<u8>,
    /// Locked as long as this lives.
    _file: OwnedFd,
}

impl Journal {
    /// Notes that something is built in `ground` under this temporary name.
    pub(super) fn note_aside(
        &self,
        ground: BorrowedFd<'_>,
        temporary: &[u8],
    ) -> Result<Aside<'_>, JournalError> {
        let io = |errno: rustix::io::Errno| io_error("note something in", &self.place, errno);
        let path = std::fs::read_link(format!("/proc/self/fd/{}", ground.as_raw_fd()))
            .map_err(|source| io_error("note something in", &self.place, source))?;
        let path = path.into_os_string().into_vec();
        let root = Root::of(ground, path, Some(temporary.to_vec()))
            .map_err(|source| io_error("note something in", &self.place, source))?;
        let mut name = PREFIX.to_vec();
        name.extend_from_slice(temporary);
        self.pass("note what is built aside", &self.place)?;
        let file = rustix::fs::openat(
            &self.dir,
            name.as_slice(),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(io)?;
        // Before anything is in it: a note that can be read was locked by its writer.
        let written = rustix::fs::flock(&file, FlockOperation::LockExclusive)
            .map_err(std::io::Error::from)
            .and_then(|()| write_all(&file, &note(root).encode()));
        let aside = Aside {
            journal: self,
            name,
            _file: file,
        };
        match written {
            Ok(()) => Ok(aside),
            Err(source) => {
                aside.strike();
                Err(io_error("note something in", &self.place, source))
            }
        }
    }

    /// Clears what those left who are gone.
    pub(super) fn clear_asides(&self) {
        let Ok(names) = crate::dircap::list_dir(&self.dir) else {
            return;
        };
        for entry in names {
            if entry.name.starts_with(PREFIX) && self.is_cleared(&entry.name) {
                let _struck = self.strike(&entry.name);
            }
        }
    }

    /// Whether a note is of no more use.
    fn is_cleared(&self, name: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.dir, name, flags, Mode::empty()) else {
            return false;
        };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return false;
        }
        let plan = read_plain(&self.dir, name, PLAN_BYTES_MAX)
            .ok()
            .and_then(|bytes| Plan::decode(&bytes).ok());
        let root = plan.and_then(|plan| {
            let marks = Marks::read(&String::from_utf8_lossy(&plan.note));
            Some(Root {
                marks,
                ..plan.roots.into_iter().next()?
            })
        });
        let Some((root, temporary)) = root.as_ref().and_then(named) else {
            // Just being written, or cut off before anything was made.
            return is_older(&file, UNREADABLE_SECONDS_MAX);
        };
        match open_root(root) {
            Ok(dir) => remove_tree(self, dir.as_fd(), temporary).is_ok(),
            // It may come back: a disk that is not there now.
            Err(_) => is_older(&file, retain::AGE_MAX),
        }
    }

    fn strike(&self, name: &[u8]) -> Result<(), JournalError> {
        self.pass("strike out a note", &self.place)?;
        rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())
            .map_err(|errno| io_error("strike out a note in", &self.place, errno))
    }
}

impl Aside<'_> {
    /// What it names is not there any more.
    pub(super) fn strike(&self) {
        // A note that stays leads to a name that is gone, and goes next time.
        let _struck = self.journal.strike(&self.name);
    }
}

/// A plan in which nothing is done, for nobody to see but who reads by what the directory is
/// known.
fn note(root: Root) -> Plan {
    Plan {
        number: 0,
        made_at: crate::ambient::seconds_since_1970(),
        note: root.marks.written().into_bytes(),
        undoes: None,
        roots: vec![root],
        ops: Vec::new(),
        touched: Vec::new(),
        bytes_before: 0,
    }
}

/// Where a note leads, if that is a temporary name.
fn named(root: &Root) -> Option<(&Root, &[u8])> {
    let name = root.beside.as_deref()?;
    let fits = name.starts_with(TEMPORARY_PREFIX.as_bytes()) && RelPath::root().child(name).is_ok();
    fits.then_some((root, name))
}

fn is_older(file: &OwnedFd, seconds: u64) -> bool {
    let now = crate::ambient::seconds_since_1970();
    rustix::fs::fstat(file)
        .is_ok_and(|stat| now.saturating_sub(u64::try_from(stat.st_mtime).unwrap_or(0)) > seconds)
}
