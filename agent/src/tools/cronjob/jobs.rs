//! The file of jobs: read, looked through, written back, shown.
//!
//! It has the form the compared agent keeps its jobs in, so that jobs move
//! along with their user. It says what is to run and when; it never says what a
//! job may do.

use jiff::Zoned;
use serde_json::{Value, json};

use super::schedule;
use crate::{
    runtime::{Before, Hands, Job, Place, Stop},
    text::{args, pyjson, pytext},
};

/// Where the jobs are kept.
pub const FILE: &str = "~/.hermes/cron/jobs.json";

/// The jobs, and the file they came from.
pub struct Jobs {
    place: Place,
    before: Before,
    /// In the order they were made.
    pub all: Vec<Job>,
}

/// Which job a word means.
pub enum Meant {
    /// This one.
    One(usize),
    /// Several of that name.
    Several(Vec<usize>),
    /// None.
    None,
}

impl Jobs {
    /// Reads the file; no file is no jobs.
    ///
    /// # Errors
    /// Refused, or the file is something else; the inner error is for the model.
    pub fn read(hands: &mut Hands<'_>) -> Result<Result<Self, String>, Stop> {
        let place = hands.resolve(FILE)?;
        let before = hands.before(&place)?;
        let all = match &before {
            Before::Nothing => Ok(Vec::new()),
            Before::Long(_) | Before::Unread => {
                return Err(Stop::Io("`jobs.json` may not be read".to_owned()));
            }
            Before::File(bytes) => understood(bytes),
        };
        Ok(all.map(|all| Self { place, before, all }))
    }

    /// Writes the file back, its owner's alone.
    ///
    /// # Errors
    /// Refused, or the file system fails.
    pub fn write(&self, hands: &mut Hands<'_>, now: &Zoned) -> Result<(), Stop> {
        let text = pyjson::ascii(&pyjson::indented(&json!({
            "jobs": self.all, "updated_at": schedule::iso(now),
        })));
        hands
            .write_private(&self.place, &self.before, text.as_bytes())
            .map(drop)
    }

    /// The job of this id, else the one of this name.
    #[must_use]
    pub fn meant(&self, word: &str) -> Meant {
        if let Some(at) = self.at(word) {
            return Meant::One(at);
        }
        let word = word.to_lowercase();
        let named: Vec<usize> = self
            .all
            .iter()
            .enumerate()
            .filter(|(_, job)| text(job, "name").to_lowercase() == word)
            .map(|(at, _)| at)
            .collect();
        match named.as_slice() {
            [] => Meant::None,
            [one] => Meant::One(*one),
            _ => Meant::Several(named),
        }
    }

    /// Where the job of this id is.
    #[must_use]
    pub fn at(&self, id: &str) -> Option<usize> {
        self.all
            .iter()
            .position(|job| job.get("id").and_then(Value::as_str) == Some(id))
    }
}

/// The jobs in the bytes of a file.
///
/// # Errors
/// It is a file of something else, in words for the model.
pub fn understood(bytes: &[u8]) -> Result<Vec<Job>, String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("Cron database corrupted and unrepairable: {error}"))?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut map) => match map.remove("jobs") {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        },
        other => {
            return Err(format!(
                "Cron database corrupted: expected {{'jobs': [...]}}, got {}",
                args::type_name(Some(&other))
            ));
        }
    };
    // A line that is no job is not kept from the others.
    Ok(list
        .into_iter()
        .filter_map(|job| match job {
            Value::Object(job) => Some(job),
            _ => None,
        })
        .collect())
}

/// Whether an id can name a directory: the file of jobs may hold anything.
#[must_use]
pub fn is_a_name(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A field that is text, or nothing.
#[must_use]
pub fn text<'a>(job: &'a Job, field: &str) -> &'a str {
    job.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn or_null(job: &Job, field: &str) -> Value {
    job.get(field).cloned().unwrap_or(Value::Null)
}

/// The skills of a job, each once.
#[must_use]
pub fn skills(one: Option<&Value>, several: Option<&Value>) -> Vec<String> {
    let items: Vec<Value> = match several {
        None | Some(Value::Null) => one
            .filter(|one| args::truthy(Some(one)))
            .into_iter()
            .cloned()
            .collect(),
        Some(Value::Array(list)) => list.clone(),
        Some(other) => vec![other.clone()],
    };
    let mut skills: Vec<String> = Vec::new();
    for item in items.iter().filter(|item| args::truthy(Some(item))) {
        let name = pytext::strip(&args::text_of(item)).to_owned();
        if !name.is_empty() && !skills.contains(&name) {
            skills.push(name);
        }
    }
    skills
}

/// The name a job goes by.
#[must_use]
pub fn name(job: &Job) -> String {
    let given = job.get("name").filter(|name| !name.is_null());
    let given = given.map_or_else(String::new, args::text_of);
    let given = pytext::strip(&given);
    if !given.is_empty() {
        return given.to_owned();
    }
    let skills = skills(job.get("skill"), job.get("skills"));
    let label = [
        text(job, "prompt"),
        skills.first().map_or("", String::as_str),
        text(job, "script"),
        text(job, "id"),
    ]
    .into_iter()
    .find(|label| !label.is_empty())
    .unwrap_or("cron job");
    pytext::strip(pytext::head(label, 50)).to_owned()
}

/// How often it runs, in words.
#[must_use]
pub fn repeat(job: &Job) -> String {
    let field = |field: &str| job.get("repeat").and_then(|repeat| repeat.get(field));
    let done = field("completed").and_then(Value::as_i64).unwrap_or(0);
    match field("times").filter(|times| times.is_number()) {
        None => "forever".to_owned(),
        Some(times) if times.as_f64() == Some(1.0) && done == 0 => "once".to_owned(),
        Some(times) if times.as_f64() == Some(1.0) => "1/1".to_owned(),
        Some(times) if done == 0 => format!("{} times", args::text_of(times)),
        Some(times) => format!("{done}/{}", args::text_of(times)),
    }
}

/// Its schedule in words.
#[must_use]
pub fn display(job: &Job) -> String {
    let shown = pytext::strip(text(job, "schedule_display"));
    if !shown.is_empty() {
        return shown.to_owned();
    }
    ["display", "value", "expr", "run_at"]
        .into_iter()
        .filter_map(|field| job.get("schedule")?.get(field)?.as_str())
        .map(pytext::strip)
        .find(|shown| !shown.is_empty())
        .unwrap_or("?")
        .to_owned()
}

/// Its schedule for a person, also where the list says it in numbers alone; a model is
/// shown it by [`display`], as the compared agent shows it.
#[must_use]
pub fn in_words(job: &Job) -> String {
    let shown = display(job);
    let field = |name: &str| job.get("schedule")?.get(name);
    match (shown.as_str(), field("kind").and_then(Value::as_str)) {
        ("?", Some("interval")) => match field("minutes").and_then(Value::as_i64) {
            Some(minutes) if minutes > 0 => format!("every {minutes}m"),
            _ => "an interval of no length".to_owned(),
        },
        ("?", _) => "no schedule that is understood".to_owned(),
        _ => shown,
    }
}

/// Whether it runs at all.
#[must_use]
pub fn enabled(job: &Job) -> bool {
    job.get("enabled").is_none_or(|on| args::truthy(Some(on)))
}

/// A job as the model is shown it.
#[must_use]
pub fn shown(job: &Job) -> Value {
    let prompt = text(job, "prompt");
    let preview = if prompt.chars().count() > 100 {
        format!("{}...", pytext::head(prompt, 100))
    } else {
        prompt.to_owned()
    };
    let skills = skills(job.get("skill"), job.get("skills"));
    let state = match pytext::strip(text(job, "state")) {
        "" if enabled(job) => "scheduled",
        "" => "paused",
        state => state,
    };
    let mut out = json!({
        "job_id": text(job, "id"),
        "name": name(job),
        "skill": skills.first(),
        "skills": skills,
        "prompt_preview": preview,
        "model": or_null(job, "model"),
        "provider": or_null(job, "provider"),
        "base_url": or_null(job, "base_url"),
        "schedule": display(job),
        "repeat": repeat(job),
        "deliver": job.get("deliver").cloned().unwrap_or_else(|| "local".into()),
        "next_run_at": or_null(job, "next_run_at"),
        "last_run_at": or_null(job, "last_run_at"),
        "last_status": or_null(job, "last_status"),
        "last_delivery_error": or_null(job, "last_delivery_error"),
        "enabled": job.get("enabled").cloned().unwrap_or(Value::Bool(true)),
        "state": state,
        "paused_at": or_null(job, "paused_at"),
        "paused_reason": or_null(job, "paused_reason"),
    });
    if let Some(out) = out.as_object_mut() {
        for field in ["script", "no_agent", "enabled_toolsets", "workdir"] {
            if let Some(value) = job.get(field).filter(|value| args::truthy(Some(value))) {
                out.insert(field.to_owned(), value.clone());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Job, display, in_words};

    #[test]
    fn a_person_is_told_an_interval_that_is_kept_in_numbers_alone() {
        let job = |schedule: Value| Job::from_iter([("schedule".to_owned(), schedule)]);
        let interval = job(json!({"kind": "interval", "minutes": 90}));
        assert_eq!(display(&interval), "?");
        assert_eq!(in_words(&interval), "every 90m");
        for (schedule, told) in [
            (json!({"kind": "cron", "expr": "0 9 * * *"}), "0 9 * * *"),
            (
                json!({"kind": "interval", "minutes": 5, "display": "every 5m"}),
                "every 5m",
            ),
            (
                json!({"kind": "interval", "minutes": "5"}),
                "an interval of no length",
            ),
            (json!({"kind": "tides"}), "no schedule that is understood"),
            (Value::Null, "no schedule that is understood"),
        ] {
            assert_eq!(in_words(&job(schedule)), told);
        }
    }
}
