//! Adding up what became of the calls, in bounded memory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fate::{Class, Need, Outcome};

/// Rows that are kept; what comes after them is only counted.
const ROWS_MAX: usize = 2_000;
/// Kinds of need that are told apart by file; after that, by directory.
const NEEDS_BY_FILE_MAX: usize = 500;
/// And by directory; the suggestion knows nothing of those after that.
const NEEDS_MAX: usize = 1_000;
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
    /// Why calls were not replayed.
    pub not_replayed: BTreeMap<String, u64>,
    /// Why the agent would ask or refuse: the missing capability, or a code.
    pub reasons: BTreeMap<String, u64>,
    /// The calls, alike ones together; those that are not the same first.
    pub rows: Vec<Row>,
    /// Calls that found no row.
    pub rows_left_out: u64,
}

impl Replayed {
    /// How many calls of a class there are.
    #[must_use]
    pub fn count(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or_default()
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

/// Adds outcomes up. Every text is cleaned before it is kept.
pub struct Tally<'t> {
    clean: &'t (dyn Fn(&str) -> String + Sync),
    rows: BTreeMap<(Class, String, String, String), u64>,
    rows_left_out: u64,
    classes: BTreeMap<Class, u64>,
    not_replayed: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
    needs: BTreeMap<Vec<Need>, u64>,
}

impl<'t> Tally<'t> {
    /// Nothing added yet.
    pub fn new(clean: &'t (dyn Fn(&str) -> String + Sync)) -> Self {
        Self {
            clean,
            rows: BTreeMap::new(),
            rows_left_out: 0,
            classes: BTreeMap::new(),
            not_replayed: BTreeMap::new(),
            reasons: BTreeMap::new(),
            needs: BTreeMap::new(),
        }
    }

    /// Adds one.
    pub fn add(&mut self, outcome: &Outcome) {
        *self.classes.entry(outcome.class).or_default() += 1;
        match outcome.class {
            Class::NotReplayed => {
                *self
                    .not_replayed
                    .entry((self.clean)(&outcome.why))
                    .or_default() += 1;
            }
            Class::Stricter => {
                let reason = reason(outcome);
                *self.reasons.entry((self.clean)(&reason)).or_default() += 1;
            }
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
            self.need(needs);
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

    fn need(&mut self, needs: Vec<Need>) {
        let is_new = !self.needs.contains_key(&needs);
        let needs = if is_new && self.needs.len() >= NEEDS_BY_FILE_MAX {
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
        if self.needs.len() < NEEDS_MAX || self.needs.contains_key(&needs) {
            *self.needs.entry(needs).or_default() += 1;
        }
    }

    /// What it adds up to.
    #[must_use]
    pub fn finish(self) -> (Replayed, BTreeMap<Vec<Need>, u64>) {
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
            not_replayed: self.not_replayed,
            reasons: self.reasons,
            rows,
            rows_left_out: self.rows_left_out,
        };
        (replayed, self.needs)
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

/// What is missing, by verb and directory, or the agent's code.
fn reason(outcome: &Outcome) -> String {
    let missing = &outcome.missing;
    if missing.is_empty() {
        return if outcome.code.is_empty() {
            "the agent asks about it in any case".to_owned()
        } else {
            format!("the agent's reason `{}`", outcome.code)
        };
    }
    let mut all: Vec<String> = missing
        .iter()
        .map(|need| {
            let folder = need.on.rsplit_once('/').map_or(".", |(folder, _)| folder);
            let folder = if folder.is_empty() { "/" } else { folder };
            format!("{} in {folder}", need.verb)
        })
        .collect();
    all.sort();
    all.dedup();
    all.join(", ")
}

fn cut(text: &str) -> String {
    let line = text.replace('\n', "\u{23ce}");
    if line.chars().count() <= TEXT_CHARS_MAX {
        return line;
    }
    let head: String = line.chars().take(TEXT_CHARS_MAX).collect();
    format!("{head} ...")
}
