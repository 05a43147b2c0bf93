//! The first start: three questions, each of which may be left unanswered.
//! Whatever is answered, a file is written, so that nothing is asked twice; ^C
//! and `exit` leave out what was answered, too.

use super::editor::{Came, Source};
use super::words::{self, Line};
use crate::{
    cli::{Trouble, no_text},
    config::edit::Edit,
    exit,
    model::{http::check_address, key::named_variable},
    screen::{Screen, Tone},
    text::rows,
};

/// Where a model usually is on a person's own machine.
const LOCAL: &str = "http://127.0.0.1:8080/v1";

/// Asks, and writes the file.
pub fn run(source: &mut Source, file: &std::path::Path, screen: &Screen) -> Result<(), Trouble> {
    let wrong = |error: crate::config::ConfigError| (error.to_string(), exit::USAGE);
    let folded = |text: &str| {
        let columns = screen.columns_of(&std::io::stdout());
        rows::folded(text, columns, 0)
    };
    println!("{}", screen.tone(Tone::Bold, "Welcome to hermitcrab."));
    println!(
        "{}",
        folded(
            "This is the first start. An empty answer leaves a question out, ^D leaves out the rest; \
             `config` changes everything later."
        )
    );
    let mut edit = Edit::open(file).map_err(wrong)?;
    let (mut is_over, mut is_called_off) = (false, false);
    let mut ask = |prompt: &str| {
        if is_over {
            return None;
        }
        let mut came = source.answer(prompt);
        while came == Came::NoText {
            println!("{}", no_text::LINE);
            came = source.answer(prompt);
        }
        let is_exit = |line: &str| words::read(line.trim()) == Line::Exit;
        is_called_off = match &came {
            Came::Line(line) => is_exit(line),
            Came::Interrupted => true,
            Came::End | Came::NoText => false,
        };
        is_over = is_called_off || came == Came::End;
        match came {
            _ if is_called_off => None,
            Came::Line(line) => Some(line.trim().to_owned()).filter(|line| !line.is_empty()),
            Came::Interrupted | Came::End | Came::NoText => None,
        }
    };
    let answers = answers(&mut ask);
    match answers.filter(|_| !is_called_off) {
        Some((model, base, key)) => {
            let given = [
                ("model", Some(model.as_str())),
                ("base_url", Some(base.as_str())),
                ("key_env", key.as_deref()),
            ];
            edit.set_model("planner", &given).map_err(wrong)?;
            edit.save().map_err(wrong)?;
            let written = format!(
                "written to `{}`; `model check` tries it out",
                file.display()
            );
            println!("{}", folded(&written));
        }
        None => {
            edit.save().map_err(wrong)?;
            let none = format!(
                "no model is named; `{}` is there to be filled",
                file.display()
            );
            println!("{}", folded(&none));
        }
    }
    Ok(())
}

/// Whether somebody who knows the prompt typed ahead.
fn is_for_later(answer: &str) -> bool {
    !matches!(
        words::read(answer),
        Line::Nothing | Line::Say(_) | Line::Wrong(_)
    )
}

/// The model's name, its address, and where its key is.
fn answers(
    ask: &mut impl FnMut(&str) -> Option<String>,
) -> Option<(String, String, Option<String>)> {
    let model = loop {
        let model = ask("name of the model you use [none]: ")?;
        if !is_for_later(&model) {
            break model;
        }
        println!(
            "no model is called `{model}`; commands come afterwards, and ^D leaves out the questions"
        );
    };
    let base = loop {
        let Some(base) = ask(&format!("where it is [{LOCAL}]: ")) else {
            break LOCAL.to_owned();
        };
        match check_address(&base) {
            Ok(()) => break base,
            Err(why) => println!("{why}; ^D leaves out the rest"),
        }
    };
    let key = loop {
        let Some(key) = ask("variable of the environment that holds its key [none]: ") else {
            break None;
        };
        match named_variable(&key) {
            Ok(()) => break Some(key),
            Err(why) => println!("{why}; ^D leaves out the rest"),
        }
    };
    Some((model, base, key))
}
