//! A word to a model that ends its turn after changing code without a check
//! that passed since.
//!
//! It is told twice a turn at most, and nothing follows from it: the model may
//! end all the same. Its words are for that turn alone and leave the conversation
//! with it, and so does an answer that another one took the place of.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;

use super::{Chat, ChatError, unwritten};
use crate::{
    model::Message,
    runtime::{Project, Runtime, Standing, evidence},
    text::pytext,
};

/// Words in a turn.
const TIMES_MAX: u32 = 2;
/// Files that are named; more are counted.
const NAMED_MAX: usize = 8;
/// Commands that are named.
const COMMANDS_NAMED_MAX: usize = 3;
/// Letters of a check's output.
const OUTPUT_LETTERS_MAX: usize = 1200;
/// Endings of files in which there is nothing to check.
const PROSE: [&str; 12] = [
    "md", "markdown", "mdx", "rst", "txt", "text", "adoc", "asciidoc", "org", "log", "csv", "tsv",
];
/// Names of such files without an ending.
const PROSE_NAMES: [&str; 7] = [
    "license",
    "licence",
    "notice",
    "authors",
    "contributors",
    "changelog",
    "codeowners",
];
/// What is said besides, where that is wanted.
const ADVICE: &str = "[Coding] Before you run tests/linters or call this done: if this is creative UI/visual work, \
                      hold off on tests and linters until the user says they like the result or you're about to \
                      commit. And before every commit, clean your work: keep it KISS/DRY, match the surrounding code \
                      style, and be elitist, shorthand, clever, concise, efficient, and elegant.";

/// What a turn has changed, and how often its model was reminded.
#[derive(Clone, Debug, Default)]
pub(super) struct Unproved {
    changed: BTreeSet<String>,
    times: u32,
    /// Where the words stand in the conversation.
    told_at: Vec<usize>,
    /// The last answer that was held back.
    held_back: Option<String>,
}

impl Unproved {
    /// Takes note of a call that ran, and of its result as the model is told it.
    pub(super) fn observe(&mut self, tool: &str, args: &Value, told: &str) {
        if unwritten::has_landed(tool, told) {
            self.changed.extend(landed(tool, args, told));
        }
    }

    /// The answer to end with when there is no room for another one.
    pub(super) fn held_back(&mut self) -> Option<String> {
        self.held_back.take()
    }
}

impl Chat {
    /// Reminds the model that what it changed is not checked, if that is so;
    /// whether it did. `answer` is what the model wanted to end with.
    pub(super) fn remind(
        &mut self,
        runtime: &mut Runtime,
        answer: &str,
    ) -> Result<bool, ChatError> {
        if !self.reminder.is_wanted || self.unproved.times >= TIMES_MAX {
            return Ok(false);
        }
        let changed = self.unproved.changed.iter();
        let files: Vec<String> = changed.filter(|path| !is_prose(path)).cloned().collect();
        if files.is_empty() {
            return Ok(false);
        }
        let Some((project, standing)) = runtime.proved(self.agent, &files)? else {
            return Ok(false);
        };
        if standing.status == "passed" {
            return Ok(false);
        }
        let words = worded(&project, &standing, &files, self.reminder.advises);
        self.unproved.times += 1;
        self.unproved.told_at.push(self.messages.len());
        self.unproved.held_back = Some(answer.to_owned());
        self.messages.push(Message::Told(words));
        Ok(true)
    }

    /// What reminded the model goes with the turn it was for.
    pub(super) fn forget_reminders(&mut self) {
        let unproved = std::mem::take(&mut self.unproved);
        for place in unproved.told_at.into_iter().rev() {
            if place >= self.messages.len() {
                continue;
            }
            self.forget(place);
            if let Some(Message::Assistant { .. }) = self.messages.get(place) {
                // It was answered in other words.
                self.forget(place.saturating_sub(1));
            }
        }
    }
}

/// The files a result names, or those the call did.
fn landed(tool: &str, args: &Value, told: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(told.trim()).unwrap_or_default();
    let named: Vec<String> = result["files_modified"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    if !named.is_empty() {
        return named;
    }
    match result["resolved_path"].as_str() {
        Some(path) if !path.is_empty() => vec![path.to_owned()],
        _ => unwritten::targets(tool, args),
    }
}

/// Whether there is nothing in a file that could be checked.
fn is_prose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    match name.rfind('.') {
        Some(dot) if dot > 0 && dot + 1 < name.len() => {
            let ending = name.get(dot + 1..).unwrap_or_default();
            PROSE.contains(&ending)
        }
        _ => PROSE_NAMES.contains(&name.as_str()),
    }
}

fn worded(project: &Project, standing: &Standing, files: &[String], advises: bool) -> String {
    let mut changed: Vec<String> = files
        .iter()
        .take(NAMED_MAX)
        .map(|path| format!("- `{path}`"))
        .collect();
    if let Some(more) = files.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        changed.push(format!("- ... and {more} more"));
    }
    let advice = if advises {
        format!("\n\n{ADVICE}")
    } else {
        String::new()
    };
    format!(
        "[System: You edited code in this turn, but the workspace does not have fresh passing verification evidence \
         yet.\n\nVerification status: {}\n\nChanged paths:\n{}\n\n{} If verification is not possible, explain the \
         concrete blocker instead of claiming the work is fully verified.{advice}]",
        state(standing),
        changed.join("\n"),
        instruction(&project.commands)
    )
}

fn state(standing: &Standing) -> String {
    let mut text = standing.status.to_owned();
    let Some(proof) = &standing.proof else {
        return text;
    };
    // Writing to a string cannot fail.
    let _ = write!(text, "\nlast command `{}`", proof.command);
    let output = pytext::strip(&proof.output);
    if output.chars().count() > OUTPUT_LETTERS_MAX {
        let head = pytext::strip_end(pytext::head(output, OUTPUT_LETTERS_MAX));
        let _ = write!(text, "\nlast output:\n{head}\n... [truncated]");
    } else if !output.is_empty() {
        let _ = write!(text, "\nlast output:\n{output}");
    }
    text
}

fn instruction(commands: &[String]) -> String {
    if commands.is_empty() {
        return format!(
            "No canonical test/lint/build command was detected. Create a focused temporary verification script under \
             `{}` using an OS-safe `tempfile` path with a `hermes-verify-` filename prefix, run it against the changed \
             behavior, clean it up when possible, and summarize it explicitly as ad-hoc verification rather than suite \
             green.",
            evidence::SHARED
        );
    }
    let named: Vec<String> = commands
        .iter()
        .take(COMMANDS_NAMED_MAX)
        .map(|command| format!("`{command}`"))
        .collect();
    let more = if commands.len() > COMMANDS_NAMED_MAX {
        ", ..."
    } else {
        ""
    };
    format!(
        "Run the relevant verification command now ({}{more}), read any failure, repair the code, and summarize what \
         passed.",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Unproved, is_prose, worded};
    use crate::runtime::{Project, Standing};

    #[test]
    fn prose_needs_no_check_and_everything_else_does() {
        for path in ["/p/README.md", "a.TXT", "LICENSE", "/p/Changelog"] {
            assert!(is_prose(path), "{path}");
        }
        for path in [
            "/p/a.py",
            "license.rs",
            ".md",
            "a.",
            "Makefile",
            "/p/a.json",
        ] {
            assert!(!is_prose(path), "{path}");
        }
    }

    #[test]
    fn only_files_that_a_call_changed_count() {
        let mut unproved = Unproved::default();
        let args = json!({"path": "a"});
        unproved.observe("write_file", &args, r#"{"error": "no"}"#);
        unproved.observe("read_file", &args, r#"{"content": ""}"#);
        assert!(unproved.changed.is_empty());
        let done = r#"{"success": true, "files_modified": ["/p/a", "/p/b"]}"#;
        unproved.observe("patch", &args, done);
        unproved.observe(
            "write_file",
            &args,
            r#"{"bytes_written": 1, "resolved_path": "/p/c"}"#,
        );
        assert_eq!(
            unproved.changed.into_iter().collect::<Vec<_>>(),
            ["/p/a", "/p/b", "/p/c"]
        );
    }

    #[test]
    fn no_more_than_eight_files_and_three_commands_are_named() {
        let project = Project {
            root: "/p".into(),
            commands: ["a", "b", "c", "d"].map(String::from).to_vec(),
        };
        let standing = Standing {
            status: "unverified",
            proof: None,
        };
        let files: Vec<String> = (0..10).map(|number| format!("/p/{number}")).collect();
        let text = worded(&project, &standing, &files, false);
        assert!(text.contains("(`a`, `b`, `c`, ...)") && !text.contains("`d`"));
        assert!(text.contains("- `/p/7`\n- ... and 2 more\n") && !text.contains("/p/8"));
    }
}
