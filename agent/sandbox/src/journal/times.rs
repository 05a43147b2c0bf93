//! When directories were changed that come with a commit, and get something by a step of its
//! own.
//!
//! What for: a directory is staged with the time the command left it with, and would have
//! another one by what is moved into it. It must never fail a commit: a time is nothing
//! anybody has to be asked about.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::{OFlags, Timestamps};

use super::plan::{Act, Op, Plan};
use crate::changeset::copy::times;
use crate::dircap::open::{Links, open_beneath};

/// The times to be given back.
pub(super) struct Times<'p> {
    /// What comes by a step of the plan.
    made: BTreeSet<(usize, &'p RelPath)>,
    were: BTreeMap<(usize, RelPath), Timestamps>,
}

impl<'p> Times<'p> {
    /// Nothing was noted yet.
    pub(super) fn of(plan: &'p Plan) -> Self {
        let made = plan.ops.iter();
        let made = made.filter(|op| matches!(op.act, Act::Put { .. }));
        Self {
            made: made.map(|op| (op.root, &op.path)).collect(),
            were: BTreeMap::new(),
        }
    }

    /// Notes the time of the directory that gets something by this step, which is taken next.
    pub(super) fn note(&mut self, op: &Op, root: BorrowedFd<'_>) {
        let Act::Move { to, .. } = &op.act else {
            return;
        };
        let Some(dir) = to.parent().filter(|dir| self.comes(op.root, dir)) else {
            return;
        };
        let key = (op.root, dir);
        if self.were.contains_key(&key) {
            return;
        }
        let found = open(root, &key.1).and_then(|dir| rustix::fs::fstat(&dir).ok());
        if let Some(stat) = found {
            self.were.insert(key, times(&stat));
        }
    }

    /// Gives the directories of one root their times, once all is where it is to be.
    pub(super) fn give_back(&self, number: usize, root: BorrowedFd<'_>) {
        for ((of, dir), times) in &self.were {
            if let Some(dir) = (*of == number).then(|| open(root, dir)).flatten() {
                let _as_it_is = rustix::fs::futimens(&dir, times);
            }
        }
    }

    /// Whether the directory is there only since a step of the plan.
    fn comes(&self, root: usize, dir: &RelPath) -> bool {
        let mut at = Some(dir.clone());
        while let Some(path) = at {
            if self.made.contains(&(root, &path)) {
                return true;
            }
            at = path.parent();
        }
        false
    }
}

fn open(root: BorrowedFd<'_>, dir: &RelPath) -> Option<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    open_beneath(root.as_fd(), dir, flags, Links::Refuse).ok()
}
