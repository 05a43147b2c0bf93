//! Several sessions at once in one process: nothing of one is in another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// An agent with this many sessions, each in a directory of its own.
fn sessions(count: usize) -> (Editor, Vec<String>) {
    let mut editor = Editor::start();
    editor.initialize(false);
    let opened = (0..count)
        .map(|number| {
            let cwd = editor.dir.path().join(format!("w{number}"));
            fs::create_dir(&cwd).unwrap();
            fs::write(cwd.join("f.txt"), format!("{number}\n")).unwrap();
            editor.open_in(&cwd)
        })
        .collect();
    (editor, opened)
}

fn file(editor: &Editor, number: usize) -> String {
    fs::read_to_string(editor.dir.path().join(format!("w{number}/f.txt"))).unwrap()
}

fn write(content: &str) -> Value {
    json!([[["write_file", {"path": "f.txt", "content": content}]]])
}

fn run(editor: &mut Editor, session: &str, command: &str) -> String {
    let script = json!([[["terminal", {"command": command}]]]);
    editor.prompt(session, &script, &[]);
    editor.ended()["rawOutput"]["output"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn neither_directory_nor_environment_is_shared() {
    let (mut editor, sessions) = sessions(2);
    run(
        &mut editor,
        &sessions[0],
        "export LEAK=leaked; cd /; leak() { echo leaked; }",
    );
    let own = run(&mut editor, &sessions[0], "pwd; echo $LEAK; cat f.txt");
    assert!(own.contains("leaked") && own.starts_with("/\n"), "{own}");
    let other = run(
        &mut editor,
        &sessions[1],
        "pwd; echo =$LEAK=; leak 2>/dev/null || cat f.txt",
    );
    let place = editor.dir.path().join("w1").canonicalize().unwrap();
    assert_eq!(other, format!("{}\n==\n1", place.display()));
}

#[test]
fn a_relative_path_is_shown_where_the_session_has_gone() {
    let (mut editor, sessions) = sessions(1);
    editor.prompt(
        &sessions[0],
        &json!([[["terminal", {"command": "mkdir d && cd d"}]]]),
        &[json!("allow-once")],
    );
    let place = editor.dir.path().canonicalize().unwrap().join("w0/d/f.txt");
    editor.prompt(&sessions[0], &write("below\n"), &[json!("allow-once")]);
    let calls = editor.updates("tool_call");
    let call = calls.last().unwrap();
    assert_eq!(call["locations"][0]["path"], json!(place));
    let shown = editor.questions().pop().unwrap()["toolCall"]["content"][0].clone();
    assert_eq!(shown["path"], json!(place));
    assert_eq!(fs::read_to_string(place).unwrap(), "below\n");
    assert_eq!(file(&editor, 0), "0\n");
}

#[test]
fn an_answer_counts_for_the_question_of_its_own_session_only() {
    const SESSIONS: usize = 5;
    let (mut editor, sessions) = sessions(SESSIONS);
    let prompts: Vec<u64> = sessions
        .iter()
        .map(|session| editor.begin(session, &write("agent\n")))
        .collect();
    // All of them are asked before anybody is answered.
    let mut asked: BTreeMap<String, Value> = BTreeMap::new();
    while asked.len() < SESSIONS {
        let question = editor.question();
        let of = question["params"]["sessionId"].as_str().unwrap().to_owned();
        assert!(asked.insert(of, question).is_none(), "asked twice");
    }
    let is_yes = |number: usize| number.is_multiple_of(2);
    for (number, session) in sessions.iter().enumerate().rev() {
        let question = &asked[session];
        let shown = &question["params"]["toolCall"]["content"][0];
        assert_eq!(shown["oldText"], format!("{number}\n"));
        let answer = if is_yes(number) {
            "allow-once"
        } else {
            "reject-once"
        };
        editor.answer(question, &json!(answer));
    }
    let mut ended: Vec<u64> = Vec::new();
    while ended.len() < SESSIONS {
        let done = editor.until(&[], |message| {
            message["id"]
                .as_u64()
                .is_some_and(|id| prompts.contains(&id))
                && message.get("method").is_none()
        });
        assert_eq!(done["result"]["stopReason"], "end_turn");
        ended.push(done["id"].as_u64().unwrap());
    }
    for number in 0..SESSIONS {
        let expected = if is_yes(number) {
            "agent\n".to_owned()
        } else {
            format!("{number}\n")
        };
        assert_eq!(file(&editor, number), expected);
    }
    // The answers are spent: none of them is one to a later question.
    let id = editor.begin(&sessions[1], &write("later\n"));
    let question = editor.question();
    for old in asked.values() {
        editor.answer(old, &json!("allow-once"));
    }
    editor.answer(&question, &json!("reject-once"));
    assert_eq!(editor.result(id, &[])["stopReason"], "end_turn");
    assert_eq!(file(&editor, 1), "1\n");
}

#[test]
fn a_cancel_and_a_mode_are_of_one_session() {
    let (mut editor, sessions) = sessions(2);
    editor.call(
        "session/set_mode",
        json!({"sessionId": sessions[0], "modeId": "workspace"}),
    );
    let waiting = editor.begin(&sessions[1], &write("never\n"));
    let question = editor.question();
    assert_eq!(question["params"]["sessionId"], sessions[1]);
    // Unasked in the one, while the other one waits.
    editor.prompt(&sessions[0], &write("free\n"), &[]);
    assert_eq!(file(&editor, 0), "free\n");
    editor.notify("session/cancel", json!({"sessionId": sessions[0]}));
    let turn = editor.prompt(&sessions[0], &write("again\n"), &[]);
    assert_eq!(turn["stopReason"], "end_turn");
    editor.answer(&question, &json!("reject-once"));
    assert_eq!(editor.result(waiting, &[])["stopReason"], "end_turn");
    assert_eq!(
        (file(&editor, 0), file(&editor, 1)),
        ("again\n".into(), "1\n".into())
    );
}

#[test]
fn calls_of_one_answer_begin_together_and_each_question_names_its_own() {
    let (mut editor, sessions) = sessions(1);
    let mut calls: Vec<Value> = ["a", "b", "c"]
        .map(|name| json!(["write_file", {"path": format!("{name}.txt"), "content": name}]))
        .into();
    calls.insert(1, json!(["read_file", {"path": "f.txt"}]));
    let prompt = editor.begin(&sessions[0], &json!([calls]));
    let answers = ["allow-once", "reject-once", "allow-once"];
    for (name, answer) in ["a", "b", "c"].into_iter().zip(answers) {
        let question = editor.question();
        // All of them have begun by then.
        let begun = editor.updates("tool_call");
        assert_eq!(begun.len(), 4, "{begun:?}");
        let call = &question["params"]["toolCall"];
        let asked = begun
            .iter()
            .find(|begun| begun["toolCallId"] == call["toolCallId"])
            .unwrap();
        assert_eq!(asked["rawInput"]["content"], json!(name));
        assert_eq!(call["content"][0]["newText"], json!(name));
        editor.answer(&question, &json!(answer));
    }
    assert_eq!(editor.result(prompt, &[])["stopReason"], "end_turn");
    let place = editor.dir.path().join("w0");
    let is_there = ["a", "b", "c"].map(|name| place.join(format!("{name}.txt")).exists());
    assert_eq!(is_there, [true, false, true]);
    let ended: Vec<Value> = editor
        .updates("tool_call_update")
        .into_iter()
        .filter(|update| matches!(update["status"].as_str(), Some("completed" | "failed")))
        .map(|update| update["status"].clone())
        .collect();
    assert_eq!(ended, ["completed", "completed", "failed", "completed"]);
}
