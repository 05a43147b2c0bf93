//! Working a V4A patch out on a picture of the files, before any is touched.
//!
//! First every operation is held against the files as they are, and all
//! problems are told together. Then the operations are done in order on the
//! picture, where a later one sees what an earlier one did. Nothing here
//! writes: what comes out is a list of new contents, or problems.

use hermitcrab_core::v4a::{Hunk, Line, Operation};

use crate::{
    runtime::Stop,
    text::{
        difflib::Effort,
        fuzzy::{self, Occurrences, Replaced},
        whole_diff,
    },
};

/// The files as a patch sees them.
pub trait Picture {
    /// The text of a file as it is on the disk, or why there is none.
    fn text_on_disk(&mut self, path: &str) -> Result<Result<String, String>, Stop>;
    /// The same, with what the operations before have done.
    fn text_now(&mut self, path: &str) -> Result<Result<String, String>, Stop>;
    /// Gives a file this text; the problem, if it cannot have it.
    fn put(&mut self, path: &str, text: &str) -> Result<Result<(), String>, Stop>;
    /// Takes a file away.
    fn take_away(&mut self, path: &str) -> Result<(), Stop>;
    /// Gives a file another name; the problem, if it cannot have it.
    fn rename(&mut self, from: &str, to: &str) -> Result<Result<(), String>, Stop>;
}

/// What a patch comes to.
#[derive(Debug, Default)]
pub struct Applied {
    /// Files with another text or name, as written.
    pub modified: Vec<String>,
    /// New files, as written.
    pub created: Vec<String>,
    /// Files that go, as written.
    pub deleted: Vec<String>,
    /// The differences, one text for each operation.
    pub diffs: Vec<String>,
    /// What could not be done.
    pub problems: Vec<String>,
}

/// Why the operations cannot be done on the files as they are; empty if they can.
///
/// # Errors
/// A file may not be read, or the machinery failed.
pub fn problems(operations: &[Operation], files: &mut dyn Picture) -> Result<Vec<String>, Stop> {
    // One measure for all of a patch: nobody can call a call off in the midst of this.
    problems_within(operations, files, &mut Effort::default())
}

fn problems_within(
    operations: &[Operation],
    files: &mut dyn Picture,
    effort: &mut Effort,
) -> Result<Vec<String>, Stop> {
    let mut problems = Vec::new();
    let mut changes = 0_usize;
    for operation in operations {
        match operation {
            Operation::Add { .. } => changes += 1,
            Operation::Update { path, hunks } => match files.text_on_disk(path)? {
                Err(problem) => problems.push(format!("{path}: {problem}")),
                Ok(text) => changes += hunks_fit((path, hunks), text, &mut problems, effort),
            },
            Operation::Delete { path } => {
                changes += 1;
                if files.text_on_disk(path)?.is_err() {
                    problems.push(format!("{path}: file not found for deletion"));
                }
            }
            Operation::Move { path, to } => {
                changes += 1;
                if files.text_on_disk(path)?.is_err() {
                    problems.push(format!("{path}: source file not found for move"));
                }
                if files.text_on_disk(to)?.is_ok() {
                    problems.push(format!(
                        "{to}: destination already exists \u{2014} move would overwrite"
                    ));
                }
            }
        }
    }
    if problems.is_empty() && changes == 0 {
        problems.push("Patch contains no changes (only context lines were provided)".to_owned());
    }
    Ok(problems)
}

/// The lines a hunk looks for, and those it puts there.
struct Sides {
    search: Vec<String>,
    replace: Vec<String>,
    changes: bool,
}

fn sides(hunk: &Hunk) -> Sides {
    let mut sides = Sides {
        search: Vec::new(),
        replace: Vec::new(),
        changes: false,
    };
    for line in &hunk.lines {
        match line {
            Line::Context(text) => {
                sides.search.push(text.clone());
                sides.replace.push(text.clone());
            }
            Line::Removed(text) => {
                sides.changes = true;
                sides.search.push(text.clone());
            }
            Line::Added(text) => {
                sides.changes = true;
                sides.replace.push(text.clone());
            }
        }
    }
    sides
}

/// How often a hint occurs, overlaps counted.
fn occurrences(text: &str, hint: &str) -> usize {
    text.char_indices()
        .filter(|(at, _)| text.get(*at..).is_some_and(|rest| rest.starts_with(hint)))
        .count()
}

/// Tries the hunks one after the other; says how many of them change something.
fn hunks_fit(
    (path, hunks): (&str, &[Hunk]),
    mut text: String,
    problems: &mut Vec<String>,
    effort: &mut Effort,
) -> usize {
    let mut changes = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let sides = sides(hunk);
        if !sides.changes {
            continue;
        }
        changes += 1;
        if sides.search.is_empty() {
            if let Some(hint) = &hunk.hint {
                match occurrences(&text, hint) {
                    0 => problems.push(format!(
                        "{path}: addition-only hunk context hint '{hint}' not found"
                    )),
                    1 => {}
                    many => problems.push(format!(
                        "{path}: addition-only hunk context hint '{hint}' is ambiguous ({many} occurrences)"
                    )),
                }
            }
            continue;
        }
        let search = sides.search.join("\n");
        let replace = sides.replace.join("\n");
        let (replaced, _) =
            fuzzy::replace_within(&text, &search, &replace, Occurrences::One, effort);
        match replaced {
            Replaced::Text(next) => text = next,
            Replaced::Not(problem) => {
                let label = hunk
                    .hint
                    .as_ref()
                    .map_or_else(|| "(no hint)".to_owned(), |hint| format!("'{hint}'"));
                problems.push(format!(
                    "{path}: hunk {} {label} not found \u{2014} {problem}{}",
                    number + 1,
                    fuzzy::nearest_sections(&problem, &search, &text),
                ));
            }
        }
    }
    changes
}

/// Does the operations on the picture, in order.
///
/// # Errors
/// A file may not be read, or the machinery failed.
pub fn apply(operations: &[Operation], files: &mut dyn Picture) -> Result<Applied, Stop> {
    let mut applied = Applied::default();
    for operation in operations {
        match operation {
            Operation::Add { path, hunks } => {
                let lines: Vec<&str> = hunks
                    .iter()
                    .flat_map(|hunk| &hunk.lines)
                    .filter_map(|line| match line {
                        Line::Added(text) => Some(text.as_str()),
                        Line::Context(_) | Line::Removed(_) => None,
                    })
                    .collect();
                match files.put(path, &lines.join("\n"))? {
                    Err(problem) => applied
                        .problems
                        .push(format!("Failed to add {path}: {problem}")),
                    Ok(()) => {
                        let added: Vec<String> =
                            lines.iter().map(|line| format!("+{line}")).collect();
                        applied.created.push(path.clone());
                        applied
                            .diffs
                            .push(format!("--- /dev/null\n+++ b/{path}\n{}", added.join("\n")));
                    }
                }
            }
            Operation::Delete { path } => match files.text_now(path)? {
                Err(_) => applied.problems.push(format!(
                    "Failed to delete {path}: Cannot delete {path}: file not found"
                )),
                Ok(text) => {
                    files.take_away(path)?;
                    let diff = whole_diff::unified(&text, "", &format!("a/{path}"), "/dev/null");
                    applied.deleted.push(path.clone());
                    applied.diffs.push(if diff.is_empty() {
                        format!("# Deleted: {path}")
                    } else {
                        diff
                    });
                }
            },
            Operation::Move { path, to } => match files.rename(path, to)? {
                Err(problem) => applied.problems.push(format!(
                    "Failed to move {path}: Failed to move {path} -> {to}: {problem}"
                )),
                Ok(()) => {
                    applied.modified.push(format!("{path} -> {to}"));
                    applied.diffs.push(format!("# Moved: {path} -> {to}"));
                }
            },
            Operation::Update { path, hunks } => match update(path, hunks, files)? {
                Err(problem) => applied
                    .problems
                    .push(format!("Failed to update {path}: {problem}")),
                Ok(diff) => {
                    applied.modified.push(path.clone());
                    applied.diffs.push(diff);
                }
            },
        }
    }
    Ok(applied)
}

fn update(
    path: &str,
    hunks: &[Hunk],
    files: &mut dyn Picture,
) -> Result<Result<String, String>, Stop> {
    let old = match files.text_now(path)? {
        Ok(text) => text,
        Err(problem) => return Ok(Err(format!("Cannot read file: {problem}"))),
    };
    let new = match hunks.iter().try_fold(old.clone(), with_hunk) {
        Ok(text) => text,
        Err(problem) => return Ok(Err(problem)),
    };
    if let Err(problem) = files.put(path, &new)? {
        return Ok(Err(problem));
    }
    Ok(Ok(whole_diff::unified(
        &old,
        &new,
        &format!("a/{path}"),
        &format!("b/{path}"),
    )))
}

fn with_hunk(text: String, hunk: &Hunk) -> Result<String, String> {
    let sides = sides(hunk);
    let (search, replace) = (sides.search.join("\n"), sides.replace.join("\n"));
    if !sides.search.is_empty() {
        if sides.search == sides.replace {
            return Ok(text);
        }
        return match fuzzy::replace(&text, &search, &replace, Occurrences::One) {
            Replaced::Text(next) => Ok(next),
            Replaced::Not(problem) => {
                let sections = fuzzy::nearest_sections(&problem, &search, &text);
                Err(format!("Could not apply hunk: {problem}{sections}"))
            }
        };
    }
    let at_end = |text: &str| format!("{}\n{replace}\n", text.trim_end_matches('\n'));
    let Some(hint) = &hunk.hint else {
        return Ok(at_end(&text));
    };
    match occurrences(&text, hint) {
        0 => Ok(at_end(&text)),
        1 => {
            let at = text.find(hint.as_str()).unwrap_or(text.len());
            let line_end = text
                .get(at..)
                .and_then(|rest| rest.find('\n'))
                .map(|end| at + end + 1);
            Ok(match line_end.and_then(|end| text.split_at_checked(end)) {
                Some((before, after)) => format!("{before}{replace}\n{after}"),
                None => format!("{text}\n{replace}"),
            })
        }
        many => Err(format!(
            "Addition-only hunk: context hint '{hint}' is ambiguous ({many} occurrences) \u{2014} provide a more unique \
             hint"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hermitcrab_core::v4a::{Hunk, Line, Operation, parse, print};
    use proptest::prelude::*;

    use super::{Picture, apply, problems, problems_within};
    use crate::{runtime::Stop, text::difflib::Effort};

    /// Files in memory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Memory(BTreeMap<String, String>);

    impl Picture for Memory {
        fn text_on_disk(&mut self, path: &str) -> Result<Result<String, String>, Stop> {
            self.text_now(path)
        }

        fn text_now(&mut self, path: &str) -> Result<Result<String, String>, Stop> {
            Ok(self.0.get(path).cloned().ok_or_else(|| "gone".to_owned()))
        }

        fn put(&mut self, path: &str, text: &str) -> Result<Result<(), String>, Stop> {
            self.0.insert(path.to_owned(), text.to_owned());
            Ok(Ok(()))
        }

        fn take_away(&mut self, path: &str) -> Result<(), Stop> {
            self.0.remove(path);
            Ok(())
        }

        fn rename(&mut self, from: &str, to: &str) -> Result<Result<(), String>, Stop> {
            let text = self.0.remove(from).unwrap();
            self.0.insert(to.to_owned(), text);
            Ok(Ok(()))
        }
    }

    /// The operations that take others back, last first. A deleted file comes
    /// back only if it had no final line end: that is what an added file is like.
    fn reversed(operations: &[Operation], before: &Memory) -> Vec<Operation> {
        let lines = |text: &str| {
            text.split('\n')
                .map(|line| Line::Added(line.to_owned()))
                .collect()
        };
        operations
            .iter()
            .rev()
            .map(|operation| match operation {
                Operation::Add { path, .. } => Operation::Delete { path: path.clone() },
                Operation::Delete { path } => Operation::Add {
                    path: path.clone(),
                    hunks: vec![Hunk {
                        hint: None,
                        lines: lines(&before.0[path]),
                    }],
                },
                Operation::Move { path, to } => Operation::Move {
                    path: to.clone(),
                    to: path.clone(),
                },
                Operation::Update { path, hunks } => Operation::Update {
                    path: path.clone(),
                    hunks: hunks
                        .iter()
                        .map(|hunk| Hunk {
                            hint: hunk.hint.clone(),
                            lines: hunk
                                .lines
                                .iter()
                                .map(|line| match line {
                                    Line::Context(text) => Line::Context(text.clone()),
                                    Line::Removed(text) => Line::Added(text.clone()),
                                    Line::Added(text) => Line::Removed(text.clone()),
                                })
                                .collect(),
                        })
                        .collect(),
                },
            })
            .collect()
    }

    fn update(path: &str, lines: &[Line]) -> Operation {
        Operation::Update {
            path: path.to_owned(),
            hunks: vec![Hunk {
                hint: None,
                lines: lines.to_vec(),
            }],
        }
    }

    fn done(operations: &[Operation], files: &mut Memory) {
        let found = problems(operations, files).unwrap();
        assert!(found.is_empty(), "{found:?}");
        let applied = apply(operations, files).unwrap();
        assert!(applied.problems.is_empty(), "{:?}", applied.problems);
    }

    #[test]
    fn what_all_of_a_patch_may_be_compared_is_one_measure() {
        let lines = vec![Line::Removed("a".to_owned()); 1000];
        let lines = [lines, vec![Line::Removed("y".to_owned())]].concat();
        let operations = vec![update("f", &lines); 3];
        let mut files = Memory(BTreeMap::from([("f".to_owned(), "a\n".repeat(10_000))]));
        let mut effort = Effort::default();
        effort.spend(usize::MAX);
        let found = problems_within(&operations, &mut files, &mut effort).unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        for problem in found {
            assert!(problem.contains("takes too long"), "{problem}");
        }
    }

    /// One place of a file that a hunk changes: lines that stay before it, lines that go,
    /// how many come, lines that stay behind it, and whether the hunk says where it is.
    type Place = (usize, usize, usize, usize, bool);

    /// The hunks at these places of a text, each line of which is its own, and how many lines come.
    fn hunks(name: &str, text: &[String], places: &[Place]) -> Vec<Hunk> {
        let mut at = 0;
        let mut hunks = Vec::new();
        for (number, (before, gone, come, behind, is_named)) in places.iter().copied().enumerate() {
            let from = at + before;
            let (to, end) = (from + gone, from + gone + behind);
            if end > text.len() || gone + come == 0 {
                continue;
            }
            let kept = text[from - 1].clone();
            let mut lines = vec![Line::Context(kept.clone())];
            lines.extend(text[from..to].iter().cloned().map(Line::Removed));
            lines.extend((0..come).map(|line| Line::Added(format!("{name} new {number}.{line}"))));
            lines.extend(text[to..end].iter().cloned().map(Line::Context));
            hunks.push(Hunk {
                hint: is_named.then_some(kept),
                lines,
            });
            at = end;
        }
        hunks
    }

    fn place() -> impl Strategy<Value = Place> {
        (
            1..4_usize,
            0..4_usize,
            0..4_usize,
            0..3_usize,
            any::<bool>(),
        )
    }

    /// What a model would write, read back.
    fn written(operations: &[Operation]) -> Vec<Operation> {
        let text = print(operations).expect("it can be written");
        parse(&text).expect("it can be read")
    }

    proptest! {
        /// Several files of several hunks, and others that come, go or get another name.
        #[test]
        fn a_patch_and_its_reverse_leave_every_file_as_it_was(
            texts in prop::collection::vec(
                (1..30_usize, any::<bool>(), prop::collection::vec(place(), 1..6), any::<bool>()),
                1..4,
            ),
            kinds in prop::collection::vec(0..3_u8, 0..4),
        ) {
            let mut files = Memory(BTreeMap::new());
            let mut operations = Vec::new();
            let mut is_moved_changed = false;
            for (number, (count, is_ended, places, is_moved)) in texts.into_iter().enumerate() {
                let name = format!("f{number}");
                let text: Vec<String> =
                    (0..count).map(|line| format!("{name} line {line} {}", "x".repeat(line + 1))).collect();
                let hunks = hunks(&name, &text, &places);
                let end = if is_ended { "\n" } else { "" };
                files.0.insert(name.clone(), text.join("\n") + end);
                if hunks.is_empty() {
                    continue;
                }
                operations.push(Operation::Update { path: name.clone(), hunks });
                if is_moved {
                    is_moved_changed = true;
                    operations.push(Operation::Move { path: name.clone(), to: format!("below/{name}") });
                }
            }
            for (n, kind) in kinds.iter().enumerate() {
                files.0.insert(format!("g{n}"), format!("one {n}\ntwo"));
                operations.push(match kind {
                    0 => Operation::Delete { path: format!("g{n}") },
                    1 => Operation::Move { path: format!("g{n}"), to: format!("h{n}") },
                    _ => Operation::Add {
                        path: format!("i{n}"),
                        hunks: vec![Hunk { hint: None, lines: vec![Line::Added("i".to_owned())] }],
                    },
                });
            }
            prop_assume!(!operations.is_empty());
            let before = files.clone();
            done(&written(&operations), &mut files);
            prop_assert_ne!(&files, &before);
            let back = reversed(&operations, &before);
            // A patch names files as they are before it: what it changed and moved comes back in two.
            let patches = if is_moved_changed { back.chunks(1).collect() } else { vec![&back[..]] };
            for patch in patches {
                done(&written(patch), &mut files);
            }
            prop_assert_eq!(files, before);
        }
    }
}
