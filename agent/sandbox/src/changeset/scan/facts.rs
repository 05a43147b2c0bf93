//! What of a file or directory is not in it: modes and attributes.

use std::os::fd::BorrowedFd;

use hermitcrab_core::fault::{self, Fault};
use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::Scan;
use super::look::dir_node;
use crate::changeset::node::{Xattrs, mode_of};
use crate::changeset::{Change, ChangeSetError, What, Whose, xattr_digest};

impl Scan {
    /// Modes and attributes of a directory that was there before.
    pub(super) fn compare_dirs(
        &mut self,
        upper: BorrowedFd<'_>,
        new: &Stat,
        lower: BorrowedFd<'_>,
        old: &Stat,
        path: &RelPath,
    ) -> Result<(), ChangeSetError> {
        let before = dir_node(lower, mode_of(old), path)?;
        let mut after = dir_node(upper, mode_of(new), path)?;
        if self
            .seen(path)
            .is_some_and(|seen| seen.is_same_dir(new, &after.xattrs))
        {
            return Ok(());
        }
        self.keep_what_a_layer_cannot(&mut after.xattrs, &before.xattrs);
        if fault::is(Fault::ChangeSetMissesMetadata) {
            after.mode = before.mode;
        }
        if before.mode != after.mode {
            self.modes.push(Change {
                path: path.clone(),
                what: What::ModifiedMode {
                    before: before.mode,
                    mode: after.mode,
                },
            });
        }
        let xattrs = self.note_xattrs(path, Whose::Old, &before.xattrs, &after.xattrs);
        if xattrs || before.mode != after.mode {
            self.before.insert(path.clone(), before);
            self.after.insert(path.clone(), after);
        }
        Ok(())
    }

    /// Lists a difference in attributes; whether there is one.
    pub(super) fn note_xattrs(
        &mut self,
        path: &RelPath,
        on: Whose,
        before: &Xattrs,
        after: &Xattrs,
    ) -> bool {
        if before == after {
            return false;
        }
        let mut names: Vec<Vec<u8>> = before
            .iter()
            .filter(|(name, value)| after.get(*name) != Some(value))
            .chain(
                after
                    .iter()
                    .filter(|(name, value)| before.get(*name) != Some(value)),
            )
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names.dedup();
        self.modes.push(Change {
            path: path.clone(),
            what: What::Xattrs {
                on,
                names,
                digest: xattr_digest(after),
            },
        });
        true
    }
}
