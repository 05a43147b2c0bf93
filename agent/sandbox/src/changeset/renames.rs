//! Which deletions and creations are one thing with another name.
//!
//! The layer of a view does not say: what was renamed is there as a copy. So
//! the rule is about what can be seen. A deleted and a created name are one
//! renamed thing when everything about them is equal: kind, mode, content and
//! attributes, for a directory with everything below it; where a directory is
//! not, so are the things in it. Nothing that is
//! empty counts, or every empty file would come from every other. Of several
//! that fit, the one with the same last name is taken, then the first, and what
//! went with a directory after what did not.
//!
//! A rename changes nothing about which authority is needed: the old name has
//! to be deleted and the new one made.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::path::RelPath;

use super::node::{Holds, Node, Tree, counted, fingerprint};
use crate::digest::sha256;
use crate::dircap::Kind;

/// One thing with another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rename {
    /// The name that is gone.
    pub from: RelPath,
    /// The name that is new.
    pub to: RelPath,
}

/// All that were found, looked up by either name.
#[derive(Clone, Debug, Default)]
pub(super) struct Renames {
    // INVARIANT: in order. No name of one lies below one of another.
    all: Vec<Rename>,
    new: BTreeSet<RelPath>,
}

impl Renames {
    pub(super) fn all(&self) -> &[Rename] {
        &self.all
    }

    /// The old name that a name is, or lies below.
    pub(super) fn old_above(&self, path: &RelPath) -> Option<RelPath> {
        let is_old = |path: &RelPath| {
            let found = self.all.binary_search_by(|rename| rename.from.cmp(path));
            found.is_ok()
        };
        itself_or_above(path, is_old)
    }

    /// The new name that a name is, or lies below.
    pub(super) fn new_above(&self, path: &RelPath) -> Option<RelPath> {
        itself_or_above(path, |path| self.new.contains(path))
    }
}

/// The name, or a directory above it, of which that is so: a change set may have as many
/// renames as changes, so nobody goes through the ones for each of the others.
pub(super) fn itself_or_above(path: &RelPath, is: impl Fn(&RelPath) -> bool) -> Option<RelPath> {
    let mut here = Some(path.clone());
    while let Some(path) = here {
        if is(&path) {
            return Some(path);
        }
        here = path.parent();
    }
    None
}

/// Things that are in the same state, none of them paired yet: by whether they lie in a
/// directory that is gone as a whole, and by name.
#[derive(Default)]
struct Alike<'t> {
    all: BTreeSet<(bool, &'t RelPath)>,
    named: BTreeMap<&'t [u8], BTreeSet<(bool, &'t RelPath)>>,
}

/// All that was deleted and is not paired yet.
struct Free<'t> {
    found: &'t Found<'t>,
    alike: BTreeMap<[u8; 32], Alike<'t>>,
}

impl<'t> Free<'t> {
    fn new(found: &'t Found<'t>) -> Self {
        let mut alike: BTreeMap<[u8; 32], Alike<'t>> = BTreeMap::new();
        for (path, state) in &found.states {
            let of = alike.entry(*state).or_default();
            let key = (!found.tops.contains(*path), *path);
            let name = path.file_name().unwrap_or_default();
            of.all.insert(key);
            of.named.entry(name).or_default().insert(key);
        }
        Self { found, alike }
    }

    /// The first in this state, of those with this last name if that matters.
    fn take(&mut self, state: &[u8; 32], name: Option<&[u8]>) -> Option<&'t RelPath> {
        let alike = self.alike.get(state)?;
        let of = match name {
            Some(name) => alike.named.get(name)?,
            None => &alike.all,
        };
        let (_, path) = *of.first()?;
        self.forget_around(path);
        Some(path)
    }

    /// What is paired is paired with all that is in it, and what it is in is not as it was.
    fn forget_around(&mut self, path: &'t RelPath) {
        let found = self.found;
        let inside = found.states.range::<&RelPath, _>(path..);
        let inside = inside.take_while(|(at, _)| at.as_bytes().starts_with(path.as_bytes()));
        for (at, state) in inside.filter(|(at, _)| at.starts_with(path)) {
            self.forget(at, state);
        }
        let mut above = path.parent();
        while let Some((at, state)) = above.and_then(|at| found.states.get_key_value(&at)) {
            self.forget(at, state);
            above = at.parent();
        }
    }

    fn forget(&mut self, path: &'t RelPath, state: &[u8; 32]) {
        let key = (!self.found.tops.contains(path), path);
        if let Some(alike) = self.alike.get_mut(state) {
            alike.all.remove(&key);
            if let Some(named) = alike.named.get_mut(path.file_name().unwrap_or_default()) {
                named.remove(&key);
            }
        }
    }
}

/// Pairs what was made, first what kept its last name; says what is left.
fn pair<'t>(
    free: &mut Free<'_>,
    made: &Found<'_>,
    mut all: Vec<&'t RelPath>,
    renames: &mut Vec<Rename>,
) -> Vec<&'t RelPath> {
    for keeps_its_name in [true, false] {
        all.retain(|to| {
            let name = keeps_its_name.then(|| to.file_name().unwrap_or_default());
            let state = made.states.get(to);
            let from = state.and_then(|state| free.take(state, name));
            renames.extend(from.map(|from| Rename::new(from, to)));
            from.is_none()
        });
    }
    all
}

/// Pairs deletions with creations, whole directories before what is in them.
pub(super) fn find(before: &Tree, after: &Tree) -> Renames {
    let has_more = |of: &Tree, other: &Tree| of.keys().any(|path| !other.contains_key(path));
    // Most commands only make names or only remove some.
    if !has_more(before, after) || !has_more(after, before) {
        return Renames::default();
    }
    let gone = Found::of(before, after);
    let made = Found::of(after, before);
    let is_dir = |to: &&RelPath| after.get(*to).is_some_and(|node| node.kind == Kind::Dir);
    let mut free = Free::new(&gone);
    let mut renames = Vec::new();
    let mut files = Vec::new();
    let mut level: Vec<&RelPath> = made.tops.iter().copied().collect();
    while !level.is_empty() {
        let (dirs, others): (Vec<_>, Vec<_>) = level.into_iter().partition(is_dir);
        files.extend(others);
        let left = pair(&mut free, &made, dirs, &mut renames);
        let inside = left.iter().filter_map(|to| made.inside.get(*to));
        level = inside.flatten().copied().collect();
    }
    pair(&mut free, &made, files, &mut renames);
    renames.sort();
    Renames {
        new: renames.iter().map(|rename| rename.to.clone()).collect(),
        all: renames,
    }
}

impl Rename {
    fn new(from: &RelPath, to: &RelPath) -> Self {
        Self {
            from: from.clone(),
            to: to.clone(),
        }
    }
}

/// The names that only one side has.
struct Found<'t> {
    /// Those that lie in no other.
    tops: BTreeSet<&'t RelPath>,
    /// Of what is not empty, the state with everything below it.
    states: BTreeMap<&'t RelPath, [u8; 32]>,
    /// What lies right in each directory.
    inside: BTreeMap<RelPath, Vec<&'t RelPath>>,
}

impl<'t> Found<'t> {
    fn of(tree: &'t Tree, other: &Tree) -> Self {
        let mut tops = BTreeSet::new();
        let mut all: BTreeMap<&RelPath, &Node> = BTreeMap::new();
        let mut inside: BTreeMap<RelPath, Vec<&RelPath>> = BTreeMap::new();
        // A directory comes before what is in it.
        for (path, node) in tree {
            match path.parent().filter(|parent| all.contains_key(parent)) {
                Some(parent) => inside.entry(parent).or_default().push(path),
                None if other.contains_key(path) => continue,
                None => _ = tops.insert(path),
            }
            all.insert(path, node);
        }
        let mut states: BTreeMap<&RelPath, [u8; 32]> = BTreeMap::new();
        let mut every: BTreeMap<&RelPath, [u8; 32]> = BTreeMap::new();
        for (path, node) in all.into_iter().rev() {
            let own = fingerprint(&[(RelPath::root(), node.clone())].into());
            let mut bytes = own.0.as_bytes().to_vec();
            let mut says = tells(node);
            for name in inside.get(path).into_iter().flatten() {
                says |= states.contains_key(name);
                counted(&mut bytes, name.file_name().unwrap_or_default());
                bytes.extend(every.get(name).into_iter().flatten());
            }
            let state = *sha256(&bytes).as_bytes();
            every.insert(path, state);
            if says {
                states.insert(path, state);
            }
        }
        Self {
            tops,
            states,
            inside,
        }
    }
}

/// Whether a thing can be told from others of its kind.
fn tells(node: &Node) -> bool {
    match node.holds {
        Holds::Content(_) => node.bytes > 0,
        Holds::Target(_) => true,
        Holds::Names | Holds::Itself { .. } | Holds::Special { .. } => false,
    }
}

/// A name and everything below it, as seen from it.
pub(crate) fn below(tree: &Tree, top: &RelPath) -> Tree {
    tree.range(top.clone()..)
        .take_while(|(path, _)| path.as_bytes().starts_with(top.as_bytes()) || top.is_root())
        .filter_map(|(path, node)| Some((path.strip_prefix(top)?, node.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Tree, find};
    use crate::changeset::node::{Holds, Node, Xattrs};
    use crate::digest::sha256;
    use crate::dircap::Kind;
    use hermitcrab_core::path::RelPath;

    fn tree(entries: &[(&str, &str)]) -> Tree {
        entries
            .iter()
            .map(|(path, content)| {
                let dir = path.ends_with('/');
                let node = Node {
                    kind: if dir { Kind::Dir } else { Kind::File },
                    mode: 0o644,
                    bytes: u64::try_from(content.len()).expect("length"),
                    holds: if dir {
                        Holds::Names
                    } else {
                        Holds::Content(sha256(content.as_bytes()))
                    },
                    xattrs: Xattrs::new(),
                };
                (RelPath::parse_dir(path.as_bytes()).expect("path"), node)
            })
            .collect()
    }

    #[test]
    fn names_are_found_by_themselves_and_by_what_lies_below_them_and_by_nothing_else() {
        let renames = find(
            &tree(&[("d/", ""), ("d/f", "x"), ("e", "y")]),
            &tree(&[("g/", ""), ("g/f", "x"), ("h", "y")]),
        );
        let check = |path: &str, old: Option<&str>, new: Option<&str>| {
            let path = RelPath::parse(path.as_bytes()).expect("path");
            let found = [renames.old_above(&path), renames.new_above(&path)];
            let found = found.map(|found| found.map(|found| found.to_string()));
            assert_eq!(
                found,
                [old, new].map(|path| path.map(str::to_owned)),
                "{path}"
            );
        };
        check("d", Some("d"), None);
        check("d/f/deep", Some("d"), None);
        check("d-f", None, None);
        check("g/new", None, Some("g"));
        check("h", None, Some("h"));
        check(".", None, None);
    }

    #[test]
    fn many_equal_files_are_paired_each_with_one() {
        let names = |before: &str, odd: usize| -> Vec<String> {
            let name = |number: usize| match number % 2 == odd {
                true => format!("{before}{number:05}"),
                false => format!("{before}/{number:05}"),
            };
            (0..5_000).map(name).collect()
        };
        let all = |names: &[String]| {
            let same: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
            tree(&same)
        };
        let found = find(&all(&names("a", 0)), &all(&names("b", 1)));
        let mut new: Vec<&RelPath> = found.all().iter().map(|rename| &rename.to).collect();
        new.sort();
        new.dedup();
        assert_eq!((found.all().len(), new.len()), (5_000, 5_000));
    }

    #[test]
    fn equal_things_under_other_names_are_renames_and_nothing_else_is() {
        let check = |before: &[(&str, &str)], after: &[(&str, &str)], expected: &[(&str, &str)]| {
            let found: Vec<_> = find(&tree(before), &tree(after))
                .all()
                .iter()
                .map(|rename| (rename.from.to_string(), rename.to.to_string()))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
                .collect();
            assert_eq!(found, expected);
        };
        check(&[("a", "x")], &[("b", "x")], &[("a", "b")]);
        check(&[("a", "x")], &[("b", "y")], &[]);
        check(&[("a", "")], &[("b", "")], &[]);
        check(
            &[("d/", ""), ("d/e/", "")],
            &[("f/", ""), ("f/e/", "")],
            &[],
        );
        check(
            &[("d/", ""), ("d/f", "x"), ("d-g", "x")],
            &[("e/", ""), ("e/f", "x"), ("f", "x")],
            &[("d", "e"), ("d-g", "f")],
        );
        // The same last name wins; each name is used once.
        check(
            &[("a/one", "x"), ("a/two", "x")],
            &[("b/three", "x"), ("b/two", "x"), ("c/one", "x")],
            &[("a/one", "c/one"), ("a/two", "b/two")],
        );
        // What is in directories, where those are not the same.
        check(
            &[("a", "x")],
            &[("d/", ""), ("d/e/", ""), ("d/e/a", "x")],
            &[("a", "d/e/a")],
        );
        check(
            &[
                ("d/", ""),
                ("d/f", "x"),
                ("d/g", "y"),
                ("d/in/", ""),
                ("d/in/f", "z"),
            ],
            &[
                ("e/", ""),
                ("e/f", "x"),
                ("e/g", "new"),
                ("e/in/", ""),
                ("e/in/f", "z"),
            ],
            &[("d/f", "e/f"), ("d/in", "e/in")],
        );
        check(
            &[("d/", ""), ("d/f", "x")],
            &[("e/", ""), ("e/in/", ""), ("e/in/f", "x"), ("e/more", "x")],
            &[("d", "e/in")],
        );
        // What is gone by itself comes before what went with others.
        check(
            &[("D/", ""), ("D/f", "x"), ("D/g", "y"), ("a", "x")],
            &[("b", "x"), ("c", "x"), ("e", "x")],
            &[("D/f", "c"), ("a", "b")],
        );
        // Of what is paired nothing is used again, nor what it was in.
        check(
            &[("d/", ""), ("d/f", "x")],
            &[("e/", ""), ("e/f", "x"), ("g", "x")],
            &[("d", "e")],
        );
        check(
            &[("d/", ""), ("d/f", "x"), ("d/g/", ""), ("d/g/h", "y")],
            &[
                ("f", "x"),
                ("h/", ""),
                ("h/f", "x"),
                ("h/g/", ""),
                ("h/g/h", "y"),
            ],
            &[("d", "h")],
        );
        // A name that is on both sides was not renamed.
        check(&[("a", "x")], &[("a", "y"), ("b", "x")], &[]);
    }
}
