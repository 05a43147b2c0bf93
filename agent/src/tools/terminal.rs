//! `terminal`: runs a command.

use std::time::Duration;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::spawn::Ending;
use serde_json::{Map, Value, json};

use crate::{
    runtime::{
        Author, CommandInput, CommandRequest, CommandRun, Fate, Hands, JobRequest, Proof, Stop,
        ToolResult,
    },
    text::{
        args::{self, Declared},
        output, pyjson, pytext,
    },
    tools::{exit_note, foreground, mistyped},
};

/// Seconds a command may take if the call does not say.
const TIMEOUT_SECONDS_DEFAULT: f64 = 180.0;
/// Seconds a command may take at most.
const TIMEOUT_SECONDS_MAX: f64 = 600.0;
/// What a command is given at least: to make its sandbox takes some time, too.
const TIMEOUT_LEAST: Duration = Duration::from_secs(1);
/// Letters the compared agent's own last line takes of the output limit,
/// besides the working directory; it counts and is then removed.
const TRAILER_LETTERS: usize = 54;

/// What is said to a model that did not ask to be told of the end.
const SILENT: &str = "background=true without notify_on_complete=true means this process runs SILENTLY \u{2014} you \
                      will not be told when it exits. If this is a bounded task (test suite, build, CI poller, \
                      deploy, anything with a defined end), you almost certainly wanted notify_on_complete=true so \
                      the system pings you on exit. Re-launch with notify_on_complete=true, or call \
                      process(action='poll') / process(action='wait') yourself to learn the outcome. Only ignore \
                      this hint for genuine long-lived processes that never exit (servers, watchers, daemons).";
/// Said where nothing can be told once the turn is over.
const UNTOLD: &str = "notify_on_complete / watch_patterns are not available in this session \u{2014} it cannot receive \
                      an async completion after the turn ends (a one-shot runner such as `hermes -z` or a cron job, \
                      or a stateless HTTP endpoint). The process is running in the background; retrieve its result \
                      with process(action='poll') or process(action='wait').";
/// Why a command that was to have a terminal got none.
const PIPED: &str = "PTY disabled for this command because it expects piped stdin/EOF (for example gh auth login \
                     --with-token). For local background processes, call process(action='close') after writing so \
                     it receives EOF.";

/// Said of a command that the user was asked about and allowed. What was asked is
/// what it did, or was to reach, beyond its grants; no spelling is judged.
const ALLOWED: &str =
    "Command required approval (beyond what is granted) and was approved by the user.";

fn failed(message: &str, status: &str) -> ToolResult {
    ToolResult::failed(&json!({"output": "", "exit_code": -1, "error": message, "status": status}))
}

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(
        given,
        &[
            ("command", Declared::Text),
            ("background", Declared::Truth),
            ("timeout", Declared::Whole),
            ("workdir", Declared::Text),
            ("pty", Declared::Truth),
            ("notify_on_complete", Declared::Truth),
            ("watch_patterns", Declared::Texts),
        ],
    );
    hands.state().reads.note_other_call();
    let Some(Value::String(command)) = given.get("command") else {
        let message = format!(
            "Invalid command: expected string, got {}",
            args::type_name(given.get("command"))
        );
        return Ok(failed(&message, "error"));
    };
    let background = args::truthy(given.get("background"));
    let unreadable = match given.get("timeout") {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        None | Some(Value::Null | Value::Bool(_) | Value::Number(_)) => false,
    };
    if unreadable && !background {
        let message = format!(
            "Failed to execute command: '>' not supported between instances of '{}' and 'int'",
            args::type_name(given.get("timeout"))
        );
        return Ok(failed(&message, "error"));
    }
    let patience = patience(given.get("timeout"));
    if !background {
        if patience.seconds > TIMEOUT_SECONDS_MAX {
            return Ok(ToolResult::error(&format!(
                "Foreground timeout {}s exceeds the maximum of {TIMEOUT_SECONDS_MAX}s. Use background=true with \
                 notify_on_complete=true for long-running commands.",
                patience.written
            )));
        }
        if let Some(advice) = foreground::advice(command) {
            return Ok(failed(advice, "error"));
        }
    }
    if let Some(workdir) = given
        .get("workdir")
        .filter(|workdir| !workdir.is_string() && args::truthy(Some(workdir)))
    {
        let problem = mistyped::not_matched(workdir);
        return Ok(failed(
            &format!("Failed to execute command: {problem}"),
            "error",
        ));
    }
    let workdir = match given.get("workdir") {
        Some(Value::String(workdir)) if !workdir.is_empty() => Some(workdir.as_str()),
        _ => None,
    };
    if let Some(letter) =
        workdir.and_then(|workdir| workdir.chars().find(|letter| !plain_in_path(*letter)))
    {
        let message = format!(
            "Blocked: workdir contains disallowed character {}. Use a simple filesystem path without shell \
             metacharacters.",
            pytext::quoted(&letter.to_string())
        );
        let result = failed(&message, "blocked");
        return Ok(ToolResult {
            fate: Fate::Refused(DenialCode::BadArguments),
            ..result
        });
    }
    if command.contains('\0') {
        return Ok(ToolResult::failed(&json!({
            "output": "", "exit_code": -1, "error": "Command execution failed: ValueError: embedded null byte",
        })));
    }
    if background {
        return in_background(hands, command, workdir, &given);
    }
    let Ok(timeout) = Duration::try_from_secs_f64(patience.seconds) else {
        // Less than no time is over before it begins.
        let output = format!("[Command timed out after {}s]", patience.written);
        return Ok(ToolResult::ran(
            &json!({"output": output, "exit_code": 124, "error": null}),
        ));
    };
    let timeout = timeout.max(TIMEOUT_LEAST);
    let cwd = match workdir {
        Some(workdir) => workdir.to_owned(),
        None => hands.cwd().to_string_lossy().into_owned(),
    };
    let asked = hands.asked();
    let run = hands.run(&CommandRequest {
        command,
        workdir,
        timeout,
        given: CommandInput::Nothing,
        apart: false,
        by: Author::Model,
    })?;
    let was_allowed = hands.was_allowed(asked);
    let prove = |status, output: &str| hands.note_proof(command, &cwd, status, output);
    Ok(worded(command, &patience.written, &run, was_allowed, prove))
}

/// How long a command may take, and how that was written.
struct Patience {
    seconds: f64,
    written: String,
}

/// Nothing, and what is none, is the usual time.
fn patience(value: Option<&Value>) -> Patience {
    let given = match value {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::Bool(true)) => Some(1.0),
        _ => None,
    };
    match (given.filter(|seconds| *seconds != 0.0), value) {
        (Some(seconds), Some(value)) => Patience {
            seconds,
            written: args::text_of(value),
        },
        _ => Patience {
            seconds: TIMEOUT_SECONDS_DEFAULT,
            written: format!("{TIMEOUT_SECONDS_DEFAULT:.0}"),
        },
    }
}

/// Starts the command and returns at once.
fn in_background(
    hands: &mut Hands<'_>,
    command: &str,
    workdir: Option<&str>,
    given: &Map<String, Value>,
) -> Result<ToolResult, Stop> {
    let mut notify = args::truthy(given.get("notify_on_complete"));
    let no_words = Vec::new();
    let mut asked_for = match given.get("watch_patterns") {
        Some(Value::Array(words)) => words,
        _ => &no_words,
    };
    let is_silent = !notify && asked_for.is_empty();
    // Nothing is promised that could not be told any more.
    let is_promised_nothing = !is_silent && hands.ends_with_its_turn();
    if is_promised_nothing {
        notify = false;
        asked_for = &no_words;
    }
    // What is no text is found in none.
    let words = asked_for.iter().filter_map(Value::as_str);
    let watch: Vec<String> = words.map(str::to_owned).collect();
    let wants_terminal = args::truthy(given.get("pty"));
    let reads_a_pipe = reads_a_pipe(command);
    let request = JobRequest {
        command,
        workdir,
        notify,
        watch: if notify { Vec::new() } else { watch },
        terminal: wants_terminal && !reads_a_pipe,
    };
    let asked = hands.asked();
    let job = hands.start(&request)?;
    let mut result = Map::new();
    result.insert("output".into(), "Background process started".into());
    result.insert("session_id".into(), job.id.into());
    result.insert("pid".into(), Value::Null);
    result.insert("exit_code".into(), 0.into());
    result.insert("error".into(), Value::Null);
    if hands.was_allowed(asked) {
        result.insert("approval".into(), ALLOWED.into());
    }
    if wants_terminal && reads_a_pipe {
        result.insert("pty_note".into(), PIPED.into());
    }
    if is_silent {
        result.insert("hint".into(), SILENT.into());
    }
    if is_promised_nothing {
        result.insert("notify_on_complete".into(), false.into());
        result.insert("notify_unsupported".into(), UNTOLD.into());
    }
    if notify && !asked_for.is_empty() {
        let note = "watch_patterns ignored because notify_on_complete=True; these two flags produce duplicate \
                    notifications when combined";
        result.insert("watch_patterns_ignored".into(), note.into());
    }
    if notify {
        result.insert("notify_on_complete".into(), true.into());
    } else if !asked_for.is_empty() {
        result.insert("watch_patterns".into(), json!(asked_for));
    }
    Ok(ToolResult::ran(&Value::Object(result)))
}

/// Whether a command waits for the end of its input, which typing does not give.
fn reads_a_pipe(command: &str) -> bool {
    let words = command
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    words.starts_with("gh auth login") && words.contains("--with-token")
}

fn plain_in_path(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "/\\:_-.~ +@=,".contains(letter)
}

fn worded(
    command: &str,
    seconds: &str,
    run: &CommandRun,
    was_allowed: bool,
    prove: impl FnOnce(i32, &str) -> Option<Proof>,
) -> ToolResult {
    let (status, suffix) = match run.ending {
        Ending::Exited(status) => (status, String::new()),
        Ending::Signalled(signal) => (-signal, String::new()),
        Ending::TimedOut => (124, format!("\n[Command timed out after {seconds}s]")),
        Ending::OutOfMemory => (-9, "\n[Command killed: out of memory]".to_owned()),
        Ending::OutOfRoom => (
            -9,
            "\n[Command killed: its changes take more room on disk than they may and were discarded; write less, or have `limits.changes_max_mb` raised]".to_owned(),
        ),
        Ending::Killed => (-9, String::new()),
    };
    let trailer = if matches!(run.ending, Ending::Exited(_)) {
        format!(
            "\n{}{}\n",
            "\u{0}".repeat(TRAILER_LETTERS),
            run.cwd.display()
        )
    } else {
        String::new()
    };
    let text = format!("{}{trailer}", run.output);
    let total = run.output_letters + trailer.chars().count();
    let capped = output::capped(&text, total, &suffix);
    let shown = output::cleaned(
        capped.strip_suffix(trailer.as_str()).unwrap_or(&capped),
        command,
    );
    if let Some((denial, asked)) = &run.discarded {
        let code = denial.code();
        let value = json!({
            "output": shown,
            "exit_code": -1,
            "error": format!(
                "The command ran on a copy and its changes were discarded ({code}): {denial}. Next step: {}.",
                code.next_step()
            ),
            "status": "blocked",
        });
        // Running changed nothing outside, whether or not somebody was asked.
        let _ = asked;
        return ToolResult {
            text: pyjson::text(&value),
            fate: Fate::RanDiscarded(code),
        };
    }
    let proof = prove(status, &shown);
    let mut result = Map::new();
    result.insert("output".into(), shown.into());
    result.insert("exit_code".into(), status.into());
    result.insert("error".into(), Value::Null);
    if let Some(proof) = proof {
        result.insert("verification_evidence".into(), proof.shown());
    }
    if was_allowed {
        result.insert("approval".into(), ALLOWED.into());
    }
    for (key, why) in run.reasons.keyed() {
        result.insert(key.into(), why.into());
    }
    if let Some(note) = exit_note::note(command, status) {
        result.insert("exit_code_meaning".into(), note.into());
    }
    ToolResult::ran(&Value::Object(result))
}
