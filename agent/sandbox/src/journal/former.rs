//! What names get back where a commit is taken back, for whoever is to agree to that: it is
//! shown as it lies in the journal, and only if that is what would come.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;

use hermitcrab_core::digest::Digest;

use super::Journal;
use super::commit::slot_of;
use super::ground::parent_of;
use super::plan::{Act, Op, Touched};
use super::reach::open_root;
use super::undo::Undo;
use crate::changeset::arriving::{self, Arrival};
use crate::changeset::node::{Fingerprint, Holds, Tree, fingerprint, read_tree};
use crate::digest::sha256;
use crate::dircap::read_plain;

/// What comes back under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Former {
    /// A file.
    File {
        /// Its length.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
        /// The digest of what it holds.
        digest: Digest,
        /// What it holds, unless that is too long.
        content: Option<Vec<u8>>,
        /// What the name holds until then, if that is a file that can be read and is no longer
        /// than may be.
        now: Option<Vec<u8>>,
    },
    /// A link, and where it points.
    Link(Vec<u8>),
    /// What has no content of its own, is kept by its name alone, or cannot be read.
    Other,
}

impl Journal {
    /// What the changes of [`Undo::changes`] with these numbers bring back. Nothing longer than
    /// `bytes_max` is read.
    #[must_use]
    pub fn former(
        &self,
        undo: &Undo,
        wanted: &BTreeSet<usize>,
        bytes_max: usize,
    ) -> BTreeMap<usize, Former> {
        let mut trees = BTreeMap::new();
        let touched = undo.touched().iter().enumerate();
        touched
            .filter(|(at, _)| wanted.contains(at))
            .map(|(at, touched)| {
                let former = self.former_of(undo, touched, &mut trees, bytes_max);
                // Who cannot be shown it is told of the name all the same.
                (at, former.unwrap_or(Former::Other))
            })
            .collect()
    }

    fn former_of(
        &self,
        undo: &Undo,
        touched: &Touched,
        trees: &mut BTreeMap<usize, Tree>,
        bytes_max: usize,
    ) -> io::Result<Former> {
        let plan = undo.plan();
        let mut ops = plan.ops.iter().enumerate();
        let found = ops.find_map(|(at, op)| {
            let is_kept = match op.act {
                Act::Take { before } | Act::Swap { before, .. } => Some(before),
                // What is moved keeps what it holds, and its directory only its names.
                Act::Put { .. } | Act::Meta { .. } | Act::Move { .. } | Act::Mode(_) => None,
            }?;
            let below = touched.path.strip_prefix(&op.path)?;
            (op.root == touched.root).then_some((at, op, is_kept, below))
        });
        let Some((at, op, state, below)) = found else {
            return self.moved(undo, touched, bytes_max);
        };
        let entry = self.committed(undo.kept().id).map_err(io::Error::other)?;
        let slot = slot_of(at);
        if let Place::Vacant(free) = trees.entry(at) {
            free.insert(kept(read_tree(entry.dir.as_fd(), slot.as_bytes())?, state)?);
        }
        let node = trees.get(&at).and_then(|tree| tree.get(&below));
        let node = node.ok_or(io::ErrorKind::NotFound)?;
        Ok(match &node.holds {
            Holds::Content(digest) => {
                let place = slot.join(&below).map_err(io::Error::other)?;
                let (dir, name) = parent_of(entry.dir.as_fd(), &place).map_err(io::Error::other)?;
                let content = read_plain(&dir, &name, bytes_max).ok();
                Former::File {
                    bytes: node.bytes,
                    mode: node.mode,
                    digest: *digest,
                    content: content.filter(|content| sha256(content) == *digest),
                    now: self.there_now(undo, op, touched, bytes_max),
                }
            }
            Holds::Target(target) => Former::Link(target.clone()),
            Holds::Names | Holds::Itself { .. } | Holds::Special { .. } => Former::Other,
        })
    }

    /// A file that gets its former name again lies under another one until then; one that
    /// gets its former mode is there.
    fn moved(&self, undo: &Undo, touched: &Touched, bytes_max: usize) -> io::Result<Former> {
        let plan = undo.plan();
        let from = plan.ops.iter().find_map(|op| match &op.act {
            Act::Move { to, .. } if op.root == touched.root => {
                let below = touched.path.strip_prefix(&op.path)?;
                Some((to.join(&below).ok()?, None))
            }
            Act::Mode(change) if (op.root, &op.path) == (touched.root, &touched.path) => {
                Some((op.path.clone(), Some(change.modes.0)))
            }
            Act::Mode(_)
            | Act::Move { .. }
            | Act::Put { .. }
            | Act::Swap { .. }
            | Act::Take { .. }
            | Act::Meta { .. } => None,
        });
        let (Some((from, former)), Some(root)) = (from, plan.roots.get(touched.root)) else {
            return Ok(Former::Other);
        };
        let root = open_root(root).map_err(|unopened| io::Error::other(unopened.why))?;
        let (_, there) = arriving::read(root.as_fd(), &from, bytes_max)?;
        Ok(match there {
            Arrival::File {
                bytes,
                mode,
                digest,
                content,
            } => Former::File {
                bytes,
                mode: former.unwrap_or(mode),
                digest,
                now: content.clone().filter(|_| former.is_some()),
                content,
            },
            Arrival::Link(target) => Former::Link(target),
            Arrival::Other => Former::Other,
        })
    }

    /// What changes places with what comes back.
    fn there_now(
        &self,
        undo: &Undo,
        op: &Op,
        touched: &Touched,
        bytes_max: usize,
    ) -> Option<Vec<u8>> {
        if !matches!(op.act, Act::Swap { .. }) {
            return None;
        }
        let root = open_root(undo.plan().roots.get(touched.root)?).ok()?;
        let (dir, name) = parent_of(root.as_fd(), &touched.path).ok()?;
        read_plain(&dir, &name, bytes_max).ok()
    }
}

/// A tree, if it is in the state in which it would come back.
fn kept(tree: Tree, state: Fingerprint) -> io::Result<Tree> {
    match fingerprint(&tree) == state {
        true => Ok(tree),
        false => Err(io::Error::other("what was kept of it is damaged")),
    }
}
