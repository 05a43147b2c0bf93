//! Removing and counting what a command left, whatever it made of it.
//!
//! A command may have made directories that nobody can enter and others inside each
//! other deeper than any path reaches. Nothing here follows a link or goes down by
//! itself: what is too deep is brought up first.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::dircap::{DEPTH_MAX, DIR_FLAGS};

/// How much is done before it is left to somebody else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(u64);

impl Budget {
    /// What nobody notices.
    pub(super) const SMALL: Self = Self(400);
    /// All of it.
    pub(super) const NONE: Self = Self(u64::MAX);
    /// What one name costs for each of these bytes it has on disk.
    const BYTES: u64 = 1 << 20;

    fn spend(&mut self, cost: u64) -> bool {
        match self.0.checked_sub(cost) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    All,
    /// The budget was used up.
    Part,
}

/// What lies below a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub bytes: u64,
    pub names: u64,
    /// Not all of it could be seen.
    pub is_less: bool,
}

/// The names in a directory.
pub(super) fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes a directory with all that is in it.
pub(super) fn remove(
    parent: BorrowedFd<'_>,
    name: &[u8],
    mut budget: Budget,
) -> io::Result<Removed> {
    let top = match enter(parent, name) {
        Ok(top) => top,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removed::All),
        Err(error) => return Err(error),
    };
    let mut number = 0_u64;
    loop {
        let mut is_empty = true;
        for entry in Dir::read_from(&top)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            is_empty = false;
            if !cleared(top.as_fd(), name, top.as_fd(), &mut number, &mut budget)? {
                return Ok(Removed::Part);
            }
        }
        if is_empty {
            break;
        }
    }
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Removed::All),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes one name; directories in a directory are brought up to `top` first.
/// Says whether the budget allowed it.
fn cleared(
    dir: BorrowedFd<'_>,
    name: &[u8],
    top: BorrowedFd<'_>,
    number: &mut u64,
    budget: &mut Budget,
) -> io::Result<bool> {
    if !unlinked(dir, name, budget)? {
        return Ok(false);
    }
    let inside = match enter(dir, name) {
        Ok(inside) => inside,
        // It was no directory, and is gone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    loop {
        let mut is_empty = true;
        for entry in Dir::read_from(&inside)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            is_empty = false;
            if !unlinked(inside.as_fd(), name, budget)? {
                return Ok(false);
            }
            match enter(inside.as_fd(), name) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            *number = number.saturating_add(1);
            rustix::fs::renameat(&inside, name, top, format!("~{number}"))?;
        }
        if is_empty {
            break;
        }
    }
    rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?;
    Ok(true)
}

/// Removes a name that is no directory; leaves one that is. Says whether the budget
/// allowed it.
fn unlinked(dir: BorrowedFd<'_>, name: &[u8], budget: &mut Budget) -> io::Result<bool> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) => return Err(errno.into()),
    };
    let cost = on_disk(&stat).checked_div(Budget::BYTES).unwrap_or(0);
    if !budget.spend(cost.saturating_add(1)) {
        return Ok(false);
    }
    if FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Ok(true);
    }
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a directory, whatever its mode. No link is followed, and none can be
/// put in its place between the two.
fn enter(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&held)?;
    let own = Mode::RUSR | Mode::WUSR | Mode::XUSR;
    if !Mode::from_raw_mode(stat.st_mode).contains(own) {
        rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), own)?;
    }
    Ok(rustix::fs::openat(&held, ".", DIR_FLAGS, Mode::empty())?)
}

/// Counts what lies below a directory, and stops where it is more than this.
pub(super) fn count(top: BorrowedFd<'_>, bytes_max: u64, names_max: u64) -> io::Result<Counted> {
    let mut counted = Counted::default();
    let mut linked = std::collections::BTreeSet::new();
    let opened = rustix::fs::openat(top, ".", DIR_FLAGS, Mode::empty())?;
    let mut dirs = vec![Dir::new(opened)?];
    while let Some(dir) = dirs.last_mut() {
        let entry = match dir.read() {
            Some(Ok(entry)) => entry,
            // It is at work still: what goes meanwhile is not there.
            Some(Err(_)) | None => {
                dirs.pop();
                continue;
            }
        };
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        let at = dir.fd()?;
        let stat = match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(_) => continue,
        };
        counted.names = counted.names.saturating_add(1);
        let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
        if is_dir || stat.st_nlink < 2 || linked.insert(stat.st_ino) {
            counted.bytes = counted.bytes.saturating_add(on_disk(&stat));
        }
        if counted.bytes > bytes_max || counted.names > names_max {
            return Ok(counted);
        }
        if !is_dir {
            continue;
        }
        match rustix::fs::openat(at, name, DIR_FLAGS, Mode::empty()).and_then(Dir::new) {
            Ok(below) if dirs.len() < DEPTH_MAX => dirs.push(below),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Ok(_) | Err(_) => counted.is_less = true,
        }
    }
    Ok(counted)
}

/// Bytes a name takes.
fn on_disk(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_blocks)
        .unwrap_or(0)
        .saturating_mul(512)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// More directories inside each other than a path can name.
    fn deep(at: &std::path::Path) {
        fs::create_dir(at).unwrap();
        let mut dir: OwnedFd = fs::File::open(at).unwrap().into();
        let name = "d".repeat(200);
        for _ in 0..200 {
            rustix::fs::mkdirat(&dir, &name, Mode::RWXU).unwrap();
            dir = rustix::fs::openat(&dir, &name, DIR_FLAGS, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn whatever_a_command_made_is_removed_and_what_links_lead_to_stays() {
        let temp = tempfile::tempdir().unwrap();
        let layer = temp.path().join("layer");
        let kept = temp.path().join("kept");
        fs::create_dir_all(layer.join("0/work/work")).unwrap();
        fs::create_dir_all(kept.join("sub")).unwrap();
        fs::write(kept.join("f"), "kept").unwrap();
        symlink(&kept, layer.join("0/link")).unwrap();
        fs::write(layer.join("0/~1"), "a name of the kind that is given").unwrap();
        deep(&layer.join("0/deep"));
        for closed in ["0/work/work", "0/work", "0"] {
            let mode = fs::Permissions::from_mode(0o000);
            fs::set_permissions(layer.join(closed), mode).unwrap();
        }
        let dir = fs::File::open(temp.path()).unwrap();
        let small = remove(dir.as_fd(), b"layer", Budget(20)).unwrap();
        assert_eq!(small, Removed::Part);
        let all = remove(dir.as_fd(), b"layer", Budget::NONE).unwrap();
        assert_eq!(all, Removed::All);
        assert!(!layer.exists());
        assert!(kept.join("sub").exists() && kept.join("f").exists());
        assert_eq!(
            remove(dir.as_fd(), b"layer", Budget::NONE).unwrap(),
            Removed::All
        );
    }

    #[test]
    fn what_is_on_disk_is_counted_once_and_what_is_too_deep_is_told() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("f"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(temp.path().join("f"), temp.path().join("g")).unwrap();
        fs::File::create(temp.path().join("hollow"))
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        rustix::fs::sync();
        let dir = fs::File::open(temp.path()).unwrap();
        let counted = count(dir.as_fd(), u64::MAX, u64::MAX).unwrap();
        assert_eq!((counted.names, counted.is_less), (3, false));
        let mebibyte = 1 << 20;
        assert!(
            (mebibyte..mebibyte * 3 / 2).contains(&counted.bytes),
            "{counted:?}"
        );
        deep(&temp.path().join("deep"));
        assert!(count(dir.as_fd(), u64::MAX, u64::MAX).unwrap().is_less);
        assert!(count(dir.as_fd(), 0, u64::MAX).unwrap().bytes > 0);
    }
}
