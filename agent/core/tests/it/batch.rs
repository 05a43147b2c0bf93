//! Where a call reaches, by the text of its path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab_core::batch::{ScopeError, ScopePath};

fn scope(text: &str) -> ScopePath {
    ScopePath::lexical(text).unwrap()
}

#[test]
fn a_path_lies_within_itself_and_what_holds_it_and_nowhere_else() {
    for (below, root, within) in [
        ("/a/b", "/a/b", true),
        ("/a/b", "/a", true),
        ("/a/b", "/", true),
        ("/a/x/../b", "/a/b", true),
        ("/a", "/a/b", false),
        ("/ab", "/a", false),
        ("/", "/a", false),
        ("/b/a", "/a", false),
    ] {
        let told = scope(below).is_within(&scope(root));
        assert_eq!(told, within, "{below} in {root}");
    }
    assert_eq!(ScopePath::lexical("a/b"), Err(ScopeError::RelativeBase));
}
