//! One step of a case's script, done by its agent.

use bisim_world::WorldError;
use bisim_world::protocol::{QuestionTrace, Step, StepOutcome, StepTrace};
use hermitcrab::runtime::{CallReport, Fate};
use hermitcrab_core::grant::GrantId;
use hermitcrab_core::rules::Isolation;
use serde_json::Value;

use super::left::left_behind;
use super::user::beside;
use super::{AgentWorld, ISOLATED, ISOLATION_PROBE, PLAN_PROBE, ProbeError, Probes, give, refused};
use crate::canon::CONVERSATION;
use crate::case::BATCH_PROBE;

impl AgentWorld<'_> {
    /// What the sandbox can do here, by doing it in an empty directory.
    fn isolation(&self) -> Result<Value, ProbeError> {
        let profile = hermitcrab::ambient::probe(&self.machine.spawner)
            .map_err(|error| ProbeError::Failed(error.to_string()))?;
        let word = match profile.isolation {
            Isolation::Isolated => ISOLATED,
            Isolation::Unisolated => "unisolated",
            Isolation::Unknown => "unknown",
        };
        let missing: Vec<String> = profile
            .rows
            .iter()
            .filter(|row| row.mandatory && row.available != Some(true))
            .map(|row| {
                format!(
                    "{} ({}): {}",
                    row.mechanism.as_str(),
                    row.seen,
                    row.lost_without
                )
            })
            .chain(profile.failure.iter().map(ToString::to_string))
            .collect();
        Ok(serde_json::json!({
            "decision": "none",
            "value": {"isolation": word, "missing": missing},
        }))
    }

    /// Runs one step of the script; `probes` answer what is none of the tools'.
    ///
    /// # Errors
    /// The harness failed.
    pub fn step(&self, step: &Step, probes: Probes) -> Result<StepTrace, WorldError> {
        let broken = |message: String| WorldError::new("open the agent's runtime", message);
        if self.is_closed.get() {
            return Ok(self.not_started());
        }
        self.said.take_asked();
        let mut trace = self.step_alone(step, probes)?;
        beside(&mut trace.questions, self.said.take_asked());
        // Whoever's session was ended from elsewhere begins another.
        if self.said.doors.has_ended.take() {
            self.begin_another().map_err(broken)?;
        }
        Ok(trace)
    }

    /// The session ends, if it has not, and the next one begins.
    fn begin_another(&self) -> Result<(), String> {
        self.with_open(|open| {
            open.runtime
                .begin_session()
                .map_err(|error| error.to_string())?;
            open.grants.borrow_mut().clear();
            open.children.borrow_mut().clear();
            self.furnish(open)
        })?
    }

    fn step_alone(&self, step: &Step, probes: Probes) -> Result<StepTrace, WorldError> {
        let broken = |message: String| WorldError::new("open the agent's runtime", message);
        match step {
            Step::Probe { name, .. } if name == ISOLATION_PROBE => Ok(probe(self.isolation())),
            Step::Probe { name, input } => {
                let trace = probe(probes(self, name, input));
                // A plan's steps are no calls of the script: what they asked is told here.
                let questions = self.said.take_asked();
                // Nor are those of a conversation, where it matters what was said to them.
                let is_told = match name.as_str() {
                    PLAN_PROBE => true,
                    BATCH_PROBE | CONVERSATION => self.tells_questions(),
                    _ => false,
                };
                Ok(match is_told {
                    true => StepTrace { questions, ..trace },
                    false => trace,
                })
            }
            Step::Call { tool, args, by } => self
                .with_open(|open| {
                    let agent = match by {
                        None => Some(open.runtime.first_agent()),
                        Some(child) => open.children.borrow().get(child).copied(),
                    };
                    match agent {
                        Some(agent) => {
                            let trace = report(open.runtime.call(agent, tool, args));
                            match left_behind(&open.runtime) {
                                Ok(left) if left.is_empty() => trace,
                                Ok(left) => StepTrace {
                                    outcome: StepOutcome::Raised(format!(
                                        "processes outlive the call: {}",
                                        left.join(", ")
                                    )),
                                    ..trace
                                },
                                Err(error) => StepTrace {
                                    outcome: StepOutcome::Raised(format!(
                                        "cannot look for processes: {error}"
                                    )),
                                    ..trace
                                },
                            }
                        }
                        None => StepTrace::of(StepOutcome::Refused("no-such-child".to_owned())),
                    }
                })
                .map_err(broken),
            Step::Grant(held) => self
                .with_open(|open| give(open, held))
                .and_then(|given| given)
                .map(|()| StepTrace::of(StepOutcome::Ran))
                .map_err(broken),
            Step::Revoke { grant } => self
                .with_open(|open| {
                    let named = open.grants.borrow().get(grant).copied();
                    match named {
                        Some(id) => match open.runtime.revoke(id) {
                            Ok(_) => StepTrace::of(StepOutcome::Ran),
                            Err(denial) => refused(&denial),
                        },
                        None => StepTrace::of(StepOutcome::Refused("unknown-grant".to_owned())),
                    }
                })
                .map_err(broken),
            Step::Advance { seconds } => {
                self.with_open(|_| ()).map_err(broken)?;
                self.clock.advance(*seconds);
                Ok(StepTrace::of(StepOutcome::Ran))
            }
            Step::EndSession {} => self
                .begin_another()
                .map(|()| StepTrace::of(StepOutcome::Ran))
                .map_err(broken),
            Step::Restart(restart) => self.restart(restart).map_err(broken),
            Step::Spawn { child, forward } => self
                .with_open(|open| {
                    let ids: Option<Vec<GrantId>> = forward
                        .iter()
                        .map(|name| open.grants.borrow().get(name).copied())
                        .collect();
                    let Some(ids) = ids else {
                        return StepTrace::of(StepOutcome::Refused("unknown-grant".to_owned()));
                    };
                    let first = open.runtime.first_agent();
                    match open.runtime.spawn(first, &ids) {
                        Ok(id) => {
                            open.children.borrow_mut().insert(child.clone(), id);
                            StepTrace::of(StepOutcome::Ran)
                        }
                        Err(denial) => refused(&denial),
                    }
                })
                .map_err(broken),
        }
    }
}

fn report(report: CallReport) -> StepTrace {
    let outcome = match report.fate {
        Fate::Ran => StepOutcome::Ran,
        Fate::RanDiscarded(code) => StepOutcome::RanDiscarded(code.as_str().to_owned()),
        Fate::Refused(code) => StepOutcome::Refused(code.as_str().to_owned()),
        Fate::AskedRefused(code) => StepOutcome::AskedRefused(code.as_str().to_owned()),
        Fate::ToolError => StepOutcome::ToolError,
        Fate::Failed(message) => StepOutcome::Raised(message),
    };
    let questions = report
        .questions
        .into_iter()
        .map(|asked| QuestionTrace {
            shown: asked.shown,
            answer: asked.answer,
            meanwhile: Vec::new(),
        })
        .collect();
    StepTrace {
        text: report.text,
        questions,
        ..StepTrace::of(outcome)
    }
}

fn probe(answer: Result<Value, ProbeError>) -> StepTrace {
    match answer {
        Ok(answer) => StepTrace {
            answer,
            ..StepTrace::of(StepOutcome::Ran)
        },
        Err(ProbeError::Unknown) => {
            StepTrace::of(StepOutcome::Unsupported("no-such-probe".to_owned()))
        }
        Err(ProbeError::BadInput(why)) => {
            StepTrace::of(StepOutcome::Raised(format!("bad probe input: {why}")))
        }
        Err(ProbeError::Failed(why)) => StepTrace::of(StepOutcome::Raised(why)),
    }
}
