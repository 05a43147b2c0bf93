//! The names of directories that hold nothing but what programs can make again.

use std::{collections::BTreeSet, sync::Arc};

use hermitcrab_core::path::RelPath;

/// What Python, pytest, mypy and ruff keep beside what they read, and what programs of node
/// keep beside the packages they are in.
const USUAL: [&str; 6] = [
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "node_modules/.cache",
    "node_modules/.vite",
];

/// Names of directories whose contents nobody is asked about, some with those above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caches(Arc<BTreeSet<RelPath>>);

impl Default for Caches {
    fn default() -> Self {
        Self::from_names(USUAL).unwrap_or_else(|_| Self(Arc::default()))
    }
}

impl Caches {
    /// Those of a list.
    ///
    /// # Errors
    /// A word that is no name of a directory, or would be one of a repository's.
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        let named = |name: &str| {
            let path = RelPath::parse(name.as_bytes()).ok()?;
            let is_whole = path.as_bytes() == name.as_bytes() && !path.is_root();
            let has_a_store = |part: &[u8]| part.eq_ignore_ascii_case(b".git");
            (is_whole && !path.components().any(has_a_store)).then_some(path)
        };
        names
            .into_iter()
            .map(|name| named(name).ok_or(name))
            .collect::<Result<BTreeSet<_>, _>>()
            .map(|names| Self(Arc::new(names)))
    }

    /// Those that both name.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(Arc::new(self.0.intersection(&other.0).cloned().collect()))
    }

    /// Whether a directory of that path is one.
    #[must_use]
    pub fn has(&self, path: &RelPath) -> bool {
        self.0.iter().any(|name| {
            let mut parts = path.components().rev();
            name.components()
                .rev()
                .all(|part| parts.next() == Some(part))
        })
    }

    /// Whether a path lies in one.
    #[must_use]
    pub fn hold(&self, path: &RelPath) -> bool {
        let above = std::iter::successors(path.parent(), RelPath::parent);
        above.into_iter().any(|above| self.has(&above))
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::path::RelPath;

    use super::Caches;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).expect("path")
    }

    #[test]
    fn what_lies_below_a_directory_of_such_a_name_is_in_it_and_the_directory_is_not() {
        let caches = Caches::default();
        assert!(caches.hold(&path("pkg/__pycache__/a.pyc")));
        assert!(caches.hold(&path(".pytest_cache/v/cache/lastfailed")));
        assert!(!caches.hold(&path("pkg/__pycache__")));
        assert!(caches.has(&path("pkg/__pycache__")));
        assert!(caches.hold(&path("web/node_modules/.cache/x/1")));
        assert!(caches.has(&path("node_modules/.cache")));
        for other in [
            "pkg/a.py",
            "__pycache__x/a",
            "x__pycache__/a",
            "pkg",
            ".cache/a",
            "node_modules/a",
            "node_modules/x/.cache/a",
            "x_node_modules/.cache/a",
        ] {
            assert!(
                !caches.hold(&path(other)) && !caches.has(&path(other)),
                "{other}"
            );
        }
    }

    #[test]
    fn only_names_are_taken_and_not_the_one_of_a_repository() {
        for wrong in [
            "", ".", "..", "a/..", "/a", "a/", "./a", "a//b", ".git", ".GIT", "a/.git", ".git/a",
            "a\0b",
        ] {
            assert_eq!(Caches::from_names(["out", wrong]), Err(wrong));
        }
        let below = Caches::from_names(["a/b"]).expect("names");
        assert!(below.hold(&path("x/a/b/c")) && !below.hold(&path("x/b/c")));
        let named = Caches::from_names(["out", "__pycache__"]).expect("names");
        assert!(named.hold(&path("out/a")) && !named.hold(&path(".mypy_cache/a")));
        let both = named.and(&Caches::default());
        assert!(both.hold(&path("__pycache__/a")) && !both.hold(&path("out/a")));
        let none = Caches::from_names([]).expect("none");
        assert!(!none.hold(&path("__pycache__/a")));
    }
}
