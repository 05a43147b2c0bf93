//! `call`: a session for one tool call.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Write},
};

use serde_json::Value;

use super::{Setting, Trouble, begin, say};
use crate::{
    exit,
    runtime::{CallReport, Fate},
    screen::visible,
};

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

/// One call in a session of its own.
fn one_call(setting: &Setting, tool: &str, arguments: &Value) -> Result<CallReport, Trouble> {
    let mut runtime = begin::session(setting)?;
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
