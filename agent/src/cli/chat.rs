//! `chat`: a conversation with a model that works in the workspace.

use std::{cell::Cell, ffi::OsStr, io::IsTerminal as _, path::PathBuf, rc::Rc};

use hermitcrab_core::{label::Source, outcome::DenialCode};

use super::{
    Setting, Trouble, attach, begin,
    choice::{Choice, NO_MODEL, backend, let_talk},
    conversations::{GoOn, Going},
    cron, no_text, open, run, say,
    seen::Seen,
};
use crate::{
    ambient,
    cancel::Cancel,
    chat::{self, Chat, ChatTurn, TurnEnd, Watch},
    exit,
    model::ModelPort,
    person::TerminalUser,
    runtime::{Fate, GrantWords, Runtime},
};

/// What is to be said, and what is laid beside it.
#[derive(clap::Args, Debug)]
pub struct Words {
    /// A file to lay beside the words, or `-` for the standard input. What is in it counts as
    /// read: neither what was granted before nor the mode speaks for you after that. Once for each
    #[arg(long, value_name = "FILE", requires = "words")]
    attach: Vec<PathBuf>,
    /// What to say; `-` for all of the standard input at once, which counts as your own words;
    /// without it each line of that is said
    words: Option<String>,
}

/// What is to be said, if the command line says so.
fn said(words: Option<&str>) -> Result<Option<String>, Trouble> {
    let words = match words {
        None => return Ok(None),
        Some(attach::INPUT) => attach::input()?,
        Some(words) => words.to_owned(),
    };
    if words.trim().is_empty() {
        let why = "there is nothing to say: the words are empty";
        return Err((why.to_owned(), exit::USAGE));
    }
    Ok(Some(words))
}

/// The same with what is attached, behind it.
fn said_with_attached(said_words: &Words) -> Result<Option<String>, Trouble> {
    let inputs = said_words.attach.iter().map(|file| file.as_os_str());
    let inputs = inputs.chain(said_words.words.iter().map(OsStr::new));
    if inputs.filter(|name| *name == attach::INPUT).count() > 1 {
        let why = "the standard input is named twice, and is there once";
        return Err((why.to_owned(), exit::USAGE));
    }
    let Some(mut words) = said(said_words.words.as_deref())? else {
        return Ok(None);
    };
    for text in attach::attached(&said_words.attach)? {
        words.push_str("\n\n");
        words.push_str(&text);
    }
    Ok(Some(words))
}

pub fn chat(setting: &Setting, choice: &Choice, go_on: &GoOn, said_words: &Words) -> u8 {
    let cancel = Cancel::default();
    let mut is_alone = false;
    let words = match said_with_attached(said_words) {
        Ok(words) => words,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    let words = words.as_deref();
    let ready = open::ground(&setting.place).and_then(|ground| {
        let backend = backend(&ground, choice, &cancel)?;
        let backend = backend.ok_or_else(|| (NO_MODEL.to_owned(), exit::USAGE))?;
        let going = Going::begin(&ground, setting, go_on)?;
        let user = TerminalUser::open().map(|terminal| terminal.asked_in(&ground.workspace));
        is_alone = user.is_none();
        let runtime = begin::session_after(setting, user, going.past())?;
        Ok((backend, runtime, going))
    });
    let (mut backend, mut runtime, mut going) = match ready {
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
    if words.is_some() {
        // Nothing is said after these words, so nothing could be told then.
        runtime.end_with_its_turn();
    }
    if !said_words.attach.is_empty() {
        let agent = runtime.first_agent();
        if let Err(denial) = runtime.hear(agent, Source::File) {
            say(&denial.to_string());
            return exit::LEDGER;
        }
    }
    let runner = cron::Runner::new(&setting.place, choice).ending(cancel.clone());
    runtime.run_jobs_through(Box::new(runner));
    let mut chat = going.chat(&runtime, &backend.model);
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
    // ^C ends the conversation only where it ended a job that was run for it.
    let mut seen = Seen::new(ambient::screen(), cancel, Rc::new(Cell::new(false)));
    let mut say_to = |words: &str, seen: &mut Seen| {
        going.ask(words);
        let mut watch = going.kept_by(seen);
        let code = one(&mut chat, &mut runtime, port, &mut watch, (words, is_alone));
        going.keep(&chat, &runtime);
        code
    };
    let code = match words {
        Some(words) => say_to(words, &mut seen),
        None => each_line(say_to, &mut seen),
    };
    super::wind_up(&mut runtime);
    let lost = runtime.take_lost();
    let code = match refused(&lost).filter(|_| is_alone) {
        Some(why) => {
            say(&why);
            if code == exit::OK {
                exit::REFUSED
            } else {
                code
            }
        }
        None => code,
    };
    match runtime.end_session() {
        Ok(()) => code,
        Err(error) => {
            say(&error.to_string());
            exit::LEDGER
        }
    }
}

fn one(
    chat: &mut Chat,
    runtime: &mut Runtime,
    port: &mut dyn ModelPort,
    watch: &mut dyn Watch,
    (words, is_alone): (&str, bool),
) -> u8 {
    let turn = chat.turn_watched(runtime, port, words, watch);
    for line in runtime.take_told() {
        say(&crate::screen::visible(&line));
    }
    let lost = runtime.take_lost();
    match turn {
        Ok(turn) => {
            told(&turn);
            // A call that tells of a loss is refused itself.
            let codes = Some(turn_codes(&turn)).filter(|codes| !codes.is_empty());
            let codes = codes.unwrap_or(lost);
            let refused = if is_alone { refused(&codes) } else { None };
            if let Some(why) = &refused {
                say(why);
            }
            match turn.end {
                TurnEnd::Answered if refused.is_some() => exit::REFUSED,
                TurnEnd::Answered if turn.left_out == 0 => exit::OK,
                TurnEnd::Answered
                | TurnEnd::CutOff
                | TurnEnd::RoundsSpent
                | TurnEnd::HeldBack
                | TurnEnd::Halted
                | TurnEnd::GaveUp
                | TurnEnd::Silent
                | TurnEnd::Stopped => exit::TOOL_FAILED,
            }
        }
        Err(error) => {
            say(&error.to_string());
            exit::ENVIRONMENT
        }
    }
}

/// By which codes calls of a turn were refused.
fn turn_codes(turn: &ChatTurn) -> Vec<DenialCode> {
    turn.made
        .iter()
        .filter_map(|made| match made.fate {
            Fate::RanDiscarded(code) | Fate::Refused(code) | Fate::AskedRefused(code) => Some(code),
            Fate::Ran | Fate::ToolError | Fate::Failed(_) => None,
        })
        .collect()
}

/// What was refused where nobody could be asked, and what its user can do.
fn refused(codes: &[DenialCode]) -> Option<String> {
    let calls = match codes.len() {
        0 => return None,
        1 => "1 call was".to_owned(),
        calls => format!("{calls} calls were"),
    };
    let is_after_reading =
        |code: &DenialCode| matches!(code, DenialCode::UntrustedFlow | DenialCode::NoAnswer);
    let how = match codes.iter().any(is_after_reading) {
        true => {
            "once the model has read something, neither what was granted before nor the mode speaks for you; `hermitcrab chat --continue --grant VERB=PLACE 'WORDS'` goes on with a grant that does, or run it at a terminal"
        }
        false => "`--grant VERB=PLACE` grants what is wanted, or run it at a terminal",
    };
    Some(format!("nobody could be asked, and {calls} refused: {how}"))
}

fn each_line(mut say_to: impl FnMut(&str, &mut Seen) -> u8, seen: &mut Seen) -> u8 {
    let mut code = exit::OK;
    let is_typed = std::io::stdin().is_terminal();
    if is_typed {
        say(
            "each line is said to the model, and ^D ends it; `hermitcrab` alone has a prompt with commands of its own",
        );
    }
    let mut lines = std::io::stdin().lock();
    loop {
        if is_typed {
            eprint!("> ");
        }
        let Ok(Some(line)) = no_text::line(&mut lines) else {
            break;
        };
        if !seen.goes_on() {
            break;
        }
        let Ok(line) = line else {
            say(no_text::LINE);
            code = exit::USAGE;
            continue;
        };
        if !line.trim().is_empty() {
            code = say_to(&line, seen);
        }
    }
    code
}

/// Why a turn, or its last answer, ended before the model was done, if it did so by itself.
pub fn cut_off(end: TurnEnd) -> Option<&'static str> {
    match end {
        // Its last words say of silence that it is one.
        TurnEnd::Answered | TurnEnd::Silent | TurnEnd::Stopped => None,
        TurnEnd::CutOff => Some(chat::CUT_OFF),
        TurnEnd::RoundsSpent | TurnEnd::HeldBack => {
            Some("the model was cut off: too many answers in one turn")
        }
        TurnEnd::Halted => Some("the model was cut off: it went round in circles"),
        TurnEnd::GaveUp => {
            Some("the turn was ended: the answers of the model could not be carried out")
        }
    }
}

/// The answer on one stream, whether it is whole on the other.
fn told(turn: &ChatTurn) {
    if let Some(why) = cut_off(turn.end) {
        say(why);
    }
    run::print(&turn.text);
}
