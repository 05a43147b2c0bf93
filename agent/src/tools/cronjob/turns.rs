//! Whose turn a job's run is, and what is noted of it afterwards.
//!
//! The same for a job that is due and for one that is run by a call: a run is
//! claimed before it begins and noted after it, both in the list of jobs, so
//! that neither two programs nor a crash run a job once too often.

use std::time::Duration;

use jiff::Zoned;
use serde_json::{Map, Value, json};

use super::{jobs, schedule};
use crate::{
    runtime::{Became, Job},
    text::args,
};

/// How long a run may take altogether.
pub const RUN_MAX: Duration = Duration::from_secs(600);
/// How long a claim counts that nobody took back: Hermes' own (`claim_job_for_fire`).
const CLAIM_MAX: Duration = Duration::from_secs(300);
/// One of ours counts as long as its run may take, and a minute to end it and to note it:
/// else a run that takes longer than Hermes' claims is begun a second time beside itself.
const OUR_CLAIM_MAX: Duration = RUN_MAX.saturating_add(Duration::from_secs(60));
/// How ours are told, before the number of the process.
const OURS: &str = "hermitcrab:";

/// What came of claiming a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It may begin.
    Won,
    /// The job is paused.
    Paused,
    /// Somebody else runs it.
    Taken,
    /// It ran as often as it was to, and is to be taken off the list.
    Spent,
}

/// Who claims a run, for people to read.
pub fn claimant() -> String {
    format!("{OURS}{}", std::process::id())
}

/// Claims a run. What it changes in the job has to be on the disk before the
/// run begins: the next time is later by then, so that no crash runs it twice.
pub fn claim(job: &mut Job, by: &str, now: &Zoned) -> Claim {
    if !jobs::enabled(job) || jobs::text(job, "state") == "paused" {
        return Claim::Paused;
    }
    if is_claimed(job, now) {
        return Claim::Taken;
    }
    if let Some((times, completed)) = once_so_often(job) {
        if completed as f64 >= times {
            return Claim::Spent;
        }
        set_completed(job, completed.saturating_add(1));
    }
    let began = schedule::iso(now);
    let next = schedule::next(&plan(job), Some(&began), now);
    job.insert("next_run_at".to_owned(), next.into());
    job.insert("fire_claim".to_owned(), json!({"at": began, "by": by}));
    Claim::Won
}

/// The next time of a recurring job that is on the list without one, as one is that somebody
/// wrote into the list by hand: else it would never run, and nothing would say so. One for a
/// single moment has no next time once it began.
pub fn recovered(job: &Job, now: &Zoned) -> Option<String> {
    let waits = matches!(jobs::text(job, "state"), "" | "scheduled");
    if !jobs::enabled(job) || !waits || !jobs::text(job, "next_run_at").is_empty() {
        return None;
    }
    let plan = plan(job);
    match plan.get("kind").and_then(Value::as_str) {
        Some("cron" | "interval") => schedule::next(&plan, Some(&schedule::iso(now)), now),
        _ => None,
    }
}

/// Whether a run was claimed not long ago. A claim of the future is none.
pub fn is_claimed(job: &Job, now: &Zoned) -> bool {
    let claim = job.get("fire_claim");
    let field = |name: &str| claim?.get(name)?.as_str();
    let counts = match field("by").is_some_and(|by| by.starts_with(OURS)) {
        true => OUR_CLAIM_MAX,
        false => CLAIM_MAX,
    };
    let at = field("at").and_then(|at| schedule::kept(at, now));
    at.is_some_and(|at| {
        // A negative age does not fit, and is no claim.
        let age = now.timestamp().as_second() - at.timestamp().as_second();
        at <= *now && u64::try_from(age).is_ok_and(|age| age < counts.as_secs())
    })
}

/// Notes a run that ended; `false` if the job is to be taken off the list.
pub fn note(job: &mut Job, became: &Became, now: &Zoned) -> bool {
    let mut put = |field: &str, value: Value| job.insert(field.to_owned(), value);
    let status = if became.error.is_none() {
        "ok"
    } else {
        "error"
    };
    put("last_run_at", schedule::iso(now).into());
    put("last_status", status.into());
    put("last_error", became.error.clone().into());
    put("last_delivery_error", became.undelivered.clone().into());
    put("fire_claim", Value::Null);
    if job.get("run_claim").is_some_and(|claim| !claim.is_null()) {
        job.insert("run_claim".to_owned(), Value::Null);
    }
    if args::truthy(job.get("repeat")) {
        let mut completed = completed(job);
        // A run of a job for one moment was counted when it was claimed.
        if !(once_so_often(job).is_some() && completed > 0) {
            completed = completed.saturating_add(1);
            set_completed(job, completed);
        }
        let times = times(job).filter(|times| *times > 0.0);
        if times.is_some_and(|times| completed as f64 >= times) {
            return false;
        }
    }
    let plan = plan(job);
    let next = schedule::next(&plan, Some(&schedule::iso(now)), now);
    let kind = plan.get("kind").and_then(Value::as_str).unwrap_or_default();
    match &next {
        Some(_) if jobs::text(job, "state") == "paused" => {}
        Some(_) => {
            job.insert("state".to_owned(), "scheduled".into());
        }
        None if matches!(kind, "cron" | "interval") => {
            job.insert("state".to_owned(), "error".into());
            if job.get("last_error").is_none_or(Value::is_null) {
                job.insert(
                    "last_error".to_owned(),
                    "the schedule has no next time".into(),
                );
            }
        }
        None => {
            job.insert("enabled".to_owned(), false.into());
            job.insert("state".to_owned(), "completed".into());
        }
    }
    job.insert("next_run_at".to_owned(), next.into());
    true
}

fn plan(job: &Job) -> Value {
    job.get("schedule").cloned().unwrap_or(Value::Null)
}

fn of_repeat<'j>(job: &'j Job, field: &str) -> Option<&'j Value> {
    job.get("repeat")?.get(field)
}

fn completed(job: &Job) -> i64 {
    of_repeat(job, "completed")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// How often it is to run, where that is said; a number of any kind.
fn times(job: &Job) -> Option<f64> {
    of_repeat(job, "times").and_then(Value::as_f64)
}

/// Of a job for one moment with a number of times: that, and how often it ran.
fn once_so_often(job: &Job) -> Option<(f64, i64)> {
    let is_once = plan(job).get("kind").and_then(Value::as_str) == Some("once");
    let times = times(job).filter(|times| is_once && *times > 0.0)?;
    Some((times, completed(job)))
}

fn set_completed(job: &mut Job, completed: i64) {
    let mut repeat = match job.get("repeat") {
        Some(Value::Object(repeat)) => repeat.clone(),
        _ => Map::new(),
    };
    repeat.insert("completed".to_owned(), completed.into());
    job.insert("repeat".to_owned(), repeat.into());
}

#[cfg(test)]
mod tests {
    use jiff::{Span, Zoned};
    use serde_json::{Value, json};

    use super::{Became, Claim, Job, claim, claimant, is_claimed, note, recovered};

    fn now() -> Zoned {
        "2026-11-22T12:00:00+00:00[UTC]".parse().unwrap()
    }

    fn job(fields: Value) -> Job {
        let mut job = json!({
            "id": "a", "prompt": "x", "enabled": true, "state": "scheduled",
            "schedule": {"kind": "interval", "minutes": 60},
            "repeat": {"times": null, "completed": 0},
            "next_run_at": "2026-11-22T11:00:00+00:00",
        });
        for (name, value) in fields.as_object().unwrap() {
            job[name] = value.clone();
        }
        job.as_object().unwrap().clone()
    }

    #[test]
    fn a_claim_is_won_once_and_moves_the_next_time() {
        let mut one = job(json!({}));
        assert_eq!(claim(&mut one, "me", &now()), Claim::Won);
        assert_eq!(one["next_run_at"], "2026-11-22T13:00:00+00:00");
        assert_eq!(claim(&mut one, "you", &now()), Claim::Taken);
        let later = |seconds: i64| now().checked_add(Span::new().seconds(seconds)).unwrap();
        assert!(is_claimed(&one, &later(299)));
        assert!(!is_claimed(&one, &later(300)));
        // One of ours counts while its run may still go on.
        let mut ours = job(json!({}));
        assert_eq!(claim(&mut ours, &claimant(), &now()), Claim::Won);
        assert!(is_claimed(&ours, &later(659)));
        assert!(!is_claimed(&ours, &later(660)));
        // A clock that was set back does not block a job for good.
        assert!(!is_claimed(&one, &later(-1)));
        assert!(note(&mut one, &Became::default(), &now()));
        assert_eq!(claim(&mut one, "you", &now()), Claim::Won);
    }

    #[test]
    fn a_paused_job_is_not_claimed() {
        for fields in [json!({"enabled": false}), json!({"state": "paused"})] {
            let mut one = job(fields);
            let before = one.clone();
            assert_eq!(claim(&mut one, "me", &now()), Claim::Paused);
            assert_eq!(one, before);
        }
    }

    #[test]
    fn a_job_for_one_moment_is_counted_when_it_is_claimed() {
        let moment = json!({"kind": "once", "run_at": "2026-11-22T12:00:00+00:00"});
        let mut one = job(json!({"schedule": moment, "repeat": {"times": 1, "completed": 0}}));
        assert_eq!(claim(&mut one, "me", &now()), Claim::Won);
        assert_eq!(one["repeat"]["completed"], 1);
        assert_eq!(one["next_run_at"], Value::Null);
        // What crashed in the middle is not run again.
        let mut crashed = one.clone();
        crashed.insert("fire_claim".to_owned(), Value::Null);
        assert_eq!(claim(&mut crashed, "me", &now()), Claim::Spent);
        assert!(!note(&mut one, &Became::default(), &now()));

        let mut endless = job(json!({"schedule": moment}));
        assert_eq!(claim(&mut endless, "me", &now()), Claim::Won);
        assert!(note(&mut endless, &Became::default(), &now()));
        assert_eq!(endless["state"], "completed");
        assert_eq!(endless["enabled"], false);
    }

    #[test]
    fn what_became_of_a_run_is_noted_and_the_last_one_takes_the_job_off() {
        let mut one = job(json!({"repeat": {"times": 2, "completed": 0}}));
        let failed = Became {
            error: Some("no".to_owned()),
            undelivered: None,
        };
        assert!(note(&mut one, &failed, &now()));
        assert_eq!(one["last_status"], "error");
        assert_eq!(one["last_error"], "no");
        assert_eq!(one["repeat"], json!({"times": 2, "completed": 1}));
        assert!(!note(&mut one, &Became::default(), &now()));
    }

    #[test]
    fn a_run_that_ended_leaves_no_claim_and_a_job_that_was_paused_meanwhile_paused() {
        let plan = json!({"kind": "interval", "minutes": 60});
        let mut one = job(json!({
            "schedule": plan, "state": "paused", "run_claim": {"by": "me"}, "fire_claim": {"by": "me"},
        }));
        let became = Became {
            error: None,
            undelivered: Some("nobody there".to_owned()),
        };
        assert!(note(&mut one, &became, &now()));
        assert_eq!(one["state"], "paused");
        assert_eq!(one["last_status"], "ok");
        assert_eq!(one["last_delivery_error"], "nobody there");
        assert_eq!(
            (&one["fire_claim"], &one["run_claim"]),
            (&Value::Null, &Value::Null)
        );
        // The next run of one that is not paused is told, and what was wrong is not any more.
        one.insert("state".to_owned(), "scheduled".into());
        assert!(note(&mut one, &Became::default(), &now()));
        assert_eq!(one["state"], "scheduled");
        assert_eq!(one["last_delivery_error"], Value::Null);
    }

    #[test]
    fn a_job_without_a_next_time_is_given_the_one_its_plan_says() {
        let now = now();
        let job = |more: Value| {
            let mut job = json!({
                "id": "j", "schedule": {"kind": "cron", "expr": "0 9 * * 1"}, "enabled": true,
            });
            for (name, value) in more.as_object().unwrap() {
                job[name] = value.clone();
            }
            job.as_object().unwrap().clone()
        };
        let next = |more: Value| recovered(&job(more), &now);
        // The 22nd is a Sunday.
        let monday = next(json!({})).unwrap();
        assert!(monday.starts_with("2026-11-23T09:00:00"), "{monday}");
        let hourly = next(json!({"schedule": {"kind": "interval", "minutes": 60}})).unwrap();
        assert!(hourly.starts_with("2026-11-22T13:00:00"), "{hourly}");
        for more in [
            json!({"enabled": false}),
            json!({"state": "completed"}),
            json!({"next_run_at": "2026-11-22T12:30:00+00:00"}),
            json!({"schedule": {"kind": "once", "run_at": "2026-11-22T12:00:30+00:00"}}),
        ] {
            assert_eq!(next(more.clone()), None, "{more}");
        }
    }
}
