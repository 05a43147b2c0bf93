//! Where a call reaches, by the text of its path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab_core::batch::{
    LINK_HOPS_MAX, LinkFact, Links, RAW_BYTES_MAX, ScopeError, ScopePath, Standing, canonical,
    physical,
};

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

/// `/l3` leads to `/l2` and so on to `/l0`, which is a file; `/loop` leads to itself.
struct Chain;

impl Links for Chain {
    fn look(&self, path: &ScopePath) -> LinkFact {
        let Some(name) = path.names().next_back() else {
            return LinkFact::NotALink;
        };
        match name.strip_prefix('l').map(str::parse::<usize>) {
            Some(Ok(0)) | None => LinkFact::NotALink,
            Some(Ok(number)) => LinkFact::Target(format!("/l{}", number - 1)),
            Some(Err(_)) => LinkFact::Target("loop".to_owned()),
        }
    }
}

#[test]
fn so_many_links_are_followed_and_no_more() {
    let standing = || Standing {
        cwd: "/",
        home: None,
    };
    let follows = |text: &str| {
        let found = canonical(text, standing(), &Chain);
        assert_eq!(physical(text, standing(), &Chain), found, "{text}");
        found
    };
    let end = Ok(scope("/l0"));
    assert_eq!(follows("/l3"), end);
    assert_eq!(follows(&format!("/l{LINK_HOPS_MAX}")), end);
    for more in [1, 2] {
        let text = format!("/l{}", LINK_HOPS_MAX + more);
        assert_eq!(follows(&text), Err(ScopeError::LinkLoop));
    }
    assert_eq!(follows("/loop"), Err(ScopeError::LinkLoop));
    let long = |bytes: usize| format!("/{}", "x".repeat(bytes - 1));
    assert!(follows(&long(RAW_BYTES_MAX)).is_ok());
    assert_eq!(follows(&long(RAW_BYTES_MAX + 1)), Err(ScopeError::TooLong));
    assert_eq!(ScopeError::LinkLoop.to_string(), "too many symbolic links");
}
