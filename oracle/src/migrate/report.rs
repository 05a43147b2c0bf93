//! The answer: can I switch, what will be different, what do I have to decide?

mod markdown;
mod page;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::history::Counts;
use super::home::{Job, Skill};
use super::note::Note;
use super::opinion::Opinion;
use super::parallel::{Effort, Measured};
use super::redact::Redactor;
use super::replay::{self, Class, Replayed};
use super::suggest::Suggestion;
use super::translate::Proposal;
use crate::figures::{calls, grouped, percent, tenths};

pub use markdown::render as markdown;
pub use page::render as page;

/// The form of `migration.json`.
pub const SCHEMA: u32 = 2;

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
    /// Whether that is another one than the user's usual home of Hermes, which is the one that
    /// the agent shares.
    pub is_elsewhere: bool,
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
    /// The grants that cover most of what was asked about, tried out.
    pub proved: Option<Measured>,
    /// How many calls were really run.
    pub effort: Effort,
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
    /// The same with the places of worlds as the user knows them, and can grant them.
    #[must_use]
    pub fn placed(mut self) -> Self {
        let told = |text: &mut String| *text = replay::told(text);
        if let Some(replayed) = &mut self.replayed {
            for row in &mut replayed.rows {
                told(&mut row.call);
                told(&mut row.why);
            }
            for one in &mut replayed.asked {
                told(&mut one.reason);
                told(&mut one.why);
                one.grants.iter_mut().for_each(|need| told(&mut need.on));
            }
        }
        let proved = self.proved.iter_mut().flat_map(|one| &mut one.grants);
        proved.for_each(|need| told(&mut need.on));
        let differs = self.opinions.iter_mut().flat_map(|one| &mut one.rows);
        differs.for_each(|row| {
            told(&mut row.call);
            told(&mut row.with_it);
            told(&mut row.otherwise);
        });
        let outside = std::mem::take(&mut self.suggestion.outside);
        for (mut place, calls) in outside {
            told(&mut place);
            *self.suggestion.outside.entry(place).or_default() += calls;
        }
        self
    }

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

    /// What opens skills, notes and jobs, which both have in the same place.
    #[must_use]
    pub fn opened(&self) -> Option<String> {
        if self.skills.is_empty() && self.jobs.is_empty() {
            return None;
        }
        let mut opened = if self.is_elsewhere {
            "a model is shown skills, notes and jobs that lie in `~/.hermes`, and this home is another one: copy its `memories`, `skills` and `cron` there, then `hermitcrab config add-directory ~/.hermes/memories ~/.hermes/skills ~/.hermes/cron`".to_owned()
        } else {
            "a model is shown skills, notes and jobs once their directories are opened: `mkdir -p ~/.hermes/memories ~/.hermes/skills ~/.hermes/cron`, of which some may be there, and `hermitcrab config add-directory ~/.hermes/memories ~/.hermes/skills ~/.hermes/cron`".to_owned()
        };
        if !self.jobs.is_empty() {
            opened.push_str("; jobs that are due run when a timer of yours calls `hermitcrab cron tick`, and Hermes, where it goes on, runs the same ones");
        }
        Some(opened)
    }

    /// The summary, from the figures.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.counts.calls == 0 {
            let none = match self.counts.broken {
                0 => "no recorded call was found in this home",
                _ => "no recorded call of this home can be read",
            };
            return format!("{none}, so only what Hermes was told is translated");
        }
        let recorded = grouped(self.counts.calls);
        let Some(replayed) = &self.replayed else {
            return format!(
                "of {recorded} recorded calls none was replayed: {}",
                self.not_replayed_because
            );
        };
        let judged = replayed.judged();
        let unreached = replayed.unreached();
        let not = replayed.count(Class::NotReplayed).saturating_sub(unreached);
        if judged == 0 {
            return match unreached {
                0 => format!("of {recorded} recorded calls none could be replayed"),
                more => format!(
                    "of {recorded} recorded calls none was replayed: {} not reached",
                    grouped(more)
                ),
            };
        }
        let share = |class| self.share(replayed, class);
        let were = if replayed.not_drawn > 0 {
            "were drawn at random and replayed"
        } else {
            "could be replayed"
        };
        let mut sentence = format!(
            "of {recorded} recorded calls {} {were}: {} behave the same, {} would ask{}, {} run where Hermes asks or refuses, {} differ{}, {} not replayable",
            grouped(judged),
            share(Class::Same),
            share(Class::Stricter),
            self.reasons(replayed),
            share(Class::Attenuated),
            share(Class::Changed),
            match replayed.known {
                0 => String::new(),
                known if known == replayed.count(Class::Changed) => {
                    " (in a way that is known and harmless)".to_owned()
                }
                known => format!(
                    " ({} of them in a way that is known and harmless)",
                    grouped(known)
                ),
            },
            grouped(not),
        );
        for (calls, what) in [
            (replayed.not_drawn, "not drawn"),
            (unreached, "not reached"),
        ] {
            if calls > 0 {
                sentence.push_str(&format!(", {} {what}", grouped(calls)));
            }
        }
        let unsafe_calls = replayed.count(Class::Unsafe);
        if unsafe_calls > 0 {
            sentence.push_str(&format!(
                "; {} did under the agent what nothing covers, which is a defect",
                grouped(unsafe_calls)
            ));
        }
        sentence
    }

    /// Under what the shares were seen, and how it would be without, in a sentence; nothing where
    /// nothing was replayed.
    #[must_use]
    pub fn supposed(&self) -> Option<String> {
        let replayed = self.replayed.as_ref().filter(|all| all.judged() > 0)?;
        let mut said = "so it is with every grant proposed in `hermitcrab.toml` given and a user who says no to the rest".to_owned();
        let bare = self.suggestion.curve.first().copied().unwrap_or_default();
        if bare > replayed.count(Class::Stricter) {
            said.push_str(&format!(
                "; with none of them {} that changed something would ask",
                calls(bare)
            ));
        }
        Some(said)
    }

    /// The share of a class; of a sample, between which shares the true one lies.
    #[must_use]
    pub fn share(&self, replayed: &Replayed, class: Class) -> String {
        let share = percent(replayed.count(class), replayed.judged());
        match replayed.shares.get(&class) {
            None => share,
            Some(between) => format!(
                "{share} ({} to {})",
                tenths(between.from),
                tenths(between.to)
            ),
        }
    }

    /// How the figures came about, in sentences.
    #[must_use]
    pub fn how(&self, replayed: &Replayed) -> Vec<String> {
        let mut said: Vec<String> = self
            .supposed()
            .map(|supposed| format!("{}.", capitalised(&supposed)))
            .into_iter()
            .collect();
        if replayed.not_drawn > 0 {
            said.push(format!(
                "A sample: {} more were not drawn. In brackets: where the share of all calls lies in 95 of 100 samples (calls that ran in one world are not counted as independent).",
                calls(replayed.not_drawn)
            ));
        }
        let Effort { run, alike, before } = self.effort;
        if alike > 0 || before > 0 {
            said.push(format!(
                "{} run; {} alike to one of these in tool, arguments, result and files, and counted with it; {} replayed by an earlier run.",
                were(run),
                were(alike),
                were(before)
            ));
        }
        said
    }

    /// How many reasons there are to ask, and how many grants do away with how much.
    fn reasons(&self, replayed: &Replayed) -> String {
        let count = replayed.asked.len();
        if count == 0 {
            return String::new();
        }
        let mut said = match count {
            1 => "1 reason".to_owned(),
            count => format!("{} distinct reasons", grouped(count as u64)),
        };
        match &self.proved {
            None => said.push_str("; which grants help was not tried"),
            Some(proved) if proved.grants.is_empty() => {
                said.push_str("; no grant was seen to help")
            }
            Some(proved) => {
                let grants = match proved.grants.len() {
                    1 => "1 grant lets".to_owned(),
                    grants => format!("{grants} grants let"),
                };
                said.push_str(&format!(
                    "; {grants} {} of these calls through, seen by replaying them",
                    percent(proved.ran, proved.asked)
                ));
            }
        }
        format!(" ({said})")
    }
}

impl Measured {
    /// What was seen under the grants.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.grants.is_empty() {
            return "No grant was seen to let one of them through.".to_owned();
        }
        let mut said = format!(
            "{} of the {} that would be asked about {} (of which {} replayed under just these: {} ran, {} did not, {} not tried):",
            percent(self.covered, self.asked),
            calls(self.asked),
            match self.grants.len() {
                1 => "are covered by one grant".to_owned(),
                count => format!("are covered by these {count} grants"),
            },
            were(self.ran + self.still),
            grouped(self.ran),
            grouped(self.still),
            grouped(self.not_tried)
        );
        if self.unsafe_calls > 0 {
            said.insert_str(
                0,
                &format!(
                    "{} did under the grants what these do not cover, which is a defect. ",
                    calls(self.unsafe_calls)
                ),
            );
        }
        said
    }
}

/// A sentence, as it begins one.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

fn were(count: u64) -> String {
    match count {
        1 => "1 call was".to_owned(),
        count => format!("{} calls were", grouped(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, Report, Skill};
    use crate::figures::{grouped, percent};
    use crate::migrate::{
        history::Counts,
        replay::{Asked, Class, Need, Replayed},
    };

    #[test]
    fn the_summary_comes_in_a_sentence() {
        let grant = Need {
            verb: "fs.delete".to_owned(),
            on: "./build".to_owned(),
        };
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
                asked: vec![Asked::default(); 3],
                ..Replayed::default()
            }),
            proved: Some(Measured {
                grants: vec![grant.clone(), grant],
                asked: 290,
                covered: 280,
                ran: 279,
                still: 1,
                ..Measured::default()
            }),
            ..Report::default()
        };
        let mut known = report.clone();
        if let Some(replayed) = &mut known.replayed {
            replayed.known = 12;
        }
        let said = known.sentence();
        assert!(
            said.contains("0.3 % differ (12 of them in a way that is known and harmless), "),
            "{said}"
        );
        assert_eq!(
            report.sentence(),
            "of 12,431 recorded calls 10,000 could be replayed: 96.8 % behave the same, 2.9 % would ask (3 distinct reasons; 2 grants let 96.2 % of these calls through, seen by replaying them), 0.0 % run where Hermes asks or refuses, 0.3 % differ, 2,431 not replayable"
        );
    }

    #[test]
    fn a_home_without_a_call_is_told_so_whatever_was_wanted() {
        let mut report = Report {
            not_replayed_because: "`--no-replay` was given".to_owned(),
            ..Report::default()
        };
        let none =
            "no recorded call was found in this home, so only what Hermes was told is translated";
        assert_eq!(report.sentence(), none);
        report.replayed = Some(Replayed::default());
        assert_eq!(report.sentence(), none);
        report.counts.broken = 3;
        assert!(
            report
                .sentence()
                .starts_with("no recorded call of this home can be read, ")
        );
    }

    #[test]
    fn what_nobody_came_to_is_not_called_unreplayable() {
        let mut replayed = Replayed {
            classes: [(Class::Same, 10), (Class::NotReplayed, 5)].into(),
            not_replayed: [("why".to_owned(), 5)].into(),
            ..Replayed::default()
        };
        replayed.add_unreached(85);
        let mut report = Report {
            counts: Counts {
                calls: 100,
                ..Counts::default()
            },
            replayed: Some(replayed.clone()),
            ..Report::default()
        };
        let said = report.sentence();
        assert!(
            said.ends_with("0.0 % differ, 5 not replayable, 85 not reached"),
            "{said}"
        );
        let page = crate::migrate::report::markdown(&report);
        for row in [
            "| not replayable | 5 |",
            "| not reached: the same command again goes on | 85 |",
        ] {
            assert!(page.contains(row), "{row}: {page}");
        }
        assert!(crate::migrate::report::page(&report).contains("<li>85 not reached</li>"));
        replayed.not_drawn = 85;
        replayed.not_replayed.clear();
        replayed.classes.insert(Class::NotReplayed, 5);
        report.replayed = Some(replayed);
        let said = report.sentence();
        assert!(said.ends_with(", 5 not replayable, 85 not drawn"), "{said}");
    }

    #[test]
    fn what_opens_a_directory_works_where_it_is_not_there_yet() {
        let report = Report {
            skills: vec![Skill {
                name: "weekly".to_owned(),
                description: String::new(),
            }],
            ..Report::default()
        };
        let opened = report.opened().unwrap();
        let of = |command: &str| {
            let (_, after) = opened.split_once(command).unwrap();
            after.split('`').next().unwrap().to_owned()
        };
        assert_eq!(of("`mkdir -p "), of("`hermitcrab config add-directory "));
        // What lies in another home than the one both share is not seen where it is.
        let opened = Report {
            is_elsewhere: true,
            ..report
        }
        .opened()
        .unwrap();
        assert!(
            opened.contains("this home is another one: copy"),
            "{opened}"
        );
    }

    #[test]
    fn under_what_the_shares_were_seen_is_said() {
        let mut report = Report {
            replayed: Some(Replayed {
                classes: [(Class::Same, 10), (Class::Stricter, 2)].into(),
                ..Replayed::default()
            }),
            ..Report::default()
        };
        let given = "so it is with every grant proposed in `hermitcrab.toml` given and a user who says no to the rest";
        assert_eq!(report.supposed().as_deref(), Some(given));
        report.suggestion.curve = vec![7, 2];
        let bare = format!("{given}; with none of them 7 calls that changed something would ask");
        assert_eq!(report.supposed(), Some(bare));
        report.replayed = None;
        assert_eq!(report.supposed(), None);
    }

    #[test]
    fn shares_and_numbers() {
        assert_eq!(percent(1, 100_000), "0.1 %");
        assert_eq!(percent(99_999, 100_000), "99.9 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(
            (percent(1, 13), percent(12, 13)),
            ("7.7 %".into(), "92.3 %".into())
        );
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
    }
}
