//! How much one look at a running command's layer tells.
//!
//! What for: what a look tells is carried over at once, and nobody can end a grant while
//! it is. So of a command that made thousands of files each look tells some, and the next
//! look the next of them. Once there is no room left, names are only counted, and what is
//! gone waits: it may be what was not told. What has several names is told with all of
//! them, whatever room there is, or names that were linked together would come out as
//! copies.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::Scan;
use super::look::{child_of, failed, stat_name};
use crate::changeset::ChangeSetError;
use crate::changeset::node::{is_mounted, kind_of, open_dir};
use crate::dircap::{DEPTH_MAX, Kind, list_dir};

/// What is read of a layer in one look, and perhaps one file more.
pub(super) const BYTES_MAX: i64 = 256 << 20;
/// Names of a layer that are looked at.
pub(super) const NAMES_MAX: usize = 10_000;

/// What one look tells at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// So many names that are new or changed.
    pub names: usize,
    /// Files until they are so long together, and perhaps one more.
    pub bytes: u64,
}

impl Portion {
    /// All there is.
    pub const ALL: Self = Self {
        names: usize::MAX,
        bytes: u64::MAX,
    };

    /// Twice as much.
    #[must_use]
    pub const fn doubled(self) -> Self {
        Self {
            names: self.names.saturating_mul(2),
            bytes: self.bytes.saturating_mul(2),
        }
    }

    /// Half as much.
    #[must_use]
    pub const fn halved(self) -> Self {
        Self {
            names: self.names / 2,
            bytes: self.bytes / 2,
        }
    }
}

impl Default for Portion {
    fn default() -> Self {
        Self::ALL
    }
}

/// Names, and how long what they stand for is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    names: usize,
    bytes: u64,
}

impl Amount {
    fn add(&mut self, stat: &Stat) {
        self.names = self.names.saturating_add(1);
        if kind_of(stat) == Kind::File {
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    fn add_all(&mut self, more: Self) {
        self.names = self.names.saturating_add(more.names);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    fn is_over(self, names_max: usize, bytes_max: u64) -> bool {
        self.names > names_max || self.bytes > bytes_max
    }

    fn fills(self, portion: Portion) -> bool {
        self.names >= portion.names || self.bytes >= portion.bytes
    }
}

fn has_other_names(new: &Stat) -> bool {
    kind_of(new) == Kind::File && new.st_nlink > 1
}

impl Scan {
    fn portion(&self) -> Portion {
        let meanwhile = self.while_it_runs.as_ref();
        meanwhile.map_or(Portion::ALL, |meanwhile| meanwhile.portion)
    }

    /// Whether a name is only counted, as there is no room for it any more.
    pub(super) fn is_only_counted(&mut self, new: &Stat) -> bool {
        let is_counted = self.so_far.is_full && kind_of(new) != Kind::Dir && !has_other_names(new);
        if is_counted {
            self.note_waiting(new);
        }
        is_counted
    }

    /// Whether there is room for one more that is new or changed.
    pub(super) fn has_room(&mut self, new: &Stat) -> bool {
        if has_other_names(new) {
            return true;
        }
        if self.so_far.told.fills(self.portion()) {
            self.so_far.is_full = true;
            self.so_far.waits = true;
        }
        match self.so_far.is_full {
            true => self.note_waiting(new),
            false => self.so_far.told.add(new),
        }
        !self.so_far.is_full
    }

    /// A new directory for which there is no room: told if anything in it is that has
    /// other names.
    pub(super) fn dir_without_room(
        &mut self,
        upper: BorrowedFd<'_>,
        name: &[u8],
        new: &Stat,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), ChangeSetError> {
        let opened = open_dir(upper, name).map_err(|error| failed("open", path, error));
        match self.unless_it_waits(opened)? {
            Some(dir) => self.orphan(dir.as_fd(), new, path, depth.saturating_add(1)),
            None => Ok(()),
        }
    }

    /// Whether what is gone under a name is a change of this look.
    pub(super) fn may_go(
        &mut self,
        lower: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        if !self.may_be_gone() {
            return Ok(false);
        }
        if self.while_it_runs.is_none() {
            return Ok(true);
        }
        // Eight times as much as of what is new: it is only moved.
        let room = self.portion().doubled().doubled().doubled();
        if self.so_far.gone.fills(room) {
            self.so_far.is_more_gone = true;
            return Ok(false);
        }
        let Some(amount) = amount_of(lower, name, path)? else {
            return Ok(false);
        };
        self.so_far.gone.add_all(amount);
        Ok(true)
    }

    /// Whether something else may take the place of what had a name.
    pub(super) fn may_be_replaced(
        &mut self,
        lower: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
    ) -> Result<bool, ChangeSetError> {
        if !self.may_be_gone() {
            return Ok(false);
        }
        let may = self.while_it_runs.is_none() || amount_of(lower, name, path)?.is_some();
        // What comes in its place may be what is gone elsewhere.
        self.so_far.waits |= !may;
        Ok(may)
    }
}

/// How much is under a name; `None` if that is more than is looked at while a command runs.
fn amount_of(
    dir: BorrowedFd<'_>,
    name: &[u8],
    path: &RelPath,
) -> Result<Option<Amount>, ChangeSetError> {
    let mut amount = Amount::default();
    let bytes_max = u64::try_from(BYTES_MAX).unwrap_or(0);
    let mut open = vec![(None, name.to_vec(), path.clone())];
    while let Some((above, name, path)) = open.pop() {
        let above: Option<std::rc::Rc<std::os::fd::OwnedFd>> = above;
        let here = above.as_ref().map_or(dir, |above| above.as_fd());
        if is_mounted(here, &name).unwrap_or(true) {
            continue;
        }
        let Some(stat) = stat_name(here, &name, &path)? else {
            continue;
        };
        amount.add(&stat);
        if amount.is_over(NAMES_MAX, bytes_max) || open.len() > NAMES_MAX {
            return Ok(None);
        }
        let is_deep = path.components().count() > DEPTH_MAX;
        if kind_of(&stat) != Kind::Dir || is_deep {
            continue;
        }
        // One that is closed is found out when it is read.
        let Ok(opened) = open_dir(here, &name) else {
            continue;
        };
        let opened = std::rc::Rc::new(opened);
        let entries =
            list_dir(&*opened).map_err(|error: io::Error| failed("list", &path, error))?;
        for entry in entries {
            let child = child_of(&path, &entry.name)?;
            open.push((Some(std::rc::Rc::clone(&opened)), entry.name, child));
        }
    }
    Ok(Some(amount))
}
