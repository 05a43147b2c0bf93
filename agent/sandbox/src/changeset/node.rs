//! What stands under one name, as far as a change set knows about it.
//!
//! Two equal nodes are the same to whoever reads them; who owns a file, when
//! it was touched and which number the file system gave it do not count.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::digest::{digest_file, sha256};
use crate::dircap::{DEPTH_MAX, DIR_FLAGS, Kind, list_dir, open_plain};

/// Extended attributes by name.
pub(crate) type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything below one name, and (as the root) the name itself.
pub(crate) type Tree = BTreeMap<RelPath, Node>;

/// The rights a directory's owner needs to move it and what is in it.
pub(super) const USABLE: u32 = 0o700;

/// The marks of an overlay, which are nobody's data.
pub(crate) const OVERLAY_MARKS: &[u8] = b"user.overlay.";
/// Access lists: rights, not data.
pub(crate) const ACCESS_LISTS: &[u8] = b"system.posix_acl_";
/// Longer lists or values of attributes are an error.
const XATTR_BYTES_MAX: usize = 1 << 20;
/// What is said where there are more.
pub(crate) fn too_deep() -> io::Error {
    io::Error::other(format!(
        "more than {DEPTH_MAX} directories stand inside each other"
    ))
}

/// What of a directory is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub mode: u32,
    pub xattrs: Xattrs,
}

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub kind: Kind,
    /// Permission bits; a link has none of its own.
    pub mode: u32,
    /// Length of a file.
    pub bytes: u64,
    pub holds: Holds,
    pub xattrs: Xattrs,
}

/// What it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A directory: see the names below it.
    Names,
    /// A file with this content.
    Content(Digest),
    /// A file its owner cannot read: this one and no other.
    Itself { inode: u64, modified: (i64, i64) },
    /// A link.
    Target(Vec<u8>),
    /// A pipe, socket or device: this one and no other.
    Special { device: u64, inode: u64 },
}

/// Which state a whole tree is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub Digest);

impl Node {
    /// Whether it is a directory whose owner cannot look at what is in it, unless root.
    pub(crate) fn is_shut(&self) -> bool {
        self.kind == Kind::Dir && self.mode & 0o500 != 0o500
    }

    /// Looks at a name; `None` if there is nothing.
    pub(crate) fn read(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<(Self, Stat)>> {
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let kind = kind_of(&stat);
        let node = match kind {
            Kind::File => Self::file(dir, name, &stat)?,
            Kind::Dir => Self {
                kind,
                mode: mode_of(&stat),
                bytes: 0,
                holds: Holds::Names,
                xattrs: match open_dir(dir, name) {
                    Ok(opened) => xattrs_of(opened.as_fd())?,
                    // A directory its owner cannot read.
                    Err(error) if is_closed(&error) => Xattrs::new(),
                    Err(error) => return Err(error),
                },
            },
            Kind::Symlink => Self {
                kind,
                mode: 0,
                bytes: 0,
                holds: Holds::Target(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes()),
                xattrs: Xattrs::new(),
            },
            Kind::Special => Self {
                kind,
                mode: mode_of(&stat),
                bytes: 0,
                holds: Holds::Special {
                    device: stat.st_rdev,
                    inode: stat.st_ino,
                },
                xattrs: Xattrs::new(),
            },
        };
        Ok(Some((node, stat)))
    }

    /// What stands for something on which another file system is mounted: nobody looks there.
    pub(crate) fn mounted_on() -> Self {
        Self {
            kind: Kind::Dir,
            mode: 0o755,
            bytes: 0,
            holds: Holds::Names,
            xattrs: Xattrs::new(),
        }
    }

    fn file(dir: BorrowedFd<'_>, name: &[u8], stat: &Stat) -> io::Result<Self> {
        let mut node = Self {
            kind: Kind::File,
            mode: mode_of(stat),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            holds: itself(stat),
            xattrs: Xattrs::new(),
        };
        if !owner_reads(stat) {
            return Ok(node);
        }
        match open_plain(dir, name) {
            Ok(file) => {
                let (digest, bytes) = digest_file(&file)?;
                node.bytes = bytes;
                node.holds = Holds::Content(digest);
                node.xattrs = xattrs_of(file.as_fd())?;
                Ok(node)
            }
            Err(error) if is_closed(&error) => Ok(node),
            Err(error) => Err(error),
        }
    }

    /// The digest of the content, if it could be read.
    pub(crate) fn digest(&self) -> Digest {
        match self.holds {
            Holds::Content(digest) => digest,
            Holds::Names | Holds::Itself { .. } | Holds::Target(_) | Holds::Special { .. } => {
                Digest::NONE
            }
        }
    }

    fn put_into(&self, out: &mut Vec<u8>) {
        let (kind, numbers): (u8, [u64; 3]) = match &self.holds {
            Holds::Names => (b'd', [0; 3]),
            Holds::Content(_) => (b'f', [self.bytes, 0, 0]),
            Holds::Itself { inode, modified } => {
                let (seconds, nanos) = *modified;
                (
                    b'u',
                    [
                        *inode,
                        seconds.cast_unsigned(),
                        nanos.cast_unsigned() ^ self.bytes.rotate_left(32),
                    ],
                )
            }
            Holds::Target(_) => (b'l', [0; 3]),
            Holds::Special { device, inode } => (b's', [*device, *inode, 0]),
        };
        out.push(kind);
        out.extend_from_slice(&self.mode.to_le_bytes());
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        match &self.holds {
            Holds::Content(digest) => out.extend_from_slice(digest.as_bytes()),
            Holds::Target(target) => counted(out, target),
            Holds::Names | Holds::Itself { .. } | Holds::Special { .. } => {}
        }
        counted(out, &xattr_bytes(&self.xattrs));
    }
}

/// The state of a whole tree as one value.
pub(crate) fn fingerprint(tree: &Tree) -> Fingerprint {
    let mut bytes = Vec::new();
    for (path, node) in tree {
        counted(&mut bytes, path.as_bytes());
        node.put_into(&mut bytes);
    }
    Fingerprint(sha256(&bytes))
}

/// Everything under a name; empty if there is nothing.
pub(crate) fn read_tree(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Tree> {
    read_tree_of(dir, name, &|_| true)
}

/// The same, without the names that do not count and what lies below them.
pub(crate) fn read_tree_of(
    dir: BorrowedFd<'_>,
    name: &[u8],
    counts: &dyn Fn(&RelPath) -> bool,
) -> io::Result<Tree> {
    let mut tree = Tree::new();
    add(dir, name, &RelPath::root(), (0, counts), &mut tree)?;
    Ok(tree)
}

fn add(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
    (depth, counts): (usize, &dyn Fn(&RelPath) -> bool),
    tree: &mut Tree,
) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    // Before it is looked at: whoever serves another file system may not answer.
    if is_mounted(dir, name)? {
        return Err(another_is_mounted());
    }
    let Some((node, _)) = Node::read(dir, name)? else {
        return Ok(());
    };
    let below = match node.kind {
        Kind::Dir if !path.is_root() && node.is_shut() => match open_usable(dir, name) {
            // Closed to whoever looks: what is in it is out of reach to them as well.
            Err(error) if is_closed(&error) => None,
            opened => Some(opened?),
        },
        Kind::Dir => Some(open_dir_here(dir, name)?),
        Kind::File | Kind::Symlink | Kind::Special => None,
    };
    tree.insert(path.clone(), node);
    if let Some(below) = below {
        for entry in list_dir(&below)? {
            let child = path.child(&entry.name).map_err(io::Error::other)?;
            if !counts(&child) {
                continue;
            }
            let deeper = (depth.saturating_add(1), counts);
            add(below.as_fd(), &entry.name, &child, deeper, tree)?;
        }
    }
    Ok(())
}

/// What a digest of attributes is taken of.
pub(crate) fn xattr_bytes(xattrs: &Xattrs) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in xattrs {
        counted(&mut out, name);
        counted(&mut out, value);
    }
    out
}

/// A name or a value, told from what comes after it.
pub(super) fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The attributes that are data or rights: `user.*` and access lists.
pub(crate) fn xattrs_of(file: BorrowedFd<'_>) -> io::Result<Xattrs> {
    let mut found = all_xattrs(file)?;
    found.retain(|name, _| {
        let overlay = name.starts_with(OVERLAY_MARKS)
            && !name.starts_with(&[OVERLAY_MARKS, b"overlay."].concat());
        (name.starts_with(b"user.") && !overlay) || name.starts_with(ACCESS_LISTS)
    });
    Ok(found)
}

/// What the value of an attribute fits into, usually.
const VALUE_BYTES_USUAL: usize = 256;

/// Every attribute the kernel shows.
pub(crate) fn all_xattrs(file: BorrowedFd<'_>) -> io::Result<Xattrs> {
    let mut names = Vec::new();
    match rustix::fs::flistxattr_query(file) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Xattrs::new()),
        Ok(length) if length > XATTR_BYTES_MAX => return Err(io::ErrorKind::FileTooLarge.into()),
        Ok(length) => names.resize(length.saturating_add(4096), 0),
        Err(errno) => return Err(errno.into()),
    }
    let length = rustix::fs::flistxattr(file, &mut names)?;
    let mut found = Xattrs::new();
    for name in names
        .get(..length)
        .unwrap_or_default()
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        // Most are short, and the kernel makes room for as much as is asked for.
        let mut value = vec![0; VALUE_BYTES_USUAL];
        let mut got = rustix::fs::fgetxattr(file, name, &mut value);
        if got == Err(Errno::RANGE) {
            value.resize(64 * 1024, 0);
            got = rustix::fs::fgetxattr(file, name, &mut value);
        }
        match got {
            Ok(length) => {
                value.truncate(length);
                found.insert(name.to_vec(), value);
            }
            // Listed, but not for us; or gone meanwhile.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(found)
}

/// What stands for a file that cannot be read.
pub(crate) fn itself(stat: &Stat) -> Holds {
    Holds::Itself {
        inode: stat.st_ino,
        modified: (
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        ),
    }
}

/// Whether its owner may read a file; root, who always may, asks the same.
pub(crate) fn owner_reads(stat: &Stat) -> bool {
    stat.st_mode & 0o400 != 0
}

pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

pub(crate) fn kind_of(stat: &Stat) -> Kind {
    Kind::from(FileType::from_raw_mode(stat.st_mode))
}

pub(crate) fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

pub(crate) fn open_dir(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, DIR_FLAGS, Mode::empty())?)
}

/// The same, unless another file system is mounted there: a tree that is moved, compared
/// or removed as one thing ends where somebody else's begins.
pub(crate) fn open_dir_here(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    match rustix::fs::openat2(dir, name, DIR_FLAGS, Mode::empty(), HERE) {
        // Whether or not the kernel knows the call.
        Err(Errno::NOSYS) => open_dir(dir, name),
        Err(Errno::XDEV) => Err(another_is_mounted()),
        opened => Ok(opened?),
    }
}

/// The same of a directory in which names can be looked up, too.
pub(crate) fn open_usable(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let opened = open_dir_here(dir, name)?;
    open_dir_here(opened.as_fd(), b".")?;
    Ok(opened)
}

fn another_is_mounted() -> io::Error {
    io::Error::other("another file system is mounted there")
}

/// Whether another file system, or a part of one, is mounted on a name. Nobody who serves it
/// is asked.
pub(crate) fn is_mounted(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<bool> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(dir, name, flags, Mode::empty(), HERE) {
        Ok(_) | Err(Errno::NOSYS | Errno::NOENT) => Ok(false),
        Err(Errno::XDEV) => Ok(true),
        Err(errno) => Err(errno),
    }
}

const HERE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_XDEV);
