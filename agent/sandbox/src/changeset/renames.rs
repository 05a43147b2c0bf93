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

use std::collections::BTreeMap;

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

/// Pairs deletions with creations, whole directories first.
pub(super) fn find(before: &Tree, after: &Tree) -> Vec<Rename> {
    let gone = tops(before, after);
    let made = tops(after, before);
    let mut free: BTreeMap<[u8; 32], Vec<&RelPath>> = BTreeMap::new();
    for path in &gone {
        if let Some(print) = state_of(before, path) {
            free.entry(print.0.as_bytes().to_owned())
                .or_default()
                .push(path);
        }
    }
    let mut renames = Vec::new();
    let mut left: Vec<(&RelPath, Fingerprint)> = Vec::new();
    for to in &made {
        let Some(print) = state_of(after, to) else {
            continue;
        };
        let fitting = free.get_mut(print.0.as_bytes());
        let same = fitting.and_then(|fitting| {
            let at = fitting
                .iter()
                .position(|from| from.file_name() == to.file_name())?;
            Some(fitting.remove(at))
        });
        match same {
            Some(from) => renames.push(Rename::new(from, to)),
            None => left.push((to, print)),
        }
    }
    for (to, print) in left {
        let fitting = free
            .get_mut(print.0.as_bytes())
            .filter(|fitting| !fitting.is_empty());
        if let Some(fitting) = fitting {
            renames.push(Rename::new(fitting.remove(0), to));
        }
    }
    renames.sort();
    renames
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
    fn equal_things_under_other_names_are_renames_and_nothing_else_is() {
        let check = |before: &[(&str, &str)], after: &[(&str, &str)], expected: &[(&str, &str)]| {
            let found: Vec<_> = find(&tree(before), &tree(after))
                .into_iter()
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
