//! What the one who handed out work is told about it, as the compared agent
//! words it: that it is handed out, and what came of it.
//!
//! Counts and words only. What a child may do is decided elsewhere, and a
//! report is data to whoever reads it, whatever it says.

use std::{collections::HashMap, fmt::Write as _};

use serde_json::{Map, Value, json};

use crate::{model::Message, text::pytext, tools::delegate::Role};

/// Letters of one report that are handed on.
const REPORT_LETTERS_MAX: usize = 24_000;

const IN_THE_BACKGROUND: &str = "Subagent is running in the background. You and the user can keep working; its full \
                                 result re-enters the conversation as a new message when it finishes. Do not wait or \
                                 poll \u{2014} just continue.";

/// Said with what work brought that was waited for because as much as may be was
/// handed out already.
pub(super) const WAITED: &str = "The background delegation pool was at capacity \
                                 (delegation.max_concurrent_children), so the subagent(s) ran SYNCHRONOUSLY and the \
                                 result is included above. Raise delegation.max_concurrent_children in config.yaml to \
                                 allow more concurrent background delegations.";

/// The same, where nothing could be told of it after the turn.
pub(super) const NOT_LATER: &str = "background=true is not available in this session \u{2014} it cannot receive a \
                                    detached subagent result after the turn ends (a one-shot runner such as \
                                    `hermes -z` or a cron job, or a stateless HTTP endpoint). The subagent(s) ran \
                                    SYNCHRONOUSLY and the result is included above.";

/// Paths of changed files that are named in a report.
const PATHS_MAX: usize = 8;

/// What a call that hands out work gives at once.
pub(super) fn handed_out(id: &str, goals: &[&str]) -> Value {
    let note = match goals.len() {
        1 => IN_THE_BACKGROUND.to_owned(),
        many => format!(
            "{many} subagents are running in parallel in the background. You and the user can keep working; they wait \
             on each other and their consolidated results re-enter the conversation as a single message once ALL of \
             them finish. Do not wait or poll \u{2014} just continue."
        ),
    };
    json!({
        "status": "dispatched",
        "mode": "background",
        "count": goals.len(),
        "delegation_id": id,
        "goals": goals,
        "note": note,
    })
}

/// What one child came to.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) status: &'static str,
    pub(super) summary: String,
    pub(super) error: Option<String>,
    pub(super) rounds: u32,
    pub(super) seconds: f64,
    pub(super) reason: &'static str,
    pub(super) tokens: (u64, u64),
    pub(super) trace: Vec<Value>,
    /// Its report is longer than what is handed on.
    pub(super) is_cut: bool,
    /// Files it changed that its reader knows as they were; in the report if
    /// there is one.
    pub(super) stale: Vec<String>,
}

impl Report {
    /// Says which files, known to whoever reads it, are no longer as they were.
    pub(super) fn overwrites(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        if self.summary.is_empty() {
            self.stale = paths.to_vec();
            return;
        }
        let named: Vec<&str> = paths.iter().take(PATHS_MAX).map(String::as_str).collect();
        let more = match paths.len().saturating_sub(PATHS_MAX) {
            0 => String::new(),
            more => format!(" (+{more} more)"),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            self.summary,
            "\n\n[NOTE: subagent modified files the parent previously read \u{2014} re-read before editing: {}{more}]",
            named.join(", ")
        );
    }

    /// The same with a report that fits.
    pub(super) fn fitted(mut self) -> Self {
        if let Some(shorter) = shortened(&self.summary) {
            self.summary = shorter;
            self.is_cut = true;
        }
        self
    }

    /// One of the results of a call that waited for them.
    pub(super) fn shown(&self, place: usize, model: &str) -> Value {
        let mut entry = json!({
            "task_index": place,
            "status": self.status,
            "summary": self.summary,
            "api_calls": self.rounds,
            "duration_seconds": self.seconds,
            "model": model,
            "exit_reason": self.reason,
            "tokens": {"input": self.tokens.0, "output": self.tokens.1},
            "tool_trace": self.trace,
        });
        if let Some(entry) = entry.as_object_mut() {
            if let Some(error) = &self.error {
                entry.insert("error".into(), error.as_str().into());
            }
            if !self.stale.is_empty() {
                entry.insert("stale_paths".into(), self.stale.clone().into());
            }
            if self.is_cut {
                entry.insert("summary_truncated".into(), true.into());
            }
        }
        entry
    }
}

/// One call that handed out work, for the words about its end.
pub(super) struct Handed<'h> {
    pub(super) id: &'h str,
    /// The moment by the user's clock.
    pub(super) moment: &'h str,
    /// How long ago that was.
    pub(super) age_seconds: u64,
    pub(super) context: Option<&'h str>,
    pub(super) role: Role,
    pub(super) goals: Vec<&'h str>,
    pub(super) seconds: f64,
}

/// The message that says that all of it is over.
pub(super) fn completed(handed: &Handed<'_>, reports: &[Report]) -> String {
    let many = reports.len();
    let role = match handed.role {
        Role::Leaf => "leaf",
        Role::Orchestrator => "orchestrator",
    };
    let mut text = format!(
        "[ASYNC DELEGATION BATCH COMPLETE \u{2014} {}]\nA background fan-out of {many} subagent(s) you dispatched \
         earlier has finished. All ran in parallel and waited on each other; their consolidated results are below. \
         You may have moved on since dispatching \u{2014} act on these or re-dispatch if things have changed.\n\n\
         Dispatched: {} ({} ago)\n",
        handed.id,
        handed.moment,
        age(handed.age_seconds)
    );
    // Writing to a string cannot fail.
    if let Some(context) = handed.context {
        let _ = writeln!(text, "Context you provided: {context}");
    }
    let _ = write!(
        text,
        "Role: {role}   Model: ?   Total duration: {:?}s",
        handed.seconds
    );
    for (place, (report, goal)) in reports.iter().zip(&handed.goals).enumerate() {
        let mark = if report.status == "completed" {
            '\u{2713}'
        } else {
            '\u{2717}'
        };
        let _ = write!(
            text,
            "\n\n--- {mark} TASK {}/{many}: {goal}  (status={}",
            place + 1,
            report.status
        );
        if report.rounds > 0 {
            let _ = write!(text, ", api_calls={}", report.rounds);
        }
        let _ = write!(text, ", {:?}s) ---\n{}", report.seconds, words(report));
    }
    text
}

fn words(report: &Report) -> String {
    let Report {
        status,
        summary,
        error,
        ..
    } = report;
    match (summary.is_empty(), error) {
        (false, _) if *status == "completed" => summary.clone(),
        (false, Some(error)) => format!("({status}: {error})\nPartial output:\n{summary}"),
        (false, None) => format!("Partial output:\n{summary}"),
        (true, Some(error)) => format!("(no summary \u{2014} status={status}: {error})"),
        (true, None) => format!("(no summary \u{2014} status={status})"),
    }
}

/// How long ago, in the largest units that matter.
fn age(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, of_hour) = (minutes / 60, minutes % 60);
    match (hours, of_hour, seconds) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

/// Beginning and end of a report that is too long; `None` if it is not.
fn shortened(report: &str) -> Option<String> {
    let letters = report.chars().count();
    if letters <= REPORT_LETTERS_MAX {
        return None;
    }
    let head_max = REPORT_LETTERS_MAX / 4 * 3;
    let tail_max = REPORT_LETTERS_MAX - head_max;
    let mut head = pytext::head(report, head_max);
    if let Some((lines, _)) = head.rsplit_once('\n')
        && lines.chars().count() * 2 > head_max
    {
        head = lines;
    }
    let mut tail = pytext::tail(report, tail_max);
    if let Some((line, lines)) = tail.split_once('\n')
        && line.chars().count() * 2 < tail_max
    {
        tail = lines;
    }
    let rule = "\u{2500}".repeat(8);
    let count =
        |text: &str| pytext::thousands(u64::try_from(text.chars().count()).unwrap_or(u64::MAX));
    Some(format!(
        "{head}\n\n[... middle omitted \u{2014} see footer ...]\n\n{tail}\n{rule} [SUMMARY TRUNCATED] {rule}\nShowing {} \
         chars (head) + {} chars (tail) of {} total \u{2014} trimmed to protect the parent's context window.\nFull \
         output could not be stored to disk; the head+tail above is all that was preserved.\n{}",
        count(head),
        count(tail),
        count(report),
        "\u{2500}".repeat(37)
    ))
}

/// The calls of a conversation: which tool, how long question and answer were,
/// and whether the answer is that of a failure.
pub(super) fn trace(messages: &[Message]) -> Vec<Value> {
    let mut entries: Vec<Map<String, Value>> = Vec::new();
    let mut places = HashMap::new();
    for message in messages {
        match message {
            Message::Assistant { calls, .. } => {
                for call in calls {
                    places.insert(call.id.as_str(), entries.len());
                    let letters = call.arguments.chars().count();
                    entries.push(Map::from_iter([
                        ("tool".to_owned(), call.tool.as_str().into()),
                        ("args_bytes".to_owned(), letters.into()),
                    ]));
                }
            }
            Message::Tool { call, text, .. } => {
                let place = places.get(call.as_str()).copied();
                if let Some(entry) = place.and_then(|place| entries.get_mut(place)) {
                    let status = if looks_failed(text) { "error" } else { "ok" };
                    entry.insert("result_bytes".into(), text.chars().count().into());
                    entry.insert("status".into(), status.into());
                }
            }
            Message::System(_) | Message::User(_) | Message::Told(_) => {}
        }
    }
    entries.into_iter().map(Value::Object).collect()
}

/// Whether a result is one of a failure, by its shape. Only a word follows from it.
fn looks_failed(result: &str) -> bool {
    if let Ok(Value::Object(fields)) = serde_json::from_str(result) {
        let error = fields.get("error");
        let status = fields.get("status").and_then(Value::as_str).unwrap_or("");
        if crate::text::args::truthy(error)
            || ["error", "failed", "failure", "timeout"]
                .contains(&status.trim().to_lowercase().as_str())
        {
            return true;
        }
    }
    let first = pytext::lines(result)
        .first()
        .map(|line| pytext::strip(line).to_lowercase())
        .unwrap_or_default();
    ["error:", "failed:", "traceback ", "exception:"]
        .iter()
        .any(|sign| first.starts_with(sign))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Handed, Report, age, completed, shortened, trace};
    use crate::{
        model::{Message, ProposedCall},
        tools::delegate::Role,
    };

    fn report(status: &'static str, summary: &str, error: Option<&str>) -> Report {
        Report {
            status,
            summary: summary.into(),
            error: error.map(str::to_owned),
            rounds: 2,
            seconds: 0.5,
            reason: "completed",
            tokens: (1, 2),
            trace: Vec::new(),
            is_cut: false,
            stale: Vec::new(),
        }
    }

    #[test]
    fn the_end_of_handed_out_work_names_each_task_and_what_came_of_it() {
        let handed = Handed {
            id: "deleg_00000001",
            moment: "2026-01-02 03:04:05",
            age_seconds: 61,
            context: Some("small"),
            role: Role::Leaf,
            goals: vec!["look", "see", "go"],
            seconds: 1.0,
        };
        let reports = [
            report("completed", "seen", None),
            report("error", "", Some("no model")),
            report("interrupted", "half", None),
        ];
        let text = completed(&handed, &reports);
        for part in [
            "Dispatched: 2026-01-02 03:04:05 (1m1s ago)\nContext you provided: small\nRole: leaf   Model: ?   Total duration: 1.0s\n\n",
            "--- \u{2713} TASK 1/3: look  (status=completed, api_calls=2, 0.5s) ---\nseen\n\n",
            "--- \u{2717} TASK 2/3: see  (status=error, api_calls=2, 0.5s) ---\n(no summary \u{2014} status=error: no model)\n\n",
            "--- \u{2717} TASK 3/3: go  (status=interrupted, api_calls=2, 0.5s) ---\nPartial output:\nhalf",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn ages_are_told_in_the_two_largest_units() {
        for (seconds, told) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (61, "1m1s"),
            (3600, "1h"),
            (3_720, "1h2m"),
        ] {
            assert_eq!(age(seconds), told);
        }
    }

    #[test]
    fn a_report_that_is_too_long_keeps_its_beginning_and_its_end() {
        let line = "a line of forty letters, or nearly so...\n";
        assert_eq!(shortened(&line.repeat(500)), None);
        let long = format!("first\n{}last", line.repeat(2000));
        let short = shortened(&long).expect("shorter");
        assert!(short.starts_with("first\n") && short.contains("last\n\u{2500}"));
        assert!(
            short.contains("of 82,010 total"),
            "{}",
            &short[short.len() - 400..]
        );
        let wall = "\u{e4}".repeat(24_001);
        assert!(shortened(&wall).is_some_and(|short| {
            short.contains("Showing 18,000 chars (head) + 6,000 chars (tail)")
        }));
    }

    #[test]
    fn a_trace_counts_letters_and_tells_failures_by_their_shape() {
        let call = |id: &str| ProposedCall {
            id: id.into(),
            tool: "todo".into(),
            arguments: "{}".into(),
        };
        let told = |id: &str, text: &str| Message::Tool {
            call: id.into(),
            tool: "todo".into(),
            text: text.into(),
        };
        let messages = [
            Message::Assistant {
                text: String::new(),
                calls: ["a", "b", "c", "d", "e"].map(call).to_vec(),
            },
            told("a", "{\"error\": null}"),
            told("b", "{\"error\": \"x\"}"),
            told("c", "{\"status\": \"Failed\"}"),
            told("d", "  Error: \u{e4}\nmore"),
        ];
        let status: Vec<_> = trace(&messages)
            .into_iter()
            .map(|entry| (entry["result_bytes"].clone(), entry["status"].clone()))
            .collect();
        assert_eq!(
            status,
            [
                (json!(15), json!("ok")),
                (json!(14), json!("error")),
                (json!(20), json!("error")),
                (json!(15), json!("error")),
                (json!(null), json!(null)),
            ]
        );
    }
}
