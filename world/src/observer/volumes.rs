//! Directories with little room, and ones nobody can write to: small file systems of a case's.
//!
//! What for: a disk that is full or read-only is ordinary bad luck, and what a tool says and
//! leaves then is compared as anything else. Each is a mount of its own on the directory, so
//! the rest of the world, where the subjects keep what they need, has room and can be written.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::own;
use crate::effects::Written;
use crate::error::{AtStage, WorldError};
use crate::protocol::{FileKind, FileSpec};
use crate::{case_tree, mounts};

/// Until it holds what it starts with; then it has what the case leaves it.
const STARTING_BYTES: &str = "64m";
/// How many files and directories one may hold.
const INODES: &str = "4k";

/// Mounts what the case wants below `merged`, the world as it is seen, of which `base` is
/// what it started from. Returns what is written to each; in `scratch` is room for them.
pub(super) fn mount_all(
    files: &[FileSpec],
    scratch: &Path,
    merged: &Path,
    base: &Path,
) -> Result<Vec<Written>, WorldError> {
    let mut all = Vec::new();
    for file in files {
        let stage = format!("mount `{}`", file.path);
        match file.kind {
            FileKind::Room(bytes) => {
                let place = Place::find(merged, &file.path).at(&stage)?;
                let volume = scratch.join(format!("volume{}", all.len()));
                fs::create_dir(&volume).at(&stage)?;
                all.push(small(&volume, place, base, bytes)?);
            }
            FileKind::ReadOnly(_) => {
                let place = Place::find(merged, &file.path).at(&stage)?;
                mounts::bind(&place.path(), &place.path())?;
                // What was opened before is below the mount.
                let place = Place::find(merged, &file.path).at(&stage)?;
                mounts::read_only(&place.path())?;
            }
            FileKind::Dir(_)
            | FileKind::Text(_)
            | FileKind::Base64(_)
            | FileKind::Symlink(_)
            | FileKind::Hardlink(_)
            | FileKind::Fifo(_)
            | FileKind::Sparse(_)
            | FileKind::Mount(_) => {}
        }
    }
    Ok(all)
}

/// A directory of the world, wherever links led.
struct Place {
    opened: OwnedFd,
    /// Where it is, from the top of the world.
    within: PathBuf,
}

impl Place {
    fn find(merged: &Path, path: &str) -> Result<Self, String> {
        let top = case_tree::root(merged).map_err(|error| error.message)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = case_tree::open(&top, path, flags)?;
        let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let whole = fs::read_link(link).map_err(|error| error.to_string())?;
        let within = whole
            .strip_prefix(merged)
            .map_err(|_| "it is not in the world".to_owned())?
            .to_owned();
        Ok(Self { opened, within })
    }

    /// Mounting through a descriptor stays inside the tree.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.opened.as_raw_fd()).into()
    }
}

/// Mounts a disk of its own on a directory, with all that is in it and room for `bytes` more.
fn small(volume: &Path, place: Place, base: &Path, bytes: u64) -> Result<Written, WorldError> {
    mounts::tmpfs(
        volume,
        &format!("mode=0700,size={STARTING_BYTES},nr_inodes={INODES}"),
    )?;
    let stage = "make a small disk";
    let disk = volume.join(&place.within);
    fs::create_dir_all(&disk).at(stage)?;
    // Not through a layer: what is moved or changed there takes no more room than on a disk.
    own::copy(&base.join(&place.within), &disk).at(stage)?;
    // Memory of no size at all would be without a bound.
    fs::write(volume.join("taken"), "x").at(stage)?;
    let held = rustix::fs::statvfs(volume).at(stage)?;
    let used = held.f_blocks.saturating_sub(held.f_bfree);
    let size = used.saturating_mul(held.f_bsize).saturating_add(bytes);
    mounts::resize(volume, size)?;
    mounts::bind(&disk, &place.path())?;
    Ok(Written {
        layer: volume.to_owned(),
        whole: Some(place.within),
    })
}
