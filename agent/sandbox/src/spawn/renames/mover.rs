//! The process that gives one directory another name, with the rights of the command.
//!
//! It asks the kernel first: what the command made itself, and all of a view that is a
//! copy, is renamed like anywhere, and what is wrong is told by the kernel. Only where an
//! overlay says `EXDEV` is a directory made under the new name and what is in it moved
//! there. The kernel copies what of that lay in the workspace, as for any change to it.

mod second;
mod tree;

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::sys::signal::SigSet;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, mkdirat, openat2, statat, statx,
    unlinkat,
};
use rustix::io::Errno;

use super::call::{EXCHANGE, End, Ends, NO_REPLACE, Wish};
use crate::dircap::is_overlay;
use crate::landlock::Fence;
use crate::sys;
use crate::sys::watched::{link_unheard, rename_unheard};

/// So many names are tried for what is put aside while two things exchange theirs.
const SPARE_NAMES: u32 = 16;

/// A name in a directory.
struct Named {
    dir: OwnedFd,
    name: CString,
    /// With the slashes that stood after it: what has such a name is a directory, and the
    /// kernel refuses anything else, a link to one included.
    spelled: CString,
}

/// Runs in the child of the fork and never comes back. Its status is the number of the
/// error, 0 for none.
pub(super) fn run(ends: &Ends, fence: Option<&Fence>) -> ! {
    let done = confined(ends, fence).and_then(|()| match ends.wish {
        Wish::Rename => moved(ends),
        Wish::Link => second::given(ends),
    });
    let errno = match done {
        Ok(()) => 0,
        Err(errno) => errno.raw_os_error(),
    };
    sys::exit_immediately(errno)
}

/// Nothing but the two ends, and the fence of the command. The filter, the limits and the
/// lack of capabilities it was born with.
fn confined(ends: &Ends, fence: Option<&Fence>) -> rustix::io::Result<()> {
    // Whoever asks the command to end does not mean one half of a directory.
    SigSet::all().thread_block().map_err(|_| Errno::XDEV)?;
    let fence = fence.map(Fence::try_clone).transpose();
    if let Some(fence) = fence.map_err(|_| Errno::XDEV)? {
        fence.close().map_err(|_| Errno::XDEV)?;
    }
    sys::close_all_but(&[ends.from.base.as_fd(), ends.to.base.as_fd()]).map_err(|_| Errno::XDEV)
}

fn moved(ends: &Ends) -> rustix::io::Result<()> {
    let (Some(from), Some(to)) = (named(&ends.from)?, named(&ends.to)?) else {
        // Nothing that has a name of its own: the kernel knows what is wrong with it.
        let dirs = [ends.from.base.as_fd(), ends.to.base.as_fd()];
        return renamed(dirs, [&ends.from.path, &ends.to.path], ends.flags);
    };
    let dirs = [from.dir.as_fd(), to.dir.as_fd()];
    match renamed(dirs, [&from.spelled, &to.spelled], ends.flags) {
        Err(Errno::XDEV) => {}
        answered => return answered,
    }
    if !is_overlay(from.dir.as_fd())? || mount(&from.dir)? != mount(&to.dir)? {
        return Err(Errno::XDEV);
    }
    if ends.flags & EXCHANGE != 0 {
        return exchanged(dirs, [&from.name, &to.name]);
    }
    let source = statat(&from.dir, &from.name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_dir = FileType::from_raw_mode(source.st_mode) == FileType::Directory;
    if !is_dir {
        return Err(Errno::XDEV);
    }
    let replaced = take_away(&to)?;
    let placed = tree::place(dirs, [&from.name, &to.name]);
    if placed.is_err()
        && let Some(mode) = replaced
    {
        mkdirat(&to.dir, &to.name, mode).map_err(|_| Errno::IO)?;
    }
    placed
}

/// Two things of which one at least is a directory take each other's name, by way of a third
/// one. Where that fails all is as it was, or it says `EIO`.
fn exchanged(dirs: [BorrowedFd<'_>; 2], names: [&CStr; 2]) -> rustix::io::Result<()> {
    let [from_dir, to_dir] = dirs;
    let [from, to] = names;
    let own = std::process::id();
    let mut spare = CString::default();
    let mut put_aside = Err(Errno::XDEV);
    for number in 0..SPARE_NAMES {
        spare = CString::new(format!(".exchanged-{own}-{number}")).map_err(|_| Errno::INVAL)?;
        put_aside = placed([from_dir, from_dir], [from, &spare]);
        if put_aside != Err(Errno::EXIST) {
            break;
        }
    }
    put_aside.map_err(|errno| {
        if errno == Errno::EXIST {
            Errno::XDEV
        } else {
            errno
        }
    })?;
    let back = |_| Errno::IO;
    if let Err(errno) = placed([to_dir, from_dir], [to, from]) {
        placed([from_dir, from_dir], [&spare, from]).map_err(back)?;
        return Err(errno);
    }
    if let Err(errno) = placed([from_dir, to_dir], [&spare, to]) {
        placed([from_dir, to_dir], [from, to]).map_err(back)?;
        placed([from_dir, from_dir], [&spare, from]).map_err(back)?;
        return Err(errno);
    }
    Ok(())
}

/// Gives something a name that nothing has: by the kernel, or where that moves no directory
/// by moving what is in it.
fn placed(dirs: [BorrowedFd<'_>; 2], names: [&CStr; 2]) -> rustix::io::Result<()> {
    match renamed(dirs, names, NO_REPLACE) {
        Err(Errno::XDEV) => tree::place(dirs, names),
        answered => answered,
    }
}

/// renameat2 as the kernel does it.
fn renamed(dirs: [BorrowedFd<'_>; 2], names: [&CStr; 2], flags: u32) -> rustix::io::Result<()> {
    rename_unheard(dirs, names, flags).map_err(|error| errno_of(&error))
}

/// linkat as the kernel does it.
fn linked(dirs: [BorrowedFd<'_>; 2], names: [&CStr; 2]) -> rustix::io::Result<()> {
    link_unheard(dirs, names).map_err(|error| errno_of(&error))
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw_os_error(error.raw_os_error().unwrap_or_default())
}

/// The directory in which this is a name, unless it is none.
fn named(end: &End) -> rustix::io::Result<Option<Named>> {
    let path = end.path.as_bytes();
    let length = path.iter().rposition(|byte| *byte != b'/');
    let length = length.map_or(0, |last| last.saturating_add(1));
    let (path, slashes) = path.split_at_checked(length).unwrap_or_default();
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => path.split_at(at.saturating_add(1)),
        None => (&b"."[..], path),
    };
    if matches!(name, b"" | b"." | b"..") {
        return Ok(None);
    }
    // Links of /proc lead to what is this process' own, and not the command's.
    let dir = openat2(
        &end.base,
        parent,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
    .map_err(|errno| match errno {
        Errno::LOOP => Errno::XDEV,
        other => other,
    })?;
    let spelled = CString::new([name, slashes].concat()).map_err(|_| Errno::INVAL)?;
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    Ok(Some(Named { dir, name, spelled }))
}

/// Which mount this lies on. Two views are two mounts.
fn mount(dir: &OwnedFd) -> rustix::io::Result<u64> {
    Ok(statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// Removes the empty directory that is to be replaced, and tells its mode, if there is one.
fn take_away(to: &Named) -> rustix::io::Result<Option<Mode>> {
    let found = match statat(&to.dir, &to.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    unlinkat(&to.dir, &to.name, AtFlags::REMOVEDIR)?;
    Ok(Some(Mode::from_raw_mode(found.st_mode)))
}
