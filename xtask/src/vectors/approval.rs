//! What the detectors of commands say.
//!
//! Hermes' leg asks the detector and needs no world. The agent has no detector:
//! its answer is what becomes of the command in its view, so the two columns
//! compare a guess about the text with the effect.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::draft::{Agent, Draft};
use super::emit::{Flag, Suite};
use super::row::{Origin, Row, TMP};

const FLAGS: &[Flag] = &[
    Flag {
        name: "dangerous",
        kind: "detector",
        description: "asks the detector of dangerous commands",
        effect: "a person is not asked, or asked for nothing",
    },
    Flag {
        name: "hardline",
        kind: "detector",
        description: "asks the floor that blocks in every mode",
        effect: "a wipe or halt is not blocked, or harmless text is",
    },
    Flag {
        name: "sudo-stdin",
        kind: "detector",
        description: "asks the guard against passwords piped to sudo",
        effect: "a password reaches sudo unasked",
    },
    Flag {
        name: "missed",
        kind: "known-miss",
        description: "0.19.0 permits what upstream later wants flagged",
        effect: "the command runs unasked",
    },
    Flag {
        name: "false-block",
        kind: "known-false-block",
        description: "0.19.0 flags or blocks what upstream later wants permitted",
        effect: "honest work is stopped",
    },
    Flag {
        name: "settings",
        kind: "function",
        description: "reads a mode, a deny rule, a comment or a backend exemption",
        effect: "a setting means something else than the user wrote",
    },
];

const BENIGN: &str =
    "harmless by upstream's own judgement and the workspace is granted: it has to run";
const SPELLING: &str = "the agent does not judge spelling: nothing is granted, so what the command does stays in its view or is asked about";

/// The suite.
pub fn suite(rows: &[Row]) -> anyhow::Result<Suite> {
    let cases = rows.iter().map(case).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Suite {
        name: "approval",
        description: "What Hermes' command detectors answer, beside what becomes of the same command in the agent's view.",
        flags: FLAGS.to_vec(),
        defaults: json!({
            "context": "interactive",
            "user": "deny_all",
            "world": {"cwd": "/home/u/proj"},
            "settings": {"approvals.mode": "manual"},
            "deadline_ms": 30000,
        }),
        rows: rows.len(),
        cases,
        left_out: Vec::new(),
    })
}

fn case(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let actual = row.actual()?;
    match row.kind() {
        "detect_dangerous_command" => {
            command(row, &input, "dangerous", &actual["dangerous"], "ask")
        }
        "detect_hardline_command" => command(row, &input, "hardline", &actual["hardline"], "deny"),
        "sudo_stdin_guard" => command(row, &input, "sudo-stdin", &actual["blocked"], "deny"),
        "strip_shell_comments" => Ok(Draft::new(row, row.note()?)
            .flag("settings")
            .probe("strip_shell_comments", &input)
            .hermes_without_world()
            .expect(Agent::Either, "a value, not a decision")
            .recorded(answer("none", &json!({"text": actual["text"]})))),
        "normalize_approval_mode" => Ok(Draft::new(row, row.note()?)
            .flag("settings")
            .probe("normalize_approval_mode", &input)
            .hermes_without_world()
            .expect(Agent::Either, "a value, not a decision")
            .recorded(answer("none", &json!({"mode": actual["mode"]})))),
        "user_deny_rule" => {
            let blocked = !actual["matched"].is_null();
            Ok(Draft::new(row, row.note()?)
                .flag("settings")
                .field(
                    "settings",
                    json!({"approvals.mode": "manual", "approvals.deny": input["deny"]}),
                )
                .probe("user_deny_rule", &input)
                .expect(Agent::Either, SPELLING)
                .recorded(with_more(
                    answer(if blocked { "deny" } else { "permit" }, &Value::Null),
                    &json!({"matched": actual["matched"]}),
                )))
        }
        "container_skip" => {
            let skipped = actual["skip"] == json!(true);
            Ok(Draft::new(row, row.note()?)
                .flag("settings")
                .probe("container_skip", &input)
                .hermes_without_world()
                .expect(
                    Agent::MustDeny,
                    "no backend's name switches the monitor off",
                )
                .recorded(answer(if skipped { "permit" } else { "ask" }, &Value::Null)))
        }
        other => bail!("{}: unknown kind `{other}`", row.id),
    }
}

fn command(
    row: &Row,
    input: &Value,
    guard: &str,
    flagged: &Value,
    verdict: &str,
) -> anyhow::Result<Draft> {
    let flagged = flagged
        .as_bool()
        .with_context(|| format!("{}: no verdict", row.id))?;
    let mut asked = json!({"command": text(row, input)?, "guard": guard.replace('-', "_")});
    let mut pure = true;
    for name in ["env", "sudo_password_set"] {
        if !input[name].is_null() {
            // A variable of the environment is set in a forked world only.
            pure &= input[name] == json!(false);
            asked[name] = input[name].clone();
        }
    }
    // A row that disagrees with a later expectation is a miss when it permits and a false block when it flags.
    let later = row.origin()? == Origin::LaterUpstream && row.disagrees();
    let benign = flagged == later;
    let mut draft = Draft::new(row, row.note()?).flag(guard);
    if later {
        draft = draft.flag(if flagged { "false-block" } else { "missed" });
    }
    draft = if benign {
        draft
            .field(
                "held",
                json!([{"id": "ws", "verb": "fs.*", "on": "/home/u/proj"}]),
            )
            .expect(Agent::MustPermit, BENIGN)
    } else {
        draft.expect(Agent::Either, SPELLING)
    };
    if pure {
        draft = draft.hermes_without_world();
    }
    let mut facts = json!({});
    if row.actual()?.get("description").is_some() {
        facts["description"] = row.actual()?["description"].clone();
    }
    Ok(draft.probe("classify_command", &asked).recorded(with_more(
        answer(if flagged { verdict } else { "permit" }, &Value::Null),
        &facts,
    )))
}

/// The command, written out where the row keeps its repeats apart.
fn text(row: &Row, input: &Value) -> anyhow::Result<String> {
    // `$HOME` in a command is for the shell; only the folder of the test run was replaced by the recorder.
    if let Some(command) = row.body["input"]["command"].as_str() {
        return Ok(command.replace("$TMP", TMP));
    }
    let parts = input["command_parts"]
        .as_array()
        .with_context(|| format!("{}: no command", row.id))?;
    let mut command = String::new();
    for part in parts {
        match (
            part.as_str(),
            part["repeat"].as_str(),
            part["times"].as_u64(),
        ) {
            (Some(text), _, _) => command.push_str(text),
            (None, Some(text), Some(times)) => {
                command.push_str(&text.repeat(usize::try_from(times)?))
            }
            _ => bail!("{}: a part is neither text nor a repeat: {part}", row.id),
        }
    }
    if let Some(length) = input["command_length"].as_u64() {
        anyhow::ensure!(
            u64::try_from(command.chars().count())? == length,
            "{}: the parts do not give {length} characters",
            row.id,
        );
    }
    Ok(command)
}

/// What a probe was seen to answer.
pub fn answer(decision: &str, value: &Value) -> Value {
    json!({"answer": {"decision": decision, "value": value}})
}

/// The same with what else the function said.
pub fn with_more(mut answer: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        answer["answer"][name.as_str()] = value.clone();
    }
    answer
}
