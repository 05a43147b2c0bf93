//! Contents on their way into a commit, in a directory of the journal's own.

use std::fmt;
use std::os::fd::{AsFd as _, OwnedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::{AtFlags, Mode};

use super::Journal;
use super::entry::remove_tree;
use crate::changeset::ChangeSet;
use crate::changeset::edits::Edit;
use crate::changeset::node::open_dir;
use crate::dircap::{DirCap, FsError, temporary_name};

/// How the names of such directories begin; none is an entry's.
pub(super) const PREFIX: &[u8] = b"incoming-";
/// After this long nobody is still on the way to a commit.
const AGE_MAX_SECONDS: i64 = 3600;

/// A change set made of edits. Its contents go when it is dropped.
pub struct Incoming<'j> {
    journal: &'j Journal,
    name: Vec<u8>,
    set: Option<ChangeSet>,
}

impl Journal {
    /// Edits of a directory as a change set that can be committed. Nothing in
    /// the directory is changed, and what it must hold is looked at now and
    /// again when the change set is committed.
    ///
    /// # Errors
    /// A file does not hold what it must, or the contents cannot be kept.
    pub fn incoming(&self, dir: &DirCap, edits: &[Edit]) -> Result<Incoming<'_>, FsError> {
        let failed = |operation: &'static str| {
            move |source: std::io::Error| FsError::Io {
                operation,
                path: RelPath::root(),
                source,
            }
        };
        let mut name = PREFIX.to_vec();
        name.extend(temporary_name().map_err(failed("name a directory in"))?);
        rustix::fs::mkdirat(&self.dir, name.as_slice(), Mode::RWXU)
            .map_err(|errno| FsError::io("make a directory in", &RelPath::root(), errno))?;
        let mut incoming = Incoming {
            journal: self,
            name,
            set: None,
        };
        let upper: OwnedFd =
            open_dir(self.dir.as_fd(), &incoming.name).map_err(failed("open a directory of"))?;
        incoming.set = Some(ChangeSet::of_edits(dir, upper, edits)?);
        Ok(incoming)
    }

    /// Removes what others left on the way long ago.
    pub(super) fn clear_incoming(&self) {
        let now = i64::try_from(crate::ambient::seconds_since_1970()).unwrap_or(i64::MAX);
        let Ok(names) = crate::dircap::list_dir(&self.dir) else {
            return;
        };
        for entry in names {
            if !entry.name.starts_with(PREFIX) {
                continue;
            }
            let stat =
                rustix::fs::statat(&self.dir, entry.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
            if stat.is_ok_and(|stat| now.saturating_sub(stat.st_mtime) > AGE_MAX_SECONDS) {
                // What cannot go now goes another time.
                let _cleared = remove_tree(self, self.dir.as_fd(), &entry.name);
            }
        }
    }
}

impl Incoming<'_> {
    /// What is to be committed.
    #[must_use]
    pub fn set(&self) -> Option<&ChangeSet> {
        self.set.as_ref()
    }

    /// The same, to be bound to more of what it takes along.
    pub fn set_mut(&mut self) -> Option<&mut ChangeSet> {
        self.set.as_mut()
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        self.set = None;
        // What cannot go now goes when a journal is opened later.
        let _cleared = remove_tree(self.journal, self.journal.dir.as_fd(), &self.name);
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}
