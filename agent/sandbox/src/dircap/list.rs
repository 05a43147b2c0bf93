//! What is in a directory, and facts about one name.
//!
//! These functions take no permit: they are for directories that are this
//! package's own, and for what has spent its permit already.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};

use super::open::read_all;

/// How a directory is opened that nothing leads to but its name.
pub(crate) const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How many directories may stand inside each other: each takes stack and two
/// descriptors of the agent's while it is looked at, and a command makes as many as
/// it likes.
pub(crate) const DEPTH_MAX: usize = 128;

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device.
    Special,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, as bytes.
    pub name: Vec<u8>,
    /// What it stands for.
    pub kind: Kind,
}

/// The names in a directory, in the order its file system keeps them.
///
/// They lie one behind the other: a search lists thousands, and looks at most of
/// them once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    bytes: Vec<u8>,
    // INVARIANT: where each name ends in `bytes`; none is greater than the next.
    ends: Vec<(usize, Kind)>,
}

impl Names {
    fn push(&mut self, name: &[u8], kind: Kind) {
        self.bytes.extend_from_slice(name);
        self.ends.push((self.bytes.len(), kind));
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them, counted from 0, and what it stands for.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<(&[u8], Kind)> {
        let (end, kind) = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => self.ends.get(before)?.0,
            None => 0,
        };
        Some((self.bytes.get(start..end)?, kind))
    }

    /// All of them, and what each stands for.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// The same, each on its own.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.iter()
            .map(|(name, kind)| Entry {
                name: name.to_vec(),
                kind,
            })
            .collect()
    }
}

/// Facts about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub bytes: u64,
    /// Permission bits.
    pub mode: u32,
    /// How many names it has; more than one for a file means a hard link.
    pub links: u64,
    /// When it was last modified, in nanoseconds since 1970.
    pub modified_ns: i128,
}

/// Reads a regular file by a plain name in a directory nobody else can reach.
pub(crate) fn read_plain(dir: &OwnedFd, name: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    if name.contains(&b'/') || name.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    read_all(open_plain(dir, name)?, bytes_max)
}

/// Opens a regular file by a plain name.
pub(crate) fn open_plain(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::openat(
        dir,
        name,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// The names in an open directory, sorted.
pub(crate) fn list_dir(dir: impl AsFd) -> io::Result<Vec<Entry>> {
    // Reading moves on in a directory, so one that stays open is not read itself.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut entries = list_opened(&rustix::fs::openat(dir, ".", flags, Mode::empty())?)?.entries();
    entries.sort();
    Ok(entries)
}

/// The names in a directory that was opened for this and not read yet, in the order
/// the file system keeps them.
pub(super) fn list_opened(dir: &OwnedFd) -> io::Result<Names> {
    const AT_ONCE_BYTES: usize = 32 * 1024;
    let mut buffer = Vec::with_capacity(AT_ONCE_BYTES);
    let mut found = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Names::default();
    while let Some(entry) = found.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let file_type = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => {
                match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    // Gone meanwhile.
                    Err(_) => continue,
                }
            }
            known => known,
        };
        names.push(name, Kind::from(file_type));
    }
    Ok(names)
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

impl From<rustix::fs::Stat> for Stat {
    #[cfg_attr(
        target_arch = "x86_64",
        expect(
            clippy::useless_conversion,
            reason = "numbers of links are narrower elsewhere"
        )
    )]
    fn from(stat: rustix::fs::Stat) -> Self {
        Self {
            kind: Kind::from(FileType::from_raw_mode(stat.st_mode)),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o7777,
            links: u64::from(stat.st_nlink),
            modified_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Kind, Names};

    #[test]
    fn names_lie_behind_each_other_and_each_is_found_again() {
        let given: [(&[u8], Kind); 4] = [
            (b"b", Kind::Dir),
            (b"a long one \xff", Kind::File),
            (b"a", Kind::Symlink),
            (b".", Kind::Special),
        ];
        let mut names = Names::default();
        assert!(names.is_empty() && names.get(0).is_none());
        for (name, kind) in given {
            names.push(name, kind);
        }
        assert_eq!(names.len(), 4);
        assert_eq!(names.iter().collect::<Vec<_>>(), given);
        assert_eq!(names.get(1), Some(given[1]));
        assert_eq!(names.get(4), None);
        let entries = names.entries();
        assert!(entries.iter().zip(given).all(|(entry, (name, kind))| {
            *entry
                == Entry {
                    name: name.to_vec(),
                    kind,
                }
        }));
    }
}
