//! Replacing a file so that nobody ever sees half of it.
//!
//! The new content is written to a file without a name, where the file system has such
//! (`O_TMPFILE`), is flushed, gets a temporary name in the same directory, and is swapped in by
//! one rename. So whoever is killed while it writes leaves nothing there; the temporary name is
//! left by a kill between two system calls. Where the caller says what the file
//! held when it was shown, the swap is an exchange: what comes out is compared,
//! and put back if it is something else, so no version is ever lost.
//!
//! Its access list (POSIX ACL) goes with its mode, or the mode would let others in.
//! Not kept: extended attributes and hard links of the old file.

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::FsError;
use super::access_lists::{give_list, list_of};
use super::open::{open_parent, read_all, stat_name, write_all};
use crate::digest::{digest_file, sha256};

/// How the temporary files of a write begin.
pub const TEMPORARY_PREFIX: &str = ".hermitcrab-";

/// How often a version that came out of a swap is put back.
const PUT_BACK_TRIES_MAX: u32 = 64;

/// What must be there for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nothing.
    Absent,
    /// A regular file, whatever it holds.
    AnyFile,
    /// A regular file with this content.
    Content(Digest),
}

/// Who wants what is displaced, in a directory under a name; says whether the name is free.
pub(super) type Keeper<'a> = Option<&'a mut dyn FnMut(BorrowedFd<'_>, &[u8]) -> bool>;

/// Puts `content` under `path`; the facts about the new file.
pub(super) fn write(
    dir: BorrowedFd<'_>,
    path: &RelPath,
    content: &[u8],
    base: Base,
    mode: Option<u32>,
    keeper: Keeper<'_>,
) -> Result<Stat, FsError> {
    if fault::is(Fault::WriteFollowsSymlink) {
        return write_through(dir, path, content);
    }
    let (parent, name) = open_parent(dir, path)?;
    let old = stat_name(parent.as_fd(), &name, path)?;
    check_old(old.as_ref(), base, path)?;
    let old = match old {
        Some(stat) => {
            let list = list_of(&parent, &name)
                .map_err(|errno| FsError::io("read the access list of", path, errno))?;
            Some(Old { stat, list })
        }
        None => None,
    };
    super::append_only::names_can_change(&parent, path)?;
    let (temporary, stat) = Temporary::write(&parent, path, content, old.as_ref(), mode)?;
    let at = Place {
        parent: parent.as_fd(),
        name: &name,
        path,
    };
    match base {
        Base::Absent => temporary.rename(&at, RenameFlags::NOREPLACE)?,
        Base::AnyFile => temporary.rename(&at, RenameFlags::empty())?,
        Base::Content(digest) => temporary.exchange(&at, digest, keeper)?,
    }
    rustix::fs::fsync(&parent).map_err(|errno| FsError::io("sync directory", path, errno))?;
    Ok(stat)
}

fn check_old(old: Option<&Stat>, base: Base, path: &RelPath) -> Result<(), FsError> {
    let kind = old.map(|stat| FileType::from_raw_mode(stat.st_mode));
    match (kind, base) {
        (Some(FileType::Symlink), _) => Err(FsError::denied(DenialCode::SymlinkRefused, path)),
        (None, Base::Absent) | (Some(FileType::RegularFile), Base::AnyFile | Base::Content(_)) => {
            Ok(())
        }
        (Some(FileType::RegularFile), Base::Absent) | (None, Base::AnyFile | Base::Content(_)) => {
            Err(FsError::denied(DenialCode::ChangedSinceShown, path))
        }
        (Some(_), _) => Err(FsError::denied(DenialCode::NotRegularFile, path)),
    }
}

/// Whose place is taken.
struct Old {
    stat: Stat,
    /// Whom it lets in, beside what its mode says.
    list: Option<Vec<u8>>,
}

/// A name in an open directory.
struct Place<'a> {
    parent: BorrowedFd<'a>,
    name: &'a [u8],
    path: &'a RelPath,
}

/// Bits a file keeps when its content is replaced. New content is lent nobody's
/// rights: write(2) takes set-user-id and set-group-id away as well.
const KEPT_MODE: u32 = 0o1777;

/// A finished file under a temporary name; removed unless it was renamed.
struct Temporary<'a> {
    parent: &'a OwnedFd,
    name: Option<Vec<u8>>,
}

impl<'a> Temporary<'a> {
    fn write(
        parent: &'a OwnedFd,
        path: &RelPath,
        content: &[u8],
        old: Option<&Old>,
        mode: Option<u32>,
    ) -> Result<(Self, Stat), FsError> {
        if let Some(file) = nameless(parent) {
            filled(&file, path, content, old, mode)?;
            // Where it cannot be given a name it is gone with its descriptor.
            if let Some(name) = named(&file, parent) {
                let temporary = Self {
                    parent,
                    name: Some(name),
                };
                return Ok((temporary, facts(&file, path)?));
            }
        }
        let name = temporary_name().map_err(|source| FsError::Io {
            operation: "name a temporary file for",
            path: path.clone(),
            source,
        })?;
        let file = rustix::fs::openat(
            parent,
            name.as_slice(),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| FsError::io("create a temporary file for", path, errno))?;
        let temporary = Self {
            parent,
            name: Some(name),
        };
        filled(&file, path, content, old, mode)?;
        Ok((temporary, facts(&file, path)?))
    }

    fn rename(mut self, at: &Place<'_>, flags: RenameFlags) -> Result<(), FsError> {
        let name = self.name.clone().unwrap_or_default();
        match rustix::fs::renameat_with(self.parent, name.as_slice(), at.parent, at.name, flags) {
            Ok(()) => {
                self.name = None;
                Ok(())
            }
            Err(Errno::EXIST) => Err(FsError::denied(DenialCode::ChangedSinceShown, at.path)),
            Err(errno) => Err(FsError::io("rename", at.path, errno)),
        }
    }

    /// Swaps, looks at what came out, and swaps back if it is not `base`.
    fn exchange(mut self, at: &Place<'_>, base: Digest, keeper: Keeper<'_>) -> Result<(), FsError> {
        let name = self.name.clone().unwrap_or_default();
        let mut put_in = self.version(&name, at)?;
        self.swap(&name, at)?;
        // From here on the temporary name may hold somebody's version: it is
        // removed only when that is known to be overtaken.
        let kept = self.name.take();
        let mut out = self.version(&name, at)?;
        if out.digest == Some(base) {
            // What is displaced is the version that was shown: let it go.
            let is_taken = keeper.is_some_and(|keep| keep(self.parent.as_fd(), &name));
            self.name = kept.filter(|_| !is_taken);
            return Ok(());
        }
        // Somebody may save between two swaps; then that version comes out in
        // place of what was put in, is the newest, and must go back in turn.
        // What stays behind has been overtaken by what is in place.
        for _ in 0..PUT_BACK_TRIES_MAX {
            let putting_back = out;
            match self.swap(&name, at) {
                Ok(()) => {}
                // Nothing is in place any more: whoever removed it overtook this, too.
                Err(FsError::Denied(denial)) => {
                    self.name = kept;
                    return Err(FsError::Denied(denial));
                }
                Err(_) => break,
            }
            out = self.version(&name, at)?;
            if out == put_in {
                self.name = kept;
                return Err(FsError::denied(DenialCode::ChangedSinceShown, at.path));
            }
            put_in = putting_back;
        }
        Err(FsError::Io {
            operation: "put back",
            path: at.path.clone(),
            source: io::Error::other(format!(
                "it changes all the time; the last version seen is kept as `{}` beside it",
                String::from_utf8_lossy(&name)
            )),
        })
    }

    fn swap(&self, name: &[u8], at: &Place<'_>) -> Result<(), FsError> {
        match rustix::fs::renameat_with(
            self.parent,
            name,
            at.parent,
            at.name,
            RenameFlags::EXCHANGE,
        ) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Err(FsError::denied(DenialCode::ChangedSinceShown, at.path)),
            Err(errno) => Err(FsError::io("exchange", at.path, errno)),
        }
    }

    /// What the temporary name stands for: the file, and the digest of its
    /// content if it is a regular one. The number alone would not do, because
    /// a file made after another was removed may get its number.
    fn version(&self, name: &[u8], at: &Place<'_>) -> Result<Version, FsError> {
        let stat = rustix::fs::statat(self.parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| FsError::io("stat", at.path, errno))?;
        let digest = crate::dircap::open_plain(self.parent, name)
            .and_then(|file| digest_file(&file))
            .ok()
            .map(|(digest, _)| digest);
        Ok(Version {
            file: (stat.st_dev, stat.st_ino),
            digest,
        })
    }
}

/// A file that is in no directory yet, and on the file system of this one; `None` where there
/// are none such.
fn nameless(parent: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::openat(parent, ".", flags, Mode::RUSR | Mode::WUSR).ok()
}

/// The temporary name such a file got; `None` where it cannot get any.
fn named(file: &OwnedFd, parent: &OwnedFd) -> Option<Vec<u8>> {
    let name = temporary_name().ok()?;
    // By its descriptor alone only root may.
    let way = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(rustix::fs::CWD, way, parent, name.as_slice(), flags).ok()?;
    Some(name)
}

/// Writes all of a new file, and has it on the disk.
fn filled(
    file: &OwnedFd,
    path: &RelPath,
    content: &[u8],
    old: Option<&Old>,
    mode: Option<u32>,
) -> Result<(), FsError> {
    write_all(file, content).map_err(|source| FsError::Io {
        operation: "write",
        path: path.clone(),
        source,
    })?;
    if let Some(old) = old {
        keep_owner(file, &old.stat);
        give_list(file.as_fd(), old.list.as_deref())
            .map_err(|errno| FsError::io("keep the access list of", path, errno))?;
    }
    let mode = mode
        .or_else(|| old.map(|old| old.stat.st_mode & KEPT_MODE))
        .unwrap_or(0o644);
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
        .map_err(|errno| FsError::io("set the mode of", path, errno))?;
    rustix::fs::fsync(file).map_err(|errno| FsError::io("sync", path, errno))
}

fn facts(file: &OwnedFd, path: &RelPath) -> Result<Stat, FsError> {
    rustix::fs::fstat(file).map_err(|errno| FsError::io("stat", path, errno))
}

/// One version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    file: (u64, u64),
    digest: Option<Digest>,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Nothing refers to it; a leftover is a nuisance, not a danger.
            let removed = rustix::fs::unlinkat(self.parent, name.as_slice(), AtFlags::empty());
            if removed == Err(Errno::ISDIR) {
                // What came out of a swap; only an empty one goes.
                let _gone = rustix::fs::unlinkat(self.parent, name.as_slice(), AtFlags::REMOVEDIR);
            }
        }
    }
}

/// Root replaces files of others; they stay theirs.
fn keep_owner(file: &OwnedFd, old: &Stat) {
    let Ok(new) = rustix::fs::fstat(file) else {
        return;
    };
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        // An ordinary user cannot; the file is then theirs, as with any editor.
        let _kept = rustix::fs::fchown(
            file,
            Some(rustix::fs::Uid::from_raw(old.st_uid)),
            Some(rustix::fs::Gid::from_raw(old.st_gid)),
        );
    }
}

/// A name nobody can predict, so nobody can put something there first.
pub(crate) fn temporary_name() -> io::Result<Vec<u8>> {
    let mut random = [0_u8; 12];
    let mut filled = 0;
    while let Some(rest) = random.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled = filled.saturating_add(rustix::rand::getrandom(
            rest,
            rustix::rand::GetRandomFlags::empty(),
        )?);
    }
    let mut name = String::from(TEMPORARY_PREFIX);
    for byte in random {
        // Writing to a String cannot fail.
        let _written = write!(name, "{byte:02x}");
    }
    Ok(name.into_bytes())
}

/// Adds to the end, as one replacement of the whole file.
pub(super) fn append(dir: BorrowedFd<'_>, path: &RelPath, more: &[u8]) -> Result<(), FsError> {
    const TRIES_MAX: u32 = 8;
    let mut tries = 0;
    loop {
        let (file, _stat) = super::open::open_file(dir, path, super::open::Links::Refuse)?;
        let mut content = read_all(&file, usize::MAX).map_err(|source| FsError::Io {
            operation: "read",
            path: path.clone(),
            source,
        })?;
        let base = Base::Content(sha256(&content));
        content.extend_from_slice(more);
        match write(dir, path, &content, base, None, None) {
            Err(FsError::Denied(denial))
                if denial.code() == DenialCode::ChangedSinceShown && tries < TRIES_MAX =>
            {
                tries += 1;
            }
            other => return other.map(drop),
        }
    }
}

/// The planted fault: what a careless implementation does.
fn write_through(dir: BorrowedFd<'_>, path: &RelPath, content: &[u8]) -> Result<Stat, FsError> {
    let file = rustix::fs::openat(
        dir,
        path.as_bytes(),
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o644),
    )
    .map_err(|errno| FsError::io("open", path, errno))?;
    write_all(&file, content).map_err(|source| FsError::Io {
        operation: "write",
        path: path.clone(),
        source,
    })?;
    rustix::fs::fstat(&file).map_err(|errno| FsError::io("stat", path, errno))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_being_written_is_in_no_directory_until_all_of_it_is() {
        let place = tempfile::tempdir().unwrap();
        let parent = OwnedFd::from(std::fs::File::open(place.path()).unwrap());
        let path = RelPath::parse(b"a").unwrap();
        let Some(file) = nameless(&parent) else {
            println!("SKIPPED: no file without a name can be made in {place:?}");
            return;
        };
        let names = || std::fs::read_dir(place.path()).unwrap().count();
        filled(&file, &path, b"whole\n", None, Some(0o640)).unwrap();
        assert_eq!(names(), 0);
        let name = named(&file, &parent).unwrap();
        assert!(name.starts_with(TEMPORARY_PREFIX.as_bytes()));
        assert_eq!((names(), facts(&file, &path).unwrap().st_nlink), (1, 1));
        let at = place.path().join(String::from_utf8(name).unwrap());
        assert_eq!(std::fs::read(&at).unwrap(), b"whole\n");
        let mode = std::fs::metadata(&at).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
    }
}
