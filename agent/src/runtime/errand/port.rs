//! What a session asks for that has a job run, and what it is told.

use hermitcrab_core::label::Label;
use jiff::Zoned;
use serde_json::{Map, Value};

use super::Lent;

/// One job as its user's list has it.
pub type Job = Map<String, Value>;

/// Runs jobs for a session that may not run them itself.
pub trait JobPort {
    /// Runs one job of the list to its end, with what its caller lends to it.
    fn run(&mut self, job: &Job, now: &Zoned, lent: &Lent) -> JobRun;
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRun {
    /// What is kept of it, for people to read; `None`: it did not get that far.
    pub document: Option<String>,
    /// What it has to tell; empty where it failed.
    pub said: String,
    /// What is noted in the list of jobs.
    pub became: Became,
    /// Whether something was refused, be it that it went on without.
    pub was_refused: bool,
    /// What was refused to its model.
    pub refused: Refusals,
    /// What the run had seen by its end: no cleaner is what it reports.
    pub label: Option<Label>,
}

impl JobRun {
    /// A run that could not begin.
    #[must_use]
    pub fn failed(why: &str) -> Self {
        Self {
            became: Became {
                error: Some(why.to_owned()),
                undelivered: None,
            },
            ..Self::default()
        }
    }
}

/// What was refused to a model that nobody watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// A line for each.
    pub lines: Vec<String>,
    /// Whether a grant would have prevented one.
    pub lacks_grants: bool,
}

/// What became of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Became {
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Why nobody was told, if somebody was to be.
    pub undelivered: Option<String>,
}
