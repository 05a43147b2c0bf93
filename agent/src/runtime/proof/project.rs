//! What kind of project a directory belongs to, and which commands check it.
//!
//! Read from the names and a few small files of the project's own directory,
//! with what the agent holds, and nobody is asked about it: what cannot be
//! looked at freely is as if it were not there. Nothing is allowed because of
//! what is found here.

use std::path::Path;

use hermitcrab_sandbox::dircap::{Entry, Kind};
use regex::Regex;
use serde_json::Value;

use crate::{
    runtime::{
        Hands, Place,
        evidence::{Project, SHARED},
    },
    text::json,
};

/// Names that make a directory a project's, in no order.
const MARKS: [&str; 22] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "package.json",
    "tsconfig.json",
    "deno.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "pubspec.yaml",
    "CMakeLists.txt",
    "Makefile",
    "Dockerfile",
    "AGENTS.md",
    "CLAUDE.md",
    ".cursorrules",
];
/// What makes a directory the root of a repository, whatever else is near.
const REPOSITORY: &str = ".git";
/// How far above a directory its project's mark may lie.
const LEVELS_MAX: usize = 6;
/// Which package manager a lock file speaks for.
const LOCKS: [(&str, &str); 5] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("bun.lockb", "bun"),
    ("bun.lock", "bun"),
    ("yarn.lock", "yarn"),
    ("package-lock.json", "npm"),
];
/// Names of scripts and targets that check something.
const CHECKS: [&str; 8] = [
    "test",
    "tests",
    "lint",
    "typecheck",
    "check",
    "build",
    "fmt",
    "format",
];
/// Commands that are named.
const COMMANDS_MAX: usize = 8;
/// A larger file is not read.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The project that the directory at `path` belongs to, if it is one's.
pub fn of(hands: &mut Hands<'_>, path: &str) -> Option<Project> {
    let place = hands.resolve(path).ok()?;
    let start = hands.real(&place).ok()?.absolute;
    let home = hands.home().to_owned();
    let mut marked = None;
    for (level, above) in Path::new(&start).ancestors().enumerate() {
        let Some((place, names)) = listed(hands, above) else {
            break;
        };
        let inside = Inside { place, names };
        if inside.has(hands, REPOSITORY, None) {
            return described(hands, &inside);
        }
        let may_be = level <= LEVELS_MAX && above != home && above != Path::new(SHARED);
        if may_be && marked.is_none() && MARKS.iter().any(|mark| inside.has(hands, mark, None)) {
            marked = Some(inside);
        }
    }
    described(hands, &marked?)
}

/// A directory and the names in it.
struct Inside {
    place: Place,
    names: Vec<Entry>,
}

fn listed(hands: &mut Hands<'_>, path: &Path) -> Option<(Place, Vec<Entry>)> {
    let place = hands.resolve(path.to_str()?).ok()?;
    let names = hands.names_freely(&place)?;
    Some((place, names))
}

impl Inside {
    /// Whether there is something of that name, and of that kind if it matters.
    fn has(&self, hands: &mut Hands<'_>, name: &str, wanted: Option<Kind>) -> bool {
        let Some(entry) = self
            .names
            .iter()
            .find(|entry| entry.name == name.as_bytes())
        else {
            return false;
        };
        let kind = match entry.kind {
            Kind::Symlink => {
                let place = hands.child(&self.place, name.as_bytes());
                place.and_then(|place| hands.kind_freely(&place))
            }
            kind => Some(kind),
        };
        kind.is_some_and(|kind| wanted.is_none_or(|wanted| wanted == kind))
    }

    fn has_file(&self, hands: &mut Hands<'_>, name: &str) -> bool {
        self.has(hands, name, Some(Kind::File))
    }

    /// A small file's text with plain line ends; nothing if it is none.
    fn text(&self, hands: &mut Hands<'_>, name: &str) -> String {
        if !self.has_file(hands, name) {
            return String::new();
        }
        let place = hands.child(&self.place, name.as_bytes());
        let bytes = place.and_then(|place| hands.read_freely(&place, FILE_BYTES_MAX));
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        text.replace("\r\n", "\n").replace('\r', "\n")
    }
}

/// `None` if its list of scripts is nothing that could be looked through.
fn described(hands: &mut Hands<'_>, inside: &Inside) -> Option<Project> {
    let mut commands = Vec::new();
    let own = hands
        .child(&inside.place, b"scripts")
        .and_then(|scripts| hands.child(&scripts, b"run_tests.sh"));
    if own.and_then(|own| hands.kind_freely(&own)) == Some(Kind::File) {
        commands.push("scripts/run_tests.sh".to_owned());
    }
    if inside.has_file(hands, "package.json") {
        let manager = LOCKS
            .iter()
            .find(|(lock, _)| inside.has_file(hands, lock))
            .map_or("npm", |(_, manager)| manager);
        let scripts = scripts(&inside.text(hands, "package.json"))?;
        commands.extend(scripts.iter().map(|name| format!("{manager} run {name}")));
    }
    if inside.has_file(hands, "pytest.ini")
        || inside
            .text(hands, "pyproject.toml")
            .contains("[tool.pytest")
    {
        commands.push("pytest".to_owned());
    }
    let targets = targets(&inside.text(hands, "Makefile"));
    commands.extend(targets.iter().map(|name| format!("make {name}")));
    let mut once: Vec<String> = Vec::new();
    for command in commands {
        if !once.contains(&command) {
            once.push(command);
        }
    }
    once.truncate(COMMANDS_MAX);
    Some(Project {
        root: inside.place.absolute.clone(),
        commands: once,
    })
}

/// The scripts of a `package.json` that check something. What is written there
/// may be anything: names are sought in a table, a list and a text alike.
fn scripts(text: &str) -> Option<Vec<&'static str>> {
    let value: Value = match json::problem(text) {
        None => serde_json::from_str(text).unwrap_or_default(),
        Some(_) => Value::Null,
    };
    let known = |is: &dyn Fn(&str) -> bool| {
        CHECKS
            .iter()
            .copied()
            .filter(|name| is(name))
            .collect::<Vec<_>>()
    };
    match value.get("scripts") {
        Some(Value::Object(table)) => Some(known(&|name| table.contains_key(name))),
        Some(Value::Array(list)) => Some(known(&|name| list.iter().any(|item| item == name))),
        Some(Value::String(words)) => Some(known(&|name| words.contains(name))),
        Some(Value::Bool(true)) => None,
        Some(Value::Number(number)) if number.as_f64() != Some(0.0) => None,
        Some(Value::Null | Value::Bool(false) | Value::Number(_)) | None => Some(Vec::new()),
    }
}

/// The targets of a Makefile that check something.
fn targets(makefile: &str) -> Vec<&'static str> {
    let is_there = |name: &&&'static str| {
        Regex::new(&format!(r"(?m)^{name}\s*:")).is_ok_and(|form| form.is_match(makefile))
    };
    CHECKS.iter().filter(is_there).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{scripts, targets};

    #[test]
    fn scripts_are_found_in_whatever_stands_there_and_in_the_usual_order() {
        for (text, expected) in [
            (
                r#"{"scripts": {"build": "x", "test": "y", "z": ""}}"#,
                Some(vec!["test", "build"]),
            ),
            (r#"{"scripts": ["lint"]}"#, Some(vec!["lint"])),
            (
                r#"{"scripts": "run the tests"}"#,
                Some(vec!["test", "tests"]),
            ),
            (r#"{"scripts": null}"#, Some(vec![])),
            (r#"{"scripts": 0}"#, Some(vec![])),
            (r#"{"scripts": 7}"#, None),
            (r#"{"scripts": true}"#, None),
            ("{", Some(vec![])),
            ("[]", Some(vec![])),
            ("", Some(vec![])),
        ] {
            assert_eq!(scripts(text), expected, "{text}");
        }
    }

    #[test]
    fn targets_stand_at_the_beginning_of_a_line_and_nowhere_else() {
        assert_eq!(
            targets("all:\n\tx\nbuild : a\ntest:\n\ty\n"),
            ["test", "build"]
        );
        assert!(targets("# test:\n\ttest: x\ntesting:\nTEST:\n").is_empty());
    }
}
