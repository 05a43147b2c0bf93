//! From the private layer of an overlay to a list of changes.
//!
//! The layer holds what was written, a character device 0:0 for each deleted
//! name, and a mark on directories that hide everything below them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::{Change, ChangeSetError, What};
use crate::digest::digest_file;
use crate::dircap::{Kind, list_dir, open_plain};

/// The mark, as overlayfs writes it in a user namespace.
const OPAQUE: &str = "user.overlay.opaque";
/// Deeper than any path the kernel accepts.
const DEPTH_MAX: usize = 2048;

pub(super) fn scan(
    upper: BorrowedFd<'_>,
    lower: BorrowedFd<'_>,
    bytes_max: u64,
    started: Timespec,
) -> Result<(Vec<Change>, Option<RelPath>), ChangeSetError> {
    let mut found = Found {
        replaced: Vec::new(),
        dirs: Vec::new(),
        files: Vec::new(),
        deleted: Vec::new(),
        modes: Vec::new(),
        bytes_left: bytes_max,
        started,
        overtaken: None,
    };
    let root = RelPath::root();
    compare_modes(
        &stat_fd(upper, &root)?,
        &stat_fd(lower, &root)?,
        &root,
        &mut found,
    );
    merged(upper, Some(lower), &root, 0, &mut found)?;
    let overtaken = found.overtaken.take();
    Ok((found.in_order(), overtaken))
}

/// Changes by the moment at which they are applied.
struct Found {
    /// Deletions of names that come back as something else, deepest first.
    replaced: Vec<Change>,
    /// New directories, outermost first.
    dirs: Vec<Change>,
    /// Everything else that is new or different.
    files: Vec<Change>,
    /// Deletions, deepest first.
    deleted: Vec<Change>,
    /// Modes, which may make a directory unusable, last.
    modes: Vec<Change>,
    /// How long the files still to come may be together.
    bytes_left: u64,
    /// When the command had seen nothing yet.
    started: Timespec,
    /// A file that changed after that.
    overtaken: Option<RelPath>,
}

impl Found {
    /// Notes a file of the lower layer that is not the one the command saw.
    /// Its kernel stamps every change of content, name or mode.
    fn note_age(&mut self, old: &Stat, path: &RelPath) {
        let started = (self.started.tv_sec, self.started.tv_nsec);
        let nanos = i64::try_from(old.st_ctime_nsec).unwrap_or(0);
        if (old.st_ctime, nanos) > started && kind_of(old) != Kind::Dir {
            self.overtaken.get_or_insert_with(|| path.clone());
        }
    }
}

impl Found {
    fn in_order(self) -> Vec<Change> {
        let mut all = self.replaced;
        all.extend(self.dirs);
        all.extend(self.files);
        all.extend(self.deleted);
        all.extend(self.modes);
        all
    }
}

/// Compares a directory of the layer with the one below it, if there is one.
fn merged(
    upper: BorrowedFd<'_>,
    lower: Option<BorrowedFd<'_>>,
    path: &RelPath,
    depth: usize,
    found: &mut Found,
) -> Result<(), ChangeSetError> {
    if depth > DEPTH_MAX {
        return Err(failed("descend into", path, io::ErrorKind::FileTooLarge));
    }
    let entries = list_dir(upper).map_err(|error| failed("list", path, error))?;
    for entry in &entries {
        let child = path
            .child(&entry.name)
            .map_err(|error| failed("name", path, io::Error::other(error.to_string())))?;
        one(upper, lower, &entry.name, &child, depth, found)?;
    }
    if let Some(lower) = lower
        && is_opaque(upper, path)?
    {
        // Whatever is not here again is gone.
        for entry in list_dir(lower).map_err(|error| failed("list", path, error))? {
            if entries.iter().all(|kept| kept.name != entry.name) {
                let child = path
                    .child(&entry.name)
                    .map_err(|error| failed("name", path, io::Error::other(error.to_string())))?;
                deleted(lower, &entry.name, &child, depth, Gone::ForGood, found)?;
            }
        }
    }
    Ok(())
}

fn one(
    upper: BorrowedFd<'_>,
    lower: Option<BorrowedFd<'_>>,
    name: &[u8],
    path: &RelPath,
    depth: usize,
    found: &mut Found,
) -> Result<(), ChangeSetError> {
    let Some(new) = stat_name(upper, name, path)? else {
        return Err(failed("find", path, io::ErrorKind::NotFound));
    };
    let old = match lower {
        Some(lower) => stat_name(lower, name, path)?,
        None => None,
    };
    if is_whiteout(&new) {
        if let (Some(lower), Some(_)) = (lower, &old) {
            deleted(lower, name, path, depth, Gone::ForGood, found)?;
        }
        return Ok(());
    }
    let old = match (lower, old) {
        (Some(lower), Some(old)) if kind_of(&old) != kind_of(&new) || is_link_or_special(&new) => {
            if kind_of(&new) == Kind::Symlink && kind_of(&old) == Kind::Symlink {
                let same = read_link(upper, name, path)? == read_link(lower, name, path)?;
                if same {
                    return Ok(());
                }
            }
            deleted(lower, name, path, depth, Gone::Replaced, found)?;
            None
        }
        (Some(lower), Some(old)) => Some((lower, old)),
        _ => None,
    };
    match kind_of(&new) {
        Kind::File => file(upper, name, path, &new, old, found),
        Kind::Dir => {
            unlock(upper, name, &new, path)?;
            let upper_dir = open_dir(upper, name, path)?;
            match old {
                Some((lower, old)) => {
                    let lower_dir = open_dir(lower, name, path)?;
                    compare_modes(&new, &old, path, found);
                    merged(
                        upper_dir.as_fd(),
                        Some(lower_dir.as_fd()),
                        path,
                        depth.saturating_add(1),
                        found,
                    )
                }
                None => {
                    found.dirs.push(Change {
                        path: path.clone(),
                        what: What::CreatedDir {
                            mode: mode_of(&new),
                        },
                    });
                    merged(
                        upper_dir.as_fd(),
                        None,
                        path,
                        depth.saturating_add(1),
                        found,
                    )
                }
            }
        }
        Kind::Symlink => {
            found.files.push(Change {
                path: path.clone(),
                what: What::CreatedSymlink {
                    target: read_link(upper, name, path)?,
                },
            });
            Ok(())
        }
        Kind::Special => {
            found.files.push(Change {
                path: path.clone(),
                what: What::CreatedSpecial,
            });
            Ok(())
        }
    }
}

fn file(
    upper: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
    new: &Stat,
    old: Option<(BorrowedFd<'_>, Stat)>,
    found: &mut Found,
) -> Result<(), ChangeSetError> {
    found.bytes_left = u64::try_from(new.st_size)
        .ok()
        .and_then(|bytes| found.bytes_left.checked_sub(bytes))
        .ok_or_else(|| {
            let error = io::Error::other("the files are longer together than the view can hold");
            failed("read", path, error)
        })?;
    unlock(upper, name, new, path)?;
    let (digest, bytes) = digest_of(upper, name, path)?;
    let mode = mode_of(new);
    let what = match old {
        None => What::CreatedFile {
            digest,
            bytes,
            mode,
        },
        Some((lower, old)) => {
            found.note_age(&old, path);
            let base = base_of(lower, name, path)?;
            if base == digest {
                compare_modes(new, &old, path, found);
                return Ok(());
            }
            What::ModifiedFile {
                base,
                digest,
                bytes,
                mode_before: mode_of(&old),
                mode: if fault::is(Fault::ChangeSetMissesMetadata) {
                    mode_of(&old)
                } else {
                    mode
                },
            }
        }
    };
    found.files.push(Change {
        path: path.clone(),
        what,
    });
    Ok(())
}

fn compare_modes(new: &Stat, old: &Stat, path: &RelPath, found: &mut Found) {
    let (before, mode) = (mode_of(old), mode_of(new));
    if before != mode && !fault::is(Fault::ChangeSetMissesMetadata) {
        found.modes.push(Change {
            path: path.clone(),
            what: What::ModifiedMode { before, mode },
        });
    }
}

/// Whether something else comes in the place of a deleted name.
#[derive(Clone, Copy)]
enum Gone {
    Replaced,
    ForGood,
}

/// Everything below a deleted name, then the name itself.
fn deleted(
    lower: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
    depth: usize,
    gone: Gone,
    found: &mut Found,
) -> Result<(), ChangeSetError> {
    if fault::is(Fault::ChangeSetMissesDeletes) {
        return Ok(());
    }
    if depth > DEPTH_MAX {
        return Err(failed("descend into", path, io::ErrorKind::FileTooLarge));
    }
    let Some(old) = stat_name(lower, name, path)? else {
        return Ok(());
    };
    found.note_age(&old, path);
    let what = match kind_of(&old) {
        Kind::File => What::DeletedFile {
            base: base_of(lower, name, path)?,
        },
        Kind::Symlink => What::DeletedSymlink {
            target: read_link(lower, name, path)?,
        },
        Kind::Special => What::DeletedSpecial,
        Kind::Dir => {
            let dir = open_dir(lower, name, path)?;
            for entry in list_dir(&dir).map_err(|error| failed("list", path, error))? {
                let child = path
                    .child(&entry.name)
                    .map_err(|error| failed("name", path, io::Error::other(error.to_string())))?;
                deleted(
                    dir.as_fd(),
                    &entry.name,
                    &child,
                    depth.saturating_add(1),
                    gone,
                    found,
                )?;
            }
            What::DeletedDir
        }
    };
    let change = Change {
        path: path.clone(),
        what,
    };
    match gone {
        Gone::Replaced => found.replaced.push(change),
        Gone::ForGood => found.deleted.push(change),
    }
    Ok(())
}

/// Reads a regular file below `dir`, following nothing.
pub(super) fn read_below(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    bytes_max: usize,
) -> io::Result<Vec<u8>> {
    let mut names: Vec<&[u8]> = path.components().collect();
    let name = names.pop().ok_or(io::ErrorKind::IsADirectory)?;
    let mut here = dir.try_clone_to_owned()?;
    for name in names {
        here = rustix::fs::openat(&here, name, DIR_FLAGS, Mode::empty())?;
    }
    crate::dircap::read_plain(&here, name, bytes_max)
}

const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn is_opaque(upper: BorrowedFd<'_>, path: &RelPath) -> Result<bool, ChangeSetError> {
    let mut value = [0_u8; 8];
    match rustix::fs::fgetxattr(upper, OPAQUE, &mut value) {
        Ok(length) => Ok(value.get(..length) == Some(b"y".as_slice())),
        Err(Errno::NODATA) => Ok(false),
        Err(errno) => Err(failed("read the marks of", path, errno)),
    }
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_link_or_special(stat: &Stat) -> bool {
    matches!(kind_of(stat), Kind::Symlink | Kind::Special)
}

fn kind_of(stat: &Stat) -> Kind {
    Kind::from(FileType::from_raw_mode(stat.st_mode))
}

fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

fn stat_fd(dir: BorrowedFd<'_>, path: &RelPath) -> Result<Stat, ChangeSetError> {
    rustix::fs::fstat(dir).map_err(|errno| failed("stat", path, errno))
}

fn stat_name(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Option<Stat>, ChangeSetError> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failed("stat", path, errno)),
    }
}

fn open_dir(dir: BorrowedFd<'_>, name: &[u8], path: &RelPath) -> Result<OwnedFd, ChangeSetError> {
    rustix::fs::openat(dir, name, DIR_FLAGS, Mode::empty())
        .map_err(|errno| failed("open", path, errno))
}

fn digest_of(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<(Digest, u64), ChangeSetError> {
    open_plain(dir, name)
        .and_then(|file| digest_file(&file))
        .map_err(|error| failed("read", path, error))
}

/// The digest of what the command saw; [`Digest::NONE`] if only its owner's
/// next chmod would make it readable.
fn base_of(lower: BorrowedFd<'_>, name: &[u8], path: &RelPath) -> Result<Digest, ChangeSetError> {
    match open_plain(lower, name) {
        Ok(file) => digest_file(&file)
            .map(|(digest, _)| digest)
            .map_err(|error| failed("read", path, error)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Digest::NONE),
        Err(error) => Err(failed("read", path, error)),
    }
}

/// Makes something in the private layer readable to the agent, whatever mode
/// the command gave it. The mode was noted before; nobody else sees the layer.
fn unlock(
    upper: BorrowedFd<'_>,
    name: &[u8],
    stat: &Stat,
    path: &RelPath,
) -> Result<(), ChangeSetError> {
    let mode = Mode::from_raw_mode(mode_of(stat));
    let wanted = match kind_of(stat) {
        Kind::Dir => mode | Mode::RUSR | Mode::XUSR,
        Kind::File | Kind::Symlink | Kind::Special => mode | Mode::RUSR,
    };
    if wanted == mode {
        return Ok(());
    }
    let file = rustix::fs::openat(
        upper,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| failed("open", path, errno))?;
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    rustix::fs::chmod(itself, wanted).map_err(|errno| failed("unlock", path, errno))
}

fn read_link(dir: BorrowedFd<'_>, name: &[u8], path: &RelPath) -> Result<Vec<u8>, ChangeSetError> {
    rustix::fs::readlinkat(dir, name, Vec::new())
        .map(std::ffi::CString::into_bytes)
        .map_err(|errno| failed("read the link", path, errno))
}

fn failed(operation: &'static str, path: &RelPath, source: impl Into<io::Error>) -> ChangeSetError {
    ChangeSetError {
        operation,
        path: path.to_string(),
        source: source.into(),
    }
}
