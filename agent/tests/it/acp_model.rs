//! What reaches an editor's model, and what an editor is told of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;

use crate::support::editor::Editor;

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
