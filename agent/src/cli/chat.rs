//! `chat`: a conversation with a model that works in the workspace.

use std::{
    io::{BufRead, Write},
    path::{Path, PathBuf},
};

use super::{Setting, Trouble, cron, open, say};
use crate::{
    chat::{Chat, ChatTurn, TurnEnd, Watch},
    exit,
    model::{
        Backend, Cancel, ModelError, ModelPort,
        http::{HttpConfig, HttpModel},
    },
    runtime::{Fate, GrantWords, Runtime},
};

/// What `chat` takes besides the setting.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// The model's name, as its backend knows it [default: the one of `models.planner` in the configuration]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Where the model is: an address that speaks chat completions
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// A second model that may propose a grant where something was refused; you accept it, or not
    #[arg(long, value_name = "NAME")]
    judge: Option<String>,
    /// A file that holds the key for it
    #[arg(long, value_name = "FILE", requires = "model")]
    key_file: Option<PathBuf>,
}

pub fn chat(setting: &Setting, choice: &Choice, words: Option<&str>) -> u8 {
    let cancel = Cancel::default();
    let ready = open::ground(&setting.place)
        .and_then(|ground| backend(&ground, choice, &cancel))
        .and_then(|backend| match backend {
            Some(backend) => Ok((backend, open::open(setting)?)),
            None => Err((NO_MODEL.to_owned(), exit::USAGE)),
        });
    let (mut backend, mut runtime) = match ready {
        Ok(ready) => ready,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    if let Err((message, code)) = let_talk(&mut runtime, &backend) {
        say(&message);
        return code;
    }
    let runner = cron::Runner::new(&setting.place, choice).ending(cancel.clone());
    runtime.run_jobs_through(Box::new(runner));
    let mut chat = Chat::new(&runtime, &backend.model);
    if let Some(judge) = &choice.judge {
        let talk = GrantWords::new("model.send", judge);
        let agent = runtime.first_agent();
        if let Err(error) = runtime.grant(agent, &talk) {
            say(&error.to_string());
            return exit::USAGE;
        }
        chat = chat.with_judge(judge);
    }
    let port = &mut *backend.port;
    let mut until = Until(cancel);
    let code = match words {
        Some(words) => one(&mut chat, &mut runtime, port, &mut until, words),
        None => each_line(&mut chat, &mut runtime, port, &mut until),
    };
    match runtime.end_session() {
        Ok(()) => code,
        Err(error) => {
            say(&error.to_string());
            exit::LEDGER
        }
    }
}

/// What is said where a model is needed and none is configured.
pub const NO_MODEL: &str = "no model is configured; name one with `--model NAME` and where it is with `--base-url URL`, or once and for all with `hermitcrab config backend http --model NAME --base-url URL`";

/// The model chosen on the command line, or else the configured one.
pub fn backend(
    ground: &open::Ground,
    choice: &Choice,
    cancel: &Cancel,
) -> Result<Option<Backend>, Trouble> {
    let wrong = |error: ModelError| (error.to_string(), exit::USAGE);
    if let Some(model) = &choice.model {
        let base = choice.base_url.as_deref();
        let key = choice.key_file.as_deref().map(key).transpose();
        let base_url = base.unwrap_or("http://127.0.0.1:8080/v1").to_owned();
        let config = HttpConfig {
            base_url: base_url.clone(),
            key: key.map_err(|message| (message, exit::USAGE))?,
            retries: 2,
            ..HttpConfig::default()
        };
        let port = HttpModel::configured(config).map_err(wrong)?;
        return Ok(Some(Backend {
            model: model.clone(),
            place: base_url,
            port: Box::new(port.with_cancel(cancel.clone())),
        }));
    }
    match &ground.config.models().planner {
        Some(words) => ground.model(words, cancel).map(Some),
        None => Ok(None),
    }
}

/// Naming the model, on the command line or in the configuration, is the
/// user's grant to talk to it.
pub fn let_talk(runtime: &mut Runtime, backend: &Backend) -> Result<(), Trouble> {
    let talk = GrantWords::new("model.send", &backend.model);
    let agent = runtime.first_agent();
    runtime
        .grant(agent, &talk)
        .map(drop)
        .map_err(|error| (error.to_string(), exit::USAGE))
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

/// Ends the conversation when ^C ended a job that was run for it.
struct Until(Cancel);

impl Watch for Until {
    fn goes_on(&mut self) -> bool {
        !self.0.is_thrown()
    }
}

fn one(
    chat: &mut Chat,
    runtime: &mut Runtime,
    port: &mut dyn ModelPort,
    until: &mut Until,
    words: &str,
) -> u8 {
    let turn = chat.turn_watched(runtime, port, words, until);
    for line in runtime.take_told() {
        say(&crate::screen::visible(&line));
    }
    match turn {
        Ok(turn) => {
            told(&turn);
            match turn.end {
                TurnEnd::Answered => exit::OK,
                TurnEnd::RoundsSpent
                | TurnEnd::HeldBack
                | TurnEnd::Halted
                | TurnEnd::GaveUp
                | TurnEnd::Stopped => exit::TOOL_FAILED,
            }
        }
        Err(error) => {
            say(&error.to_string());
            exit::ENVIRONMENT
        }
    }
}

fn each_line(
    chat: &mut Chat,
    runtime: &mut Runtime,
    port: &mut dyn ModelPort,
    until: &mut Until,
) -> u8 {
    let mut code = exit::OK;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !until.goes_on() {
            break;
        }
        if !line.trim().is_empty() {
            code = one(chat, runtime, port, until, &line);
        }
    }
    code
}

/// What became of a call, in words.
pub fn fate(fate: &Fate) -> String {
    match fate {
        Fate::Ran => "done".to_owned(),
        Fate::RanDiscarded(code) => format!("discarded ({code})"),
        Fate::Refused(code) => format!("refused ({code})"),
        Fate::AskedRefused(code) => format!("refused when asked ({code})"),
        Fate::ToolError => "failed".to_owned(),
        Fate::Failed(why) => format!("broke: {}", crate::screen::visible(why)),
    }
}

/// Why a turn ended before the model had nothing more to call, if it did so by itself.
pub fn cut_off(end: TurnEnd) -> Option<&'static str> {
    match end {
        TurnEnd::Answered | TurnEnd::Stopped => None,
        TurnEnd::RoundsSpent | TurnEnd::HeldBack => {
            Some("the model was cut off: too many answers in one turn")
        }
        TurnEnd::Halted => Some("the model was cut off: it went round in circles"),
        TurnEnd::GaveUp => Some("the model was cut off: its answers could not be carried out"),
    }
}

/// The answer on one stream, what was done on the way on the other.
fn told(turn: &ChatTurn) {
    for made in &turn.made {
        let fate = fate(&made.fate);
        say(&format!(
            "{} {}: {fate}",
            made.agent,
            made.tool.escape_debug()
        ));
    }
    if let Some(why) = cut_off(turn.end) {
        say(why);
    }
    let mut out = std::io::stdout().lock();
    // A reader that went away is no failure of the turn.
    let _ = writeln!(out, "{}", turn.text);
}
