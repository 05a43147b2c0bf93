//! What is approved is what lands: whatever happens to the place while the
//! question is open.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::support::editor::Editor;

fn write(path: &str, content: &str) -> Value {
    json!([["write_file", {"path": path, "content": content}]])
}

#[test]
fn a_save_while_the_question_is_open_is_shown_and_asked_about_anew() {
    let (mut editor, session) = Editor::ready();
    let id = editor.begin(&session, &json!([write("a.txt", "agent\n")]));
    let asked = editor.question();
    // As editors save: beside, then over it.
    editor.put("a.txt.tmp", "user\n");
    let workspace = editor.workspace();
    fs::rename(workspace.join("a.txt.tmp"), workspace.join("a.txt")).unwrap();
    editor.answer(&asked, &json!("allow-once"));
    let again = editor.question();
    assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"));
    let diff = &again["params"]["toolCall"]["content"][0];
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("user\n"), &json!("agent\n"))
    );
    assert_eq!(
        asked["params"]["toolCall"]["toolCallId"],
        again["params"]["toolCall"]["toolCallId"]
    );
    editor.answer(&again, &json!("reject-once"));
    editor.result(id, &[]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"));
    // Nobody took the first yes back: it was for one time, and that was it.
    editor.call("session/close", json!({"sessionId": session}));
    let own = format!(".local/state/hermitcrab/acp/{session}/ledger.jsonl");
    let ledger = fs::read_to_string(editor.dir.path().join(own)).unwrap();
    let reasons: Vec<&str> = ledger
        .lines()
        .filter_map(|line| line.split("because ").nth(1)?.split(" shown").next())
        .collect();
    assert_eq!(reasons[..2], ["no-cap", "exhausted"], "{ledger}");
}

#[test]
fn a_lasting_yes_to_what_changed_meanwhile_is_a_yes_to_nothing() {
    for lasting in ["allow-session", "allow-always"] {
        let (mut editor, session) = Editor::ready();
        let id = editor.begin(&session, &json!([write("a.txt", "agent\n")]));
        let asked = editor.question();
        editor.put("a.txt", "user\n");
        editor.answer(&asked, &json!(lasting));
        let again = editor.question();
        let diff = &again["params"]["toolCall"]["content"][0];
        assert_eq!(diff["oldText"], "user\n", "{lasting}");
        editor.answer(&again, &json!("reject-once"));
        editor.result(id, &[]);
        assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"));
        // Nothing of it is left, in this session or in the next.
        for session in [session, editor.open()] {
            let no = [json!("reject-once")];
            editor.prompt(&session, &json!([write("a.txt", "more\n")]), &no);
            assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"), "{lasting}");
        }
    }
}

#[test]
fn a_command_that_was_overtaken_runs_again_if_its_user_wants_it_to() {
    for (wish, left) in [("choice-0", "user\nagent\n"), ("choice-1", "user\n")] {
        let (mut editor, session) = Editor::ready();
        let call = json!([["terminal", {"command": "echo agent >> a.txt"}]]);
        let id = editor.begin(&session, &json!([call]));
        let asked = editor.question();
        editor.put("a.txt", "user\n");
        editor.answer(&asked, &json!("allow-once"));
        // Nothing of it stands, and nothing was put over the newer state.
        let overtaken = editor.question();
        assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"));
        let params = &overtaken["params"];
        assert_eq!(params["options"][0]["name"], "Run it again", "{params}");
        editor.answer(&overtaken, &json!(wish));
        if wish == "choice-0" {
            // The wish is no yes: what it does now is shown.
            let anew = editor.question();
            let diff = &anew["params"]["toolCall"]["content"][0];
            assert_eq!(diff["oldText"], "user\n");
            assert_eq!(diff["newText"], "user\nagent\n");
            editor.answer(&anew, &json!("allow-once"));
        }
        editor.result(id, &[]);
        assert_eq!(editor.text("a.txt").as_deref(), Some(left), "{wish}");
    }
}

#[test]
fn a_client_that_goes_away_while_it_is_asked_ends_what_it_allowed_before_too() {
    for _ in 0..8 {
        let (mut editor, session) = Editor::ready();
        let lasting = [json!("allow-session")];
        editor.prompt(&session, &json!([write("b.txt", "1\n")]), &lasting);
        // The second of these it would not be asked about.
        let calls = json!([[
            ["write_file", {"path": "a.txt", "content": "agent\n"}],
            ["write_file", {"path": "b.txt", "content": "2\n"}],
        ]]);
        editor.begin(&session, &calls);
        editor.question();
        let (_, dir) = editor.hang_up();
        let text =
            |name: &str| std::fs::read_to_string(dir.path().join("proj").join(name)).unwrap();
        assert_eq!(
            (text("a.txt").as_str(), text("b.txt").as_str()),
            ("alpha\n", "1\n")
        );
    }
}

#[test]
fn a_file_that_appears_where_a_new_one_was_approved_is_not_written_over() {
    let (mut editor, session) = Editor::ready();
    let id = editor.begin(&session, &json!([write("n.txt", "agent\n")]));
    let asked = editor.question();
    editor.put("n.txt", "user\n");
    editor.answer(&asked, &json!("allow-once"));
    let again = editor.question();
    assert_eq!(
        again["params"]["toolCall"]["content"][0]["oldText"],
        "user\n"
    );
    editor.answer(&again, &json!("reject-once"));
    editor.result(id, &[]);
    assert_eq!(editor.text("n.txt").as_deref(), Some("user\n"));
}

#[test]
fn a_file_that_is_saved_while_its_move_or_removal_is_asked_about_stays() {
    for (operation, target) in [
        ("*** Move File: a.txt -> b.txt", Some("b.txt")),
        ("*** Delete File: a.txt", None),
    ] {
        let (mut editor, session) = Editor::ready();
        let patch = format!("*** Begin Patch\n{operation}\n*** End Patch");
        let call = json!([[["patch", {"mode": "patch", "patch": patch}]]]);
        let id = editor.begin(&session, &call);
        let asked = editor.question();
        editor.put("a.txt", "user\n");
        editor.answer(&asked, &json!("allow-once"));
        let again = editor.question();
        let diffs = again["params"]["toolCall"]["content"].to_string();
        assert!(diffs.contains("\"oldText\":\"user\\n\""), "{diffs}");
        editor.answer(&again, &json!("reject-once"));
        editor.result(id, &[]);
        assert_eq!(
            editor.text("a.txt").as_deref(),
            Some("user\n"),
            "{operation}"
        );
        assert!(target.is_none_or(|name| editor.text(name).is_none()));
        // And with another yes it goes as it was shown.
        editor.prompt(&session, &call, &[json!("allow-once")]);
        assert!(editor.text("a.txt").is_none());
        if let Some(name) = target {
            assert_eq!(editor.text(name).as_deref(), Some("user\n"));
        }
    }
}

#[test]
fn a_link_put_in_place_while_the_question_is_open_leads_nowhere() {
    for what in ["file", "directory", "in place of the file's directory"] {
        let (mut editor, session) = Editor::ready();
        let outside = editor.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("f.txt"), "inside\n").unwrap();
        editor.put("d/f.txt", "inside\n");
        let id = editor.begin(&session, &json!([write("d/f.txt", "agent\n")]));
        let asked = editor.question();
        let (dir, file) = (
            editor.workspace().join("d"),
            editor.workspace().join("d/f.txt"),
        );
        match what {
            "file" => {
                fs::remove_file(&file).unwrap();
                symlink(outside.join("f.txt"), &file).unwrap();
            }
            "directory" => {
                fs::rename(&dir, editor.workspace().join("e")).unwrap();
                symlink(&outside, &dir).unwrap();
            }
            _ => {
                fs::rename(&dir, editor.workspace().join("e")).unwrap();
                fs::create_dir(&dir).unwrap();
                fs::write(&file, "other\n").unwrap();
            }
        }
        editor.answer(&asked, &json!("allow-once"));
        let denied = vec![json!("reject-once"); 4];
        editor.result(id, &denied);
        let kept = fs::read_to_string(outside.join("f.txt")).unwrap();
        assert_eq!(kept, "inside\n", "{what}");
        if what.starts_with("in place") {
            assert_eq!(fs::read_to_string(&file).unwrap(), "other\n");
            let moved = editor.workspace().join("e/f.txt");
            assert_eq!(fs::read_to_string(moved).unwrap(), "inside\n");
        }
    }
}

#[test]
fn what_a_session_put_into_its_environment_has_no_part_in_a_commit() {
    let (mut editor, session) = Editor::ready();
    let poison = "mkdir -p bin; printf '#!/bin/sh\\necho evil > a.txt\\n' > bin/mv; chmod +x bin/mv; cp bin/mv bin/cat; export PATH=$PWD/bin:$PATH; mv() { echo evil; }; export -f mv; alias mv='echo evil'";
    let script = json!([[["terminal", {"command": poison}]], write("a.txt", "approved\n")]);
    editor.prompt(
        &session,
        &script,
        &[json!("allow-once"), json!("allow-once")],
    );
    assert_eq!(editor.text("a.txt").as_deref(), Some("approved\n"));
    assert_eq!(editor.ended()["status"], "completed");
}

#[test]
fn a_users_saves_are_never_lost_however_they_fall() {
    let (mut editor, session) = Editor::ready();
    let path = editor.workspace().join("a.txt");
    // The user saves versions of their own all the time; each must either still
    // be there, or have been replaced by one the user wrote later, or by an
    // edit that was shown with exactly this version as its old text.
    for round in 0..40 {
        let id = editor.begin(
            &session,
            &json!([write("a.txt", &format!("agent {round}\n"))]),
        );
        let mut shown = String::new();
        let mut saved = String::new();
        let mut asked = 0;
        loop {
            let message = editor.next();
            if message["method"] == "session/request_permission" {
                asked += 1;
                let diff = &message["params"]["toolCall"]["content"][0];
                shown = diff["oldText"].as_str().unwrap_or_default().to_owned();
                if asked <= round % 3 {
                    saved = format!("user {round}.{asked}\n");
                    let beside = path.with_extension("tmp");
                    fs::write(&beside, &saved).unwrap();
                    fs::rename(&beside, &path).unwrap();
                }
                editor.answer(&message, &json!("allow-once"));
            } else if message["id"] == id {
                break;
            }
        }
        let now = fs::read_to_string(&path).unwrap();
        assert_eq!(now, format!("agent {round}\n"));
        if !saved.is_empty() {
            assert_eq!(shown, saved, "the last version was shown before it went");
        }
    }
}
