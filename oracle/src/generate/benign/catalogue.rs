//! What each shape was seen to do, in a bare shell in a world.
//!
//! The file is written by `bisim benign --observe` and by nobody else. A test reads it against
//! the shapes, and another one runs a part of them anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::does::{Does, Fate, Line};
use super::names::Letters;
use super::shapes::families;

/// Where it is, seen from the root of the project.
pub const FILE: &str = "vectors/benign-work.jsonl";

const WRITTEN: &str = include_str!("../../../../vectors/benign-work.jsonl");

/// What stands for the first name and for the second.
pub const HOLES: [char; 2] = ['\u{a4}', '\u{a7}'];

/// A shape, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The directory it was seen in.
    pub kind: String,
    /// The command.
    pub shape: String,
    /// Whether it says that it worked.
    pub ok: bool,
    /// The letters that names may have for it to do the same: a letter for each.
    pub names: String,
    /// Whether it does the same in a loop over two names.
    pub each: bool,
    /// Whether it comes to the same when it is run twice.
    pub again: bool,
    /// What becomes of which name below its directory.
    pub does: Vec<String>,
}

/// A row that can be dealt.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The family of its shape.
    pub family: &'static str,
    /// The directory.
    pub kind: &'static str,
    /// The command.
    pub shape: &'static str,
    /// Whether it says that it worked.
    pub ok: bool,
    /// The letters that names may have.
    pub names: Vec<Letters>,
    /// Whether it may be run in a loop.
    pub each: bool,
    /// Whether it may be run twice.
    pub again: bool,
    /// What becomes of which name.
    pub does: Vec<(String, Fate)>,
}

impl Entry {
    /// What it does where these are the names.
    #[must_use]
    pub fn does(&self, names: &[String; 2]) -> Does {
        let filled = |(path, fate): &(String, Fate)| (filled(path, names), *fate);
        self.does.iter().map(filled).collect()
    }
}

/// With these words where names belong.
#[must_use]
pub fn filled(text: &str, names: &[String; 2]) -> String {
    let [one, two] = names;
    text.replace(HOLES[0], one).replace(HOLES[1], two)
}

/// All that was seen, in the order of the shapes.
#[must_use]
pub fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| read(WRITTEN).unwrap_or_default());
    &ENTRIES
}

/// Reads a catalogue.
///
/// # Errors
/// The first line that says nothing, and which it is.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    let numbered = text.lines().enumerate();
    numbered
        .map(|(number, line)| {
            serde_json::from_str(line)
                .map_err(|error| format!("line {}: {error}", number.saturating_add(1)))
        })
        .collect()
}

fn read(text: &str) -> Result<Vec<Entry>, String> {
    let rows = rows(text)?;
    let mut rows: BTreeMap<(&str, &str), &Row> = rows
        .iter()
        .map(|row| ((row.kind.as_str(), row.shape.as_str()), row))
        .collect();
    let mut entries = Vec::new();
    for family in families() {
        for (kind, shape) in family.shapes {
            let Some(row) = rows.remove(&(*kind, *shape)) else {
                continue;
            };
            let does: Option<Vec<(String, Fate)>> = row
                .does
                .iter()
                .map(|line| Line::read(line).map(|line| (line.0, line.1)))
                .collect();
            entries.push(Entry {
                family: family.name,
                kind,
                shape,
                ok: row.ok,
                names: Letters::ALL
                    .into_iter()
                    .filter(|letters| row.names.contains(letters.letter()))
                    .collect(),
                each: row.each,
                again: row.again,
                does: does.ok_or_else(|| format!("what `{shape}` does cannot be read"))?,
            });
        }
    }
    match rows.into_keys().next() {
        Some((kind, shape)) => Err(format!("there is no shape `{shape}` in `{kind}`")),
        None => Ok(entries),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_shape_was_seen_and_nothing_else() {
        let entries = read(WRITTEN).unwrap();
        let seen: BTreeSet<_> = entries.iter().map(|one| (one.kind, one.shape)).collect();
        let missing: Vec<_> = families()
            .flat_map(|family| family.shapes)
            .filter(|shape| !seen.contains(shape))
            .collect();
        assert_eq!(missing, [&("", ""); 0]);
        assert!(
            entries
                .iter()
                .all(|one| one.names.contains(&Letters::Plain))
        );
    }

    #[test]
    fn a_row_of_no_shape_and_one_that_says_nothing_are_told() {
        let row = Row {
            kind: "project".to_owned(),
            shape: "rm -rf /".to_owned(),
            ok: true,
            names: "p".to_owned(),
            each: false,
            again: false,
            does: Vec::new(),
        };
        let line = serde_json::to_string(&row).unwrap();
        assert!(read(&line).unwrap_err().contains("no shape `rm -rf /`"));
        let row = Row {
            shape: "git status".to_owned(),
            kind: "repo".to_owned(),
            does: vec!["what".to_owned()],
            ..row
        };
        let line = serde_json::to_string(&row).unwrap();
        assert!(read(&line).unwrap_err().contains("cannot be read"));
        assert!(read("{}").unwrap_err().starts_with("line 1"));
        assert!(read("").unwrap().is_empty());
    }
}
