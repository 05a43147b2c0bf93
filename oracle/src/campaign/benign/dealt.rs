//! What was dealt: of how many kinds, and which of them never.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::Hasher as _;

use crate::figures::{counted, grouped};
use crate::generate::benign::catalogue::entries;
use crate::generate::benign::names::Letters;
use crate::generate::benign::{Benign, TOLD, Way};

/// Shapes that are named where they were never dealt.
const NAMED_MAX: usize = 10;

/// A tally of jobs.
#[derive(Debug, Default)]
pub(super) struct Dealt {
    jobs: u64,
    decisions: u64,
    families: BTreeMap<&'static str, u64>,
    shapes: BTreeSet<(&'static str, &'static str)>,
    ways: BTreeSet<Way>,
    letters: BTreeSet<Letters>,
    /// By a number made of each: a million of them as they are take much room.
    commands: HashSet<u64>,
    effects: HashSet<u64>,
    pairs: HashSet<u64>,
}

impl Dealt {
    /// One more.
    pub(super) fn add(&mut self, job: &Benign) {
        self.jobs = self.jobs.saturating_add(1);
        self.decisions = self.decisions.saturating_add(1 + job.does.len() as u64);
        for part in &job.parts {
            let count = self.families.entry(part.family).or_default();
            *count = count.saturating_add(1);
            self.shapes.insert((part.kind, part.shape));
            self.ways.insert(part.way);
            self.letters.insert(part.letters);
        }
        self.commands.insert(number(&job.command));
        for effect in &job.does {
            let effect = number(&effect);
            self.effects.insert(effect);
            if let [part] = job.parts.as_slice() {
                self.pairs.insert(number(&(part.kind, part.shape, effect)));
            }
        }
    }

    pub(super) const fn jobs(&self) -> u64 {
        self.jobs
    }

    pub(super) const fn decisions(&self) -> u64 {
        self.decisions
    }

    /// What could have been dealt and was not.
    fn never(&self) -> Vec<String> {
        let shapes = entries()
            .iter()
            .map(|entry| (entry.kind, entry.shape))
            .chain(TOLD.iter().map(|(shape, _)| ("told", *shape)))
            .filter(|shape| !self.shapes.contains(shape))
            .map(|(kind, shape)| format!("`{shape}` in `{kind}`"));
        let ways = Way::ALL.into_iter().filter(|way| !self.ways.contains(way));
        let letters = Letters::ALL.into_iter();
        let letters = letters.filter(|letters| !self.letters.contains(letters));
        shapes
            .chain(ways.map(|way| format!("{way:?}")))
            .chain(letters.map(|letters| format!("{letters:?} names")))
            .collect()
    }
}

fn number(thing: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

impl fmt::Display for Dealt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (family, count) in &self.families {
            writeln!(f, "{family}: {}", counted(*count, "part", "parts"))?;
        }
        writeln!(
            f,
            "{}, {} of {}, {} of running a part, names of {}",
            counted(self.families.len() as u64, "family", "families"),
            grouped(self.shapes.len() as u64),
            counted((entries().len() + TOLD.len()) as u64, "shape", "shapes"),
            counted(self.ways.len() as u64, "way", "ways"),
            counted(self.letters.len() as u64, "kind", "kinds"),
        )?;
        writeln!(
            f,
            "{}, {}, {} of a shape alone and an effect",
            counted(
                self.commands.len() as u64,
                "distinct command",
                "distinct commands"
            ),
            counted(
                self.effects.len() as u64,
                "distinct effect",
                "distinct effects"
            ),
            counted(self.pairs.len() as u64, "distinct pair", "distinct pairs"),
        )?;
        let never = self.never();
        for what in never.iter().take(NAMED_MAX) {
            writeln!(f, "never dealt: {what}")?;
        }
        match never.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => writeln!(f, "never dealt: {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_at;
    use super::*;

    #[test]
    fn what_was_never_dealt_is_named_and_in_many_jobs_that_is_nothing() {
        let mut dealt = Dealt::default();
        assert!(dealt.to_string().contains("never dealt: `"));
        for index in 0..20_000 {
            dealt.add(&job_at(3, index).unwrap());
        }
        assert_eq!(dealt.never(), Vec::<String>::new());
        assert!(dealt.commands.len() > 19_000, "{}", dealt.commands.len());
        assert!(dealt.pairs.len() > 5_000, "{}", dealt.pairs.len());
    }
}
