//! The one name of the file a call is about.

use std::borrow::Cow;

use hermitcrab_core::batch::{LinkFact, Links, ScopePath, Standing, canonical};

use super::batch::scope_path;
use super::{Verdict, ensure};

/// A tree with three links, one of them in a circle and one that cannot be read.
struct Tree;

impl Links for Tree {
    fn look(&self, path: &ScopePath) -> LinkFact {
        match path.names().next_back() {
            Some("up") => LinkFact::Target("../b".to_owned()),
            Some("far") => LinkFact::Target("/c/./d//e".to_owned()),
            Some("loop") => LinkFact::Target("loop".to_owned()),
            Some("dark") => LinkFact::Unknown,
            Some(_) | None => LinkFact::NotALink,
        }
    }
}

/// Read the bytes as a path, in a tree with links.
pub fn check(bytes: &[u8]) -> Verdict {
    let raw: Cow<'_, str> = String::from_utf8_lossy(bytes);
    let standing = Standing {
        cwd: "/a/b",
        home: Some("/a"),
    };
    let Ok(path) = canonical(&raw, standing, &Tree) else {
        return Ok(());
    };
    scope_path(&path)?;
    let text = path.as_str();
    let again = canonical(text, standing, &Tree);
    ensure(again.as_ref() == Ok(&path), || {
        format!("a canonical path has another: {text:?} {again:?}")
    })?;
    ensure(path.is_within(&ScopePath::root()), || {
        format!("a path is not below the root: {text:?}")
    })
}
