//! What is done to a file itself, where other changes put another one in its place.
//!
//! What for: the layer of a view holds a file that only got another name or mode as a copy of
//! it. Outside neither needs one: it takes no room on the disk and no longer for a large
//! file than for a small one, and leaves the file what it is besides, its number, its owner, its holes.
//!
//! A file is meant only where nothing else tells what is in the layer from what is below, the
//! time it was changed at included, which a copy that was made by hand does not have. A name
//! is given whatever other names there are ([`super::renames`] says what is a rename); a mode only to a
//! file that has none, as it would change with it. It must never pass on anything but what the command saw: what it
//! holds is compared when the step is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::node::{Fingerprint, Holds, Node, fingerprint};
use super::renames::below;
use super::{ChangeSet, now};
use crate::dircap::{FsError, Kind, Thing};

/// One that gets another name.
#[derive(Clone, Debug)]
pub(super) struct Renamed {
    /// Its new name.
    pub to: RelPath,
    /// Which thing it is.
    pub what: Thing,
    /// What it holds.
    pub holds: Fingerprint,
}

impl ChangeSet {
    /// All renamed ones, by their old names. `names` are the ones that are steps of their own: what
    /// comes or goes with a directory is none.
    pub(super) fn renamed_as_they_are(
        &self,
        root: BorrowedFd<'_>,
        names: &[RelPath],
    ) -> Result<BTreeMap<RelPath, Renamed>, (RelPath, FsError)> {
        let mut found = BTreeMap::new();
        if self.runs() {
            return Ok(found);
        }
        let names: BTreeSet<&RelPath> = names.iter().collect();
        for rename in self.renames.all() {
            let is_step = names.contains(&rename.from) && names.contains(&rename.to);
            let old = self.before.get(&rename.from);
            let is_plain = old.is_some_and(|old| matches!(old.kind, Kind::File | Kind::Symlink));
            if !is_step || !is_plain {
                continue;
            }
            let above = now(self.upper(), &rename.to);
            let (Some(above), Some(there)) = (above, now(root, &rename.from)) else {
                continue;
            };
            if !is_untouched(&above, &there) {
                continue;
            }
            let what = Thing::at(root, &rename.from);
            // One that is gone by now is a conflict, which its step tells.
            if let Some(what) = what.map_err(|error| (rename.from.clone(), error))? {
                let renamed = Renamed {
                    to: rename.to.clone(),
                    what,
                    holds: fingerprint(&below(&self.before, &rename.from)),
                };
                found.insert(rename.from.clone(), renamed);
            }
        }
        Ok(found)
    }
}

/// A file that gets another mode, and is otherwise as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherMode {
    /// Which thing it is.
    pub what: Thing,
    /// The mode before and after.
    pub modes: (u32, u32),
    /// What there is before and after, the mode included.
    pub states: (Fingerprint, Fingerprint),
}

impl ChangeSet {
    /// Whether all that happened to a name is that its file got another mode, which it can be
    /// given in its place.
    pub(super) fn only_other_mode(
        &self,
        root: BorrowedFd<'_>,
        path: &RelPath,
    ) -> Result<Option<OtherMode>, FsError> {
        let (Some(old), Some(new)) = (self.before.get(path), self.after.get(path)) else {
            return Ok(None);
        };
        // One that its owner cannot read is not compared by what it holds.
        let is_content =
            |node: &Node| matches!(node.holds, Holds::Content(_)) && node.mode & 0o400 != 0;
        let as_new = Node {
            mode: new.mode,
            ..old.clone()
        };
        if self.runs() || !is_content(old) || !is_content(new) || as_new != *new {
            return Ok(None);
        }
        let (Some(above), Some(there)) = (now(self.upper(), path), now(root, path)) else {
            return Ok(None);
        };
        // A mode is its owner's to give: who may replace a file need not be that.
        let own = rustix::process::geteuid();
        let is_ours = own.is_root() || there.st_uid == own.as_raw();
        if !is_ours || there.st_nlink > 1 || !is_untouched(&above, &there) {
            return Ok(None);
        }
        let state = |node: &Node| fingerprint(&[(RelPath::root(), node.clone())].into());
        Ok(Thing::at(root, path)?.map(|what| OtherMode {
            what,
            modes: (old.mode, new.mode),
            states: (state(old), state(new)),
        }))
    }
}

/// Whether a copy in a layer was only given its name or mode, and is linked to nothing there.
fn is_untouched(above: &Stat, below: &Stat) -> bool {
    let time = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec);
    above.st_nlink == 1 && time(above) == time(below)
}
