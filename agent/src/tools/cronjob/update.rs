//! What a job is made of, read from a call's arguments.

use jiff::Zoned;
use serde_json::{Map, Number, Value};

use super::{
    Short,
    jobs::{self, Jobs},
    schedule as times_of, wording,
};
use crate::runtime::Job;
use hermitcrab_sandbox::dircap::Kind;

use crate::{
    runtime::Hands,
    text::{args, pytext},
    tools::mistyped,
};

/// Sets a field.
pub(super) fn put(job: &mut Job, field: &str, value: impl Into<Value>) {
    job.insert(field.to_owned(), value.into());
}

fn trimmed(value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => None,
        Some(value) => {
            let text = args::text_of(value);
            let text = pytext::strip(&text);
            (!text.is_empty()).then(|| text.to_owned())
        }
    }
}

/// A script lies below the scripts' directory and is named from there.
pub(super) fn script(value: Option<&Value>) -> Result<Option<String>, Short> {
    match value {
        Some(other) if !other.is_string() && args::truthy(Some(other)) => {
            return Err(mistyped::no_attribute(other, "strip").into());
        }
        _ => {}
    }
    let Some(name) = trimmed(value).filter(|_| args::truthy(value)) else {
        return Ok(None);
    };
    let shown = pytext::quoted(&name);
    if name.starts_with(['/', '~']) || name.get(1..2) == Some(":") {
        return Err(format!(
            "Script path must be relative to ~/.hermes/scripts/. Got absolute or home-relative path: {shown}. Place \
             scripts in ~/.hermes/scripts/ and use just the filename."
        )
        .into());
    }
    let mut depth = 0_i32;
    let mut leaves = name.contains('\0');
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        leaves = leaves || depth < 0;
    }
    if leaves {
        return Err(
            format!("Script path escapes the scripts directory via traversal: {shown}").into(),
        );
    }
    Ok(Some(name))
}

/// The jobs whose output another one is given; each has to be there.
pub(super) fn references(jobs: &Jobs, value: Option<&Value>) -> Result<Option<Vec<String>>, Short> {
    let names: Vec<String> = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(args::text_of).collect(),
        Some(other) => vec![args::text_of(other)],
    };
    let names: Vec<String> = names
        .iter()
        .map(|name| pytext::strip(name).to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    all_there(jobs, names.iter().cloned())?;
    Ok((!names.is_empty()).then_some(names))
}

/// Each of the names is a job's.
pub(super) fn all_there(jobs: &Jobs, names: impl Iterator<Item = String>) -> Result<(), Short> {
    for name in names {
        if jobs.at(&name).is_none() {
            return Err(format!(
                "context_from job '{name}' not found. Use cronjob(action='list') to see available jobs."
            )
            .into());
        }
    }
    Ok(())
}

/// The schedule of an argument.
pub(super) fn schedule(value: Option<&Value>, now: &Zoned) -> Result<Value, Short> {
    match value {
        Some(Value::String(text)) => Ok(Value::Object(times_of::parse(text, now)?)),
        other => Err(format!(
            "'{}' object has no attribute 'strip'",
            args::type_name(other)
        )
        .into()),
    }
}

/// When a schedule begins; one whose moment is over is none.
pub(super) fn due(plan: &Value, now: &Zoned) -> Result<Option<String>, Short> {
    let word = |name: &str| plan.get(name).and_then(Value::as_str);
    let next = times_of::next(plan, None, now);
    match (next, word("kind")) {
        (None, Some("once")) => Err(format!(
            "Requested one-shot time {} is more than {}s in the past and cannot be scheduled.",
            word("run_at").unwrap_or_default(),
            times_of::GRACE_SECONDS
        )
        .into()),
        (None, Some("cron")) => Err("failed to find next date".to_owned().into()),
        (next, _) => Ok(next),
    }
}

/// How often; nothing, none and less are for ever.
pub(super) fn times(value: Option<&Value>) -> Result<Option<Number>, Short> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let is_some = number.as_f64().is_some_and(|times| times > 0.0);
            Ok(is_some.then(|| number.clone()))
        }
        Some(Value::Bool(truth)) => Ok(truth.then(|| 1.into())),
        other => Err(format!(
            "'<=' not supported between instances of '{}' and 'int'",
            args::type_name(other)
        )
        .into()),
    }
}

/// Where the results go, as one text.
pub(super) fn deliver(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::Array(list)) => {
            let parts: Vec<String> = list
                .iter()
                .map(|part| pytext::strip(&args::text_of(part)).to_owned())
                .filter(|part| !part.is_empty())
                .collect();
            (!parts.is_empty()).then(|| parts.join(","))
        }
        other => trimmed(other),
    }
}

/// The directory a job works in.
pub(super) fn workdir(
    hands: &mut Hands<'_>,
    value: Option<&Value>,
) -> Result<Option<String>, Short> {
    let Some(raw) = trimmed(value) else {
        return Ok(None);
    };
    if !raw.starts_with('/') && raw != "~" && !raw.starts_with("~/") {
        return Err(format!(
            "Cron workdir must be an absolute path (got {}). Cron jobs run detached from any shell cwd, so relative \
             paths are ambiguous.",
            pytext::quoted(&raw)
        )
        .into());
    }
    let place = hands.resolve(&raw)?;
    let absolute = place.absolute.clone();
    match hands.look(&place)? {
        None => Err(format!("Cron workdir does not exist: {absolute}").into()),
        Some(stat) if stat.kind == Kind::Dir => Ok(Some(absolute)),
        Some(_) => Err(format!("Cron workdir is not a directory: {absolute}").into()),
    }
}

/// Which model is to be asked, and of whom.
pub(super) fn model(given: &Map<String, Value>) -> (Option<String>, Option<String>) {
    let read = match given.get("model") {
        Some(Value::String(text)) => serde_json::from_str::<Value>(text).ok(),
        other => other.cloned(),
    };
    let word = |name: &str| trimmed(read.as_ref().and_then(|model| model.get(name)));
    let provider = word("provider").filter(|provider| provider != "custom");
    (
        provider.or_else(|| trimmed(given.get("provider"))),
        word("model"),
    )
}

/// A server of the model's own choice would be sent the user's key.
pub(super) fn base_url(given: &Map<String, Value>) -> Result<Option<String>, Short> {
    match trimmed(given.get("base_url")) {
        None => Ok(None),
        Some(_) if model(given).0.is_none() => Err(
            "base_url override requires an explicit provider. Set provider to a configured custom provider to use a \
             custom endpoint."
                .to_owned()
                .into(),
        ),
        Some(_) => Err(
            "a job cannot choose its server: which model is asked is the person's setting"
                .to_owned()
                .into(),
        ),
    }
}

/// The sets of tools a job is limited to.
pub(super) fn toolsets(value: Option<&Value>) -> Option<Vec<String>> {
    let Some(Value::Array(list)) = value else {
        return None;
    };
    let names: Vec<String> = list.iter().filter_map(|name| trimmed(Some(name))).collect();
    (!names.is_empty()).then_some(names)
}

fn is_given(given: &Map<String, Value>, name: &str) -> bool {
    given.get(name).is_some_and(|value| !value.is_null())
}

/// Changes a job as a call says.
pub(super) fn apply(
    hands: &mut Hands<'_>,
    given: &Map<String, Value>,
    job: &mut Job,
    now: &Zoned,
) -> Result<(), Short> {
    let mut any = false;
    let mut new = job.clone();
    let mut set = |new: &mut Job, field: &str, value: Value| {
        any = true;
        put(new, field, value);
    };
    match given.get("prompt") {
        None | Some(Value::Null) => {}
        Some(Value::String(prompt)) => {
            if let Some(problem) = wording::problem(prompt) {
                return Err(problem.into());
            }
            set(&mut new, "prompt", prompt.clone().into());
        }
        Some(other) => return Err(mistyped::not_matched(other).into()),
    }
    if let Some(name) = given.get("name").filter(|name| !name.is_null()) {
        set(&mut new, "name", args::text_of(name).into());
    }
    if is_given(given, "deliver") {
        set(&mut new, "deliver", deliver(given.get("deliver")).into());
    }
    if is_given(given, "skills") || is_given(given, "skill") {
        let skills = jobs::skills(given.get("skill"), given.get("skills"));
        set(&mut new, "skill", skills.first().cloned().into());
        set(&mut new, "skills", skills.into());
    }
    let (provider, model) = model(given);
    for (field, value) in [("model", model), ("provider", provider)] {
        if let Some(value) = value {
            set(&mut new, field, value.into());
        }
    }
    if is_given(given, "base_url") {
        set(&mut new, "base_url", base_url(given)?.into());
    }
    if is_given(given, "script") {
        set(&mut new, "script", script(given.get("script"))?.into());
    }
    if is_given(given, "context_from") {
        let jobs = Jobs::read(hands)??;
        let from = references(&jobs, given.get("context_from"))?;
        set(&mut new, "context_from", from.into());
    }
    if is_given(given, "enabled_toolsets") {
        let names = toolsets(given.get("enabled_toolsets"));
        set(&mut new, "enabled_toolsets", names.into());
    }
    if is_given(given, "workdir") {
        let at = workdir(hands, given.get("workdir"))?;
        set(&mut new, "workdir", at.into());
    }
    if is_given(given, "no_agent") {
        let alone = args::truthy(given.get("no_agent"));
        if alone && jobs::text(&new, "script").is_empty() {
            return Err(
                "Cannot set no_agent=True on a job without a script. Set `script` in the same update, or on the job \
                 first."
                    .to_owned()
                    .into(),
            );
        }
        set(&mut new, "no_agent", alone.into());
    }
    if is_given(given, "repeat") {
        let times = times(given.get("repeat"))?;
        let mut repeat = match new.get("repeat") {
            Some(Value::Object(repeat)) => repeat.clone(),
            _ => Map::new(),
        };
        repeat.insert("times".to_owned(), times.into());
        set(&mut new, "repeat", repeat.into());
    }
    if is_given(given, "schedule") {
        let plan = schedule(given.get("schedule"), now)?;
        let shown = plan.get("display").cloned().unwrap_or(Value::Null);
        set(&mut new, "schedule", plan.clone());
        set(&mut new, "schedule_display", shown);
        if jobs::text(&new, "state") != "paused" {
            set(&mut new, "state", "scheduled".into());
            set(&mut new, "enabled", true.into());
            set(&mut new, "next_run_at", due(&plan, now)?.into());
        }
    }
    if !any {
        return Err("No updates provided.".to_owned().into());
    }
    *job = new;
    Ok(())
}
