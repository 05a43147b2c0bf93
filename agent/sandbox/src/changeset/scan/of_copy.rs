//! What is different when the layer of a view is a copy of it.
//!
//! A copy holds everything, so what counts is what is not as it was copied.
//! What others did to the directory meanwhile is theirs and not listed, and
//! where the command changed the same name, it was overtaken.

use std::io;
use std::os::fd::BorrowedFd;

use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::{Scan, dir_node, failed};
use crate::changeset::clock::Since;
use crate::changeset::copied::{Copied, Seen};
use crate::changeset::node::{ACCESS_LISTS, Xattrs, kind_of, mode_of};
use crate::changeset::{Change, ChangeSetError, What, Whose};
use crate::dircap::Kind;

/// The list beside a copy, which must have been made for this command.
pub(super) fn list(
    upper: BorrowedFd<'_>,
    started: &Since,
    root: &RelPath,
) -> Result<Copied, ChangeSetError> {
    let copied = Copied::load(upper).map_err(|error| failed("read the list of", root, error))?;
    let began = (copied.began.tv_sec, copied.began.tv_nsec);
    if began < started.earliest() {
        let error = io::Error::other("it was copied before the command was asked for");
        return Err(failed("trust", root, error));
    }
    Ok(copied)
}

impl Scan {
    /// What stood under this name when it was decided last, or in a copy before the
    /// command.
    pub(super) fn seen(&self, path: &RelPath) -> Option<&Seen> {
        let copied = || self.copied.as_ref()?.names.get(path);
        self.settled.seen(path).or_else(copied)
    }

    /// Whether a name of a copy is as the command found it. A directory only
    /// counts if nothing below it was copied.
    pub(super) fn is_untouched(
        &self,
        upper: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        new: &Stat,
    ) -> Result<bool, ChangeSetError> {
        let Some(seen) = self.seen(path) else {
            return Ok(false);
        };
        if kind_of(new) == Kind::Dir {
            return Ok(seen.closed && seen.is(new));
        }
        // What was written without the kernel's taking note is found at the end.
        if self.while_it_runs.is_some() && !self.settled.is_fresh(path) {
            return Ok(seen.is(new));
        }
        seen.is_untouched(upper, name, new)
            .map_err(|error| failed("read", path, error))
    }

    /// Notes a change of a file that stands for what could not be copied, wherever it
    /// is now; and what came from another name, as nothing of a command's own is nobody's.
    pub(super) fn note_whose(&mut self, new: &Stat, path: &RelPath, was_copied: bool) {
        if self.stand_ins.contains(&new.st_ino) {
            self.never.unseen.get_or_insert_with(|| path.clone());
        }
        let owners = self.owners.as_ref().filter(|_| self.copied.is_some());
        if !was_copied && owners.is_some_and(|owners| owners.is_nobodys(new)) {
            self.never.nobodys.get_or_insert_with(|| path.clone());
        }
    }

    /// Notes a directory that is gone and was shown empty: who removed it, or gave it
    /// another name, saw nothing of what is in it.
    pub(super) fn note_emptied(&mut self, path: &RelPath, is_empty: bool) {
        if !is_empty && self.seen(path).is_some_and(|seen| seen.closed) {
            self.never.unseen.get_or_insert_with(|| path.clone());
        }
    }

    /// A directory of the copy whose original is gone: new, if anything below
    /// it is.
    pub(super) fn orphan(
        &mut self,
        upper: BorrowedFd<'_>,
        new: &Stat,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), ChangeSetError> {
        let listed = |scan: &Self| (scan.files.len(), scan.dirs.len(), scan.modes.len());
        let (before, place) = (listed(self), self.dirs.len());
        self.merged(upper, None, path, depth)?;
        if listed(self) == before {
            return Ok(());
        }
        let mode = mode_of(new);
        self.dirs.insert(
            place,
            Change {
                path: path.clone(),
                what: What::CreatedDir { mode },
            },
        );
        let node = dir_node(upper, mode, path)?;
        self.note_xattrs(path, Whose::New, &Xattrs::new(), &node.xattrs);
        self.after.insert(path.clone(), node);
        Ok(())
    }

    /// Attributes that the layer could not hold are as before.
    pub(super) fn keep_what_a_layer_cannot(&self, after: &mut Xattrs, before: &Xattrs) {
        if self
            .copied
            .as_ref()
            .is_some_and(|copied| !copied.attributes)
        {
            after.clone_from(before);
        }
        keep_access_lists(after, before);
    }
}

fn keep_access_lists(after: &mut Xattrs, before: &Xattrs) {
    if after.keys().any(|name| name.starts_with(ACCESS_LISTS)) {
        return;
    }
    for (name, value) in before {
        if name.starts_with(ACCESS_LISTS) {
            after.insert(name.clone(), value.clone());
        }
    }
}
