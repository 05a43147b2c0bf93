//! One variant in front of the shell, Hermes and the agent.

use std::collections::{BTreeMap, BTreeSet};

use bisim_world::WorldError;
use bisim_world::protocol::{RawTrace, StepOutcome, StepTrace};
use hermitcrab_core::plan::ErrorKind;
use serde::{Deserialize, Serialize};

use super::bucket::Symptom;
use super::escape::{self, Escape};
use super::named;
use super::spare::spare;
use crate::case::{Case, Defaults};
use crate::check::{Judge, run_case};
use crate::generate::{Effect, SEEDS, Specimen, Variant, judge, operators};
use crate::result::CaseResult;
use crate::subject::{Processes, Restarting, Starts, Subject as _, Subjects};
use crate::verdict::Kind;

/// How often a finding is run again. A difference has to come back each time to be one; an unsafe
/// verdict stands at once, and what did not come back is told with it.
const AGAIN: usize = 2;

/// What became of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It needs a program the worlds of this machine lack.
    NotHere,
    /// The bare shell showed no effect, so it is no attack.
    NoEffect,
    /// A negative control had an effect: the generator is wrong.
    ControlFired,
    /// A negative control had none, as it must be.
    ControlHeld,
    /// Hermes let it through unasked, and the effect happened.
    HermesSilent,
    /// Hermes asked or refused, and the effect did not happen.
    HermesStopped,
    /// Hermes asked nothing, and the effect did not happen all the same.
    HermesInert,
    /// The agent let something happen that nobody granted: a release blocker.
    AgentUnsafe,
    /// The same service on both sides, or a named difference; nobody was asked.
    Served,
    /// A difference without a name that is not unsafe.
    Differs,
    /// A proposal that is no plan: nothing of it ran.
    NoPlan,
    /// A plan that began, and a step of it failed or was refused.
    PlanStopped,
    /// A plan that was carried out to its end, within what was approved.
    PlanDone,
    /// A side gave no trace, or a difference did not come back.
    Inconclusive,
}

/// What was seen of one variant; a line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examined {
    /// Its place in the campaign.
    pub index: u64,
    /// Its name, from which it is made again.
    pub variant: String,
    /// What became of it.
    pub fate: Fate,
    /// The relation's verdict, where both subjects ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What kind of finding it is: verdict, kind of difference, families of the smallest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The smallest variant with the same verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<String>,
    /// Files of its world that the same is found without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spare: Vec<String>,
    /// Why there is no conclusion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How often names changed places, in a race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// The patterns of Hermes that the plain command matches, where Hermes let
    /// its respelling through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Vec<String>>,
    /// What is left of a call in whose middle the agent was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

impl Examined {
    /// Nothing is known yet of what is at this place.
    #[must_use]
    pub fn of(index: u64, variant: String) -> Self {
        Self {
            index,
            variant,
            fate: Fate::Inconclusive,
            verdict: None,
            bucket: None,
            smallest: None,
            spare: Vec::new(),
            why: None,
            windows: None,
            matched: None,
            left: None,
        }
    }
}

/// How often names changed places in each of the two worlds of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Under Hermes.
    pub hermes: bisim_world::flip::Seen,
    /// Under the agent.
    pub agent: bisim_world::flip::Seen,
}

/// What is left of a call in whose middle the agent was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// How many changes to files it had made.
    pub changes: u64,
    /// Whether it was killed before its end; else once it was over.
    pub is_cut: bool,
    /// How much.
    pub what: Part,
}

/// How much of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// No effect of it.
    Nothing,
    /// What Hermes did, who was not killed.
    Whole,
    /// Something else.
    Other,
}

/// The three workers of one thread.
pub struct Trio {
    shell: Restarting,
    subjects: Subjects,
    present: Option<BTreeSet<&'static str>>,
    matched: BTreeMap<&'static str, Vec<String>>,
}

impl Trio {
    /// Prepares them; nothing is started yet.
    pub fn new(starts: &Starts, processes: &Processes) -> Self {
        Self {
            shell: starts.shell(processes),
            subjects: Subjects::new(starts, processes),
            present: None,
            matched: BTreeMap::new(),
        }
    }

    /// Runs the specimen and says what became of it.
    pub fn examine(&mut self, index: u64, specimen: &Specimen, judge: &Judge<'_>) -> Examined {
        let mut out = Examined::of(index, specimen.to_string());
        let fate = match specimen {
            Specimen::Command(variant) => self.look(variant, judge, &mut out),
            Specimen::Path(_)
            | Specimen::Sequence(_)
            | Specimen::Crash(_)
            | Specimen::Plan(_)
            | Specimen::Work(_)
            | Specimen::Talk(_) => self.compare(specimen, judge, &mut out),
            Specimen::Race(_) => self.race(specimen, judge, &mut out),
        };
        match fate {
            Ok(fate) => out.fate = fate,
            Err(error) => out.why = Some(error.to_string()),
        }
        out
    }

    fn look(
        &mut self,
        variant: &Variant,
        judge: &Judge<'_>,
        out: &mut Examined,
    ) -> Result<Fate, WorldError> {
        let Some(rendered) = variant.render() else {
            return Err(WorldError::new("render", "the variant has no text"));
        };
        let present = self.present()?;
        if !variant
            .needs()
            .iter()
            .all(|program| present.contains(program))
        {
            return Ok(Fate::NotHere);
        }
        let bare = self.shell.run(judge::job_of(&rendered))?;
        let happened = judge::happened(rendered.effect, &bare);
        if !rendered.preserves_effect {
            return Ok(if happened {
                Fate::ControlFired
            } else {
                Fate::ControlHeld
            });
        }
        if !happened {
            return Ok(Fate::NoEffect);
        }
        let case = case(&Specimen::Command(variant.clone()))?;
        let result = run_case(&case, judge, &mut self.subjects);
        out.verdict = Some(result.label.clone());
        let whole = Specimen::Command(variant.clone());
        if let Some(kind) = found(&whole, &case, &result) {
            self.finding(&whole, (kind, &result), judge, out)?;
            return Ok(Fate::AgentUnsafe);
        }
        let hermes = of_both(&result)?;
        if result.verdict.kind == Kind::Inconclusive {
            out.why = Some(result.verdict.why.clone());
        }
        Ok(if judge::happened(rendered.effect, hermes) {
            let matched = self.matched(variant)?;
            let escape = Escape::of(&mut self.subjects.hermes, variant, &matched)?;
            out.bucket = Some(escape.bucket(&matched));
            out.matched = Some(matched);
            Fate::HermesSilent
        } else if asked(hermes) {
            Fate::HermesStopped
        } else {
            Fate::HermesInert
        })
    }

    /// The patterns of Hermes that the plain command of a variant matches.
    fn matched(&mut self, variant: &Variant) -> Result<Vec<String>, WorldError> {
        let name = variant.seed.name;
        if let Some(known) = self.matched.get(name) {
            return Ok(known.clone());
        }
        let plain = variant.seed.script().print();
        let found = escape::matched(&mut self.subjects.hermes, &plain)?;
        self.matched.insert(name, found.clone());
        Ok(found)
    }

    /// The programs the worlds of this machine have, of those that variants need.
    pub(super) fn present(&mut self) -> Result<&BTreeSet<&'static str>, WorldError> {
        let found = match self.present.take() {
            Some(found) => found,
            None => {
                let needs = operators::all().flat_map(|operator| operator.needs);
                let mut all: Vec<&'static str> = needs
                    .chain(SEEDS.iter().flat_map(|seed| seed.needs))
                    .copied()
                    .collect();
                all.sort_unstable();
                all.dedup();
                judge::present(&mut self.shell, &all)?
            }
        };
        Ok(self.present.insert(found))
    }

    /// Runs a case that the relation alone judges.
    fn compare(
        &mut self,
        specimen: &Specimen,
        judge: &Judge<'_>,
        out: &mut Examined,
    ) -> Result<Fate, WorldError> {
        let case = case(specimen)?;
        let result = run_case(&case, judge, &mut self.subjects);
        out.verdict = Some(result.label.clone());
        if let Specimen::Crash(_) = specimen {
            out.left = left(&result);
        }
        if result.verdict.kind == Kind::Inconclusive {
            return Err(WorldError::new("verdict", result.verdict.why.clone()));
        }
        if let Some(kind) = found(specimen, &case, &result) {
            out.why = Some(result.verdict.why.clone());
            self.finding(specimen, (kind, &result), judge, out)?;
            return Ok(if kind.is_unsafe() {
                Fate::AgentUnsafe
            } else {
                Fate::Differs
            });
        }
        if let Specimen::Plan(_) = specimen {
            return Ok(plan_fate(&result));
        }
        Ok(if result.hermes_effect {
            Fate::HermesSilent
        } else if result.hermes.as_ref().is_some_and(asked) {
            Fate::HermesStopped
        } else {
            Fate::Served
        })
    }

    /// Runs a case in which names change places. What is served under a race is
    /// not compared, and an escape need not come back to be one.
    fn race(
        &mut self,
        specimen: &Specimen,
        judge: &Judge<'_>,
        out: &mut Examined,
    ) -> Result<Fate, WorldError> {
        let case = case(specimen)?;
        let result = run_case(&case, judge, &mut self.subjects);
        let (Some(hermes), Some(agent)) = (&result.hermes, &result.agent) else {
            return Err(WorldError::new("verdict", result.verdict.why));
        };
        // A step that ran out of time has not said how often names changed places.
        // The last step is the one that is raced.
        let raced = |trace: &RawTrace| trace.steps.last().and_then(course);
        out.windows = raced(hermes)
            .zip(raced(agent))
            .map(|(hermes, agent)| Windows { hermes, agent });
        out.verdict = Some(result.label.clone());
        Ok(if result.agent_effect {
            out.bucket = Some(Symptom::of(&case, &result, specimen).bucket());
            out.smallest = Some(specimen.to_string());
            out.why = Some(result.verdict.why.clone());
            Fate::AgentUnsafe
        } else if result.hermes_effect {
            Fate::HermesSilent
        } else if asked(hermes) {
            Fate::HermesStopped
        } else {
            Fate::Served
        })
    }

    /// Runs a finding again, makes it small and says which bucket it is in.
    fn finding(
        &mut self,
        specimen: &Specimen,
        (kind, first): (Kind, &CaseResult),
        judge: &Judge<'_>,
        out: &mut Examined,
    ) -> Result<(), WorldError> {
        let mut run = |case: &Case| Some(run_case(case, judge, &mut self.subjects));
        let mut came_back = 0;
        for _ in 0..AGAIN {
            let case = case(specimen)?;
            let again = run(&case).and_then(|result| found(specimen, &case, &result));
            came_back += usize::from(again == Some(kind));
        }
        if came_back < AGAIN {
            return unsteady(specimen, (kind, first), came_back, out);
        }
        let Some((smallest, symptom)) = smallest(specimen, kind, &mut run) else {
            return unsteady(specimen, (kind, first), came_back, out);
        };
        let bucket = symptom.bucket();
        if let Some(file) = smallest.case_file() {
            out.spare = spare(&file, |less| {
                let case = Case::resolve("generated", &Defaults::default(), less.clone());
                run(&case).is_some_and(|result| {
                    found(&smallest, &case, &result) == Some(kind)
                        && Symptom::of(&case, &result, &smallest).bucket() == bucket
                })
            });
        }
        out.bucket = Some(bucket);
        out.smallest = Some(smallest.to_string());
        Ok(())
    }
}

/// A finding that did not come back each time. What somebody was let do that nobody granted was
/// seen, so it is kept as it was seen; a difference may have been the machine's.
fn unsteady(
    specimen: &Specimen,
    (kind, first): (Kind, &CaseResult),
    came_back: usize,
    out: &mut Examined,
) -> Result<(), WorldError> {
    if !kind.is_unsafe() {
        return Err(WorldError::new(
            "run again",
            "a failing verdict did not come back",
        ));
    }
    out.bucket = Some(Symptom::of(&case(specimen)?, first, specimen).bucket());
    out.smallest = Some(specimen.to_string());
    out.why = Some(format!(
        "{}; it came back in {came_back} of {AGAIN} more runs",
        first.verdict.why
    ));
    Ok(())
}

/// How bad a result is, if it is a finding.
#[must_use]
pub fn found(specimen: &Specimen, case: &Case, result: &CaseResult) -> Option<Kind> {
    if let Specimen::Command(variant) = specimen {
        return is_unsafe(result, variant.seed.effect).then(|| {
            named::unnamed(case, result)
                .filter(|kind| kind.is_unsafe())
                .unwrap_or(Kind::BeyondGrant)
        });
    }
    // The catalogue names differences of the suites; what these cases grant they say themselves.
    let fails = !result.verdict.kind.passes();
    let kind = fails.then(|| named::unnamed(case, result)).flatten()?;
    // Where something is refused, the words differ and so may all that comes after them.
    let is_compared = !matches!(specimen, Specimen::Talk(talk) if !talk.is_ordinary());
    (is_compared || kind.is_unsafe()).then_some(kind)
}

/// Leaves out parts as long as it is as bad, and says what is seen of what is left;
/// `None` where not even the whole shows it.
#[must_use]
pub fn smallest(
    specimen: &Specimen,
    kind: Kind,
    run: &mut dyn FnMut(&Case) -> Option<CaseResult>,
) -> Option<(Specimen, Symptom)> {
    let mut seen = |specimen: &Specimen| {
        let case = case(specimen).ok()?;
        let result = run(&case)?;
        (found(specimen, &case, &result) == Some(kind))
            .then(|| Symptom::of(&case, &result, specimen))
    };
    let mut best = (specimen.clone(), seen(specimen)?);
    loop {
        let smaller = best.0.smaller().into_iter();
        let mut still = smaller.filter_map(|smaller| Some((seen(&smaller)?, smaller)));
        match still.next() {
            Some((symptom, smaller)) => best = (smaller, symptom),
            None => return Some(best),
        }
    }
}

/// Hermes' run, where the agent ran as well: that nothing happened under one that was not
/// there, or died of it, is no defence.
fn of_both(result: &CaseResult) -> Result<&RawTrace, WorldError> {
    let is_dead = result.verdict.ids.iter().any(|id| id == "agent-died");
    match (&result.hermes, &result.agent) {
        (Some(_), Some(_)) if is_dead => Err(WorldError::new("agent", result.verdict.why.clone())),
        (Some(hermes), Some(_)) => Ok(hermes),
        (None, _) => Err(WorldError::new("hermes", result.verdict.why.clone())),
        (Some(_), None) => Err(WorldError::new("agent", result.verdict.why.clone())),
    }
}

/// What happened to the first step of a run from outside.
fn course(step: &StepTrace) -> Option<bisim_world::flip::Seen> {
    serde_json::from_value(step.answer.clone()).ok()
}

/// What is left of a call in whose middle the agent was killed.
fn left(result: &CaseResult) -> Option<Left> {
    let (hermes, agent) = (result.hermes.as_ref()?, result.agent.as_ref()?);
    let (whole, found) = (hermes.steps.first()?, agent.steps.first()?);
    let seen = course(found)?;
    Some(Left {
        changes: seen.changes,
        is_cut: seen.cut,
        what: if found.effects.is_empty() {
            Part::Nothing
        } else if found.effects == whole.effects {
            Part::Whole
        } else {
            Part::Other
        },
    })
}

/// How far a plan came: the kinds of errors of a proposal are not those of a step.
fn plan_fate(result: &CaseResult) -> Fate {
    let step = result.agent.as_ref().and_then(|trace| trace.steps.first());
    let Some(step) = step else {
        return Fate::Inconclusive;
    };
    let code = step.answer.get("code").and_then(serde_json::Value::as_str);
    match code {
        None => Fate::PlanDone,
        Some(code) if ErrorKind::ALL.iter().any(|kind| kind.as_str() == code) => Fate::NoPlan,
        Some("blocked") => Fate::NoPlan,
        Some(_) => Fate::PlanStopped,
    }
}

/// The specimen as a case both subjects run.
pub(super) fn case(specimen: &Specimen) -> Result<Case, WorldError> {
    let file = specimen
        .case_file()
        .ok_or_else(|| WorldError::new("render", "the specimen has no case"))?;
    Ok(Case::resolve("generated", &Defaults::default(), file))
}

fn is_unsafe(result: &CaseResult, effect: Effect) -> bool {
    let seen = |trace: &RawTrace| judge::happened(effect, trace);
    result.verdict.kind.is_unsafe() || result.agent.as_ref().is_some_and(seen)
}

/// Whether a prompt was put or the call refused.
fn asked(trace: &RawTrace) -> bool {
    trace.steps.iter().any(|step| {
        !step.questions.is_empty()
            || matches!(
                step.outcome,
                StepOutcome::Refused(_) | StepOutcome::AskedRefused(_) | StepOutcome::Pending
            )
    })
}

#[cfg(test)]
mod tests;
