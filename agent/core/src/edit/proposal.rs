//! What an edit would do, for somebody to look at.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::v4a::{self, V4aError};

/// A call that would change files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditCall<'a> {
    /// `write_file`: the whole text of one file.
    Write {
        /// The file; empty if it was not given.
        path: &'a str,
        /// Its new text.
        content: Option<&'a str>,
    },
    /// `patch` in its replace mode: one piece of text in one file.
    Replace {
        /// The file; empty if it was not given.
        path: &'a str,
        /// What to look for.
        old: Option<&'a str>,
        /// What to put there.
        new: Option<&'a str>,
        /// Which places are meant.
        occurrences: Occurrences,
    },
    /// `patch` in its patch mode: any number of files.
    Patch {
        /// The V4A text.
        text: Option<&'a str>,
    },
}

/// Which places a replacement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// The only one; several are an error.
    One,
    /// All.
    All,
}

/// What is at a path now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFact {
    /// Nothing.
    Absent,
    /// A regular file with this text.
    Text(String),
    /// Something else: a directory, a device.
    NotAFile,
    /// It could not be looked at; why, in a few words.
    Unreadable(String),
}

/// Reads files, and nothing else.
pub trait Files {
    /// What is at `path`, as the model wrote it.
    fn look(&self, path: &str) -> FileFact;
}

/// Finds a piece of text and replaces it; the error is for the model to read.
pub type Replacer<'a> = &'a dyn Fn(&str, &str, &str, Occurrences) -> Result<String, String>;

/// An edit, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The tool that would do it.
    pub tool: &'static str,
    /// Every file it touches, as the model wrote the paths; at least one.
    pub paths: Vec<String>,
    /// The text before, if it is one file and the file is there.
    pub old_text: Option<String>,
    /// The text after; of a V4A patch, the patch itself.
    pub new_text: String,
}

impl Proposal {
    /// All paths as one line.
    #[must_use]
    pub fn shown_path(&self) -> String {
        self.paths.join(", ")
    }
}

/// Why an edit cannot be shown. The wording is what the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalError {
    /// No path.
    PathMissing,
    /// No text to write.
    ContentMissing,
    /// No text to look for, or none to put there.
    StringsMissing,
    /// Something other than a file.
    NotAFile(String),
    /// A replacement in a file that is not there.
    FileMissing(String),
    /// The file could not be read.
    Unreadable(String),
    /// The replacement does not apply; why.
    NoReplacement(String),
    /// No patch text.
    PatchMissing,
    /// A patch that names no file.
    NoFileInPatch,
    /// A patch that cannot be read.
    PatchUnreadable(V4aError),
}

impl fmt::Display for ProposalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathMissing => formatter.write_str("path required"),
            Self::ContentMissing => formatter.write_str("content required"),
            Self::StringsMissing => formatter.write_str("old_string and new_string required"),
            Self::NotAFile(path) => write!(formatter, "Cannot edit non-file path: {path}"),
            Self::FileMissing(path) => write!(formatter, "Failed to read file: {path}"),
            Self::Unreadable(why) | Self::NoReplacement(why) => formatter.write_str(why),
            Self::PatchMissing => formatter.write_str("patch content required"),
            Self::NoFileInPatch => formatter.write_str("no file paths found in V4A patch"),
            Self::PatchUnreadable(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for ProposalError {}

/// Prepares an edit for being shown.
///
/// A patch is read by the reader that applies it, so every file it would
/// touch is in [`Proposal::paths`].
///
/// # Errors
/// See [`ProposalError`]; such an edit must not go ahead.
pub fn proposal(
    call: EditCall<'_>,
    files: &dyn Files,
    replace: Replacer<'_>,
) -> Result<Proposal, ProposalError> {
    match call {
        EditCall::Write { path, content } => {
            let path = given(path)?;
            let content = content.ok_or(ProposalError::ContentMissing)?;
            let old_text = text_at(path, files)?;
            Ok(one_file("write_file", path, old_text, content.to_string()))
        }
        EditCall::Replace {
            path,
            old,
            new,
            occurrences,
        } => {
            let path = given(path)?;
            let (Some(old), Some(new)) = (old, new) else {
                return Err(ProposalError::StringsMissing);
            };
            let text = text_at(path, files)?
                .ok_or_else(|| ProposalError::FileMissing(path.to_string()))?;
            let new_text =
                replace(&text, old, new, occurrences).map_err(ProposalError::NoReplacement)?;
            Ok(one_file("patch", path, Some(text), new_text))
        }
        EditCall::Patch { text } => {
            let text = text
                .filter(|text| !text.is_empty())
                .ok_or(ProposalError::PatchMissing)?;
            let operations = v4a::parse(text).map_err(ProposalError::PatchUnreadable)?;
            let mut paths = Vec::new();
            for operation in &operations {
                paths.push(operation.path().to_string());
                paths.extend(operation.new_path().map(ToString::to_string));
            }
            let old_text = match paths.as_slice() {
                [] => return Err(ProposalError::NoFileInPatch),
                [path] => text_at(path, files)?,
                [_, _, ..] => None,
            };
            Ok(Proposal {
                tool: "patch",
                paths,
                old_text,
                new_text: text.to_string(),
            })
        }
    }
}

fn given(path: &str) -> Result<&str, ProposalError> {
    if path.is_empty() {
        Err(ProposalError::PathMissing)
    } else {
        Ok(path)
    }
}

fn text_at(path: &str, files: &dyn Files) -> Result<Option<String>, ProposalError> {
    match files.look(path) {
        FileFact::Absent => Ok(None),
        FileFact::Text(text) => Ok(Some(text)),
        FileFact::NotAFile => Err(ProposalError::NotAFile(path.to_string())),
        FileFact::Unreadable(why) => Err(ProposalError::Unreadable(why)),
    }
}

fn one_file(
    tool: &'static str,
    path: &str,
    old_text: Option<String>,
    new_text: String,
) -> Proposal {
    Proposal {
        tool,
        paths: alloc::vec![path.to_string()],
        old_text,
        new_text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree;

    impl Files for Tree {
        fn look(&self, path: &str) -> FileFact {
            match path {
                "/ws/t.txt" => FileFact::Text("hello\nworld\n".to_string()),
                "/ws/sub" => FileFact::NotAFile,
                "/ws/locked" => FileFact::Unreadable("no access".to_string()),
                _ => FileFact::Absent,
            }
        }
    }

    fn replace_first(text: &str, old: &str, new: &str, _: Occurrences) -> Result<String, String> {
        if text.contains(old) {
            Ok(text.replacen(old, new, 1))
        } else {
            Err("no match".to_string())
        }
    }

    fn check(call: EditCall<'_>, expected: Result<(&[&str], Option<&str>, &str), &str>) {
        let got = proposal(call, &Tree, &replace_first);
        let got = got
            .as_ref()
            .map(|proposal| {
                let paths: Vec<&str> = proposal.paths.iter().map(String::as_str).collect();
                (
                    paths,
                    proposal.old_text.as_deref(),
                    proposal.new_text.as_str(),
                )
            })
            .map_err(ToString::to_string);
        let expected = expected
            .map(|(paths, old, new)| (paths.to_vec(), old, new))
            .map_err(str::to_string);
        assert_eq!(got, expected, "{call:?}");
    }

    #[test]
    fn a_write_shows_the_text_before_and_after() {
        let write = |path, content| EditCall::Write { path, content };
        check(
            write("/ws/t.txt", Some("n")),
            Ok((&["/ws/t.txt"], Some("hello\nworld\n"), "n")),
        );
        check(
            write("/ws/t.txt", Some("")),
            Ok((&["/ws/t.txt"], Some("hello\nworld\n"), "")),
        );
        check(write("/ws/new", Some("n")), Ok((&["/ws/new"], None, "n")));
        check(write("", Some("n")), Err("path required"));
        check(write("/ws/t.txt", None), Err("content required"));
        check(
            write("/ws/sub", Some("n")),
            Err("Cannot edit non-file path: /ws/sub"),
        );
        check(write("/ws/locked", Some("n")), Err("no access"));
    }

    #[test]
    fn a_replacement_shows_the_whole_text_before_and_after() {
        let replace = |path, old, new| EditCall::Replace {
            path,
            old,
            new,
            occurrences: Occurrences::One,
        };
        check(
            replace("/ws/t.txt", Some("hello"), Some("bye")),
            Ok((&["/ws/t.txt"], Some("hello\nworld\n"), "bye\nworld\n")),
        );
        check(
            replace("/ws/t.txt", Some("nope"), Some("x")),
            Err("no match"),
        );
        check(
            replace("/ws/t.txt", Some("x"), None),
            Err("old_string and new_string required"),
        );
        check(
            replace("/ws/none", Some("x"), Some("y")),
            Err("Failed to read file: /ws/none"),
        );
    }

    #[test]
    fn a_patch_shows_every_file_its_reader_finds() {
        let patch = |text| EditCall::Patch { text };
        let one = "*** Begin Patch\n*** Update File: /ws/t.txt\n-hello\n+bye\n*** End Patch";
        check(
            patch(Some(one)),
            Ok((&["/ws/t.txt"], Some("hello\nworld\n"), one)),
        );
        let hidden = "*** Add File: /ws/n\n+x\n***Add File: /home/u/y\n+y";
        check(
            patch(Some(hidden)),
            Ok((&["/ws/n", "/home/u/y"], None, hidden)),
        );
        let moved = "*** Move File: /ws/t.txt -> /ws/u.txt";
        check(
            patch(Some(moved)),
            Ok((&["/ws/t.txt", "/ws/u.txt"], None, moved)),
        );
        check(patch(None), Err("patch content required"));
        check(patch(Some("")), Err("patch content required"));
        check(
            patch(Some("no header")),
            Err("no file paths found in V4A patch"),
        );
        let empty = "*** Update File: /ws/t.txt";
        check(
            patch(Some(empty)),
            Err("the update of `/ws/t.txt` has no changed lines"),
        );
    }
}
