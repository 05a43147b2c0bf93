//! An editor's session from its first word to its last.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

fn write(path: &str, content: &str) -> Value {
    json!([["write_file", {"path": path, "content": content}]])
}

#[test]
fn what_the_agent_can_do_is_said_and_no_more() {
    let mut editor = Editor::start();
    let said = editor.initialize(false);
    assert_eq!(said["protocolVersion"], 1);
    let can = &said["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert_eq!(can["promptCapabilities"]["embeddedContext"], true);
    assert_ne!(can["promptCapabilities"]["image"], true);
    assert_ne!(can["mcpCapabilities"]["http"], true);
    let cwd = editor.workspace();
    let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    assert_eq!(opened["modes"]["currentModeId"], "ask");
    let modes = opened["modes"]["availableModes"].as_array().unwrap();
    assert_eq!(modes.len(), 3);
    assert_eq!(opened["configOptions"][1]["id"], "isolation");
    assert_eq!(editor.leave(), Some(0));
}

#[test]
fn an_edit_is_shown_whole_and_lands_only_with_a_yes() {
    let (mut editor, session) = Editor::ready();
    let script = json!([write("a.txt", "beta\n"), write("sub/new.txt", "n\n"), "bye"]);
    let turn = editor.prompt(
        &session,
        &script,
        &[json!("reject-once"), json!("allow-once")],
    );
    assert_eq!(turn["stopReason"], "end_turn");
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    assert_eq!(editor.text("sub/new.txt").as_deref(), Some("n\n"));
    let asked = editor.questions();
    let path = editor.workspace().join("a.txt");
    assert_eq!(
        asked[0]["toolCall"]["content"],
        json!([{"type": "diff", "path": path, "oldText": "alpha\n", "newText": "beta\n"}])
    );
    assert_eq!(asked[0]["toolCall"]["kind"], "edit");
    let file = &asked[0]["toolCall"]["_meta"]["hermitcrab"]["files"][0];
    assert_eq!(file["base"].as_str().unwrap().len(), 64);
    assert_ne!(file["base"], file["new"]);
    // A new file has no old text.
    let created = &asked[1]["toolCall"]["content"][0];
    assert!(
        created.get("oldText").is_none_or(Value::is_null),
        "{created}"
    );
    // One id for the call, its question and its end.
    let calls = editor.updates("tool_call");
    assert_eq!(calls[0]["toolCallId"], asked[0]["toolCall"]["toolCallId"]);
    let ends = editor.updates("tool_call_update");
    assert_eq!(ends[0]["toolCallId"], calls[0]["toolCallId"]);
    assert_eq!(ends[0]["status"], "failed");
    assert_eq!(
        ends[0]["rawOutput"],
        json!({"success": false, "error": "Edit rejected by user"})
    );
    assert_eq!(ends[1]["status"], "completed");
    assert!(editor.said().contains("bye"));
}

#[test]
fn anything_but_an_offered_yes_leaves_the_file_as_it_is() {
    let mut editor = Editor::start_with(&["--ask-timeout", "1"], tempfile::tempdir().unwrap());
    editor.initialize(false);
    let session = editor.open();
    let script = json!([write("a.txt", "beta\n")]);
    for outcome in [
        json!("reject-once"),
        json!("allow"),
        json!(""),
        json!({"outcome": "cancelled"}),
        json!({"outcome": "granted"}),
        json!({"outcome": "selected"}),
        json!(null),
    ] {
        let turn = editor.prompt(&session, &script, std::slice::from_ref(&outcome));
        assert_eq!(turn["stopReason"], "end_turn", "{outcome}");
        assert_eq!(
            editor.text("a.txt").as_deref(),
            Some("alpha\n"),
            "{outcome}"
        );
    }
    // An error, and silence.
    let id = editor.begin(&session, &script);
    let asked = editor.question();
    editor.send(
        &json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}),
    );
    assert_eq!(editor.result(id, &[])["stopReason"], "end_turn");
    let id = editor.begin(&session, &script);
    let asked = editor.question();
    assert_eq!(editor.result(id, &[])["stopReason"], "end_turn");
    assert_eq!(
        editor.ended()["rawOutput"]["error"],
        "Edit rejected by user"
    );
    // Who was away reads that they were, not that they said no.
    assert_eq!(
        editor.ended()["content"][0]["content"]["text"],
        "nobody answered in time, so it was not done"
    );
    assert!(
        editor
            .seen
            .iter()
            .any(|m| m["method"] == "$/cancel_request")
    );
    // A late yes is a yes to nothing.
    editor.answer(&asked, &json!("allow-once"));
    editor.prompt(&session, &json!(["still here"]), &[]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
}

#[test]
fn a_patch_of_several_files_is_one_question_with_a_diff_for_each() {
    let (mut editor, session) = Editor::ready();
    editor.put("gone.txt", "g\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-alpha\n+beta\n*** Add File: n.txt\n+new\n*** Delete File: gone.txt\n*** End Patch";
    let call = json!([["patch", {"mode": "patch", "patch": patch}]]);
    editor.prompt(&session, &json!([call]), &[json!("reject-once")]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    assert!(editor.text("n.txt").is_none() && editor.text("gone.txt").is_some());
    let content = editor.questions()[0]["toolCall"]["content"].clone();
    let (said, diffs) = content.as_array().unwrap().split_last().unwrap();
    assert_eq!(diffs.len(), 3, "{content}");
    assert!(diffs.iter().all(|diff| diff["type"] == "diff"));
    // A difference would show it emptied.
    let gone = editor.workspace().join("gone.txt");
    let gone = format!("```\ndeleted file {}\n```", gone.display());
    assert_eq!(said["content"]["text"], gone);
    editor.prompt(&session, &json!([call]), &[json!("allow-once")]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("beta\n"));
    assert_eq!(editor.text("n.txt").as_deref(), Some("new"));
    assert!(editor.text("gone.txt").is_none());
}

#[test]
fn a_text_that_is_not_there_fails_before_anybody_is_asked() {
    let (mut editor, session) = Editor::ready();
    let call = json!([["patch", {"path": "a.txt", "old_string": "zeta", "new_string": "x"}]]);
    editor.prompt(&session, &json!([call]), &[]);
    assert!(editor.questions().is_empty());
    assert_eq!(editor.ended()["status"], "failed");
}

#[test]
fn a_commands_changes_are_asked_about_after_it_ran_and_before_they_are_real() {
    let (mut editor, session) = Editor::ready();
    let call = json!([["terminal", {"command": "echo beta > a.txt; mkdir d; echo said"}]]);
    let id = editor.begin(&session, &json!([call, "bye"]));
    let asked = editor.question();
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    let content = asked["params"]["toolCall"]["content"].clone();
    assert_eq!(content[0]["newText"], "beta\n");
    assert!(content.to_string().contains("new directory"), "{content}");
    editor.answer(&asked, &json!("allow-once"));
    editor.result(id, &[]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("beta\n"));
    assert!(editor.workspace().join("d").is_dir());
    let shown = editor.updates("tool_call_update");
    assert!(
        shown
            .iter()
            .any(|update| update["content"].to_string().contains("said"))
    );
}

#[test]
fn what_a_command_prints_is_shown_while_it_runs() {
    let (mut editor, session) = Editor::ready();
    let line = "echo fir''st; touch a.txt; sleep 600";
    let call = json!([["terminal", {"command": line, "timeout": 600}]]);
    let id = editor.begin(&session, &json!([call]));
    // It ends by this cancel only, so what is told here was told before its end.
    let shown = editor.until(&[], |m| {
        let update = &m["params"]["update"];
        update["sessionUpdate"] == "tool_call_update"
            && update["content"].to_string().contains("first")
    });
    assert_eq!(
        shown["params"]["update"]["status"], "in_progress",
        "{shown}"
    );
    editor.notify("session/cancel", json!({"sessionId": session}));
    let turn = editor.result(id, &[]);
    assert_eq!(turn["stopReason"], "cancelled", "{turn}");
}

#[test]
fn a_yes_for_the_session_is_for_these_paths_and_this_session() {
    let (mut editor, session) = Editor::ready();
    editor.put("b.txt", "b\n");
    editor.prompt(
        &session,
        &json!([write("a.txt", "1\n")]),
        &[json!("allow-session")],
    );
    editor.prompt(&session, &json!([write("a.txt", "2\n")]), &[]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("2\n"));
    editor.prompt(
        &session,
        &json!([write("b.txt", "2\n")]),
        &[json!("reject-once")],
    );
    let other = editor.open();
    editor.prompt(
        &other,
        &json!([write("a.txt", "3\n")]),
        &[json!("reject-once")],
    );
    assert_eq!(editor.text("a.txt").as_deref(), Some("2\n"));
    // It can be seen, and ended.
    editor.prompt(&session, &json!("/caps"), &[]);
    let said = editor.said();
    let line = said.lines().find(|line| line.contains("a.txt")).unwrap();
    let name = line.split('`').nth(1).unwrap();
    // As everywhere else, and nothing is named twice.
    assert!(
        name.strip_prefix("grant")
            .is_some_and(|number| number.parse::<u32>().is_ok()),
        "{said}"
    );
    assert_eq!(said.matches("model.send on ").count(), 1, "{said}");
    editor.prompt(&session, &json!("/revoke 99"), &[]);
    let said = editor.said();
    assert!(
        said.contains("`99` ends nothing") && said.contains("`/caps`"),
        "{said}"
    );
    editor.prompt(&session, &json!(format!("/revoke {name}")), &[]);
    editor.prompt(
        &session,
        &json!([write("a.txt", "4\n")]),
        &[json!("reject-once")],
    );
    assert_eq!(editor.text("a.txt").as_deref(), Some("2\n"));
    // What a model calls it is taken, too.
    editor.prompt(&session, &json!("/revoke cap:0"), &[]);
    let said = editor.said();
    assert!(said.contains("`cap:0` has ended"), "{said}");
}

#[test]
fn modes_ask_less_but_never_less_than_for_sensitive_names() {
    let (mut editor, session) = Editor::ready();
    editor.put(".env", "SECRET=1\n");
    let set = |mode: &str| json!({"sessionId": session, "modeId": mode});
    assert_eq!(editor.call("session/set_mode", set("workspace")), json!({}));
    let script = json!([
        [["read_file", {"path": "a.txt"}]],
        write("a.txt", "free\n"),
        [["write_file", {"path": ".env", "content": "SECRET=2\n"}]],
    ]);
    editor.prompt(&session, &script, &[json!("reject-once")]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("free\n"));
    assert_eq!(editor.text(".env").as_deref(), Some("SECRET=1\n"));
    let outside = editor.dir.path().join("outside.txt");
    editor.prompt(
        &session,
        &json!([write(outside.to_str().unwrap(), "x")]),
        &[json!("reject-once")],
    );
    assert!(!outside.exists());
    editor.call("session/set_mode", set("ask"));
    editor.prompt(
        &session,
        &json!([write("a.txt", "asked\n")]),
        &[json!("reject-once")],
    );
    assert_eq!(editor.text("a.txt").as_deref(), Some("free\n"));
    let changed = editor.call(
        "session/set_config_option",
        json!({"sessionId": session, "configId": "approval", "value": "session"}),
    );
    assert_eq!(changed["configOptions"][0]["currentValue"], "session");
    for (method, params) in [
        ("session/set_mode", set("dont_ask")),
        (
            "session/set_mode",
            json!({"sessionId": "nobody", "modeId": "ask"}),
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "x", "value": "y"}),
        ),
    ] {
        assert_eq!(editor.call(method, params)["code"], -32602);
    }
}

#[test]
fn sensitive_names_are_asked_about_in_every_mode() {
    for mode in ["ask", "workspace", "session"] {
        let (mut editor, session) = Editor::ready();
        let option = json!({"sessionId": session, "configId": "approval", "value": mode});
        editor.call("session/set_config_option", option);
        let names = [
            ".env",
            "server.key",
            "tls.pem",
            ".git/config",
            ".ssh/config",
        ];
        for name in names {
            let before = editor.questions().len();
            for call in [
                json!(["write_file", {"path": name, "content": "x\n"}]),
                json!(["terminal", {"command": format!("mkdir -p .git .ssh; echo x > {name}")}]),
            ] {
                // What comes about elsewhere with it is not what is asked about here.
                editor.prompt(&session, &json!([[call]]), &[json!("reject-once")]);
            }
            assert_eq!(editor.questions().len(), before + 2, "{mode} {name}");
            assert_eq!(editor.text(name), None, "{mode} {name}");
        }
        // A public certificate is an ordinary file, and asked about only where all are.
        let before = editor.questions().len();
        let call = json!(["write_file", {"path": "cacert.pem", "content": "x\n"}]);
        editor.prompt(&session, &json!([[call]]), &[json!("allow-once")]);
        let asked = editor.questions().len() - before;
        assert_eq!(asked, usize::from(mode == "ask"), "{mode}");
    }
}

#[test]
fn a_cancel_ends_the_turn_wherever_it_is() {
    let (mut editor, session) = Editor::ready();
    let cancel = json!({"sessionId": session});
    // While the model is asked.
    let id = editor.begin(&session, &json!([{"wait": true}]));
    editor.notify("session/cancel", cancel.clone());
    assert_eq!(editor.result(id, &[])["stopReason"], "cancelled");
    // While the user is asked; nothing of the rest is run.
    let calls = json!([["write_file", {"path": "a.txt", "content": "x"}], ["terminal", {"command": "echo later"}]]);
    let id = editor.begin(&session, &json!([calls]));
    let asked = editor.question();
    editor.notify("session/cancel", cancel.clone());
    editor.answer(&asked, &json!({"outcome": "cancelled"}));
    assert_eq!(editor.result(id, &[])["stopReason"], "cancelled");
    assert_eq!(editor.updates("tool_call").len(), 1);
    // While a command runs; what it did is thrown away.
    let call = json!([["terminal", {"command": "echo began; echo x > a.txt; sleep 600"}]]);
    let id = editor.begin(&session, &json!([call]));
    editor.until(&[], |m| m.to_string().contains("\"text\":\"began"));
    editor.notify("session/cancel", cancel);
    assert_eq!(editor.result(id, &[])["stopReason"], "cancelled");
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    assert_eq!(
        editor.prompt(&session, &json!(["on"]), &[])["stopReason"],
        "end_turn"
    );
}

#[test]
fn reject_and_stop_ends_the_turn_and_leaves_the_session() {
    let (mut editor, session) = Editor::ready();
    let calls = json!([["write_file", {"path": "a.txt", "content": "x"}], ["write_file", {"path": "b.txt", "content": "x"}]]);
    let turn = editor.prompt(
        &session,
        &json!([calls, "never said"]),
        &[json!("reject-stop")],
    );
    assert_eq!(turn["stopReason"], "end_turn");
    assert!(!editor.said().contains("never said"));
    editor.prompt(&session, &json!(["said"]), &[]);
    assert!(editor.said().contains("said"));
}

#[test]
fn a_dry_run_shows_every_change_and_makes_none() {
    let (mut editor, session) = Editor::ready();
    editor.prompt(
        &session,
        &json!([write("a.txt", "1\n")]),
        &[json!("allow-session")],
    );
    let script = json!([write("a.txt", "2\n"), [["terminal", {"command": "rm a.txt"}]], "would"]);
    editor.prompt(&session, &json!(format!("/dry-run {script}")), &[]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("1\n"));
    let shown = Value::from(editor.updates("tool_call_update")).to_string();
    assert!(shown.contains("\"newText\":\"2\\n\""), "{shown}");
    assert!(shown.contains("\"deleted\":true"), "{shown}");
    // What was held before is held again, but the dry run read a command's words.
    let asked = editor.questions().len();
    editor.prompt(
        &session,
        &json!([write("a.txt", "3\n")]),
        &[json!("allow-once")],
    );
    assert_eq!(editor.questions().len(), asked + 1);
    assert_eq!(editor.text("a.txt").as_deref(), Some("3\n"));
}

#[test]
fn the_list_is_shown_as_a_plan_and_the_ledger_on_request() {
    let (mut editor, session) = Editor::ready();
    let list =
        json!([["todo", {"todos": [{"id": "1", "content": "first", "status": "in_progress"}]}]]);
    editor.prompt(&session, &json!([list]), &[]);
    assert_eq!(editor.updates("plan")[0]["entries"][0]["content"], "first");
    editor.prompt(&session, &json!("/plan"), &[]);
    editor.prompt(&session, &json!("/audit 500"), &[]);
    let said = editor.said();
    assert!(
        said.contains("[>] first") && said.contains("opened"),
        "{said}"
    );
    let offered = editor.updates("available_commands_update")[0].to_string();
    assert!(offered.contains("dry-run"), "{offered}");
}

#[test]
fn an_editors_unsaved_text_is_what_is_read_and_is_not_written_over() {
    let mut editor = Editor::start();
    editor.initialize(true);
    let session = editor.open();
    let script = json!([[["read_file", {"path": "a.txt"}]], write("a.txt", "x\n")]);
    let id = editor.begin(&session, &script);
    for _ in 0..2 {
        let read = editor.until(&[], |m| m["method"] == "fs/read_text_file");
        assert_eq!(
            read["params"]["path"],
            json!(editor.workspace().join("a.txt"))
        );
        editor.send(&json!({"jsonrpc": "2.0", "id": read["id"], "result": {"content": "typed\n"}}));
    }
    // It is tried again, and is still unsaved.
    let turn = loop {
        let message = editor.next();
        if message["method"] == "fs/read_text_file" {
            editor.send(
                &json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "typed\n"}}),
            );
        } else if message["id"] == id {
            break message;
        }
    };
    assert_eq!(turn["result"]["stopReason"], "end_turn");
    let shown = Value::from(editor.updates("tool_call_update")).to_string();
    assert!(shown.contains("1|typed"), "{shown}");
    let said = editor.ended().to_string();
    assert!(said.contains("changes that are not saved"), "{said}");
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
}

#[test]
fn a_session_is_listed_and_gone_on_with_but_its_grants_are_not() {
    let (mut editor, session) = Editor::ready();
    editor.prompt(
        &session,
        &json!([write("a.txt", "1\n"), "remembered"]),
        &[json!("allow-session")],
    );
    assert_eq!(
        editor.call("session/close", json!({"sessionId": session})),
        json!({})
    );
    assert_eq!(
        editor.call(
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        )["code"],
        -32602
    );
    let (code, dir) = editor.hang_up();
    assert_eq!(code, Some(0));
    let mut editor = Editor::start_with(&[], dir);
    editor.initialize(false);
    let cwd = editor.workspace();
    let listed = editor.call("session/list", json!({"cwd": cwd}));
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let loaded = editor.call("session/load", load.clone());
    assert_eq!(loaded["modes"]["currentModeId"], "ask");
    assert!(editor.said().contains("remembered"));
    assert_eq!(editor.updates("tool_call")[0]["rawInput"]["path"], "a.txt");
    editor.prompt(
        &session,
        &json!([write("a.txt", "2\n")]),
        &[json!("reject-once")],
    );
    assert_eq!(editor.text("a.txt").as_deref(), Some("1\n"));
    assert_eq!(
        editor.call("session/load", load)["code"],
        -32600,
        "open already"
    );
    for (id, cwd, code) in [
        ("0".repeat(32), cwd.clone(), -32002),
        ("../../etc".to_owned(), cwd.clone(), -32002),
        (session.clone(), std::path::PathBuf::from("/"), -32602),
    ] {
        let load = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        assert_eq!(editor.call("session/load", load)["code"], code);
    }
    editor.call("session/close", json!({"sessionId": session}));
    let before = editor.seen.len();
    let resume = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    assert!(editor.call("session/resume", resume)["modes"].is_object());
    let replayed = editor.seen[before..]
        .iter()
        .any(|m| m.to_string().contains("remembered"));
    assert!(!replayed, "a resumed session is not shown again");
}

#[test]
fn a_closed_session_is_deleted_and_an_offered_server_is_not_started() {
    let mut editor = Editor::start();
    editor.initialize(false);
    let cwd = editor.workspace();
    let mark = editor.dir.path().join("started");
    let opened = editor.call(
        "session/new",
        json!({"cwd": cwd, "mcpServers": [
            {"name": "theirs", "command": "/bin/touch", "args": [mark], "env": []}]}),
    );
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, &json!(["kept"]), &[]);
    assert!(editor.said().contains("theirs"), "{}", editor.said());
    assert!(!mark.exists());
    let of = json!({"sessionId": session});
    assert_eq!(editor.call("session/delete", of.clone())["code"], -32600);
    editor.call("session/close", of.clone());
    let listed = |editor: &mut Editor| {
        let list = editor.call("session/list", json!({}));
        list["sessions"].as_array().unwrap().len()
    };
    assert_eq!(listed(&mut editor), 1);
    assert_eq!(editor.call("session/delete", of.clone()), json!({}));
    assert_eq!(listed(&mut editor), 0);
    // Twice is as good as once, and what is no id is nowhere.
    assert_eq!(editor.call("session/delete", of), json!({}));
    let odd = json!({"sessionId": "../../proj"});
    assert_eq!(editor.call("session/delete", odd), json!({}));
    assert_eq!(editor.text("a.txt").as_deref(), Some("alpha\n"));
    // The ledger is still there.
    let ledger = editor.dir.path().join(format!(
        ".local/state/hermitcrab/acp/{session}/ledger.jsonl"
    ));
    assert!(ledger.exists());
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    assert_eq!(editor.call("session/load", load)["code"], -32002);
}
