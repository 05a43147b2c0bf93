//! Syntax checks after (and for data files before) a write.
//!
//! Data formats are checked completely and gate the write: a data file that
//! does not parse is corrupt. Source code is only checked for what is certain
//! without a full parser, and only reported; where the language has a program
//! that checks, it is run confined, if the agent may run programs: for Python
//! that is Python itself, on the text alone.

mod interpreter;
mod program;
mod python;
mod toml;
mod yaml;

use serde_json::{Value, json};

use crate::{
    runtime::Hands,
    text::{json, pytext},
};

/// The note to problems that were there before.
const PRE_EXISTING: &str = "Pre-existing lint errors \u{2014} this edit didn't introduce new ones but the file is still broken.";

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lint {
    /// Nothing wrong.
    Clean,
    /// Nothing wrong, and what the program that looked said besides.
    Passed(String),
    /// What is wrong, and a note to it.
    Problem(String, Option<&'static str>),
    /// Not checked, and why.
    Skipped(String),
}

impl Lint {
    /// As the model sees it.
    #[must_use]
    pub fn shown(&self) -> Value {
        match self {
            Self::Passed(output) => json!({"status": "ok", "output": output}),
            Self::Clean => json!({"status": "ok", "output": ""}),
            Self::Problem(output, None) => json!({"status": "error", "output": output}),
            Self::Problem(output, Some(note)) => {
                json!({"status": "error", "output": output, "message": note})
            }
            Self::Skipped(why) => json!({"status": "skipped", "message": why}),
        }
    }
}

/// File kinds with a check of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Toml,
    Yaml,
    Python,
}

fn extension(path: &str) -> String {
    pytext::split_extension(path).1.to_lowercase()
}

fn kind(extension: &str) -> Option<Kind> {
    match extension {
        ".json" => Some(Kind::Json),
        ".toml" => Some(Kind::Toml),
        ".yaml" | ".yml" => Some(Kind::Yaml),
        ".py" => Some(Kind::Python),
        _ => None,
    }
}

fn problem(kind: Kind, text: &str) -> Option<String> {
    match kind {
        Kind::Json => json::problem(text),
        Kind::Toml => toml::problem(text),
        Kind::Yaml => yaml::problem(text),
        Kind::Python => python::problem(text),
    }
}

/// Why a data file with this text must not be written, if it must not.
#[must_use]
pub fn refusal(path: &str, text: &str) -> Option<String> {
    let extension = extension(path);
    let kind = kind(&extension).filter(|kind| *kind != Kind::Python)?;
    problem(kind, text).map(|problem| {
        format!(
            "Refusing to write '{path}': candidate content fails {extension} syntax validation ({problem}). The file \
             was NOT created or modified. Fix the content and retry."
        )
    })
}

/// Whether the text before a write is of interest to the check after it.
#[must_use]
pub fn wants_text_before(path: &str) -> bool {
    kind(&extension(path)).is_some()
}

/// Checks a file after a write: its text, or by a program. `is_edit`: the write
/// was an edit of `before`.
#[must_use]
pub fn after(
    hands: &mut Hands<'_>,
    path: &str,
    before: Option<&str>,
    after: &str,
    is_edit: bool,
) -> Lint {
    match program::of(&extension(path)) {
        Some(program) => program::check(hands, program, path, is_edit),
        None => check(path, before, after, |kind, text| match kind {
            Kind::Python => interpreter::problem(hands, text),
            Kind::Json | Kind::Toml | Kind::Yaml => problem(kind, text),
        }),
    }
}

/// Checks the text after a write; problems that were there before are named as such.
fn check(
    path: &str,
    before: Option<&str>,
    after: &str,
    mut problem: impl FnMut(Kind, &str) -> Option<String>,
) -> Lint {
    let extension = extension(path);
    let Some(kind) = kind(&extension) else {
        return Lint::Skipped(format!("No linter for {extension} files"));
    };
    let Some(now) = problem(kind, after) else {
        return Lint::Clean;
    };
    let Some(then) = before.and_then(|before| problem(kind, before)) else {
        return Lint::Problem(now, None);
    };
    let known: Vec<&str> = pytext::lines(&then)
        .into_iter()
        .map(pytext::strip)
        .collect();
    let fresh: Vec<&str> = pytext::lines(&now)
        .into_iter()
        .filter(|line| !pytext::strip(line).is_empty() && !known.contains(&pytext::strip(line)))
        .collect();
    if fresh.is_empty() {
        return Lint::Problem(now, Some(PRE_EXISTING));
    }
    Lint::Problem(
        format!(
            "New lint errors introduced by this edit (pre-existing errors filtered out):\n{}",
            fresh.join("\n")
        ),
        None,
    )
}

/// Whether a check after a patch reads the file once more, and not a program of its language.
#[must_use]
pub fn reads_again(path: &str) -> bool {
    kind(&extension(path)).is_some()
}

/// The answer for a file that cannot be read back for its check.
#[must_use]
pub fn unreadable(hands: &mut Hands<'_>, path: &str) -> Lint {
    if reads_again(path) {
        return Lint::Skipped(format!("Failed to read {path} for lint"));
    }
    after(hands, path, None, "", false)
}

#[cfg(test)]
mod tests {
    use super::{Lint, problem, refusal};

    fn check(path: &str, before: Option<&str>, after: &str) -> Lint {
        super::check(path, before, after, problem)
    }

    #[test]
    fn broken_data_is_refused_before_it_is_written() {
        let text = refusal("/p/a.json", "{\"a\":1,}").expect("refused");
        assert!(
            text.starts_with("Refusing to write '/p/a.json': candidate content fails .json"),
            "{text}"
        );
        assert!(text.contains("(JSONDecodeError: Expecting property name enclosed in double quotes (line 1, column 8))"));
        assert!(refusal("/p/a.toml", "a = \n").is_some());
        assert!(refusal("/p/a.yaml", "a: [1\nb: 2").is_some());
        assert!(refusal("/p/a.json", "{\"a\": [1, NaN]}").is_none());
        assert!(refusal("/p/a.py", "x = (").is_none());
        assert!(refusal("/p/a.txt", "{").is_none());
    }

    #[test]
    fn source_problems_are_reported_and_old_ones_named() {
        assert_eq!(check("/a.py", None, "x = 1\n"), Lint::Clean);
        let Lint::Problem(now, None) = check("/a.py", Some("x = 1\n"), "x=(\n") else {
            panic!()
        };
        assert_eq!(now, "SyntaxError: '(' was never closed (line 1, column 3)");
        assert!(matches!(
            check("/a.py", Some("x=(\n"), "x=(1\n"),
            Lint::Problem(_, Some(_))
        ));
    }

    #[test]
    fn kinds_without_a_check_are_skipped_by_name() {
        assert_eq!(
            check("/a.txt", None, ""),
            Lint::Skipped("No linter for .txt files".into())
        );
        assert_eq!(
            check("/a", None, ""),
            Lint::Skipped("No linter for  files".into())
        );
    }
}
