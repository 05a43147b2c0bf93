//! What a screening came to: what both guards said, and what worlds showed of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::said::Said;
use crate::figures::{counted, grouped};

/// How many commands had these decisions: context, Hermes, the agent.
pub type Counts = BTreeMap<String, u64>;

/// All rounds together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Commands both sides were asked about.
    pub commands: u64,
    /// Those no side was asked about.
    pub left_out: u64,
    /// By context and what the two said.
    pub counts: Counts,
    /// What went on into worlds.
    pub chosen: u64,
    /// Of these, what worlds and lane could be compared about.
    pub compared: u64,
    /// Places at which the worlds do not tell what the lane told.
    pub disagree: Vec<u64>,
    /// Things that worlds showed: cells, pairs of decisions, effects let through.
    pub shown: u64,
}

impl Told {
    /// Counts a round.
    pub fn add(&mut self, counts: &Counts, left_out: u64, chosen: usize) {
        for (name, count) in counts {
            *self.counts.entry(name.clone()).or_default() += count;
            self.commands += count;
        }
        self.left_out += left_out;
        self.chosen += chosen as u64;
    }

    fn of(&self, place: usize, said: Said) -> u64 {
        let has = |name: &str| name.split(' ').nth(place) == Some(said.word());
        let all = self.counts.iter().filter(|(name, _)| has(name));
        all.map(|(_, count)| count).sum()
    }

    /// In words.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for (place, who) in [(1, "Hermes' guard"), (2, "the agent")] {
            // Writing to a string cannot fail.
            let _written = writeln!(
                out,
                "{who}, asked about {} and what they do: lets {} through, asks about {}, refuses {}",
                counted(self.commands, "command", "commands"),
                grouped(self.of(place, Said::Permit)),
                grouped(self.of(place, Said::Ask)),
                grouped(self.of(place, Said::Deny)),
            );
        }
        let _written = writeln!(
            out,
            "{} went on into worlds, which showed {} not met before; of {} that could be compared, {} told something else there",
            grouped(self.chosen),
            counted(self.shown, "thing", "things"),
            grouped(self.compared),
            grouped(self.disagree.len() as u64),
        );
        for index in &self.disagree {
            let _written = writeln!(out, "DISAGREES: place {index}");
        }
        out
    }
}
