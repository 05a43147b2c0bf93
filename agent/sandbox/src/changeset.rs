//! What a command did to its copy-on-write view.
//!
//! What for: approval of effects instead of spellings. The private layer of
//! the view is the complete list of what the command changed; this module
//! turns it into a list of [`Change`]s, says what authority each needs, and
//! applies them one file at a time, or lets them vanish.
//!
//! It must never leave half a file visible, and never overwrite a file that is
//! not the one the command saw.
//!
//! Stated answers: a rename is a deletion and a creation, listed as such, and
//! told apart by [`ChangeSet::renames`]; names the command linked together
//! stay linked; extended attributes in `user.` are changes of their own, while
//! access lists may not change; what is committed keeps the times it got in the
//! view, and a file that was written again as it was, or whose time was set, is
//! a change: what is built goes by it. The time of a directory by itself is none,
//! nor is when something was read. Owners are not the command's to give.

mod access;
pub mod apart;
pub(crate) mod arriving;
mod carried;
pub(crate) mod clock;
pub(crate) mod copied;
pub(crate) mod copy;
pub mod edits;
mod error;
mod grip;
pub(crate) mod in_place;
mod kept;
mod layer;
pub(crate) mod measure;
mod needs;
pub(crate) mod node;
pub(crate) mod owners;
mod renames;
mod scan;
mod second;
mod settings;
pub(crate) mod settled;
pub(crate) mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{CapError, DirId, Extent, Object};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::time::Timespec;

pub use self::arriving::Arrival;
use self::clock::Since;
pub use self::error::ChangeSetError;
use self::kept::Never;
pub use self::layer::Layer;
pub(crate) use self::needs::xattr_digest;
use self::node::{Node, Tree};
use self::owners::Owners;
pub use self::renames::Rename;
use self::renames::Renames;
pub use self::scan::Portion;
pub(crate) use self::scan::{Meanwhile, Moment, Overwritten, SoFar, Terms, now};
pub use self::settled::Displaced;
use self::settled::{Settled, Stood};
use crate::dircap::DirCap;
use crate::layers::KeptLayer;
use crate::patience::Patience;

/// Everything one command did to one view.
#[derive(Debug)]
pub struct ChangeSet {
    changes: Vec<Change>,
    /// What of it may not be kept, whatever is held.
    never: Never,
    /// How owners in the layer are read, if they are not those of outside.
    owners: Option<Owners>,
    /// What the command saw under the names it changed, and what it made of them.
    before: Tree,
    after: Tree,
    /// New names of files that it left as they were, each with the name that was there.
    second_names: BTreeMap<RelPath, RelPath>,
    renames: Renames,
    /// Things that get another name, whatever they hold.
    moves: Vec<edits::Moved>,
    /// What was seen of the layer, if its command runs still.
    so_far: SoFar,
    layer: Layer,
    upper: OwnedFd,
    lower: OwnedFd,
    /// How the file system of `lower` is waited for.
    patience: Option<Patience>,
    prefix: RelPath,
    /// Removes the layer in the end, if it lies on disk.
    kept: Option<Arc<KeptLayer>>,
}

/// One change to one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which name, seen from the view's root.
    pub path: RelPath,
    /// What happened to it.
    pub what: What,
}

/// What happened to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// There is a new file.
    CreatedFile {
        /// Of its content.
        digest: Digest,
        /// Its length.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// There is a new directory; what is in it is listed apart.
    CreatedDir {
        /// Its permission bits.
        mode: u32,
    },
    /// There is a new symbolic link.
    CreatedSymlink {
        /// Where it points.
        target: Vec<u8>,
    },
    /// There is a new pipe or socket. It is never applied.
    CreatedSpecial,
    /// What had another name has this one, whatever it is.
    MovedHere {
        /// The name it had.
        from: RelPath,
        /// Of a directory all comes along.
        extent: Extent,
    },
    /// A file has another content, and perhaps another mode.
    ModifiedFile {
        /// Of the content the command saw; [`Digest::NONE`] if it could not be read.
        base: Digest,
        /// Of the new content.
        digest: Digest,
        /// The new length.
        bytes: u64,
        /// The old permission bits.
        mode_before: u32,
        /// The new ones.
        mode: u32,
    },
    /// Only the permission bits of a file or directory are different.
    ModifiedMode {
        /// The old ones.
        before: u32,
        /// The new ones.
        mode: u32,
    },
    /// Only the time at which a file was last changed is different.
    ModifiedTime {
        /// The old one.
        before: Timespec,
        /// The new one.
        time: Timespec,
    },
    /// The extended attributes of a file or directory are different.
    Xattrs {
        /// Whether the name is new in this change set.
        on: Whose,
        /// Which ones, by name.
        names: Vec<Vec<u8>>,
        /// Of all of them as they are after.
        digest: Digest,
    },
    /// A file is gone.
    DeletedFile {
        /// Of the content the command saw; [`Digest::NONE`] if it could not be read.
        base: Digest,
    },
    /// A symbolic link is gone.
    DeletedSymlink {
        /// Where it pointed.
        target: Vec<u8>,
    },
    /// A directory is gone; what was in it is listed apart, before it.
    DeletedDir,
    /// A pipe, socket or device is gone.
    DeletedSpecial,
    /// What was there has another name, whatever it is.
    MovedAway {
        /// Of a directory all goes along.
        extent: Extent,
    },
}

/// Whether something was there before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The command made it.
    New,
    /// It was there.
    Old,
}

impl ChangeSet {
    /// Reads the layer `upper` of a view of `dir`. No process may use it any more.
    ///
    /// Files with holes pretend to be longer than the layer can be; more than
    /// eight times `bytes_max` of them together is an error, or reading would
    /// not end.
    /// `started` is when the command had seen nothing yet, by a clock that was not set since.
    ///
    /// # Errors
    /// The layer holds what cannot be read, or a mark nobody knows.
    pub fn read(
        upper: OwnedFd,
        dir: &DirCap,
        bytes_max: u64,
        started: Timespec,
    ) -> Result<Self, ChangeSetError> {
        let terms = Terms {
            started: Since::at(started),
            owners: None,
            bytes_max,
            settled: Settled::default(),
            while_it_runs: None,
        };
        Self::read_of(upper, dir, terms)
    }

    /// The same on these terms.
    pub(crate) fn read_of(
        upper: OwnedFd,
        dir: &DirCap,
        terms: Terms,
    ) -> Result<Self, ChangeSetError> {
        let lower = dir
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| ChangeSetError {
                operation: "hold",
                path: String::from("."),
                source,
            })?;
        let owners = terms.owners.clone();
        let compare = move || {
            let found = scan::scan(upper.as_fd(), lower.as_fd(), terms);
            found.map(|found| (found, upper, lower))
        };
        let patience = dir.patience().cloned();
        let (found, upper, lower) = match &patience {
            None => compare()?,
            Some(patience) => patience
                .compare(compare)
                .map_err(|source| ChangeSetError {
                    operation: "compare",
                    path: String::from("."),
                    source,
                })??,
        };
        Ok(Self {
            renames: renames::find(&found.before, &found.after),
            changes: found.changes,
            never: found.never,
            owners,
            before: found.before,
            after: found.after,
            second_names: found.second_names,
            moves: Vec::new(),
            so_far: found.so_far,
            layer: found.layer,
            upper,
            lower,
            patience,
            prefix: dir.prefix().clone(),
            kept: None,
        })
    }

    /// Nothing, whatever the layer holds: it took more room than it may, and a part
    /// of what a command did is not what it did.
    pub(crate) fn nothing_of(upper: OwnedFd, dir: &DirCap) -> io::Result<Self> {
        Ok(Self {
            changes: Vec::new(),
            never: Never::default(),
            owners: None,
            before: Tree::new(),
            after: Tree::new(),
            second_names: BTreeMap::new(),
            renames: Renames::default(),
            moves: Vec::new(),
            so_far: SoFar::default(),
            layer: Layer::Overlay,
            upper,
            lower: dir.as_fd().try_clone_to_owned()?,
            patience: dir.patience().cloned(),
            prefix: dir.prefix().clone(),
            kept: None,
        })
    }

    /// As much of it as a thread of its own needs to carry it over.
    pub(crate) fn lent(&self) -> io::Result<Self> {
        Ok(Self {
            changes: self.changes.clone(),
            never: Never::default(),
            owners: self.owners.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            second_names: self.second_names.clone(),
            renames: self.renames.clone(),
            moves: self.moves.clone(),
            so_far: self.so_far.lent(),
            layer: self.layer,
            upper: self.upper.try_clone()?,
            lower: self.lower.try_clone()?,
            patience: self.patience.clone(),
            prefix: self.prefix.clone(),
            kept: self.kept.clone(),
        })
    }

    /// Whether its command runs still.
    pub(crate) fn runs(&self) -> bool {
        self.so_far.runs
    }

    /// Whether names are gone, changes or not.
    pub(crate) fn is_any_gone(&self) -> bool {
        self.so_far.is_any_gone
    }

    /// Whether there is more than was told.
    pub(crate) fn has_more(&self) -> bool {
        self.so_far.is_full || self.so_far.is_more_gone
    }

    /// Whether something was left for later, or went elsewhere since, that may be what
    /// is gone under another name.
    pub(crate) fn may_miss_some(&self) -> bool {
        self.so_far.waits || !self.names_stand()
    }

    /// Whether no directory has got or lost a name since it was looked at.
    pub(crate) fn names_stand(&self) -> bool {
        self.so_far.names_stand(self.upper.as_fd())
    }

    /// What files held that hold something else, and may have another name.
    pub(crate) fn overwritten(&self) -> &[Overwritten] {
        &self.so_far.overwritten
    }

    /// What the files hold that are new or changed.
    pub(crate) fn contents(&self) -> impl Iterator<Item = Digest> {
        let contents = self.after.values().map(Node::digest);
        contents.filter(|digest| *digest != Digest::NONE)
    }

    /// Whether something that was left for later may hold so much.
    pub(crate) fn may_wait(&self, bytes: u64) -> bool {
        self.so_far.waiting.may_hold(bytes)
    }

    /// Whether it was looked at too shortly after a change to tell whether that was the
    /// last one.
    pub(crate) fn is_blurred(&self) -> bool {
        self.so_far.is_blurred()
    }

    /// The names of the layer that are not any more as they were seen.
    pub(crate) fn moved_on(&self) -> Vec<RelPath> {
        self.so_far.moved_on(self.upper.as_fd())
    }

    /// The names that are changes, each with what it lies in.
    pub(crate) fn names_told(&self) -> BTreeSet<RelPath> {
        let mut names = BTreeSet::new();
        for change in &self.changes {
            let mut name = Some(change.path.clone());
            while let Some(path) = name.filter(|path| !names.contains(path)) {
                name = path.parent();
                names.insert(path);
            }
        }
        names
    }

    /// The names its command had and gave up since.
    pub(crate) fn given_up(&self) -> impl Iterator<Item = &RelPath> {
        self.so_far.given_up(self.upper.as_fd())
    }

    /// Whether its command's view has something of its own under a name, or the mark that
    /// there is nothing: then it does not show what comes there outside. A copy never does.
    pub(crate) fn shields(&self, path: &RelPath) -> bool {
        !self.runs() || self.layer == Layer::Copy || now(self.upper.as_fd(), path).is_some()
    }

    /// Whether a commit of it may have given this thing outside another name.
    pub(crate) fn has_linked(&self, inode: u64) -> bool {
        let mut below = self.so_far.below.iter();
        below.any(|thing| thing.may_be_linked(inode))
    }

    /// Notes what it was to displace and did not, as all of it was taken back.
    pub(crate) fn came_back(&self, settled: &mut Settled) {
        settled.moved(&self.so_far.below, |_| true);
    }

    /// Notes what was seen of the layer as carried over.
    pub(crate) fn settle_in(&self, settled: &mut Settled, lower: BorrowedFd<'_>) {
        settled.moved(&self.so_far.below, |thing| thing.has_other_names);
        for (path, above) in &self.so_far.seen {
            let below = match self.after.get(path) {
                Some(node) => settled::left_as(lower, path, node),
                None => None,
            };
            let is_fresh = above
                .as_ref()
                .is_some_and(|seen| self.so_far.is_fresh(seen));
            let (above, grip) = (above.clone(), self.so_far.grips.get(path).cloned());
            settled.note(
                path,
                Stood {
                    above,
                    below,
                    is_fresh,
                    grip,
                },
            );
        }
    }

    /// Its layer stays there until this is dropped.
    pub(crate) fn lies_in(&mut self, kept: Option<Arc<KeptLayer>>) {
        self.kept = kept;
    }

    /// Makes the empty directory `upper` a layer over `dir` that is a copy of it,
    /// with its list beside it, as a sandbox does where no overlay can be mounted.
    ///
    /// # Errors
    /// `dir` holds more than this, or a name cannot be copied.
    pub fn copy_layer(
        dir: &DirCap,
        upper: BorrowedFd<'_>,
        bytes_max: u64,
        names_max: u64,
    ) -> io::Result<()> {
        let ceiling = copy::Ceiling {
            bytes: bytes_max,
            names: names_max,
        };
        let copied =
            copy::copy(dir.as_fd(), upper, ceiling, copy::Owners::Kept).map_err(|error| {
                io::Error::new(
                    error.source.kind(),
                    format!("{}: {}", error.on, error.source),
                )
            })?;
        copied.write_beside(upper)
    }

    /// The changes, in the order in which they are applied.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether the command changed nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Which deletions and creations are one thing with another name.
    #[must_use]
    pub fn renames(&self) -> &[Rename] {
        self.renames.all()
    }

    /// Whether a name only gets another one, or lies below one that does.
    #[must_use]
    pub fn is_moved(&self, path: &RelPath) -> bool {
        self.renames.old_above(path).is_some()
    }

    /// The new name of what got another one that a name is, or lies below.
    #[must_use]
    pub fn moved_to(&self, path: &RelPath) -> Option<RelPath> {
        self.renames.new_above(path)
    }

    /// Takes changes out, by their names; whether they are out. Nothing is where one is
    /// among them that no set may hold: that is told.
    pub fn leave_out(&mut self, is_left: impl Fn(&RelPath) -> bool) -> bool {
        if self.never.names().any(&is_left) {
            return false;
        }
        self.take_out(is_left);
        true
    }

    /// Takes changes out, whatever they are, and hands them over.
    fn take_out(&mut self, is_out: impl Fn(&RelPath) -> bool) -> Vec<Change> {
        let changes = std::mem::take(&mut self.changes).into_iter();
        let (out, stays) = changes.partition(|change| is_out(&change.path));
        self.changes = stays;
        self.before.retain(|path, _| !is_out(path));
        self.after.retain(|path, _| !is_out(path));
        self.second_names.retain(|path, _| !is_out(path));
        self.never.forget(is_out);
        self.renames = renames::find(&self.before, &self.after);
        out
    }

    /// How the view was made.
    #[must_use]
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// The effects applying it would have, one for each change, in order.
    ///
    /// # Errors
    /// A path would be too long.
    pub fn actions(&self, dir: DirId) -> Result<Vec<Action>, CapError> {
        self.changes
            .iter()
            .map(|change| {
                let place = self
                    .prefix
                    .join(&change.path)
                    .unwrap_or_else(|_| change.path.clone());
                let (what, extent) = (&change.what, change.what.extent());
                let settings = self.settings_of_new_store(&place, change);
                let object = Object::Dir {
                    dir,
                    below: place,
                    extent,
                };
                let action = Action::new(what.verb(), object, what.digest())?;
                Ok(action.with_settings(settings))
            })
            .collect()
    }

    /// How long a changed file was and is, together: what showing both would take.
    #[must_use]
    pub fn bytes_of(&self, change: &Change) -> u64 {
        let bytes = |tree: &Tree| tree.get(&change.path).map_or(0, |node| node.bytes);
        bytes(&self.before).saturating_add(bytes(&self.after))
    }

    /// What a changed file held before, to show a difference.
    ///
    /// # Errors
    /// It is not a regular file (any more), or longer than `bytes_max`.
    pub fn content_before(&self, path: &RelPath, bytes_max: usize) -> io::Result<Vec<u8>> {
        let Some(patience) = &self.patience else {
            return scan::read_below(self.lower.as_fd(), path, bytes_max);
        };
        let (lower, path) = (self.lower.try_clone()?, path.clone());
        patience.look(move || scan::read_below(lower.as_fd(), &path, bytes_max))?
    }

    /// What a created or changed file holds.
    ///
    /// # Errors
    /// It is not a regular file, or longer than `bytes_max`.
    pub fn content_after(&self, path: &RelPath, bytes_max: usize) -> io::Result<Vec<u8>> {
        scan::read_below(self.upper.as_fd(), path, bytes_max)
    }

    /// Lets everything vanish. Dropping does the same; this says it aloud.
    pub fn discard(self) {
        drop(self);
    }
}
