//! Files that a turn was to change and did not, named to the person at its end.
//!
//! A model sums up what it did, and may sum up what it only tried. Whatever it
//! says, the calls that failed and were not made good are listed below it. Words
//! only: nothing follows from them.

use std::{fmt::Write as _, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use crate::text::pytext;

/// Files that are named; more are counted.
const NAMED_MAX: usize = 10;
/// Letters of a reason.
const REASON_LETTERS_MAX: usize = 180;

/// What failed in this turn and has not landed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Unwritten(Vec<Failure>);

#[derive(Clone, Debug)]
struct Failure {
    path: String,
    tool: String,
    reason: String,
}

impl Unwritten {
    /// Takes note of a call that ran, and of its result as the model is told it.
    pub(super) fn observe(&mut self, tool: &str, args: &Value, told: &str, has_failed: bool) {
        let targets = targets(tool, args);
        if targets.is_empty() {
            return;
        }
        if !has_failed || has_landed(tool, told) {
            self.0.retain(|failure| !targets.contains(&failure.path));
            return;
        }
        let reason = reason(told);
        for path in targets {
            if !self.0.iter().any(|failure| failure.path == path) {
                self.0.push(Failure {
                    path,
                    tool: tool.to_owned(),
                    reason: reason.clone(),
                });
            }
        }
    }

    /// The lines below the last words of the turn, if there is anything to say.
    pub(super) fn footer(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let mut text = format!(
            "\u{26a0}\u{fe0f} File-mutation verifier: {} file(s) were NOT modified this turn despite any wording above \
             that may suggest otherwise. Run `git status` or `read_file` to confirm.",
            self.0.len()
        );
        for Failure { path, tool, reason } in self.0.iter().take(NAMED_MAX) {
            let reason = if reason.is_empty() { "failed" } else { reason };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  \u{2022} `{path}` \u{2014} [{tool}] {reason}");
        }
        if let Some(more) = self.0.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            let _ = write!(text, "\n  \u{2022} \u{2026} and {more} more");
        }
        Some(quoted(&text))
    }
}

/// The files a call is about.
pub(super) fn targets(tool: &str, args: &Value) -> Vec<String> {
    let path = || as_text(args.get("path")).into_iter().collect();
    match tool {
        "write_file" => path(),
        "patch" => match args.get("mode") {
            None | Some(Value::Null) => path(),
            Some(Value::String(mode)) if mode.is_empty() || mode == "replace" => path(),
            Some(Value::String(mode)) if mode == "patch" => {
                args["patch"].as_str().map(in_headers).unwrap_or_default()
            }
            Some(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A path as it is shown; nothing is none.
fn as_text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if number.as_f64() != Some(0.0) => Some(number.to_string()),
        Value::Bool(true) => Some("True".to_owned()),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

static ONE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^\*\*\*\s+(?:Update|Add|Delete)\s+File:\s*(.+)$").ok());
static TWO: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^\*\*\*\s+Move\s+File:\s*(.+?)\s*->\s*(.+)$").ok());

/// The files in the headers of a patch.
fn in_headers(patch: &str) -> Vec<String> {
    let all = |form: &Option<Regex>| -> Vec<String> {
        let Some(form) = form else { return Vec::new() };
        form.captures_iter(patch)
            .flat_map(|found| {
                let names = found.iter().skip(1).flatten();
                names
                    .map(|name| pytext::strip(name.as_str()).to_owned())
                    .collect::<Vec<_>>()
            })
            .filter(|name| !name.is_empty())
            .collect()
    };
    let mut names = all(&ONE);
    names.extend(all(&TWO));
    names
}

/// Whether a result proves that what was to be written is there.
pub(super) fn has_landed(tool: &str, told: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(told.trim()) else {
        return false;
    };
    if fields.get("error").is_some_and(super::loops::is_something) {
        return false;
    }
    match tool {
        "write_file" => fields.contains_key("bytes_written"),
        "patch" => fields.get("success") == Some(&Value::Bool(true)),
        _ => false,
    }
}

/// Why, on one line.
fn reason(told: &str) -> String {
    let value: Option<Value> = serde_json::from_str(told.trim()).ok();
    let text = value
        .as_ref()
        .and_then(|value| value.get("error"))
        .and_then(Value::as_str)
        .unwrap_or(told);
    // The next step is the model's, and it would be cut in the middle.
    let text = match text.starts_with("Denied (") {
        true => text.split(". Next step: ").next().unwrap_or(text),
        false => text,
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= REASON_LETTERS_MAX {
        return line;
    }
    let head = pytext::head(&line, REASON_LETTERS_MAX.saturating_sub(1));
    format!("{head}\u{2026}")
}

static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:~/|/|[A-Za-z]:[/\\])(?:[\w.\-]+[/\\])*[\w.\-]+\.\w+").ok());

/// Paths in quotes: a front end that fetches every file whose path is said takes
/// a quoted one for a word.
fn quoted(text: &str) -> String {
    let Some(form) = PATH.as_ref() else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = form.find_at(text, from) {
        let before = text
            .get(..found.start())
            .and_then(|head| head.chars().next_back());
        let is_within = before.is_some_and(|letter| {
            letter.is_alphanumeric() || matches!(letter, '/' | ':' | '_' | '.' | '`')
        });
        if is_within {
            let letter = found.as_str().chars().next().map_or(1, char::len_utf8);
            from = found.start().saturating_add(letter);
            continue;
        }
        out.push_str(text.get(copied..found.start()).unwrap_or_default());
        out.push('`');
        out.push_str(found.as_str());
        out.push('`');
        (copied, from) = (found.end(), found.end());
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Unwritten, quoted};

    const NO: &str = r#"{"error": "no\n  such  text"}"#;
    const YES: &str = r#"{"success": true}"#;

    fn seen(calls: &[(&str, Value, &str)]) -> Option<String> {
        let mut unwritten = Unwritten::default();
        for (tool, args, told) in calls {
            unwritten.observe(tool, args, told, told.contains("error"));
        }
        unwritten.footer()
    }

    #[test]
    fn a_file_that_was_not_changed_is_named_with_the_first_reason() {
        let args = json!({"path": "a.txt"});
        let footer = seen(&[
            ("patch", args.clone(), NO),
            ("patch", args, r#"{"error": "other"}"#),
        ])
        .expect("a footer");
        assert!(
            footer.ends_with("\n  \u{2022} `a.txt` \u{2014} [patch] no such text"),
            "{footer}"
        );
        assert!(footer.contains("1 file(s) were NOT modified"));
    }

    #[test]
    fn a_refusal_is_told_whole_and_without_the_step_that_is_the_models() {
        let told = json!({"error": format!("Denied (untrusted-flow): {}. Next step: {}.",
            "what the agent has read since the grant was made may be behind this: `fs.modify ./a.txt`",
            "ask the user whether this is what they want, or do something else instead")});
        let footer = seen(&[("patch", json!({"path": "a.txt"}), &told.to_string())]);
        let footer = footer.expect("a footer");
        assert!(
            footer.ends_with("behind this: `fs.modify ./a.txt`"),
            "{footer}"
        );
    }

    #[test]
    fn a_file_that_landed_later_is_not_named_and_neither_is_what_only_reads() {
        let args = || json!({"path": "a.txt"});
        assert_eq!(seen(&[("patch", args(), NO), ("patch", args(), YES)]), None);
        assert_eq!(seen(&[("read_file", args(), NO)]), None);
        assert_eq!(seen(&[("terminal", json!({"command": "x"}), NO)]), None);
        let again = seen(&[("patch", args(), YES), ("patch", args(), NO)]);
        assert!(again.is_some());
    }

    #[test]
    fn each_file_of_a_patch_counts_by_itself() {
        let patch = json!({"mode": "patch", "patch": "*** Begin Patch\n*** Update File: a\n*** Add File:  b \n\
            *** Move File: c -> d\n*** End Patch"});
        let footer = seen(&[
            ("patch", patch, NO),
            (
                "write_file",
                json!({"path": "b"}),
                r#"{"bytes_written": 1}"#,
            ),
        ])
        .expect("a footer");
        for (name, is_named) in [("a", true), ("b", false), ("c", true), ("d", true)] {
            assert_eq!(footer.contains(&format!("`{name}` ")), is_named, "{footer}");
        }
    }

    #[test]
    fn no_more_than_ten_are_named() {
        let calls: Vec<(&str, Value, &str)> = (0..12)
            .map(|number| ("write_file", json!({"path": format!("f{number}")}), NO))
            .collect();
        let footer = seen(&calls).expect("a footer");
        assert!(footer.ends_with("\u{2022} \u{2026} and 2 more"), "{footer}");
    }

    #[test]
    fn paths_in_a_reason_are_quoted_once() {
        for (text, told) in [
            ("no /a/b.txt here", "no `/a/b.txt` here"),
            ("`/a/b.txt`", "`/a/b.txt`"),
            ("~/x.y, C:\\d\\e.f", "`~/x.y`, `C:\\d\\e.f`"),
            ("a/b.txt http://x.y/z.w", "a/b.txt http://x.y/z.w"),
            ("/none /\u{e9}.\u{e9}", "/none `/\u{e9}.\u{e9}`"),
        ] {
            assert_eq!(quoted(text), told);
        }
    }
}
