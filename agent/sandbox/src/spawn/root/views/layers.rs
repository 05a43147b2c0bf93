//! The private layer of a copy-on-write view: an overlay, or else a copy.
//!
//! What for: whatever a command writes goes to a file system of its own, of
//! bounded size, that goes away with it. Where the kernel lets nobody mount an
//! overlay here, the directory is copied there first. That holds back and shows
//! the same; what it costs is time and memory, and a directory beyond the
//! ceilings is refused. Where its owners cannot be translated root copies it, or, if it is
//! too big for that, the overlay shows it as it is. It must never show a command the directory itself.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MoveMountFlags, mount, mount_bind, move_mount};

use super::super::places::{EMPTY, LAYERS};
use super::super::store::OnDisk;
use super::super::tools::{open_dir, tmpfs};
use crate::changeset::copied::LIST;
use crate::changeset::copy::{Ceiling, Owners, copy};
use crate::spawn::channel::Channel;
use crate::spawn::copier::{self, COPY, Wanted};
use crate::spawn::spec::LimitSpec;
use crate::step::{AtStep, Step, StepError};

/// Shows a directory that cannot be written, or says why the kernel refused to.
///
/// An overlay without a layer to write to, and not the directory itself: its files
/// are others to the kernel, so a socket among them leads nowhere, and a lock on one
/// of them holds up nobody outside.
pub(super) fn show(lower: &OwnedFd, target: &Path) -> Result<Result<(), io::Error>, StepError> {
    let on = || target.display().to_string();
    rustix::process::fchdir(lower).at(Step::BindReadOnly, on())?;
    // It takes two, and the second has nothing.
    let data = CString::new(format!("lowerdir=.:{EMPTY},userxattr"))
        .map_err(|_| StepError::new(Step::BindReadOnly, on(), io::Error::other("a NUL")))?;
    let mounted = mount(
        "overlay",
        target,
        "overlay",
        MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
        &*data,
    );
    rustix::process::chdir("/").at(Step::BindReadOnly, "/")?;
    Ok(mounted.map_err(io::Error::from))
}

/// Which layer is wanted.
pub(super) struct Layer<'a> {
    /// Which of the views it is for.
    pub number: usize,
    /// The directory that is shown.
    pub lower: &'a OwnedFd,
    /// Its permission bits.
    pub mode: u32,
    /// Where it is shown.
    pub target: &'a Path,
    pub limits: &'a LimitSpec,
}

/// A layer that is mounted.
pub(super) struct Made {
    /// Where changes are found.
    pub upper: OwnedFd,
    /// Why it is a copy, if it is one.
    pub copied: Option<String>,
}

impl Layer<'_> {
    /// Mounts an overlay; a copy if `copied` says why, or if the kernel refuses.
    pub(super) fn make(&self, copied: Option<&str>) -> Result<Made, StepError> {
        let layer = Path::new(LAYERS).join(self.number.to_string());
        let options = format!(
            "size={},nr_inodes={},mode=700",
            // Nothing at all would be without bounds to the kernel.
            self.limits.view_bytes.max(1),
            self.limits.view_inodes.max(1)
        );
        tmpfs(&layer, &options, Step::MountOverlay)?;
        let why = match copied {
            Some(why) => why.to_owned(),
            None => match self.overlay(&layer, "")? {
                Ok(upper) => {
                    return Ok(Made {
                        upper,
                        copied: None,
                    });
                }
                Err(refused) => format!("no overlay can be mounted ({refused})"),
            },
        };
        Ok(Made {
            upper: self.copy(&layer)?,
            copied: Some(why),
        })
    }

    /// Mounts an overlay whose layer lies on disk, or says why that cannot be.
    pub(super) fn make_on_disk(&self, disk: &OnDisk) -> Result<Made, String> {
        let layer = disk.path().join(self.number.to_string());
        fs::create_dir(&layer).map_err(|error| error.to_string())?;
        // What the command does is not there to outlive a power cut, and no command's
        // end may wait until all that others wrote is on the disk.
        match self.overlay(&layer, ",volatile") {
            Ok(Ok(upper)) => Ok(Made {
                upper,
                copied: None,
            }),
            Ok(Err(refused)) => Err(format!("no overlay can be mounted there ({refused})")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Shows a copy that root made of it, in which files belong to whom they would by an
    /// id map; or says why there is none.
    pub(super) fn make_by_root(
        &self,
        copier: &Channel,
    ) -> Result<Result<OwnedFd, String>, StepError> {
        let wanted = Wanted {
            number: self.number,
            ceiling: self.ceiling(),
            bytes_max: self.limits.view_bytes,
            names_max: self.limits.view_inodes,
        };
        let mount = match copier::ask(copier, wanted) {
            Ok(mount) => mount,
            Err(why) => return Ok(Err(why)),
        };
        let layer = Path::new(LAYERS).join(self.number.to_string());
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&mount, c"", CWD, &layer, flags).at(Step::CopyView, self.on())?;
        let place = layer.join(COPY);
        mount_bind(&place, self.target).at(Step::CopyView, self.on())?;
        open_dir(&place, Step::CopyView).map(Ok)
    }

    fn on(&self) -> String {
        self.target.display().to_string()
    }

    /// Mounts an overlay, or says why the kernel refused to.
    fn overlay(&self, layer: &Path, more: &str) -> Result<Result<OwnedFd, io::Error>, StepError> {
        let (upper, work) = (layer.join("upper"), layer.join("work"));
        for dir in [&upper, &work] {
            fs::create_dir(dir).at(Step::MountOverlay, self.on())?;
        }
        // The root of the view has the mode of the upper layer's.
        fs::set_permissions(&upper, fs::Permissions::from_mode(self.mode))
            .at(Step::MountOverlay, self.on())?;
        // "." keeps the path, which may hold any byte, out of the option string.
        rustix::process::fchdir(self.lower).at(Step::MountOverlay, self.on())?;
        let data = format!(
            "lowerdir=.,upperdir={},workdir={},userxattr{more}",
            upper.display(),
            work.display()
        );
        let data = CString::new(data).map_err(|_| {
            StepError::new(
                Step::MountOverlay,
                self.on(),
                io::Error::other("a NUL in a path"),
            )
        })?;
        let mounted = mount(
            "overlay",
            self.target,
            "overlay",
            MountFlags::NOSUID | MountFlags::NODEV,
            &*data,
        );
        rustix::process::chdir("/").at(Step::MountOverlay, "/")?;
        if let Err(errno) = mounted {
            for dir in [&upper, &work] {
                fs::remove_dir_all(dir).at(Step::MountOverlay, self.on())?;
            }
            return Ok(Err(errno.into()));
        }
        open_dir(&upper, Step::MountOverlay).map(Ok)
    }

    /// Copies the directory, with the list of what was copied beside it.
    fn copy(&self, layer: &Path) -> Result<OwnedFd, StepError> {
        let place = layer.join(COPY);
        fs::create_dir(&place).at(Step::CopyView, self.on())?;
        let upper = open_dir(&place, Step::CopyView)?;
        let copied = copy(
            self.lower.as_fd(),
            upper.as_fd(),
            self.ceiling(),
            Owners::Kept,
        )
        .map_err(|error| {
            StepError::new(
                Step::CopyView,
                format!("{}: {}", self.on(), error.on),
                error.source,
            )
        })?;
        fs::write(layer.join(LIST), copied.encode()).at(Step::CopyView, self.on())?;
        // The flags of the mount it lies on stay.
        mount_bind(&place, self.target).at(Step::CopyView, self.on())?;
        Ok(upper)
    }

    /// The copy lies in memory the command may have to pay for: half of that is
    /// left to it.
    fn ceiling(&self) -> Ceiling {
        let half = match self.limits.memory_bytes {
            0 => u64::MAX,
            bytes => bytes / 2,
        };
        Ceiling {
            bytes: self.limits.view_bytes.min(half),
            names: self.limits.view_inodes,
        }
    }
}
