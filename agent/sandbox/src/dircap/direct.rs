//! Reading without following links, and saying where a link leads.
//!
//! A permit names a place by its spelling, and a link gives one file two
//! spellings. Whoever decides by name first asks where a name leads, then
//! asks for that place, and then reads it directly: if a link has appeared on
//! the way meanwhile, the kernel refuses.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hermitcrab_core::Permit;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::OFlags;

use super::open::{Links, open_beneath, open_file, read_file};
use super::{
    DirCap, Entry, FsError, Names, Stat, list_opened, look_verb, spelled, spelled::Missing,
};

impl DirCap {
    /// A file's content, no link on the way; `fs.read`.
    ///
    /// # Errors
    /// See [`FsError`]; `symlink-refused` if there is a link.
    pub fn read_direct(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
        bytes_max: usize,
    ) -> Result<Vec<u8>, FsError> {
        self.spend(permit, Verb::FsRead, path)?;
        self.look("read", path, move |dir, path| {
            let (file, stat) = open_file(dir, path, Links::Refuse)?;
            read_file(&file, &stat, bytes_max).map_err(|source| FsError::Io {
                operation: "read",
                path: path.clone(),
                source,
            })
        })
    }

    /// The names in a directory, sorted by bytes, no link on the way; `fs.list`.
    ///
    /// # Errors
    /// See [`FsError`]; `symlink-refused` if there is a link.
    pub fn list_direct(&self, permit: Permit<'_>, path: &RelPath) -> Result<Vec<Entry>, FsError> {
        let mut entries = self.list_direct_as_found(permit, path)?.entries();
        entries.sort();
        Ok(entries)
    }

    /// The names in a directory, in the order the file system keeps them, no
    /// link on the way; `fs.list`.
    ///
    /// # Errors
    /// As for [`DirCap::list_direct`].
    pub fn list_direct_as_found(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
    ) -> Result<Names, FsError> {
        self.spend(permit, Verb::FsList, path)?;
        self.look("list", path, |dir, path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let dir = open_beneath(dir, path, flags, Links::Refuse)?;
            list_opened(&dir).map_err(|source| FsError::Io {
                operation: "list",
                path: path.clone(),
                source,
            })
        })
    }

    /// What a link says, word for word, no link on the way to it; `None` if the name is
    /// none of a link. `fs.list` or `fs.read` on the name.
    ///
    /// # Errors
    /// See [`FsError`]; `symlink-refused` if there is a link on the way.
    pub fn link_says(
        &self,
        permit: Permit<'_>,
        path: &RelPath,
    ) -> Result<Option<Vec<u8>>, FsError> {
        let verb = look_verb(&permit);
        self.spend(permit, verb, path)?;
        if path.is_root() {
            return Ok(None);
        }
        self.look("name", path, spelled::link_at)
    }

    /// Where a name leads once every link on the way is followed, seen from
    /// this directory; `fs.list` or `fs.read` on the name as written.
    ///
    /// # Errors
    /// See [`FsError`]; `outside-root` if that is not below this directory,
    /// `changed-since-shown` if it moves while it is looked at.
    pub fn leads_to(&self, permit: Permit<'_>, path: &RelPath) -> Result<RelPath, FsError> {
        let verb = look_verb(&permit);
        self.spend(permit, verb, path)?;
        self.look("name", path, led_to)
    }

    /// Where a name leads, as far as anything is there, once every link on the way is
    /// followed: what a link names that is not there yet is named as well; `fs.list` or
    /// `fs.read` on the name as written. It is a name and nothing else: nothing is opened.
    ///
    /// # Errors
    /// See [`FsError`]; `outside-root` if that is not below this directory.
    pub fn would_lead_to(&self, permit: Permit<'_>, path: &RelPath) -> Result<RelPath, FsError> {
        let verb = look_verb(&permit);
        self.spend(permit, verb, path)?;
        self.look("name", path, |dir, path| {
            spelled::followed(dir, &kernel_name(&dir, path)?, path, Missing::IsToBeMade)
        })
    }

    /// Facts about what a name leads to, and where that is: [`DirCap::stat`] and
    /// [`DirCap::leads_to`] of one and the same thing, each with its permit.
    ///
    /// # Errors
    /// As for [`DirCap::stat`]; in the second place as for [`DirCap::leads_to`].
    pub fn stat_and_leads_to(
        &self,
        facts: Permit<'_>,
        way: Permit<'_>,
        path: &RelPath,
    ) -> Result<(Stat, Result<RelPath, FsError>), FsError> {
        for permit in [facts, way] {
            let verb = look_verb(&permit);
            self.spend(permit, verb, path)?;
        }
        self.look("stat", path, |dir, path| {
            let facts = |fd: &OwnedFd| {
                rustix::fs::fstat(fd)
                    .map(Stat::from)
                    .map_err(|errno| FsError::io("stat", path, errno))
            };
            // Without a link on the way a name leads to itself, and mostly there is none.
            match open_beneath(dir, path, OFlags::PATH, Links::Refuse) {
                Ok(direct) => Ok((facts(&direct)?, Ok(path.clone()))),
                Err(_) => {
                    let target = open_led_to(dir, path)?;
                    Ok((facts(&target)?, led_to(dir, path)))
                }
            }
        })
    }
}

/// What a name leads to, opened to be looked at. A link that spells out a whole path below
/// the directory leads there, too.
pub(super) fn open_led_to(dir: BorrowedFd<'_>, path: &RelPath) -> Result<OwnedFd, FsError> {
    match open_beneath(dir, path, OFlags::PATH, Links::Follow) {
        Err(FsError::Denied(denial)) if denial.code() == DenialCode::OutsideRoot => {
            let real = spelled::followed(dir, &kernel_name(&dir, path)?, path, Missing::IsAnError)?;
            open_beneath(dir, &real, OFlags::PATH, Links::Refuse)
        }
        opened => opened,
    }
}

fn led_to(dir: BorrowedFd<'_>, path: &RelPath) -> Result<RelPath, FsError> {
    if open_beneath(dir, path, OFlags::PATH, Links::Refuse).is_ok() {
        return Ok(path.clone());
    }
    let target = open_led_to(dir, path)?;
    let real = name_of(dir, &target, path)?;
    // The name is the kernel's word of a moment ago: it counts only if it
    // leads to the same file without any link.
    let direct = open_beneath(dir, &real, OFlags::PATH, Links::Refuse)?;
    let identity = |fd: &OwnedFd| {
        rustix::fs::fstat(fd)
            .map(|stat| (stat.st_dev, stat.st_ino))
            .map_err(|errno| FsError::io("stat", path, errno))
    };
    if identity(&direct)? == identity(&target)? {
        Ok(real)
    } else {
        Err(FsError::denied(DenialCode::ChangedSinceShown, path))
    }
}

/// The place of an open file, seen from this directory, as the kernel names both.
fn name_of(dir: BorrowedFd<'_>, target: &OwnedFd, path: &RelPath) -> Result<RelPath, FsError> {
    let root = kernel_name(&dir, path)?;
    let full = kernel_name(target, path)?;
    let below = match root.as_slice() {
        b"/" => full.strip_prefix(b"/"),
        root => match full.strip_prefix(root) {
            Some(b"") => Some(&b""[..]),
            Some(rest) => rest.strip_prefix(b"/"),
            None => None,
        },
    };
    match below {
        Some(b"") => Ok(RelPath::root()),
        Some(below) => RelPath::parse(below).map_err(|error| FsError::denied(error.code(), path)),
        None => Err(FsError::denied(DenialCode::OutsideRoot, path)),
    }
}

fn kernel_name(fd: &impl AsFd, path: &RelPath) -> Result<Vec<u8>, FsError> {
    use std::os::fd::AsRawFd as _;
    let number = fd.as_fd().as_raw_fd();
    rustix::fs::readlink(format!("/proc/self/fd/{number}"), Vec::new())
        .map(std::ffi::CString::into_bytes)
        .map_err(|errno| FsError::io("name", path, errno))
}
