//! Whatever comes in: an error, or nothing, and the agent is there afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// The agent answers, so it is there.
fn is_there(editor: &mut Editor, session: &str) {
    let turn = editor.prompt(session, &json!(["here"]), &[]);
    assert_eq!(turn["stopReason"], "end_turn");
}

#[test]
fn nothing_is_served_before_the_version_is_agreed() {
    let mut editor = Editor::start();
    let cwd = editor.workspace();
    let early = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    assert_eq!(early["code"], -32600);
    let odd = editor.call("initialize", json!({"protocolVersion": "1"}));
    assert_eq!(odd["code"], -32602);
    // A client of the future is told which version this is.
    let future = editor.call("initialize", json!({"protocolVersion": 99}));
    assert_eq!(future["protocolVersion"], 1);
    let session = editor.open();
    is_there(&mut editor, &session);
}

#[test]
fn frames_that_are_no_messages_are_refused_and_not_obeyed() {
    let (mut editor, session) = Editor::ready();
    let prompt = json!({"jsonrpc": "2.0", "id": 900, "method": "session/prompt", "params": {
        "sessionId": session, "prompt": [{"type": "text", "text": json!([[["write_file", {"path": "a.txt", "content": "x"}]]]).to_string()}]}});
    for bytes in [
        b"42".to_vec(),
        b"null".to_vec(),
        b"\"text\"".to_vec(),
        b"{".to_vec(),
        b"{}".to_vec(),
        b"[]".to_vec(),
        b"nonsense".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\xff\"}".to_vec(),
        json!([prompt]).to_string().into_bytes(),
        vec![b'['; 100_000],
        json!({"jsonrpc": "2.0", "id": "nobody-asked", "result": {}})
            .to_string()
            .into_bytes(),
        json!({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "m"}})
            .to_string()
            .into_bytes(),
        json!({"jsonrpc": "1.0", "id": 6, "method": "session/list", "params": {}})
            .to_string()
            .into_bytes(),
    ] {
        editor.raw(&bytes);
    }
    is_there(&mut editor, &session);
    assert!(editor.questions().is_empty());
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    assert!(
        editor
            .seen
            .iter()
            .any(|m| m["id"] == 7 && m["error"]["code"] == -32700)
    );
}

#[test]
fn a_long_message_that_cannot_be_read_is_not_sent_back_whole() {
    let (mut editor, session) = Editor::ready();
    let long = "x".repeat(2 << 20);
    editor.raw(format!("{{\"a\": {long}").as_bytes());
    let odd = editor.call("session/prompt", json!({"sessionId": [&long], "prompt": 1}));
    assert_eq!(odd["code"], -32602);
    is_there(&mut editor, &session);
    let errors = editor
        .seen
        .iter()
        .filter(|message| message.get("error").is_some());
    let lengths: Vec<usize> = errors.map(|error| error.to_string().len()).collect();
    assert!(
        !lengths.is_empty() && lengths.iter().all(|length| *length < 8192),
        "{lengths:?}"
    );
    assert!(odd.to_string().len() < 8192);
}

#[test]
fn requests_that_make_no_sense_are_errors() {
    let (mut editor, session) = Editor::ready();
    let text = json!([{"type": "text", "text": "x"}]);
    let cwd = editor.workspace();
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("_x/y", json!({}), -32601),
        ("session/set_model", json!({}), -32601),
        (
            "session/prompt",
            json!({"sessionId": "nobody", "prompt": text}),
            -32602,
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": []}),
            -32602,
        ),
        ("session/prompt", json!({"sessionId": session}), -32602),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": "relative", "mcpServers": []}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": cwd.join("missing"), "mcpServers": []}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": cwd.join("a.txt"), "mcpServers": []}),
            -32602,
        ),
        ("session/close", json!({"sessionId": "nobody"}), -32602),
        ("session/list", json!({"cursor": "x"}), -32602),
    ] {
        let error = editor.call(method, params.clone());
        assert_eq!(error["code"], code, "{method} {params}: {error}");
        let is_image = params.to_string().contains("image/png");
        let says_so = error["data"]
            .as_str()
            .is_some_and(|why| why.starts_with("images cannot be taken; send text"));
        assert_eq!(is_image, says_so, "{method}: {error}");
    }
    editor.notify("session/cancel", json!({"sessionId": "nobody"}));
    editor.notify("no/such", json!({}));
    is_there(&mut editor, &session);
}

#[test]
fn a_request_with_the_number_of_another_is_served_or_refused_but_not_mixed_up() {
    let (mut editor, session) = Editor::ready();
    let prompt = |words: &str| {
        json!({"jsonrpc": "2.0", "id": "twice", "method": "session/prompt", "params": {
        "sessionId": session, "prompt": [{"type": "text", "text": words}]}})
    };
    editor.send(&prompt("[{\"wait\": true}]"));
    editor.send(&prompt("[\"second\"]"));
    let refused = editor.until(&[], |m| m["id"] == "twice");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    editor.notify("session/cancel", json!({"sessionId": session}));
    let first = editor.until(&[], |m| m["id"] == "twice");
    assert_eq!(first["result"]["stopReason"], "cancelled", "{first}");
    is_there(&mut editor, &session);
}

#[test]
fn a_prompt_of_a_hundred_megabytes_is_refused_by_its_number_and_not_kept() {
    let (mut editor, session) = Editor::ready();
    let head = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\""
    );
    let mut line = head.into_bytes();
    line.resize(100 << 20, b'x');
    line.extend_from_slice(b"\"}]},\"id\":4242}");
    editor.raw(&line);
    let refused = editor.until(&[], |m| m["id"] == 4242);
    assert_eq!(refused["error"]["code"], -32600);
    is_there(&mut editor, &session);
}

#[test]
fn a_client_that_dies_in_a_question_leaves_nothing_behind() {
    for after in ["question", "command", "half a line"] {
        let (mut editor, session) = Editor::ready();
        match after {
            "question" => {
                editor.begin(
                    &session,
                    &json!([[["write_file", {"path": "a.txt", "content": "x"}]]]),
                );
                editor.question();
            }
            "command" => {
                let call =
                    json!([["terminal", {"command": "echo began; echo x > a.txt; sleep 600"}]]);
                editor.begin(&session, &json!([call]));
                editor.until(&[], |m| m.to_string().contains("\"text\":\"began"));
            }
            _ => editor.raw(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"meth"),
        }
        let (code, dir) = editor.hang_up();
        assert_eq!(code, Some(0), "{after}");
        let text = std::fs::read_to_string(dir.path().join("proj/a.txt")).unwrap();
        assert_eq!(text, "alpha\n", "{after}");
        // Its session ended, and its ledger says so.
        let ledger = dir.path().join(format!(
            ".local/state/hermitcrab/acp/{session}/ledger.jsonl"
        ));
        let ledger = std::fs::read_to_string(ledger).unwrap();
        let last: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
        assert!(last.to_string().contains("ended"), "{last}");
    }
}
