//! What of a layer was decided while its command still ran.
//!
//! What for: what a running command has made so far can be carried over, and goes on
//! lying in its layer. At the next look it is no change any more, unless the command
//! changed it again; and the file it became outside was left by nobody else, unless that
//! was changed again.
//!
//! It must never call something settled that a command could have changed since: as with
//! copies, the kernel's times tell, where they can, and at the end of the command the
//! content.

mod displaced;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

pub use self::displaced::Displaced;
use super::copied::Seen;
use super::grip::Grip;
use super::node::{Holds, Node, kind_of};
use crate::dircap::Kind;
use crate::dircap::open::{open_parent, stat_name};

/// Everything that was decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled {
    /// By the directory it lies in.
    names: BTreeMap<RelPath, BTreeMap<Vec<u8>, Stood>>,
    /// What things outside held that were moved, by their number: their kernel says of
    /// them, under whatever name, that they were changed.
    moved: BTreeMap<u64, Holds>,
    /// How things outside were left under names of which nothing else is known any more.
    left: BTreeMap<RelPath, Left>,
    /// The names whose files are held on to, as they came.
    held: VecDeque<RelPath>,
    /// What its command took away, as far as that was decided.
    pub displaced: Displaced,
}

/// Something outside that a commit may move, or give another name.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    inode: u64,
    holds: Holds,
    pub has_other_names: bool,
}

impl Below {
    /// A file that is to hold this, and gets another name.
    pub(super) fn holding(stat: &Stat, content: Digest) -> Self {
        Self {
            inode: stat.st_ino,
            holds: Holds::Content(content),
            has_other_names: true,
        }
    }

    /// As it was found.
    pub(super) fn of(stat: &Stat, node: &Node) -> Self {
        Self {
            inode: stat.st_ino,
            holds: node.holds.clone(),
            has_other_names: stat.st_nlink > 1,
        }
    }
}

impl Below {
    /// Whether it is this one, and a commit may give it another name.
    pub(super) fn may_be_linked(&self, inode: u64) -> bool {
        self.has_other_names && self.inode == inode
    }
}

/// So many files of one view are held on to at most.
const HELD_MAX: usize = 32;

/// So many things that were moved are remembered at most.
const MOVED_MAX: usize = 100_000;

/// One name that was decided.
#[derive(Clone, Debug)]
pub(crate) struct Stood {
    /// What the layer held; nothing if the command had deleted it.
    pub above: Option<Seen>,
    /// What it became outside, if that is known to be the same.
    pub below: Option<Left>,
    /// It had been changed so shortly before that its times may not tell of another change.
    pub is_fresh: bool,
    /// The very file, if it is held on to.
    pub grip: Option<Grip>,
}

/// Something outside, as it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    inode: u64,
    bytes: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Left {
    /// As these facts say.
    pub(crate) fn of(stat: &Stat) -> Self {
        let seen = Seen::of(stat);
        Self {
            inode: seen.inode,
            bytes: seen.bytes,
            modified: seen.modified,
            changed: seen.changed,
        }
    }
}

impl Settled {
    /// What the layer held under a name.
    pub(super) fn seen(&self, path: &RelPath) -> Option<&Seen> {
        self.at(path)?.above.as_ref()
    }

    /// Whether what the layer held may be another by now and have the times it had.
    pub(super) fn is_fresh(&self, path: &RelPath) -> bool {
        self.at(path).is_some_and(|stood| stood.is_fresh)
    }

    /// Whether the file the layer held under a name is known to have no name there any more.
    pub(super) fn was_removed(&self, path: &RelPath) -> bool {
        let grip = self.at(path).and_then(|stood| stood.grip.as_ref());
        grip.is_some_and(Grip::is_removed)
    }

    /// Whether a name was deleted in the layer, and outside.
    pub(super) fn is_gone(&self, path: &RelPath) -> bool {
        self.at(path).is_some_and(|stood| stood.above.is_none())
    }

    /// Whether what is outside was left so, and by nobody else.
    pub(super) fn was_left(&self, path: &RelPath, stat: &Stat) -> bool {
        let now = Some(Left::of(stat));
        kind_of(stat) != Kind::Dir
            && (self.at(path).and_then(|stood| stood.below) == now
                || self.left.get(path).copied() == now)
    }

    /// Whether what is outside was moved there and holds what it held then.
    pub(super) fn was_moved(&self, stat: &Stat, node: &Node) -> bool {
        self.moved.get(&stat.st_ino) == Some(&node.holds)
    }

    /// Notes things that a commit moved, as far as they count.
    pub(super) fn moved(&mut self, things: &[Below], counts: impl Fn(&Below) -> bool) {
        for thing in things.iter().filter(|thing| counts(thing)) {
            if self.moved.len() >= MOVED_MAX {
                // What is forgotten counts as changed by others.
                self.moved.clear();
            }
            self.moved.insert(thing.inode, thing.holds.clone());
        }
    }

    /// The names in a directory that the layer held.
    pub(super) fn names_in(&self, dir: &RelPath) -> impl Iterator<Item = &[u8]> {
        let names = self.names.get(dir).into_iter().flatten();
        names
            .filter(|(_, stood)| stood.above.is_some())
            .map(|(name, _)| name.as_slice())
    }

    /// Notes what was decided about a name. What lay below it counts no longer unless it
    /// is the directory it was.
    pub(crate) fn note(&mut self, path: &RelPath, mut stood: Stood) {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return;
        };
        if let Some(old) = self.at(path) {
            let is_same = match (&old.above, &stood.above) {
                (Some(old), Some(new)) => old.inode == new.inode,
                _ => false,
            };
            // Who left what is outside does not change with what the layer holds.
            stood.below = stood.below.or(old.below);
            if is_same {
                stood.grip = stood.grip.or_else(|| old.grip.clone());
            } else {
                self.forget_below(path);
            }
        }
        if stood.grip.is_some() {
            self.hold_on_to(path);
        }
        self.names
            .entry(dir)
            .or_default()
            .insert(name.to_vec(), stood);
    }

    /// Notes that the file of a name is held on to, and lets go of the oldest if there are
    /// too many.
    fn hold_on_to(&mut self, path: &RelPath) {
        self.held.retain(|held| held != path);
        self.held.push_back(path.clone());
        if self.held.len() <= HELD_MAX {
            return;
        }
        let Some(oldest) = self.held.pop_front() else {
            return;
        };
        if let (Some(dir), Some(name)) = (oldest.parent(), oldest.file_name())
            && let Some(stood) = self.names.get_mut(&dir).and_then(|dir| dir.get_mut(name))
        {
            stood.grip = None;
        }
    }

    /// Forgets what was decided of a directory and all in it, but for who left what is
    /// outside: that is no other by now. Only these are gone through: a command may replace
    /// one name after the other beside many directories.
    fn forget_below(&mut self, path: &RelPath) {
        let from_here = self.names.range(path.clone()..).map(|(dir, _)| dir);
        let below = from_here
            .take_while(|dir| dir.as_bytes().starts_with(path.as_bytes()))
            .filter(|dir| dir.starts_with(path));
        for dir in below.cloned().collect::<Vec<_>>() {
            for (name, stood) in self.names.remove(&dir).unwrap_or_default() {
                if let (Some(left), Ok(path)) = (stood.below, dir.child(&name)) {
                    if self.left.len() >= MOVED_MAX {
                        self.left.clear();
                    }
                    self.left.insert(path, left);
                }
            }
        }
    }

    /// What was decided about a name.
    pub(crate) fn at(&self, path: &RelPath) -> Option<&Stood> {
        self.names.get(&path.parent()?)?.get(path.file_name()?)
    }
}

/// How something was left outside, if it is what was put there: what somebody else put in
/// its place meanwhile is not.
pub(super) fn left_as(root: BorrowedFd<'_>, path: &RelPath, node: &Node) -> Option<Left> {
    let (parent, name) = open_parent(root, path).ok()?;
    let look = || stat_name(parent.as_fd(), &name, path).ok()?;
    let first = look()?;
    let (now, _) = Node::read(parent.as_fd(), &name).ok()??;
    let last = look()?;
    let is_it = now.kind == node.kind && now.holds == node.holds;
    (is_it && Left::of(&first) == Left::of(&last)).then(|| Left::of(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lay_in_a_directory_that_is_another_now_counts_no_longer() {
        let temp = tempfile::tempdir().unwrap();
        let seen = |name: &str| {
            let path = temp.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Some(Seen::of(&rustix::fs::lstat(&path).unwrap()))
        };
        let path = |name: &str| RelPath::parse(name.as_bytes()).unwrap();
        let mut settled = Settled::default();
        let mut note = |at: &str, above| {
            let stood = Stood {
                above,
                below: None,
                is_fresh: false,
                grip: None,
            };
            settled.note(&path(at), stood);
            let of_b = settled.seen(&path("a/b")).is_some();
            (settled.names_in(&path("a")).count(), of_b)
        };
        let a = seen("a");
        assert_eq!(note("a", a.clone()), (0, false));
        assert_eq!(note("a/b", seen("b")), (1, true));
        assert_eq!(note("a", a), (1, true), "the same one");
        assert_eq!(note("a", seen("other")), (0, false));
        assert_eq!(note("a/b", None), (0, false));
        assert!(settled.is_gone(&path("a/b")));
    }

    #[test]
    fn what_was_written_again_in_the_same_moment_is_found_by_what_it_holds() {
        let temp = tempfile::tempdir().unwrap();
        for dir in ["work", "upper", "lower"] {
            std::fs::create_dir(temp.path().join(dir)).unwrap();
        }
        let (upper, lower) = (temp.path().join("upper"), temp.path().join("lower"));
        std::fs::write(upper.join("f"), "new\n").unwrap();
        std::fs::write(lower.join("f"), "old\n").unwrap();
        let open = |path: &std::path::Path| std::fs::File::open(path).unwrap();
        let name = RelPath::parse(b"f").unwrap();
        let look = |holds: &[u8], is_fresh| {
            let above = Some(Seen {
                content: Some(crate::digest::sha256(holds)),
                ..Seen::of(&rustix::fs::lstat(upper.join("f")).unwrap())
            });
            let stat = rustix::fs::lstat(lower.join("f")).unwrap();
            let stood = Stood {
                above,
                below: Some(Left::of(&stat)),
                is_fresh,
                grip: None,
            };
            let mut settled = Settled::default();
            settled.note(&name, stood);
            let terms = super::super::Terms {
                started: crate::changeset::clock::Since::now(),
                owners: None,
                bytes_max: 1 << 20,
                settled,
                while_it_runs: Some(super::super::Meanwhile::default()),
            };
            let found = super::super::scan::scan(open(&upper).as_fd(), open(&lower).as_fd(), terms);
            let found = found.unwrap();
            (found.changes.len(), found.so_far.seen.len())
        };
        assert_eq!(look(b"old\n", true), (1, 1), "it is another");
        assert_eq!(look(b"old\n", false), (0, 0), "its times are believed");
        // It is noted again, by a time that tells.
        assert_eq!(look(b"new\n", true), (0, 1));
    }
}
