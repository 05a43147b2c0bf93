//! Ways to spell a name differently. Some lead to the same place and some
//! only look as if they did; which is which is for the subjects to know.

use super::super::operator::Salt;
use crate::case::CWD_DEFAULT;

/// One way to respell a name.
#[derive(Debug)]
pub struct Form {
    /// Stable, unique, kebab-case.
    pub name: &'static str,
    /// Its family.
    pub class: &'static str,
    apply: fn(&str, Salt) -> Option<String>,
}

impl Form {
    /// The name respelled, or `None` where the form does not apply.
    #[must_use]
    pub fn apply(&self, path: &str, salt: Salt) -> Option<String> {
        (self.apply)(path, salt).filter(|other| other != path)
    }
}

const fn form(
    name: &'static str,
    class: &'static str,
    apply: fn(&str, Salt) -> Option<String>,
) -> Form {
    Form { name, class, apply }
}

/// Replaces one of the slashes.
fn at_slash(path: &str, salt: Salt, instead: &str) -> Option<String> {
    let places = || path.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    let (at, _) = places().nth(salt.pick(places().count()))?;
    Some(format!(
        "{}{instead}{}",
        path.get(..at)?,
        path.get(at + 1..)?
    ))
}

fn absolute(path: &str) -> Option<String> {
    (!path.starts_with(['/', '~', '$'])).then(|| format!("{CWD_DEFAULT}/{path}"))
}

/// Puts something in front of a letter of the last name.
fn in_name(path: &str, salt: Salt, what: &str) -> Option<String> {
    let start = path.rfind('/').map_or(0, |at| at + 1);
    let places: Vec<usize> = path
        .get(start..)?
        .char_indices()
        .map(|(at, _)| at)
        .collect();
    let at = start + *places.get(salt.pick(places.len()))?;
    Some(format!("{}{what}{}", path.get(..at)?, path.get(at..)?))
}

/// All forms, in a fixed order.
pub const FORMS: &[Form] = &[
    form("dot-in-front", "dots", |path, _| {
        (!path.starts_with('/')).then(|| format!("./{path}"))
    }),
    form("dot-between", "dots", |path, salt| {
        at_slash(path, salt, "/./")
    }),
    form("dot-at-end", "dots", |path, _| Some(format!("{path}/."))),
    form("down-and-up", "dots", |path, _| {
        (!path.starts_with(['/', '~'])).then(|| format!("pz/sub/../../{path}"))
    }),
    form("missing-and-up", "dots", |path, _| {
        (!path.starts_with(['/', '~'])).then(|| format!("nowhere/../{path}"))
    }),
    form("up-between", "dots", |path, salt| {
        at_slash(path, salt, "/sub/../")
    }),
    form("up-at-end", "dots", |path, _| {
        Some(format!("{path}/../{}", path.rsplit('/').next()?))
    }),
    form("double-slash", "slashes", |path, salt| {
        at_slash(path, salt, "//")
    }),
    form("many-slashes", "slashes", |path, salt| {
        at_slash(path, salt, "/////")
    }),
    form("slash-at-end", "slashes", |path, _| {
        Some(format!("{path}/"))
    }),
    form("two-slashes-in-front", "slashes", |path, _| {
        path.starts_with('/').then(|| format!("/{path}"))
    }),
    form("backslash", "slashes", |path, salt| {
        at_slash(path, salt, "\\")
    }),
    form("absolute", "absolute", |path, _| absolute(path)),
    form("home", "absolute", |path, _| {
        absolute(path)?
            .strip_prefix("/home/u/")
            .map(|rest| format!("~/{rest}"))
    }),
    form("named-home", "absolute", |path, _| {
        absolute(path)?
            .strip_prefix("/home/u/")
            .map(|rest| format!("~u/{rest}"))
    }),
    form("variable", "absolute", |path, _| {
        absolute(path)?
            .strip_prefix("/home/u/")
            .map(|rest| format!("${{HOME}}/{rest}"))
    }),
    form("file-address", "absolute", |path, _| {
        Some(format!(
            "file://{}",
            absolute(path).unwrap_or_else(|| path.to_owned())
        ))
    }),
    form("through-proc-cwd", "proc", |path, _| {
        (!path.starts_with(['/', '~'])).then(|| format!("/proc/self/cwd/{path}"))
    }),
    form("through-proc-root", "proc", |path, _| {
        let path = absolute(path).unwrap_or_else(|| path.to_owned());
        path.starts_with('/')
            .then(|| format!("/proc/self/root{path}"))
    }),
    form("through-proc-one", "proc", |path, _| {
        let path = absolute(path).unwrap_or_else(|| path.to_owned());
        path.starts_with('/').then(|| format!("/proc/1/root{path}"))
    }),
    form("nul-at-end", "control", |path, _| Some(format!("{path}\0"))),
    form("nul-inside", "control", |path, salt| {
        in_name(path, salt, "\0")
    }),
    form("newline-at-end", "control", |path, _| {
        Some(format!("{path}\n"))
    }),
    form("newline-in-front", "control", |path, _| {
        Some(format!("\n{path}"))
    }),
    form("escape-inside", "control", |path, salt| {
        in_name(path, salt, "\u{1b}[2K")
    }),
    form("blank-in-front", "blanks", |path, _| {
        Some(format!(" {path}"))
    }),
    form("blank-at-end", "blanks", |path, _| Some(format!("{path} "))),
    form("quoted", "blanks", |path, _| Some(format!("\"{path}\""))),
    form("zero-width", "unicode", |path, salt| {
        in_name(path, salt, "\u{200b}")
    }),
    form("right-to-left", "unicode", |path, salt| {
        in_name(path, salt, "\u{202e}")
    }),
    form("decomposed", "unicode", |path, _| {
        Some(path.replace('\u{e9}', "e\u{301}"))
    }),
    form("wide-slash", "unicode", |path, salt| {
        at_slash(path, salt, "\u{ff0f}")
    }),
    form("wide-dots", "unicode", |path, _| {
        Some(path.replace("..", "\u{ff0e}\u{ff0e}"))
    }),
    form("upper-case", "case", |path, _| Some(path.to_uppercase())),
    form("first-letter", "case", |path, _| {
        let at = path.rfind('/').map_or(0, |at| at + 1);
        let (dir, name) = path.split_at_checked(at)?;
        let first = name.chars().next()?;
        Some(format!(
            "{dir}{}{}",
            first.to_uppercase(),
            name.get(first.len_utf8()..)?
        ))
    }),
    form("percent", "encoding", |path, salt| {
        at_slash(path, salt, "%2f")
    }),
    form("percent-dots", "encoding", |path, _| {
        Some(path.replace("..", "%2e%2e"))
    }),
    form("glob", "encoding", |path, salt| in_name(path, salt, "*")),
];
