//! The one name of the file a call is about, however the model spelled it.
//!
//! Two spellings of one file must end as equal [`ScopePath`]s, otherwise two
//! writes to it could run at the same time. The file system is asked through
//! [`Links`]; nothing here opens anything.
//!
//! A scope path is for comparing, never for opening: between planning and
//! running the tree may change, and the directory capability decides anew.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The longest path text considered, in bytes (`PATH_MAX` of Linux).
pub const RAW_BYTES_MAX: usize = 4096;
/// The most symbolic links followed for one path, as in the Linux kernel.
pub const LINK_HOPS_MAX: usize = 40;

/// An absolute path without `.`, `..`, repeated slashes or links.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopePath {
    // INVARIANT: a slash before each name, none empty, `.`, `..` or with a slash in it; only the
    // root, which has no name, ends in a slash. In one piece: a batch holds many, and compares
    // each with each.
    text: String,
}

impl ScopePath {
    /// The root directory.
    #[must_use]
    pub fn root() -> Self {
        Self {
            text: String::from("/"),
        }
    }

    /// The root directory, with room for this many bytes of names.
    fn root_with_room(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes.saturating_add(1));
        text.push('/');
        Self { text }
    }

    /// Reads an absolute path, by its text alone: `..` removes the name before
    /// it, links are not looked at.
    ///
    /// # Errors
    /// The text is relative, too long or has a NUL.
    pub fn lexical(text: &str) -> Result<Self, ScopeError> {
        if !text.starts_with('/') {
            return Err(ScopeError::RelativeBase);
        }
        check_text(text)?;
        let mut path = Self::root_with_room(text.len());
        for part in text.split('/') {
            path.step(part);
        }
        Ok(path)
    }

    /// The names on the way from the root; none for the root.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('/').filter(|name| !name.is_empty())
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `self` is `root` or lies below it.
    #[must_use]
    pub fn is_within(&self, root: &Self) -> bool {
        match self.text.strip_prefix(&root.text) {
            // Only the root ends in a slash.
            Some(rest) => rest.is_empty() || rest.starts_with('/') || root.is_root(),
            None => false,
        }
    }

    /// Whether both are the same place, or one lies below the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    fn is_root(&self) -> bool {
        self.text.len() == 1
    }

    fn step(&mut self, part: &str) {
        match part {
            "" | "." => {}
            ".." => self.up(),
            name => self.push(name),
        }
    }

    fn push(&mut self, name: &str) {
        if !self.is_root() {
            self.text.push('/');
        }
        self.text.push_str(name);
    }

    /// The directory it lies in; the root lies in itself.
    fn up(&mut self) {
        let kept = self.text.rfind('/').unwrap_or(0).max(1);
        self.text.truncate(kept);
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Where a relative or `~` path starts from.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The session's working directory; absolute.
    pub cwd: &'a str,
    /// The user's home directory; absolute. `None` if there is none.
    pub home: Option<&'a str>,
}

/// What a name turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFact {
    /// Not a symbolic link (whatever else it is, or nothing at all).
    NotALink,
    /// A symbolic link with this target.
    Target(String),
    /// It could not be found out.
    Unknown,
}

/// Reads symbolic links, and nothing else.
pub trait Links {
    /// What the name at `path` is; no link in the directories above it remains.
    fn look(&self, path: &ScopePath) -> LinkFact;
}

/// Why a path has no scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// The text has a NUL.
    HasNul,
    /// The text is longer than [`RAW_BYTES_MAX`].
    TooLong,
    /// A `~` that names no known home directory.
    UnknownHome,
    /// The working directory itself is not absolute.
    RelativeBase,
    /// More than [`LINK_HOPS_MAX`] links, most likely a loop.
    LinkLoop,
    /// A link could not be read.
    LinkUnknown,
}

impl fmt::Display for ScopeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::HasNul => "the path has a NUL",
            Self::TooLong => "the path is too long",
            Self::UnknownHome => "the path starts at a home directory that is not known",
            Self::RelativeBase => "the working directory is not absolute",
            Self::LinkLoop => "too many symbolic links",
            Self::LinkUnknown => "a symbolic link could not be read",
        })
    }
}

impl core::error::Error for ScopeError {}

fn check_text(text: &str) -> Result<(), ScopeError> {
    if text.contains('\0') {
        return Err(ScopeError::HasNul);
    }
    if text.len() > RAW_BYTES_MAX {
        return Err(ScopeError::TooLong);
    }
    Ok(())
}

/// The canonical path of `raw`: home expanded, made absolute, `..` taken
/// textually, then every link on the way followed. Names that do not exist
/// stay as they are.
///
/// # Errors
/// See [`ScopeError`]; the caller must then assume that the path could be any.
pub fn canonical(
    raw: &str,
    standing: Standing<'_>,
    links: &dyn Links,
) -> Result<ScopePath, ScopeError> {
    let (mut asked, rest) = start(raw, standing)?;
    for part in rest.split('/') {
        asked.step(part);
    }
    follow(&asked, "", links)
}

/// Where the kernel would end up with `raw`: as [`canonical`], but `..` leads
/// up from where a link led to. The two differ where a `..` follows a link.
///
/// # Errors
/// As for [`canonical`].
pub fn physical(
    raw: &str,
    standing: Standing<'_>,
    links: &dyn Links,
) -> Result<ScopePath, ScopeError> {
    let (start, rest) = start(raw, standing)?;
    follow(&start, rest, links)
}

/// The directory a path starts from, and the rest of its text.
fn start<'a>(raw: &'a str, standing: Standing<'_>) -> Result<(ScopePath, &'a str), ScopeError> {
    check_text(raw)?;
    match raw.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = standing.home.ok_or(ScopeError::UnknownHome)?;
            Ok((ScopePath::lexical(home)?, rest))
        }
        Some(_) => Err(ScopeError::UnknownHome),
        None if raw.starts_with('/') => Ok((ScopePath::root(), raw)),
        None => Ok((ScopePath::lexical(standing.cwd)?, raw)),
    }
}

/// Follows the links on the way from the root to `asked` and on along `rest`.
fn follow(asked: &ScopePath, rest: &str, links: &dyn Links) -> Result<ScopePath, ScopeError> {
    // What is still to be walked: the text of each link that was met, the last on top.
    let mut pending: Vec<Pending<'_>> = Vec::new();
    if !rest.is_empty() {
        pending.push(Pending::new(Cow::Borrowed(rest)));
    }
    pending.push(Pending::new(Cow::Borrowed(asked.as_str())));
    let mut reached = ScopePath::root_with_room(asked.text.len().saturating_add(rest.len()));
    let mut hops = 0_usize;
    while let Some(text) = pending.last_mut() {
        let Some(part) = text.next() else {
            pending.pop();
            continue;
        };
        if matches!(part, "" | "." | "..") {
            reached.step(part);
            continue; // no new name to look at
        }
        reached.push(part);
        match links.look(&reached) {
            LinkFact::NotALink => {}
            LinkFact::Unknown => return Err(ScopeError::LinkUnknown),
            LinkFact::Target(target) => {
                hops += 1;
                if hops > LINK_HOPS_MAX {
                    return Err(ScopeError::LinkLoop);
                }
                check_text(&target)?;
                if target.starts_with('/') {
                    reached = ScopePath::root_with_room(target.len());
                } else {
                    reached.up();
                }
                pending.push(Pending::new(Cow::Owned(target)));
            }
        }
    }
    Ok(reached)
}

/// A text of names, and how far it is walked.
struct Pending<'a> {
    text: Cow<'a, str>,
    at: usize,
}

impl<'a> Pending<'a> {
    const fn new(text: Cow<'a, str>) -> Self {
        Self { text, at: 0 }
    }

    /// What stands before the next slash; `None` at the end.
    fn next(&mut self) -> Option<&str> {
        let rest = self.text.get(self.at..)?;
        let part = rest.split('/').next().unwrap_or(rest);
        // Behind the slash, or, at the end of the text, where nothing is any more.
        self.at += part.len() + 1;
        Some(part)
    }
}

/// The parts of any path text, relative or absolute, as written: empty and `.`
/// parts are left out, `..` is kept.
#[must_use]
pub fn parts(text: &str) -> Vec<String> {
    let root = text.starts_with('/').then(|| "/".to_string());
    let names = text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    root.into_iter()
        .chain(names.map(ToString::to_string))
        .collect()
}

/// Whether one list of parts begins with the other: the same file, or one
/// below the other. A path without parts names nothing and overlaps nothing.
#[must_use]
pub fn overlap(left: &[String], right: &[String]) -> bool {
    if left.is_empty() || right.is_empty() {
        return false;
    }
    left.starts_with(right) || right.starts_with(left)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    /// A tree that is nothing but its links.
    struct Tree(BTreeMap<&'static str, &'static str>);

    impl Links for Tree {
        fn look(&self, path: &ScopePath) -> LinkFact {
            match self.0.get(path.to_string().as_str()) {
                Some(&"") => LinkFact::Unknown,
                Some(target) => LinkFact::Target((*target).to_string()),
                None => LinkFact::NotALink,
            }
        }
    }

    fn tree() -> Tree {
        Tree(BTreeMap::from([
            ("/ov/l", "d"),
            ("/ov/lf", "f"),
            ("/ov/up", ".."),
            ("/ov/abs", "/home/u"),
            ("/ov/twice", "l/../lf"),
            ("/ov/loop", "loop"),
            ("/ov/secret", ""),
        ]))
    }

    fn check(raw: &str, expected: Result<&str, ScopeError>) {
        let standing = Standing {
            cwd: "/ov",
            home: Some("/home/u"),
        };
        let got = canonical(raw, standing, &tree()).map(|path| path.to_string());
        assert_eq!(got, expected.map(ToString::to_string), "{raw:?}");
    }

    #[test]
    fn every_spelling_of_a_file_has_one_scope() {
        for raw in [
            "f",
            "./f",
            "/ov/f",
            "lf",
            "up/ov/f",
            "d/../f",
            "nonexist/../f",
            "//ov//f/",
            "/../ov/f",
        ] {
            check(raw, Ok("/ov/f"));
        }
        check("l/e/x", Ok("/ov/d/e/x"));
        check("d/", Ok("/ov/d"));
        check("abs/x", Ok("/home/u/x"));
        check("~/x", Ok("/home/u/x"));
        check("~", Ok("/home/u"));
        check(".", Ok("/ov"));
        check("", Ok("/ov"));
        check("/", Ok("/"));
        check("F", Ok("/ov/F"));
    }

    #[test]
    fn dots_inside_a_link_target_are_taken_after_following() {
        // /ov/twice -> l/../lf; l is d, so `..` leads from /ov/d back to /ov.
        check("twice", Ok("/ov/f"));
    }

    #[test]
    fn only_a_dot_dot_behind_a_link_tells_the_two_readings_apart() {
        let standing = Standing {
            cwd: "/ov",
            home: Some("/home/u"),
        };
        let check = |raw: &str, expected: &str, same: bool| {
            let physical = physical(raw, standing, &tree()).unwrap();
            assert_eq!(physical.to_string(), expected, "{raw:?}");
            let canonical = canonical(raw, standing, &tree()).unwrap();
            assert_eq!(physical == canonical, same, "{raw:?}");
        };
        check("abs/../x", "/home/x", false);
        check("abs/x", "/home/u/x", true);
        check("d/../f", "/ov/f", true);
        check("l/../f", "/ov/f", true);
        check("~/../x", "/home/x", true);
        check("", "/ov", true);
        check("/", "/", true);
    }

    #[test]
    fn a_path_that_cannot_be_settled_has_no_scope() {
        check("loop", Err(ScopeError::LinkLoop));
        check("secret", Err(ScopeError::LinkUnknown));
        check("~root/x", Err(ScopeError::UnknownHome));
        check("a\0b", Err(ScopeError::HasNul));
        check(&"x".repeat(RAW_BYTES_MAX + 1), Err(ScopeError::TooLong));
        let homeless = Standing {
            cwd: "/ov",
            home: None,
        };
        assert_eq!(
            canonical("~/x", homeless, &tree()),
            Err(ScopeError::UnknownHome)
        );
        let adrift = Standing {
            cwd: "ov",
            home: None,
        };
        assert_eq!(
            canonical("x", adrift, &tree()),
            Err(ScopeError::RelativeBase)
        );
    }

    #[test]
    fn paths_overlap_by_whole_names_only() {
        let cases = [
            ("src/a.py", "src/a.py", true),
            ("src/a.py", "src/b.py", false),
            ("src", "src/a.py", true),
            ("/ov/d", "/ov/d2", false),
            ("/ov/d/e", "/ov/d/e2", false),
            ("/", "/ov", true),
            ("src/a.py", ".", false),
            ("", "", false),
            ("/ov/f", "ov/f", false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(
                overlap(&parts(left), &parts(right)),
                expected,
                "{left:?} {right:?}"
            );
            assert_eq!(
                overlap(&parts(right), &parts(left)),
                expected,
                "{right:?} {left:?}"
            );
            let paths = (ScopePath::lexical(left), ScopePath::lexical(right));
            if let (Ok(left), Ok(right)) = paths {
                assert_eq!(left.overlaps(&right), expected, "{left} {right}");
                assert_eq!(right.overlaps(&left), expected, "{right} {left}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_canonical_path_is_its_own_canonical_path(raw in "[a-z./~l]{0,24}") {
            let standing = Standing { cwd: "/ov", home: Some("/home/u") };
            if let Ok(path) = canonical(&raw, standing, &tree()) {
                let again = canonical(&path.to_string(), standing, &tree());
                prop_assert_eq!(again, Ok(path));
            }
        }

        #[test]
        fn a_scope_never_keeps_dots_or_empty_names(raw in "(/|\\.\\.|\\.|[a-c])*") {
            let path = ScopePath::lexical(&format!("/{raw}")).unwrap();
            prop_assert!(path.as_str().starts_with('/'));
            for part in path.as_str().split('/').skip(1) {
                prop_assert!(!matches!(part, "" | "." | "..") || path == ScopePath::root());
            }
            prop_assert_eq!(path.names().fold(String::new(), |all, name| all + "/" + name),
                path.as_str().trim_end_matches('/'));
        }
    }
}
