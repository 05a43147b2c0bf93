//! Running a job of the list: for the session that asks, by a port that opens a
//! session of its own; and in that session, its program.
//!
//! The session that asks lends nothing to the run. What it needs for itself is the
//! list of jobs, which it changes before and after with permits of its own.

mod lent;
mod port;

use std::time::Duration;

use hermitcrab_core::{
    authority::{Extent, Object},
    fault::{self, Fault},
    grant::AgentId,
    label::{Label, Source},
    outcome::{Denial, DenialCode},
    tool::Tool,
};
use hermitcrab_sandbox::spawn::{EXCHANGE_DIR, Grace, Input, Output, Streams};
use jiff::Zoned;
use serde_json::Value;

pub use self::{
    lent::Lent,
    port::{Became, Job, JobPort, JobRun, Refusals},
};
use super::{
    GrantWords, Runtime,
    command::{Care, LOOK_EVERY, Launch},
    hands::Hands,
    result::ChangeSummary,
    script::ScriptRun,
    turn::Stop,
};

impl Runtime {
    /// Who runs jobs for this session. Without one it runs none; a run of a job has
    /// none, so that no job runs another or itself.
    pub fn run_jobs_through(&mut self, port: Box<dyn JobPort>) {
        self.job_port = Some(port);
    }

    /// What an agent has seen so far.
    #[must_use]
    pub fn seen_by(&self, agent: AgentId) -> Option<Label> {
        self.machine
            .look(|session| session.flow().label(agent).cloned())
    }

    /// What these jobs came to last is told to the session's first agent: it counts as
    /// read from files, whoever wrote it.
    ///
    /// # Errors
    /// It cannot be put on record, so it may not be told.
    pub fn hear_of_jobs(&mut self, ids: &[&str]) -> Result<(), Stop> {
        let by = self.first_agent();
        self.note_for_sure(format!("what came last of job {} is read", ids.join(", ")))
            .map_err(|error| Stop::refused(Denial::new(DenialCode::LedgerUnwritable, error)))?;
        self.hear(by, Source::File).map_err(Stop::refused)
    }

    /// What an agent holds on files, as it would be granted.
    fn files_in_words(&self, agent: AgentId) -> Vec<GrantWords> {
        self.machine.look(|session| {
            let held = session.held_by(agent);
            let caps = held.flat_map(|grant| grant.authority().caps().iter());
            caps.filter_map(|cap| match cap.object() {
                // Words say a tree, and a job holds no more than was granted.
                Object::Dir {
                    dir,
                    below,
                    extent: Extent::Tree,
                } => {
                    let place = self.mounts.absolute(*dir, below)?;
                    let verb = cap.verb().to_string();
                    Some(GrantWords::new(&verb, &place.to_string_lossy()))
                }
                _ => None,
            })
            .collect()
        })
    }

    /// Runs a program of a job, as a command of the session's first agent.
    ///
    /// # Errors
    /// It was refused, or the machinery failed.
    pub fn run_job_script(
        &mut self,
        program: &str,
        text: &str,
        most: Duration,
    ) -> Result<ScriptRun, Stop> {
        let by = self.first_agent();
        self.heed()
            .and_then(|()| self.tick())
            .map_err(|error| Stop::Broken(error.to_string()))?;
        let (mut questions, mut changes) = (Vec::new(), ChangeSummary::default());
        let run = self.with_hands(
            (by, Tool::Terminal),
            &mut questions,
            &mut changes,
            |hands| hands.run_program(program, text, most),
        );
        self.hear(by, Source::Command).map_err(Stop::refused)?;
        run
    }
}

impl Hands<'_> {
    /// Whether this session runs jobs.
    ///
    /// # Errors
    /// It does not.
    pub fn may_run_jobs(&self) -> Result<(), Stop> {
        match self.runtime.job_port {
            Some(_) => Ok(()),
            None => Err(Stop::refused(Denial::new(
                DenialCode::LimitReached,
                "this session runs no jobs",
            ))),
        }
    }

    /// Has a job of the list run, with what was granted to it. Both the beginning and
    /// the end are in this session's ledger; what the run does is in one of its own.
    pub fn run_job(&mut self, job: &Job, now: &Zoned) -> Result<JobRun, Stop> {
        self.may_run_jobs()?;
        let Some(mut port) = self.runtime.job_port.take() else {
            return Err(Stop::Broken("there is nobody to run jobs".to_owned()));
        };
        let id = job.get("id").and_then(Value::as_str).unwrap_or_default();
        let id = id.escape_debug().to_string();
        let lent = if fault::is(Fault::JobBorrowsRights) {
            Lent::all_of(self.runtime, self.by)
        } else {
            Lent::default()
        };
        let begun = self
            .runtime
            .note_for_sure(format!("job {id} is run by a call, with grants of its own"));
        let run = match begun {
            Ok(()) => {
                self.has_acted = true;
                Ok(port.run(job, now, &lent))
            }
            Err(error) => Err(Stop::refused(Denial::new(
                DenialCode::LedgerUnwritable,
                error,
            ))),
        };
        self.runtime.job_port = Some(port);
        let run = run?;
        let how = match &run.became.error {
            None => "worked",
            Some(_) => "failed",
        };
        self.runtime
            .note_for_sure(format!("job {id} {how}"))
            .map_err(|error| Stop::Broken(error.to_string()))?;
        Ok(run)
    }

    /// What is told of a run is no cleaner than what the run had seen.
    pub fn hear_of(&mut self, run: &JobRun) -> Result<(), Stop> {
        match &run.label {
            Some(label) => self
                .runtime
                .hear_label(self.by, label.clone())
                .map_err(Stop::refused),
            None => Ok(()),
        }
    }

    fn run_program(
        &mut self,
        program: &str,
        script: &str,
        most: Duration,
    ) -> Result<ScriptRun, Stop> {
        let seen = self.seen()?.into();
        let text = |text: &str| text.as_bytes().to_vec();
        let ceilings = self.runtime.ceilings.clone();
        let timeout = ceilings
            .timeout_max
            .map_or(most, |allowed| allowed.min(most));
        let launch = Launch {
            tool: Tool::Terminal,
            about: script,
            argv: vec![
                text("/usr/bin/bash"),
                text("-c"),
                text("builtin cd -- \"$1\" 2>/dev/null; exec \"$3\" \"$2/script\" </dev/null"),
                text("bash"),
                self.cwd().to_string_lossy().into_owned().into_bytes(),
                text(EXCHANGE_DIR),
                text(program),
            ],
            env: self
                .looks_elsewhere()
                .into_iter()
                .chain([(text("PYTHONDONTWRITEBYTECODE"), text("1"))])
                .collect(),
            inputs: vec![("script".to_owned(), text(script))],
            merge_stderr: false,
            timeout,
            grace: Grace::None,
        };
        let streams = Streams {
            stdin: Input::Nothing,
            stdout: Output::Captured,
            stderr: Output::Captured,
        };
        let care = Care {
            every: LOOK_EVERY,
            called_off: "the job's run was called off",
        };
        let whose = self.whose();
        let (finished, discarded) = self.run_to_its_end(launch, streams, &seen, &care, |_| {})?;
        Ok(ScriptRun {
            discarded,
            ..self.script_run(&whose, finished, &seen, timeout)
        })
    }
}
