//! Somebody who is asked about commands by the thousand: Hermes' own guard.

use std::path::PathBuf;

use bisim_world::WorldError;
use bisim_world::protocol::{Context, End, Job, Step, StepOutcome};
use serde_json::{Map, Value, json};

use crate::campaign::said::Said;
use crate::generate::judge;
use crate::subject::{Processes, Restarting, Starts, Subject as _};
use bisim_world::protocol::UserModel;

/// How long a whole piece may take: many times what it takes on a quiet machine.
const DEADLINE_MS: u64 = 900_000;

/// A guard that says what it would do about each command.
pub trait Guard {
    /// What it says in this context, whose user denies every prompt, in order.
    ///
    /// # Errors
    /// It gives no answer.
    fn say(&mut self, context: Context, commands: Vec<String>) -> Result<Vec<Said>, WorldError>;
}

/// The real Hermes, in a world of its own for each piece; no command is run.
pub struct HermesGuard {
    worker: Restarting,
    cpu_us: u64,
}

impl HermesGuard {
    /// Prepares a worker; nothing is started yet.
    #[must_use]
    pub fn new(starts: &Starts, processes: &Processes) -> Self {
        let log: PathBuf = starts.logs.join("hermes.log");
        Self {
            worker: Restarting::new(starts.hermes.clone(), processes.clone(), Some(log)),
            cpu_us: 0,
        }
    }

    /// What its worlds took of the processor so far, in microseconds.
    #[must_use]
    pub const fn cpu_us(&self) -> u64 {
        self.cpu_us
    }

    /// What the same commands take in a plain loop of one interpreter, in microseconds,
    /// after the first `warm` of them were asked about once.
    ///
    /// # Errors
    /// Hermes gives no answer.
    pub fn bare(
        &mut self,
        context: Context,
        commands: Vec<String>,
        warm: usize,
    ) -> Result<u64, WorldError> {
        let mut input = Map::new();
        input.insert("warm".to_owned(), json!(warm));
        let told = self.probe("guard_bare", context, commands, input)?;
        told.as_u64()
            .ok_or_else(|| WorldError::new("ask the guard", format!("no figure but {told}")))
    }

    /// The worker, to ask something else of it.
    pub(in super::super) fn worker(&mut self) -> &mut Restarting {
        &mut self.worker
    }

    fn probe(
        &mut self,
        name: &str,
        context: Context,
        commands: Vec<String>,
        mut input: Map<String, Value>,
    ) -> Result<Value, WorldError> {
        input.insert("commands".to_owned(), Value::from(commands));
        let job = Job {
            context,
            user: UserModel::DenyAll,
            script: vec![Step::Probe {
                name: name.to_owned(),
                input: Value::Object(input),
            }],
            deadline_ms: DEADLINE_MS,
            ..judge::job("")
        };
        let trace = self.worker.run(job)?;
        self.cpu_us = self.cpu_us.saturating_add(trace.cpu_us);
        let broken = |why: String| WorldError::new("ask the guard", why);
        let mut steps = trace.steps;
        match (&trace.end, steps.pop()) {
            (End::Finished, Some(mut step)) if step.outcome == StepOutcome::Ran => step
                .answer
                .pointer_mut("/value")
                .map(Value::take)
                .ok_or_else(|| broken("the answer has no value".to_owned())),
            (end, step) => Err(broken(format!(
                "{end:?}: {:?}",
                step.map(|step| step.outcome)
            ))),
        }
    }
}

impl Guard for HermesGuard {
    fn say(&mut self, context: Context, commands: Vec<String>) -> Result<Vec<Said>, WorldError> {
        let count = commands.len();
        let told = self.probe("guard_screen", context, commands, Map::new())?;
        letters(told.as_str().unwrap_or_default(), count)
    }
}

/// A letter for each command.
fn letters(told: &str, count: usize) -> Result<Vec<Said>, WorldError> {
    let said: Option<Vec<Said>> = told.chars().map(Said::of_letter).collect();
    said.filter(|said| said.len() == count)
        .ok_or_else(|| WorldError::new("ask the guard", format!("no {count} answers: {told:.80}")))
}

/// A guard that lets everything through at once, to see what the lane itself costs.
#[derive(Clone, Copy, Debug)]
pub struct NoGuard;

impl Guard for NoGuard {
    fn say(&mut self, _context: Context, commands: Vec<String>) -> Result<Vec<Said>, WorldError> {
        Ok(vec![Said::Permit; commands.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_does_not_answer_about_every_command_has_not_answered() {
        let all = vec![Said::Permit, Said::Ask, Said::Deny];
        assert_eq!(letters("pad", 3).ok(), Some(all));
        for (told, count) in [("pa", 3), ("padp", 3), ("px", 2), ("", 1)] {
            assert!(letters(told, count).is_err(), "{told}");
        }
    }
}
