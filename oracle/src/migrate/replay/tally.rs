//! Adding up what became of the calls, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::asked::{Asked, Reasons};
use super::fate::{Class, Need, Outcome, Unreplayable};

/// Rows that are kept; what comes after them is only counted.
const ROWS_MAX: usize = 2_000;
/// Kinds of need that are told apart by file; after that, by directory.
const NEEDS_BY_FILE_MAX: usize = 500;
/// And by directory; the suggestion knows nothing of those after that.
const NEEDS_MAX: usize = 1_000;
/// Projects that are named of one need.
const PROJECTS_MAX: usize = 64;
/// Longest text of a call in a row.
const TEXT_CHARS_MAX: usize = 240;

/// Calls that are alike, and what became of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Row {
    /// What became of them.
    pub class: Class,
    /// The tool.
    pub tool: String,
    /// The call.
    pub call: String,
    /// Why.
    pub why: String,
    /// How many there are.
    pub count: u64,
}

/// What the whole replay adds up to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Replayed {
    /// Calls by class.
    pub classes: BTreeMap<Class, u64>,
    /// How many of those that differ do so in a way that is known and harmless.
    #[serde(default)]
    pub known: u64,
    /// Why calls were not replayed.
    pub not_replayed: BTreeMap<String, u64>,
    /// Why the agent would ask or refuse, the reason with the most calls first.
    pub asked: Vec<Asked>,
    /// Calls that were not drawn, where only a sample was replayed.
    pub not_drawn: u64,
    /// For a sample: between which shares of all calls each class lies.
    pub shares: BTreeMap<Class, Share>,
    /// The calls, alike ones together; those that are not the same first.
    pub rows: Vec<Row>,
    /// Calls that found no row.
    pub rows_left_out: u64,
}

/// Between which shares the true one lies, in 95 of 100 samples; in tenths of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Share {
    /// The lower end.
    pub from: u64,
    /// The upper end.
    pub to: u64,
}

impl Replayed {
    /// Why the agent would ask or refuse, with the calls of each reason.
    #[must_use]
    pub fn asks(&self) -> u64 {
        self.asked.iter().map(|one| one.calls).sum()
    }

    /// How many calls of a class there are.
    #[must_use]
    pub fn count(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    /// How many calls were not run for want of time, or since it was interrupted.
    #[must_use]
    pub fn unreached(&self) -> u64 {
        let spent = self.not_replayed.get(&Unreplayable::Budget.reason());
        spent.copied().unwrap_or_default()
    }

    /// How many of a class these are; they are in one alone.
    #[must_use]
    pub fn unreached_of(&self, class: Class) -> u64 {
        match class {
            Class::NotReplayed => self.unreached().min(self.count(class)),
            Class::Same | Class::Stricter | Class::Attenuated | Class::Changed | Class::Unsafe => 0,
        }
    }

    /// Calls that nobody came to: those that were not even read count like those that were.
    pub fn add_unreached(&mut self, calls: u64) {
        if calls > 0 {
            *self.classes.entry(Class::NotReplayed).or_default() += calls;
            let reason = Unreplayable::Budget.reason();
            *self.not_replayed.entry(reason).or_default() += calls;
        }
    }

    /// How many calls the replay says something about.
    #[must_use]
    pub fn judged(&self) -> u64 {
        self.classes
            .iter()
            .filter(|(class, _)| **class != Class::NotReplayed)
            .map(|(_, count)| count)
            .sum()
    }
}

/// What calls needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// By what one call needed, how many calls.
    pub calls: BTreeMap<Vec<Need>, u64>,
    /// In which projects a call needed it.
    pub projects: BTreeMap<Need, BTreeSet<String>>,
}

/// Adds outcomes up. Every text is cleaned before it is kept.
pub struct Tally<'t> {
    clean: &'t (dyn Fn(&str) -> String + Sync),
    rows: BTreeMap<(Class, String, String, String), u64>,
    rows_left_out: u64,
    classes: BTreeMap<Class, u64>,
    known: u64,
    not_replayed: BTreeMap<String, u64>,
    reasons: Reasons,
    wanted: Wanted,
    units: Units,
}

/// Sums over units, for the spread of a sample: the calls of a unit are run in one
/// world and are not independent of each other.
#[derive(Default)]
struct Units {
    count: f64,
    judged: f64,
    judged_squared: f64,
    /// For each class: how many, their squares, and times the judged of their unit.
    classes: BTreeMap<Class, (f64, f64, f64)>,
}

impl Units {
    fn add(&mut self, outcomes: &[Outcome]) {
        let mut counts: BTreeMap<Class, f64> = BTreeMap::new();
        for outcome in outcomes {
            *counts.entry(outcome.class).or_default() += 1.0;
        }
        counts.remove(&Class::NotReplayed);
        let judged: f64 = counts.values().sum();
        if judged == 0.0 {
            return;
        }
        self.count += 1.0;
        self.judged += judged;
        self.judged_squared += judged * judged;
        for (class, count) in counts {
            let sums = self.classes.entry(class).or_default();
            sums.0 += count;
            sums.1 += count * count;
            sums.2 += count * judged;
        }
    }

    /// The interval of a ratio estimated from clusters (95 %, normal); where none
    /// or all were seen, the rule of three over the clusters.
    fn share(&self, class: Class) -> Share {
        // One world says nothing about the others.
        if self.count < 2.0 {
            return Share { from: 0, to: 1000 };
        }
        let (sum, squares, mixed) = self.classes.get(&class).copied().unwrap_or_default();
        let ratio = sum / self.judged;
        let spread = squares - 2.0 * ratio * mixed + ratio * ratio * self.judged_squared;
        let factor = self.count / (self.count - 1.0);
        let error = 1.96 * (factor * spread.max(0.0)).sqrt() / self.judged;
        let rare = 3.0 / self.count;
        let from = if ratio >= 1.0 {
            1.0 - rare
        } else {
            ratio - error
        };
        let to = if ratio <= 0.0 { rare } else { ratio + error };
        // Between 0 and 1000, and rounded outwards.
        Share {
            from: (from.clamp(0.0, 1.0) * 1000.0).floor() as u64,
            to: (to.clamp(0.0, 1.0) * 1000.0).ceil() as u64,
        }
    }
}

/// What was added up, and what the calls needed.
pub type Added = (Replayed, Wanted);

impl<'t> Tally<'t> {
    /// Nothing added yet.
    pub fn new(clean: &'t (dyn Fn(&str) -> String + Sync)) -> Self {
        Self {
            clean,
            rows: BTreeMap::new(),
            rows_left_out: 0,
            classes: BTreeMap::new(),
            known: 0,
            not_replayed: BTreeMap::new(),
            reasons: Reasons::default(),
            wanted: Wanted::default(),
            units: Units::default(),
        }
    }

    /// Adds what was run in one go, and the project it was in.
    pub fn add_unit(&mut self, outcomes: &[Outcome], project: Option<&str>) {
        self.units.add(outcomes);
        let project = project.map(self.clean);
        for outcome in outcomes {
            self.add(outcome, project.as_deref());
        }
    }

    /// Adds one.
    fn add(&mut self, outcome: &Outcome, project: Option<&str>) {
        *self.classes.entry(outcome.class).or_default() += 1;
        self.known += u64::from(outcome.is_known);
        match outcome.class {
            Class::NotReplayed => {
                *self
                    .not_replayed
                    .entry((self.clean)(&outcome.why))
                    .or_default() += 1;
            }
            Class::Stricter => self.reasons.add(&outcome.cleaned(self.clean)),
            Class::Same | Class::Attenuated | Class::Changed | Class::Unsafe => {}
        }
        if !outcome.needs.is_empty() && outcome.class != Class::NotReplayed {
            let needs: Vec<Need> = outcome
                .needs
                .iter()
                .map(|need| Need {
                    verb: need.verb.clone(),
                    on: (self.clean)(&need.on),
                })
                .collect();
            self.need(needs, project);
        }
        let key = (
            outcome.class,
            outcome.tool.clone(),
            cut(&(self.clean)(&outcome.call)),
            cut(&(self.clean)(&outcome.why)),
        );
        if self.rows.len() < ROWS_MAX || self.rows.contains_key(&key) {
            *self.rows.entry(key).or_default() += 1;
        } else {
            self.rows_left_out += 1;
        }
    }

    fn need(&mut self, needs: Vec<Need>, project: Option<&str>) {
        let Wanted { calls, projects } = &mut self.wanted;
        let is_new = !calls.contains_key(&needs);
        let needs = if is_new && calls.len() >= NEEDS_BY_FILE_MAX {
            let folder = |need: Need| Need {
                on: need
                    .on
                    .rsplit_once('/')
                    .map_or(".", |(folder, _)| folder)
                    .to_owned(),
                ..need
            };
            let mut folders: Vec<Need> = needs.into_iter().map(folder).collect();
            folders.sort();
            folders.dedup();
            folders
        } else {
            needs
        };
        if calls.len() < NEEDS_MAX || calls.contains_key(&needs) {
            for need in &needs {
                let seen = projects.entry(need.clone()).or_default();
                if let Some(project) = project
                    && seen.len() < PROJECTS_MAX
                    && !seen.contains(project)
                {
                    seen.insert(project.to_owned());
                }
            }
            *calls.entry(needs).or_default() += 1;
        }
    }

    /// What it adds up to; with the spread, if so many calls were left out of a sample.
    #[must_use]
    pub fn finish(self, not_drawn: Option<u64>) -> Added {
        let judged = Class::ALL
            .into_iter()
            .filter(|class| *class != Class::NotReplayed);
        let shares = match not_drawn {
            Some(left_out) if left_out > 0 && self.units.count > 0.0 => judged
                .map(|class| (class, self.units.share(class)))
                .collect(),
            _ => BTreeMap::new(),
        };
        let mut rows: Vec<Row> = self
            .rows
            .into_iter()
            .map(|((class, tool, call, why), count)| Row {
                class,
                tool,
                call,
                why,
                count,
            })
            .collect();
        rows.sort_by_key(|row| (weight(row.class), std::cmp::Reverse(row.count)));
        let replayed = Replayed {
            classes: self.classes,
            known: self.known,
            not_replayed: self.not_replayed,
            asked: self.reasons.finish(),
            not_drawn: not_drawn.unwrap_or_default(),
            shares,
            rows,
            rows_left_out: self.rows_left_out,
        };
        (replayed, self.wanted)
    }
}

/// What matters most stands first.
fn weight(class: Class) -> u8 {
    match class {
        Class::Unsafe => 0,
        Class::Changed => 1,
        Class::Stricter => 2,
        Class::Attenuated => 3,
        Class::NotReplayed => 4,
        Class::Same => 5,
    }
}

fn cut(text: &str) -> String {
    let line = text.replace('\n', "\u{23ce}");
    if line.chars().count() <= TEXT_CHARS_MAX {
        return line;
    }
    let head: String = line.chars().take(TEXT_CHARS_MAX).collect();
    format!("{head} ...")
}

#[cfg(test)]
mod tests {
    use super::{Class, Outcome, Tally};

    fn unit(classes: &[Class]) -> Vec<Outcome> {
        let one = |class: &Class| Outcome {
            class: *class,
            tool: "terminal".into(),
            call: "x".into(),
            why: String::new(),
            needs: Vec::new(),
            missing: Vec::new(),
            code: String::new(),
            is_known: false,
        };
        classes.iter().map(one).collect()
    }

    #[test]
    fn a_sample_states_how_far_its_shares_may_be_off() {
        let clean = |text: &str| text.to_owned();
        let mut tally = Tally::new(&clean);
        for place in 0..1_000 {
            let second = if place % 10 == 0 {
                Class::Changed
            } else {
                Class::Same
            };
            tally.add_unit(&unit(&[Class::Same, second, Class::NotReplayed]), None);
        }
        let (replayed, _) = tally.finish(Some(98_000));
        let share = |class| replayed.shares[&class];
        // One call in twenty differs: 5 %, and its error over 1,000 worlds is 0.93 %.
        assert!(
            (400..=415).contains(&(share(Class::Changed).from * 10)),
            "{replayed:?}"
        );
        assert!(
            (59..=60).contains(&share(Class::Changed).to),
            "{replayed:?}"
        );
        assert_eq!((share(Class::Unsafe).from, share(Class::Unsafe).to), (0, 3));
        assert_eq!(replayed.not_drawn, 98_000);
        let mut whole = Tally::new(&clean);
        whole.add_unit(&unit(&[Class::Same]), None);
        assert!(whole.finish(None).0.shares.is_empty());
    }
}
