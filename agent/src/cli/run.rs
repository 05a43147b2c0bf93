//! `exec` and `call`: a session for one tool call.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Write},
};

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::journal::CommitId;
use serde_json::{Value, json};

use super::{Setting, Trouble, open::open, say, undo};
use crate::{
    exit,
    runtime::{CallReport, Fate, Runtime},
    screen::visible,
};

pub fn exec(setting: &Setting, command: &[String]) -> u8 {
    let line = match command {
        [line] => line.clone(),
        words => words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let (report, kept) = match one_call(setting, "terminal", &json!({"command": line})) {
        Ok(done) => done,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    let result: Value = serde_json::from_str(&report.text).unwrap_or(Value::Null);
    if let Some(output) = result
        .get("output")
        .and_then(Value::as_str)
        .filter(|output| !output.is_empty())
    {
        print(output);
    }
    if let Some(error) = result.get("error").and_then(Value::as_str) {
        say(in_own_words(&report.fate).unwrap_or(error));
    }
    if let Some(withheld) = result.get("withheld").and_then(Value::as_str) {
        say(&visible(withheld));
    }
    if let Some(id) = kept {
        say(&format!(
            "kept as commit {id}; `hermitcrab undo` takes it back"
        ));
    }
    let status = result.get("exit_code").and_then(Value::as_i64).unwrap_or(0);
    match report.fate {
        // A signal is told as shells do.
        Fate::Ran if status < 0 => u8::try_from(128_i64.saturating_sub(status)).unwrap_or(u8::MAX),
        Fate::Ran => u8::try_from(status).unwrap_or(u8::MAX),
        other => code(&other),
    }
}

pub fn call(setting: &Setting, tool: &str, arguments: &str) -> u8 {
    let arguments: Value = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            say(&format!("the arguments are not JSON: {error}"));
            return exit::USAGE;
        }
    };
    match one_call(setting, tool, &arguments) {
        Ok((report, _)) => {
            print(&report.text);
            code(&report.fate)
        }
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

/// What became of a command, for the person who decided it: the tool's own
/// error is worded for a model, which has to go on from there.
pub(super) fn in_own_words(fate: &Fate) -> Option<&'static str> {
    let Fate::RanDiscarded(code) = fate else {
        return None;
    };
    let words = [
        (
            DenialCode::RejectedByUser,
            "you said no; what it changed is discarded",
        ),
        (
            DenialCode::NoAnswer,
            "no answer came; what it changed is discarded",
        ),
        (
            DenialCode::UnknownAnswer,
            "none of the answers offered came; what it changed is discarded",
        ),
    ];
    words
        .into_iter()
        .find(|(known, _)| known == code)
        .map(|(_, words)| words)
}

/// A program gets the words as they are; on a terminal nothing in them draws.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let shown = if out.is_terminal() {
        Cow::Owned(visible(text))
    } else {
        Cow::Borrowed(text)
    };
    // A reader that went away is no failure of the call.
    let _ = writeln!(out, "{shown}");
}

pub(super) fn code(fate: &Fate) -> u8 {
    match fate {
        Fate::Ran => exit::OK,
        Fate::ToolError => exit::TOOL_FAILED,
        Fate::RanDiscarded(_) | Fate::Refused(_) | Fate::AskedRefused(_) => exit::REFUSED,
        Fate::Failed(_) => exit::INTERNAL,
    }
}

/// One call in a session of its own, and where a person watches the commit it
/// made, if it made one. For programs what the command said is all there is.
fn one_call(
    setting: &Setting,
    tool: &str,
    arguments: &Value,
) -> Result<(CallReport, Option<CommitId>), Trouble> {
    let mut runtime = open(setting)?;
    let agent = runtime.first_agent();
    let is_watched = std::io::stderr().is_terminal();
    let last = |runtime: &Runtime| is_watched.then(|| undo::last_commit(runtime)).flatten();
    let before = last(&runtime);
    let report = runtime.call(agent, tool, arguments);
    let kept = last(&runtime).filter(|id| before != Some(*id));
    for line in runtime.take_told() {
        say(&visible(&line));
    }
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    Ok((report, kept))
}

/// A word as the shell reads it back.
fn quoted(word: &str) -> String {
    let plain = !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte));
    if plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("a-b.c"), "a-b.c");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
