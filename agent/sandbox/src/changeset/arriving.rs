//! What comes under a name with something that gets another one in one step.
//!
//! What for: such a step takes along whatever is there, and nothing of it is read. Where the
//! new name is one that somebody is asked about each time, what will have it is what they
//! agree to: it is read before they are asked, and the change set is bound to it.
//!
//! It must never let what is something else by then come under such a name.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;

use super::ChangeSet;
use super::node::{Holds, Node};
use crate::digest::sha256;
use crate::dircap::open::open_parent;
use crate::dircap::{FsError, read_plain};

/// What a name will have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
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
    },
    /// A link, and where it points.
    Link(Vec<u8>),
    /// What has no content of its own, or cannot be read.
    Other,
}

impl ChangeSet {
    /// Whether anything gets another name in one step, whatever it holds.
    #[must_use]
    pub fn takes_along(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Reads what is to have this name, which is told as in [`ChangeSet::actions`], and binds
    /// the change set to it. `None` if nothing comes to it with something that gets another
    /// name. Nothing longer than `bytes_max` is kept.
    pub fn arrival(&mut self, path: &RelPath, bytes_max: usize) -> Option<Arrival> {
        let path = path.strip_prefix(&self.prefix)?;
        let mut moves = self.moves.iter_mut();
        let (moved, old) = moves.find_map(|moved| {
            let below = path.strip_prefix(&moved.to)?;
            let old = moved.from.join(&below).ok()?;
            Some((moved, old))
        })?;
        let read = match &self.patience {
            None => read(self.lower.as_fd(), &old, bytes_max),
            Some(patience) => self.lower.try_clone().and_then(|lower| {
                let old = old.clone();
                patience.look(move || read(lower.as_fd(), &old, bytes_max))?
            }),
        };
        // Who cannot be shown it is told of the name all the same.
        let Ok((node, arrival)) = read else {
            return Some(Arrival::Other);
        };
        moved.read.push((old, node));
        Some(arrival)
    }

    /// What was read is what is there.
    pub(super) fn is_as_read(&self, root: BorrowedFd<'_>) -> Result<(), (RelPath, FsError)> {
        let read = self.moves.iter().flat_map(|moved| &moved.read);
        for (path, was) in read {
            let there = open_parent(root, path).and_then(|(dir, name)| {
                let found = Node::read(dir.as_fd(), &name);
                found.map_err(|source| FsError::Io {
                    operation: "read",
                    path: path.clone(),
                    source,
                })
            });
            match there {
                Ok(Some((node, _))) if node == *was => {}
                Ok(_) => {
                    let changed = FsError::denied(DenialCode::ChangedSinceShown, path);
                    return Err((path.clone(), changed));
                }
                Err(error) => return Err((path.clone(), error)),
            }
        }
        Ok(())
    }
}

/// What is there now, as a state and for whoever is to see it.
pub(crate) fn read(
    root: BorrowedFd<'_>,
    path: &RelPath,
    bytes_max: usize,
) -> io::Result<(Node, Arrival)> {
    let (dir, name) = open_parent(root, path).map_err(io::Error::other)?;
    let found = Node::read(dir.as_fd(), &name)?;
    let (node, _) = found.ok_or(io::ErrorKind::NotFound)?;
    let arrival = match &node.holds {
        Holds::Content(digest) => {
            let content = read_plain(&dir, &name, bytes_max).ok();
            Arrival::File {
                bytes: node.bytes,
                mode: node.mode,
                digest: *digest,
                content: content.filter(|content| sha256(content) == *digest),
            }
        }
        Holds::Target(target) => Arrival::Link(target.clone()),
        Holds::Names | Holds::Itself { .. } | Holds::Special { .. } => Arrival::Other,
    };
    Ok((node, arrival))
}
