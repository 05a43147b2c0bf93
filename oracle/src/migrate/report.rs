//! The answer: can I switch, what will be different, what do I have to decide?

mod markdown;
mod page;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::history::Counts;
use super::home::{Job, Skill};
use super::note::Note;
use super::opinion::Opinion;
use super::redact::Redactor;
use super::replay::{Class, Replayed};
use super::suggest::Suggestion;
use super::translate::Proposal;

pub use markdown::render as markdown;
pub use page::render as page;

/// The form of `migration.json`.
pub const SCHEMA: u32 = 1;

/// Everything the outputs are made from.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `YYYY-MM-DD`.
    pub made: String,
    /// The release of Hermes the calls were replayed with.
    pub hermes: String,
    /// The home.
    pub home: String,
    /// The summary, in a sentence.
    pub summary: String,
    /// What was read.
    pub files: Vec<String>,
    /// The database's schema.
    pub database_schema: Option<i64>,
    /// Files of the home that are not as they were when they were copied.
    pub changed_meanwhile: Vec<String>,
    /// Remarks.
    pub notes: Vec<Note>,
    /// How much was recorded.
    pub counts: Counts,
    /// Calls by tool.
    pub tools: BTreeMap<String, u64>,
    /// Names in `.env`.
    pub env_names: Vec<String>,
    /// Skills.
    pub skills: Vec<Skill>,
    /// Scheduled jobs.
    pub jobs: Vec<Job>,
    /// What Hermes was told, translated.
    pub proposals: Vec<Proposal>,
    /// The replay; absent if there was none.
    pub replayed: Option<Replayed>,
    /// How many sessions' worlds started from what.
    pub started_from: BTreeMap<String, u64>,
    /// What other releases of Hermes make of the same calls.
    pub opinions: Vec<Opinion>,
    /// Why there was none.
    pub not_replayed_because: String,
    /// The least that covers the history.
    pub suggestion: Suggestion,
}

impl Report {
    /// The same without secrets.
    ///
    /// # Errors
    /// It cannot be written as JSON, and then nothing of it is.
    pub fn cleaned(&self, redactor: &Redactor) -> Result<Self, String> {
        let value = serde_json::to_value(self).map_err(|error| error.to_string())?;
        serde_json::from_value(redactor.clean_value(&value))
            .map_err(|error| format!("the report cannot be written without its secrets: {error}"))
    }

    /// Whether something is missing from it.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.notes.iter().any(|note| note.partial)
    }

    /// The summary, from the figures.
    #[must_use]
    pub fn sentence(&self) -> String {
        let recorded = grouped(self.counts.calls);
        let Some(replayed) = &self.replayed else {
            return format!(
                "of {recorded} recorded calls none was replayed: {}",
                self.not_replayed_because
            );
        };
        let judged = replayed.judged();
        let share = |class| percent(replayed.count(class), judged);
        let not = replayed.count(Class::NotReplayed);
        if judged == 0 {
            return format!("of {recorded} recorded calls none could be replayed");
        }
        let mut sentence = format!(
            "of {recorded} recorded calls {} could be replayed: {} behave the same, {} would ask{}, {} run where Hermes asks or refuses, {} differ, {} not replayable",
            grouped(judged),
            share(Class::Same),
            share(Class::Stricter),
            self.reasons(replayed),
            share(Class::Attenuated),
            share(Class::Changed),
            grouped(not),
        );
        let unsafe_calls = replayed.count(Class::Unsafe);
        if unsafe_calls > 0 {
            sentence.push_str(&format!(
                "; {} did under the agent what nothing covers, which is a defect",
                grouped(unsafe_calls)
            ));
        }
        sentence
    }

    fn reasons(&self, replayed: &Replayed) -> String {
        let count = replayed.reasons.len();
        if count == 0 {
            return String::new();
        }
        let reasons = match count {
            1 => "1 reason".to_owned(),
            count => format!("{count} distinct reasons"),
        };
        let total: u64 = replayed.reasons.values().sum();
        let mut counts: Vec<u64> = replayed.reasons.values().copied().collect();
        counts.sort_by_key(|count| std::cmp::Reverse(*count));
        let mut covered = 0;
        let enough = counts
            .iter()
            .position(|count| {
                covered += count;
                covered * 100 >= total * 95
            })
            .map_or(count, |place| place + 1);
        match (enough, count) {
            (_, 1) => format!(" ({reasons})"),
            (1, _) => format!(" ({reasons}, one of them makes 95 % of them)"),
            (enough, _) => format!(" ({reasons}, {enough} of them make 95 % of them)"),
        }
    }
}

/// A share in percent, with one place.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0.0 %".to_owned();
    }
    // Rounded towards the middle: what is not all is never 100, what is something never 0.
    let tenths = part.saturating_mul(1000) / whole;
    let tenths = match (part, tenths) {
        (0, _) => 0,
        (_, 0) => 1,
        (_, tenths) => tenths,
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Report, grouped, percent};
    use crate::migrate::history::Counts;
    use crate::migrate::replay::{Class, Replayed};

    #[test]
    fn the_summary_comes_in_a_sentence() {
        let report = Report {
            counts: Counts {
                calls: 12_431,
                ..Counts::default()
            },
            replayed: Some(Replayed {
                classes: [
                    (Class::Same, 9_680),
                    (Class::Stricter, 290),
                    (Class::Changed, 30),
                    (Class::NotReplayed, 2_431),
                ]
                .into(),
                reasons: [
                    ("a".to_owned(), 250),
                    ("b".to_owned(), 30),
                    ("c".to_owned(), 10),
                ]
                .into(),
                ..Replayed::default()
            }),
            ..Report::default()
        };
        assert_eq!(
            report.sentence(),
            "of 12,431 recorded calls 10,000 could be replayed: 96.8 % behave the same, 2.9 % would ask (3 distinct reasons, 2 of them make 95 % of them), 0.0 % run where Hermes asks or refuses, 0.3 % differ, 2,431 not replayable"
        );
    }

    #[test]
    fn shares_and_numbers() {
        assert_eq!(percent(1, 100_000), "0.1 %");
        assert_eq!(percent(99_999, 100_000), "99.9 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
    }
}
