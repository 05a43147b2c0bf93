//! What an editor holds and did not save: what counts of it, and what is left to the disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// One call after the other.
fn calls(calls: &[Value]) -> Value {
    calls.iter().map(|call| json!([call])).collect()
}

fn write(path: &str, content: &str) -> Value {
    json!(["write_file", {"path": path, "content": content}])
}

/// An editor that hands out its texts, with a session.
fn reading() -> (Editor, String) {
    let mut editor = Editor::start();
    editor.initialize(true);
    let session = editor.open();
    (editor, session)
}

/// Goes through a turn of an editor that answers each question with a yes, and says this of
/// each text it is asked for.
fn typing(editor: &mut Editor, session: &str, script: &Value, held: &Value) {
    let id = editor.begin(session, script);
    loop {
        let message = editor.next();
        if message["method"] == "fs/read_text_file" {
            let mut answer = held.clone();
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = message["id"].clone();
            editor.send(&answer);
        } else if message["method"] == "session/request_permission" {
            editor.answer(&message, &json!("allow-once"));
        } else if message["id"] == id && message.get("method").is_none() {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            return;
        }
    }
}

/// The editor shows this text.
fn holds(text: &str) -> Value {
    json!({"result": {"content": text}})
}

/// How often it was asked for a text.
fn asked_for_texts(editor: &Editor) -> usize {
    let asked = |message: &&Value| message["method"] == "fs/read_text_file";
    editor.seen.iter().filter(asked).count()
}

#[test]
fn an_editor_that_keeps_line_ends_to_itself_holds_nothing_unsaved() {
    let (mut editor, session) = reading();
    editor.put("a.txt", "one\r\ntwo\r\n");
    let script = calls(&[write("a.txt", "three\n")]);
    typing(&mut editor, &session, &script, &holds("one\ntwo\n"));
    assert!(asked_for_texts(&editor) > 0);
    assert_eq!(editor.questions().len(), 1);
    assert!(editor.text("a.txt").unwrap().starts_with("three"));
}

#[test]
fn a_client_that_does_not_know_a_file_leaves_it_to_the_disk() {
    let (mut editor, session) = reading();
    let script = calls(&[
        json!(["read_file", {"path": "a.txt"}]),
        write("a.txt", "beta\n"),
    ]);
    let unknown = json!({"error": {"code": -32002, "message": "no such buffer"}});
    typing(&mut editor, &session, &script, &unknown);
    assert!(asked_for_texts(&editor) > 0);
    let shown = Value::from(editor.updates("tool_call_update")).to_string();
    assert!(shown.contains("1|alpha"), "{shown}");
    assert_eq!(editor.text("a.txt").as_deref(), Some("beta\n"));
}

#[test]
fn a_client_that_hands_out_no_texts_is_asked_for_none() {
    let (mut editor, session) = Editor::ready();
    let script = calls(&[
        json!(["read_file", {"path": "a.txt"}]),
        write("a.txt", "beta\n"),
    ]);
    typing(&mut editor, &session, &script, &holds("typed\n"));
    assert_eq!(asked_for_texts(&editor), 0);
    assert_eq!(editor.text("a.txt").as_deref(), Some("beta\n"));
}

#[test]
fn calls_of_one_answer_read_what_is_typed_as_well() {
    let (mut editor, session) = reading();
    editor.put("b.txt", "saved\n");
    let script = json!([[
        ["read_file", {"path": "a.txt"}],
        ["read_file", {"path": "b.txt"}],
    ]]);
    typing(&mut editor, &session, &script, &holds("typed\n"));
    let read: Vec<Value> = editor
        .updates("tool_call_update")
        .iter()
        .filter(|update| update["status"] == "completed")
        .map(|update| update["rawOutput"]["content"].clone())
        .collect();
    assert_eq!(read, ["1|typed\n2|", "1|typed\n2|"]);
}

#[test]
fn what_is_not_saved_is_not_edited_removed_or_moved_under_its_user() {
    for patch in [
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-alpha\n+beta\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch",
        "*** Begin Patch\n*** Move File: a.txt -> b.txt\n*** End Patch",
    ] {
        let (mut editor, session) = reading();
        let script = calls(&[json!(["patch", {"mode": "patch", "patch": patch}])]);
        typing(&mut editor, &session, &script, &holds("typed\n"));
        let said = editor.ended().to_string();
        assert!(
            said.contains("changes that are not saved"),
            "{patch} {said}"
        );
        assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"), "{patch}");
        assert_eq!(editor.text("b.txt"), None, "{patch}");
        // What its user saved is changed as ever.
        typing(&mut editor, &session, &script, &holds("alpha\n"));
        assert_ne!(editor.text("a.txt").as_deref(), Some("alpha\n"), "{patch}");
    }
}

/// What a question shows beside its files.
fn shown(question: &Value) -> String {
    question["toolCall"]["content"].to_string()
}

#[test]
fn who_is_asked_about_what_a_command_changed_is_told_what_is_not_saved() {
    const TOLD: &str = "a.txt: the editor holds changes that are not saved";
    for command in ["echo beta > a.txt", "rm a.txt", "mv a.txt b.txt"] {
        let (mut editor, session) = reading();
        let script = calls(&[json!(["terminal", {"command": command}])]);
        typing(&mut editor, &session, &script, &holds("typed\n"));
        let questions = editor.questions();
        assert_eq!(questions.len(), 1, "{command}");
        assert!(
            shown(&questions[0]).contains(TOLD),
            "{command} {questions:?}"
        );
        // What is typed is its user's; what a command did is kept as they were shown.
        assert_ne!(
            editor.text("a.txt").as_deref(),
            Some("alpha\n"),
            "{command}"
        );
    }
    // Nothing is said of what is saved, or of a file that the command made.
    for (command, held) in [
        ("echo beta > a.txt", "alpha\n"),
        ("echo new > c.txt", "typed\n"),
    ] {
        let (mut editor, session) = reading();
        let script = calls(&[json!(["terminal", {"command": command}])]);
        typing(&mut editor, &session, &script, &holds(held));
        let questions = editor.questions();
        assert_eq!(questions.len(), 1, "{command}");
        assert!(
            !shown(&questions[0]).contains("not saved"),
            "{command} {questions:?}"
        );
    }
}

#[test]
fn a_plan_moves_no_file_of_which_something_is_not_saved() {
    let (mut editor, session) = reading();
    let plan = json!({"version": 1, "summary": "another name", "steps": [
        {"id": "move", "call": "move_file", "with": {"from": "a.txt", "to": "b.txt"}},
        {"id": "say", "answer": "moved"}
    ]});
    let prompt = json!(format!("/plan {}", json!([plan.to_string()])));
    typing(&mut editor, &session, &prompt, &holds("typed\n"));
    let said = Value::from(editor.updates("tool_call_update")).to_string() + &editor.said();
    assert!(said.contains("changes that are not saved"), "{said}");
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    // What its user saved is moved.
    typing(&mut editor, &session, &prompt, &holds("alpha\n"));
    assert_eq!(editor.text("a.txt"), None);
    assert_eq!(editor.text("b.txt").as_deref(), Some("alpha\n"));
}

#[test]
fn where_nobody_is_asked_it_is_told_beside_the_commands_output() {
    let (mut editor, session) = reading();
    let mode = json!({"sessionId": session, "modeId": "workspace"});
    editor.call("session/set_mode", mode);
    let script = calls(&[json!(["terminal", {"command": "echo beta > a.txt; echo done"}])]);
    typing(&mut editor, &session, &script, &holds("typed\n"));
    assert_eq!(editor.questions(), [] as [Value; 0]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("beta\n"));
    let shown = editor
        .updates("tool_call_update")
        .pop()
        .unwrap()
        .to_string();
    assert!(shown.contains("a.txt: the editor holds changes"), "{shown}");
}
