//! What editors' sessions and jobs changed is taken back like what anybody else did.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use serde_json::{Value, json};

use crate::{
    cron::with_job,
    support::{editor::Editor, home::Home, pty::Pty},
};

fn run(command: &str) -> Value {
    json!([["terminal", {"command": command}]])
}

/// What an editor's session removed, with a yes.
fn removed() -> (Editor, String) {
    let (mut editor, session) = Editor::ready();
    editor.prompt(&session, &json!([run("rm a.txt")]), &[json!("allow-once")]);
    assert_eq!(editor.text("a.txt"), None);
    (editor, session)
}

fn has_ids_alone(home: &Home) {
    for shelf in ["acp", "jobs"] {
        for entry in fs::read_dir(home.state(shelf)).into_iter().flatten() {
            let journal = entry.unwrap().path().join("journal");
            assert!(!journal.exists(), "{}", journal.display());
        }
    }
    assert!(home.state("journal").exists());
}

#[test]
fn what_an_editors_session_did_is_listed_and_taken_back_at_a_terminal() {
    let (editor, _) = removed();
    let (_, dir) = editor.hang_up();
    let home = Home { dir };
    has_ids_alone(&home);
    let listed = home.ok(&["undo", "--list"]);
    assert!(
        listed.contains("rm a.txt") && listed.contains("fs.delete"),
        "{listed}"
    );
    let back = home.ok(&["undo"]);
    assert!(back.contains("took back commit 1: rm a.txt"), "{back}");
    let a = home.project().join("a.txt");
    assert_eq!(fs::read_to_string(&a).unwrap(), "alpha\n");
    // And brought back by its number, as it says.
    home.ok(&["undo", "2"]);
    assert!(!a.exists());
}

#[test]
fn what_a_job_did_is_taken_back_in_its_turn() {
    let (home, id) = with_job("every 1h");
    home.ok(&["exec", "--grant", "fs.create=.", "--", "echo 1 > first.txt"]);
    home.ok(&["cron", "grant", &id, "fs.create=."]);
    assert_eq!(home.run(&["cron", "tick"]).code, Some(0));
    let note = home.project().join("note.txt");
    assert!(note.exists());
    has_ids_alone(&home);
    // The latest of all first.
    let back = home.ok(&["undo"]);
    assert!(back.contains("took back commit 2"), "{back}");
    assert!(!note.exists() && home.project().join("first.txt").exists());
    home.ok(&["undo"]);
    assert!(!home.project().join("first.txt").exists());
}

#[test]
fn an_editors_user_takes_back_what_was_done_where_they_are() {
    let (mut editor, session) = removed();
    let offered = editor.updates("available_commands_update")[0].to_string();
    assert!(offered.contains("\"undo\""), "{offered}");
    let mut say = |words: &str| {
        let before = editor.said().len();
        let done = editor.prompt(&session, &json!(words), &[]);
        assert_eq!(done["stopReason"], "end_turn");
        (editor.said()[before..].to_owned(), editor.text("a.txt"))
    };
    let (listed, _) = say("/undo list");
    assert!(
        listed.contains("   1  ") && listed.contains("rm a.txt"),
        "{listed}"
    );
    let (back, text) = say("/undo");
    assert!(
        back.contains("took back commit 1: rm a.txt") && back.contains("`/undo commit 2`"),
        "{back}"
    );
    assert_eq!(text.as_deref(), Some("alpha\n"));
    let (brought, text) = say("/undo commit 2");
    assert!(brought.contains("took back commit 2"), "{brought}");
    assert_eq!(text, None);
    let (none, _) = say("/undo commit 9");
    assert!(none.contains("there is no commit 9"), "{none}");
    // Nothing was left to be used by anybody: the next change is asked about.
    let asked = editor.questions().len();
    editor.prompt(
        &session,
        &json!([run("echo b > b.txt")]),
        &[json!("reject-once")],
    );
    assert_eq!(editor.questions().len(), asked + 1);
    assert_eq!(editor.text("b.txt"), None);
}

#[test]
fn what_changed_elsewhere_is_not_taken_back_from_an_editor() {
    let (mut editor, _) = removed();
    let other = editor.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let session = editor.open_in(&other.canonicalize().unwrap());
    for words in ["/undo", "/undo commit 1"] {
        editor.prompt(&session, &json!(words), &[]);
    }
    let said = editor.said();
    assert!(said.contains("there is nothing to undo in"), "{said}");
    assert!(
        said.contains("commit 1 changed something in other directories"),
        "{said}"
    );
    assert_eq!(editor.text("a.txt"), None);
}

/// A journal where earlier versions had it.
#[test]
fn what_an_earlier_version_kept_of_an_editors_session_is_listed_with_what_takes_it_back() {
    let (editor, session) = removed();
    let (_, dir) = editor.hang_up();
    let home = Home { dir };
    let own = home.state("acp").join(&session);
    fs::rename(home.state("journal"), own.join("journal")).unwrap();
    let listed = home.ok(&["undo", "--list"]);
    let command = format!("hermitcrab undo ID --state-dir {}", own.display());
    assert!(
        listed.contains("there is nothing to undo")
            && listed.contains(&command)
            && listed.contains("rm a.txt"),
        "{listed}"
    );
    home.ok(&["undo", "1", "--state-dir", own.to_str().unwrap()]);
    assert!(home.project().join("a.txt").exists());
}

/// That a directory is open, for a file in it, or used everywhere makes nobody's work there one's own.
#[test]
fn what_was_done_in_another_workspace_is_not_taken_back_for_what_is_granted_beside_it() {
    let home = Home::new();
    home.configure("");
    for name in ["odd", "shared"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    fs::write(home.path().join("note.txt"), "note\n").unwrap();
    home.ok(&["caps", "grant", "fs.modify=../note.txt"]);
    home.ok(&["config", "add-directory", "~/shared"]);
    home.ok(&["exec", "--grant", "fs.*=.", "--", "echo mine > mine.txt"]);
    let odd = home.path().join("odd");
    for (grant, line) in [
        ("fs.*=.", "echo theirs > theirs.txt"),
        (
            "fs.*=../shared",
            "echo theirs > theirs2.txt; echo s > ../shared/s",
        ),
    ] {
        let words = ["exec", "--grant", "fs.*=.", "--grant", grant, "--", line];
        assert_eq!(home.run_in(&odd, &words).code, Some(0), "{line}");
    }
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("undo\r");
    pty.sees("took back commit 1");
    pty.prompt();
    assert!(odd.join("theirs.txt").exists() && odd.join("theirs2.txt").exists());
    assert!(!home.project().join("mine.txt").exists());
    // What was done to the very file that is granted is what one can be about here.
    let grants = [
        "--grant",
        "fs.read=../note.txt",
        "--grant",
        "fs.modify=../note.txt",
    ];
    let write = r#"{"path": "../note.txt", "content": "other\n"}"#;
    let words = [&["call"][..], &grants[..], &["write_file", write]].concat();
    assert_eq!(home.run_in(&odd, &words).code, Some(0));
    let note = home.path().join("note.txt");
    assert_eq!(fs::read_to_string(&note).unwrap(), "other\n");
    pty.keys("undo\r");
    pty.sees("took back commit 5");
    let dir = home.path().canonicalize().unwrap();
    pty.sees(&format!("(1 change in {})", dir.display()));
    assert_eq!(fs::read_to_string(&note).unwrap(), "note\n");
    pty.prompt();
}
