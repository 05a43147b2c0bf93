//! A turn that the end of its program cuts off: what was said and done in it is kept, and
//! can be gone on with.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, process::Stdio};

use hermitcrab::{
    conversation::{self, Conversation, Shelf},
    model::Message,
};
use serde_json::{Value, json};

use crate::support::{
    editor::{Editor, model},
    home::{Home, until},
};

fn home() -> Home {
    let home = Home::new();
    home.configure(&format!(
        "[[grants]]\nverb = \"fs.create\"\non = \".\"\n[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        model()
    ));
    home
}

/// The only conversation there is, as it lies on the disk.
fn kept(home: &Home) -> Option<Conversation> {
    let all = conversation::all(Shelf::Terminal, &home.state(""));
    let (id, _) = all.first()?;
    Conversation::look(&Shelf::Terminal.dir_of(&home.state(""), id))
}

/// Runs a turn until this is so, and kills the program then.
fn cut_off(home: &Home, words: &Value, is_reached: impl Fn(&Home) -> bool) {
    let mut running = home
        .command(&home.project(), &["chat", &words.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| is_reached(home).then_some(()));
    running.kill().unwrap();
    running.wait().unwrap();
}

/// The results in it, as a model is told them, in order.
fn results(said: &Conversation) -> Vec<&str> {
    let results = said.messages.iter().filter_map(|message| match message {
        Message::Tool { text, .. } => Some(text.as_str()),
        _ => None,
    });
    results.collect()
}

fn intents(home: &Home, tool: &str) -> usize {
    let ledger = fs::read(home.state("ledger.jsonl")).unwrap_or_default();
    let ledger = String::from_utf8_lossy(&ledger).into_owned();
    let of_it = |line: &&str| line.contains("\"intent\"") && line.contains(tool);
    ledger.lines().filter(of_it).count()
}

#[test]
fn what_was_said_and_done_before_the_program_was_killed_is_gone_on_with() {
    let home = home();
    let long = json!([
        [["read_file", {"path": "a.txt"}]],
        [["terminal", {"command": "echo begun > begun.txt; exec sleep 600"}], ["read_file", {"path": "b.txt"}]],
    ]);
    cut_off(&home, &long, |home| intents(home, " terminal ") > 0);
    let before = kept(&home).unwrap();
    assert!(before.has_data());
    assert_eq!(results(&before).len(), 1, "{before:?}");
    // What nobody granted to who has read is not done, though the reading was cut off.
    let write = json!([[["write_file", {"path": "steered.txt", "content": "x\n"}]]]);
    let ran = home.run(&["chat", "--continue", &write.to_string()]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join("steered.txt").exists());
    let after = kept(&home).unwrap();
    let told = results(&after);
    assert!(told[0].contains("1|a"), "{told:?}");
    for cut in &told[1..3] {
        for words in [
            "the program ended before the outcome of this call was known",
            "terminal, was begun, and its end is not recorded",
        ] {
            assert!(cut.contains(words), "{told:?}");
        }
    }
    // Each call stands right before its results, as backends want it.
    let mut open = 0;
    for message in &after.messages {
        match message {
            Message::Assistant { calls, .. } => {
                assert_eq!(open, 0);
                open = calls.len();
            }
            Message::Tool { .. } => open -= 1,
            _ => assert_eq!(open, 0),
        }
    }
    let said =
        matches!(after.messages.last(), Some(Message::Assistant { text, .. }) if text == "done");
    assert!(said, "{:?}", after.messages.last());
}

#[test]
fn words_that_were_not_answered_are_not_lost() {
    let home = home();
    let words = json!([{"wait": true}]);
    cut_off(&home, &words, |home| {
        kept(home).is_some_and(|said| !said.messages.is_empty())
    });
    assert_eq!(
        kept(&home).unwrap().messages,
        [Message::User(words.to_string())]
    );
    home.ok(&["chat", "--continue", "and now?"]);
    let said = kept(&home).unwrap();
    assert_eq!(said.messages.len(), 3, "{said:?}");
    assert!(!said.has_data());
}

#[test]
fn a_call_that_was_not_begun_is_told_so_and_one_without_a_record_is_not_made_up() {
    let home = home();
    let long = json!([[["terminal", {"command": "exec sleep 600"}]]]);
    cut_off(&home, &long, |home| intents(home, " terminal ") > 0);
    let (id, _) = conversation::all(Shelf::Terminal, &home.state("")).remove(0);
    let file = home
        .state("conversations")
        .join(&id)
        .join("conversation.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let told_with = |change: &dyn Fn(&str) -> String| {
        let dir = Shelf::Terminal.dir_of(&home.state(""), &id);
        fs::write(&file, change(&whole)).unwrap();
        let mut said = Conversation::look(&dir).unwrap();
        said.close_calls(&[home.state("")], conversation::Taken::Over);
        results(&said)[0].to_owned()
    };
    let mark = Conversation::look(&Shelf::Terminal.dir_of(&home.state(""), &id))
        .unwrap()
        .mark
        .unwrap();
    let session = format!("\"session\":{}", mark.session);
    let later = told_with(&|text| {
        text.replace("\"calls\":", "\"calls\":1000")
            .replace("\"calls\":1000[", "\"calls\":[")
    });
    assert!(
        later.contains("it was not begun, so nothing was done"),
        "{later}"
    );
    let elsewhere = told_with(&|text| text.replace(&session, "\"session\":1"));
    assert!(
        elsewhere.contains("nor is there a record of it"),
        "{elsewhere}"
    );
}

#[test]
fn an_editors_session_whose_server_was_killed_goes_on_with_its_turn() {
    let (mut editor, session) = Editor::ready();
    let script = json!([
        [["read_file", {"path": "a.txt"}]],
        [["terminal", {"command": "echo began; exec sleep 600"}]],
    ]);
    editor.begin(&session, &script);
    editor.until(&[], |m| m.to_string().contains("\"text\":\"began"));
    let dir = editor.killed();
    let mut editor = Editor::start_with(&[], dir);
    editor.initialize(false);
    let load = json!({"sessionId": session, "cwd": editor.workspace(), "mcpServers": []});
    assert!(editor.call("session/load", load)["modes"].is_object());
    let shown = json!(editor.seen).to_string();
    assert!(
        shown.contains("the program ended before the outcome of this call was known"),
        "{shown}"
    );
    editor.prompt(&session, &json!(["went on"]), &[]);
    assert!(editor.said().ends_with("went on\n"), "{}", editor.said());
}
