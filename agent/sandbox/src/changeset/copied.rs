//! What a copied view held before the command saw it.
//!
//! What for: where no overlay can be mounted, a view is a copy, and a copy does
//! not say what was written to it. So whoever makes the copy keeps this list
//! beside it, where no command can reach, and what is as listed was not
//! touched. Why not the directory itself: others may change that meanwhile,
//! and their changes are not the command's.
//!
//! It must never call something untouched that a command could have changed:
//! the time of the last change is the kernel's and cannot be set, and where a
//! file system does not keep it for files that are mapped (tmpfs), the content
//! is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::time::Timespec;

use super::node::{Xattrs, mode_of};
use crate::digest::digest_file;
use crate::dircap::open_plain;
use crate::wire::{Reader, WireError, Writer};

/// The list, beside the root of the copy.
pub(crate) const LIST: &str = "copied";
/// The same as seen from the copy.
pub(super) const LIST_FROM_COPY: &str = "../copied";
/// The longest list that is read.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Everything a copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    /// When the first name was read.
    pub began: Timespec,
    /// Whether the copy could keep the attributes of the user.
    pub attributes: bool,
    pub names: BTreeMap<RelPath, Seen>,
}

/// One name of the copy, before any command saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub inode: u64,
    /// Kind and permission bits.
    pub mode: u32,
    pub bytes: i64,
    pub modified: (i64, i64),
    pub changed: (i64, i64),
    /// Of a file's content, where its times do not tell.
    pub content: Option<Digest>,
    /// Of a directory's attributes.
    pub attributes: Digest,
    /// Nothing in it was copied: a mount, a device, or closed to whoever copied.
    pub closed: bool,
}

impl Seen {
    /// What these facts say.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            mode: stat.st_mode,
            bytes: stat.st_size,
            modified: (stat.st_mtime, nanos(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanos(stat.st_ctime_nsec)),
            content: None,
            attributes: Digest::NONE,
            closed: false,
        }
    }

    /// Whether the name is still that of what was copied, changed or not. The
    /// number of what is gone may be given to something else.
    pub(super) fn is_the_one(&self, stat: &Stat) -> bool {
        let kind = |mode| FileType::from_raw_mode(mode);
        self.inode == stat.st_ino && kind(self.mode) == kind(stat.st_mode)
    }

    /// Whether it was a directory.
    pub(super) fn is_dir(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    /// Whether an empty file stands here for what could not be copied.
    pub(super) fn stands_in(&self) -> bool {
        self.closed && FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    /// Whether the facts about the name are the same still.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        let now = Self::of(stat);
        (
            self.inode,
            self.mode,
            self.bytes,
            self.modified,
            self.changed,
        ) == (now.inode, now.mode, now.bytes, now.modified, now.changed)
    }

    /// Whether a file, link or special is as it was copied.
    pub(crate) fn is_untouched(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        stat: &Stat,
    ) -> io::Result<bool> {
        if !self.is(stat) {
            return Ok(false);
        }
        match self.content {
            None => Ok(true),
            Some(content) => Ok(digest_file(open_plain(dir, name)?)?.0 == content),
        }
    }

    /// Whether a directory is the one that was copied, its own facts unchanged;
    /// what lies in it counts by itself.
    pub(crate) fn is_same_dir(&self, stat: &Stat, attributes: &Xattrs) -> bool {
        self.inode == stat.st_ino
            && self.mode & 0o7777 == mode_of(stat)
            && self.attributes == super::xattr_digest(attributes)
    }
}

impl Copied {
    /// The numbers of the files that stand for what could not be copied.
    pub(super) fn stand_ins(&self) -> BTreeSet<u64> {
        let all = self.names.values();
        all.filter(|seen| seen.stands_in())
            .map(|seen| seen.inode)
            .collect()
    }

    /// Reads the list beside a copy.
    pub(super) fn load(copy: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(copy, LIST_FROM_COPY, flags, Mode::empty())?;
        let mut bytes = Vec::new();
        File::from(file)
            .take(LIST_BYTES_MAX)
            .read_to_end(&mut bytes)?;
        Self::decode(&bytes).map_err(|_| io::Error::other("the list of the copy is garbled"))
    }

    /// Writes the list beside a copy, where none is yet.
    pub(crate) fn write_beside(&self, copy: BorrowedFd<'_>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(copy, LIST_FROM_COPY, flags, mode)?;
        File::from(file).write_all(&self.encode())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        pair(&mut w, (self.began.tv_sec, self.began.tv_nsec));
        w.u8(u8::from(self.attributes));
        let names: Vec<_> = self.names.iter().collect();
        w.list(&names, |w, (path, seen)| {
            w.bytes(path.as_bytes());
            w.u64(seen.inode);
            w.u32(seen.mode);
            w.u64(seen.bytes.cast_unsigned());
            pair(w, seen.modified);
            pair(w, seen.changed);
            w.u8(u8::from(seen.content.is_some()));
            w.bytes(seen.content.unwrap_or(Digest::NONE).as_bytes());
            w.bytes(seen.attributes.as_bytes());
            w.u8(u8::from(seen.closed));
        });
        w.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let (tv_sec, tv_nsec) = read_pair(&mut r)?;
        let attributes = r.u8()? == 1;
        let names = r.list(|r| {
            let path = RelPath::parse_dir(&r.bytes()?).map_err(|_| WireError)?;
            let seen = Seen {
                inode: r.u64()?,
                mode: r.u32()?,
                bytes: r.u64()?.cast_signed(),
                modified: read_pair(r)?,
                changed: read_pair(r)?,
                content: {
                    let known = r.u8()? == 1;
                    let digest = digest(r)?;
                    known.then_some(digest)
                },
                attributes: digest(r)?,
                closed: r.u8()? == 1,
            };
            Ok((path, seen))
        })?;
        r.finish()?;
        Ok(Self {
            began: Timespec { tv_sec, tv_nsec },
            attributes,
            names: names.into_iter().collect(),
        })
    }
}

fn nanos(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(0)
}

fn pair(w: &mut Writer, (seconds, nanos): (i64, i64)) {
    w.u64(seconds.cast_unsigned());
    w.u64(nanos.cast_unsigned());
}

fn read_pair(r: &mut Reader<'_>) -> Result<(i64, i64), WireError> {
    Ok((r.u64()?.cast_signed(), r.u64()?.cast_signed()))
}

fn digest(r: &mut Reader<'_>) -> Result<Digest, WireError> {
    let bytes: [u8; 32] = r.bytes()?.try_into().map_err(|_| WireError)?;
    Ok(Digest::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_back_and_a_cut_one_is_refused() {
        let seen = Seen {
            inode: 7,
            mode: 0o100_644,
            bytes: 3,
            modified: (-1, 5),
            changed: (9, 999_999_999),
            content: Some(crate::digest::sha256(b"abc")),
            attributes: Digest::NONE,
            closed: true,
        };
        let list = Copied {
            began: Timespec {
                tv_sec: 1,
                tv_nsec: 2,
            },
            attributes: true,
            names: [
                (RelPath::root(), seen.clone()),
                (RelPath::parse(b"a/\xff").expect("path"), seen),
            ]
            .into(),
        };
        let bytes = list.encode();
        assert_eq!(Copied::decode(&bytes), Ok(list));
        assert_eq!(Copied::decode(&bytes[..bytes.len() - 1]), Err(WireError));
    }
}
