//! Second names: new names of files that were there before and stay as they were.
//!
//! What for: who may write to a new name writes to the file of before from then on, by
//! programs that write in place. So to give one is a change of that file as well, and is
//! decided as such; what was not decided is a copy.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{CapError, DirId, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::ChangeSet;
use super::node::Tree;
use crate::digest::sha256;
use crate::dircap::Kind;

/// What is found of second names while a layer is read.
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// Files that are as before and had one name, by their number in the layer.
    unchanged: BTreeMap<u64, RelPath>,
    /// New and changed files that have other names, with their numbers.
    came: Vec<(RelPath, u64)>,
}

impl Linked {
    /// A file is as before. One that had several names outside gets none here: the others
    /// may lie where nothing is held.
    pub(super) fn note_unchanged(&mut self, path: &RelPath, new: &Stat, old: Option<&Stat>) {
        if new.st_nlink > 1 && old.is_some_and(|old| old.st_nlink == 1) {
            self.unchanged.insert(new.st_ino, path.clone());
        }
    }

    /// A file is new or changed.
    pub(super) fn note_came(&mut self, path: &RelPath, new: &Stat) {
        if new.st_nlink > 1 {
            self.came.push((path.clone(), new.st_ino));
        }
    }

    /// Which are to be second names, each with the name that was there. A tree that is new is
    /// carried over as a whole, with copies of what it links from outside of it; and a file
    /// gets one more name, as one of which others know would get none.
    pub(super) fn found(self, before: &Tree, after: &Tree) -> BTreeMap<RelPath, RelPath> {
        let Self {
            unchanged,
            mut came,
        } = self;
        let is_dir =
            |tree: &Tree, path: &RelPath| tree.get(path).is_some_and(|node| node.kind == Kind::Dir);
        let is_new_dir = |path: &RelPath| is_dir(after, path) && !is_dir(before, path);
        let lies_in_a_new_one = |path: &RelPath| {
            std::iter::successors(path.parent(), RelPath::parent).any(|above| is_new_dir(&above))
        };
        came.sort();
        let mut linked = BTreeSet::new();
        came.into_iter()
            .filter(|(path, _)| !lies_in_a_new_one(path))
            .filter_map(|(path, inode)| Some((path, unchanged.get(&inode)?.clone())))
            .filter(|(_, first)| linked.insert(first.clone()))
            .collect()
    }
}

impl ChangeSet {
    /// The file of before that a new or changed name is to be another name of.
    #[must_use]
    pub fn second_name_of(&self, path: &RelPath) -> Option<&RelPath> {
        self.second_names.get(path)
    }

    /// The files of before that get second names.
    pub fn get_second_names(&self) -> impl Iterator<Item = &RelPath> {
        self.second_names.values()
    }

    /// What second names do beside being there: the files of before can be changed by them.
    /// One effect for each, for which nothing is done.
    ///
    /// # Errors
    /// A path would be too long.
    pub fn by_second_names(&self, dir: DirId) -> Result<Vec<Action>, CapError> {
        let effects = self.second_names.iter().map(|(path, first)| {
            let place = self.prefix.join(first).unwrap_or_else(|_| first.clone());
            Action::on_path(Verb::FsModify, dir, place, digest(path))
        });
        effects.collect()
    }
}

/// What a permit for giving a file this second name is bound to.
fn digest(name: &RelPath) -> Digest {
    sha256(&[b"second name ", name.as_bytes()].concat())
}
