//! A cargo that is started by a program which cargo itself has started.
//!
//! `cargo run` says to a program what package it is of, and whatever the program
//! starts is told so, too. Another cargo would take it for a change: `ring` is built
//! again whenever one of these changes, and with it all that stands above it.

use std::process::Command;

/// What `cargo run` says and build scripts ask for.
pub const OF_ONE_RUN: [&str; 9] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// The command, told nothing of the run it is started in.
pub fn apart(command: &mut Command) -> &mut Command {
    for name in OF_ONE_RUN {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_started_by_a_program_is_told_nothing_of_its_run() {
        let mut command = Command::new("sh");
        command.args(["-c", "env"]);
        for name in OF_ONE_RUN {
            command.env(name, "told");
        }
        let said = |command: &mut Command| {
            let output = command.output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(said(&mut command).contains("CARGO_PKG_NAME=told"));
        let said = said(apart(&mut command));
        for name in OF_ONE_RUN {
            assert!(!said.contains(&format!("{name}=")), "{name}");
        }
    }
}
