//! `completions` and `man`: what a shell and a reader of manuals want to have.

use std::io::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Arguments, say};
use crate::{config::keys, exit, printing, screen::visible};

/// Writes the completions for a shell.
pub fn completions(shell: Shell) -> u8 {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "hermitcrab", &mut out);
    written(&out)
}

/// Writes the manual: of the program, or of one command of it, whose words are `command`.
pub fn man(command: &[String]) -> u8 {
    let mut all = Arguments::command();
    all.build();
    let mut page = all;
    for (place, name) in command.iter().enumerate() {
        let Some(found) = page.find_subcommand(name) else {
            let names = page.get_subcommands().map(clap::Command::get_name);
            let hint = keys::nearest(name, names)
                .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            let asked = command.get(..=place).unwrap_or(command).join(" ");
            say(&format!("there is no command `{asked}`{hint}"));
            return exit::USAGE;
        };
        page = found.clone();
    }
    let mut out = Vec::new();
    match clap_mangen::Man::new(page).render(&mut out) {
        Ok(()) => written(&out),
        Err(error) => {
            say(&format!("cannot write the manual: {error}"));
            exit::INTERNAL
        }
    }
}

/// Writes the manual of the program and of each of its commands into a directory.
pub fn manual(directory: &Path) -> u8 {
    match clap_mangen::generate_to(Arguments::command(), directory) {
        Ok(()) => exit::OK,
        Err(error) => {
            say(&format!(
                "cannot write the manual into `{}`: {error}; the directory must exist",
                visible(&directory.display().to_string())
            ));
            exit::ENVIRONMENT
        }
    }
}

fn written(bytes: &[u8]) -> u8 {
    // A reader that went away has had enough.
    printing::note(&std::io::stdout().lock().write_all(bytes));
    exit::OK
}
