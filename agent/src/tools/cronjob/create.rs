//! A new job, from the arguments of a call.

use jiff::Zoned;
use serde_json::{Map, Value, json};

use super::{
    Short,
    jobs::{self, Jobs},
    schedule, told, update, wording,
};
use crate::{
    ambient,
    runtime::{Hands, Stop, ToolResult},
    text::{args, pytext},
    tools::mistyped,
};

/// Makes a job and puts it at the end of the list.
pub(super) fn create(
    hands: &mut Hands<'_>,
    given: &Map<String, Value>,
    now: &Zoned,
) -> Result<ToolResult, Short> {
    if !args::truthy(given.get("schedule")) {
        return Err("schedule is required for create".to_owned().into());
    }
    let skills = jobs::skills(given.get("skill"), given.get("skills"));
    let prompt = given
        .get("prompt")
        .filter(|prompt| args::truthy(Some(prompt)));
    let no_agent = args::truthy(given.get("no_agent"));
    if no_agent && !args::truthy(given.get("script")) {
        return Err(
            "create with no_agent=True requires a script \u{2014} the script is the job."
                .to_owned()
                .into(),
        );
    }
    if !no_agent && prompt.is_none() && skills.is_empty() {
        return Err("create requires either prompt or at least one skill"
            .to_owned()
            .into());
    }
    let prompt = match prompt {
        None => String::new(),
        Some(Value::String(prompt)) => prompt.clone(),
        Some(other) => return Err(mistyped::not_matched(other).into()),
    };
    if let Some(problem) = wording::problem(&prompt) {
        return Err(problem.into());
    }
    let script = update::script(given.get("script"))?;
    let mut jobs = Jobs::read(hands)??;
    let wanted = given
        .get("context_from")
        .filter(|from| args::truthy(Some(from)));
    if let Some(Value::Array(wanted)) = wanted {
        update::all_there(&jobs, wanted.iter().map(args::text_of))?;
    }
    let from = update::references(&jobs, wanted)?;
    let plan = update::schedule(given.get("schedule"), now)?;
    let mut repeat = update::times(given.get("repeat"))?;
    let once = plan.get("kind").and_then(Value::as_str) == Some("once");
    if once && repeat.is_none() {
        repeat = Some(1.into());
    }
    let asked = update::deliver(given.get("deliver"));
    let workdir = update::workdir(hands, given.get("workdir"))?;
    let (provider, model) = update::model(given);
    let next = update::due(&plan, now)?;
    let id = new_id()?;
    let label = [
        prompt.as_str(),
        skills.first().map_or("", String::as_str),
        script.as_deref().filter(|_| no_agent).unwrap_or(""),
    ]
    .into_iter()
    .find(|label| !label.is_empty())
    .unwrap_or("cron job");
    let name = match given.get("name") {
        Some(name) if args::truthy(Some(name)) => name.clone(),
        _ => pytext::strip(pytext::head(label, 50)).into(),
    };
    let called = args::text_of(&name);
    let shown = plan.get("display").cloned().unwrap_or(Value::Null);
    let deliver = asked.clone().unwrap_or_else(|| "local".to_owned());
    let job = json!({
        "id": id,
        "name": name,
        "prompt": prompt,
        "skills": skills,
        "skill": skills.first(),
        "model": model,
        "provider": provider,
        "provider_snapshot": null,
        "model_snapshot": null,
        "base_url": update::base_url(given)?,
        "script": script,
        "no_agent": no_agent,
        "context_from": from,
        "schedule": plan,
        "schedule_display": shown,
        "repeat": {"times": repeat, "completed": 0},
        "enabled": true,
        "state": "scheduled",
        "paused_at": null,
        "paused_reason": null,
        "created_at": schedule::iso(now),
        "next_run_at": next,
        "last_run_at": null,
        "last_status": null,
        "last_error": null,
        "last_delivery_error": null,
        "deliver": deliver,
        "origin": null,
        "enabled_toolsets": update::toolsets(given.get("enabled_toolsets")),
        "workdir": workdir,
    });
    let Value::Object(job) = job else {
        return Err("a job is an object".to_owned().into());
    };
    let mut message = format!("Cron job '{called}' created.");
    if !asked.is_some_and(|asked| asked.eq_ignore_ascii_case("local")) && !goes_somewhere(&deliver)
    {
        message.push_str(
            " This is a local-only cron job: its output is saved (view it with cronjob(action='list')) but will NOT \
             be delivered back into this session \u{2014} CLI/TUI sessions have no live-delivery channel. To be \
             notified when it runs, recreate or update the job with deliver set to a gateway-connected platform, e.g. \
             deliver='telegram' or deliver='all'.",
        );
    }
    let mut job_shown = jobs::shown(&job);
    // Only what is read back is trimmed.
    super::note(&mut job_shown, "name", called.into());
    let result = told(&json!({
        "success": true,
        "job_id": id,
        "name": name,
        "skill": skills.first(),
        "skills": skills,
        "schedule": shown,
        "repeat": jobs::repeat(&job),
        "deliver": deliver,
        "next_run_at": next,
        "job": job_shown,
        "message": message,
    }));
    jobs.all.push(job);
    jobs.write(hands, now)?;
    Ok(result)
}

/// Whether an address names a place by itself.
fn goes_somewhere(deliver: &str) -> bool {
    deliver.split(',').any(|to| {
        to.split_once(':')
            .is_some_and(|(platform, chat)| !platform.is_empty() && !chat.is_empty())
    })
}

/// A name no other job has.
fn new_id() -> Result<String, Short> {
    let number = ambient::session_number()
        .map_err(|error| Short::Stop(Stop::Broken(format!("cannot draw a name: {error}"))))?;
    Ok(format!("{:012x}", number & 0xffff_ffff_ffff))
}
