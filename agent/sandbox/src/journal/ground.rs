//! Where a step of a transaction happens, and what is said of it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::steps::Steps;
use crate::changeset::node::{Fingerprint, fingerprint, read_tree};
use crate::dircap::open::open_parent;
use crate::dircap::{FsError, is_missing};

/// Where a step happens.
pub(super) struct Ground<'a> {
    pub steps: &'a Steps,
    pub root: BorrowedFd<'a>,
    pub area: BorrowedFd<'a>,
    /// The name of the step's thing in the area.
    pub slot: Vec<u8>,
    /// Whether what is brought back goes wherever a link leads; only with a planted fault.
    pub links_lead: bool,
}

/// What taking a step back came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// It is as before the step.
    Done,
    /// Somebody changed the place since: it was left alone.
    Kept,
    /// What was there before the step is gone with what was staged: it was left alone.
    Lost,
}

/// Whether a place is as a step expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Exactly,
    /// But for what does not count; this is what is there.
    AsFarAsItCounts(Fingerprint),
    /// It is already as the step is to leave it.
    Already,
    Not,
}

/// What comes of a step that is taken the other way round.
pub(super) fn undone(done: Result<(), FsError>) -> Result<Back, FsError> {
    match done {
        Ok(()) => Ok(Back::Done),
        Err(error) if error.code() == Some(DenialCode::ChangedSinceShown) => Ok(Back::Kept),
        Err(error) => Err(error),
    }
}

impl Ground<'_> {
    /// The number of what lies in the staging place.
    pub(super) fn inode(&self) -> Result<Option<u64>, FsError> {
        match rustix::fs::statat(self.area, self.slot.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.st_ino)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FsError::io("stat", &RelPath::root(), errno)),
        }
    }

    pub(super) fn state_of_slot(&self) -> Result<Fingerprint, FsError> {
        read_tree(self.area, &self.slot)
            .map(|tree| fingerprint(&tree))
            .map_err(|source| failed("look at", &RelPath::root(), source))
    }

    pub(super) fn state_of_target(&self, path: &RelPath) -> Result<Option<Fingerprint>, FsError> {
        state_of(self.root, path)
    }

    /// What lies in the staging place, as exactly as can be told.
    pub(super) fn version(&self) -> Result<(Option<u64>, Option<Fingerprint>), FsError> {
        Ok((self.inode()?, self.state_of_slot().ok()))
    }

    pub(super) fn rename_out(
        &self,
        path: &RelPath,
        parent: &OwnedFd,
        name: &[u8],
        flags: RenameFlags,
        step: &'static str,
    ) -> Result<(), FsError> {
        self.steps
            .pass(step)
            .map_err(|source| failed(step, path, source))?;
        renamed(
            rustix::fs::renameat_with(self.area, self.slot.as_slice(), parent, name, flags),
            step,
            path,
        )
    }
}

/// What there is under a name and below it, as steps compare it; `None` where there is nothing.
pub(super) fn state_of(
    root: BorrowedFd<'_>,
    path: &RelPath,
) -> Result<Option<Fingerprint>, FsError> {
    let (parent, name) = match open_parent(root, path) {
        Ok(found) => found,
        // A way that is not there any more, or leads elsewhere.
        Err(FsError::Denied(_)) => return Ok(None),
        Err(FsError::Io { source, .. }) if is_missing(&source) => return Ok(None),
        Err(error) => return Err(error),
    };
    let tree =
        read_tree(parent.as_fd(), &name).map_err(|source| failed("look at", path, source))?;
    Ok((!tree.is_empty()).then(|| fingerprint(&tree)))
}

/// The directory a name lies in; one that is gone is a conflict.
pub(super) fn parent_of(
    root: BorrowedFd<'_>,
    path: &RelPath,
) -> Result<(OwnedFd, Vec<u8>), FsError> {
    match open_parent(root, path) {
        Err(FsError::Io { source, .. }) if is_missing(&source) => Err(changed(path)),
        other => other,
    }
}

pub(super) fn renamed(
    done: Result<(), Errno>,
    step: &'static str,
    path: &RelPath,
) -> Result<(), FsError> {
    match done {
        Ok(()) => Ok(()),
        Err(Errno::EXIST | Errno::NOENT | Errno::NOTDIR) => Err(changed(path)),
        Err(errno) => Err(FsError::io(step, path, errno)),
    }
}

pub(super) fn changed(path: &RelPath) -> FsError {
    FsError::denied(DenialCode::ChangedSinceShown, path)
}

pub(super) fn failed(operation: &'static str, path: &RelPath, source: io::Error) -> FsError {
    FsError::Io {
        operation,
        path: path.clone(),
        source,
    }
}
