//! `exec` and `call`: a session for one tool call.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use hermitcrab_core::session::Asking;
use hermitcrab_sandbox::SpawnerProgram;
use serde_json::{Value, json};

use super::{Setting, Trouble, say};
use crate::{
    ambient::{self, BootClock, NobodyThere, TerminalUser},
    audit::Ledger,
    config, exit,
    ports::UserPort,
    runtime::{CallReport, Fate, GrantWords, Runtime, RuntimeConfig, real},
    store::{State, StateError},
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

fn code(fate: &Fate) -> u8 {
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
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    Ok(report)
}

pub(super) fn open(setting: &Setting) -> Result<Runtime, Trouble> {
    let missing = |error: std::io::Error| (error.to_string(), exit::ENVIRONMENT);
    let places = ambient::places().map_err(missing)?;
    let config =
        config::read(&places.config_file).map_err(|error| (error.to_string(), exit::USAGE))?;
    let workspace = setting
        .workspace
        .clone()
        .unwrap_or_else(|| places.current.clone());
    let workspace = places
        .current
        .join(&workspace)
        .canonicalize()
        .map_err(|error| {
            (
                format!(
                    "cannot use the workspace `{}`: {error}",
                    workspace.display()
                ),
                exit::USAGE,
            )
        })?;
    let state_dir = setting
        .state_dir
        .as_ref()
        .map_or_else(|| places.state_dir.clone(), |dir| places.current.join(dir));
    // Commands see a copy of all of the workspace, and the agent's own files
    // are none of their business.
    // Either may be reached through links, the file by itself, too.
    let own: Vec<PathBuf> = std::iter::once(state_dir.as_path())
        .chain(places.config_file.parent())
        .chain([places.config_file.as_path()])
        .flat_map(|own| [own.to_owned(), real(own)])
        .collect();
    if let Some(overlapping) = own
        .iter()
        .find(|own| workspace.starts_with(own) || own.starts_with(&workspace))
    {
        return Err((
            format!(
                "the workspace `{}` overlaps the agent's own directory `{}`; choose a narrower one",
                workspace.display(),
                overlapping.display()
            ),
            exit::USAGE,
        ));
    }
    // What is kept and cannot be trusted counts as nothing; the ledger has to hold.
    let anchor = match State::open(&state_dir) {
        Ok(state) => Some(state.anchor),
        Err(StateError::Directory(error)) => return Err((error.to_string(), exit::LEDGER)),
        Err(error) => {
            say(&error.to_string());
            None
        }
    };
    let ledger = Ledger::open_anchored(&state_dir, anchor)
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    let spawner = SpawnerProgram::Own;
    let isolation = ambient::probe(&spawner).map_err(missing)?.isolation;
    let terminal = TerminalUser::open();
    let asking = if terminal.is_some() {
        Asking::Prompt
    } else {
        Asking::Refuse
    };
    let user: Box<dyn UserPort> = match terminal {
        Some(terminal) => Box::new(terminal),
        None => Box::new(NobodyThere),
    };
    let mut runtime = Runtime::open_on(
        RuntimeConfig {
            env: ambient::command_env(&places.home),
            protected: own,
            home: places.home,
            workspace: workspace.clone(),
            state_dir,
            isolation,
            asking,
            session: ambient::session_number().map_err(missing)?,
            spawner,
        },
        ledger,
        user,
        Box::new(BootClock),
    )
    .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let agent = runtime.first_agent();
    let trouble = |error: crate::runtime::WordsError| (error.to_string(), exit::USAGE);
    runtime.grant_basics(agent).map_err(trouble)?;
    for grant in &config.grants {
        runtime
            .grant(agent, &grant.words(&workspace))
            .map_err(trouble)?;
    }
    for grant in &setting.grant {
        let words = words(grant, &places.current)?;
        runtime.grant(agent, &words).map_err(trouble)?;
    }
    Ok(runtime)
}

/// `VERB=PATH`, the path from the current directory.
fn words(text: &str, current: &Path) -> Result<GrantWords, Trouble> {
    let Some((verb, on)) = text.split_once('=') else {
        return Err((
            format!("`{text}` is not VERB=PATH, such as fs.create=./src"),
            exit::USAGE,
        ));
    };
    let on = if on == "*" || on.starts_with('~') {
        PathBuf::from(on)
    } else {
        current.join(on)
    };
    Ok(GrantWords::new(verb, &on.to_string_lossy()))
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
