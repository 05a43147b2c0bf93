//! Small mount operations that know about locked flags.
//!
//! Mounts inherited from a more privileged namespace keep their `nosuid`,
//! `nodev` and similar flags; a remount that forgets one of them is refused.
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::StatVfsMountFlags;

use crate::error::{AtStage, WorldError};

const NONE: Option<&str> = None;

/// Makes every mount of this namespace private.
pub(crate) fn private() -> Result<(), WorldError> {
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).at("make mounts private")
}

/// Mounts a new tmpfs owned by the caller.
pub(crate) fn tmpfs(target: &Path, options: &str) -> Result<(), WorldError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), target, Some("tmpfs"), flags, Some(options))
        .at(&format!("mount tmpfs on {}", target.display()))
}

/// Gives a tmpfs another size, in bytes, of which zero is without a bound.
pub(crate) fn resize(target: &Path, bytes: u64) -> Result<(), WorldError> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = format!("size={bytes}");
    mount(NONE, target, NONE, flags, Some(options.as_str()))
        .at(&format!("resize tmpfs on {}", target.display()))
}

/// Binds `source` with everything below it.
pub(crate) fn bind(source: &Path, target: &Path) -> Result<(), WorldError> {
    mount(
        Some(source),
        target,
        NONE,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        NONE,
    )
    .at(&format!(
        "bind {} on {}",
        source.display(),
        target.display()
    ))
}

/// Binds `source` where `target` is there; whether it is. A kernel may lack either.
pub(crate) fn bind_if_there(source: &Path, target: &Path) -> Result<bool, WorldError> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    match mount(Some(source), target, NONE, flags, NONE) {
        Ok(()) => Ok(true),
        Err(Errno::ENOENT) => Ok(false),
        Err(errno) => Err(WorldError::new(
            format!("bind {} on {}", source.display(), target.display()),
            errno,
        )),
    }
}

/// Makes one mount read-only, keeping the flags it has.
pub(crate) fn read_only(target: &Path) -> Result<(), WorldError> {
    let stage = format!("remount {} read-only", target.display());
    let held = rustix::fs::statvfs(target).at(&stage)?.f_flag;
    let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    for (held_flag, flag) in [
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
        (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
    ] {
        if held.contains(held_flag) {
            flags |= flag;
        }
    }
    mount(NONE, target, NONE, flags, NONE).at(&stage)
}

/// Mounts a fresh, complete proc of the current pid namespace.
pub(crate) fn proc(target: &Path) -> Result<(), WorldError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), target, Some("proc"), flags, NONE).at("mount proc")
}

/// Mounts an overlay; `upper` is `(upperdir, workdir)`, absent for a read-only one.
pub(crate) fn overlay(
    target: &Path,
    lowers: &[&Path],
    upper: Option<(&Path, &Path)>,
) -> Result<(), WorldError> {
    let lower = lowers
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(":");
    let mut options = format!("userxattr,lowerdir={lower}");
    if let Some((upper, work)) = upper {
        options.push_str(&format!(
            ",volatile,upperdir={},workdir={}",
            upper.display(),
            work.display()
        ));
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("overlay"),
        target,
        Some("overlay"),
        flags,
        Some(options.as_str()),
    )
    .at("mount overlay")
}

/// Makes `root` the root of this mount namespace and forgets the old one.
pub(crate) fn pivot(root: &Path) -> Result<(), WorldError> {
    nix::unistd::chdir(root).at("enter new root")?;
    nix::unistd::pivot_root(".", ".").at("pivot root")?;
    umount2(".", MntFlags::MNT_DETACH).at("drop old root")?;
    nix::unistd::chdir("/").at("enter new root")
}

/// Detaches a mount.
pub(crate) fn detach(target: &Path) -> Result<(), WorldError> {
    umount2(target, MntFlags::MNT_DETACH).at(&format!("unmount {}", target.display()))
}
