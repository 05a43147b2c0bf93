//! One run of a job: from its words or its program to what came of it.
//!
//! A run is a session of its own. It holds what its job was granted and nothing of
//! whoever started it, nobody is there to be asked, and its effects pass the monitor
//! of its own session. It must never open that session itself, read anything the
//! caller holds, or start another job.

mod limit;
mod refused;
mod script;
mod sources;
mod words;

use std::path::Path;

use hermitcrab_sandbox::spawn::Ending;
use jiff::Zoned;

pub use self::{
    limit::Limit,
    script::{Script, content},
    sources::named as sources_of,
};
use self::{limit::Switch, refused::Watching, sources::Source};
pub use crate::tools::cronjob::turns::RUN_MAX;
use crate::{
    chat::{Chat, TurnEnd, is_no_answer},
    model::ModelPort,
    runtime::{Became, Job, JobRun, Lent, Refusals, Runtime, Stop},
    text::{args, output},
    tools::cronjob::jobs,
};

/// A moment by the wall, as jobs are noted with.
pub type Moment = Zoned;

/// Tools no run is offered: it starts no other job and asks nobody.
const NOT_FOR_JOBS: [&str; 2] = ["cronjob", "clarify"];
const NOTHING_SAID: &str =
    "Agent completed but produced empty response (model error, timeout, or misconfiguration)";

/// Whether a model is needed to run a job.
#[must_use]
pub fn needs_model(job: &Job) -> bool {
    !args::truthy(job.get("no_agent"))
}

/// What a run works with.
pub struct Work<'w> {
    /// The job, as it was when its run was claimed.
    pub job: &'w Job,
    /// Its program, if it has one, or why that cannot be read.
    pub script: Option<Result<Script, String>>,
    /// The model's name and the way to it, where one is needed.
    pub model: Option<(&'w str, &'w mut dyn ModelPort)>,
    /// The directory of jobs, where what came of other jobs is kept.
    pub cron: &'w Path,
    /// What its caller lends to it.
    pub lent: &'w Lent,
    /// How long it may take.
    pub limit: &'w Limit,
    /// The wall's time.
    pub now: &'w Zoned,
}

/// Carries a run out in a session that was opened for it, and ends that session.
pub fn work(runtime: &mut Runtime, work: Work<'_>) -> JobRun {
    let job = work.job;
    runtime.show_progress(Box::new(Switch(work.limit.cancel().clone())));
    work.lent.give_to(runtime);
    let mut refused = Refusals::default();
    let (document, said) = if needs_model(job) {
        by_a_model(runtime, work, &mut refused)
    } else {
        let (document, said) = by_a_script(runtime, &work);
        (Some(document), said)
    };
    let undelivered = match &said {
        Ok(said) => words::undelivered(job, said, false),
        Err(_) => words::undelivered(job, "", true),
    };
    // What ended in the background is decided while the job holds something, and told.
    runtime.wind_up();
    let was_lost = !runtime.take_lost().is_empty();
    let was_refused = was_lost || said.as_ref().is_err_and(|why| why.is_refusal);
    let (said, error) = match said {
        Ok(said) if said.trim().is_empty() => (said, Some(NOTHING_SAID.to_owned())),
        Ok(said) => (said, None),
        Err(why) => (String::new(), Some(why.text)),
    };
    let label = runtime.seen_by(runtime.first_agent());
    let ended = runtime.end_session();
    let error = match ended {
        Ok(()) => error,
        // What is not on record is not said to have worked.
        Err(trouble) => Some(error.unwrap_or_else(|| trouble.to_string())),
    };
    JobRun {
        document,
        said,
        became: Became { error, undelivered },
        was_refused: was_refused || !refused.lines.is_empty(),
        refused,
        label,
    }
}

/// Why a run failed.
#[derive(Clone, Debug)]
struct Why {
    text: String,
    is_refusal: bool,
}

impl From<String> for Why {
    fn from(text: String) -> Self {
        Self {
            text,
            is_refusal: false,
        }
    }
}

impl Why {
    fn refused(text: String) -> Self {
        Self {
            text,
            is_refusal: true,
        }
    }
}

type Said = Result<String, Why>;

fn by_a_script(runtime: &mut Runtime, work: &Work<'_>) -> (String, Said) {
    let (job, now) = (work.job, work.now);
    let Some(script) = &work.script else {
        let why = "no_agent=True but no script is set for this job";
        return (String::new(), Err(why.to_owned().into()));
    };
    match collected(runtime, script, work.limit) {
        Err(why) => {
            let document = words::of_a_script(job, now, Some("script failed"), &why.text);
            (document, Err(why))
        }
        Ok(output) if !script::wakes(&output) => {
            let document = words::of_a_script(job, now, Some("silent (wakeAgent=false)"), "");
            (document, Ok(words::SILENT.to_owned()))
        }
        Ok(output) if output.is_empty() => {
            let document = words::of_a_script(job, now, Some("silent (empty output)"), "");
            (document, Ok(words::SILENT.to_owned()))
        }
        Ok(output) => (words::of_a_script(job, now, None, &output), Ok(output)),
    }
}

/// What a job's program printed, or why it failed.
fn collected(runtime: &mut Runtime, script: &Result<Script, String>, limit: &Limit) -> Said {
    let script = script.as_ref().map_err(|why| Why::from(why.clone()))?;
    let run = match runtime.run_job_script(script.program, &script.text, RUN_MAX) {
        Ok(run) => run,
        Err(Stop::Refused { denial, .. }) => {
            let code = denial.code();
            return Err(Why::refused(format!(
                "Denied ({code}): {denial}. Next step: {}.",
                code.next_step()
            )));
        }
        Err(stop) => return Err(format!("Script execution failed: {stop:?}").into()),
    };
    let text = |captured: &hermitcrab_sandbox::spawn::Captured| {
        output::cleaned(&String::from_utf8_lossy(&captured.to_bytes()), "")
    };
    if limit.is_interrupted() {
        return Err("Script was interrupted before it finished"
            .to_owned()
            .into());
    }
    if limit.cancel().is_thrown() || run.ending == Ending::TimedOut {
        return Err(format!("Script timed out after {}s", RUN_MAX.as_secs()).into());
    }
    if let Some(denial) = &run.discarded {
        let code = denial.code();
        return Err(Why::refused(format!(
            "The script ran on a copy and its changes were discarded ({code}): {denial}. Next step: {}.",
            code.next_step()
        )));
    }
    let status = match run.ending {
        Ending::Exited(0) => return Ok(text(&run.stdout)),
        Ending::Exited(status) => status,
        Ending::Signalled(signal) => -signal,
        Ending::TimedOut | Ending::OutOfMemory | Ending::OutOfRoom | Ending::Killed => -9,
    };
    let mut parts = vec![format!("Script exited with code {status}")];
    for (name, said) in [("stderr", text(&run.stderr)), ("stdout", text(&run.stdout))] {
        if !said.is_empty() {
            parts.push(format!("{name}:\n{said}"));
        }
    }
    Err(parts.join("\n").into())
}

fn by_a_model(
    runtime: &mut Runtime,
    work: Work<'_>,
    refused: &mut Refusals,
) -> (Option<String>, Said) {
    let (job, now) = (work.job, work.now);
    let collected = work
        .script
        .as_ref()
        .map(|script| collected(runtime, script, work.limit));
    let silent = || Ok(words::SILENT.to_owned());
    match &collected {
        Some(Ok(output)) if !script::wakes(output) => {
            return (Some(words::of_no_need(job, now)), silent());
        }
        Some(Ok(output)) if output.is_empty() => return (Some(String::new()), silent()),
        Some(Ok(_) | Err(_)) | None => {}
    }
    let collected = collected.map(|said| said.map_err(|why| why.text));
    let sources = match heard(runtime, work.cron, job) {
        Ok(sources) => sources,
        Err(why) => return (None, Err(why)),
    };
    let asked = match words::asked(job, collected.as_ref(), &sources) {
        Ok(asked) => asked,
        Err(why) => {
            let document = words::of_a_blocked_prompt(job, now, &why);
            return (Some(document), Err(Why::refused(why)));
        }
    };
    let answer = match work.model {
        Some(model) => {
            let mut watching = Watching::until(Switch(work.limit.cancel().clone()));
            let answer = answered(runtime, model, &asked, (work.limit, &mut watching), job);
            *refused = watching.refused();
            answer
        }
        None => Err("RuntimeError: no model is configured for this job".to_owned()),
    };
    let document = words::of_a_model(job, now, &asked, &answer);
    (Some(document), answer.map_err(Why::from))
}

/// What the jobs came to that this one goes on from. It is data that nobody here
/// wrote: that it was read counts before anything is done with it.
fn heard(runtime: &mut Runtime, cron: &Path, job: &Job) -> Result<Vec<Source>, Why> {
    let found = sources::last(cron, job)?;
    if !found.is_empty() {
        let ids: Vec<&str> = found.iter().map(|source| source.id.as_str()).collect();
        runtime.hear_of_jobs(&ids).map_err(|stop| match stop {
            Stop::Refused { denial, .. } => {
                Why::refused(format!("Denied ({}): {denial}", denial.code()))
            }
            other => Why::from(format!("RuntimeError: {other:?}")),
        })?;
    }
    Ok(found)
}

fn answered(
    runtime: &mut Runtime,
    (model, port): (&str, &mut dyn ModelPort),
    asked: &str,
    (limit, watching): (&Limit, &mut Watching),
    job: &Job,
) -> Result<String, String> {
    let mut chat = Chat::new(runtime, model).without(&NOT_FOR_JOBS);
    let turn = chat.turn_watched(runtime, port, asked, watching);
    let stopped = || {
        let name = jobs::name(job);
        if limit.is_interrupted() {
            return format!("InterruptedError: Cron job '{name}' was stopped before it finished");
        }
        format!(
            "TimeoutError: Cron job '{name}' was stopped after {}s",
            RUN_MAX.as_secs()
        )
    };
    match turn {
        Ok(turn) => match turn.end {
            TurnEnd::Answered
            | TurnEnd::CutOff
            | TurnEnd::RoundsSpent
            | TurnEnd::HeldBack
            | TurnEnd::Silent => Ok(Some(turn.text)
                .filter(|text| !is_no_answer(text))
                .unwrap_or_default()),
            TurnEnd::Stopped => Err(stopped()),
            TurnEnd::Halted | TurnEnd::GaveUp => Err(format!(
                "RuntimeError: {}",
                Some(turn.text.as_str())
                    .filter(|text| !text.trim().is_empty())
                    .unwrap_or("agent reported failure")
            )),
        },
        Err(_) if limit.cancel().is_thrown() => Err(stopped()),
        Err(error) => Err(format!("RuntimeError: {error}")),
    }
}
