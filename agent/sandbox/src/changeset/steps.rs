//! From a list of changes to the few renames that bring it about.
//!
//! Everything new below a new directory comes with it, everything below a
//! deleted one goes with it, so names of different steps never lie below each
//! other. A file or a directory that only got another name, or a file that got
//! another mode and has no other name, is changed itself; any other is replaced
//! as a whole: an outside name of the same file must not change with it.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd};

use hermitcrab_core::path::RelPath;
use rustix::fs::Stat;

use super::in_place::OtherMode;
use super::node::{Fingerprint, Meta, Node, Tree, USABLE, fingerprint};
use super::owners::Owners;
use super::renames::{below, itself_or_above};
use super::{ChangeSet, now};
use crate::dircap::open::{open_parent, stat_name};
use crate::dircap::{FsError, Kind, Thing};

/// One step.
#[derive(Debug)]
pub(crate) struct Step {
    pub path: RelPath,
    pub kind: StepKind,
}

/// What it does to what has the name, told as it is found before.
#[derive(Debug)]
pub(crate) enum StepKind {
    /// Without these names in it, which get there by steps of their own.
    Put(Vec<RelPath>),
    Swap(Fingerprint),
    Take(Fingerprint),
    Meta(Meta, Meta),
    /// To which name, which thing, and what it is to hold if that is said.
    Move(RelPath, Thing, Option<Fingerprint>),
    Mode(OtherMode),
}

impl ChangeSet {
    /// The steps, in the order in which they can be taken: directories are
    /// opened first and closed last.
    pub(crate) fn steps(&self, root: BorrowedFd<'_>) -> Result<Vec<Step>, (RelPath, FsError)> {
        self.is_as_read(root)?;
        let mut opened: Tree = Tree::new();
        let mut main = Vec::new();
        let mut closing: Vec<(RelPath, Meta, Meta)> = Vec::new();
        let names = self.names();
        let renamed = self.renamed_as_they_are(root, &names)?;
        let arrived: BTreeSet<&RelPath> = renamed.values().map(|renamed| &renamed.to).collect();
        let mut emptied = Vec::new();
        for path in names {
            let at_it = |error| (path.clone(), error);
            let other_mode = self.only_other_mode(root, &path).map_err(at_it)?;
            let is_moved = renamed.contains_key(&path) || arrived.contains(&path);
            if is_moved || other_mode.is_some() {
                self.open_parent_of(root, &path, &mut opened)
                    .map_err(at_it)?;
                main.extend(other_mode.map(|change| Step {
                    path: path.clone(),
                    kind: StepKind::Mode(change),
                }));
                continue;
            }
            let (old, new) = (self.before.get(&path), self.after.get(&path));
            let dirs = |node: &Node| node.kind == Kind::Dir;
            let mut is_emptied = false;
            let kind = match (old, new) {
                (Some(old), Some(new)) if dirs(old) && dirs(new) => {
                    closing.push((path, meta(old), meta(new)));
                    continue;
                }
                (None, Some(new)) => {
                    if dirs(new) && new.mode & USABLE != USABLE {
                        let mut usable = meta(new);
                        usable.mode |= USABLE;
                        closing.push((path.clone(), usable, meta(new)));
                    }
                    StepKind::Put(inside(
                        &path,
                        arrived.range::<&RelPath, _>(&path..).copied(),
                    ))
                }
                (Some(old), new) => {
                    let mut gone = below(&self.before, &path);
                    if dirs(old)
                        && old.mode & USABLE != USABLE
                        && let Some(top) = gone.get_mut(&RelPath::root())
                    {
                        opened.insert(path.clone(), old.clone());
                        top.mode |= USABLE;
                    }
                    match new {
                        Some(new) => {
                            if dirs(new) && new.mode & USABLE != USABLE {
                                let mut usable = meta(new);
                                usable.mode |= USABLE;
                                closing.push((path.clone(), usable, meta(new)));
                            }
                            StepKind::Swap(fingerprint(&gone))
                        }
                        None => {
                            let from = renamed.range(path.clone()..).map(|(from, _)| from);
                            let names = inside(&path, from);
                            leave_out(&mut gone, &names);
                            is_emptied = !names.is_empty();
                            StepKind::Take(fingerprint(&gone))
                        }
                    }
                }
                (None, None) => continue,
            };
            self.open_parent_of(root, &path, &mut opened)
                .map_err(at_it)?;
            let steps = if is_emptied { &mut emptied } else { &mut main };
            steps.push(Step { path, kind });
        }
        // Last, because they may lead into directories that are made for them.
        // One that cannot be made as things are is none of ours to make possible.
        main.extend(self.moves.iter().map(|moved| Step {
            path: moved.from.clone(),
            kind: StepKind::Move(moved.to.clone(), moved.what, None),
        }));
        main.extend(renamed.into_iter().map(|(path, renamed)| Step {
            path,
            kind: StepKind::Move(renamed.to, renamed.what, Some(renamed.holds)),
        }));
        // What they leave is gone when they have left it.
        main.extend(emptied);
        Ok(in_order(opened, main, closing))
    }

    /// The outermost names that change, each once.
    fn names(&self) -> Vec<RelPath> {
        let mut names: Vec<RelPath> = self
            .before
            .keys()
            .chain(self.after.keys())
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        let comes_along = |path: &RelPath| {
            let Some(parent) = path.parent() else {
                return false;
            };
            let made = self.after.contains_key(&parent) && self.is_new(&parent);
            let goes = self.before.contains_key(&parent) && self.is_gone(&parent);
            made || goes
        };
        names.retain(|path| !comes_along(path));
        names
    }

    fn is_dir(tree: &Tree, path: &RelPath) -> bool {
        tree.get(path).is_some_and(|node| node.kind == Kind::Dir)
    }

    fn is_new(&self, path: &RelPath) -> bool {
        Self::is_dir(&self.after, path) && !Self::is_dir(&self.before, path)
    }

    fn is_gone(&self, path: &RelPath) -> bool {
        Self::is_dir(&self.before, path) && !Self::is_dir(&self.after, path)
    }

    /// A directory its owner cannot write is opened for as long as it takes.
    fn open_parent_of(
        &self,
        root: BorrowedFd<'_>,
        path: &RelPath,
        opened: &mut Tree,
    ) -> Result<(), FsError> {
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        if opened.contains_key(&parent) {
            return Ok(());
        }
        if let Some(node) = self.before.get(&parent) {
            if node.mode & USABLE != USABLE {
                opened.insert(parent, node.clone());
            }
            return Ok(());
        }
        let stat = if parent.is_root() {
            Some(rustix::fs::fstat(root).map_err(|errno| FsError::io("stat", path, errno))?)
        } else {
            match open_parent(root, &parent) {
                Ok((above, name)) => stat_name(above.as_fd(), &name, &parent)?,
                // The step itself finds out and says so.
                Err(_) => None,
            }
        };
        if let Some(stat) = stat
            && super::node::kind_of(&stat) == Kind::Dir
            && stat.st_mode & USABLE != USABLE
        {
            let node = Node {
                kind: Kind::Dir,
                mode: super::node::mode_of(&stat),
                bytes: 0,
                holds: super::node::Holds::Names,
                xattrs: super::node::Xattrs::new(),
            };
            opened.insert(parent, node);
        }
        Ok(())
    }

    /// How much the names held before that these steps replace or remove.
    pub(crate) fn bytes_before(&self, steps: &[Step]) -> u64 {
        let stays: BTreeSet<&RelPath> = steps
            .iter()
            .filter(|step| matches!(step.kind, StepKind::Move(..) | StepKind::Mode(_)))
            .map(|step| &step.path)
            .collect();
        self.before
            .iter()
            .filter(|(path, _)| itself_or_above(path, |name| stays.contains(name)).is_none())
            .fold(0, |sum, (_, node)| sum.saturating_add(node.bytes))
    }
}

/// Those of names in order, beginning with a directory's, that lie in it, as seen from it.
fn inside<'n>(dir: &RelPath, names: impl Iterator<Item = &'n RelPath>) -> Vec<RelPath> {
    names
        .take_while(|name| name.as_bytes().starts_with(dir.as_bytes()))
        .filter_map(|name| name.strip_prefix(dir))
        .collect()
}

/// Takes names out of a tree, with all below them.
pub(crate) fn leave_out(tree: &mut Tree, names: &[RelPath]) {
    let names: BTreeSet<&RelPath> = names.iter().collect();
    tree.retain(|path, _| itself_or_above(path, |name| names.contains(name)).is_none());
}

fn in_order(opened: Tree, main: Vec<Step>, closing: Vec<(RelPath, Meta, Meta)>) -> Vec<Step> {
    let mut first = Vec::new();
    let mut last = Vec::new();
    let taken: BTreeSet<&RelPath> = main
        .iter()
        .filter(|step| !matches!(step.kind, StepKind::Put(_)))
        .map(|step| &step.path)
        .collect();
    let closed: BTreeSet<&RelPath> = closing.iter().map(|(path, _, _)| path).collect();
    // Outermost first: the inner ones are reached through them.
    for (path, node) in &opened {
        let mut usable = meta(node);
        usable.mode |= USABLE;
        first.push(Step {
            path: path.clone(),
            kind: StepKind::Meta(meta(node), usable.clone()),
        });
        if !closed.contains(path) && !taken.contains(path) {
            last.push((path.clone(), usable, meta(node)));
        }
    }
    for (path, mut before, after) in closing {
        if opened.contains_key(&path) {
            before.mode |= USABLE;
        }
        if before != after {
            last.push((path, before, after));
        }
    }
    // Innermost first: what closes the way to others comes after them.
    last.sort_by_key(|(path, _, _)| std::cmp::Reverse(path.components().count()));
    let closed = last.into_iter().map(|(path, before, after)| Step {
        path,
        kind: StepKind::Meta(before, after),
    });
    first.into_iter().chain(main).chain(closed).collect()
}

fn meta(node: &Node) -> Meta {
    Meta {
        mode: node.mode,
        xattrs: node.xattrs.clone(),
    }
}

impl ChangeSet {
    /// What the command saw under a name, and below it.
    pub(crate) fn old_at(&self, path: &RelPath) -> Tree {
        below(&self.before, path)
    }

    /// What there is to be under a name, and below it.
    pub(crate) fn new_at(&self, path: &RelPath) -> Tree {
        below(&self.after, path)
    }

    /// The layer the contents are in.
    pub(crate) fn upper(&self) -> BorrowedFd<'_> {
        self.upper.as_fd()
    }

    /// How owners in it are read, if they are not those of outside.
    pub(crate) fn owners(&self) -> Option<&Owners> {
        self.owners.as_ref()
    }

    /// Whether something of the layer, which has other names, has this one.
    fn is_at(&self, name: &RelPath, thing: &Stat) -> bool {
        thing.st_nlink > 1
            && now(self.upper(), name).is_some_and(|found| found.st_ino == thing.st_ino)
    }

    /// The unchanged file that a new name is a link to, if it has no other
    /// names outside of the view's knowledge.
    pub(crate) fn other_name_of(
        &self,
        path: &RelPath,
        root: BorrowedFd<'_>,
    ) -> Result<Option<(RelPath, Node)>, FsError> {
        let Some(node) = self.after.get(path).filter(|node| node.kind == Kind::File) else {
            return Ok(None);
        };
        let (parent, name) = open_parent(self.upper.as_fd(), path)?;
        let found = stat_name(parent.as_fd(), &name, path)?;
        // Only what was decided is a second name; all else is copied.
        let (Some(first), Some(new)) = (self.second_names.get(path), found) else {
            return Ok(None);
        };
        // What moves while it is looked at is seen under several names, and has one.
        if self.runs() && !self.is_at(first, &new) {
            return Ok(None);
        }
        let Ok((parent, name)) = open_parent(root, first) else {
            return Ok(None);
        };
        // What was decided is what the new name is to hold, and the file may be another
        // by now.
        let found = Node::read(parent.as_fd(), &name).map_err(|source| FsError::Io {
            operation: "read",
            path: first.clone(),
            source,
        })?;
        let is_it = found.is_some_and(|(found, stat)| {
            stat.st_nlink == 1 && found.holds == node.holds && found.mode == node.mode
        });
        Ok(is_it.then(|| (first.clone(), node.clone())))
    }
}
