//! `cronjob`: work that is to be done later, or again and again.
//!
//! A job is a note in a file: what to do and when. The file lies in a
//! directory of its own and so does the authority to write it. A job made here
//! may do nothing by itself: it runs with the grants the person gave that job,
//! each with its end, and nobody is there to be asked.

mod create;
mod expression;
pub mod jobs;
mod now;
pub mod schedule;
pub mod turns;
mod update;
pub mod wording;

use jiff::Zoned;
use serde_json::{Map, Value, json};

use self::jobs::{Jobs, Meant};
use crate::{
    ambient,
    runtime::{Fate, Hands, Job, Stop, ToolResult},
    text::{
        args::{self, Declared},
        pyjson, pytext,
    },
};

/// What a call's way may end in before its end: a refusal of the tool itself,
/// or a stop.
enum Short {
    Told(ToolResult),
    Stop(Stop),
}

impl From<Stop> for Short {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<String> for Short {
    fn from(message: String) -> Self {
        Self::Told(failure(&message))
    }
}

fn failure(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"error": message, "success": false}))
}

fn told(value: &Value) -> ToolResult {
    ToolResult {
        text: pyjson::ascii(&pyjson::indented(value)),
        fate: Fate::Ran,
    }
}

fn not_told(value: &Value) -> ToolResult {
    ToolResult {
        fate: Fate::ToolError,
        ..told(value)
    }
}

const DECLARED: [(&str, Declared); 5] = [
    ("repeat", Declared::Whole),
    ("no_agent", Declared::Truth),
    ("skills", Declared::Texts),
    ("context_from", Declared::Texts),
    ("enabled_toolsets", Declared::Texts),
];

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(given, &DECLARED);
    match act(hands, &given) {
        Ok(result) | Err(Short::Told(result)) => Ok(result),
        Err(Short::Stop(stop)) => Err(stop),
    }
}

fn act(hands: &mut Hands<'_>, given: &Map<String, Value>) -> Result<ToolResult, Short> {
    let now = ambient::now_here();
    let action = action(given)?;
    match action.as_str() {
        "create" => return create::create(hands, given, &now),
        "list" => {
            let jobs = Jobs::read(hands)??;
            let everything = given
                .get("include_disabled")
                .is_none_or(|all| args::truthy(Some(all)));
            let shown: Vec<Value> = jobs
                .all
                .iter()
                .filter(|job| everything || jobs::enabled(job))
                .map(jobs::shown)
                .collect();
            return Ok(told(
                &json!({"success": true, "count": shown.len(), "jobs": shown}),
            ));
        }
        _ => {}
    }
    if !args::truthy(given.get("job_id")) {
        return Err(format!("job_id is required for action '{action}'").into());
    }
    let mut jobs = Jobs::read(hands)??;
    let at = meant(&jobs, given.get("job_id"))?;
    let Some(job) = jobs.all.get_mut(at) else {
        return Err("the list of jobs changed".to_owned().into());
    };
    match action.as_str() {
        "remove" => {
            let gone = jobs.all.remove(at);
            jobs.write(hands, &now)?;
            let name = jobs::name(&gone);
            Ok(told(&json!({
                "success": true,
                "message": format!("Cron job '{name}' removed."),
                "removed_job": {
                    "id": jobs::text(&gone, "id"), "name": name, "schedule": jobs::display(&gone),
                },
            })))
        }
        "pause" => {
            update::put(job, "enabled", false);
            update::put(job, "state", "paused");
            update::put(job, "paused_at", schedule::iso(&now));
            update::put(
                job,
                "paused_reason",
                given.get("reason").cloned().unwrap_or(Value::Null),
            );
            changed(hands, &jobs, at, &now)
        }
        "resume" => {
            let plan = job.get("schedule").cloned().unwrap_or(Value::Null);
            let next = schedule::next(&plan, None, &now);
            if next.is_none() && plan.get("kind").and_then(Value::as_str) == Some("once") {
                let at = plan.get("run_at").and_then(Value::as_str);
                return Err(format!(
                    "Cannot resume: one-shot time {} is in the past (grace window: {}s) and will never fire.",
                    at.unwrap_or("unknown"),
                    schedule::GRACE_SECONDS
                )
                .into());
            }
            update::put(job, "enabled", true);
            update::put(job, "state", "scheduled");
            update::put(job, "paused_at", Value::Null);
            update::put(job, "paused_reason", Value::Null);
            update::put(job, "next_run_at", next);
            changed(hands, &jobs, at, &now)
        }
        "run" | "run_now" | "trigger" => now::run(hands, &mut jobs, at, &now),
        "update" => {
            update::apply(hands, given, job, &now)?;
            changed(hands, &jobs, at, &now)
        }
        _ => {
            let action = given.get("action").map_or_else(String::new, args::text_of);
            Err(format!("Unknown cron action '{action}'").into())
        }
    }
}

fn note(shown: &mut Value, field: &str, value: Value) {
    if let Some(shown) = shown.as_object_mut() {
        shown.insert(field.to_owned(), value);
    }
}

fn changed(
    hands: &mut Hands<'_>,
    jobs: &Jobs,
    at: usize,
    now: &Zoned,
) -> Result<ToolResult, Short> {
    jobs.write(hands, now)?;
    let shown = jobs.all.get(at).map_or(Value::Null, jobs::shown);
    Ok(told(&json!({"success": true, "job": shown})))
}

fn action(given: &Map<String, Value>) -> Result<String, Short> {
    match given.get("action") {
        Some(Value::String(action)) => Ok(pytext::strip(action).to_lowercase()),
        other if !args::truthy(other) => Ok(String::new()),
        other => Err(format!(
            "'{}' object has no attribute 'strip'",
            args::type_name(other)
        )
        .into()),
    }
}

fn meant(jobs: &Jobs, word: Option<&Value>) -> Result<usize, Short> {
    let Some(Value::String(word)) = word else {
        return Err(format!(
            "'{}' object has no attribute 'lower'",
            args::type_name(word)
        )
        .into());
    };
    match jobs.meant(word) {
        Meant::One(at) => Ok(at),
        Meant::None => Err(Short::Told(not_told(&json!({
            "success": false,
            "error": format!("Job with ID or name '{word}' not found. Use cronjob(action='list') to inspect jobs."),
        })))),
        Meant::Several(named) => {
            let found: Vec<&Job> = named.iter().filter_map(|at| jobs.all.get(*at)).collect();
            let ids: Vec<&str> = found.iter().map(|job| jobs::text(job, "id")).collect();
            let matches: Vec<Value> = found
                .iter()
                .map(|job| {
                    json!({
                        "id": jobs::text(job, "id"),
                        "name": jobs::name(job),
                        "schedule": jobs::display(job),
                        "next_run_at": job.get("next_run_at"),
                    })
                })
                .collect();
            Err(Short::Told(not_told(&json!({
                "success": false,
                "error": format!(
                    "Job name '{word}' is ambiguous \u{2014} matches {} jobs: {}. Use the job ID instead.",
                    ids.len(),
                    ids.join(", ")
                ),
                "matches": matches,
            }))))
        }
    }
}
