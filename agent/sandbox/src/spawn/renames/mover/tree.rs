//! A directory and all that is in it under another name: made there, what is in it moved,
//! and the old one removed. What fails on the way is taken back.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
    chmodat, fchmod, fchown, fremovexattr, fsetxattr, fstat, futimens, mkdirat, openat, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::{linked, renamed};
use crate::changeset::node::xattrs_of;
use crate::spawn::renames::call::NO_REPLACE;

/// So many files with several names are kept in mind. A tree with more is not moved.
const LINKED_MAX: usize = 1 << 16;

/// What is known of one move.
pub(super) struct Tree<'a> {
    /// Where the directory is to lie.
    top: BorrowedFd<'a>,
    /// What is being filled, from there.
    place: Vec<u8>,
    /// Where the first name of each file with several names is now, from there. An
    /// overlay would make a file of its own of each name.
    linked: BTreeMap<(u64, u64), CString>,
}

/// A directory that is being moved.
struct Level {
    from: OwnedFd,
    to: OwnedFd,
    /// As it was.
    before: Stat,
    /// What is in the new one by now.
    moved: Vec<CString>,
}

/// Gives a directory of an overlay another name. Where that fails all is as it was, or
/// it says `EIO`.
pub(super) fn place(dirs: [BorrowedFd<'_>; 2], names: [&CStr; 2]) -> rustix::io::Result<()> {
    let [_, top] = dirs;
    let mut tree = Tree {
        top,
        place: Vec::new(),
        linked: BTreeMap::new(),
    };
    tree.place(dirs, names).map_err(|errno| match errno {
        // What would keep a program from copying it as well.
        Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::ROFS | Errno::IO => errno,
        _ => Errno::XDEV,
    })
}

impl Tree<'_> {
    fn place(
        &mut self,
        [from_dir, to_dir]: [BorrowedFd<'_>; 2],
        [from, to]: [&CStr; 2],
    ) -> rustix::io::Result<()> {
        let before = statat(from_dir, from, AtFlags::SYMLINK_NOFOLLOW)?;
        mkdirat(to_dir, to, Mode::RWXU)?;
        let outer = self.place.len();
        self.place.extend(to.to_bytes());
        self.place.push(b'/');
        let done = self.fill(before, [from_dir, to_dir], [from, to]);
        self.place.truncate(outer);
        if done.is_err() {
            unlinkat(to_dir, to, AtFlags::REMOVEDIR).map_err(|_| Errno::IO)?;
        }
        done
    }

    fn fill(
        &mut self,
        before: Stat,
        [from_dir, to_dir]: [BorrowedFd<'_>; 2],
        [from, to]: [&CStr; 2],
    ) -> rustix::io::Result<()> {
        let mode = Mode::from_raw_mode(before.st_mode);
        if !mode.contains(Mode::RWXU) {
            chmodat(from_dir, from, mode | Mode::RWXU, AtFlags::empty())?;
        }
        let opened = open(from_dir, from).and_then(|dir| Ok((dir, open(to_dir, to)?)));
        let Ok((from_open, to_open)) = opened else {
            if !mode.contains(Mode::RWXU) {
                chmodat(from_dir, from, mode, AtFlags::empty()).map_err(|_| Errno::IO)?;
            }
            return opened.map(drop);
        };
        let mut level = Level {
            from: from_open,
            to: to_open,
            before,
            moved: Vec::new(),
        };
        let done = self
            .move_all(&mut level)
            .and_then(|()| level.make_alike())
            .and_then(|()| unlinkat(from_dir, from, AtFlags::REMOVEDIR));
        if done.is_err() {
            level.take_back().map_err(|_| Errno::IO)?;
        }
        done
    }

    fn move_all(&mut self, level: &mut Level) -> rustix::io::Result<()> {
        for name in names(&level.from)? {
            self.move_one(level, &name)?;
            level.moved.push(name);
        }
        Ok(())
    }

    fn move_one(&mut self, level: &Level, name: &CStr) -> rustix::io::Result<()> {
        let found = statat(&level.from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_dir = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let several = (!is_dir && found.st_nlink > 1).then_some((found.st_dev, found.st_ino));
        if let Some(first) = several.and_then(|file| self.linked.get(&file)) {
            linked([self.top, level.to.as_fd()], [first, name])?;
            return unlinkat(&level.from, name, AtFlags::empty()).inspect_err(|_| {
                // It is still under its old name.
                let _removed = unlinkat(&level.to, name, AtFlags::empty());
            });
        }
        let dirs = [level.from.as_fd(), level.to.as_fd()];
        match carried(dirs, name) {
            Err(Errno::XDEV) if is_dir => return self.place(dirs, [name, name]),
            answered => answered?,
        }
        let Some(file) = several else {
            return Ok(());
        };
        let path = CString::new([&self.place[..], name.to_bytes()].concat());
        if self.linked.len() < LINKED_MAX
            && let Ok(path) = path
        {
            self.linked.insert(file, path);
            return Ok(());
        }
        carried([dirs[1], dirs[0]], name).map_err(|_| Errno::IO)?;
        Err(Errno::XDEV)
    }
}

impl Level {
    /// Gives the new directory what the old one had.
    fn make_alike(&self) -> rustix::io::Result<()> {
        let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::XDEV);
        let (old, new) = (
            xattrs_of(self.from.as_fd()).map_err(errno)?,
            xattrs_of(self.to.as_fd()).map_err(errno)?,
        );
        // What the directory above gives all that is made in it.
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            fremovexattr(&self.to, &name[..])?;
        }
        for (name, value) in &old {
            fsetxattr(&self.to, &name[..], value, XattrFlags::empty())?;
        }
        let made = fstat(&self.to)?;
        let user = (made.st_uid != self.before.st_uid).then(|| Uid::from_raw(self.before.st_uid));
        let group = (made.st_gid != self.before.st_gid).then(|| Gid::from_raw(self.before.st_gid));
        if user.is_some() || group.is_some() {
            fchown(&self.to, user, group)?;
        }
        finish(&self.to, &self.before)
    }

    /// Moves everything back. What was moved is of the layer alone by now, so that nothing
    /// has to be copied.
    fn take_back(&self) -> rustix::io::Result<()> {
        fchmod(&self.to, Mode::RWXU)?;
        for name in self.moved.iter().rev() {
            carried([self.to.as_fd(), self.from.as_fd()], name)?;
        }
        finish(&self.from, &self.before)
    }
}

/// Renames into another directory. To move a directory the kernel wants it to be
/// writable, which nobody needs who moves one it lies in.
fn carried(dirs: [BorrowedFd<'_>; 2], name: &CStr) -> rustix::io::Result<()> {
    let [from, to] = dirs;
    let refused = match renamed(dirs, [name, name], NO_REPLACE) {
        Err(Errno::ACCESS) => Errno::ACCESS,
        answered => return answered,
    };
    let found = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = Mode::from_raw_mode(found.st_mode);
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory || mode.contains(Mode::WUSR) {
        return Err(refused);
    }
    chmodat(from, name, mode | Mode::WUSR, AtFlags::empty())?;
    let done = renamed(dirs, [name, name], NO_REPLACE);
    let now = if done.is_ok() { to } else { from };
    chmodat(now, name, mode, AtFlags::empty()).map_err(|_| Errno::IO)?;
    done
}

/// Mode and times, the last things to be set.
fn finish(dir: &OwnedFd, before: &Stat) -> rustix::io::Result<()> {
    fchmod(dir, Mode::from_raw_mode(before.st_mode))?;
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or_default(),
    };
    futimens(
        dir,
        &Timestamps {
            last_access: time(before.st_atime, before.st_atime_nsec),
            last_modification: time(before.st_mtime, before.st_mtime_nsec),
        },
    )
}

fn open(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

fn names(dir: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}
