//! A directory in which things change, and by what it is known again.
//!
//! What for: a path says where a directory lay, and another one may be there by now: a disk
//! that was mounted at the same place. Its number does not tell the two apart, as the first
//! directory of each file system of a kind has the same one, and a number is given out again
//! once its holder is gone. So there are two marks beside it: when it was born, and which file
//! system it lies on, each where that is told and stays what it is. Some know births by the
//! second alone, or by the tick, and those that are made one after the other have the same;
//! they are told apart by their ids.
//!
//! They are kept as an attribute of the file the plan is in, which is on the disk with what
//! the file holds, and programs that know nothing of them read the plan as ever. Of a plan
//! without them, or where files have no attributes, the number is all that is known.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, XattrFlags};
use rustix::io::Errno;

use crate::changeset::node::open_dir;
use crate::dircap::is_overlay;

/// The attribute: a line for each directory of the plan, in order.
const ATTRIBUTE: &str = "user.hermitcrab.roots";
/// A longer one is none.
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;
/// What a line says of a mark that there is not.
const NONE: &str = "-";
/// What a program serves, among file systems.
const FUSE_MAGIC: u64 = 0x6573_5546;
/// Its root is born at each mount, as it has no entry of its own on the disk.
const EXFAT_MAGIC: u64 = 0x2011_BAB0;
/// Those that have an id of their own for as long as they are: ext2 to ext4, on which it is
/// written, and tmpfs. The ids of others are those of the device, or given anew when one is
/// mounted, as btrfs does where another that says the same of itself is mounted still.
const HAVE_IDS: [u64; 2] = [0xEF53, 0x0102_1994];

/// A directory in which things change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Where it lay; it must still be the same directory.
    pub path: Vec<u8>,
    pub inode: u64,
    /// By what else it is known. It is no part of the plan.
    pub marks: Marks,
    /// The name of the staging directory in it, if things cannot be staged in
    /// the journal because that lies on another file system.
    pub beside: Option<Vec<u8>>,
}

/// By what else than its number a directory is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// When it was born, in seconds since 1970 and nanoseconds.
    pub born: Option<(u64, u32)>,
    /// Which file system it lies on, where that has an id of its own.
    pub system: Option<u64>,
}

/// Whether a directory is the one that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Same {
    /// It is another one.
    No,
    /// Nothing tells it from that one, and not all there is to tell it by is known.
    Perhaps,
    /// It is by every mark.
    Surely,
}

impl Root {
    /// Of an open directory.
    pub(super) fn of(
        dir: BorrowedFd<'_>,
        path: Vec<u8>,
        beside: Option<Vec<u8>>,
    ) -> io::Result<Self> {
        let (inode, marks) = Marks::of(dir)?;
        Ok(Self {
            path,
            inode,
            marks,
            beside,
        })
    }

    pub(super) fn path(&self) -> PathBuf {
        Path::new(OsStr::from_bytes(&self.path)).to_owned()
    }

    /// The directory in it where things are staged, if there is one.
    pub(super) fn beside_path(&self) -> Option<PathBuf> {
        let name = self.beside.as_deref()?;
        Some(self.path().join(OsStr::from_bytes(name)))
    }

    /// Whether a directory with this number and these marks is this one.
    pub(super) fn is(&self, inode: u64, marks: Marks) -> Same {
        let born = alike(self.marks.born, marks.born);
        let system = alike(self.marks.system, marks.system);
        let is_exact = marks.born.is_some_and(|(_, nanos)| nanos != 0);
        match (born, system) {
            _ if self.inode != inode => Same::No,
            (Some(false), _) | (_, Some(false)) => Same::No,
            (Some(true), Some(true)) => Same::Surely,
            (Some(true), None) if is_exact => Same::Surely,
            (Some(true) | None, None) | (None, Some(true)) => Same::Perhaps,
        }
    }

    /// The directory where things for this root are staged, if it is not the
    /// entry itself.
    pub(super) fn open_beside(&self, root: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
        match &self.beside {
            None => Ok(None),
            Some(name) => Ok(Some(open_dir(root, name)?)),
        }
    }
}

impl Marks {
    /// The number of an open directory, and its marks.
    pub(super) fn of(dir: BorrowedFd<'_>) -> io::Result<(u64, Self)> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let found = rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, wanted)?;
        let says_birth = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let seconds = u64::try_from(found.stx_btime.tv_sec).unwrap_or(0);
        let kind = u64::try_from(rustix::fs::fstatfs(dir)?.f_type).unwrap_or(0);
        // What a file system of layers copies up is born anew, and nobody knows what a program
        // does. Where nobody wrote it down it may be told as the beginning of time.
        let keeps_births =
            ![FUSE_MAGIC, EXFAT_MAGIC].contains(&kind) && is_overlay(dir) == Ok(false);
        let born = (says_birth && keeps_births && seconds > 0)
            .then_some((seconds, found.stx_btime.tv_nsec));
        let system = match HAVE_IDS.contains(&kind) {
            true => Some(rustix::fs::fstatvfs(dir)?.f_fsid).filter(|id| *id != 0),
            false => None,
        };
        Ok((found.stx_ino, Self { born, system }))
    }

    /// In a text that [`Self::read`] reads.
    pub(super) fn written(self) -> String {
        let born = self.born;
        let born = born.map_or_else(
            || NONE.to_owned(),
            |(seconds, nanos)| format!("{seconds}.{nanos:09}"),
        );
        let system = self.system;
        let system = system.map_or_else(|| NONE.to_owned(), |system| format!("{system:016x}"));
        format!("{born} {system}")
    }

    /// What is not understood is not known.
    pub(super) fn read(text: &str) -> Self {
        let (born, system) = text.split_once(' ').unwrap_or_default();
        let born = born.split_once('.');
        Self {
            born: born
                .and_then(|(seconds, nanos)| Some((seconds.parse().ok()?, nanos.parse().ok()?))),
            system: u64::from_str_radix(system, 16).ok(),
        }
    }
}

/// Whether two marks are the same, where both are known.
fn alike<T: PartialEq>(then: Option<T>, now: Option<T>) -> Option<bool> {
    Some(then? == now?)
}

/// Between which places a rename is possible: the mount, and the file system.
pub(super) fn mount_of(dir: impl AsFd) -> Result<(u64, u32, u32), Errno> {
    let found = rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    Ok((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor))
}

/// Keeps the marks of the directories of a plan with the file that it is written to.
pub(super) fn keep_marks(plan: impl AsFd, roots: &[Root]) -> io::Result<()> {
    if roots.iter().all(|root| root.marks == Marks::default()) {
        return Ok(());
    }
    let lines: Vec<String> = roots.iter().map(|root| root.marks.written()).collect();
    let text = lines.join("\n");
    match rustix::fs::fsetxattr(plan, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        // Where there are no attributes, or none so long, the number is all that is known.
        Ok(())
        | Err(
            Errno::PERM
            | Errno::OPNOTSUPP
            | Errno::NOSYS
            | Errno::NOSPC
            | Errno::TOOBIG
            | Errno::RANGE,
        ) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives the directories of a plan the marks that are kept with the file it is in.
pub(super) fn know_marks(plan: impl AsFd, roots: &mut [Root]) {
    let mut text = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = rustix::fs::fgetxattr(plan, ATTRIBUTE, &mut text[..]).unwrap_or(0);
    text.truncate(length);
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.split('\n');
    for root in roots {
        root.marks = lines.next().map(Marks::read).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::{ATTRIBUTE, Marks, Root, Same, XattrFlags, keep_marks, know_marks};

    fn marks(born: Option<(u64, u32)>, system: Option<u64>) -> Marks {
        Marks { born, system }
    }

    #[test]
    fn a_directory_is_known_by_all_that_is_told_of_it_and_by_nothing_that_is_not() {
        let full = marks(Some((5, 6)), Some(7));
        let (by_the_second, exact) = (marks(Some((5, 0)), None), marks(Some((5, 6)), None));
        let with_id = marks(Some((5, 0)), Some(7));
        let root = |marks| Root {
            path: b"/work".to_vec(),
            inode: 2,
            marks,
            beside: None,
        };
        for (then, inode, now, expected) in [
            (full, 2, full, Same::Surely),
            (full, 3, full, Same::No),
            (full, 2, marks(Some((5, 7)), Some(7)), Same::No),
            (full, 2, marks(Some((4, 6)), None), Same::No),
            (full, 2, marks(Some((5, 6)), Some(8)), Same::No),
            (full, 2, marks(None, Some(8)), Same::No),
            (full, 2, marks(None, Some(7)), Same::Perhaps),
            (marks(None, Some(7)), 2, full, Same::Perhaps),
            (with_id, 2, with_id, Same::Surely),
            (exact, 2, exact, Same::Surely),
            (by_the_second, 2, by_the_second, Same::Perhaps),
            (by_the_second, 2, with_id, Same::Perhaps),
            (Marks::default(), 2, full, Same::Perhaps),
            (Marks::default(), 3, full, Same::No),
        ] {
            assert_eq!(
                root(then).is(inode, now),
                expected,
                "{then:?} {inode} {now:?}"
            );
        }
    }

    #[test]
    fn marks_that_are_kept_are_known_and_what_is_none_is_not() {
        let plan = tempfile::tempfile().unwrap();
        let of = |marks| Root {
            path: b"/work".to_vec(),
            inode: 2,
            marks,
            beside: None,
        };
        let all = [
            marks(Some((1_764_600_000, 12)), Some(u64::MAX)),
            marks(None, Some(1)),
            Marks::default(),
            marks(Some((u64::MAX, 999_999_999)), None),
        ];
        let kept = all.map(of);
        keep_marks(&plan, &kept).unwrap();
        let unknown = of(Marks::default());
        let mut known = vec![of(marks(Some((1, 1)), Some(1))); 5];
        know_marks(&plan, &mut known);
        if known[0] == unknown {
            println!("SKIPPED: files have no attributes here");
            return;
        }
        assert_eq!((&known[..4], &known[4]), (&kept[..], &unknown));
        for text in [
            "",
            " ",
            "1 2 3",
            "-1.5 x",
            "1.x 4 ",
            "\u{feff}1.2 3",
            "\n1.2 3",
        ] {
            let none = XattrFlags::empty();
            rustix::fs::fsetxattr(&plan, ATTRIBUTE, text.as_bytes(), none).unwrap();
            let mut known = vec![of(marks(Some((1, 1)), Some(1)))];
            know_marks(&plan, &mut known);
            let born = known[0].marks.born;
            assert_eq!(born, None, "{text:?}");
        }
    }

    #[test]
    fn what_comes_to_lie_in_a_directory_changes_no_mark_of_it() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let dir = std::fs::File::open(temp.path().join(name)).unwrap();
            Root::of(dir.as_fd(), Vec::new(), None).unwrap()
        };
        let (one, two) = (temp.path().join("one"), temp.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        let first = at("one");
        std::fs::write(one.join("file"), "x").unwrap();
        std::fs::rename(&one, &two).unwrap();
        let moved = at("two");
        assert_ne!(first.is(moved.inode, moved.marks), Same::No);
        std::fs::create_dir(&one).unwrap();
        let other = at("one");
        assert_eq!(first.is(other.inode, other.marks), Same::No);
    }
}
