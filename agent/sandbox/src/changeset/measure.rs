//! Whether a directory is within the ceilings of a copy, before anything is copied.
//!
//! What for: where a copy is one of two ways, a directory beyond its ceilings goes the
//! other at once, and not after half a command's memory was filled in vain. It counts
//! as the copy does, and the copy counts again: what grows meanwhile is no matter.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::AtFlags;

use super::copy::{Ceiling, CopyError, Room, enter};
use super::node::kind_of;
use crate::dircap::{DEPTH_MAX, Kind, list_dir};

/// Refuses what a copy would be refused for its size. What cannot be looked at is the
/// copy's to tell.
pub(crate) fn measure(from: BorrowedFd<'_>, ceiling: Ceiling) -> Result<(), CopyError> {
    let mut measure = Measure {
        room: Room::of(ceiling),
        counted: BTreeSet::new(),
    };
    measure.below(from, &RelPath::root(), 0)
}

struct Measure {
    room: Room,
    /// Files with several names, which take room once.
    counted: BTreeSet<(u64, u64)>,
}

impl Measure {
    fn below(
        &mut self,
        from: BorrowedFd<'_>,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), CopyError> {
        if depth > DEPTH_MAX {
            return Ok(());
        }
        let Ok(entries) = list_dir(from) else {
            return Ok(());
        };
        for entry in entries {
            let name = entry.name.as_slice();
            let Ok(child) = path.child(name) else {
                continue;
            };
            self.room.name(&child)?;
            match entry.kind {
                Kind::Dir => {
                    if let Ok(found) = enter(from, name) {
                        self.below(found.as_fd(), &child, depth.saturating_add(1))?;
                    }
                }
                Kind::File => {
                    let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW);
                    let Some(stat) = stat.ok().filter(|stat| kind_of(stat) == Kind::File) else {
                        continue;
                    };
                    if stat.st_nlink < 2 || self.counted.insert((stat.st_dev, stat.st_ino)) {
                        self.room.file(&stat, &child)?;
                    }
                }
                Kind::Symlink | Kind::Special => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_beyond_a_ceiling_are_refused_and_one_file_counts_once() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("d")).unwrap();
        std::fs::write(temp.path().join("d/f"), vec![1; 40_000]).unwrap();
        std::fs::hard_link(temp.path().join("d/f"), temp.path().join("g")).unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        let check = |bytes: u64, names: u64, expected: bool| {
            let measured = measure(dir.as_fd(), Ceiling { bytes, names });
            assert_eq!(measured.is_ok(), expected, "{bytes} {names}: {measured:?}");
        };
        check(50_000, 3, true);
        check(39_999, 3, false);
        check(50_000, 2, false);
    }
}
