//! What an editor's user is shown is all that would happen, whatever a command makes
//! its changes look like.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::editor::Editor;

/// What is shown of the changes of this command.
fn shown(editor: &mut Editor, session: &str, command: &str) -> String {
    let call: Value = json!([[["terminal", {"command": command}]], "done"]);
    let before = editor.questions().len();
    editor.prompt(session, &call, &[json!("reject-once")]);
    let questions = editor.questions();
    assert_eq!(questions.len(), before + 1, "{command}");
    let content = &questions[before]["toolCall"]["content"];
    let texts = content.as_array().unwrap().iter();
    texts
        .map(|piece| match piece["type"].as_str() {
            Some("diff") => format!(
                "{}\n{}\n",
                piece["path"].as_str().unwrap(),
                piece["newText"].as_str().unwrap()
            ),
            _ => format!("{}\n", piece["content"]["text"].as_str().unwrap()),
        })
        .collect()
}

#[test]
fn a_file_that_goes_and_one_that_comes_empty_are_told_in_words() {
    let (mut editor, session) = Editor::ready();
    editor.put("gone", "text\n");
    editor.put("void", "");
    // To an editor these are a file that is emptied, and two that are as they were.
    let told = shown(&mut editor, &session, "rm gone void; : > new; : > a.txt");
    for line in ["gone", "void"].map(|name| format!("deleted file {}", place(&editor, name))) {
        assert!(told.contains(&format!("{line}\n")), "{told}");
    }
    let new = format!("new file {}, empty\n", place(&editor, "new"));
    assert!(told.contains(&new), "{told}");
    let emptied = place(&editor, "a.txt");
    assert!(!told.contains(&format!("file {emptied}")), "{told}");
    // The same where it is no command that does it.
    let patch = "*** Begin Patch\n*** Delete File: gone\n*** End Patch";
    let call: Value = json!([[["patch", {"mode": "patch", "patch": patch}]], "done"]);
    editor.prompt(&session, &call, &[json!("reject-once")]);
    let asked = editor.questions().last().unwrap().to_string();
    let gone = format!("deleted file {}", place(&editor, "gone"));
    assert!(asked.contains(&gone), "{asked}");
}

#[test]
fn of_many_files_those_that_are_asked_about_each_time_are_named() {
    let (mut editor, session) = Editor::ready();
    let command = "for i in $(seq 40); do echo x > f$i; done; echo evil > .bashrc";
    let told = shown(&mut editor, &session, command);
    let name = place(&editor, ".bashrc");
    let line = format!("of this, asked about each time: fs.create {name}\n```\n");
    assert!(told.ends_with(&line), "{told}");
}

#[test]
fn a_name_is_told_whole_however_long_it_is() {
    let (mut editor, session) = Editor::ready();
    let long = "x".repeat(200);
    let command = format!("head -c 400 /dev/zero > '{long}  y'");
    let told = shown(&mut editor, &session, &command);
    assert!(told.contains(&format!("{long}  y\": nothing")), "{told}");
}

#[test]
fn what_a_child_has_read_is_told_beside_who_it_is() {
    let (mut editor, session) = Editor::ready();
    // Held by its parent before anything was read.
    let write = json!([[["write_file", {"path": "b.txt", "content": "b\n"}]]]);
    editor.prompt(&session, &write, &[json!("allow-session")]);
    std::fs::remove_file(editor.workspace().join("b.txt")).unwrap();
    editor.prompt(&session, &json!("/caps"), &[]);
    let caps = editor.said();
    let held = caps
        .lines()
        .find(|line| line.contains("fs.create"))
        .unwrap();
    let grant = held.split('`').nth(1).unwrap();
    let read = json!(["read_file", {"path": "a.txt"}]);
    let goal = json!([[read], write[0]]).to_string();
    let work = json!([[["delegate_task", {"goal": goal, "grants": [grant]}]], "done"]);
    editor.prompt(&session, &work, &[json!("reject-once")]);
    let asked = editor.questions().last().unwrap()["toolCall"]["content"].to_string();
    assert!(
        asked.contains("asks, which agent0 has handed work to"),
        "{asked}"
    );
    assert!(
        asked.contains("has read data since (from: file)"),
        "{asked}"
    );
    assert!(asked.contains("(untrusted-flow)"), "{asked}");
}

/// A name in the workspace, as it is told.
fn place(editor: &Editor, name: &str) -> String {
    editor.workspace().join(name).display().to_string()
}

#[test]
fn what_makes_a_new_file_a_program_is_told() {
    let (mut editor, session) = Editor::ready();
    let command = "printf 'x\\n' > run; chmod 755 run; printf 'x\\n' > plain";
    let shown = shown(&mut editor, &session, command);
    assert!(shown.contains("run, mode 755"), "{shown}");
    assert!(!shown.contains("plain, mode"), "{shown}");
}

#[test]
fn a_text_is_shown_that_replaces_what_is_none_or_has_some_bytes_that_are_none() {
    let (mut editor, session) = Editor::ready();
    editor.put("odd", "\0\0\0\0");
    let command = "printf 'first evil\\n' > odd; printf 'second evil\\n\\0\\377' > new";
    let shown = shown(&mut editor, &session, command);
    assert!(shown.contains("first evil"), "{shown}");
    assert!(shown.contains("+second evil\n+\\x00\\xff"), "{shown}");
}

#[test]
fn letters_nobody_sees_have_names_in_what_an_editor_is_told() {
    let (mut editor, session) = Editor::ready();
    editor.put("known", "old \u{202e}line\n");
    let command = "printf 'old \u{202e}line\\nnew \u{2066}line\\n' > known; echo x > 'a\u{200b}b'";
    let shown = shown(&mut editor, &session, command);
    assert!(shown.contains("new \\u{2066}line"), "{shown}");
    assert!(!shown.contains("old \\u{202e}line"), "{shown}");
    assert!(shown.contains("a\\u{200b}b"), "{shown}");
}

#[test]
fn a_name_that_reads_like_more_of_its_line_stands_in_quotation_marks() {
    let (mut editor, session) = Editor::ready();
    let shown = shown(
        &mut editor,
        &session,
        "mkdir 'd, mode 700' && ln -s x 'l to y'",
    );
    assert!(shown.contains("d, mode 700\", mode 755"), "{shown}");
    assert!(shown.contains("l to y\" to x"), "{shown}");
}

#[test]
fn of_more_than_is_shown_the_longest_files_are_told_by_their_size_and_none_is_hidden_behind_them() {
    let (mut editor, session) = Editor::ready();
    let command = "for i in $(seq 40); do yes long | head -c 1000000 > a$i; done; echo short > z";
    let shown = shown(&mut editor, &session, command);
    assert!(shown.len() < 100_000, "{}", shown.len());
    assert!(shown.contains("/z\nshort\n"), "{shown}");
    assert!(
        shown.contains("40 of these files are told by size"),
        "{shown}"
    );
}

#[test]
fn what_is_asked_about_each_time_is_not_hidden_behind_much_that_is_shorter() {
    let (mut editor, session) = Editor::ready();
    let command = "for i in $(seq 40); do yes long | head -c 900000 > a$i; done; \
                   (echo evil; yes '#' | head -c 900000) > .bashrc";
    let shown = shown(&mut editor, &session, command);
    assert!(shown.contains("/.bashrc\nevil\n"), "{}", shown.len());
    assert!(
        shown.contains("40 of these files are told by size"),
        "{}",
        shown.len()
    );
}

#[test]
fn what_a_background_command_did_is_not_asked_about_under_another_calls_name() {
    // It ends while it is waited for: else it would be decided when the turn begins.
    let command = "until [ -e go ]; do sleep 0.1; done; echo made > made.txt";
    for (answer, status) in [("allow-once", "completed"), ("reject-once", "failed")] {
        let (mut editor, session) = Editor::ready();
        let start = json!([[["terminal", {"command": command, "background": true}]]]);
        editor.prompt(&session, &start, &[]);
        let job = editor.ended()["rawOutput"]["session_id"].clone();
        let go = json!(["write_file", {"path": "go", "content": "x"}]);
        let wait = json!(["process", {"action": "wait", "session_id": job}]);
        let turn = editor.begin(&session, &json!([[go], [wait]]));
        let question = editor.question();
        editor.answer(&question, &json!("allow-once"));
        let question = editor.question();
        let asked = &question["params"]["toolCall"];
        let of = |editor: &Editor, kind: &str, id: &Value| {
            let mut all = editor.updates(kind);
            all.retain(|update| update["toolCallId"] == *id);
            all
        };
        // It has a card of its own, which says whose changes these are.
        assert_eq!(asked["title"], format!("In the background: {command}"));
        let card = of(&editor, "tool_call", &asked["toolCallId"]);
        assert_eq!(card.len(), 1, "{question}");
        assert_eq!(card[0]["title"], asked["title"]);
        assert_eq!(asked["content"][0]["newText"], json!("made\n"));
        let begun = editor.updates("tool_call");
        let waits = begun.iter().find(|call| call["title"] == "Process: wait");
        let waits = &waits.unwrap()["toolCallId"];
        assert_ne!(*waits, asked["toolCallId"]);
        editor.answer(&question, &json!(answer));
        editor.result(turn, &[]);
        assert_eq!(editor.text("made.txt").is_some(), answer == "allow-once");
        let ended = of(&editor, "tool_call_update", &asked["toolCallId"]);
        assert_eq!(ended.last().unwrap()["status"], status, "{ended:?}");
        // The call that was being made ends by itself, and is called what it was.
        let ended = of(&editor, "tool_call_update", waits);
        assert_eq!(ended.last().unwrap()["status"], status, "{ended:?}");
        assert!(ended.iter().all(|update| update.get("title").is_none()));
        // And what it asks about itself later is asked about as its own.
        let write = json!([[["write_file", {"path": "b.txt", "content": "b"}]]]);
        editor.prompt(&session, &write, &["reject-once".into()]);
        let questions = editor.questions();
        let last = &questions.last().unwrap()["toolCall"];
        assert_eq!(last["title"], "Write b.txt");
    }
}

#[test]
fn what_is_asked_beside_a_call_that_is_not_made_any_more_stands_under_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join(".config/hermitcrab");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[chat]\nstop_loops = true\n").unwrap();
    let mut editor = Editor::start_with(&[], dir);
    editor.initialize(false);
    let session = editor.open();
    let same = json!(["read_file", {"path": "none.txt"}]);
    let write = json!(["write_file", {"path": "b.txt", "content": "x\n"}]);
    let mut answers: Vec<Value> = (0..5).map(|_| json!([same])).collect();
    answers.extend([json!([same, write]), json!("done")]);
    let turn = editor.begin(&session, &Value::from(answers));
    let question = editor.question();
    assert!(editor.seen.iter().any(|m| m.to_string().contains("_block")));
    assert_eq!(question["params"]["toolCall"]["title"], "Write b.txt");
    editor.answer(&question, &json!("allow-once"));
    editor.result(turn, &[]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("x\n"));
}

#[test]
fn what_an_agent_that_was_handed_work_asks_is_put_under_its_own_call() {
    let (mut editor, session) = Editor::ready();
    let writes = |name: &str| json!([["write_file", {"path": name, "content": "x\n"}]]);
    let work = |goal: &Value| json!(["delegate_task", {"goal": goal.to_string()}]);
    // As much as may be is handed out already, so that this is done while its call goes on.
    let waits: Vec<Value> = (0..3).map(|n| work(&json!([format!("{n}")]))).collect();
    let at_once = work(&json!([writes("one.txt"), writes("two.txt")]));
    let turn = editor.begin(&session, &json!([waits, [at_once], "done"]));
    for name in ["one.txt", "two.txt"] {
        let question = editor.question();
        let asked = &question["params"]["toolCall"];
        let title = asked["title"].as_str().unwrap();
        assert!(title.ends_with(&format!(": Write {name}")), "{question}");
        let path = asked["content"][0]["path"].as_str().unwrap();
        assert!(path.ends_with(name), "{question}");
        editor.answer(&question, &json!("allow-once"));
    }
    editor.result(turn, &[]);
    // Each card ends with what came of its own call.
    let ended = editor.updates("tool_call_update");
    for call in editor.updates("tool_call") {
        let of = |update: &&Value| update["toolCallId"] == call["toolCallId"];
        let last = ended.iter().rfind(of).unwrap();
        assert_eq!(last["status"], "completed", "{call} {last}");
        let output = last["rawOutput"].to_string();
        let is_write = call["title"].as_str().unwrap().contains("Write");
        assert_eq!(output.contains("bytes_written"), is_write, "{call} {last}");
    }
}

/// A renderer of Markdown would hide all between the two names.
#[test]
fn no_name_hides_what_is_told_beside_it() {
    let (mut editor, session) = Editor::ready();
    let command = "ln -s t '.a<!--'; ln -s ../tools hook; ln -s t 'z-->'; ln -s t '```'";
    let told = shown(&mut editor, &session, command);
    let block = told.trim();
    let fence = "````";
    assert!(
        block.starts_with(&format!("{fence}\n")) && block.ends_with(&format!("\n{fence}")),
        "{told}"
    );
    let within = &block[fence.len()..block.len() - fence.len()];
    assert!(!within.contains(fence), "{told}");
    for line in [".a<!--", "hook to ../tools", "z-->"] {
        assert!(within.contains(line), "{line}: {told}");
    }
}
