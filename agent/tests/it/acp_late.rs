//! What happens between a question over the wire and its answer: a yes that comes late does
//! nothing that it did not cover by itself, and nobody waits for an answer that nobody wants.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Child;

use serde_json::{Value, json};

use crate::{
    acp_elsewhere::{done, granted, listed},
    support::editor::Editor,
};

fn yes() -> Value {
    json!("allow-once")
}

/// A call that is asked about before it begins, one whose changes are when it is over, and a
/// script; each makes `b.txt`.
fn makers() -> [Value; 3] {
    [
        json!(["write_file", {"path": "b.txt", "content": "b\n"}]),
        json!(["terminal", {"command": "echo b > b.txt"}]),
        json!(["execute_code", {"code": "open('b.txt', 'w').write('b')"}]),
    ]
}

/// Calls that change `a.txt` and make `b.txt`.
fn both() -> [Value; 3] {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-alpha\n+1\n*** Add File: b.txt\n+2\n*** End Patch";
    [
        json!(["patch", {"mode": "patch", "patch": patch}]),
        json!(["terminal", {"command": "echo 1 > a.txt; echo 2 > b.txt"}]),
        json!(["execute_code", {"code": "for name, text in (('a.txt', '1\\n'), ('b.txt', '2\\n')):\n    open(name, 'w').write(text)"}]),
    ]
}

/// A turn that waits for an answer: its request, and the question.
fn asking(editor: &mut Editor, session: &str, call: &Value) -> (u64, Value) {
    let turn = editor.begin(session, &json!([[call]]));
    (turn, editor.question())
}

/// What came of a request, be it heard already.
fn came(editor: &mut Editor, id: u64) -> Value {
    let is_it = |m: &&Value| m["id"] == id && m.get("method").is_none();
    match editor.seen.iter().find(is_it) {
        Some(heard) => heard.get("result").unwrap_or(&heard["error"]).clone(),
        None => editor.result(id, &[]),
    }
}

/// The session asks and is answered as ever, and what it was asked before is no part of it.
#[track_caller]
fn goes_on(editor: &mut Editor, session: &str) {
    let before = editor.questions().len();
    let write = |name: &str| json!([[["write_file", {"path": name, "content": "x\n"}]]]);
    editor.prompt(session, &write("no.txt"), &[json!("reject-once")]);
    editor.prompt(session, &write("yes.txt"), &[yes()]);
    assert_eq!(editor.questions().len(), before + 2);
    assert_eq!(editor.text("no.txt"), None);
    assert_eq!(editor.text("yes.txt").as_deref(), Some("x\n"));
}

/// Lets a granter go, be it ended already.
fn gone(mut granter: Child) {
    drop(granter.stdin.take());
    let _ended = granter.wait();
}

#[test]
fn a_yes_that_comes_after_a_cancel_does_nothing_and_lies_in_wait_for_nothing() {
    for call in makers() {
        let (mut editor, session) = Editor::ready();
        let (turn, question) = asking(&mut editor, &session, &call);
        editor.notify("session/cancel", json!({"sessionId": session}));
        editor.answer(&question, &yes());
        assert_eq!(came(&mut editor, turn)["stopReason"], "cancelled", "{call}");
        editor.answer(&question, &yes());
        assert_eq!(editor.text("b.txt"), None, "{call}");
        goes_on(&mut editor, &session);
        assert_eq!(editor.text("b.txt"), None, "{call}");
    }
}

#[test]
fn a_yes_that_comes_after_its_session_was_closed_and_loaded_anew_is_none_of_the_new_ones() {
    for call in makers() {
        for begins in ["session/load", "session/resume"] {
            let (mut editor, session) = Editor::ready();
            let (turn, question) = asking(&mut editor, &session, &call);
            let close = editor.request("session/close", json!({"sessionId": session}));
            assert!(came(&mut editor, close).is_object(), "{call}");
            assert_eq!(came(&mut editor, turn)["stopReason"], "cancelled", "{call}");
            let place = json!({"sessionId": session, "cwd": editor.workspace(), "mcpServers": []});
            let loaded = editor.call(begins, place);
            assert!(loaded["modes"].is_object(), "{loaded}");
            editor.answer(&question, &yes());
            assert_eq!(editor.text("b.txt"), None, "{call}");
            goes_on(&mut editor, &session);
            // Nor while the new one asks the same.
            let (turn, again) = asking(&mut editor, &session, &call);
            assert_ne!(again["id"], question["id"]);
            editor.answer(&question, &yes());
            editor.answer(&again, &json!("reject-once"));
            assert_eq!(came(&mut editor, turn)["stopReason"], "end_turn");
            assert_eq!(editor.text("b.txt"), None, "{call}");
        }
    }
}

#[test]
fn who_loads_or_prompts_a_session_that_asks_is_refused_and_the_answer_is_not_lost() {
    for call in makers() {
        let (mut editor, session) = Editor::ready();
        let (turn, question) = asking(&mut editor, &session, &call);
        let place = json!({"sessionId": session, "cwd": editor.workspace(), "mcpServers": []});
        for method in ["session/load", "session/resume"] {
            let refused = editor.call(method, place.clone());
            assert!(refused["code"].is_number(), "{refused}");
        }
        let other = editor.begin(&session, &json!(["not now"]));
        assert!(editor.result(other, &[])["code"].is_number());
        assert!(editor.call("session/delete", json!({"sessionId": session}))["code"].is_number());
        editor.answer(&question, &yes());
        assert_eq!(came(&mut editor, turn)["stopReason"], "end_turn");
        assert!(editor.text("b.txt").is_some(), "{call}");
        goes_on(&mut editor, &session);
    }
}

#[test]
fn what_a_terminal_takes_back_while_the_rest_is_asked_about_is_not_done_with_the_yes() {
    for call in both() {
        // Nothing is taken back, or something else, or whoever granted it goes without a word.
        for meanwhile in ["nothing", "other", "lost", "revoke"] {
            let (mut editor, session) = Editor::ready();
            let (mut granter, name) = granted(&editor, "fs.modify=a.txt");
            let (other, of_other) = granted(&editor, "fs.create=elsewhere");
            let (turn, question) = asking(&mut editor, &session, &call);
            match meanwhile {
                "revoke" => drop(done(&editor, &["revoke", &name])),
                "other" => drop(done(&editor, &["revoke", &of_other])),
                "lost" => {
                    granter.kill().unwrap();
                    granter.wait().unwrap();
                }
                _ => {}
            }
            editor.answer(&question, &yes());
            assert_eq!(came(&mut editor, turn)["stopReason"], "end_turn");
            let (a, b) = (editor.text("a.txt").unwrap(), editor.text("b.txt"));
            if meanwhile == "revoke" {
                assert_eq!((a.as_str(), b), ("alpha\n", None), "{call}");
                let ended = editor.ended().to_string();
                assert!(ended.contains("revoked"), "{call}: {ended}");
            } else {
                assert_eq!(a, "1\n", "{meanwhile} {call}");
                assert_eq!(b.unwrap().trim_end(), "2", "{meanwhile} {call}");
            }
            goes_on(&mut editor, &session);
            gone(granter);
            gone(other);
        }
    }
}

#[test]
fn a_yes_in_a_session_that_a_terminal_ended_does_nothing_and_its_turn_ends() {
    for call in makers() {
        let (mut editor, session) = Editor::ready();
        let (turn, question) = asking(&mut editor, &session, &call);
        done(&editor, &["end"]);
        editor.answer(&question, &yes());
        let ended = came(&mut editor, turn);
        assert!(ended["stopReason"].is_string(), "{ended}");
        assert_eq!(editor.text("b.txt"), None, "{call}");
        // What is over stays so, and says it; nobody is asked in it.
        let before = editor.questions().len();
        let more = json!([[["write_file", {"path": "c.txt", "content": "c"}]]]);
        let turn = editor.begin(&session, &more);
        let refused = editor.result(turn, &[]);
        assert_eq!(refused["stopReason"], "refusal", "{refused}");
        assert_eq!(
            (editor.questions().len(), editor.text("c.txt")),
            (before, None)
        );
    }
}

/// A turn in which work is handed out with the right to ask, and the child asks.
fn child_asks(editor: &mut Editor, session: &str, call: &Value) -> (u64, Value, String) {
    let all = listed(editor).remove(0);
    let grants = all["grants"].as_array().unwrap();
    let ask = grants
        .iter()
        .find(|grant| grant["what"].as_str().unwrap().contains("user.ask"))
        .unwrap();
    let right = format!("grant{}", ask["grant"]);
    let goal = json!([[call]]).to_string();
    let hand_out = json!(["delegate_task", {"goal": goal, "grants": [right]}]);
    let turn = editor.begin(session, &json!([[hand_out]]));
    let first = editor.until(&[], |m| {
        m["method"] == "session/request_permission" || m["id"] == turn
    });
    assert_eq!(
        first["method"], "session/request_permission",
        "{call}: {:?}",
        editor.seen
    );
    (turn, first, right)
}

/// The only agent beside the first one.
fn child(editor: &Editor) -> String {
    let all = listed(editor).remove(0);
    let agents = all["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 2, "{all}");
    format!("agent{}", agents[1]["agent"])
}

#[test]
fn a_child_that_asks_does_nothing_with_a_yes_once_it_or_its_right_to_ask_has_ended() {
    // A child is given no scripts.
    for call in &makers()[..2] {
        for meanwhile in ["nothing", "right", "child", "mode", "cancel", "end"] {
            let (mut editor, session) = Editor::ready();
            let (turn, question, right) = child_asks(&mut editor, &session, call);
            match meanwhile {
                "right" => drop(done(&editor, &["revoke", &right])),
                "child" => drop(done(&editor, &["end-agent", &child(&editor)])),
                "mode" => drop(done(&editor, &["mode", "reject_all"])),
                "cancel" => editor.notify("session/cancel", json!({"sessionId": session})),
                "end" => drop(done(&editor, &["end"])),
                _ => {}
            }
            editor.answer(&question, &yes());
            let ended = came(&mut editor, turn);
            assert!(
                ended["stopReason"].is_string(),
                "{meanwhile} {call}: {ended}"
            );
            let made = editor.text("b.txt");
            assert_eq!(made.is_some(), meanwhile == "nothing", "{meanwhile} {call}");
            match meanwhile {
                "nothing" | "child" | "cancel" => goes_on(&mut editor, &session),
                _ => {}
            }
        }
    }
}
