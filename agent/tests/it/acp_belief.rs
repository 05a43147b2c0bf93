//! What an editor's user chooses in the middle of a conversation: how far the sandbox is
//! believed, beside when they are asked; and what nobody can choose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// Chooses a mode.
fn mode(editor: &mut Editor, session: &str, mode: &str) -> Value {
    let wanted = json!({"sessionId": session, "modeId": mode});
    editor.call("session/set_mode", wanted)
}

/// Chooses how far the sandbox is believed.
fn believe(editor: &mut Editor, session: &str, value: &str) {
    let option = json!({"sessionId": session, "configId": "isolation", "value": value});
    let came = editor.call("session/set_config_option", option);
    assert_eq!(came["configOptions"][1]["currentValue"], value, "{came}");
}

/// An editor whose session runs commands unasked, as they are proved to do no harm; `None`
/// where nothing is proved.
fn unasked() -> Option<(Editor, String)> {
    let mut editor = Editor::start();
    editor.initialize(false);
    let cwd = editor.workspace();
    let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    if !opened.to_string().contains("Isolation is proved") {
        println!("SKIPPED: no isolation is proved on this machine");
        return None;
    }
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(mode(&mut editor, &session, "session"), json!({}));
    Some((editor, session))
}

fn command(command: &str) -> Value {
    json!(["terminal", {"command": command}])
}

fn write(path: &str) -> Value {
    json!(["write_file", {"path": path, "content": "written\n"}])
}

#[test]
fn no_command_runs_in_a_sandbox_that_is_not_believed() {
    let Some((mut editor, session)) = unasked() else {
        return;
    };
    let script = json!([[command("echo made > b.txt")]]);
    editor.prompt(&session, &script, &[]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
    std::fs::remove_file(editor.workspace().join("b.txt")).unwrap();
    believe(&mut editor, &session, "unknown");
    editor.prompt(&session, &script, &[]);
    let ended = editor.ended().to_string();
    assert!(ended.contains("isolation"), "{ended}");
    assert_eq!(editor.text("b.txt"), None);
    believe(&mut editor, &session, "proved");
    editor.prompt(&session, &script, &[]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("made\n"));
}

#[test]
fn what_is_chosen_in_the_middle_of_a_turn_is_believed_from_the_next_one_on() {
    let Some((mut editor, session)) = unasked() else {
        return;
    };
    // A name that is asked about in every mode.
    let script = json!([[write(".env")], [command("echo first > b.txt")]]);
    let turn = editor.begin(&session, &script);
    let question = editor.question();
    believe(&mut editor, &session, "unknown");
    editor.answer(&question, &json!("reject-once"));
    editor.result(turn, &[]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("first\n"));
    let script = json!([[command("echo second > b.txt")]]);
    editor.prompt(&session, &script, &[]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("first\n"));
}

#[test]
fn the_mode_goes_on_where_the_belief_changes_and_ends_what_it_gave_alone() {
    let Some((mut editor, session)) = unasked() else {
        return;
    };
    mode(&mut editor, &session, "workspace");
    editor.prompt(&session, &json!([[write("b.txt")]]), &[]);
    believe(&mut editor, &session, "unknown");
    editor.prompt(&session, &json!([[write("c.txt")]]), &[]);
    assert_eq!(editor.text("c.txt").as_deref(), Some("written\n"));
    // What its user grants from here on may have the name of what ended with the mode.
    mode(&mut editor, &session, "ask");
    believe(&mut editor, &session, "proved");
    let script = json!([[write("d.txt")]]);
    editor.prompt(&session, &script, &[json!("allow-session")]);
    for chosen in ["workspace", "ask"] {
        mode(&mut editor, &session, chosen);
        std::fs::remove_file(editor.workspace().join("d.txt")).unwrap();
        editor.prompt(&session, &script, &[]);
        assert_eq!(editor.text("d.txt").as_deref(), Some("written\n"));
    }
    editor.prompt(
        &session,
        &json!([[write("e.txt")]]),
        &[json!("reject-once")],
    );
    assert_eq!(editor.questions().len(), 2);
    assert_eq!(editor.text("e.txt"), None);
}

#[test]
fn what_was_read_counts_as_read_however_far_the_sandbox_is_believed() {
    let (mut editor, session) = Editor::ready();
    let heard = |editor: &Editor| {
        let ledger = editor.dir.path().join(".local/state/hermitcrab/acp");
        let ledger = std::fs::read_to_string(ledger.join(&session).join("ledger.jsonl")).unwrap();
        let opened = ledger.rfind("\"kind\":\"opened\"").unwrap_or_default();
        ledger[opened..].matches("network").count()
    };
    let look = json!([[["read_file", {"path": "a.txt"}]]]);
    editor.prompt(&session, &look, &[]);
    assert_eq!(heard(&editor), 0);
    believe(&mut editor, &session, "unknown");
    editor.prompt(&session, &json!(["nothing"]), &[]);
    // The model still has it before it, whoever wrote it.
    assert!(heard(&editor) > 0);
}

#[test]
fn who_believes_otherwise_is_told_what_ended_with_that() {
    let Some((mut editor, session)) = unasked() else {
        return;
    };
    let left = json!(["terminal", {"command": "sleep 1000", "background": true}]);
    editor.prompt(&session, &json!([[left]]), &[]);
    believe(&mut editor, &session, "unknown");
    editor.prompt(&session, &json!(["nothing"]), &[]);
    let said = editor.said();
    let told = "1 background command still ran and was ended";
    assert!(said.contains(told) && said.contains("sleep 1000"), "{said}");
}

#[test]
fn where_the_user_wants_all_refused_no_mode_is_offered_that_asks_less() {
    let dir = tempfile::tempdir().unwrap();
    let mut editor = Editor::start_with(&["--mode", "reject_all"], dir);
    editor.initialize(false);
    let cwd = editor.workspace();
    let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let ids = |list: &Value, key: &str| -> Vec<String> {
        let each = list.as_array().unwrap().iter();
        each.map(|one| one[key].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&opened["modes"]["availableModes"], "id"), ["ask"]);
    let options = &opened["configOptions"][0]["options"];
    assert_eq!(ids(options, "value"), ["ask"]);
    for wanted in ["workspace", "session"] {
        let came = mode(&mut editor, &session, wanted);
        assert_eq!(came["code"], -32602, "{wanted}: {came}");
        let option = json!({"sessionId": session, "configId": "approval", "value": wanted});
        let came = editor.call("session/set_config_option", option);
        assert_eq!(came["code"], -32602, "{wanted}: {came}");
    }
    editor.prompt(&session, &json!([[write("b.txt")]]), &[]);
    assert_eq!(editor.text("b.txt"), None);
}
