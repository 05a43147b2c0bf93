//! What is left of calls in whose middle the agent was killed, by operation.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::examine::{Left, Part};
use crate::report::table::wide;

/// The crashes of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Worlds in which the agent was killed before the call was over.
    pub cut: u64,
    /// Of these, worlds in which nothing of the call is left.
    pub nothing: u64,
    /// Of these, worlds in which all of it stands.
    pub whole: u64,
    /// Of these, worlds in which something else is left.
    pub other: u64,
    /// Worlds in which it was killed once the call was over.
    pub over: u64,
    /// The most changes to files that were counted.
    pub changes: u64,
}

/// All operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table(BTreeMap<&'static str, Cell>);

impl Table {
    /// Whether nothing was cut off.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts one more.
    pub fn add(&mut self, operation: &'static str, left: Left) {
        let cell = self.0.entry(operation).or_default();
        cell.changes = cell.changes.max(left.changes);
        if !left.is_cut {
            cell.over += 1;
            return;
        }
        cell.cut += 1;
        match left.what {
            Part::Nothing => cell.nothing += 1,
            Part::Whole => cell.whole += 1,
            Part::Other => cell.other += 1,
        }
    }

    /// A row for each operation.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        if self.is_empty() {
            return out;
        }
        let width = wide(18, self.0.keys().copied());
        // Writing to a string cannot fail.
        let _written = writeln!(
            out,
            "{:<width$} {:>8} {:>13} {:>13} {:>7} {:>16} {:>8}",
            "operation",
            "killed",
            "nothing left",
            "all left",
            "other",
            "killed after it",
            "changes"
        );
        for (operation, cell) in &self.0 {
            let _written = writeln!(
                out,
                "{operation:<width$} {:>8} {:>13} {:>13} {:>7} {:>16} {:>8}",
                cell.cut, cell.nothing, cell.whole, cell.other, cell.over, cell.changes
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kills_before_the_end_count_as_cut_off() {
        let mut table = Table::default();
        assert_eq!(table.render(), "");
        for (changes, is_cut, what) in [
            (3, true, Part::Nothing),
            (9, true, Part::Whole),
            (9, true, Part::Other),
            (12, false, Part::Whole),
        ] {
            let left = Left {
                changes,
                is_cut,
                what,
            };
            table.add("write-new", left);
        }
        let cell = Cell {
            cut: 3,
            nothing: 1,
            whole: 1,
            other: 1,
            over: 1,
            changes: 12,
        };
        assert_eq!(table.0.get("write-new"), Some(&cell));
        let text = table.render();
        let row = text.lines().nth(1).unwrap();
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(row, ["write-new", "3", "1", "1", "1", "1", "12"]);
    }
}
