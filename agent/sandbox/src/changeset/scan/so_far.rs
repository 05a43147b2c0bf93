//! What is different when the command of a layer runs still.
//!
//! It may change anything while it is looked at. So nothing in the layer is touched, not
//! even to be read; what is long is left for the end; and of each name it is noted what
//! was seen of it, before its content is read.

use std::io;
use std::os::fd::BorrowedFd;

use hermitcrab_core::path::RelPath;
use rustix::fs::{FileType, Stat};

use super::{SO_FAR_BYTES_MAX, SO_FAR_NAMES_MAX, Scan, dir_node, failed};
use crate::changeset::ChangeSetError;
use crate::changeset::copied::Seen;
use crate::changeset::node::{kind_of, mode_of};
use crate::dircap::Kind;

fn is_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
}

impl Scan {
    /// Whether a name is none of this look's.
    pub(super) fn is_left_alone(&self, path: &RelPath) -> bool {
        let left = self.while_it_runs.as_ref();
        left.is_some_and(|left| left.contains(path))
    }

    /// Whether a name is left for the end of the command: a long file, a pipe, a socket.
    pub(super) fn waits_for_its_end(
        &mut self,
        new: &Stat,
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        if self.while_it_runs.is_none() {
            return Ok(false);
        }
        self.looked_at = self.looked_at.saturating_add(1);
        if self.looked_at > SO_FAR_NAMES_MAX {
            let error = io::Error::other("it holds more names than are looked at meanwhile");
            return Err(failed("look at", path, error));
        }
        Ok(match kind_of(new) {
            Kind::File => new.st_size > SO_FAR_BYTES_MAX,
            // The mark of a deletion is a device, too.
            Kind::Special => !is_device(new) || new.st_rdev != 0,
            Kind::Dir | Kind::Symlink => false,
        })
    }

    /// How long a file may be by now, if somebody may write to it still.
    pub(super) fn longest(&self, seen: &Stat) -> u64 {
        match self.while_it_runs {
            Some(_) => u64::try_from(seen.st_size).unwrap_or(0),
            None => u64::MAX,
        }
    }

    /// Notes what was seen of a name, or that it is gone.
    pub(super) fn note(&mut self, path: &RelPath, seen: Option<Seen>) {
        if self.while_it_runs.is_some() {
            self.noted.push((path.clone(), seen));
        }
    }

    /// The same of a directory, whose attributes count.
    pub(super) fn note_dir(
        &mut self,
        dir: BorrowedFd<'_>,
        stat: &Stat,
        path: &RelPath,
    ) -> Result<(), ChangeSetError> {
        if self.while_it_runs.is_some() {
            let node = dir_node(dir, mode_of(stat), path)?;
            let seen = Seen {
                attributes: crate::changeset::xattr_digest(&node.xattrs),
                ..Seen::of(stat)
            };
            self.note(path, Some(seen));
        }
        Ok(())
    }
}
