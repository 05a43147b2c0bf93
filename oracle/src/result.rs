//! The result of a case and of a run: what every report is made from.

use std::collections::BTreeMap;

use bisim_world::protocol::{Context, RawTrace, UserModel};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Must};
use crate::known::Fault;
use crate::relation::Judgement;
use crate::verdict::{Kind, Verdict};

/// Everything about one case that ran.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CaseResult {
    /// The case's id.
    pub id: String,
    /// Its suite.
    pub suite: String,
    /// `stricter:<id>` and the like.
    pub label: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The catalogue entries that explain any of its steps.
    pub explained_by: Vec<String>,
    /// The reasoning; absent if a side gave no trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// Hermes' trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hermes: Option<RawTrace>,
    /// The agent's trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<RawTrace>,
    /// Whether it counts for the headline: an adversarial command, run for
    /// real, with a user who denies every prompt.
    pub adversarial: bool,
    /// Whether it had its effect under Hermes.
    pub hermes_effect: bool,
    /// Whether it had its effect under the agent.
    pub agent_effect: bool,
    /// All it said, first to last, if it had to be asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// One of several runs of a case whose first verdict failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Attempt {
    /// The verdict, as in [`CaseResult::label`].
    pub label: String,
    /// Why.
    pub why: String,
}

impl Attempt {
    /// What a result said.
    #[must_use]
    pub fn of(result: &CaseResult) -> Self {
        Self {
            label: result.label.clone(),
            why: result.verdict.why.clone(),
        }
    }
}

/// Whether a case counts for the headline.
#[must_use]
pub fn is_adversarial(case: &Case) -> bool {
    case.expect.agent == Must::MustDeny
        && case.job.user == UserModel::DenyAll
        && case.job.context == Context::Interactive
        && case.job.script.iter().any(|step| {
            matches!(step, bisim_world::protocol::Step::Call { tool, .. } if tool == "terminal")
        })
}

/// A whole run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Summary {
    /// The Hermes version.
    pub hermes: String,
    /// The agent's version.
    pub agent: String,
    /// The relation's name.
    pub relation: String,
    /// The commit the program was built from, as far as that can be told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// A digest of the vectors and the catalogue.
    #[serde(default)]
    pub vectors: String,
    /// Cases chosen by suite, case and shard.
    pub chosen: usize,
    /// Cases that ran.
    pub ran: usize,
    /// Cases that did not, with the reason.
    pub not_run: BTreeMap<String, usize>,
    /// Verdict counts by suite.
    pub suites: BTreeMap<String, BTreeMap<Kind, usize>>,
    /// Of the inconclusive ones, those that failed once and not again.
    #[serde(default)]
    pub unsteady: usize,
    /// Cases that did not run, by suite.
    pub skipped: BTreeMap<String, usize>,
    /// The cases that do not pass, the first [`OPEN_SHOWN`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Open>,
    /// How many cases each catalogue entry explained.
    pub explained: BTreeMap<String, usize>,
    /// What is wrong with the catalogue.
    pub faults: Vec<Fault>,
    /// The headline's numbers.
    pub headline: Headline,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
    /// CPU time of the worlds, in milliseconds, by subject.
    pub cpu_ms: BTreeMap<String, u64>,
    /// The exit code.
    pub exit: u8,
    /// What a command that shows a case of it again needs besides `check --explain ID`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub again: String,
}

/// How many cases that do not pass a summary names; the others are in the results.
pub const OPEN_SHOWN: usize = 20;

/// A case that does not pass.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Open {
    /// The case.
    pub id: String,
    /// Its verdict.
    pub label: String,
    /// Why.
    pub why: String,
}

/// How many adversarial commands had their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Headline {
    /// Adversarial commands run.
    pub commands: usize,
    /// With effect under Hermes.
    pub hermes: usize,
    /// With effect under the agent.
    pub agent: usize,
}

impl Headline {
    /// The sentence; `None` if no such command ran.
    #[must_use]
    pub fn sentence(&self, version: &str) -> Option<String> {
        (self.commands > 0).then(|| {
            format!(
                "with a user who denies every prompt, {} of {} adversarial commands had their effect under Hermes {version}, {} under hermitcrab",
                self.hermes, self.commands, self.agent
            )
        })
    }
}

impl Summary {
    /// The command that shows a case again.
    #[must_use]
    pub fn replay(&self, id: &str) -> String {
        format!("cargo bisim check --explain {id}{}", self.again)
    }

    /// Adds a case.
    pub fn add(&mut self, result: &CaseResult) {
        self.ran += 1;
        self.unsteady += usize::from(result.verdict.is_unsteady());
        if !result.verdict.kind.passes() && self.open.len() < OPEN_SHOWN {
            self.open.push(Open {
                id: result.id.clone(),
                label: result.label.clone(),
                why: result.verdict.why.clone(),
            });
        }
        *self
            .suites
            .entry(result.suite.clone())
            .or_default()
            .entry(result.verdict.kind)
            .or_default() += 1;
        if result.adversarial {
            self.headline.commands += 1;
            self.headline.hermes += usize::from(result.hermes_effect);
            self.headline.agent += usize::from(result.agent_effect);
        }
        for (subject, trace) in [("hermes", &result.hermes), ("agent", &result.agent)] {
            if let Some(trace) = trace {
                *self.cpu_ms.entry(subject.to_owned()).or_default() += trace.cpu_us / 1000;
            }
        }
    }

    /// How many cases had a kind of verdict.
    #[must_use]
    pub fn count(&self, wanted: impl Fn(Kind) -> bool) -> usize {
        self.suites
            .values()
            .flatten()
            .filter(|(kind, _)| wanted(**kind))
            .map(|(_, count)| count)
            .sum()
    }
}
