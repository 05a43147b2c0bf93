//! A conversation at a terminal: what is said while a model works, and where it is ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::support::{
    editor::model,
    home::Home,
    pty::{Pty, at_prompt as start},
};

fn settled(more: &str) -> Home {
    let home = Home::new();
    home.configure(&format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{}\"\n{more}",
        model()
    ));
    home
}

/// Whoever calls off what a model does did not say no to it.
#[test]
fn what_a_model_runs_is_called_off_and_not_refused() {
    let home = settled("");
    let mut pty = start(&home);
    let works = json!([[["terminal", {"command": "echo beg$((40 + 2))un; sleep 3000"}]], "over"]);
    pty.keys(&format!("{works}\r"));
    pty.sees("beg42un");
    pty.interrupt_until("called off");
    let shown = pty.prompt();
    assert!(
        !shown.contains("you said no") && !shown.contains("refused"),
        "{shown}"
    );
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn where_a_directory_of_a_tool_is_shut_it_is_said_how_it_is_opened() {
    let home = settled("");
    let mut pty = start(&home);
    let note = json!({"action": "add", "target": "memory", "content": "wool"});
    let works = json!([[["memory", note]], [["skills_list", {}]], "all told"]);
    pty.keys(&format!("{works}\r"));
    for dir in ["~/.hermes/memories", "~/.hermes/skills"] {
        let how = format!("hermitcrabconfigadd-directory{dir}`");
        // The rows of a screen are cut.
        pty.until(|shown| shown.split_whitespace().collect::<String>().contains(&how));
    }
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn whoever_waits_for_servers_is_told_for_which() {
    let home = settled("[servers.slow]\ncommand = [\"sleep\", \"3000\"]\ntimeout_seconds = 1\n");
    let mut pty = start(&home);
    pty.keys("hello there\r");
    pty.sees("asking for tools: slow");
    pty.sees("the tools of the server `slow` are not offered");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn a_server_that_was_called_off_is_asked_again() {
    let home = settled("[servers.slow]\ncommand = [\"sleep\", \"3000\"]\ntimeout_seconds = 60\n");
    let mut pty = start(&home);
    pty.keys("hello there\r");
    pty.sees("asking for tools: slow");
    pty.keys("\u{3}");
    pty.sees("the server `slow` was not heard out");
    pty.prompt();
    pty.keys("hello again\r");
    pty.until(|shown| shown.matches("asking for tools: slow").count() == 2);
    pty.keys("\u{3}");
    pty.until(|shown| shown.matches("was not heard out").count() == 2);
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

/// What steers a model steers no terminal: no title, no clipboard, no question of this program's.
#[test]
fn what_a_model_says_in_a_chat_draws_nothing_on_a_terminal() {
    let home = settled("");
    let said = "one\u{1b}[2J\u{1b}]52;c;bHM=\u{7}two";
    let words = json!([said]).to_string();
    let mut pty = Pty::start(&home, &["chat", &words], &[]);
    pty.sees("one\\u{1b}[2J\\u{1b}]52;c;bHM=\\u{7}two");
    assert!(pty.ended().success());
    // A program gets the words as they are.
    assert!(home.ok(&["chat", &words]).contains(said));
}

#[test]
fn a_chat_at_a_terminal_says_what_becomes_of_a_line() {
    let home = settled("");
    let mut pty = Pty::start(&home, &["chat"], &[]);
    pty.sees("each line is said to the model");
    pty.sees("> ");
    pty.keys(&format!("{}\r", json!(["first answer"])));
    pty.sees("first answer");
    pty.keys("\u{4}");
    assert!(pty.ended().success());
}
