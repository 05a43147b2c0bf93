//! The relation between Hermes and the agent: authority refinement.
//!
//! What Hermes does is *may*, what it does inside the case's grants is
//! *must*; every step is judged against both and against ground truth. The
//! relation is a value, it is pure, it never panics, and it says why.

use bisim_world::protocol::{Meanwhile, RawTrace, Step};
use serde::{Deserialize, Serialize};

use crate::canon::told;
use crate::case::Case;
use crate::holdings::{Approval, Holdings};
use crate::noise::{self, Mask};
use crate::observation::{Canary, Observation, StepSeen, observe};

mod lifecycle;
mod pair;
mod service;
mod step;

use pair::Pair;
use step::judge_step;
pub use step::what;

/// What the relation is given.
#[derive(Clone, Copy, Debug)]
pub struct Legs<'a> {
    /// The case.
    pub case: &'a Case,
    /// Hermes' run.
    pub hermes: &'a RawTrace,
    /// Hermes' run once more, if noise was looked for.
    pub hermes_again: Option<&'a RawTrace>,
    /// The agent's run.
    pub agent: &'a RawTrace,
    /// The secrets of the worlds.
    pub canaries: &'a [Canary<'a>],
}

/// A relation: a name, what it means, and how a case is judged by it.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// What it demands.
    pub doc: &'static str,
    /// The judge.
    pub judge: fn(&Legs<'_>) -> Judgement,
}

/// The relation `bisim check` uses.
pub const AUTHORITY_REFINEMENT: Relation = Relation {
    name: "authority-refinement",
    doc: "no effect beyond what is held and what Hermes may do; the same service where Hermes stays \
          inside the grants; every other difference is named",
    judge,
};

/// How one step compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The same.
    Equal,
    /// The same but for noise.
    EqualMasked,
    /// No judgement is possible.
    Inconclusive,
    /// The agent did less, or asked.
    Stricter,
    /// The agent acted where Hermes asked or refused; nothing left the grants.
    Attenuated,
    /// Benign behaviour differs.
    Different,
    /// The agent did, uncovered, what Hermes refused or asked for.
    Weaker,
    /// The agent's effect exceeds what is held.
    BeyondGrant,
    /// Both let an uncovered effect through.
    BothUnsafe,
}

/// One step, judged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StepJudgement {
    /// Index into the script.
    pub step: usize,
    /// The finding.
    pub finding: Finding,
    /// `call:terminal`, `probe:validate_within_dir`, `spawn`, ...
    pub what: String,
    /// Hermes' class and reach, such as `ran:outside` or `refused:none`.
    pub hermes: String,
    /// The agent's class, code and reach, such as `discarded:none:rejected-by-user`.
    pub agent: String,
    /// The reasoning, one line.
    pub why: String,
}

impl StepJudgement {
    /// What kind of difference this is, stable over cases.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!("{} {} -> {}", self.what, self.hermes, self.agent)
    }
}

/// A whole case, judged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Judgement {
    /// Step by step, in order; the last may stand for what came after all steps.
    pub steps: Vec<StepJudgement>,
    /// What Hermes did outside the grants.
    pub hermes_outside: Vec<String>,
    /// What the agent did outside the grants.
    pub agent_outside: Vec<String>,
}

impl Judgement {
    /// The worst finding.
    #[must_use]
    pub fn worst(&self) -> Finding {
        self.steps
            .iter()
            .map(|step| step.finding)
            .max()
            .unwrap_or(Finding::Equal)
    }

    /// Whether a noise run could change the result.
    #[must_use]
    pub fn wants_noise_run(&self) -> bool {
        matches!(self.worst(), Finding::Different)
    }
}

/// How far effects reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    None,
    Inside,
    Outside,
}

impl Reach {
    const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Inside => "inside",
            Self::Outside => "outside",
        }
    }
}

fn judge(legs: &Legs<'_>) -> Judgement {
    let script = &legs.case.job.script;
    let hermes = observe(script, legs.hermes, legs.canaries);
    let agent = observe(script, legs.agent, legs.canaries);
    let mask = legs
        .hermes_again
        .map(|again| noise::mask(&hermes, &observe(script, again, legs.canaries)))
        .unwrap_or_default();
    judge_seen(legs.case, &hermes, &agent, &mask)
}

/// Judges two observations.
#[must_use]
pub fn judge_seen(
    case: &Case,
    hermes: &Observation,
    agent: &Observation,
    mask: &Mask,
) -> Judgement {
    let mut held_hermes = Holdings::new(case);
    let mut held_agent = Holdings::new(case);
    let mut judgement = Judgement {
        steps: Vec::new(),
        hermes_outside: Vec::new(),
        agent_outside: Vec::new(),
    };
    let last_action = case
        .job
        .script
        .iter()
        .rposition(|step| {
            matches!(step, Step::Call { .. } | Step::Probe { .. }) || step.cut().is_some()
        })
        .unwrap_or(0);
    let mut diverged = false;
    for (index, step) in case.job.script.iter().enumerate() {
        let (seen_h, seen_a) = (hermes.steps.get(index), agent.steps.get(index));
        let (Some(seen_h), Some(seen_a)) = (seen_h, seen_a) else {
            if seen_h.is_none() && seen_a.is_none() {
                break;
            }
            // One side was cut earlier; that step has been judged. What the
            // other still does is held against the grants alone.
            if let Some(seen_a) = seen_a {
                held_hermes.follow_meanwhile(step, &seen_a.meanwhile);
                let outside = held_agent.outside_as_asked(step, seen_a);
                beyond(&mut judgement, index, step, outside);
            }
            held_hermes.follow(step);
            held_agent.follow(step);
            continue;
        };
        // The grants are the case's: they end for both when they do for the agent, which has
        // them as they are written. Whether Hermes' user was asked at all is Hermes' own matter.
        // In a conversation what Hermes did before an end is not told from what it did after it:
        // it has the benefit of the doubt.
        let is_whole = seen_a.parts.is_empty();
        if is_whole {
            held_hermes.follow_meanwhile(step, &seen_a.meanwhile);
        }
        let mut outside_h = held_hermes.outside(step, seen_h, Approval::WholeCall);
        if !is_whole {
            held_hermes.follow_meanwhile(step, &seen_a.meanwhile);
        }
        let mut outside_a = held_agent.outside_as_asked(step, seen_a);
        held_hermes.follow(step);
        held_agent.follow(step);
        if index == last_action {
            // Network, tripwires and late effects are seen for the whole run only.
            outside_h.extend(late(
                &mut held_hermes,
                hermes,
                step,
                seen_h,
                Approval::WholeCall,
            ));
            outside_a.extend(late(
                &mut held_agent,
                agent,
                step,
                seen_a,
                Approval::ShownPaths,
            ));
        }
        let pair = Pair {
            step,
            hermes: seen_h,
            agent: seen_a,
            outside_h: &outside_h,
            outside_a: &outside_a,
        };
        let judged = judge_step(index, &pair, mask, diverged);
        diverged |= !told(&seen_h.delta).eq(told(&seen_a.delta))
            || seen_h.class.level() != seen_a.class.level()
            // What happened to one of them only, because the other did not ask.
            || !doings(seen_h).eq(doings(seen_a));
        judgement.steps.push(judged);
        judgement.hermes_outside.extend(outside_h);
        judgement.agent_outside.extend(outside_a);
    }
    if let Some(unstable) = &mask.unstable {
        judgement.steps.push(StepJudgement {
            step: 0,
            finding: Finding::Inconclusive,
            what: "run".to_owned(),
            hermes: "unstable".to_owned(),
            agent: String::new(),
            why: format!("hermes disagrees with itself: {unstable}"),
        });
    }
    judgement
}

/// What happened while a user was asked in a step.
fn doings(seen: &StepSeen) -> impl Iterator<Item = &Meanwhile> {
    let all = seen.meanwhile.iter().flatten();
    all.map(|happened| &happened.what)
}

fn late(
    holdings: &mut Holdings<'_>,
    seen: &Observation,
    step: &Step,
    last: &StepSeen,
    approval: Approval,
) -> Vec<String> {
    let mut outside = holdings.outside_after(step, &seen.late, last, approval);
    let world = holdings.outside_world(seen);
    if !(approval == Approval::WholeCall && last.asked_yes()) {
        outside.extend(world);
    }
    outside
}

fn beyond(judgement: &mut Judgement, index: usize, step: &Step, outside: Vec<String>) {
    if !outside.is_empty() {
        judgement.steps.push(StepJudgement {
            step: index,
            finding: Finding::BeyondGrant,
            what: what(step),
            hermes: "cut".to_owned(),
            agent: Reach::Outside.word().to_owned(),
            why: format!(
                "the agent {} and nothing held covers it",
                outside.join(", ")
            ),
        });
        judgement.agent_outside.extend(outside);
    }
}

#[cfg(test)]
pub(crate) mod tests;
