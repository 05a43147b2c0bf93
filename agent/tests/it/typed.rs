//! What a person types means what it means at their own shell, whatever the model's
//! commands did before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::{CommandInput, Fate, TypedCommand};
use serde_json::json;

use crate::support::{Bench, home::Home, pty::Pty};

fn typed(bench: &mut Bench, command: &str) -> String {
    let first = bench.runtime.first_agent();
    let typed = TypedCommand {
        command,
        timeout: None,
        given: CommandInput::Nothing,
        apart: false,
    };
    bench.runtime.run_typed(first, &typed).came.unwrap().output
}

fn models(bench: &mut Bench, command: &str) {
    let report = bench.call("terminal", json!({"command": command}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
}

/// Replaces a program for whatever a shell runs next, in each way a shell has.
const POISON: [&str; 3] = [
    "mkdir -p bin sub; printf '#!/bin/sh\\necho evil\\n' > bin/id; chmod 755 bin/id; export PATH=\"$PWD/bin:$PATH\"",
    // What the shell keeps is read as a script, and a command can write that itself.
    "trap 'echo \"id() { echo evil; }\" >> /run/hermitcrab/env.after' EXIT",
    "cd sub; export BASH_ENV=evil",
];

#[test]
fn what_a_models_commands_left_in_their_shell_is_not_in_its_users() {
    let mut bench = Bench::with_files();
    for poison in POISON {
        models(&mut bench, poison);
        let said = typed(&mut bench, "id -u; pwd; echo \"${BASH_ENV-none}\"");
        let workspace = bench.workspace.to_string_lossy().into_owned();
        assert!(!said.contains("evil"), "{poison}: {said}");
        assert_eq!(said.lines().nth(1), Some(&*workspace), "{poison}: {said}");
    }
}

#[test]
fn what_a_person_left_is_there_for_their_next_command_and_for_the_models() {
    let mut bench = Bench::with_files();
    typed(&mut bench, "mkdir sub; cd sub; export WORD=mine");
    models(
        &mut bench,
        "echo \"$WORD\" > models; export WORD=other; cd ..",
    );
    assert_eq!(bench.text("sub/models").as_deref(), Some("mine\n"));
    let said = typed(&mut bench, "echo \"$WORD\"; basename \"$PWD\"");
    assert_eq!(said, "mine\nsub\n");
}

#[test]
fn a_link_that_a_command_left_open_does_not_lead_on_through_the_question() {
    let home = Home::new();
    let command = "printf '\\033]8;;https://evil\\033\\\\here'; echo b > b.txt";
    // Through somebody else's hands it comes to the terminal as it is.
    let starter = ["sh", "-c", "\"$@\" | cat", "sh"];
    let mut pty = Pty::start_under(&home, &starter, &["exec", "--", command], &[]);
    pty.sees("allow this?");
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    let opened = raw.find("\u{1b}]8;;https://evil").unwrap();
    let closed = raw.find("\u{1b}]8;;\u{1b}\\").unwrap();
    let asked = raw.find("new file").unwrap();
    assert!(opened < closed && closed < asked, "{raw:?}");
    pty.keys("deny\n");
    pty.ended();
}
