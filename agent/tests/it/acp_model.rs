//! What reaches an editor's model, and what an editor is told of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::editor::Editor;

#[test]
fn a_refused_key_is_told_in_words_with_what_to_do() {
    let (mut editor, session) = Editor::ready();
    let error = editor.prompt(&session, &json!([{"status": 401}]), &[]);
    assert_eq!(error["code"], -32000, "{error}");
    let words = error["message"].as_str().unwrap();
    for part in [
        "status 401",
        "no key was sent",
        "config backend",
        "--key-env",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    // Another refusal says what it is, too, and is nothing a key would mend.
    let error = editor.prompt(&session, &json!([{"status": 404}]), &[]);
    assert_eq!(error["code"], -32603, "{error}");
    let words = error["message"].as_str().unwrap();
    assert!(
        words.contains("status 404") && words.contains("/chat/completions"),
        "{words}"
    );
    // The session is there all the same.
    assert_eq!(
        editor.prompt(&session, &json!(["here"]), &[])["stopReason"],
        "end_turn"
    );
}

#[test]
fn a_refused_key_is_named_by_its_place_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "sesame\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let place = key.to_str().unwrap().to_owned();
    let mut editor = Editor::start_with(&["--key-file", &place], dir);
    editor.initialize(false);
    let session = editor.open();
    let error = editor.prompt(&session, &json!([{"status": 401}]), &[]);
    let words = error["message"].as_str().unwrap();
    assert!(words.contains(&format!("the file `{place}`")), "{words}");
    assert!(!words.contains("sesame"), "{words}");
}

#[test]
fn an_answer_that_is_cut_off_ends_the_turn_as_one() {
    let (mut editor, session) = Editor::ready();
    let turn = editor.prompt(&session, &json!([{"cut": "half of what"}]), &[]);
    assert_eq!(turn["stopReason"], "max_tokens", "{turn}");
    let said = editor.said();
    assert!(
        said.contains("half of what") && said.contains("`tokens_max`"),
        "{said}"
    );
    let turn = editor.prompt(&session, &json!(["whole"]), &[]);
    assert_eq!(turn["stopReason"], "end_turn", "{turn}");
    // One of which nothing was left is cut off all the same.
    let turn = editor.prompt(&session, &json!([{"cut": ""}]), &[]);
    assert_eq!(turn["stopReason"], "max_tokens", "{turn}");
}

fn said_after(editor: &mut Editor, session: &str, words: &str) -> String {
    let before = editor.said().len();
    let turn = editor.prompt(session, &Value::from(words), &[]);
    assert_eq!(turn["stopReason"], "end_turn", "{words}: {turn}");
    editor.said().split_off(before)
}

#[test]
fn a_mistyped_command_is_met_and_a_path_at_the_beginning_goes_to_the_model() {
    let (mut editor, session) = Editor::ready();
    for (typed, meant) in [
        ("/cap", "`/caps`"),
        ("/revok cap:3", "`/revoke`"),
        ("/dryrun rename it", "`/dry-run`"),
        ("/Caps", "`/caps`"),
        ("/frobnicate", "there is no command `/frobnicate`"),
    ] {
        let said = said_after(&mut editor, &session, typed);
        assert!(said.contains(meant), "{typed}: {said}");
        assert!(
            !said.contains(&format!("{typed}\n")),
            "it went to the model: {said}"
        );
    }
    // The model of this test says what it was told.
    for typed in [
        "/etc/hosts is what?",
        "/tmp is full, why?",
        "/",
        "// a comment",
        "/caps.txt is mine",
    ] {
        assert_eq!(
            said_after(&mut editor, &session, typed),
            format!("{typed}\n")
        );
    }
}
