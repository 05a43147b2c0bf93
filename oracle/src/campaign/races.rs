//! What came of races: operation by pair of names, for both.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::examine::{Examined, Fate};
use crate::generate::Race;
use crate::report::table::wide;

/// Worlds and escapes of one operation on one pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Worlds in which the names changed places at least once, under Hermes.
    pub hermes_raced: u64,
    /// Of these, worlds in which something outside was reached.
    pub hermes_escaped: u64,
    /// The same, where the link stood there from the start.
    pub hermes_still: u64,
    /// Whether the names changed places at least once, under the agent.
    pub agent_raced: u64,
    /// Worlds in which the agent reached something outside.
    pub agent_escaped: u64,
    /// The most moments between system calls that name one of the two.
    pub windows: (u64, u64),
}

/// All cells, by operation and pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table(BTreeMap<&'static str, BTreeMap<&'static str, Cell>>);

impl Table {
    /// Whether nothing was raced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts one more.
    pub fn add(&mut self, race: &Race, seen: &Examined) {
        let cell = self
            .0
            .entry(race.operation.name)
            .or_default()
            .entry(race.swap.name)
            .or_default();
        cell.agent_escaped += u64::from(seen.fate == Fate::AgentUnsafe);
        let Some(windows) = seen.windows else {
            return;
        };
        cell.windows.0 = cell.windows.0.max(windows.hermes.windows);
        cell.windows.1 = cell.windows.1.max(windows.agent.windows);
        cell.agent_raced += u64::from(windows.agent.flips > 0);
        let escaped = u64::from(seen.fate == Fate::HermesSilent);
        if race.moment() == "first" {
            cell.hermes_still += escaped;
        } else if windows.hermes.flips > 0 {
            cell.hermes_raced += 1;
            cell.hermes_escaped += escaped;
        }
    }

    /// A row for each operation and pair.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        if self.is_empty() {
            return out;
        }
        let one = wide(18, self.0.keys().copied());
        let pairs = self.0.values().flat_map(BTreeMap::keys);
        let two = wide(24, pairs.copied());
        // Writing to a string cannot fail.
        let _written = writeln!(
            out,
            "{:<one$} {:<two$} {:>17} {:>17} {:>9} {:>17}",
            "operation", "pair", "hermes link there", "hermes escaped", "windows", "agent escaped"
        );
        for (operation, cells) in &self.0 {
            for (pair, cell) in cells {
                let _written = writeln!(
                    out,
                    "{operation:<one$} {pair:<two$} {:>17} {:>17} {:>9} {:>17}",
                    if cell.hermes_still > 0 {
                        "followed"
                    } else {
                        "stopped"
                    },
                    format!("{} of {}", cell.hermes_escaped, cell.hermes_raced),
                    format!("{} / {}", cell.windows.0, cell.windows.1),
                    format!("{} of {}", cell.agent_escaped, cell.agent_raced),
                );
            }
        }
        out.push_str(WINDOWS);
        out
    }
}

/// Below the table.
const WINDOWS: &str = "windows: moments between system calls that name one of the pair, the most seen under Hermes / under the agent\n";

#[cfg(test)]
mod tests {
    use bisim_world::flip::Seen;

    use super::super::examine::Windows;
    use super::*;

    #[test]
    fn only_worlds_in_which_names_changed_places_count_as_raced() {
        let mut table = Table::default();
        for (name, flips, fate) in [
            ("write+file-to-key+all+first", 1, Fate::HermesStopped),
            ("write+file-to-key+all+before~3", 1, Fate::HermesSilent),
            ("write+file-to-key+all+before~4", 0, Fate::Served),
            ("write+file-to-key+all+always", 9, Fate::AgentUnsafe),
        ] {
            let flipped = Seen {
                windows: 3,
                flips,
                ..Seen::default()
            };
            let seen = Examined {
                index: 0,
                variant: name.to_owned(),
                fate,
                verdict: None,
                bucket: None,
                smallest: None,
                spare: Vec::new(),
                why: None,
                windows: Some(Windows {
                    hermes: flipped,
                    agent: flipped,
                }),
                matched: None,
                left: None,
            };
            table.add(&Race::named(name).unwrap(), &seen);
        }
        let text = table.render();
        for part in [
            "write",
            "file-to-key",
            "stopped",
            "1 of 2",
            "3 / 3",
            "1 of 3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let pairs = |pair| BTreeMap::from([(pair, Cell::default())]);
        let table = Table(BTreeMap::from([
            ("write", pairs("file-to-key")),
            (
                "undo-command-directory",
                pairs("directory-to-some-data-fresh"),
            ),
        ]));
        let text = table.render();
        let text = text.strip_suffix(WINDOWS).unwrap();
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }
}
