//! `process`: looks after commands left running in the background.

use std::{fmt::Write as _, time::Duration};

use hermitcrab_core::outcome::DenialCode;
use serde_json::{Map, Value, json};

use crate::{
    runtime::{Fate, Hands, JobEnd, JobView, Notice, Stop, ToolResult},
    text::{
        ansi,
        args::{self, Declared},
        output, pyjson, pytext, redact,
    },
    tools::mistyped,
};

/// What stands at the beginning of each line that a command wrote.
const DATA: char = '|';
/// Seconds one wait may take, and takes if the call does not say.
const WAIT_SECONDS_MAX: f64 = 180.0;
/// Lines of a log if the call does not say.
const LOG_LINES: i64 = 200;

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(
        given,
        &[
            ("action", Declared::Text),
            ("session_id", Declared::Text),
            ("data", Declared::Text),
            ("timeout", Declared::Whole),
            ("offset", Declared::Whole),
            ("limit", Declared::Whole),
        ],
    );
    hands.state().reads.note_other_call();
    hands.look_after()?;
    if let Some(action @ (Value::Array(_) | Value::Object(_))) = given.get("action") {
        return Ok(mistyped::uncaught(
            "TypeError",
            &mistyped::unhashable(action),
        ));
    }
    let action = given.get("action").map_or_else(String::new, args::text_of);
    let id = match given.get("session_id") {
        None | Some(Value::Null) => String::new(),
        Some(id) => args::text_of(id),
    };
    match action.as_str() {
        "list" => {
            let jobs: Vec<Value> = hands.jobs().iter().map(listed).collect();
            return Ok(ToolResult::ran(&json!({ "processes": jobs })));
        }
        "poll" | "log" | "wait" | "kill" | "write" | "submit" | "close" => {}
        other => {
            return Ok(ToolResult::error(&format!(
                "Unknown process action: {other}. Use: list, poll, log, wait, kill, write, submit, close"
            )));
        }
    }
    if id.is_empty() {
        return Ok(ToolResult::error(&format!(
            "session_id is required for {action}"
        )));
    }
    let Some(job) = hands.job(&id) else {
        return Ok(ToolResult::failed(
            &json!({"status": "not_found", "error": format!("No process with ID {id}")}),
        ));
    };
    match action.as_str() {
        "poll" => {
            told_of_end(hands, &job);
            Ok(shown(&job, polled(&job)))
        }
        "log" => Ok(log(hands, &job, &given)),
        "wait" => wait(hands, &job, &given),
        "kill" => kill(hands, &job),
        "close" => Ok(close(hands, &job)),
        _ => write(hands, &job, &action, given.get("data")),
    }
}

/// Of an end that the model is told here it is not told once more.
fn told_of_end(hands: &mut Hands<'_>, job: &JobView) {
    if job.end.is_some() {
        hands.end_is_told(&job.id);
    }
}

fn status(job: &JobView) -> &'static str {
    if job.end.is_some() {
        "exited"
    } else {
        "running"
    }
}

fn reason(killed: bool) -> (&'static str, &'static str) {
    if killed {
        ("killed", "process.kill")
    } else {
        ("exited", "")
    }
}

fn listed(job: &JobView) -> Value {
    let mut entry = Map::new();
    entry.insert("session_id".into(), job.id.as_str().into());
    entry.insert("command".into(), pytext::head(&job.command, 200).into());
    entry.insert("cwd".into(), job.cwd.as_str().into());
    entry.insert("pid".into(), Value::Null);
    entry.insert("started_at".into(), job.started_at.as_str().into());
    entry.insert("uptime_seconds".into(), job.uptime_seconds.into());
    entry.insert("status".into(), status(job).into());
    let preview = redact::masked_output(pytext::tail(&job.output, 200), &job.command);
    entry.insert("output_preview".into(), preview.into());
    // A command belongs to the session, not to the task of one call.
    entry.insert("session_scoped".into(), true.into());
    let (watched, hit) = &job.watched;
    if !watched.is_empty() {
        entry.insert("watch_patterns".into(), json!(watched));
        entry.insert("watch_hit".into(), (*hit).into());
    }
    if job.notify {
        entry.insert("notify_on_complete".into(), true.into());
    }
    if let Some(end) = &job.end {
        entry.insert("exit_code".into(), end.status.into());
    }
    Value::Object(entry)
}

fn polled(job: &JobView) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("session_id".into(), job.id.as_str().into());
    result.insert("command".into(), job.command.as_str().into());
    result.insert("status".into(), status(job).into());
    result.insert("pid".into(), Value::Null);
    result.insert("uptime_seconds".into(), job.uptime_seconds.into());
    result.insert(
        "output_preview".into(),
        ansi::strip(pytext::tail(&job.output, 1000)).into(),
    );
    if let Some(end) = &job.end {
        let (reason, source) = reason(end.killed);
        result.insert("exit_code".into(), end.status.into());
        result.insert("completion_reason".into(), reason.into());
        result.insert("termination_source".into(), source.into());
    }
    result
}

/// The result with secrets masked, why the command may have failed, and what became of its
/// changes.
fn shown(job: &JobView, mut result: Map<String, Value>) -> ToolResult {
    for field in ["output", "output_preview"] {
        if let Some(Value::String(text)) = result.get(field) {
            let masked = redact::masked_output(text, &job.command);
            result.insert(field.into(), masked.into());
        }
    }
    if let Some(Value::String(command)) = result.get("command") {
        let masked = redact::masked(command, redact::Mask::Ends);
        result.insert("command".into(), masked.into());
    }
    let mut fate = Fate::Ran;
    if let Some(end) = &job.end {
        for (key, why) in end.reasons.keyed() {
            result.insert(key.into(), why.into());
        }
        if let Some((code, told)) = not_kept(end) {
            result.insert("changes".into(), told.into());
            fate = Fate::RanDiscarded(code);
        }
    }
    ToolResult {
        text: pyjson::text(&Value::Object(result)),
        fate,
    }
}

/// What of its changes does not stand, and by which code.
fn not_kept(end: &JobEnd) -> Option<(DenialCode, String)> {
    let (code, told) = match (&end.discarded, &end.left_out) {
        (None, None) => return None,
        (Some(denial), None) => {
            let code = denial.code();
            (
                code,
                format!("discarded ({code}): {denial}. What was kept while it ran stays"),
            )
        }
        (None, Some(left_out)) => {
            let code = left_out.code();
            let told = match left_out.is_all() {
                true => format!("discarded ({code}): {left_out} What was kept while it ran stays"),
                false => format!("kept, but for this ({code}): {left_out} All else stands"),
            };
            (code, told)
        }
        (Some(denial), Some(left_out)) => {
            let (code, before) = (denial.code(), left_out.code());
            let told = format!(
                "discarded ({code}): {denial}. Left out before that was asked for ({before}): {left_out} What was \
                 kept while it ran stays"
            );
            (code, told)
        }
    };
    let next_step = match &end.left_out {
        Some(left_out) if end.discarded.is_none() => left_out.next_step(),
        _ => code.next_step(),
    };
    Some((code, format!("{told}. Next step: {next_step}.")))
}

fn log(hands: &mut Hands<'_>, job: &JobView, given: &Map<String, Value>) -> ToolResult {
    let number = |name: &str, default: i64| match given.get(name) {
        None => Some(default),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => {
            Some(args::whole_or(Some(value), default))
        }
        Some(_) => None,
    };
    let (Some(offset), Some(limit)) = (number("offset", 0), number("limit", LOG_LINES)) else {
        return mistyped::uncaught("TypeError", &no_part(given));
    };
    let is_part = |name: &str| matches!(given.get(name), Some(Value::Number(n)) if n.is_f64());
    // Without an offset only the limit is counted by.
    let counts_offset = args::truthy(given.get("offset")) || limit <= 0;
    if is_part("limit") || (counts_offset && is_part("offset")) {
        let problem = "slice indices must be integers or None or have an __index__ method";
        return mistyped::uncaught("TypeError", problem);
    }
    let text = ansi::strip(&job.output);
    let lines = pytext::lines(&text);
    let total = lines.len();
    let (from, to) = if offset == 0 && limit > 0 {
        (
            total.saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX)),
            total,
        )
    } else {
        (
            index(offset, total),
            index(offset.saturating_add(limit), total),
        )
    };
    let selected = lines.get(from..to.max(from)).unwrap_or_default();
    // Who reads on in the middle has not seen how it ended.
    if total == 0 || (!selected.is_empty() && to == total) {
        told_of_end(hands, job);
    }
    let mut result = Map::new();
    result.insert("session_id".into(), job.id.as_str().into());
    result.insert("command".into(), job.command.as_str().into());
    result.insert("status".into(), status(job).into());
    result.insert("output".into(), selected.join("\n").into());
    result.insert("total_lines".into(), total.into());
    result.insert("showing".into(), format!("{} lines", selected.len()).into());
    shown(job, result)
}

/// Why no part of a log is at these values: they are compared, added or joined.
fn no_part(given: &Map<String, Value>) -> String {
    let (offset, limit) = (given.get("offset"), given.get("limit"));
    let offset = offset.filter(|offset| args::truthy(Some(offset)) || !offset.is_number());
    match (offset, limit) {
        (None, limit) => mistyped::not_greater(limit.unwrap_or(&Value::Null)),
        (Some(offset @ (Value::String(_) | Value::Array(_))), _) => {
            let kind = args::type_name(Some(offset));
            format!("can only concatenate {kind} (not \"int\") to {kind}")
        }
        (Some(offset), Some(limit)) => mistyped::not_added(offset, limit),
        (Some(offset), None) => mistyped::not_added(offset, &LOG_LINES.into()),
    }
}

/// A place in a list of this length; negative ones count from its end.
fn index(place: i64, length: usize) -> usize {
    match usize::try_from(place) {
        Ok(place) => place.min(length),
        Err(_) => {
            length.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX))
        }
    }
}

fn wait(
    hands: &mut Hands<'_>,
    job: &JobView,
    given: &Map<String, Value>,
) -> Result<ToolResult, Stop> {
    let asked = given
        .get("timeout")
        .filter(|asked| args::truthy(Some(asked)));
    let asked_seconds = match asked {
        None => WAIT_SECONDS_MAX,
        Some(Value::Bool(_)) => 1.0,
        Some(Value::Number(number)) => number.as_f64().unwrap_or(WAIT_SECONDS_MAX),
        Some(other) => {
            let problem = mistyped::not_greater(other);
            return Ok(mistyped::uncaught("TypeError", &problem));
        }
    };
    let seconds = asked_seconds.min(WAIT_SECONDS_MAX);
    hands.wait_for(
        &job.id,
        Duration::try_from_secs_f64(seconds).unwrap_or_default(),
    )?;
    let asked = asked.map_or_else(|| WAIT_SECONDS_MAX.to_string(), args::text_of);
    let job = hands.job(&job.id).unwrap_or_else(|| job.clone());
    told_of_end(hands, &job);
    let mut result = Map::new();
    let clamped = (asked_seconds > WAIT_SECONDS_MAX).then(|| {
        format!("Requested wait of {asked}s was clamped to configured limit of {WAIT_SECONDS_MAX}s")
    });
    match &job.end {
        Some(end) => {
            let (reason, source) = reason(end.killed);
            result.insert("status".into(), "exited".into());
            result.insert("command".into(), job.command.as_str().into());
            result.insert("exit_code".into(), end.status.into());
            result.insert("completion_reason".into(), reason.into());
            result.insert("termination_source".into(), source.into());
            result.insert(
                "output".into(),
                ansi::strip(pytext::tail(&job.output, 2000)).into(),
            );
            if let Some(note) = clamped {
                result.insert("timeout_note".into(), note.into());
            }
        }
        None => {
            result.insert("status".into(), "timeout".into());
            result.insert("command".into(), job.command.as_str().into());
            result.insert(
                "output".into(),
                ansi::strip(pytext::tail(&job.output, 1000)).into(),
            );
            let note = clamped.unwrap_or_else(|| format!("Waited {asked}s, process still running"));
            result.insert("timeout_note".into(), note.into());
        }
    }
    Ok(shown(&job, result))
}

fn kill(hands: &mut Hands<'_>, job: &JobView) -> Result<ToolResult, Stop> {
    let mut result = Map::new();
    if let Some(end) = &job.end {
        told_of_end(hands, job);
        let (reason, source) = reason(end.killed);
        result.insert("status".into(), "already_exited".into());
        result.insert("command".into(), job.command.as_str().into());
        result.insert("exit_code".into(), end.status.into());
        result.insert("completion_reason".into(), reason.into());
        result.insert("termination_source".into(), source.into());
        result.insert(
            "output".into(),
            ansi::strip(pytext::tail(&job.output, 2000)).into(),
        );
        return Ok(shown(job, result));
    }
    hands.kill(&job.id)?;
    let job = hands.job(&job.id).unwrap_or_else(|| job.clone());
    told_of_end(hands, &job);
    result.insert("status".into(), "killed".into());
    result.insert("session_id".into(), job.id.as_str().into());
    result.insert("completion_reason".into(), "killed".into());
    result.insert("termination_source".into(), "process.kill".into());
    result.insert(
        "output".into(),
        ansi::strip(pytext::tail(&job.output, 2000)).into(),
    );
    Ok(shown(&job, result))
}

/// What a model is told of a command that runs.
#[must_use]
pub fn notice(job: &JobView, notice: &Notice) -> String {
    match notice {
        Notice::Seen {
            word,
            lines,
            dropped,
        } => {
            let dropped = if *dropped == 0 {
                String::new()
            } else {
                format!("\n({dropped} earlier lines were not told)")
            };
            format!(
                "[BACKGROUND COMMAND PRINTED {}: {}]\nCommand: {}\nOutput:\n{}{dropped}",
                pytext::quoted(word),
                job.id,
                told_command(job),
                output::behind(&output::cleaned(lines, &job.command), DATA),
            )
        }
        Notice::GivenUp => format!(
            "[BACKGROUND COMMAND PRINTS TOO OFTEN WHAT IS WATCHED FOR: {}]\nCommand: {}\nNothing more is told of it \
             before its end.",
            job.id,
            told_command(job),
        ),
    }
}

/// What a model is told of a command that ended, with what a call would say of its end. It
/// comes before the output, which may say anything, and stands behind a mark on each of its
/// lines: the user's own words may follow in the same message, and none of it passes for them.
#[must_use]
pub fn ending(job: &JobView) -> String {
    let status = job.end.as_ref().and_then(|end| end.status).unwrap_or(-1);
    let mut besides = String::new();
    if let Some(end) = &job.end {
        let reasons = end
            .reasons
            .keyed()
            .map(|(key, why)| (key, why.into_owned()));
        let changes = not_kept(end).map(|(_, told)| ("changes", told));
        for (key, why) in reasons.chain(changes) {
            // Writing to a string cannot fail.
            let _ = write!(besides, "\n{key}: {why}");
        }
    }
    format!(
        "[BACKGROUND COMMAND ENDED: {} with status {status}]\nCommand: {}{besides}\nOutput:\n{}",
        job.id,
        told_command(job),
        output::behind(
            &output::cleaned(pytext::tail(&job.output, 2000), &job.command),
            DATA
        ),
    )
}

/// A command over several lines begins no part of its own.
fn told_command(job: &JobView) -> String {
    match job.command.contains(char::is_control) {
        true => format!("\n{}", output::behind(&job.command, DATA)),
        false => job.command.clone(),
    }
}

/// What a command without a terminal answers: its input is at its end from
/// the beginning.
fn no_input() -> ToolResult {
    ToolResult::failed(&json!({
        "status": "error",
        "error": "Process stdin not available (non-local backend or stdin closed)",
    }))
}

fn already_ended() -> ToolResult {
    ToolResult::failed(
        &json!({"status": "already_exited", "error": "Process has already finished"}),
    )
}

fn typed(done: std::io::Result<()>, said: Value) -> ToolResult {
    match done {
        Ok(()) => ToolResult::ran(&said),
        Err(error) => ToolResult::failed(&json!({"status": "error", "error": error.to_string()})),
    }
}

fn write(
    hands: &mut Hands<'_>,
    job: &JobView,
    action: &str,
    data: Option<&Value>,
) -> Result<ToolResult, Stop> {
    if job.end.is_some() {
        return Ok(already_ended());
    }
    let mut text = match data {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => args::text_of(other),
    };
    if action == "submit" {
        text.push('\n');
    }
    Ok(match hands.type_into(&job.id, &text)? {
        Some(done) => typed(
            done,
            json!({"status": "ok", "bytes_written": text.chars().count()}),
        ),
        None => no_input(),
    })
}

fn close(hands: &mut Hands<'_>, job: &JobView) -> ToolResult {
    if job.end.is_some() {
        return already_ended();
    }
    match hands.end_input(&job.id) {
        Some(done) => typed(done, json!({"status": "ok", "message": "EOF sent"})),
        None => no_input(),
    }
}

#[cfg(test)]
mod tests {
    use super::index;

    #[test]
    fn places_beyond_a_list_are_its_ends_and_negative_ones_count_back() {
        let got: Vec<usize> = [0, 2, 5, 9, -1, -5, -9]
            .iter()
            .map(|n| index(*n, 5))
            .collect();
        assert_eq!(got, [0, 2, 5, 5, 4, 0, 0]);
    }
}
