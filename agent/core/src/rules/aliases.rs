//! Other names of what lies in a directory, seen from `/`.
//!
//! What for: a file system can be mounted at several places, so one file has several paths
//! though no link leads from one to the other. A rule, a name that is asked about each time
//! and the agent's own places are written down by one of them, and hold for the thing: the
//! edge says by which other names it can be reached, and the strictest word about any of
//! them counts.

use alloc::vec::Vec;

use super::Rules;
use crate::authority::DirId;
use crate::limits::ALIASES_MAX;
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;

/// What lies in a directory has this other name, and all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alias {
    /// From the directory.
    pub below: RelPath,
    /// Seen from `/`.
    pub at: RelPath,
}

impl Rules {
    /// What lies at `below` in a directory lies at `at` as well, seen from `/`.
    ///
    /// # Errors
    /// `no-cap` for a directory of another session; `limit-reached`.
    pub fn also_lies(&mut self, dir: DirId, below: RelPath, at: RelPath) -> Result<(), Denial> {
        let session = self.session;
        let known = usize::try_from(dir.index())
            .ok()
            .filter(|_| dir.session() == session)
            .and_then(|index| self.dirs.get_mut(index))
            .ok_or_else(|| Denial::new(DenialCode::NoCap, dir))?;
        if known.aliases.len() >= ALIASES_MAX {
            let about = format_args!("{ALIASES_MAX} other names of one directory in one session");
            return Err(Denial::new(DenialCode::LimitReached, about));
        }
        known.aliases.push(Alias { below, at });
        Ok(())
    }

    fn aliases(&self, dir: DirId) -> &[Alias] {
        let known = usize::try_from(dir.index())
            .ok()
            .and_then(|index| self.dirs.get(index));
        known.map_or(&[], |known| &known.aliases)
    }

    /// Whether anything in a directory has other names.
    pub(super) fn has_aliases(&self, dir: DirId) -> bool {
        !self.aliases(dir).is_empty()
    }

    /// The other places where what lies at `below` lies, seen from `/`.
    ///
    /// # Errors
    /// One of them is too long to be told.
    pub(super) fn other_places(&self, dir: DirId, below: &RelPath) -> Result<Vec<RelPath>, Denial> {
        self.aliases(dir)
            .iter()
            .filter_map(|alias| Some((alias, below.strip_prefix(&alias.below)?)))
            .map(|(alias, rest)| {
                let joined = alias.at.join(&rest);
                joined.map_err(|error| Denial::new(error.code(), below))
            })
            .collect()
    }

    /// What lies strictly below `below` and has other names: how it is named from there, and
    /// one of those, seen from `/`.
    pub(super) fn aliases_below<'r>(
        &'r self,
        dir: DirId,
        below: &'r RelPath,
    ) -> impl Iterator<Item = (RelPath, &'r RelPath)> {
        self.aliases(dir).iter().filter_map(move |alias| {
            let from = alias.below.strip_prefix(below)?;
            (!from.is_root()).then_some((from, &alias.at))
        })
    }
}
