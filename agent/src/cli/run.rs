//! `call`: a session for one tool call.

use std::{borrow::Cow, io::IsTerminal as _};

use hermitcrab_core::{authority::Verb, outcome::DenialCode, tool::Tool};
use serde_json::Value;

use super::{Setting, Trouble, begin, say};
use crate::{
    config::keys::nearest,
    exit,
    runtime::{CallReport, Fate, GrantWords, Runtime},
    screen::visible,
};

/// What can be called, for whoever asks how.
pub fn tools() -> String {
    let own: Vec<&str> = Tool::all_offered().map(Tool::as_str).collect();
    format!(
        "{}; or a tool of a configured server, as `hermitcrab servers NAME` lists them",
        own.join(", ")
    )
}

pub fn call(setting: &Setting, tool: &str, arguments: &str) -> u8 {
    let arguments = match read(arguments) {
        Ok(arguments) => arguments,
        Err(why) => {
            say(&format!(
                "{why}; they are one object, such as '{{\"path\": \"notes.txt\"}}'"
            ));
            return exit::USAGE;
        }
    };
    match one_call(setting, tool, &arguments) {
        Ok((report, asked_always)) => {
            print(&report.text);
            let hint = asked_always.or_else(|| hint(&report.fate, tool));
            if let Some(hint) = hint {
                say(&hint);
            }
            code(&report.fate)
        }
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

/// The arguments; a model's are an object or none.
fn read(arguments: &str) -> Result<Value, String> {
    match serde_json::from_str(arguments) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err("the arguments are no JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

/// What helps a person, beside what a model is told.
fn hint(fate: &Fate, tool: &str) -> Option<String> {
    match fate {
        Fate::Refused(DenialCode::UnknownTool) => {
            let meant = nearest(tool, Tool::all_offered().map(Tool::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
            Some(format!("{meant}`hermitcrab call --help` names all tools"))
        }
        Fate::Refused(DenialCode::NoCap) | Fate::RanDiscarded(DenialCode::NoCap) => Some(
            "nobody could be asked; `--grant VERB=PLACE` grants what it names for this call, and `hermitcrab explain \
             VERB PLACE` says by which rule"
                .to_owned(),
        ),
        Fate::Ran
        | Fate::ToolError
        | Fate::Refused(_)
        | Fate::RanDiscarded(_)
        | Fate::AskedRefused(_)
        | Fate::Failed(_) => None,
    }
}

/// A program gets the words as they are; on a terminal nothing in them draws.
pub(super) fn print(text: &str) {
    let shown = if std::io::stdout().is_terminal() {
        Cow::Owned(visible(text))
    } else {
        Cow::Borrowed(text)
    };
    // A reader that went away is no failure of what was done.
    println!("{shown}");
}

pub(super) fn code(fate: &Fate) -> u8 {
    match fate {
        Fate::Ran => exit::OK,
        Fate::ToolError => exit::TOOL_FAILED,
        Fate::RanDiscarded(_) | Fate::Refused(_) | Fate::AskedRefused(_) => exit::REFUSED,
        Fate::Failed(_) => exit::INTERNAL,
    }
}

/// What is said where what was refused is asked about each time: a grant would not help.
fn asked_always(runtime: &mut Runtime, report: &CallReport) -> Option<String> {
    let (Fate::Refused(code) | Fate::RanDiscarded(code)) = &report.fate else {
        return None;
    };
    if !matches!(code, DenialCode::NoCap | DenialCode::SensitivePath) {
        return None;
    }
    let told: Value = serde_json::from_str(&report.text).ok()?;
    let (verb, place) = refused(told.get("error")?.as_str()?)?;
    let words = GrantWords::new(verb, place);
    let agent = runtime.first_agent();
    // Of words that mean nothing there is nothing to say.
    let what = runtime.asked_all_the_same(agent, &words).ok()?;
    (!what.is_empty()).then(|| {
        format!(
            "nobody could be asked; `{}` is asked about each time, whatever is granted: do this at a terminal, where you can be asked",
            visible(place)
        )
    })
}

/// The effect on a file that the words of a refusal name: its verb, and the place.
fn refused(error: &str) -> Option<(&'static str, &str)> {
    Verb::FILES.iter().find_map(|verb| {
        let (_, from) = error.split_once(&format!("`{} ", verb.as_str()))?;
        let (place, _) = from.split_once('`')?;
        Some((verb.as_str(), place))
    })
}

/// One call in a session of its own, and what is said of it where no grant would help.
fn one_call(
    setting: &Setting,
    tool: &str,
    arguments: &Value,
) -> Result<(CallReport, Option<String>), Trouble> {
    let mut runtime = begin::session(setting)?;
    let agent = runtime.first_agent();
    let report = runtime.call(agent, tool, arguments);
    let asked_always = asked_always(&mut runtime, &report);
    super::wind_up(&mut runtime);
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    Ok((report, asked_always))
}
