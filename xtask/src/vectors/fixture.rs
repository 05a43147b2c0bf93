//! The tree `fx-tree-1` as data, walked without a kernel.
//!
//! Only used to say, when a case is written, what the agent owes: serving a
//! name that stays inside by plain steps, or being free to refuse one that
//! stays inside by luck (an absolute link, a detour through the outside).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

/// How often links are followed before a name counts as a loop.
const LINKS_MAX: u32 = 40;

/// Why a name that Hermes serves may be refused: a flag of the case, and a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour(pub &'static str, pub &'static str);

/// The tree, with paths relative to `/fx`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    #[serde(rename = "dirs")]
    _dirs: BTreeSet<String>,
    files: BTreeMap<String, String>,
    symlinks: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the tree's file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{}: not a tree", path.display()))
    }

    /// Why a capability on `root` may refuse `name` although it stays inside; `None` if it may not.
    pub fn detour(&self, root: &str, name: &str) -> Option<Detour> {
        if name.is_empty() {
            return Some(Detour("empty-name", "an empty name names nothing"));
        }
        if name.contains('\0') {
            return Some(Detour("empty-name", "no file name holds a NUL"));
        }
        if name.starts_with('/') {
            return Some(Detour(
                "absolute-name",
                "an absolute name is refused whatever it resolves to: a capability is asked by relative names",
            ));
        }
        if name.split('/').any(|part| part == "..") {
            return Some(Detour(
                "dot-dot",
                "`..` is refused even where it would stay inside",
            ));
        }
        let root = root.trim_start_matches("/fx").trim_start_matches('/');
        // The capability is opened on what its root is, once, by the one who grants it.
        let root = self.symlinks.get(root).map_or(root, String::as_str);
        let mut below: Vec<String> = Vec::new();
        let mut left: Vec<String> = parts(name);
        left.reverse();
        let mut links = 0;
        while let Some(part) = left.pop() {
            let here = join(root, &below);
            if self.files.contains_key(&here) {
                return Some(Detour("no-way", "a regular file has no entries"));
            }
            if part == ".." {
                if below.pop().is_none() {
                    return Some(Detour(
                        "link-out-and-back",
                        "a link that leaves the root need not be followed even if it comes back",
                    ));
                }
                continue;
            }
            below.push(part);
            let Some(target) = self.symlinks.get(&join(root, &below)) else {
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Some(Detour("no-way", "a loop of links names nothing"));
            }
            if target.starts_with('/') {
                return Some(Detour(
                    "absolute-link",
                    "a link with an absolute target need not be followed even if it points inside",
                ));
            }
            below.pop();
            left.extend(parts(target).into_iter().rev());
        }
        None
    }
}

fn parts(name: &str) -> Vec<String> {
    name.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

fn join(root: &str, below: &[String]) -> String {
    let mut path = root.to_owned();
    for part in below {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(part);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::Tree;

    fn tree() -> Tree {
        serde_json::from_str(
            r#"{"dirs": ["root/a"], "files": {"root/a/f": "x"},
                "symlinks": {"root/in": "a", "root/abs": "/fx/root/a", "root/out": "../o",
                             "root/loop": "loop", "root/a/up": "..", "link": "root"}}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_plain_name_or_an_inner_link_has_to_be_served() {
        for name in ["a/f", "a//f", "./a", "in/f", "a/up/in/f", "missing/x", "~"] {
            assert_eq!(tree().detour("/fx/root", name), None, "{name}");
            assert_eq!(tree().detour("/fx/link", name), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_stays_inside_by_luck_may_be_refused() {
        for name in [
            "",
            "/fx/root/a",
            "a/../a",
            "abs/f",
            "out/../root/a",
            "out",
            "loop",
            "a/f/x",
        ] {
            assert!(tree().detour("/fx/root", name).is_some(), "{name}");
        }
    }
}
