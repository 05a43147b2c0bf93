//! Lines in worlds: what a bare shell makes of one, and what the agent does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bisim_world::WorldError;
use bisim_world::protocol::{Context, End, Job, RawTrace, Step, StepOutcome};
use serde_json::json;

use crate::case::CWD_DEFAULT;
use crate::figures::grouped;
use crate::generate::benign::{Does, does};
use crate::generate::judge;
use crate::generate::paths::Holding;
use crate::interrupt::Interrupt;
use crate::pulse::{Done, Pulse};
use crate::subject::Subject;

/// How long what has to be there before and the line may take together.
const DEADLINE_MS: u64 = 60_000;

/// Programs instead of their stand-ins, and moments that are told once.
const BEFORE: &str = "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    GIT_AUTHOR_DATE=2026-02-03T04:05:06Z GIT_COMMITTER_DATE=2026-02-03T04:05:06Z\n";

/// What was seen of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// What became of which name below the workspace.
    pub(super) does: Does,
    /// Whether the line says that it worked.
    pub(super) ok: bool,
    /// What was asked or refused, in words.
    pub(super) stopped: Option<String>,
    /// What it said.
    pub(super) text: String,
}

/// A job of two steps: what has to be there before, and the line.
pub(super) fn job(prepare: &str, command: &str) -> Job {
    let step = |text: &str| Step::Call {
        tool: "terminal".to_owned(),
        args: json!({ "command": format!("{BEFORE}{text}") }),
        by: None,
    };
    let mut settings = serde_json::Map::new();
    settings.insert("approvals.mode".to_owned(), json!("manual"));
    Job {
        context: Context::Interactive,
        held: Holding::All.held(),
        script: vec![step(prepare), step(command)],
        settings,
        deadline_ms: DEADLINE_MS,
        ..judge::job("")
    }
}

/// Runs it.
///
/// # Errors
/// The harness failed, or the line did not end.
pub(super) fn see(
    subject: &mut dyn Subject,
    prepare: &str,
    command: &str,
) -> Result<Seen, WorldError> {
    let trace = subject.run(job(prepare, command))?;
    seen(&trace).map_err(|why| WorldError::new("run ordinary work", format!("{why}: {command}")))
}

fn seen(trace: &RawTrace) -> Result<Seen, String> {
    let (End::Finished, [before, after]) = (&trace.end, trace.steps.as_slice()) else {
        return Err(format!("{:?}", trace.end));
    };
    let stopped = [before, after].into_iter().find_map(|step| {
        let asked = step
            .questions
            .first()
            .map(|question| question.shown.clone());
        match &step.outcome {
            StepOutcome::Ran => asked,
            other => Some(format!("{other:?} {}", asked.unwrap_or_default())),
        }
    });
    Ok(Seen {
        does: does::between(&before.effects, &after.effects, CWD_DEFAULT),
        ok: after
            .answer
            .pointer("/exit_code")
            .and_then(serde_json::Value::as_i64)
            == Some(0),
        stopped,
        text: after.text.clone(),
    })
}

/// Does something with each of these, by several workers; in their order.
///
/// # Errors
/// The first failure, or that it was interrupted.
pub(super) fn over<W: Send, I: Sync, O: Send>(
    workers: Vec<W>,
    (items, what): (&[I], &'static str),
    interrupt: &Interrupt,
    act: impl Fn(&mut W, &I) -> Result<O, WorldError> + Sync,
) -> Result<Vec<O>, WorldError> {
    let next = AtomicUsize::new(0);
    let (seen, all) = (Done::default(), items.len() as u64);
    let _pulse = Pulse::counting(&seen, move |seen| {
        format!(
            "{} of {} {what} seen in worlds",
            grouped(seen),
            grouped(all)
        )
    });
    let done: Mutex<Vec<(usize, O)>> = Mutex::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .into_iter()
            .map(|mut worker| {
                let (next, done, act, seen) = (&next, &done, &act, &seen);
                scope.spawn(move || {
                    while !interrupt.is_set() {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(at) else { break };
                        let out = act(&mut worker, item)?;
                        done.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((at, out));
                        seen.add(1);
                    }
                    Ok(())
                })
            })
            .collect();
        let mut all = Ok(());
        for one in running {
            let ended = one
                .join()
                .unwrap_or_else(|_| Err(WorldError::new("run ordinary work", "a thread died")));
            all = all.and(ended);
        }
        all
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    if done.len() < items.len() {
        return Err(WorldError::new(
            "run ordinary work",
            "the run was interrupted",
        ));
    }
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, out)| out).collect())
}
