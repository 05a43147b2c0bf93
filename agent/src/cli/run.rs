//! `exec` and `call`: a session for one tool call.

use std::io::Write;

use serde_json::{Value, json};

use super::{Setting, Trouble, open::open, say};
use crate::{
    exit,
    runtime::{CallReport, Fate},
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
    let report = match one_call(setting, "terminal", &json!({"command": line})) {
        Ok(report) => report,
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
        say(error);
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
        Ok(report) => {
            print(&report.text);
            code(&report.fate)
        }
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that went away is no failure of the call.
    let _ = writeln!(out, "{text}");
}

pub(super) fn code(fate: &Fate) -> u8 {
    match fate {
        Fate::Ran => exit::OK,
        Fate::ToolError => exit::TOOL_FAILED,
        Fate::RanDiscarded(_) | Fate::Refused(_) | Fate::AskedRefused(_) => exit::REFUSED,
        Fate::Failed(_) => exit::INTERNAL,
    }
}

fn one_call(setting: &Setting, tool: &str, arguments: &Value) -> Result<CallReport, Trouble> {
    let mut runtime = open(setting)?;
    let agent = runtime.first_agent();
    let report = runtime.call(agent, tool, arguments);
    for line in runtime.take_told() {
        say(&visible(&line));
    }
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    Ok(report)
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
