//! Hermes' detector to ask, and a bare shell to try things in.

use std::collections::BTreeSet;

use bisim_world::WorldError;
use bisim_world::protocol::{Job, RawTrace, Step};
use serde_json::{Value, json};

use super::Pattern;
use super::made_of::needs;
use crate::generate::{Variant, judge};
use crate::subject::{Processes, Restarting, Starts, Subject as _};

/// What Hermes asks before a command.
const GUARDS: [&str; 3] = ["dangerous", "hardline", "sudo_stdin"];

/// What has no effect is run again.
const TRIES: usize = 2;

/// Both, started.
pub(super) struct Bench {
    hermes: Restarting,
    shell: Restarting,
    present: BTreeSet<&'static str>,
}

impl Bench {
    pub(super) fn open(starts: &Starts, processes: &Processes) -> Result<Self, WorldError> {
        let log = starts.logs.join("hermes.log");
        let hermes = Restarting::new(starts.hermes.clone(), processes.clone(), Some(log));
        let mut shell = starts.shell(processes);
        let needs: Vec<&'static str> = needs().into_iter().collect();
        let present = judge::present(&mut shell, &needs)?;
        Ok(Self {
            hermes,
            shell,
            present,
        })
    }

    /// The release that is asked.
    pub(super) fn version(&self) -> &str {
        self.hermes.version()
    }

    /// Whether a world has these programs.
    pub(super) fn can_run(&self, needs: &[&str]) -> bool {
        needs.iter().all(|program| self.present.contains(program))
    }

    /// Programs that something may need, and that are not there.
    pub(super) fn lacking(&self) -> BTreeSet<&'static str> {
        needs().difference(&self.present).copied().collect()
    }

    /// All patterns, or those a command matches.
    pub(super) fn patterns(&mut self, command: Option<&str>) -> Result<Vec<Pattern>, WorldError> {
        matched(&mut self.hermes, command)
    }

    /// Whether any guard flags each of these commands.
    pub(super) fn flagged(&mut self, commands: &[&str]) -> Result<Vec<bool>, WorldError> {
        flagged(&mut self.hermes, commands)
    }

    /// Whether a bare shell shows the effect.
    pub(super) fn has_effect(&mut self, variant: &Variant) -> Result<bool, WorldError> {
        let Some(rendered) = variant.render() else {
            return Ok(false);
        };
        // A busy machine ends a command early, and the page would be another one.
        for _ in 0..TRIES {
            let trace = self.shell.run(judge::job_of(&rendered))?;
            if judge::happened(rendered.effect, &trace) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether any guard of Hermes flags each of these commands.
///
/// # Errors
/// Hermes does not answer.
pub fn flagged(hermes: &mut Restarting, commands: &[&str]) -> Result<Vec<bool>, WorldError> {
    let probes = commands.iter().flat_map(|command| {
        GUARDS.map(|guard| Step::Probe {
            name: "classify_command".to_owned(),
            input: json!({ "command": command, "guard": guard }),
        })
    });
    let trace = ask(hermes, probes.collect())?;
    if trace.steps.len() != commands.len() * GUARDS.len() {
        return Err(WorldError::new("ask the detector", "an answer is missing"));
    }
    let permits = |step: &bisim_world::protocol::StepTrace| {
        step.answer.get("decision").and_then(Value::as_str) == Some("permit")
    };
    Ok(trace
        .steps
        .chunks(GUARDS.len())
        .map(|answers| !answers.iter().all(permits))
        .collect())
}

fn ask(hermes: &mut Restarting, script: Vec<Step>) -> Result<RawTrace, WorldError> {
    hermes.run(Job {
        world: None,
        script,
        ..judge::job("")
    })
}

/// All patterns of Hermes, or those a command matches.
pub(in super::super) fn matched(
    hermes: &mut Restarting,
    command: Option<&str>,
) -> Result<Vec<Pattern>, WorldError> {
    let input = match command {
        Some(command) => json!({ "command": command }),
        None => json!({}),
    };
    let probe = Step::Probe {
        name: "detector_patterns".to_owned(),
        input,
    };
    let trace = ask(hermes, vec![probe])?;
    let strange = || WorldError::new("ask for patterns", format!("{:?}", trace.steps));
    trace
        .steps
        .first()
        .and_then(|step| step.answer.pointer("/value/patterns"))
        .and_then(Value::as_array)
        .ok_or_else(strange)?
        .iter()
        .map(|pattern| {
            let word = |name| pattern.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(Pattern {
                guard: word("guard")?,
                number: pattern.get("number").and_then(Value::as_u64)?,
                description: word("description")?,
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(strange)
}
