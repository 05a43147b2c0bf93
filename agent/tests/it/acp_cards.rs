//! What an editor shows of a call, where nobody was asked and where nothing was printed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// The client's files are not read, so that its mode alone decides.
fn unasked() -> (Editor, String) {
    let (mut editor, session) = Editor::ready();
    editor.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "workspace"}),
    );
    (editor, session)
}

/// The content of each call's last update, in the order of the calls.
fn cards(editor: &Editor) -> Vec<Value> {
    let updates = editor.updates("tool_call_update");
    editor
        .updates("tool_call")
        .iter()
        .map(|call| {
            let mut own = updates
                .iter()
                .filter(|update| update["toolCallId"] == call["toolCallId"]);
            own.next_back().unwrap()["content"].clone()
        })
        .collect()
}

#[test]
fn what_was_written_unasked_is_shown_as_what_it_replaced_and_what_is_there() {
    let (mut editor, session) = unasked();
    editor.put("gone.txt", "g\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+gamma\n*** Delete File: gone.txt\n*** End Patch";
    let code = "from hermes_tools import write_file\nwrite_file('s.txt', 'one\\n')\nwrite_file('s.txt', 'two\\n')\nprint('ran')";
    let script = json!([
        [["write_file", {"path": "sub/new.txt", "content": "n\n"}]],
        [["patch", {"mode": "replace", "path": "a.txt", "old_string": "alpha", "new_string": "beta"}]],
        [["patch", {"mode": "patch", "patch": patch}]],
        [
            ["write_file", {"path": "b.txt", "content": "b\n"}],
            ["write_file", {"path": "c.txt", "content": "c\n"}],
        ],
        [["execute_code", {"code": code}]],
    ]);
    let turn = editor.prompt(&session, &script, &[]);
    assert_eq!(turn["stopReason"], "end_turn");
    assert_eq!(editor.questions(), Vec::<Value>::new());
    let shown = cards(&editor);
    let place = |name: &str| editor.workspace().join(name);
    let diff = |name: &str, old: Option<&str>, new: &str| {
        let mut diff = json!({"type": "diff", "path": place(name), "newText": new});
        if let Some(old) = old {
            diff["oldText"] = old.into();
        }
        diff
    };
    assert_eq!(shown[0], json!([diff("sub/new.txt", None, "n\n")]));
    assert_eq!(shown[1], json!([diff("a.txt", Some("alpha\n"), "beta\n")]));
    assert_eq!(shown[2][0], diff("a.txt", Some("beta\n"), "gamma\n"));
    assert_eq!(shown[2][1]["path"], json!(place("gone.txt")));
    let gone = format!("```\ndeleted file {}\n```", place("gone.txt").display());
    assert_eq!(shown[2][2]["content"]["text"], gone);
    // Calls of one answer run beside each other, and each shows its own.
    assert_eq!(shown[3], json!([diff("b.txt", None, "b\n")]));
    assert_eq!(shown[4], json!([diff("c.txt", None, "c\n")]));
    // A script prints, and writes one file twice.
    assert_eq!(shown[5][0]["content"]["text"], "ran\n", "{}", shown[5]);
    assert_eq!(shown[5][1], diff("s.txt", None, "two\n"));
    assert_eq!(shown[5].as_array().unwrap().len(), 2);
}

#[test]
fn what_was_asked_about_stays_as_it_was_shown_and_what_was_refused_is_none() {
    let (mut editor, session) = Editor::ready();
    let write = |name: &str| json!([["write_file", {"path": name, "content": "x\n"}]]);
    let run = |name: &str| json!([["terminal", {"command": format!("echo x > {name}; echo ran")}]]);
    let script = json!([
        write("yes.txt"),
        write("no.txt"),
        run("r.txt"),
        run("n.txt")
    ]);
    let (yes, no) = (json!("allow-once"), json!("reject-once"));
    editor.prompt(&session, &script, &[yes.clone(), no.clone(), yes, no]);
    let shown = cards(&editor);
    // The question's own content is there already.
    assert_eq!(shown[0], Value::Null);
    assert_eq!(
        shown[1],
        json!([{"type": "content", "content": {"type": "text", "text": "Edit rejected by user"}}])
    );
    // What a command printed does not hide what was agreed to.
    let path = editor.workspace().join("r.txt");
    assert_eq!(
        shown[2],
        json!([
            {"type": "content", "content": {"type": "text", "text": "ran"}},
            {"type": "diff", "path": path, "newText": "x\n"},
        ])
    );
    assert_eq!(shown[3].as_array().unwrap().len(), 1, "{}", shown[3]);
}

#[test]
fn what_printed_nothing_found_something_or_failed_is_shown_in_words() {
    let (mut editor, session) = Editor::ready();
    let script = json!([
        [["terminal", {"command": "true"}]],
        [["terminal", {"command": "echo some; exit 3"}]],
        [["search_files", {"pattern": "alpha"}]],
        [["todo", {"todos": [{"id": "1", "content": "one", "status": "in_progress"}]}]],
    ]);
    editor.prompt(&session, &script, &[]);
    let shown: Vec<String> = cards(&editor)
        .iter()
        .map(|card| card[0]["content"]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        shown,
        [
            "[no output]",
            "some\n[exit code 3]",
            "./a.txt:1: alpha",
            "- [>] one"
        ]
    );
}

#[test]
fn a_session_that_cannot_begin_says_nothing_of_options_an_editor_does_not_have() {
    let mut editor = Editor::start();
    editor.initialize(false);
    let home = editor.dir.path().canonicalize().unwrap();
    let said = editor.call("session/new", json!({"cwd": home, "mcpServers": []}));
    let said = said["data"].as_str().unwrap();
    assert!(said.contains("cannot be worked in"), "{said}");
    assert!(!said.contains("--workspace"), "{said}");
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["acp", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(
        !help.contains("--workspace") && !help.contains("--object"),
        "{help}"
    );
    assert!(help.contains("--state-dir"), "{help}");
}
