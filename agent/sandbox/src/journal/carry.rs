//! Moving a directory entry by entry.
//!
//! What for: overlayfs refuses to rename a directory that lies in its lower
//! layer (`EXDEV`), which is every directory of a container's image. Files can
//! be renamed there, so the directory is made anew and its entries follow one
//! by one.
//!
//! Nothing is ever replaced: a name that is taken stays, and so does the entry
//! that wanted it. Cut off in the middle, every entry is in one of the two
//! places, and carrying the other way brings them together again.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use crate::changeset::copy::times;
use crate::changeset::node::all_xattrs;

/// A name in a directory.
pub(super) type Place<'a> = (BorrowedFd<'a>, &'a [u8]);

/// Directories within directories, at most.
const DEPTH_MAX: u32 = 256;

/// Carries the directory `from` to `to`, where part of it may be already.
///
/// # Errors
/// The first that came; `EXIST` if a name was taken. What was carried until
/// then stays there.
pub(super) fn carry(from: Place<'_>, to: Place<'_>) -> Result<(), Errno> {
    carry_below(from, to, DEPTH_MAX)
}

fn carry_below(from: Place<'_>, to: Place<'_>, depth: u32) -> Result<(), Errno> {
    let depth = depth.checked_sub(1).ok_or(Errno::LOOP)?;
    let source = open(from)?;
    let facts = rustix::fs::fstat(&source)?;
    let made = match rustix::fs::mkdirat(to.0, to.1, JUST_MADE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let target = open(to)?;
    if made {
        give_facts(&source, &facts, &target);
    }
    // Of two that were cut off in the middle the one that was just made has no mode of
    // its own yet, whichever way they are carried.
    let mode = match mode_of(&target)? {
        own if !made && own != JUST_MADE => own,
        _ => mode_of(&source)?,
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(&source)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    let mut taken = false;
    for name in &names {
        let place = (source.as_fd(), name.as_slice());
        let goal = (target.as_fd(), name.as_slice());
        match step(place, goal, depth) {
            Err(Errno::EXIST) => taken = true,
            other => other?,
        }
    }
    if taken {
        return Err(Errno::EXIST);
    }
    rustix::fs::fchmod(&target, mode)?;
    if made {
        rustix::fs::futimens(&target, &times(&facts))?;
    }
    rustix::fs::unlinkat(from.0, from.1, AtFlags::REMOVEDIR)
}

/// The mode of a directory until its entries have arrived.
const JUST_MADE: Mode = Mode::RWXU;

/// What a directory is besides its names and its mode: whose, and with which attributes.
/// Root alone can give it away, and whoever cannot set an attribute finds that out where
/// what was carried is looked at.
fn give_facts(source: &OwnedFd, facts: &Stat, target: &OwnedFd) {
    let (user, group) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
    if rustix::fs::fchown(target, Some(user), Some(group)).is_err() {
        let _kept = rustix::fs::fchown(target, None, Some(group));
    }
    for (name, value) in all_xattrs(source.as_fd()).unwrap_or_default() {
        let none = XattrFlags::empty();
        let _kept = rustix::fs::fsetxattr(target, name.as_slice(), &value, none);
    }
}

fn mode_of(dir: &OwnedFd) -> Result<Mode, Errno> {
    Ok(Mode::from_raw_mode(
        rustix::fs::fstat(dir)?.st_mode & 0o7777,
    ))
}

fn step(place: Place<'_>, goal: Place<'_>, depth: u32) -> Result<(), Errno> {
    let flags = RenameFlags::NOREPLACE;
    let stat = rustix::fs::statat(place.0, place.1, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    match rustix::fs::renameat_with(place.0, place.1, goal.0, goal.1, flags) {
        Err(Errno::XDEV | Errno::EXIST) if is_dir => carry_below(place, goal, depth),
        other => other,
    }
}

fn open(place: Place<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(place.0, place.1, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    /// A directory with a file, a directory in it, and a link.
    fn tree(at: &std::path::Path) {
        fs::create_dir_all(at.join("d/e")).unwrap();
        fs::write(at.join("d/a"), "a").unwrap();
        fs::write(at.join("d/e/b"), "b").unwrap();
        std::os::unix::fs::symlink("a", at.join("d/l")).unwrap();
        fs::set_permissions(at.join("d"), fs::Permissions::from_mode(0o751)).unwrap();
    }

    #[test]
    fn a_directory_arrives_whole_and_goes_back_from_wherever_it_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let fd = fs::File::open(dir.path()).unwrap();
        let (from, to) = ((fd.as_fd(), b"d".as_slice()), (fd.as_fd(), b"t".as_slice()));
        carry(from, to).unwrap();
        assert!(!dir.path().join("d").exists());
        assert_eq!(fs::read_to_string(dir.path().join("t/e/b")).unwrap(), "b");
        let mode = fs::metadata(dir.path().join("t"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o751);
        // Cut off: one entry is back already.
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::rename(dir.path().join("t/a"), dir.path().join("d/a")).unwrap();
        carry(to, from).unwrap();
        assert!(!dir.path().join("t").exists());
        assert_eq!(fs::read_to_string(dir.path().join("d/a")).unwrap(), "a");
        assert_eq!(
            fs::read_link(dir.path().join("d/l")).unwrap().as_os_str(),
            "a"
        );
    }

    #[test]
    fn a_directory_has_its_own_mode_wherever_carrying_it_was_cut_off() {
        for (left, there) in [
            // Going: the slot was just made. Coming back: the place was.
            (0o700, 0o751),
            (0o751, 0o700),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for (name, mode) in [("t", left), ("d", there)] {
                let path = dir.path().join(name);
                fs::create_dir(&path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            fs::write(dir.path().join("t/a"), "a").unwrap();
            let fd = fs::File::open(dir.path()).unwrap();
            carry((fd.as_fd(), b"t"), (fd.as_fd(), b"d")).unwrap();
            let back = fs::metadata(dir.path().join("d")).unwrap();
            assert_eq!(back.permissions().mode() & 0o7777, 0o751, "{left:o}");
            assert_eq!(fs::read_to_string(dir.path().join("d/a")).unwrap(), "a");
        }
    }

    #[test]
    fn a_directory_is_whose_it_was_and_as_it_was_there_and_back() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let at = |name: &str| dir.path().join(name);
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(at("d/e"), Some(1001), Some(1002)).unwrap();
            std::os::unix::fs::chown(at("d"), Some(1000), Some(1000)).unwrap();
        } else {
            println!("SKIPPED: whose it is, only root gives directories away");
        }
        let none = XattrFlags::empty();
        let can_mark = rustix::fs::setxattr(at("d/e"), "user.mark", b"m", none).is_ok();
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        for name in ["d/e", "d"] {
            fs::File::open(at(name))
                .unwrap()
                .set_modified(then)
                .unwrap();
        }
        let fd = fs::File::open(dir.path()).unwrap();
        let places = [(fd.as_fd(), b"d".as_slice()), (fd.as_fd(), b"t".as_slice())];
        for (from, to, name) in [(places[0], places[1], "t"), (places[1], places[0], "d")] {
            carry(from, to).unwrap();
            let inner = at(name).join("e");
            for (path, ids) in [(at(name), (1000, 1000)), (inner.clone(), (1001, 1002))] {
                let stat = fs::metadata(&path).unwrap();
                assert!(!is_root || (stat.uid(), stat.gid()) == ids, "{path:?}");
                assert_eq!(stat.modified().unwrap(), then, "{path:?}");
            }
            let mut mark = [0; 8];
            let marked = rustix::fs::getxattr(inner, "user.mark", &mut mark);
            assert!(!can_mark || marked == Ok(1), "{marked:?}");
        }
    }

    #[test]
    fn a_name_that_is_taken_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        fs::create_dir(dir.path().join("t")).unwrap();
        fs::write(dir.path().join("t/a"), "mine").unwrap();
        let fd = fs::File::open(dir.path()).unwrap();
        let done = carry((fd.as_fd(), b"d"), (fd.as_fd(), b"t"));
        assert_eq!(done, Err(Errno::EXIST));
        assert_eq!(fs::read_to_string(dir.path().join("t/a")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(dir.path().join("d/a")).unwrap(), "a");
    }
}
