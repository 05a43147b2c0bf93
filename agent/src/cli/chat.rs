//! `chat`: a conversation with a model that works in the workspace.

use std::{
    io::{BufRead, Write},
    path::{Path, PathBuf},
};

use super::{Setting, open, say};
use crate::{
    chat::{Chat, ChatTurn, TurnEnd},
    exit,
    model::http::HttpModel,
    runtime::{Fate, GrantWords, Runtime},
};

/// What `chat` takes besides the setting.
#[derive(Debug, clap::Args)]
pub struct Backend {
    /// The model's name, as its backend knows it
    #[arg(long, value_name = "NAME")]
    model: String,
    /// Where the model is: an address that speaks chat completions
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    base_url: String,
    /// A file that holds the key for it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

pub fn chat(setting: &Setting, backend: &Backend, words: Option<&str>) -> u8 {
    let key = match backend.key_file.as_deref().map(key).transpose() {
        Ok(key) => key,
        Err(message) => {
            say(&message);
            return exit::USAGE;
        }
    };
    let mut port = match HttpModel::new(&backend.base_url, key) {
        Ok(port) => port,
        Err(error) => {
            say(&error.to_string());
            return exit::USAGE;
        }
    };
    let mut runtime = match open::open(setting) {
        Ok(runtime) => runtime,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    // Naming the model on the command line is the user's grant to talk to it.
    let talk = GrantWords::new("model.send", &backend.model);
    let agent = runtime.first_agent();
    if let Err(error) = runtime.grant(agent, &talk) {
        say(&error.to_string());
        return exit::USAGE;
    }
    let mut chat = Chat::new(&runtime, &backend.model);
    let code = match words {
        Some(words) => one(&mut chat, &mut runtime, &mut port, words),
        None => each_line(&mut chat, &mut runtime, &mut port),
    };
    match runtime.end_session() {
        Ok(()) => code,
        Err(error) => {
            say(&error.to_string());
            exit::LEDGER
        }
    }
}

/// The key, without the end of its line.
fn key(path: &Path) -> Result<String, String> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => Err(format!("the key file `{}` is empty", path.display())),
        Err(error) => Err(format!(
            "cannot read the key file `{}`: {error}",
            path.display()
        )),
    }
}

fn one(chat: &mut Chat, runtime: &mut Runtime, port: &mut HttpModel, words: &str) -> u8 {
    match chat.turn(runtime, port, words) {
        Ok(turn) => {
            told(&turn);
            match turn.end {
                TurnEnd::Answered => exit::OK,
                TurnEnd::RoundsSpent => exit::TOOL_FAILED,
            }
        }
        Err(error) => {
            say(&error.to_string());
            exit::ENVIRONMENT
        }
    }
}

fn each_line(chat: &mut Chat, runtime: &mut Runtime, port: &mut HttpModel) -> u8 {
    let mut code = exit::OK;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !line.trim().is_empty() {
            code = one(chat, runtime, port, &line);
        }
    }
    code
}

/// The answer on one stream, what was done on the way on the other.
fn told(turn: &ChatTurn) {
    for made in &turn.made {
        let fate = match &made.fate {
            Fate::Ran => "done".to_owned(),
            Fate::RanDiscarded(code) => format!("discarded ({code})"),
            Fate::Refused(code) => format!("refused ({code})"),
            Fate::AskedRefused(code) => format!("refused when asked ({code})"),
            Fate::ToolError => "failed".to_owned(),
            Fate::Failed(why) => format!("broke: {why}"),
        };
        say(&format!(
            "{} {}: {fate}",
            made.agent,
            made.tool.escape_debug()
        ));
    }
    if turn.end == TurnEnd::RoundsSpent {
        say("the model was cut off: too many answers in one turn");
    }
    let mut out = std::io::stdout().lock();
    // A reader that went away is no failure of the turn.
    let _ = writeln!(out, "{}", turn.text);
}
