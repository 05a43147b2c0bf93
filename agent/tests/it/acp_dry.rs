//! A dry run of an editor's changes nothing, whatever was said before and elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    acp_elsewhere::{done, listed},
    support::editor::Editor,
};

const MAKES: &str = "echo b > b.txt";

fn dry(calls: &Value) -> Value {
    json!(format!("/dry-run {calls}"))
}

/// Answers one question of this command at a terminal, in the workspace of the editor.
fn answered_at_a_terminal(editor: &Editor, command: &str, answer: &str) {
    let line = format!(
        "{} exec -- '{command}'; echo ended $?",
        env!("CARGO_BIN_EXE_hermitcrab")
    );
    let mut terminal = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(editor.workspace())
        .env_clear()
        .env("HOME", editor.dir.path())
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let (mut seen, mut piece) = (String::new(), [0; 512]);
    while !seen.contains("[deny]: ") {
        let got = screen.read(&mut piece).unwrap();
        assert!(got > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..got]));
    }
    writeln!(keys, "{answer}").unwrap();
    screen.read_to_string(&mut seen).unwrap();
    terminal.wait().unwrap();
    assert!(seen.contains("ended 0"), "{seen}");
}

#[test]
fn an_answer_to_be_repeated_is_none_in_a_dry_run() {
    let (mut editor, session) = Editor::ready();
    answered_at_a_terminal(&editor, MAKES, "repeat");
    let gone = || std::fs::remove_file(editor.workspace().join("b.txt")).unwrap();
    assert_eq!(editor.text("b.txt").as_deref(), Some("b\n"));
    gone();
    let call = json!([[["terminal", {"command": MAKES}]], "done"]);
    editor.prompt(&session, &dry(&call), &[]);
    assert_eq!(editor.text("b.txt"), None);
    // What would be made is shown.
    let shown = serde_json::to_string(&editor.updates("tool_call_update")).unwrap();
    assert!(shown.contains("\"newText\":\"b\\n\""), "{shown}");
    // It is one where something is to be done.
    editor.prompt(&session, &call, &[]);
    assert!(editor.questions().is_empty());
    assert_eq!(editor.text("b.txt").as_deref(), Some("b\n"));
}

/// What comes with the end of a call takes the place of all that was shown of it.
#[test]
fn what_a_dry_run_would_change_is_shown_to_the_end() {
    let (mut editor, session) = Editor::ready();
    for call in [
        json!(["write_file", {"path": "b.txt", "content": "b\n"}]),
        json!(["terminal", {"command": MAKES}]),
    ] {
        editor.prompt(&session, &dry(&json!([[call], "done"])), &[]);
        let last = editor.updates("tool_call_update").pop().unwrap();
        assert_eq!(last["status"], "failed", "{last}");
        let words = last["content"][0]["content"]["text"].as_str().unwrap();
        assert!(words.starts_with("a dry run: "), "{last}");
        let shown = last["content"].to_string();
        assert!(shown.contains("\"newText\":\"b\\n\""), "{last}");
        assert!(!shown.contains("rejected"), "{last}");
    }
}

#[test]
fn a_mode_that_was_set_from_a_terminal_allows_nothing_in_a_dry_run() {
    let (mut editor, session) = Editor::ready();
    done(&editor, &["mode", "approve_all"]);
    for call in [
        json!(["write_file", {"path": "b.txt", "content": "b\n"}]),
        json!(["terminal", {"command": MAKES}]),
    ] {
        editor.prompt(&session, &dry(&json!([[call], "done"])), &[]);
        assert_eq!(editor.text("b.txt"), None, "{call}");
    }
}

#[test]
fn nobody_holds_anything_for_a_dry_run_that_is_over() {
    let (mut editor, session) = Editor::ready();
    let call = json!([[["read_file", {"path": "a.txt"}]], "done"]);
    editor.prompt(&session, &dry(&call), &[]);
    let holders: Vec<u64> = listed(&editor)[0]["grants"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|grant| grant["state"] == "live")
        .map(|grant| grant["agent"].as_u64().unwrap())
        .collect();
    assert!(!holders.is_empty());
    assert!(holders.iter().all(|agent| *agent == 0), "{holders:?}");
}

#[test]
fn what_ran_before_a_dry_run_and_ends_in_it_is_its_users_to_decide() {
    let (mut editor, session) = Editor::ready();
    let command = "until [ -e go ]; do sleep 0.1; done; echo made > made.txt";
    let start = json!([[["terminal", {"command": command, "background": true}]], "done"]);
    editor.prompt(&session, &start, &[]);
    editor.put("go", "");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let call = json!([[["terminal", {"command": MAKES}]], "done"]);
    editor.prompt(&session, &dry(&call), &[json!("allow-once")]);
    assert_eq!(editor.text("made.txt").as_deref(), Some("made\n"));
    assert_eq!(editor.text("b.txt"), None);
}
