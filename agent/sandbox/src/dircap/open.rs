//! Opening below a directory, with the kernel checking containment.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::FsError;

/// How often a lookup is tried that the kernel could not finish because
/// somebody renames directories at the same time.
const TRIES_MAX: u32 = 128;

/// What a symbolic link on the way does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// It is followed as long as it stays below the root.
    Follow,
    /// It ends the lookup.
    Refuse,
}

/// Opens `path` below `dir`.
pub(crate) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, FsError> {
    let flags = flags | OFlags::CLOEXEC;
    if fault::is(Fault::DirCapFollowsLinks) || fault::is(Fault::DirCapAllowsDotDot) {
        return rustix::fs::openat(dir, path.as_bytes(), flags, Mode::empty())
            .map_err(|errno| FsError::io("open", path, errno));
    }
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    if links == Links::Refuse {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    match try_open(dir, path, flags, resolve) {
        Ok(fd) => Ok(fd),
        // Without links there is nothing else that could lead across; and whoever serves what
        // is mounted there is not asked.
        Err(Errno::XDEV) if links == Links::Refuse => {
            Err(FsError::denied(DenialCode::MountCrossing, path))
        }
        Err(Errno::XDEV) => {
            // Two answers share the number: outside, and on another mount.
            let inside = try_open(
                dir,
                path,
                OFlags::PATH | OFlags::CLOEXEC,
                resolve - ResolveFlags::NO_XDEV,
            );
            let code = match inside {
                Ok(_) => DenialCode::MountCrossing,
                Err(_) => DenialCode::OutsideRoot,
            };
            Err(FsError::denied(code, path))
        }
        Err(Errno::LOOP) if links == Links::Refuse => {
            Err(FsError::denied(DenialCode::SymlinkRefused, path))
        }
        Err(Errno::NXIO) => Err(FsError::denied(DenialCode::NotRegularFile, path)),
        Err(errno) => Err(FsError::io("open", path, errno)),
    }
}

/// No link on the way is followed: somebody else may have put it there.
const WITHOUT_LINKS: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS);

/// Whether a directory below `dir` is on another mount.
pub(crate) fn is_mounted(dir: BorrowedFd<'_>, path: &RelPath) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match try_open(dir, path, flags, WITHOUT_LINKS | ResolveFlags::NO_XDEV) {
        Ok(_) => Ok(false),
        // Whether it is there, and one, is asked of that mount.
        Err(Errno::XDEV) => try_open(dir, path, flags, WITHOUT_LINKS).map(|_| true),
        Err(errno) => Err(errno),
    }
}

/// Opens a directory below `dir`, on whichever mount it is.
pub(crate) fn open_mounted(dir: BorrowedFd<'_>, path: &RelPath) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    try_open(dir, path, flags, WITHOUT_LINKS)
}

fn try_open(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path.as_bytes(), flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => tries += 1,
            other => return other,
        }
    }
}

/// Opens a regular file for reading, and nothing else.
pub(crate) fn open_file(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    links: Links,
) -> Result<(OwnedFd, Stat), FsError> {
    // NONBLOCK: a pipe without a writer would block the open for ever.
    let fd = open_beneath(
        dir,
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
        links,
    )?;
    let stat = rustix::fs::fstat(&fd).map_err(|errno| FsError::io("stat", path, errno))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        Ok((fd, stat))
    } else {
        Err(FsError::denied(DenialCode::NotRegularFile, path))
    }
}

/// Opens the directory a name lies in, refusing links on the way.
pub(crate) fn open_parent(
    dir: BorrowedFd<'_>,
    path: &RelPath,
) -> Result<(OwnedFd, Vec<u8>), FsError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FsError::denied(DenialCode::NotRegularFile, path));
    };
    let fd = open_beneath(
        dir,
        &parent,
        OFlags::RDONLY | OFlags::DIRECTORY,
        Links::Refuse,
    )?;
    Ok((fd, name.to_vec()))
}

/// What lies under a name, links not followed; `None` if nothing does.
pub(crate) fn stat_name(
    parent: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Option<Stat>, FsError> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(FsError::io("stat", path, errno)),
    }
}

/// Reads a file to its end; longer than `bytes_max` is an error.
pub(crate) fn read_all(fd: impl AsFd, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Most files are short; a large buffer costs more than reading them.
    let mut buffer = vec![0_u8; 4 * 1024];
    loop {
        match rustix::io::read(fd.as_fd(), &mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
                if count == buffer.len() {
                    buffer.resize(64 * 1024, 0);
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if bytes.len() > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

/// Reads a regular file whose facts are known to its end; longer than
/// `bytes_max` is an error.
pub(crate) fn read_file(fd: impl AsFd, stat: &Stat, bytes_max: usize) -> io::Result<Vec<u8>> {
    /// Up to this length a file is read in one go.
    const AT_ONCE_MAX: usize = 256 * 1024;
    let length = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    if length > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // What the kernel makes up says that it is empty.
    if length == 0 || length > AT_ONCE_MAX {
        return read_all(fd, bytes_max);
    }
    // One byte more than there should be: whoever gets exactly the length is
    // at the end, and does not have to ask again.
    let mut bytes = vec![0_u8; length + 1];
    let count = loop {
        match rustix::io::read(fd.as_fd(), &mut bytes) {
            Err(Errno::INTR) => {}
            read => break read?,
        }
    };
    bytes.truncate(count);
    if count != length {
        // It has changed since, or it says something else than it holds.
        bytes.extend(read_all(fd, bytes_max.saturating_sub(count))?);
    }
    Ok(bytes)
}

/// Writes everything.
pub(crate) fn write_all(fd: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd.as_fd(), bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Whether the kernel refuses to leave a directory when told to; tried once.
pub(crate) fn kernel_contains_paths() -> bool {
    static CONTAINS: OnceLock<bool> = OnceLock::new();
    *CONTAINS.get_or_init(try_to_leave)
}

fn try_to_leave() -> bool {
    let Ok(root) = rustix::fs::open(
        "/proc/self",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return false;
    };
    let open = |path: &str| {
        rustix::fs::openat2(
            &root,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_MAGICLINKS,
        )
    };
    open("status").is_ok() && matches!(open("../stat"), Err(rustix::io::Errno::XDEV))
}
