//! A private copy of a directory, for a view over which no overlay can be mounted.
//!
//! What for: a machine without overlayfs for users still shows what a command
//! did before it happens. Names that are one file stay one file, holes stay
//! holes, modes, times and the user's attributes are kept; where both places
//! share blocks, no content is copied. Runs in the sandbox's first process, or, where
//! owners have to be translated, in one of root's that gave up what that does not take.
//!
//! It must never follow a link or enter another mount, never copy more than
//! its ceiling, and never leave out a name without writing that down. What belongs to
//! nobody in the sandbox must never come to belong to the command.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::access;
use super::copied::{Copied, Seen};
use super::node::{
    ACCESS_LISTS, Xattrs, is_closed, kind_of, mode_of, open_dir, too_deep, xattrs_of,
};
use crate::digest::copy_file;
use crate::dircap::{DEPTH_MAX, DIR_FLAGS, Kind, list_dir, open_plain};
use crate::identity::Identity;

/// How much longer files may be together than their data, because of holes.
const HOLES_FACTOR: u64 = 8;
/// Bits that lend an owner's or group's rights to whoever starts a file.
const SET_IDS: u32 = 0o6000;
/// What a block of st_blocks is.
const BLOCK_BYTES: u64 = 512;
/// How often the clock is looked at until it has moved on.
const TICK: Duration = Duration::from_millis(1);

/// What a copy may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ceiling {
    /// Of data in files.
    pub bytes: u64,
    pub names: u64,
}

/// Whose the names of a copy are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owners<'a> {
    /// Those of the originals, where whoever copies can give them away.
    Kept,
    /// What a mount of the directory with these maps would show. What it shows as
    /// nobody's stays root's, who is nobody in the sandbox.
    Translated(&'a Identity),
}

/// A copy that could not be made: on which name, and why.
#[derive(Debug)]
pub(crate) struct CopyError {
    pub on: String,
    pub source: io::Error,
}

/// Copies what is in `from` into the empty directory `to`.
pub(crate) fn copy(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    ceiling: Ceiling,
    owners: Owners<'_>,
) -> Result<Copied, CopyError> {
    let root = RelPath::root();
    let began = clock_gettime(ClockId::Realtime);
    let mut copy = Copy {
        top: to,
        owners,
        room: Room::of(ceiling),
        attributes: true,
        links: BTreeMap::new(),
        contents: BTreeMap::new(),
        closed: BTreeSet::new(),
    };
    copy.below(from, to, &root, 0)?;
    let stat = rustix::fs::fstat(from).map_err(|errno| failed(&root, errno))?;
    copy.finish(from, to, &stat, &root)?;
    let mut names = BTreeMap::new();
    copy.survey(to, &root, &mut names)?;
    wait_for_the_next_tick();
    Ok(Copied {
        began,
        attributes: copy.attributes,
        names,
    })
}

struct Copy<'a> {
    /// The root of the copy.
    top: BorrowedFd<'a>,
    owners: Owners<'a>,
    room: Room,
    /// Whether attributes can be kept.
    attributes: bool,
    /// Files with several names: where the first one is in the copy.
    links: BTreeMap<(u64, u64), RelPath>,
    /// What each file holds, by its number in the copy.
    contents: BTreeMap<u64, Digest>,
    closed: BTreeSet<RelPath>,
}

impl Copy<'_> {
    fn below(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), CopyError> {
        if depth > DEPTH_MAX {
            return Err(failed(path, too_deep()));
        }
        for entry in list_dir(from).map_err(|error| failed(path, error))? {
            let child = path
                .child(&entry.name)
                .map_err(|error| failed(path, io::Error::other(error.to_string())))?;
            self.one(from, to, &entry.name, &child, depth)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        depth: usize,
    ) -> Result<(), CopyError> {
        self.room.name(path)?;
        let stat = match rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Gone since it was listed: it was not there, then.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(failed(path, errno)),
        };
        let at = |errno: Errno| failed(path, errno);
        match kind_of(&stat) {
            Kind::File => self.file(from, to, name, path, &stat),
            Kind::Dir => {
                rustix::fs::mkdirat(to, name, Mode::RWXU).map_err(at)?;
                let copied = open_dir(to, name).map_err(|error| failed(path, error))?;
                match self.entered(from, name) {
                    Ok((found, stat))
                        if self.is_kept_by_list(found.as_fd(), &stat, 0o5, path)? =>
                    {
                        // Root's, and shown empty to nobody.
                        self.closed.insert(path.clone());
                        rustix::fs::fchmod(&copied, Mode::RWXU).map_err(at)
                    }
                    Ok((found, stat)) => {
                        let deeper = depth.saturating_add(1);
                        self.below(found.as_fd(), copied.as_fd(), path, deeper)?;
                        self.finish(found.as_fd(), copied.as_fd(), &stat, path)
                    }
                    // Another mount, or closed to us: shown empty.
                    Err(Errno::XDEV | Errno::ACCESS | Errno::PERM) => {
                        self.closed.insert(path.clone());
                        let mode = Mode::from_raw_mode(self.mode(&stat));
                        rustix::fs::fchmod(&copied, mode).map_err(at)
                    }
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                        rustix::fs::unlinkat(to, name, AtFlags::REMOVEDIR).map_err(at)
                    }
                    Err(errno) => Err(at(errno)),
                }
            }
            Kind::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new()).map_err(at)?;
                rustix::fs::symlinkat(target.as_c_str(), to, name).map_err(at)?;
                self.keep_facts(to, name, path, &stat)
            }
            Kind::Special => self.special(to, name, path, &stat),
        }
    }

    /// A directory of the original that is copied, judged once it is held: its name may
    /// be another's by then.
    fn entered(&self, from: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<(OwnedFd, Stat)> {
        let found = enter(from, name)?;
        let stat = rustix::fs::fstat(&found)?;
        if self.is_closed_there(&stat, Mode::ROTH | Mode::XOTH) {
            return Err(Errno::ACCESS);
        }
        Ok((found, stat))
    }

    fn file(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        stat: &Stat,
    ) -> Result<(), CopyError> {
        let identity = (stat.st_dev, stat.st_ino);
        if let Some(first) = self.links.get(&identity) {
            return rustix::fs::linkat(self.top, first.as_bytes(), to, name, AtFlags::empty())
                .map_err(|errno| failed(path, errno));
        }
        let found = match open_plain(from, name) {
            Ok(found) => found,
            // Nobody who may not read it here could there.
            Err(error) if is_closed(&error) => return self.stand_in(to, name, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(path, error)),
        };
        // The name may be another's by now: what is copied is judged, and nothing else.
        let stat = &rustix::fs::fstat(&found).map_err(|errno| failed(path, errno))?;
        let identity = (stat.st_dev, stat.st_ino);
        if self.is_closed_there(stat, Mode::ROTH)
            || self.is_kept_by_list(found.as_fd(), stat, 0o4, path)?
        {
            return self.stand_in(to, name, path);
        }
        self.room.file(stat, path)?;
        let copied = create(to, name).map_err(|errno| failed(path, errno))?;
        let (content, _) = copy_file(&found, &copied).map_err(|error| failed(path, error))?;
        let made = rustix::fs::fstat(&copied).map_err(|errno| failed(path, errno))?;
        self.contents.insert(made.st_ino, content);
        if stat.st_nlink > 1 {
            self.links.insert(identity, path.clone());
        }
        self.finish(found.as_fd(), copied.as_fd(), stat, path)
    }

    /// Something empty and closed in the place of what cannot be copied.
    fn stand_in(
        &mut self,
        to: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
    ) -> Result<(), CopyError> {
        let made = create(to, name).map_err(|errno| failed(path, errno))?;
        self.closed.insert(path.clone());
        rustix::fs::fchmod(&made, Mode::empty()).map_err(|errno| failed(path, errno))
    }

    fn special(
        &mut self,
        to: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        stat: &Stat,
    ) -> Result<(), CopyError> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        match kind {
            FileType::Fifo | FileType::Socket => {
                let mode = Mode::from_raw_mode(self.mode(stat));
                rustix::fs::mknodat(to, name, kind, mode, 0)
                    .map_err(|errno| failed(path, errno))?;
                self.keep_facts(to, name, path, stat)
            }
            // Devices could not be opened in a view anyway.
            _ => self.stand_in(to, name, path),
        }
    }

    /// Gives the copy what its original has besides content.
    fn finish(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        stat: &Stat,
        path: &RelPath,
    ) -> Result<(), CopyError> {
        let mut xattrs = xattrs_of(from).map_err(|error| failed(path, error))?;
        xattrs.retain(|name, _| !name.starts_with(ACCESS_LISTS));
        self.set_xattrs(to, &xattrs)
            .map_err(|errno| failed(path, errno))?;
        let (owner, group) = self.owner(stat);
        self.given(rustix::fs::fchown(to, owner, group), path)?;
        rustix::fs::fchmod(to, Mode::from_raw_mode(self.mode(stat)))
            .map_err(|errno| failed(path, errno))?;
        rustix::fs::futimens(to, &times(stat)).map_err(|errno| failed(path, errno))
    }

    /// Owner and times of what is not opened.
    fn keep_facts(
        &self,
        to: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        stat: &Stat,
    ) -> Result<(), CopyError> {
        let (owner, group) = self.owner(stat);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        self.given(rustix::fs::chownat(to, name, owner, group, flags), path)?;
        // A link without the time of its original is the same link.
        let _kept = rustix::fs::utimensat(to, name, &times(stat), flags);
        Ok(())
    }

    /// Whose the copy of this is to be; nothing for what stays with whoever copies.
    fn owner(&self, stat: &Stat) -> (Option<Uid>, Option<Gid>) {
        let (user, group) = match self.owners {
            Owners::Kept => (Some(stat.st_uid), Some(stat.st_gid)),
            Owners::Translated(identity) => (
                identity.user_outside(stat.st_uid),
                identity.group_outside(stat.st_gid),
            ),
        };
        (user.map(Uid::from_raw), group.map(Gid::from_raw))
    }

    /// Ids that do not exist in the sandbox stay the command's own where it copies by
    /// itself. Root must not keep what is to be somebody's.
    fn given(&self, done: rustix::io::Result<()>, path: &RelPath) -> Result<(), CopyError> {
        match (self.owners, done) {
            (Owners::Kept, _) | (Owners::Translated(_), Ok(())) => Ok(()),
            (Owners::Translated(_), Err(errno)) => Err(failed(path, errno)),
        }
    }

    /// Permission bits of a copy: root lends its rights to nobody.
    fn mode(&self, stat: &Stat) -> u32 {
        let mode = mode_of(stat);
        match self.owner(stat) {
            (Some(_), Some(_)) => mode,
            (None, _) | (_, None) => mode & !SET_IDS,
        }
    }

    /// Whether this is nobody's in the sandbox, and closed to such: root could read it,
    /// and no content lies where nobody may read it.
    fn is_closed_there(&self, stat: &Stat, needed: Mode) -> bool {
        let is_nobodys = self.owner(stat) == (None, None);
        is_nobodys && !Mode::from_raw_mode(mode_of(stat)).contains(needed)
    }

    /// Whether an access list keeps this from the command: root could read it, and what
    /// a copy has of the list are bits that say what it grants at most.
    fn is_kept_by_list(
        &self,
        found: BorrowedFd<'_>,
        stat: &Stat,
        needed: u16,
        path: &RelPath,
    ) -> Result<bool, CopyError> {
        let Owners::Translated(identity) = self.owners else {
            // Who copies for itself could not open it.
            return Ok(false);
        };
        if stat.st_uid == identity.user {
            return Ok(false);
        }
        let xattrs = xattrs_of(found).map_err(|error| failed(path, error))?;
        let ids = (identity.user, identity.group);
        let list = xattrs.get(access::NAME);
        Ok(list.is_some_and(|list| access::keeps(list, stat, ids, needed)))
    }

    fn set_xattrs(&mut self, to: BorrowedFd<'_>, xattrs: &Xattrs) -> rustix::io::Result<()> {
        for (name, value) in xattrs {
            match rustix::fs::fsetxattr(to, name.as_slice(), value, XattrFlags::empty()) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP) => self.attributes = false,
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Writes down what stands in the finished copy.
    fn survey(
        &self,
        dir: BorrowedFd<'_>,
        path: &RelPath,
        names: &mut BTreeMap<RelPath, Seen>,
    ) -> Result<(), CopyError> {
        let stat = rustix::fs::fstat(dir).map_err(|errno| failed(path, errno))?;
        let xattrs = xattrs_of(dir).map_err(|error| failed(path, error))?;
        let mut seen = Seen::of(&stat);
        seen.attributes = super::xattr_digest(&xattrs);
        seen.closed = self.closed.contains(path);
        names.insert(path.clone(), seen);
        for entry in list_dir(dir).map_err(|error| failed(path, error))? {
            let child = path
                .child(&entry.name)
                .map_err(|error| failed(path, io::Error::other(error.to_string())))?;
            if entry.kind == Kind::Dir {
                let below = open_dir(dir, &entry.name).map_err(|error| failed(&child, error))?;
                self.survey(below.as_fd(), &child, names)?;
                continue;
            }
            let stat = rustix::fs::statat(dir, entry.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| failed(&child, errno))?;
            let mut seen = Seen::of(&stat);
            seen.content = self.contents.get(&stat.st_ino).copied();
            seen.closed = self.closed.contains(&child);
            names.insert(child, seen);
        }
        Ok(())
    }
}

/// What is left of a ceiling.
pub(super) struct Room {
    ceiling: Ceiling,
    bytes: u64,
    /// Holes included.
    length: u64,
    names: u64,
}

impl Room {
    pub(super) fn of(ceiling: Ceiling) -> Self {
        Self {
            ceiling,
            bytes: ceiling.bytes,
            length: ceiling.bytes.saturating_mul(HOLES_FACTOR),
            names: ceiling.names,
        }
    }

    /// One more name.
    pub(super) fn name(&mut self, path: &RelPath) -> Result<(), CopyError> {
        self.names = self.less(self.names, 1, path)?;
        Ok(())
    }

    /// What a file holds.
    pub(super) fn file(&mut self, stat: &Stat, path: &RelPath) -> Result<(), CopyError> {
        let held = u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(BLOCK_BYTES);
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        self.bytes = self.less(self.bytes, held.min(length), path)?;
        self.length = self.less(self.length, length, path)?;
        Ok(())
    }

    fn less(&self, left: u64, taken: u64, path: &RelPath) -> Result<u64, CopyError> {
        left.checked_sub(taken).ok_or_else(|| CopyError {
            on: format!(
                "{path}: the directory holds more than {} names or {} bytes, which is what a copy may hold",
                self.ceiling.names, self.ceiling.bytes
            ),
            source: io::Error::from_raw_os_error(Errno::FBIG.raw_os_error()),
        })
    }
}

/// Opens a directory of the original; neither a link nor another mount.
pub(super) fn enter(from: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(from, name, DIR_FLAGS, Mode::empty(), resolve)
}

fn create(to: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(to, name, flags, Mode::RUSR | Mode::WUSR)
}

/// When it was read and changed last, as another thing can be given it.
pub(crate) fn times(stat: &Stat) -> Timestamps {
    let at = |seconds: i64, nanos: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanos).unwrap_or(0),
    };
    Timestamps {
        last_access: at(stat.st_atime, stat.st_atime_nsec),
        last_modification: at(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// File systems stamp changes with a clock that ticks; what changes after this
/// has a later stamp than everything before.
fn wait_for_the_next_tick() {
    let start = clock_gettime(ClockId::RealtimeCoarse);
    while clock_gettime(ClockId::RealtimeCoarse) == start {
        std::thread::sleep(TICK);
    }
}

fn failed(path: &RelPath, source: impl Into<io::Error>) -> CopyError {
    CopyError {
        on: path.to_string(),
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags};

    use super::*;

    /// Whoever may rename in the directory swaps a file and a directory that are open to
    /// everybody for such that are not, all the time.
    #[test]
    fn what_is_closed_is_not_copied_under_the_name_of_what_is_open() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root copies what it may not read");
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("from");
        for (dir, content, bits) in [("open", "plain", 0o755), ("shut", "secret", 0o700)] {
            std::fs::create_dir_all(from.join(dir)).unwrap();
            std::fs::write(from.join(dir).join("f"), content).unwrap();
            let file = from.join(format!("{dir}-file"));
            std::fs::write(&file, content).unwrap();
            for (path, bits) in [(from.join(dir), bits), (file, bits & 0o666)] {
                std::os::unix::fs::chown(&path, Some(200_000), Some(200_000)).unwrap();
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
            }
        }
        let identity = Identity::choose(0, 0).unwrap();
        let is_over = AtomicBool::new(false);
        let leaked = std::thread::scope(|scope| {
            scope.spawn(|| {
                let swap = |one: &str, other: &str| {
                    let (one, other) = (from.join(one), from.join(other));
                    rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE)
                };
                while !is_over.load(Ordering::Relaxed) {
                    swap("open", "shut").unwrap();
                    swap("open-file", "shut-file").unwrap();
                }
            });
            let mut leaked = 0;
            for round in 0..400 {
                let to = temp.path().join(format!("to{round}"));
                std::fs::create_dir(&to).unwrap();
                let held = |path: &std::path::Path| std::fs::File::open(path).unwrap();
                let (original, place) = (held(&from), held(&to));
                let ceiling = Ceiling {
                    bytes: 1 << 20,
                    names: 100,
                };
                let owners = Owners::Translated(&identity);
                // One that was overtaken is no copy, and none is shown.
                let _made = copy(original.as_fd(), place.as_fd(), ceiling, owners);
                leaked += ["open-file", "shut-file", "open/f", "shut/f"]
                    .iter()
                    .filter(|name| std::fs::read(to.join(name)).is_ok_and(|is| is == b"secret"))
                    .count();
                std::fs::remove_dir_all(to).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            leaked
        });
        assert_eq!(leaked, 0, "copies of what is closed");
    }
}
