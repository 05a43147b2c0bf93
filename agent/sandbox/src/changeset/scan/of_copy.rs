//! What is different when the layer of a view is a copy of it.
//!
//! A copy holds everything, so what counts is what is not as it was copied.
//! What others did to the directory meanwhile is theirs and not listed, and
//! where the command changed the same name, it was overtaken.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::{Scan, child_of, dir_node, failed, stat_name};
use crate::changeset::clock::Since;
use crate::changeset::copied::{Copied, Seen};
use crate::changeset::node::{ACCESS_LISTS, Xattrs, kind_of, mode_of, open_dir, too_deep};
use crate::changeset::{Change, ChangeSetError, What, Whose, layer, xattr_digest};
use crate::dircap::{DEPTH_MAX, Kind, list_dir};

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

    /// Whether a directory outside cannot be opened that a copy could be made of: a sandbox's
    /// first process may look into what its user has closed, and the agent may not.
    pub(super) fn may_tell_by_its_list(&self, error: &io::Error) -> bool {
        self.copied.is_some() && error.kind() == io::ErrorKind::PermissionDenied
    }

    /// Whether a directory of a copy is as it was copied, and so is all that is in it.
    pub(super) fn is_as_copied(
        &self,
        dir: BorrowedFd<'_>,
        new: &Stat,
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        let Some(found) = self.names_as_copied(dir, new, path, 0)? else {
            return Ok(false);
        };
        let listed = self.copied.iter().flat_map(|copied| {
            let from_here = copied.names.range(path.clone()..).map(|(name, _)| name);
            from_here.take_while(|name| name.as_bytes().starts_with(path.as_bytes()))
        });
        Ok(listed.filter(|name| name.starts_with(path)).count() == found)
    }

    /// How many names it has with its own, if each is as it was copied.
    fn names_as_copied(
        &self,
        dir: BorrowedFd<'_>,
        new: &Stat,
        path: &RelPath,
        depth: usize,
    ) -> Result<Option<usize>, ChangeSetError> {
        if depth > DEPTH_MAX {
            return Err(failed("descend into", path, too_deep()));
        }
        let as_it_was = |seen: &Seen| seen.is_the_one(new) && seen.mode == new.st_mode;
        let Some(seen) = self.seen(path).filter(|seen| as_it_was(seen)) else {
            return Ok(None);
        };
        let node = dir_node(dir, mode_of(new), path)?;
        if xattr_digest(&node.xattrs) != seen.attributes {
            return Ok(None);
        }
        let mut names = 1_usize;
        for entry in list_dir(dir).map_err(|error| failed("list", path, error))? {
            let child = child_of(path, &entry.name)?;
            let Some(stat) = stat_name(dir, &entry.name, &child)? else {
                return Ok(None);
            };
            if self.while_it_runs.is_none() {
                layer::unlock(dir, &entry.name, &stat)
                    .map_err(|error| failed("unlock", &child, error))?;
            }
            let found = match kind_of(&stat) {
                Kind::Dir => {
                    let below = open_dir(dir, &entry.name)
                        .map_err(|error| failed("open", &child, error))?;
                    self.names_as_copied(below.as_fd(), &stat, &child, depth.saturating_add(1))?
                }
                Kind::File | Kind::Symlink | Kind::Special => self
                    .is_untouched(dir, &entry.name, &child, &stat)?
                    .then_some(1),
            };
            match found {
                Some(found) => names = names.saturating_add(found),
                None => return Ok(None),
            }
        }
        Ok(Some(names))
    }

    /// Notes a change of a file that stands for what could not be copied, wherever it
    /// is now; and what came from another name, as nothing of a command's own is nobody's.
    pub(super) fn note_whose(&mut self, new: &Stat, path: &RelPath, was_copied: bool) {
        if self.stand_ins.contains(&new.st_ino) {
            self.never.unseen.insert(path.clone());
        }
        let owners = self.owners.as_ref().filter(|_| self.copied.is_some());
        if !was_copied && owners.is_some_and(|owners| owners.is_nobodys(new)) {
            self.never.nobodys.insert(path.clone());
        }
    }

    /// Notes a directory that is gone and was shown empty: who removed it, or gave it
    /// another name, saw nothing of what is in it.
    pub(super) fn note_emptied(&mut self, path: &RelPath, is_empty: bool) {
        if !is_empty && self.seen(path).is_some_and(|seen| seen.closed) {
            self.never.unseen.insert(path.clone());
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
