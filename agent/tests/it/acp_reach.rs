//! How far a yes goes, and what is asked about whatever was said before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::editor::Editor;

fn write(path: &str, content: &str) -> Value {
    json!([["write_file", {"path": path, "content": content}]])
}

/// The agent's own program, beside what the editor runs.
fn program(home: &Path, dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(dir)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_yes_for_always_is_recorded_has_an_end_and_holds_for_its_path() {
    let (mut editor, session) = Editor::ready();
    let always = json!("allow-always");
    editor.prompt(&session, &json!([write("a.txt", "1\n")]), &[always]);
    let other = editor.open();
    editor.prompt(&other, &json!([write("a.txt", "2\n")]), &[]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("2\n"));
    let no = [json!("reject-once")];
    editor.prompt(&other, &json!([write("b.txt", "2\n")]), &no);
    assert!(editor.text("b.txt").is_none());
    let (home, workspace) = (editor.dir.path().to_owned(), editor.workspace());
    let kept = program(&home, &workspace, &["caps"]);
    assert!(
        kept.contains("fs.modify")
            && kept.contains("proj/a.txt")
            && kept.contains("counts for another"),
        "{kept}"
    );
    // Each of the two ledgers says where it came from.
    let records = |session: &str| {
        let ledger = format!(".local/state/hermitcrab/acp/{session}/ledger.jsonl");
        fs::read_to_string(home.join(ledger)).unwrap()
    };
    let (first, second) = (records(&session), records(&other));
    assert!(
        first.contains("always") && second.contains("standing0"),
        "{second}"
    );
    // Who ends it is asked again.
    program(&home, &workspace, &["caps", "revoke", "standing0"]);
    editor.prompt(&other, &json!([write("a.txt", "3\n")]), &no);
    assert_eq!(editor.text("a.txt").as_deref(), Some("2\n"));
}

#[test]
fn sensitive_names_are_asked_about_each_time_in_every_mode() {
    let (mut editor, session) = Editor::ready();
    let names = [".env", ".git/config", ".ssh/config", "id_ed25519", "id_rsa"];
    for name in names {
        editor.put(name, "old\n");
    }
    for mode in ["ask", "workspace", "session"] {
        let set = json!({"sessionId": session, "modeId": mode});
        assert_eq!(editor.call("session/set_mode", set), json!({}));
        for name in names {
            let before = editor.questions().len();
            editor.prompt(
                &session,
                &json!([write(name, "new\n")]),
                &[json!("reject-once")],
            );
            let asked = editor.questions();
            assert_eq!(asked.len(), before + 1, "{mode}: {name}");
            let options = asked[before]["options"].to_string();
            assert!(
                options.contains("allow-once") && !options.contains("allow-session"),
                "{mode}: {name}: {options}"
            );
            // No option that was not offered is a yes.
            editor.prompt(
                &session,
                &json!([write(name, "new\n")]),
                &[json!("allow-session")],
            );
            assert_eq!(
                editor.text(name).as_deref(),
                Some("old\n"),
                "{mode}: {name}"
            );
        }
        let before = editor.questions().len();
        let command = json!([[["terminal", {"command": "echo new > .env"}]]]);
        editor.prompt(&session, &command, &[json!("reject-once")]);
        assert_eq!(editor.questions().len(), before + 1, "{mode}");
        assert_eq!(editor.text(".env").as_deref(), Some("old\n"));
    }
}

#[test]
fn a_file_that_moves_is_shown_at_both_places() {
    let (mut editor, session) = Editor::ready();
    editor.put("sub/k.txt", "k\n");
    let patch = "*** Begin Patch\n*** Move File: a.txt -> sub/b.txt\n*** End Patch";
    let call = json!([[["patch", {"mode": "patch", "patch": patch}]]]);
    editor.prompt(&session, &call, &[json!("reject-once")]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    assert!(editor.text("sub/b.txt").is_none());
    editor.prompt(&session, &call, &[json!("allow-once")]);
    assert!(editor.text("a.txt").is_none());
    assert_eq!(editor.text("sub/b.txt").as_deref(), Some("alpha\n"));
    let content = editor.questions()[1]["toolCall"]["content"].clone();
    let workspace = editor.workspace();
    let (old, new) = (workspace.join("a.txt"), workspace.join("sub/b.txt"));
    assert_eq!(
        (
            &content[0]["path"],
            &content[0]["oldText"],
            &content[0]["newText"]
        ),
        (&json!(old), &json!("alpha\n"), &json!(""))
    );
    assert_eq!(
        (&content[1]["path"], &content[1]["newText"]),
        (&json!(new), &json!("alpha\n"))
    );
}

#[test]
fn a_directory_its_user_added_is_asked_about_and_no_other_one_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for name in ["extra", "other", ".hermes/skills"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    fs::write(home.join("extra/o.txt"), "old\n").unwrap();
    for added in ["extra", ".hermes/skills"] {
        let added = home.join(added);
        program(
            &home,
            &home,
            &["config", "add-directory", added.to_str().unwrap()],
        );
    }
    let mut editor = Editor::start_with(&[], dir);
    editor.initialize(false);
    let session = editor.open();
    // Where edits of the workspace are accepted.
    let set = json!({"sessionId": session, "modeId": "workspace"});
    editor.call("session/set_mode", set);
    let at = |name: &str| home.join(name).to_str().unwrap().to_owned();
    let outside = json!([write(&at("extra/o.txt"), "new\n")]);
    editor.prompt(&session, &outside, &[json!("reject-once")]);
    let shown = &editor.questions()[0]["toolCall"]["content"][0];
    assert_eq!(
        (&shown["path"], &shown["oldText"], &shown["newText"]),
        (&json!(at("extra/o.txt")), &json!("old\n"), &json!("new\n"))
    );
    assert_eq!(fs::read_to_string(at("extra/o.txt")).unwrap(), "old\n");
    editor.prompt(&session, &outside, &[json!("allow-once")]);
    assert_eq!(fs::read_to_string(at("extra/o.txt")).unwrap(), "new\n");
    let text = "---\nname: a-skill\ndescription: d\n---\nBody\n";
    let skill =
        json!([[["skill_manage", {"action": "create", "name": "a-skill", "content": text}]]]);
    let file = at(".hermes/skills/a-skill/SKILL.md");
    editor.prompt(&session, &skill, &[json!("reject-once")]);
    assert!(!Path::new(&file).exists());
    editor.prompt(&session, &skill, &[json!("allow-once")]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let asked = editor.questions();
    assert_eq!(asked.len(), 4);
    let shown = &asked[3]["toolCall"]["content"][0];
    assert_eq!(
        (&shown["path"], &shown["newText"]),
        (&json!(file), &json!(text))
    );
    // What nobody opened has no name here; nor has what the agent keeps.
    for name in ["other/n.txt", ".local/state/hermitcrab/n.txt", "n.txt"] {
        editor.prompt(&session, &json!([write(&at(name), "x\n")]), &[]);
        assert!(!home.join(name).exists(), "{name}");
        let said = editor.ended()["rawOutput"]["error"].to_string();
        assert!(said.contains("no-cap"), "{name}: {said}");
    }
}

#[test]
fn what_was_attached_counts_as_read_when_a_conversation_is_taken_up_again() {
    let (mut editor, session) = Editor::ready();
    let id = editor.request(
        "session/prompt",
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": "look"},
            {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "words"}}
        ]}),
    );
    assert_eq!(editor.result(id, &[])["stopReason"], "end_turn");
    let ledger = format!(".local/state/hermitcrab/acp/{session}/ledger.jsonl");
    let heard = |editor: &Editor| {
        let text = std::fs::read_to_string(editor.dir.path().join(&ledger)).unwrap();
        text.matches("heard by agent0: file").count()
    };
    editor.call("session/close", json!({"sessionId": session}));
    assert_eq!(heard(&editor), 1);
    let load = json!({"sessionId": session, "cwd": editor.workspace(), "mcpServers": []});
    assert!(editor.call("session/load", load)["modes"].is_object());
    assert_eq!(heard(&editor), 2);
}

#[test]
fn a_search_in_what_is_only_open_is_one_question_that_says_how_far_each_answer_goes() {
    let (mut editor, _) = Editor::ready();
    let (home, workspace) = (
        editor.dir.path().canonicalize().unwrap(),
        editor.workspace(),
    );
    let extra = home.join("extra");
    fs::create_dir_all(extra.join("deep")).unwrap();
    for name in ["a.txt", "deep/b.txt"] {
        fs::write(extra.join(name), "alpha\n").unwrap();
    }
    // It is open, and may not be looked at.
    let opened = format!("fs.delete={}", extra.display());
    program(&home, &workspace, &["caps", "grant", &opened]);
    let session = editor.open();
    let search = json!([[["search_files", {"pattern": "alpha", "path": extra}]]]);
    for (answer, asked) in [("allow-once", 1), ("allow-session", 2), ("reject-once", 2)] {
        editor.prompt(&session, &search, &[json!(answer)]);
        assert_eq!(editor.questions().len(), asked, "{answer}");
        let found = editor.ended().to_string();
        assert!(found.contains("deep/b.txt"), "{answer}: {found}");
    }
    let question = editor.questions()[0].to_string();
    for said in [
        format!(
            "fs.list all of {0}\\nfs.read all of {0}\\n",
            extra.display()
        ),
        "with `once`, for this one call of the tool".to_owned(),
        "Allow for this session, on this path and all that lies in it".to_owned(),
    ] {
        assert!(question.contains(&said), "{said}: {question}");
    }
}
