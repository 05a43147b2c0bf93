//! Questions for free words behind an editor: by a form where the client has
//! some, else by the user's next prompt.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// `/plan` with a plan that reads, asks for a name, and makes a file of it.
fn asking() -> Value {
    planned(&json!([
        {"id": "look", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "name", "ask_user": "Which name?", "schema": "path"},
        {"id": "make", "call": "create_file", "with": {"path": {"$": "name"}, "text": "made\n"}},
        {"id": "apart", "call": "create_file", "with": {"path": "apart.txt", "text": "apart\n"}},
    ]))
}

fn planned(steps: &Value) -> Value {
    let plan = json!({"version": 1, "steps": steps});
    json!(format!("/plan {}", json!([plan.to_string()])))
}

fn yes() -> Value {
    json!("allow-once")
}

/// The states of the plan's steps, as told last.
fn states(editor: &Editor) -> Vec<String> {
    let last = editor.updates("plan").pop().unwrap();
    let entries = last["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["status"].as_str().unwrap().to_owned())
        .collect()
}

/// An editor whose session waits for a name; the plan was approved.
fn waiting() -> (Editor, String) {
    let (mut editor, session) = Editor::ready();
    waits(&mut editor, &session);
    (editor, session)
}

fn waits(editor: &mut Editor, session: &str) {
    let turn = editor.prompt(session, &asking(), &[yes()]);
    assert_eq!(turn["stopReason"], "end_turn", "{turn}");
    assert!(editor.said().contains("Which name?"), "{}", editor.said());
    assert_eq!(states(editor)[..2], ["completed", "pending"]);
    assert_eq!(states(editor)[2..], ["pending", "pending"]);
}

/// Nothing of the plan was done, and the session takes prompts as ever.
#[track_caller]
fn is_over(editor: &mut Editor, session: &str) {
    let before = editor.questions().len();
    let script = json!([[["write_file", {"path": "later.txt", "content": "later\n"}]], "ordinary"]);
    let turn = editor.prompt(session, &script, &[yes()]);
    assert_eq!(turn["stopReason"], "end_turn", "{turn}");
    assert_eq!(editor.questions().len(), before + 1);
    assert_eq!(editor.text("later.txt").as_deref(), Some("later\n"));
    assert!(editor.said().contains("ordinary"), "{}", editor.said());
    for name in ["apart.txt", "b.txt"] {
        assert_eq!(editor.text(name), None, "{name}");
    }
}

#[test]
fn the_next_prompt_is_the_answer_and_the_locked_plan_goes_on_with_it() {
    let (mut editor, session) = waiting();
    assert_eq!(editor.questions().len(), 1);
    let answers = [yes(), yes()];
    let turn = editor.prompt(&session, &json!("b.txt"), &answers);
    assert_eq!(turn["stopReason"], "end_turn");
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
    assert_eq!(editor.text("apart.txt").as_deref(), Some("apart\n"));
    assert_eq!(states(&editor), ["completed"; 4]);
    // It is the user's own word, and nobody's data.
    let asked = &editor.questions()[1]["toolCall"]["title"];
    assert_eq!(asked, "make: create_file path=\"b.txt\" text=\"made\\n\"");
    let ledger = editor
        .dir
        .path()
        .join(".local/state/hermitcrab/acp")
        .join(&session);
    let ledger = std::fs::read_to_string(ledger.join("ledger.jsonl")).unwrap();
    assert!(
        ledger.contains("user.ask"),
        "the question is not in the ledger"
    );
}

#[test]
fn a_name_out_of_a_file_still_asks_as_data() {
    let (mut editor, session) = Editor::ready();
    editor.put("a.txt", "b.txt");
    let plan = planned(&json!([
        {"id": "look", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "make", "call": "create_file", "with": {"path": {"$": "look.text"}, "text": "made\n"}},
    ]));
    editor.prompt(&session, &plan, &[yes(), json!("reject-once")]);
    let asked = editor.questions().pop().unwrap();
    let title = asked["toolCall"]["title"].as_str().unwrap();
    assert!(title.contains("path=\"b.txt\" (untrusted text)"), "{asked}");
}

#[test]
fn what_is_no_answer_is_told_apart_and_the_question_goes_on_waiting() {
    let (mut editor, session) = waiting();
    let attached = json!([
        {"type": "text", "text": "b.txt"},
        {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "b.txt"}}
    ]);
    let linked = json!([{"type": "resource_link", "name": "b.txt", "uri": "file:///b.txt"}]);
    for blocks in [json!([{"type": "text", "text": "/caps"}]), attached, linked] {
        let id = editor.request(
            "session/prompt",
            json!({"sessionId": session, "prompt": blocks}),
        );
        let turn = editor.result(id, &[]);
        assert_eq!(turn["stopReason"], "end_turn", "{turn}");
    }
    let said = editor.said();
    assert_eq!(said.matches("This is no answer").count(), 3, "{said}");
    assert!(said.contains("leave it with `/leave`"), "{said}");
    assert_eq!(editor.questions().len(), 1);
    editor.prompt(&session, &json!("b.txt"), &[yes(), yes()]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
}

#[test]
fn one_word_leaves_the_question_and_ends_the_plan() {
    let (mut editor, session) = waiting();
    let turn = editor.prompt(&session, &json!("/leave"), &[]);
    assert_eq!(turn["stopReason"], "end_turn");
    assert!(
        editor.said().contains("The question is left"),
        "{}",
        editor.said()
    );
    assert_eq!(states(&editor)[2..], ["pending", "pending"]);
    is_over(&mut editor, &session);
    editor.prompt(&session, &json!("/leave"), &[]);
    assert!(
        editor.said().contains("No question waits"),
        "{}",
        editor.said()
    );
}

#[test]
fn a_cancel_while_the_question_waits_ends_the_plan() {
    let (mut editor, session) = waiting();
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.until(&[], |m| m.to_string().contains("The question is left"));
    is_over(&mut editor, &session);
}

#[test]
fn a_question_nobody_answers_in_time_ends_the_plan() {
    let options = ["--answer-timeout", "1"];
    let mut editor = Editor::start_with(&options, tempfile::tempdir().unwrap());
    editor.initialize(false);
    let session = editor.open();
    waits(&mut editor, &session);
    editor.until(&[], |m| m.to_string().contains("Nobody answered in time"));
    is_over(&mut editor, &session);
}

#[test]
fn a_session_that_ended_over_a_question_says_so_once_when_it_is_taken_up() {
    let (editor, session) = waiting();
    // Killed: nothing of it has a chance to say anything.
    let dir = editor.killed();
    let mut editor = Editor::start_with(&[], dir);
    editor.initialize(false);
    let place = json!({"sessionId": session, "cwd": editor.workspace(), "mcpServers": []});
    editor.call("session/load", place.clone());
    editor.prompt(&session, &json!("b.txt"), &[]);
    let said = editor.said();
    assert_eq!(said.matches("A question waited").count(), 1, "{said}");
    assert!(said.contains("> Which name?"), "{said}");
    is_over(&mut editor, &session);
    // Closed over it, and taken up again by the same program.
    waits(&mut editor, &session);
    editor.call("session/close", json!({"sessionId": session}));
    editor.call("session/resume", place.clone());
    is_over(&mut editor, &session);
    assert_eq!(editor.said().matches("A question waited").count(), 2);
    editor.call("session/close", json!({"sessionId": session}));
    editor.call("session/load", place);
    is_over(&mut editor, &session);
    assert_eq!(editor.said().matches("A question waited").count(), 2);
}

#[test]
fn a_client_that_leaves_over_a_question_ends_the_program() {
    let (mut editor, _) = waiting();
    assert_eq!(editor.leave(), Some(0));
    assert_eq!(editor.text("apart.txt"), None);
}

#[test]
fn an_answer_in_one_session_is_none_in_another() {
    let (mut editor, first) = waiting();
    let second = editor.open();
    editor.prompt(&second, &json!(["b.txt"]), &[]);
    assert_eq!(editor.text("b.txt"), None);
    editor.prompt(&first, &json!("b.txt"), &[yes(), yes()]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
}

#[test]
fn a_mode_chosen_while_the_question_waits_holds_for_what_follows() {
    let (mut editor, session) = Editor::ready();
    let mode = |mode: &str| json!({"sessionId": session, "modeId": mode});
    editor.call("session/set_mode", mode("workspace"));
    waits(&mut editor, &session);
    editor.call("session/set_mode", mode("ask"));
    let answers = [json!("reject-once"), json!("reject-once")];
    editor.prompt(&session, &json!("b.txt"), &answers);
    assert_eq!(editor.questions().len(), 3);
    assert_eq!(
        (editor.text("b.txt"), editor.text("apart.txt")),
        (None, None)
    );
    // The belief in the sandbox ends what was granted, and so the plan.
    waits(&mut editor, &session);
    let option = json!({"sessionId": session, "configId": "isolation", "value": "unknown"});
    editor.call("session/set_config_option", option);
    editor.prompt(&session, &json!("b.txt"), &[]);
    assert!(
        editor.said().contains("which ends what was granted"),
        "{}",
        editor.said()
    );
    is_over(&mut editor, &session);
}

#[test]
fn a_models_question_for_words_is_answered_by_the_next_prompt() {
    let (mut editor, session) = Editor::ready();
    let script = json!([
        [["clarify", {"question": "Which name?"}]],
        [["write_file", {"path": "b.txt", "content": "made\n"}]],
        "bye"
    ]);
    let turn = editor.prompt(&session, &script, &[]);
    assert_eq!(turn["stopReason"], "end_turn");
    assert!(editor.said().contains("Which name?") && !editor.said().contains("bye"));
    editor.prompt(&session, &json!("call it b"), &[yes()]);
    let answered = editor.updates("tool_call_update");
    assert!(
        answered
            .iter()
            .any(|update| update["rawOutput"]["user_response"] == "call it b"),
        "{answered:?}"
    );
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
    assert!(editor.said().contains("bye"));
    std::fs::remove_file(editor.workspace().join("b.txt")).unwrap();
    // Left, the turn ends: the calls beside and after it are not made.
    let script = json!([
        [["clarify", {"question": "Which name?"}], ["write_file", {"path": "c.txt", "content": "c"}]],
        [["write_file", {"path": "d.txt", "content": "d"}]],
    ]);
    editor.prompt(&session, &script, &[]);
    editor.prompt(&session, &json!("/leave"), &[]);
    assert_eq!((editor.text("c.txt"), editor.text("d.txt")), (None, None));
    is_over(&mut editor, &session);
}

#[test]
fn choices_are_put_as_a_permission_with_one_option_each() {
    let (mut editor, session) = Editor::ready();
    let plan = planned(&json!([
        {"id": "which", "ask_user": "Which?", "schema": {"one_of": ["b.txt", "c.txt"]}},
        {"id": "make", "call": "create_file", "with": {"path": {"$": "which"}, "text": "made\n"}},
    ]));
    editor.prompt(&session, &plan, &[yes(), json!("choice-1"), yes()]);
    let asked = &editor.questions()[1];
    let names: Vec<&str> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b.txt", "c.txt"]);
    assert_eq!(editor.text("c.txt").as_deref(), Some("made\n"));
    // One that was not offered is none.
    editor.prompt(&session, &plan, &[yes(), json!("choice-2")]);
    assert_eq!(editor.text("b.txt"), None);
}

/// A client that is told to turn everything down answers with what it takes for that.
#[test]
fn a_no_among_the_choices_is_put_as_one() {
    let (mut editor, session) = Editor::ready();
    let plan = planned(&json!([
        {"id": "sure", "ask_user": "Sure?", "schema": "truth"},
        {"id": "make", "call": "create_file", "with": {"path": "c.txt", "text": "made\n"}},
    ]));
    editor.prompt(&session, &plan, &[yes(), json!("choice-1"), yes()]);
    let asked = &editor.questions()[1];
    let kinds: Vec<(&str, &str)> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| {
            let told = |key: &str| option[key].as_str().unwrap();
            (told("name"), told("kind"))
        })
        .collect();
    assert_eq!(kinds, [("yes", "allow_once"), ("no", "reject_once")]);
}

/// An editor that shows forms, and what its form was answered with.
fn formed(answer: &Value) -> (Editor, String, Value) {
    let mut editor = Editor::start();
    editor.call(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": {"form": {}}}}),
    );
    let session = editor.open();
    let id = editor.begin(&session, &asking());
    let form = editor.until(&[yes()], |m| m["method"] == "elicitation/create");
    let mut reply = json!({"jsonrpc": "2.0", "id": form["id"]});
    for (key, value) in answer.as_object().unwrap() {
        reply[key] = value.clone();
    }
    editor.send(&reply);
    let is_answer = answer["result"]["content"]["answer"] == "b.txt";
    let answers = vec![yes(); if is_answer { 2 } else { 1 }];
    let turn = editor.result(id, &answers);
    assert_eq!(turn["stopReason"], "end_turn", "{turn}");
    (editor, session, form["params"].clone())
}

#[test]
fn where_the_client_has_forms_the_question_is_one() {
    let accepted = |content: Value| json!({"result": {"action": "accept", "content": content}});
    let (editor, session, form) = formed(&accepted(json!({"answer": "b.txt"})));
    assert_eq!(form["sessionId"], session.as_str());
    assert_eq!(
        (&form["mode"], &form["message"]),
        (&json!("form"), &json!("Which name?"))
    );
    assert_eq!(
        form["requestedSchema"]["properties"]["answer"]["type"],
        "string"
    );
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
    assert!(!editor.said().contains("/leave"), "{}", editor.said());
    // Anything else is no answer; what does not hang on it is done all the same.
    for no in [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": {"action": "later"}}),
        accepted(json!({})),
        accepted(json!({"answer": 5})),
        accepted(json!({"answer": "  "})),
        accepted(json!({"other": "b.txt"})),
        accepted(json!({"answer": "x".repeat(70_000)})),
    ] {
        let (editor, ..) = formed(&no);
        assert_eq!(editor.text("b.txt"), None, "{no}");
        assert_eq!(editor.text("apart.txt").as_deref(), Some("apart\n"), "{no}");
    }
}

#[test]
fn a_client_whose_forms_fail_is_asked_by_a_message() {
    let mut editor = Editor::start();
    editor.call(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": {"form": {}}}}),
    );
    let session = editor.open();
    let id = editor.begin(&session, &asking());
    let form = editor.until(&[yes()], |m| m["method"] == "elicitation/create");
    let error = json!({"code": -32601, "message": "no such method"});
    editor.send(&json!({"jsonrpc": "2.0", "id": form["id"], "error": error}));
    assert_eq!(editor.result(id, &[])["stopReason"], "end_turn");
    editor.prompt(&session, &json!("b.txt"), &[yes(), yes()]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
}
