//! From patch text to operations.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::header::{Header, Mark, header, hint, mark};
use super::{Hunk, Line, Operation, V4aError};

/// The longest patch considered, in bytes.
pub const PATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Reads a patch. A text without any header is a patch of no operations.
///
/// # Errors
/// See [`V4aError`]; the first mistake is named, and then nothing of the patch
/// may be applied.
pub fn parse(text: &str) -> Result<Vec<Operation>, V4aError> {
    parse_or_mistakes(text)
        .map_err(|mistakes| mistakes.into_iter().next().unwrap_or(V4aError::PathMissing))
}

/// Reads a patch like [`parse`], and names every mistake.
///
/// # Errors
/// All mistakes, in the order of the operations; never an empty list.
pub fn parse_or_mistakes(text: &str) -> Result<Vec<Operation>, Vec<V4aError>> {
    if text.len() > PATCH_BYTES_MAX {
        return Err(alloc::vec![V4aError::TooLong]);
    }
    let operations = read(text);
    let mistakes: Vec<V4aError> = operations.iter().flat_map(check).collect();
    if mistakes.is_empty() {
        Ok(operations)
    } else {
        Err(mistakes)
    }
}

fn read(text: &str) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut section: Option<Section> = None;
    for line in body(text) {
        if let Some(header) = header(line) {
            operations.extend(section.take().map(Section::close));
            match header {
                Header::Add(path) => section = Some(Section::open(Kind::Add, path)),
                Header::Update(path) => section = Some(Section::open(Kind::Update, path)),
                Header::Delete(path) => {
                    operations.push(Operation::Delete {
                        path: path.to_string(),
                    });
                }
                Header::Move(path, to) => operations.push(Operation::Move {
                    path: path.to_string(),
                    to: to.to_string(),
                }),
            }
        } else if let Some(section) = &mut section {
            section.line(line);
        }
    }
    operations.extend(section.map(Section::close));
    operations
}

/// The lines between the marks.
fn body(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let mut end = usize::MAX;
    for (index, line) in text.split('\n').enumerate() {
        match mark(line) {
            Some(Mark::Begin) => start = index + 1,
            Some(Mark::End) => {
                end = index;
                break;
            }
            None => {}
        }
    }
    text.split('\n').take(end).skip(start)
}

#[derive(Clone, Copy)]
enum Kind {
    Add,
    Update,
}

/// A part of the patch whose lines are still being read.
struct Section {
    kind: Kind,
    path: String,
    done: Vec<Hunk>,
    open: Hunk,
}

impl Section {
    fn open(kind: Kind, path: &str) -> Self {
        Self {
            kind,
            path: path.to_string(),
            done: Vec::new(),
            open: Hunk {
                hint: None,
                lines: Vec::new(),
            },
        }
    }

    fn line(&mut self, line: &str) {
        if line.starts_with("@@") {
            self.next_hunk(hint(line));
            return;
        }
        let mut characters = line.chars();
        let read = match characters.next() {
            None | Some('\\') => return,
            Some('+') => Line::Added(characters.as_str().to_string()),
            Some('-') => Line::Removed(characters.as_str().to_string()),
            Some(' ') => Line::Context(characters.as_str().to_string()),
            Some(_) => Line::Context(line.to_string()),
        };
        self.open.lines.push(read);
    }

    /// Hunks without lines are left out.
    fn next_hunk(&mut self, hint: Option<&str>) {
        let next = Hunk {
            hint: hint.map(ToString::to_string),
            lines: Vec::new(),
        };
        let hunk = core::mem::replace(&mut self.open, next);
        if !hunk.lines.is_empty() {
            self.done.push(hunk);
        }
    }

    fn close(mut self) -> Operation {
        self.next_hunk(None);
        match self.kind {
            Kind::Add => Operation::Add {
                path: self.path,
                hunks: self.done,
            },
            Kind::Update => Operation::Update {
                path: self.path,
                hunks: self.done,
            },
        }
    }
}

/// What is wrong with an operation.
fn check(operation: &Operation) -> Vec<V4aError> {
    let path = operation.path();
    let mut mistakes = Vec::new();
    if path.is_empty() {
        mistakes.push(V4aError::PathMissing);
    }
    match operation {
        Operation::Update { hunks, .. } if hunks.is_empty() => {
            mistakes.push(V4aError::HunkMissing {
                path: path.to_string(),
            });
        }
        Operation::Move { to, .. } if to.is_empty() => {
            mistakes.push(V4aError::TargetMissing {
                path: path.to_string(),
            });
        }
        Operation::Add { .. }
        | Operation::Update { .. }
        | Operation::Delete { .. }
        | Operation::Move { .. } => {}
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, Option<&str>)]) {
        let operations = parse(text).unwrap();
        let got: Vec<_> = operations
            .iter()
            .map(|operation| (operation.word(), operation.path(), operation.new_path()))
            .collect();
        assert_eq!(got, expected, "{text:?}");
    }

    #[test]
    fn each_kind_of_operation_is_read() {
        check(
            "*** Begin Patch\n*** Add File: a.py\n+x\n*** Delete File: b.py\n*** Update File: c.py\n keep\n-old\n+new\n*** Move File: d -> e\n*** End Patch",
            &[
                ("Add", "a.py", None),
                ("Delete", "b.py", None),
                ("Update", "c.py", None),
                ("Move", "d", Some("e")),
            ],
        );
    }

    #[test]
    fn a_header_without_the_blank_is_no_hiding_place() {
        check(
            "*** Add File: /ws/n.txt\n+x\n***Add File: /home/u/y\n+y",
            &[("Add", "/ws/n.txt", None), ("Add", "/home/u/y", None)],
        );
    }

    #[test]
    fn lines_are_sorted_into_hunks() {
        let text = "*** Update File: f\n@@ here @@\n a\n-b\n\n+c\nbare\n\\ No newline\n@@\n+d\n@@ empty @@\n";
        let hunk = |hint: Option<&str>, lines: &[Line]| Hunk {
            hint: hint.map(ToString::to_string),
            lines: lines.to_vec(),
        };
        let expected = [
            hunk(
                Some("here"),
                &[
                    Line::Context("a".to_string()),
                    Line::Removed("b".to_string()),
                    Line::Added("c".to_string()),
                    Line::Context("bare".to_string()),
                ],
            ),
            hunk(None, &[Line::Added("d".to_string())]),
        ];
        let path = "f".to_string();
        assert_eq!(
            parse(text),
            Ok(alloc::vec![Operation::Update {
                path,
                hunks: expected.to_vec()
            }])
        );
    }

    #[test]
    fn marks_bound_the_patch() {
        check(
            "*** Update File: f.py\n-o\n+n\n*** End Patch\n*** Delete File: g",
            &[("Update", "f.py", None)],
        );
        check(
            "*** Delete File: lost\n*** Begin Patch\n*** Delete File: kept",
            &[("Delete", "kept", None)],
        );
        check("*** End Patch\n*** Begin Patch\n*** Delete File: f", &[]);
        check("no patch at all", &[]);
        check("", &[]);
    }

    #[test]
    fn a_patch_with_a_mistake_is_refused_whole() {
        let mistakes = [
            (
                "*** Update File: f\n",
                V4aError::HunkMissing {
                    path: "f".to_string(),
                },
            ),
            (
                "*** Add File: a\n+x\n*** Update File: f\n@@ h @@\n",
                V4aError::HunkMissing {
                    path: "f".to_string(),
                },
            ),
            ("*** Add File:  \n+x", V4aError::PathMissing),
            (
                "*** Move File: a -> \n",
                V4aError::TargetMissing {
                    path: "a".to_string(),
                },
            ),
        ];
        for (text, expected) in mistakes {
            assert_eq!(parse(text), Err(expected), "{text:?}");
        }
        let long = |bytes| parse(&"x".repeat(bytes));
        assert_eq!(long(PATCH_BYTES_MAX), Ok(Vec::new()));
        assert_eq!(long(PATCH_BYTES_MAX + 1), Err(V4aError::TooLong));
    }
}
