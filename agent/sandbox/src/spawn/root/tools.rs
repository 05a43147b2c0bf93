//! Mounting, in the few forms the private root is made of.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::NEW;
use crate::step::{AtStep, Step, StepError};
use crate::sys::{self, MountAttributes};

pub(super) const READ_ONLY: MountAttributes = MountAttributes {
    read_only: true,
    no_suid: true,
    no_dev: true,
};

pub(super) fn tmpfs(target: &Path, options: &str, step: Step) -> Result<(), StepError> {
    let on = || target.display().to_string();
    let options = CString::new(options)
        .map_err(|_| StepError::new(step, on(), io::Error::other("a NUL in mount options")))?;
    mount(
        "tmpfs",
        target,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        &*options,
    )
    .at(step, on())
}

pub(super) fn bind_read_only(source: &Path, target: &Path, step: Step) -> Result<(), StepError> {
    let on = || target.display().to_string();
    mount_bind_recursive(source, target).at(step, on())?;
    let bound =
        rustix::fs::open(target, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(step, on())?;
    sys::mount_setattr(bound.as_fd(), c"", true, READ_ONLY).at(step, on())
}

pub(super) fn open_dir(path: &Path, step: Step) -> Result<OwnedFd, StepError> {
    rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at(step, path.display().to_string())
}

/// Makes a directory of the template, and those above it.
pub(super) fn make_dir(path: &str, step: Step) -> Result<PathBuf, StepError> {
    let target = Path::new(NEW).join(path.trim_start_matches('/'));
    fs::create_dir_all(&target).at(step, path)?;
    Ok(target)
}

/// Makes what is below a finished directory of the template read-only.
pub(super) fn seal(dir: &Path, step: Step) -> Result<(), StepError> {
    let open = open_dir(dir, step)?;
    sys::mount_setattr(open.as_fd(), c"", false, READ_ONLY).at(step, dir.display().to_string())
}
