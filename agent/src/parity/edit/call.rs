//! From a model's call to an edit that can be shown.

use std::borrow::Cow;
use std::fs;
use std::io;

use hermitcrab_core::batch::{LinkFact, Links, ScopePath, Standing, canonical};
use hermitcrab_core::edit::{
    EditCall, FileFact, Files, Occurrences, Proposal, ProposalError, proposal,
};
use serde_json::Value;

use crate::text::{
    args::truthy,
    fuzzy::{self, Replaced},
};

/// Looks at files of the file system the process is in, and changes none.
#[derive(Clone, Copy, Debug)]
pub struct HostFiles<'a> {
    /// Where relative and `~` paths start.
    pub standing: Standing<'a>,
}

impl Files for HostFiles<'_> {
    fn look(&self, path: &str) -> FileFact {
        let place = match canonical(path, self.standing, &AsWritten) {
            Ok(place) => place.to_string(),
            Err(error) => return FileFact::Unreadable(error.to_string()),
        };
        match fs::metadata(&place) {
            Ok(found) if found.is_file() => match fs::read(&place) {
                Ok(bytes) => FileFact::Text(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) => FileFact::Unreadable(error.to_string()),
            },
            Ok(_) => FileFact::NotAFile,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileFact::Absent,
                _ => FileFact::Unreadable(error.to_string()),
            },
        }
    }
}

/// Follows no link: the kernel does, when the file is looked at.
struct AsWritten;

impl Links for AsWritten {
    fn look(&self, _path: &ScopePath) -> LinkFact {
        LinkFact::NotALink
    }
}

/// Prepares a call for being shown; `None` if it edits nothing the gate knows.
#[must_use]
pub fn prepare(
    tool: &str,
    arguments: &Value,
    standing: Standing<'_>,
) -> Option<Result<Proposal, ProposalError>> {
    let texts = Texts::read(arguments);
    let call = match (tool, arguments.get("mode")) {
        ("write_file", _) => EditCall::Write {
            path: texts.path(),
            content: texts.content.as_deref(),
        },
        ("patch", None) => texts.replace(arguments),
        ("patch", Some(Value::String(mode))) if mode == "replace" => texts.replace(arguments),
        ("patch", Some(Value::String(mode))) if mode == "patch" => EditCall::Patch {
            text: arguments.get("patch").and_then(Value::as_str),
        },
        _ => return None,
    };
    Some(proposal(call, &HostFiles { standing }, &replaced))
}

/// The arguments that are texts, or scalars that stand for one.
struct Texts<'a> {
    path: Option<Cow<'a, str>>,
    content: Option<Cow<'a, str>>,
    old: Option<Cow<'a, str>>,
    new: Option<Cow<'a, str>>,
}

impl<'a> Texts<'a> {
    fn read(arguments: &'a Value) -> Self {
        let text = |name: &str| arguments.get(name).and_then(scalar);
        Self {
            path: text("path"),
            content: text("content"),
            old: text("old_string"),
            new: text("new_string"),
        }
    }

    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or_default()
    }

    fn replace(&self, arguments: &Value) -> EditCall<'_> {
        let all = truthy(arguments.get("replace_all"));
        EditCall::Replace {
            path: self.path(),
            old: self.old.as_deref(),
            new: self.new.as_deref(),
            occurrences: if all {
                Occurrences::All
            } else {
                Occurrences::One
            },
        }
    }
}

/// A text, or the spelling of a number or truth value; lists and objects are no text.
fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(true) => Some(Cow::Borrowed("True")),
        Value::Bool(false) => Some(Cow::Borrowed("False")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn replaced(text: &str, old: &str, new: &str, occurrences: Occurrences) -> Result<String, String> {
    let occurrences = match occurrences {
        Occurrences::One => fuzzy::Occurrences::One,
        Occurrences::All => fuzzy::Occurrences::All,
    };
    match fuzzy::replace(text, old, new, occurrences) {
        Replaced::Text(text) => Ok(text),
        Replaced::Not(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Path, text before, text after.
    type Shown<'a> = (&'a str, Option<&'a str>, &'a str);

    fn check(tool: &str, arguments: &Value, expected: Option<Result<Shown<'_>, &str>>) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("t.txt"), "hello\nworld\n").unwrap();
        fs::write(dir.path().join("dup.txt"), "x\nx\n").unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        let standing = Standing {
            cwd: dir.path().to_str().unwrap(),
            home: None,
        };
        let got = prepare(tool, arguments, standing).map(|prepared| {
            prepared
                .map(|proposal| (proposal.shown_path(), proposal.old_text, proposal.new_text))
                .map_err(|error| error.to_string())
        });
        let expected = expected.map(|expected| {
            expected
                .map(|(path, old, new)| (path.to_owned(), old.map(str::to_owned), new.to_owned()))
                .map_err(str::to_owned)
        });
        assert_eq!(got, expected, "{tool} {arguments}");
    }

    #[test]
    fn an_edit_shows_the_text_before_and_after() {
        let old = Some("hello\nworld\n");
        check(
            "write_file",
            &json!({"path": "t.txt", "content": "n"}),
            Some(Ok(("t.txt", old, "n"))),
        );
        check(
            "write_file",
            &json!({"path": "t.txt", "content": 7}),
            Some(Ok(("t.txt", old, "7"))),
        );
        check(
            "write_file",
            &json!({"path": "new", "content": ""}),
            Some(Ok(("new", None, ""))),
        );
        let change = json!({"path": "t.txt", "old_string": "hello", "new_string": "bye"});
        check("patch", &change, Some(Ok(("t.txt", old, "bye\nworld\n"))));
        let patch = "*** Add File: n\n+x\n***Add File: y\n+y";
        check(
            "patch",
            &json!({"mode": "patch", "patch": patch}),
            Some(Ok(("n, y", None, patch))),
        );
    }

    #[test]
    fn what_cannot_be_shown_says_why() {
        let check = |tool, arguments, why| check(tool, &arguments, Some(Err(why)));
        check("write_file", json!({"path": "t.txt"}), "content required");
        check(
            "write_file",
            json!({"path": "t.txt", "content": ["n"]}),
            "content required",
        );
        check("write_file", json!({"content": "n"}), "path required");
        check(
            "write_file",
            json!({"path": "sub", "content": "n"}),
            "Cannot edit non-file path: sub",
        );
        check(
            "patch",
            json!({"path": "t.txt", "old_string": "h"}),
            "old_string and new_string required",
        );
        check(
            "patch",
            json!({"mode": "replace", "path": "none", "old_string": "x", "new_string": "y"}),
            "Failed to read file: none",
        );
        check(
            "patch",
            json!({"path": "t.txt", "old_string": "nope", "new_string": "y"}),
            "Could not find a match for old_string in the file",
        );
        check(
            "patch",
            json!({"path": "dup.txt", "old_string": "x", "new_string": "y"}),
            "Found 2 matches for old_string. Provide more context to make it unique, or use replace_all=True.",
        );
        check(
            "patch",
            json!({"mode": "patch", "patch": 7}),
            "patch content required",
        );
    }

    #[test]
    fn other_calls_are_not_the_gates_business() {
        check("terminal", &json!({"command": "echo x > t.txt"}), None);
        check("patch", &json!({"mode": "Patch", "patch": "x"}), None);
        check("patch", &json!({"mode": null, "path": "t.txt"}), None);
    }
}
