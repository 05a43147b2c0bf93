//! The first start: three questions, each of which may be left unanswered.
//! Whatever is answered, a file is written, so that nothing is asked twice.

use super::editor::{Came, Source};
use crate::{cli::Trouble, config::edit::Edit, exit, screen::Screen, screen::Tone};

/// Where a model usually is on a person's own machine.
const LOCAL: &str = "http://127.0.0.1:8080/v1";

/// Asks, and writes the file.
pub fn run(source: &mut Source, file: &std::path::Path, screen: &Screen) -> Result<(), Trouble> {
    let wrong = |error: crate::config::ConfigError| (error.to_string(), exit::USAGE);
    println!(
        "{}\nThis is the first start. An empty answer leaves a question out, ^D leaves out the rest;\n`config` changes everything later.",
        screen.tone(Tone::Bold, "Welcome to hermitcrab.")
    );
    let mut edit = Edit::open(file).map_err(wrong)?;
    let mut ask = |prompt: &str| match source.answer(prompt) {
        Came::Line(line) => Some(line.trim().to_owned()).filter(|line| !line.is_empty()),
        Came::Interrupted | Came::End => None,
    };
    if let Some(model) = ask("name of the model you use [none]: ") {
        let base = ask(&format!("where it is [{LOCAL}]: ")).unwrap_or_else(|| LOCAL.to_owned());
        let key = ask("variable of the environment that holds its key [none]: ");
        let given = [
            ("model", Some(model.as_str())),
            ("base_url", Some(base.as_str())),
            ("key_env", key.as_deref()),
        ];
        edit.set_model("planner", &given).map_err(wrong)?;
    }
    edit.save().map_err(wrong)?;
    println!("written to `{}`", file.display());
    Ok(())
}
