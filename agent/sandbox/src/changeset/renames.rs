//! Which deletions and creations are one thing with another name.
//!
//! The layer of a view does not say: what was renamed is there as a copy. So
//! the rule is about what can be seen. A deleted and a created name are one
//! renamed thing when everything about them is equal: kind, mode, content and
//! attributes, for a directory with everything below it. Nothing that is
//! empty counts, or every empty file would come from every other. Of several
//! that fit, the one with the same last name is taken, then the first.
//!
//! A rename changes nothing about which authority is needed: the old name has
//! to be deleted and the new one made.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::path::RelPath;

use super::node::{Fingerprint, Holds, Node, Tree, fingerprint};

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
fn itself_or_above(path: &RelPath, is: impl Fn(&RelPath) -> bool) -> Option<RelPath> {
    let mut here = Some(path.clone());
    while let Some(path) = here {
        if is(&path) {
            return Some(path);
        }
        here = path.parent();
    }
    None
}

/// Deleted things that are in the same state, none of them paired yet.
#[derive(Default)]
struct Free<'t> {
    all: BTreeSet<&'t RelPath>,
    named: BTreeMap<&'t [u8], BTreeSet<&'t RelPath>>,
}

impl<'t> Free<'t> {
    fn add(&mut self, path: &'t RelPath) {
        self.all.insert(path);
        let name = path.file_name().unwrap_or_default();
        self.named.entry(name).or_default().insert(path);
    }

    /// The first with this last name.
    fn take_named(&mut self, name: &[u8]) -> Option<&'t RelPath> {
        let path = self.named.get_mut(name)?.pop_first()?;
        self.all.remove(path);
        Some(path)
    }

    /// The first of all. Whoever has the same last name took it before.
    fn take_first(&mut self) -> Option<&'t RelPath> {
        self.all.pop_first()
    }
}

/// Pairs deletions with creations, whole directories first.
pub(super) fn find(before: &Tree, after: &Tree) -> Renames {
    let gone = tops(before, after);
    let made = tops(after, before);
    let mut free: BTreeMap<[u8; 32], Free<'_>> = BTreeMap::new();
    for path in &gone {
        if let Some(print) = state_of(before, path) {
            let of = free.entry(print.0.as_bytes().to_owned()).or_default();
            of.add(path);
        }
    }
    let mut renames = Vec::new();
    let mut left: Vec<(&RelPath, Fingerprint)> = Vec::new();
    for to in &made {
        let Some(print) = state_of(after, to) else {
            continue;
        };
        let name = to.file_name().unwrap_or_default();
        let fitting = free.get_mut(print.0.as_bytes());
        match fitting.and_then(|fitting| fitting.take_named(name)) {
            Some(from) => renames.push(Rename::new(from, to)),
            None => left.push((to, print)),
        }
    }
    for (to, print) in left {
        let fitting = free.get_mut(print.0.as_bytes());
        if let Some(from) = fitting.and_then(Free::take_first) {
            renames.push(Rename::new(from, to));
        }
    }
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

/// The names only `of` has, without those below another such name.
fn tops(of: &Tree, other: &Tree) -> Vec<RelPath> {
    let only = |path: &RelPath| of.contains_key(path) && !other.contains_key(path);
    of.keys()
        .filter(|path| only(path) && !path.parent().is_some_and(|parent| only(&parent)))
        .cloned()
        .collect()
}

/// The state of a name and everything below it; `None` for what is empty.
fn state_of(tree: &Tree, top: &RelPath) -> Option<Fingerprint> {
    let part = below(tree, top);
    let tells = |node: &Node| match node.holds {
        Holds::Content(_) => node.bytes > 0,
        Holds::Target(_) => true,
        Holds::Names | Holds::Itself { .. } | Holds::Special { .. } => false,
    };
    part.values().any(tells).then(|| fingerprint(&part))
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
        // A name that is on both sides was not renamed.
        check(&[("a", "x")], &[("a", "y"), ("b", "x")], &[]);
    }
}
