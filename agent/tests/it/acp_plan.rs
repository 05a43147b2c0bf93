//! A plan behind an editor: locked, shown, approved, ticked off.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::support::editor::Editor;

#[test]
fn a_plan_is_locked_shown_approved_and_ticked_off() {
    let (mut editor, session) = Editor::ready();
    let plan = json!({"version": 1, "summary": "a copy", "steps": [
        {"id": "look", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "make", "call": "create_file", "with": {"path": "b.txt", "text": {"$": "look.text"}}},
        {"id": "say", "answer": "copied"}
    ]});
    let prompt = json!(format!("/plan {}", json!([plan.to_string()])));
    // A no to the plan: nothing of it is done.
    editor.prompt(&session, &prompt, &[json!("reject-once")]);
    assert!(
        editor.said().contains("nothing was done"),
        "{}",
        editor.said()
    );
    let asked = editor.questions();
    assert_eq!(asked.len(), 1);
    let shown = asked[0]["toolCall"]["content"].to_string();
    assert!(
        shown.contains("create_file") && shown.contains("at most"),
        "{shown}"
    );
    // A yes to the plan is no yes to what its steps change.
    let before = editor.updates("plan").len();
    let answers = [json!("allow-once"), json!("reject-once")];
    editor.prompt(&session, &prompt, &answers);
    assert_eq!(editor.text("b.txt"), None);
    let told = editor.updates("plan");
    assert!(
        told.last().unwrap()["entries"][1]["content"]
            .as_str()
            .unwrap()
            .contains("failed"),
        "{told:?}"
    );
    let after = told.len();
    assert!(after > before);
    let answers = [json!("allow-once"), json!("allow-once")];
    let turn = editor.prompt(&session, &prompt, &answers);
    assert_eq!(turn["stopReason"], "end_turn");
    assert_eq!(editor.text("b.txt").as_deref(), Some("alpha\n"));
    let change = editor.questions().pop().unwrap();
    let diff = &change["toolCall"]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["newText"]),
        (&json!("diff"), &json!("alpha\n"))
    );
    // Pending all at first, one at a time under way, done all at last.
    let statuses: Vec<Vec<String>> = editor.updates("plan")[after..]
        .iter()
        .map(|plan| {
            let entries = plan["entries"].as_array().unwrap().iter();
            entries
                .map(|entry| entry["status"].as_str().unwrap().to_owned())
                .collect()
        })
        .collect();
    assert_eq!(statuses.first().unwrap(), &["pending"; 3]);
    assert!(statuses.contains(&vec![
        "completed".to_owned(),
        "in_progress".to_owned(),
        "pending".to_owned()
    ]));
    assert_eq!(statuses.last().unwrap(), &["completed"; 3]);
    assert!(editor.said().contains("copied"));
    editor.prompt(&session, &json!("/plan"), &[]);
    assert!(editor.said().contains("[x] make"), "{}", editor.said());
}

#[test]
fn a_lasting_yes_to_a_step_whose_file_changed_meanwhile_is_a_yes_to_nothing() {
    let (mut editor, session) = Editor::ready();
    let plan = json!({"version": 1, "steps": [
        {"id": "gone", "call": "delete_files", "with": {"paths": ["a.txt"]}}
    ]});
    let prompt = json!(format!("/plan {}", json!([plan.to_string()])));
    let id = editor.begin(&session, &prompt);
    let asked = editor.question();
    editor.answer(&asked, &json!("allow-once"));
    let asked = editor.question();
    editor.put("a.txt", "user\n");
    editor.answer(&asked, &json!("allow-session"));
    editor.result(id, &[json!("reject-once")]);
    assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"));
    // Nothing of it is left: the same step is asked about again.
    let before = editor.questions().len();
    let answers = [json!("allow-once"), json!("reject-once")];
    editor.prompt(&session, &prompt, &answers);
    assert_eq!(editor.questions().len(), before + 2);
    assert_eq!(editor.text("a.txt").as_deref(), Some("user\n"));
}

#[test]
fn what_is_no_plan_is_not_carried_out() {
    let (mut editor, session) = Editor::ready();
    let outside = json!({"version": 1, "steps": [
        {"id": "x", "call": "create_file", "with": {"path": "/outside.txt", "text": "x"}}
    ]});
    for words in ["touch a file".to_owned(), outside.to_string()] {
        let prompt = json!(format!("/plan {}", json!([words, words, words])));
        editor.prompt(&session, &prompt, &[]);
    }
    assert!(editor.questions().is_empty());
    assert_eq!(editor.said().matches("nothing was done").count(), 2);
}

#[test]
fn a_value_is_shown_whole_and_counts_with_a_yes_alone() {
    let (mut editor, session) = Editor::ready();
    editor.put("a.txt", "b.txt");
    editor.put("b.txt", "kept\n");
    let plan = json!({"version": 1, "steps": [
        {"id": "look", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "these", "confirm": {"$": "look.text"}},
        {"id": "gone", "call": "delete_files", "with": {"paths": [{"$": "these"}]}}
    ]});
    let prompt = json!(format!("/plan {}", json!([plan.to_string()])));
    let answers = [json!("allow-once"), json!("reject-once")];
    editor.prompt(&session, &prompt, &answers);
    let asked = editor.questions();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let shown = asked[1]["toolCall"]["content"].to_string();
    assert!(shown.contains("> b.txt"), "{shown}");
    assert_eq!(editor.text("b.txt").as_deref(), Some("kept\n"));
    // An option nobody offered is a no.
    let answers = [json!("allow-once"), json!("allow-session")];
    editor.prompt(&session, &prompt, &answers);
    assert_eq!(editor.text("b.txt").as_deref(), Some("kept\n"));
    let answers = [
        json!("allow-once"),
        json!("allow-once"),
        json!("allow-once"),
    ];
    editor.prompt(&session, &prompt, &answers);
    assert_eq!(editor.text("b.txt"), None);
    assert!(
        editor.said().contains("3 done, 0 failed"),
        "{}",
        editor.said()
    );
}

#[test]
fn a_text_is_planned_once_it_is_approved_and_its_plan_is_approved_like_any() {
    let (mut editor, session) = Editor::ready();
    let inner = |tool: &str| {
        json!({"version": 1, "steps": [
            {"id": "look", "call": tool, "with": {"path": "c.txt", "text": "planned\n"}}
        ]})
    };
    let outer = json!({"version": 1, "steps": [
        {"id": "look", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "go", "delegate": {"$": "look.text"}, "tools": ["create_file"]}
    ]});
    let prompt = json!(format!("/plan {}", json!([outer.to_string()])));
    editor.put(
        "a.txt",
        &json!([inner("create_file").to_string()]).to_string(),
    );
    let yes = || json!("allow-once");
    // A no to the text, then to its plan.
    editor.prompt(&session, &prompt, &[yes(), json!("reject-once")]);
    assert!(editor.said().contains("not planned"), "{}", editor.said());
    editor.prompt(&session, &prompt, &[yes(), yes(), json!("reject-once")]);
    assert_eq!(editor.text("c.txt"), None);
    let before = editor.questions().len();
    editor.prompt(&session, &prompt, &[yes(), yes(), yes(), yes()]);
    let asked = editor.questions();
    assert_eq!(asked.len(), before + 4);
    let text = asked[before + 1]["toolCall"]["content"].to_string();
    assert!(
        text.contains("create_file") && text.contains("Who wrote it"),
        "{text}"
    );
    assert_eq!(editor.text("c.txt").as_deref(), Some("planned\n"));
    // Its steps are ticked off below those of the first plan, whatever they are called.
    let last = editor.updates("plan").pop().unwrap();
    let entries = last["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3, "{last}");
    assert!(
        entries.iter().all(|entry| entry["status"] == "completed"),
        "{last}"
    );
    // With other tools than those that were named there is no plan of it.
    editor.put(
        "a.txt",
        &json!([inner("move_file").to_string()]).to_string(),
    );
    let before = editor.questions().len();
    editor.prompt(&session, &prompt, &[yes(), yes()]);
    assert_eq!(editor.questions().len(), before + 2);
}
