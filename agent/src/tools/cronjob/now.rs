//! `run`: a job is run at once, and the call waits for its end.
//!
//! The run holds what its job was granted. The caller changes the list of jobs and
//! keeps what came of it below the same directory, with authority of its own, and
//! does so before the run begins where the run depends on it.

use jiff::Zoned;
use serde_json::{Value, json};

use super::{
    Short,
    jobs::{self, Jobs},
    note,
    turns::{self, Claim, claimant},
};
use crate::{
    ambient,
    runtime::{Hands, Job, JobRun, ToolResult},
};

const PAUSED: &str = "Job is paused/disabled; resume it before running.";
const TAKEN: &str = "Job is already being fired by the scheduler; not run again.";
const GONE: &str = "Job no longer exists; nothing to run.";

pub(super) fn run(
    hands: &mut Hands<'_>,
    jobs: &mut Jobs,
    at: usize,
    now: &Zoned,
) -> Result<ToolResult, Short> {
    hands.may_run_jobs()?;
    let Some(job) = jobs.all.get_mut(at) else {
        return Ok(skipped(&Job::new(), GONE));
    };
    let id = jobs::text(job, "id").to_owned();
    let was = job.clone();
    match turns::claim(job, &claimant(), now) {
        Claim::Paused => return Ok(skipped(job, PAUSED)),
        Claim::Taken => return Ok(skipped(job, TAKEN)),
        Claim::Spent => {
            jobs.all.remove(at);
            jobs.write(hands, now)?;
            return Ok(ran(None, &id, None));
        }
        Claim::Won => jobs.write(hands, now)?,
    }
    let run = hands.run_job(&was, now)?;
    // What is written next was decided by the call, before anything of the run
    // reached the caller.
    let noted = noted(hands, &id, &run, now);
    hands.hear_of(&run)?;
    noted
}

/// Keeps what came of a run and notes it in the list.
fn noted(hands: &mut Hands<'_>, id: &str, run: &JobRun, now: &Zoned) -> Result<ToolResult, Short> {
    let mut became = run.became.clone();
    if let Some(document) = &run.document
        && let Err(why) = keep(hands, id, document, now)?
    {
        became.error = Some(why);
    }
    // Others may have changed the list meanwhile.
    let ended = ambient::now_here();
    let mut after = Jobs::read(hands)??;
    if let Some(place) = after.at(id)
        && let Some(job) = after.all.get_mut(place)
    {
        if !turns::note(job, &became, &ended) {
            after.all.remove(place);
        }
        after.write(hands, &ended)?;
    }
    let left = after.at(id).and_then(|place| after.all.get(place));
    Ok(ran(left, id, left.and(became.error.as_deref())))
}

/// Keeps what came of a run, its owner's alone. Where that may not be or fails, the
/// run has failed in the words of whoever says so.
fn keep(
    hands: &mut Hands<'_>,
    id: &str,
    document: &str,
    now: &Zoned,
) -> Result<Result<(), String>, Short> {
    if !jobs::is_a_name(id) {
        return Ok(Err(format!(
            "the job's id {id:?} is no name of a directory"
        )));
    }
    let name = now.strftime("%Y-%m-%d_%H-%M-%S");
    let place = hands.resolve(&format!("~/.hermes/cron/output/{id}/{name}.md"))?;
    let kept = hands
        .before(&place)
        .and_then(|before| hands.write_apart(&place, &before, document.as_bytes()));
    Ok(kept.map(drop).map_err(|stop| match stop {
        crate::runtime::Stop::Refused { denial, .. } => {
            format!(
                "what came of it may not be kept ({}): {denial}",
                denial.code()
            )
        }
        other => format!("what came of it cannot be kept: {other:?}"),
    }))
}

fn skipped(job: &Job, why: &str) -> ToolResult {
    let mut shown = jobs::shown(job);
    note(&mut shown, "executed", false.into());
    note(&mut shown, "execution_success", false.into());
    note(&mut shown, "execution_skipped", why.into());
    super::told(&json!({"success": true, "job": shown}))
}

/// A job that is off the list has no state by which it is said to have worked.
fn ran(left: Option<&Job>, id: &str, error: Option<&str>) -> ToolResult {
    let gone = || Job::from_iter([("id".to_owned(), Value::from(id))]);
    let job = left.cloned().unwrap_or_else(gone);
    let mut shown = jobs::shown(&job);
    let worked = jobs::text(&job, "last_status") == "ok";
    note(&mut shown, "executed", true.into());
    note(&mut shown, "execution_success", worked.into());
    if let Some(error) = error {
        note(&mut shown, "execution_error", error.into());
    }
    super::told(&json!({"success": true, "job": shown}))
}
