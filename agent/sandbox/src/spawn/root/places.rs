//! Where things lie while the root of a sandbox is made.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::step::{AtStep, Step, StepError};

/// Where the command finds its inputs and leaves what the caller wants back.
pub(crate) const EXCHANGE_DIR: &str = "/run/hermitcrab";

/// The template, and over it the root of one sandbox.
pub(super) const NEW: &str = "/new";
/// Places for file systems of a sandbox's own: its views' layers, by number.
pub(super) const LAYERS: &str = "/layers";
/// A directory on disk for layers, if there is one.
pub(super) const STORE: &str = "/store";
/// The directories of the views, by number.
pub(super) const SOURCES: &str = "/sources";
/// What the command can write besides its views. /tmp, the shared memory and the
/// exchange directory are parts of it, each a mount for itself: making and taking
/// apart a file system costs several times what a mount costs.
pub(super) const OWN: &str = "/layers/own";

/// The machine's root, while the template is built.
pub(super) const OLD: &str = "/old";
/// Shown in place of directories that are hidden.
pub(super) const EMPTY: &str = "/empty";
/// Shown in place of what rules withhold of a view: nobody can open them, and nobody
/// mistakes them for something that is empty.
pub(super) const WITHHELD_FILE: &str = "/withheld/file";
pub(super) const WITHHELD_DIR: &str = "/withheld/dir";

/// A view cannot be placed at or below these.
const RESERVED: &[&str] = &[
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "dev", "proc", "run",
];

/// Opens a directory of the machine. The path came from a descriptor, so it holds no
/// link; one that appeared since then means that somebody moved things.
pub(super) fn open_in_old_root(source: &[u8]) -> rustix::io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(source));
    rustix::fs::openat2(
        CWD,
        Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path)),
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

/// Makes the place of a view or private directory, refusing reserved ones.
pub(super) fn place_for(at: &[u8], step: Step) -> Result<PathBuf, StepError> {
    let path = Path::new(OsStr::from_bytes(at));
    let refuse = |why: &str| {
        Err(StepError::new(
            step,
            path.display().to_string(),
            io::Error::other(why.to_owned()),
        ))
    };
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => names.push(name),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return refuse("the path is not plain");
            }
        }
    }
    if !path.is_absolute() {
        return refuse("the path is not absolute");
    }
    let Some(first) = names.first() else {
        return refuse("the whole root cannot be a view");
    };
    if RESERVED.iter().any(|name| OsStr::new(name) == *first)
        || names == ["tmp"]
        || names == ["var"]
        || names == ["var", "tmp"]
    {
        return refuse("the place belongs to the system");
    }
    let target = Path::new(NEW).join(names.iter().collect::<PathBuf>());
    fs::create_dir_all(&target).at(step, path.display().to_string())?;
    Ok(target)
}
