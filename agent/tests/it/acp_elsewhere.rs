//! A session of an editor, looked at and ended from a terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{editor::Editor, home::until};

/// A terminal of the editor's user, in the workspace.
fn terminal(editor: &Editor, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .arg("session")
        .args(words)
        .current_dir(editor.workspace())
        .env_clear()
        .env("HOME", editor.dir.path())
        .stdin(Stdio::null());
    command
}

/// What is said there, and whether it was done.
fn said(editor: &Editor, words: &[&str]) -> (bool, String) {
    let ran = terminal(editor, words).output().unwrap();
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    let err = String::from_utf8_lossy(&ran.stderr);
    (ran.status.success(), out + &err)
}

#[track_caller]
pub fn done(editor: &Editor, words: &[&str]) -> String {
    let (is_done, said) = said(editor, words);
    assert!(is_done, "{words:?}: {said}");
    said
}

/// A program at a terminal of the editor's user, which holds what it grants as long as it
/// is there; and the grant's name.
pub fn granted(editor: &Editor, what: &str) -> (Child, String) {
    let mut granter = terminal(editor, &["grant", what])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(granter.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let name = line.split_whitespace().next().unwrap().to_owned();
    (granter, name)
}

pub fn listed(editor: &Editor) -> Vec<Value> {
    let all = done(editor, &["list", "--json"]);
    let each = all.lines().map(serde_json::from_str);
    each.collect::<Result<_, _>>().unwrap()
}

fn sockets(editor: &Editor) -> usize {
    let mut todo: Vec<PathBuf> = vec![editor.dir.path().to_owned()];
    let mut found = 0;
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => todo.push(entry.path()),
                false => found += usize::from(entry.file_name() == "session.socket"),
            }
        }
    }
    found
}

fn works() -> Value {
    json!([[["terminal", {"command": "echo began; echo x > a.txt; sleep 600"}]]])
}

#[test]
fn an_editors_sessions_are_listed_as_such_each_with_what_it_holds() {
    let (mut editor, _) = Editor::ready();
    let first = listed(&editor);
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(first[0]["is_an_editors"], true);
    assert_eq!(first[0]["workspace"], json!(editor.workspace()));
    let all = done(&editor, &[]);
    assert!(all.contains("(an editor's)"), "{all}");
    assert!(all.contains("proc.exec"), "{all}");
    let other = editor.open();
    assert_eq!(listed(&editor).len(), 2);
    // Which one is meant is not guessed.
    let (is_done, said_of_two) = said(&editor, &["forget"]);
    assert!(
        !is_done && said_of_two.contains("several sessions run"),
        "{said_of_two}"
    );
    assert!(said_of_two.contains("(an editor's)"), "{said_of_two}");
    let number = first[0]["session"].as_str().unwrap();
    done(&editor, &["forget", "--session", number]);
    editor.call("session/close", json!({"sessionId": other}));
    assert_eq!(listed(&editor), first);
    assert_eq!(sockets(&editor), 1);
    editor.leave();
    assert_eq!(sockets(&editor), 0);
    let (is_done, none) = said(&editor, &[]);
    assert!(is_done && none.contains("no session runs"), "{none}");
}

#[test]
fn what_a_terminal_grants_an_editors_session_does_unasked_until_it_is_taken_back() {
    let (mut editor, session) = Editor::ready();
    let write = |name: &str| json!([[["write_file", {"path": name, "content": "x\n"}]], "done"]);
    editor.prompt(&session, &write("one.txt"), &[json!("reject-once")]);
    assert_eq!(
        (editor.questions().len(), editor.text("one.txt")),
        (1, None)
    );
    let (mut granter, grant) = granted(&editor, "fs.create=.");
    editor.prompt(&session, &write("two.txt"), &[]);
    assert_eq!(
        (editor.questions().len(), editor.text("two.txt").as_deref()),
        (1, Some("x\n"))
    );
    assert!(done(&editor, &["revoke", &grant]).contains(&grant));
    editor.prompt(&session, &write("three.txt"), &[json!("reject-once")]);
    assert_eq!(
        (editor.questions().len(), editor.text("three.txt")),
        (2, None)
    );
    drop(granter.stdin.take());
    granter.wait().unwrap();
}

#[test]
fn a_terminal_ends_what_an_editors_session_runs_and_the_session() {
    let (mut editor, session) = Editor::ready();
    let turn = editor.begin(&session, &works());
    until(|| (listed(&editor)[0]["running"] == 1).then_some(()));
    done(&editor, &["end"]);
    let ended = editor.result(turn, &[]);
    assert_eq!(ended["stopReason"], "refusal", "{ended}");
    assert!(
        editor.said().contains("the session has ended"),
        "{}",
        editor.said()
    );
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    // Another one of the same editor's is another one.
    let other = editor.open();
    let came = editor.prompt(&other, &json!(["hello"]), &[]);
    assert_eq!(came["stopReason"], "end_turn", "{came}");
}

#[test]
fn a_mode_from_a_terminal_is_never_laxer_than_the_editors_user_allows() {
    let dir = tempfile::tempdir().unwrap();
    let mut editor = Editor::start_with(&["--mode", "reject_all"], dir);
    editor.initialize(false);
    editor.open();
    done(&editor, &["mode", "approve_all"]);
    assert_eq!(listed(&editor)[0]["mode"], "reject_all");
}

#[test]
fn an_editor_whose_agent_refuses_all_is_not_told_that_its_user_is_asked() {
    for (mode, is_asked) in [("prompt", true), ("reject_all", false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut editor = Editor::start_with(&["--mode", mode], dir);
        editor.initialize(false);
        let cwd = editor.workspace();
        let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let told = json!([opened["modes"], opened["configOptions"]]).to_string();
        assert!(
            opened["modes"]["availableModes"][0]["id"] == "ask",
            "{told}"
        );
        assert_eq!(
            told.contains("asked about before it touches"),
            is_asked,
            "{told}"
        );
        assert_eq!(
            told.contains("Whatever is not granted is refused"),
            !is_asked,
            "{told}"
        );
    }
}

#[test]
fn tool_servers_an_editor_offers_are_not_started_and_it_is_said_where_one_is_declared() {
    let mut editor = Editor::start();
    editor.initialize(false);
    let cwd = editor.workspace();
    let made = cwd.join("started");
    let server = json!({
        "name": "notes", "command": "/usr/bin/touch", "args": [made], "env": [],
    });
    let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": [server]}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, &json!("/caps"), &[]);
    let said = editor.said();
    assert!(
        said.contains("Not started") && said.contains("(notes)") && said.contains("[servers.NAME]"),
        "{said}"
    );
    assert!(!made.exists());
}

/// Of a call that has yet to begin, and of what a command has changed already.
#[test]
fn nothing_is_done_by_a_yes_that_comes_after_the_session_was_told_to_ask_nobody() {
    for call in [
        json!(["write_file", {"path": "b.txt", "content": "b\n"}]),
        json!(["terminal", {"command": "echo b > b.txt"}]),
    ] {
        let (mut editor, session) = Editor::ready();
        let id = editor.begin(&session, &json!([[call]]));
        let question = editor.question();
        done(&editor, &["mode", "reject_all"]);
        editor.answer(&question, &json!("allow-once"));
        editor.result(id, &[]);
        assert_eq!(editor.text("b.txt"), None, "{call}");
        let ended = editor.ended().to_string();
        assert!(ended.contains("revoked"), "{call}: {ended}");
        // Whoever has it ask again is asked, and their yes counts.
        done(&editor, &["mode", "prompt"]);
        let call = json!([["write_file", {"path": "c.txt", "content": "c\n"}]]);
        editor.prompt(&session, &json!([call]), &[json!("allow-once")]);
        assert_eq!(editor.text("c.txt").as_deref(), Some("c\n"));
    }
}
