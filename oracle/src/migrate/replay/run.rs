//! Running a unit on both subjects, and again where it has come apart.

use bisim_world::protocol::{
    Drive, EffectKind, FileKind, FileSpec, FsEffect, Job, RawTrace, Step, StepOutcome, UserModel,
    WorldSpec,
};
use serde_json::Value;

use super::fate::{self, Class, Need, Outcome, Unreplayable};
use super::files;
use super::place::WORK;
use super::terms::Terms;
use super::unit::Unit;
use crate::case::{Case, Expect, Leg, Must, Source};
use crate::check::{Judge, run_case};
use crate::migrate::history::Call;
use crate::result::CaseResult;
use crate::subject::Subjects;

/// How long a world is waited for: this much, and this much more for each call.
const DEADLINE_MS: u64 = 30_000;
const DEADLINE_MS_EACH: u64 = 5_000;

/// Runs units.
pub struct Replayer<'r> {
    /// The terms.
    pub terms: &'r Terms,
    /// What judges.
    pub judge: &'r Judge<'r>,
    /// On which both are run.
    pub subjects: &'r mut Subjects,
}

/// Why a search of `.` finds more.
const BELOW_A_DOT: &str = "known and harmless: without ripgrep Hermes takes a start with a dot for a hidden directory and finds nothing; the agent finds what is there";

impl Replayer<'_> {
    /// Runs a unit; an outcome for each of its calls, in order.
    pub fn run(&mut self, unit: &Unit) -> Vec<Outcome> {
        let scene = files::scene(&unit.calls, &unit.known, &unit.workspace);
        let mut outcomes: Vec<Outcome> = Vec::new();
        // Commands that did the same on both sides are done again before the
        // rest, since nobody else knows what they left behind.
        let mut again: Vec<Call> = Vec::new();
        let mut step = unit.calls.len().max(1);
        while outcomes.len() < unit.calls.len() {
            let from = outcomes.len();
            let to = from.saturating_add(step).min(unit.calls.len());
            let calls = unit.calls.get(from..to).unwrap_or_default();
            let mut known = match from.checked_sub(1).and_then(|last| scene.after.get(last)) {
                Some(after) => after.clone(),
                None => scene.before.clone(),
            };
            for (path, text) in &scene.before {
                known.entry(path.clone()).or_insert_with(|| text.clone());
            }
            let script: Vec<&Call> = again.iter().chain(calls).collect();
            let case = self.case(unit, &script, &known);
            let result = run_case(&case, self.judge, self.subjects);
            if script.len() > 1
                && wants_one_by_one(&result, script.len())
                && (step > 1 || !again.is_empty())
            {
                step = 1;
                again.clear();
                continue;
            }
            if came_apart_before(&result, again.len()) {
                again.clear();
                continue;
            }
            let judged = self.read(&case, calls, again.len(), &result);
            if judged.is_empty() {
                // Without a verdict on the first there is none on any.
                let reason = Unreplayable::Harness(result.label);
                outcomes.extend(calls.iter().map(|call| Outcome::unreplayed(call, &reason)));
                continue;
            }
            let left = calls.iter().zip(&judged).filter(|(call, outcome)| {
                matches!(call.tool.as_str(), "terminal" | "execute_code")
                    && outcome.class == Class::Same
                    && !outcome.needs.is_empty()
            });
            again.extend(left.map(|(call, _)| call.clone()));
            outcomes.extend(judged);
        }
        outcomes
    }

    fn case(
        &self,
        unit: &Unit,
        calls: &[&Call],
        known: &std::collections::BTreeMap<String, String>,
    ) -> Case {
        let mut files = vec![FileSpec {
            path: WORK.to_owned(),
            kind: FileKind::Dir(true),
            mode: None,
        }];
        files.extend(
            unit.workspace
                .files
                .iter()
                .filter(|file| !known.contains_key(&file.path))
                .cloned(),
        );
        files.extend(known.iter().map(|(path, text)| FileSpec {
            path: path.clone(),
            kind: FileKind::Text(text.clone()),
            mode: None,
        }));
        Case {
            id: format!(
                "migrate-{}",
                calls.first().map_or("", |call| call.id.as_str())
            ),
            suite: "migrate".to_owned(),
            comment: String::new(),
            flags: Vec::new(),
            source: Source {
                from: "recorded".to_owned(),
                row: String::new(),
                note: String::new(),
            },
            job: Job {
                world: Some(WorldSpec {
                    cwd: WORK.to_owned(),
                    files,
                    flip: None,
                    serves: None,
                    conversations: Vec::new(),
                }),
                context: unit.session.context(),
                user: UserModel::DenyAll,
                held: self.terms.held().to_vec(),
                rules: self.terms.rules().to_vec(),
                settings: self.terms.settings().clone(),
                drive: Drive::Calls,
                script: calls
                    .iter()
                    .map(|call| Step::Call {
                        tool: call.tool.clone(),
                        args: call.args.clone(),
                        by: None,
                    })
                    .collect(),
                deadline_ms: DEADLINE_MS + DEADLINE_MS_EACH * calls.len() as u64,
            },
            hermes: Leg { world: true },
            agent: Leg { world: true },
            expect: Expect {
                agent: Must::Either,
                reason: "the relation alone judges".to_owned(),
                effects: None,
                steps: None,
            },
            recorded: Default::default(),
        }
    }

    /// The outcomes up to where the two states come apart; the rest is run again.
    fn read(
        &self,
        case: &Case,
        calls: &[Call],
        skipped: usize,
        result: &CaseResult,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let (Some(judgement), Some(hermes)) = (&result.judgement, &result.hermes) else {
            return outcomes;
        };
        let mut before: &[FsEffect] = match skipped.checked_sub(1) {
            Some(last) => hermes.steps.get(last).map_or(&[], |step| &step.effects),
            None => &[],
        };
        for (place, call) in calls.iter().enumerate() {
            let place = place + skipped;
            let judged = judgement.steps.iter().filter(|step| step.step == place);
            let judged = judged.max_by_key(|step| step.finding);
            let live = hermes.steps.get(place);
            let (Some(judged), Some(live)) = (judged, live) else {
                if outcomes.is_empty() {
                    outcomes.push(Outcome::unreplayed(call, &Unreplayable::TooLong));
                }
                return outcomes;
            };
            let effects = new_effects(before, &live.effects);
            before = &live.effects;
            let mut outcome = self.one(call, judged, live, &effects, beyond_a_world(hermes));
            let is_known = outcome.class == Class::Changed
                && crate::campaign::is_found_below_a_dot(case, result, judged);
            if is_known {
                outcome.why = BELOW_A_DOT.to_owned();
                outcome.is_known = true;
            }
            let apart = !matches!(outcome.class, Class::Same);
            outcomes.push(outcome);
            if apart {
                return outcomes;
            }
        }
        outcomes
    }

    fn one(
        &self,
        call: &Call,
        judged: &crate::relation::StepJudgement,
        live: &bisim_world::protocol::StepTrace,
        effects: &[FsEffect],
        beyond: Option<Unreplayable>,
    ) -> Outcome {
        let unreplayed = |reason| Outcome::unreplayed(call, &reason);
        let Some(class) = fate::class(judged.finding) else {
            return unreplayed(Unreplayable::Harness(judged.why.clone()));
        };
        // What the agent must never do counts whatever the replay is worth.
        if class != Class::Unsafe {
            if let Some(reason) = beyond {
                return unreplayed(reason);
            }
            if let Err(reason) = fate::faithful(call, live) {
                return unreplayed(reason);
            }
            if judged.hermes.starts_with("hung") {
                return unreplayed(Unreplayable::TooLong);
            }
        }
        let mut needs: Vec<Need> = effects.iter().map(Need::of).collect();
        // A directory that goes or comes with its files is theirs.
        if needs.is_empty() && class == Class::Stricter && call.tool == "read_file" {
            let path = call.args.get("path").and_then(Value::as_str);
            needs.extend(path.and_then(super::place::absolute).map(|path| {
                Need {
                    verb: "fs.read".to_owned(),
                    on: path
                        .strip_prefix(WORK)
                        .map_or_else(|| path.clone(), |below| format!(".{below}")),
                }
            }));
        }
        // Elsewhere than in the workspace the agent looks at a file before it changes it, by a
        // right of its own.
        let changes = matches!(call.tool.as_str(), "write_file" | "patch");
        if changes && class == Class::Stricter {
            let place = call.args.get("path").and_then(Value::as_str);
            let place = place.and_then(super::place::absolute);
            let elsewhere = place.filter(|place| needs.iter().any(|need| need.on == *place));
            needs.extend(elsewhere.map(|on| Need {
                verb: "fs.read".to_owned(),
                on,
            }));
        }
        needs.sort();
        needs.dedup();
        let missing: Vec<Need> = needs
            .iter()
            .filter(|need| !self.terms.covers(need))
            .cloned()
            .collect();
        let code = match class {
            Class::Stricter => fate::code(judged),
            Class::Same
            | Class::Attenuated
            | Class::Changed
            | Class::Unsafe
            | Class::NotReplayed => String::new(),
        };
        let mut why = match class {
            Class::Stricter if !missing.is_empty() => format!(
                "{}; it needs {}, which nothing covers",
                judged.why,
                missing
                    .iter()
                    .map(|need| format!("{} on {}", need.verb, need.on))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            _ => fate::without_content(&judged.why).to_owned(),
        };
        let asked = matches!(
            live.outcome,
            StepOutcome::AskedRefused(_) | StepOutcome::Pending
        );
        if asked && self.terms.is_smart() && call.tool == "terminal" {
            why.push_str(
                "; in mode `smart` Hermes would first have asked a model, here it asks its user",
            );
        }
        Outcome {
            class,
            tool: call.tool.clone(),
            call: fate::line(call),
            why,
            needs,
            missing,
            code,
            is_known: false,
        }
    }
}

/// Whether what is only done again did not do the same on both sides this time.
fn came_apart_before(result: &CaseResult, skipped: usize) -> bool {
    skipped > 0
        && result.judgement.as_ref().is_none_or(|judgement| {
            let first = judgement
                .steps
                .iter()
                .take_while(|step| step.step < skipped);
            first
                .map(|step| fate::class(step.finding))
                .any(|class| class != Some(Class::Same))
        })
}

/// Whether the calls have to be told apart by running each in a world of its own.
fn wants_one_by_one(result: &CaseResult, calls: usize) -> bool {
    result.hermes.as_ref().is_some_and(|trace| {
        beyond_a_world(trace).is_some()
            || trace.steps.len() < calls
            || trace
                .steps
                .iter()
                .any(|step| matches!(step.outcome, StepOutcome::Raised(_)))
    })
}

/// What Hermes used in this run that a world does not have as it was: the run says nothing
/// about it. A stand-in prints nothing and succeeds, whatever the true program did then;
/// the agent's commands do not even see it and run the machine's own program, if any.
fn beyond_a_world(hermes: &RawTrace) -> Option<Unreplayable> {
    if !hermes.network.is_empty() {
        return Some(Unreplayable::Network);
    }
    let line = hermes.tripwires.first()?;
    let program = line.split(' ').next().unwrap_or_default();
    Some(Unreplayable::StandIn(program.to_owned()))
}

/// What a step changed: the tree after it without what was so before it.
fn new_effects(before: &[FsEffect], after: &[FsEffect]) -> Vec<FsEffect> {
    let mut new = crate::canon::delta(before, after);
    // A directory whose own record changed with its entries needs nothing.
    new.retain(|effect| {
        effect.kind != EffectKind::Metadata || !effect.digest.is_empty() || effect.size > 0
    });
    new
}
