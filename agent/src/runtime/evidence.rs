//! Which command proved what about a project, and whether it was changed since.
//!
//! Only words follow from it: what a result says besides, and whether a model is
//! reminded before it ends. It is what this agent saw in this session, is lost
//! with it, and is never taken for a permission.

mod shell_words;

use std::path::Path;

use serde_json::{Value, json};

use self::shell_words::{Quoting, segments};
use crate::{runtime::lexical, text::pytext};

/// Where everybody's files lie; a mark there belongs to no project.
pub const SHARED: &str = "/tmp";

/// How a script begins that is written to check one thing only.
const AD_HOC: [&str; 2] = ["hermes-verify-", "hermes-ad-hoc-"];
/// What such a script is called.
const AD_HOC_COMMAND: &str = "ad-hoc verification script";
/// Programs that run such a script.
const INTERPRETERS: [&str; 7] = ["python", "python3", "node", "bash", "sh", "ruby", "perl"];
/// Without one of these in it no command proves anything, whatever the project.
const HINTS: [&str; 9] = [
    "run_tests.sh",
    "pytest",
    "make",
    "npm",
    "yarn",
    "bun",
    "run",
    "hermes-verify-",
    "hermes-ad-hoc-",
];
/// Letters of the output that are kept.
const OUTPUT_LETTERS_MAX: usize = 2000;
/// Projects something was proved about.
const PROJECTS_MAX: usize = 64;
/// Changes that are remembered one by one.
const EDITS_MAX: usize = 200;

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its directory, absolute.
    pub root: String,
    /// The commands that check it.
    pub commands: Vec<String>,
}

/// What one command proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The project's directory.
    pub root: String,
    /// The command under its usual name.
    pub command: String,
    /// What kind of check it is.
    pub kind: &'static str,
    /// `full`, or `targeted` at a part of the project.
    pub scope: &'static str,
    /// Whether it found nothing wrong.
    pub has_passed: bool,
    /// What it said, or its beginning and its end.
    pub output: String,
}

impl Proof {
    /// `passed` or `failed`.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        if self.has_passed { "passed" } else { "failed" }
    }

    /// As a result of the command says it.
    #[must_use]
    pub fn shown(&self) -> Value {
        json!({
            "status": self.status(),
            "kind": self.kind,
            "scope": self.scope,
            "canonical_command": self.command,
        })
    }
}

/// Whether it is worth while to find out what a command proves.
#[must_use]
pub fn may_prove(command: &str) -> bool {
    HINTS.iter().any(|hint| command.contains(hint))
}

/// What a command proves about the project it ran in, if anything.
#[must_use]
pub fn proof(project: &Project, command: &str, status: i32, output: &str) -> Option<Proof> {
    let (name, kind, scope) = match usual(command, &project.commands) {
        Some((name, rest)) => {
            let is_part = rest.iter().any(|word| is_a_part(word));
            let scope = if is_part { "targeted" } else { "full" };
            (name, kind_of(name), scope)
        }
        None if project.commands.is_empty() && runs_ad_hoc(command, &project.root) => {
            (AD_HOC_COMMAND, "ad_hoc", "targeted")
        }
        None => return None,
    };
    Some(Proof {
        root: project.root.clone(),
        command: name.to_owned(),
        kind,
        scope,
        has_passed: status == 0,
        output: shortened(pytext::strip(output)),
    })
}

/// The first of a project's commands that runs in `command`, and what it is given.
fn usual<'c>(command: &str, known: &'c [String]) -> Option<(&'c str, Vec<String>)> {
    let segments = segments(command, Quoting::Posix);
    for name in known {
        let words: Vec<&str> = name.split(' ').collect();
        for segment in &segments {
            let segment = without_prefix(segment);
            for spelling in spellings(&words) {
                let begins = segment.len() >= spelling.len()
                    && segment.iter().zip(&spelling).all(|(one, two)| one == two);
                if begins {
                    let rest = segment.get(spelling.len()..).unwrap_or_default();
                    return Some((name, rest.to_vec()));
                }
            }
        }
    }
    None
}

/// A command without what may stand before it and changes nothing.
fn without_prefix(words: &[String]) -> &[String] {
    let mut rest = words;
    if let [first, after @ ..] = rest
        && first == "env"
    {
        rest = after;
    }
    while let [first, after @ ..] = rest
        && first.contains('=')
        && !first.starts_with('-')
    {
        rest = after;
    }
    while let [first, after @ ..] = rest
        && matches!(first.as_str(), "command" | "time" | "noglob")
    {
        rest = after;
    }
    rest
}

/// The ways in which a project's command is written.
fn spellings<'w>(words: &[&'w str]) -> Vec<Vec<&'w str>> {
    let mut all = vec![words.to_vec()];
    match words {
        [
            manager @ ("npm" | "pnpm" | "yarn" | "bun"),
            "run",
            script,
            ..,
        ] => {
            all.push(vec![manager, script]);
        }
        [script] if script.contains('/') => {
            all.extend(["bash", "sh"].map(|shell| vec![shell, *script]));
        }
        ["pytest"] => {
            all.extend(["python", "python3"].map(|python| vec![python, "-m", "pytest"]));
            all.extend(["uv", "poetry", "pipenv"].map(|manager| vec![manager, "run", "pytest"]));
        }
        _ => {}
    }
    all
}

fn kind_of(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let has = |word: &&str| name.contains(*word);
    if ["lint", "eslint", "ruff"].iter().any(has) {
        "lint"
    } else if ["typecheck", "tsc", "mypy", "pyright", "ty"]
        .iter()
        .any(has)
    {
        "typecheck"
    } else if name.contains("build") {
        "build"
    } else if name.contains("fmt") || name.contains("format") {
        "format"
    } else if name.contains("check") && !name.contains("test") {
        "check"
    } else {
        "test"
    }
}

/// Whether a word names a part of the project.
fn is_a_part(word: &str) -> bool {
    const ENDS: [&str; 8] = [".py", ".js", ".jsx", ".ts", ".tsx", ".rs", ".go", ".java"];
    const BEGINNINGS: [&str; 4] = ["test_", "tests", "spec", "__tests__"];
    !word.is_empty()
        && !word.starts_with('-')
        && !word.contains('=')
        && (word.contains('/')
            || word.contains('\\')
            || word.contains("::")
            || ENDS.iter().any(|end| word.ends_with(end))
            || BEGINNINGS
                .iter()
                .any(|beginning| word.starts_with(beginning)))
}

/// Whether a script runs in it that was written to check one thing only.
fn runs_ad_hoc(command: &str, root: &str) -> bool {
    [Quoting::Posix, Quoting::Kept].iter().any(|quoting| {
        segments(command, *quoting).iter().any(|segment| {
            let segment = without_prefix(segment);
            let Some((first, rest)) = segment.split_first() else {
                return false;
            };
            if is_ad_hoc(first, root) {
                return true;
            }
            INTERPRETERS.contains(&first.as_str())
                && rest
                    .iter()
                    .find(|word| is_ad_hoc(word, root) || !word.starts_with('-'))
                    .is_some_and(|word| is_ad_hoc(word, root))
        })
    })
}

fn is_ad_hoc(word: &str, root: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    AD_HOC.iter().any(|beginning| name.starts_with(beginning))
        && lexical(Path::new(word))
            .is_some_and(|path| path.starts_with(SHARED) && !path.starts_with(root))
}

fn shortened(text: &str) -> String {
    let letters = text.chars().count();
    if letters <= OUTPUT_LETTERS_MAX {
        return text.to_owned();
    }
    let head = OUTPUT_LETTERS_MAX / 3;
    format!(
        "{}\n... [{} chars omitted] ...\n{}",
        pytext::head(text, head),
        letters - OUTPUT_LETTERS_MAX,
        pytext::tail(text, OUTPUT_LETTERS_MAX - head)
    )
}

/// What an agent saw proved, and what it changed since.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The last proof about each project, and when.
    proofs: Vec<(u64, Proof)>,
    /// The directories of each change and when, the last time each.
    edits: Vec<(u64, Vec<String>)>,
    /// When a change was forgotten because there were too many.
    forgotten: u64,
    now: u64,
}

/// How things stand with a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// `unverified`, `stale`, `failed` or `passed`.
    pub status: &'static str,
    /// The last proof, if there is one.
    pub proof: Option<Proof>,
}

impl Evidence {
    /// A command proved something.
    pub fn note_proof(&mut self, proof: Proof) {
        self.now += 1;
        self.proofs.retain(|(_, known)| known.root != proof.root);
        self.proofs.push((self.now, proof));
        if self.proofs.len() > PROJECTS_MAX {
            self.proofs.remove(0);
        }
    }

    /// Files in these directories were changed, in the order they were named.
    pub fn note_edit(&mut self, directories: Vec<String>) {
        // Where nothing was proved, nothing can become stale.
        if self.proofs.is_empty() {
            return;
        }
        self.now += 1;
        self.edits.retain(|(_, known)| *known != directories);
        self.edits.push((self.now, directories));
        if self.edits.len() > EDITS_MAX {
            let (when, _) = self.edits.remove(0);
            self.forgotten = when;
        }
    }

    /// Takes in the changes a call left that ran beside others, on a copy of `was`.
    pub fn take_in(&mut self, was: &Self, left: Self) {
        for (when, directories) in left.edits {
            if when > was.now {
                self.note_edit(directories);
            }
        }
    }

    /// How things stand with the project at `root`; `owner` says which project a
    /// change belongs to.
    pub fn standing(
        &self,
        root: &str,
        mut owner: impl FnMut(&[String]) -> Option<String>,
    ) -> Standing {
        let Some((when, proof)) = self.proofs.iter().find(|(_, proof)| proof.root == root) else {
            return Standing {
                status: "unverified",
                proof: None,
            };
        };
        let is_stale = self.forgotten > *when
            || self
                .edits
                .iter()
                .filter(|(edited, _)| edited > when)
                .any(|(_, directories)| owner(directories).as_deref() == Some(root));
        Standing {
            status: if is_stale { "stale" } else { proof.status() },
            proof: Some(proof.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Evidence, Project, Proof, may_prove, proof};

    fn project(commands: &[&str]) -> Project {
        Project {
            root: "/p".into(),
            commands: commands.iter().map(|&name| name.into()).collect(),
        }
    }

    fn seen(commands: &[&str], command: &str) -> Option<(String, &'static str, &'static str)> {
        let proof = proof(&project(commands), command, 0, "")?;
        assert!(may_prove(command), "{command}");
        Some((proof.command, proof.kind, proof.scope))
    }

    #[test]
    fn a_projects_command_is_known_in_each_of_its_spellings_and_nothing_else_is() {
        for (known, command, expected) in [
            ("pytest", "pytest -q", Some(("test", "full"))),
            (
                "pytest",
                "cd x && python3 -m pytest tests/a.py",
                Some(("test", "targeted")),
            ),
            (
                "pytest",
                "env A=1 time uv run pytest",
                Some(("test", "full")),
            ),
            ("pytest", "echo pytest", None),
            ("pytest", "pytests", None),
            ("pytest", "pytest 'unclosed", None),
            ("npm run lint", "npm lint", Some(("lint", "full"))),
            ("npm run lint", "yarn lint", None),
            ("npm run build", "npm run build", Some(("build", "full"))),
            ("make check", "make check V=1", Some(("check", "full"))),
            (
                "make fmt",
                "true; make fmt a.rs",
                Some(("format", "targeted")),
            ),
            (
                "yarn run typecheck",
                "yarn typecheck",
                Some(("typecheck", "full")),
            ),
            (
                "scripts/run_tests.sh",
                "bash scripts/run_tests.sh",
                Some(("test", "full")),
            ),
            ("scripts/run_tests.sh", "./scripts/run_tests.sh", None),
        ] {
            let found = seen(&[known], command);
            let expected = expected.map(|(kind, scope)| (known.to_owned(), kind, scope));
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn a_script_of_its_own_counts_only_where_no_command_is_known_and_only_outside_the_project() {
        let ad_hoc = || {
            Some((
                "ad-hoc verification script".to_owned(),
                "ad_hoc",
                "targeted",
            ))
        };
        for command in [
            "/tmp/hermes-verify-a.sh",
            "python3 /tmp/hermes-verify-a.py --x",
            "cd x; bash -e -- /tmp/d/hermes-ad-hoc-b",
        ] {
            assert_eq!(seen(&[], command), ad_hoc(), "{command}");
            assert_eq!(seen(&["pytest"], command), None, "{command}");
        }
        for command in [
            "python3 hermes-verify-a.py",
            "python3 /p/hermes-verify-a.py",
            "python3 x.py /tmp/hermes-verify-a.py",
            "cat /tmp/hermes-verify-a.py",
            "python3 /tmp/../p/hermes-verify-a.py",
            "python3 /tmp/verify.py",
        ] {
            assert_eq!(seen(&[], command), None, "{command}");
        }
    }

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let long = format!("  a{}z\n", "x".repeat(3000));
        let kept = proof(&project(&["pytest"]), "pytest", 1, &long).expect("a proof");
        assert!(!kept.has_passed && kept.output.starts_with('a') && kept.output.ends_with('z'));
        assert!(kept.output.contains("\n... [1002 chars omitted] ...\n"));
    }

    fn made(root: &str, has_passed: bool) -> Proof {
        Proof {
            root: root.into(),
            command: "pytest".into(),
            kind: "test",
            scope: "full",
            has_passed,
            output: String::new(),
        }
    }

    #[test]
    fn a_proof_counts_until_its_own_project_is_changed() {
        let mut evidence = Evidence::default();
        let status = |evidence: &Evidence| {
            evidence
                .standing("/p", |directories| directories.first().cloned())
                .status
        };
        evidence.note_edit(vec!["/p".into()]);
        assert_eq!(status(&evidence), "unverified");
        evidence.note_proof(made("/p", true));
        evidence.note_edit(vec!["/q".into()]);
        assert_eq!(status(&evidence), "passed");
        evidence.note_edit(vec!["/p".into()]);
        assert_eq!(status(&evidence), "stale");
        evidence.note_proof(made("/p", false));
        assert_eq!(status(&evidence), "failed");
        evidence.note_proof(made("/p", true));
        assert_eq!(status(&evidence), "passed");
        for number in 0..300 {
            evidence.note_edit(vec![format!("/{number}")]);
        }
        assert_eq!(
            status(&evidence),
            "stale",
            "a forgotten change may be one of it"
        );
    }

    #[test]
    fn what_was_changed_beside_other_calls_counts() {
        let mut evidence = Evidence::default();
        evidence.note_proof(made("/p", true));
        let was = evidence.clone();
        let mut beside = was.clone();
        beside.note_edit(vec!["/p".into()]);
        evidence.take_in(&was, beside);
        let standing = evidence.standing("/p", |directories| directories.first().cloned());
        assert_eq!(standing.status, "stale");
    }
}
