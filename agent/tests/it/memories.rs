//! Notes that an agent keeps: which one is meant, and what is nobody's list.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::session::Asking;
use serde_json::{Value, json};

use crate::support::Bench;

fn call(bench: &mut Bench, tool: &str, args: Value) -> Value {
    let report = bench.call(tool, args);
    assert!(
        matches!(report.fate, Fate::Ran | Fate::ToolError),
        "{}",
        report.text
    );
    serde_json::from_str(&report.text).unwrap()
}

fn kept(bench: &mut Bench) -> Value {
    // What needs to be told which one it means tells all there are.
    call(bench, "memory", json!({"action": "remove"}))["current_entries"].clone()
}

/// An agent that holds this on the directory its notes are in, and that directory.
fn bench(verb: &str) -> (Bench, PathBuf) {
    let mut bench = Bench::new();
    let home = bench.workspace.parent().unwrap().join(".hermes");
    let notes = home.join("memories");
    std::fs::create_dir_all(&notes).unwrap();
    let words = GrantWords::new(verb, &home.to_string_lossy());
    let agent = bench.runtime.first_agent();
    bench.runtime.grant(agent, &words).unwrap();
    (bench, notes)
}

#[test]
fn words_that_several_notes_hold_mean_none_of_them() {
    let (mut bench, _) = bench("fs.*");
    for content in ["tea at four", "tea at five"] {
        let added = call(
            &mut bench,
            "memory",
            json!({"action": "add", "content": content}),
        );
        assert_eq!(added["success"], true, "{added}");
    }
    for change in [
        json!({"action": "remove", "old_text": "tea"}),
        json!({"action": "replace", "old_text": "tea", "content": "coffee"}),
        json!({"operations": [{"action": "remove", "old_text": "tea"}]}),
    ] {
        let told = call(&mut bench, "memory", change.clone());
        assert_eq!(told["success"], false, "{change} {told}");
        assert_eq!(kept(&mut bench), json!(["tea at four", "tea at five"]));
    }
    let one = json!({"action": "remove", "old_text": "five"});
    assert_eq!(call(&mut bench, "memory", one)["success"], true);
    assert_eq!(kept(&mut bench), json!(["tea at four"]));
}

/// The ways to change a note that is there.
fn changes(old: &str) -> [Value; 3] {
    [
        json!({"action": "replace", "old_text": old, "content": "new"}),
        json!({"action": "remove", "old_text": old}),
        json!({"operations": [{"action": "replace", "old_text": old, "content": "new"}]}),
    ]
}

#[test]
fn a_file_that_is_no_list_of_notes_is_not_rewritten_whichever_way_it_is_changed() {
    let (mut bench, notes) = bench("fs.*");
    let file = notes.join("MEMORY.md");
    for text in [
        "tea\n\u{a7}\n\n\n  indented by somebody".to_owned(),
        format!("tea\n\u{a7}\n{}", "x".repeat(2201)),
    ] {
        std::fs::write(&file, &text).unwrap();
        for change in changes("tea") {
            let told = call(&mut bench, "memory", change.clone());
            assert_eq!(told["success"], false, "{change} {told}");
            let why = told["error"].as_str().unwrap();
            assert!(why.starts_with("Refusing to write MEMORY.md"), "{why}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{change}");
        }
    }
    // Its twin is a list, and each of these changes it.
    for change in changes("tea") {
        std::fs::write(&file, "tea\n\u{a7}\nmilk").unwrap();
        assert_eq!(call(&mut bench, "memory", change.clone())["success"], true);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("tea") && text.contains("milk"), "{text}");
    }
}

#[test]
fn notes_that_cannot_be_read_are_not_taken_for_none() {
    let rubbish: &[u8] = b"tea \xff at four";
    // The first may be changed and listed, and not read; nobody is asked for more.
    for (verb, bytes) in [("fs.modify", &b"tea at four"[..]), ("fs.*", rubbish)] {
        let (mut bench, notes) = bench(verb);
        let words = GrantWords::new("fs.list", &notes.to_string_lossy());
        let agent = bench.runtime.first_agent();
        bench.runtime.grant(agent, &words).unwrap();
        bench.runtime.set_asking(Asking::Refuse).unwrap();
        let file = notes.join("MEMORY.md");
        std::fs::write(&file, bytes).unwrap();
        let added = json!({"action": "add", "content": "milk"});
        let removed = json!({"action": "remove", "old_text": "tea"});
        let all = json!({"operations": [{"action": "add", "content": "milk"}]});
        for change in [added, removed, all] {
            let report = bench.call("memory", change.clone());
            assert!(
                !report.text.contains("\"success\": true"),
                "{}",
                report.text
            );
            assert_eq!(std::fs::read(&file).unwrap(), bytes, "{verb} {change}");
        }
    }
}

#[test]
fn notes_fill_their_file_to_the_last_letter_and_not_beyond() {
    let (mut bench, notes) = bench("fs.*");
    for (target, file, most) in [("memory", "MEMORY.md", 2200), ("user", "USER.md", 1375)] {
        // Letters, not bytes; three of them stand between two notes.
        let rest = |more: usize| "\u{e9}".repeat(most - "tea".len() - 3 + more);
        let filled = |change: Value| {
            let mut change = change;
            change["target"] = target.into();
            change
        };
        let ways = |more: usize| {
            [
                ("tea", json!({"action": "add", "content": rest(more)})),
                (
                    "tea\n\u{a7}\nmilk",
                    json!({"action": "replace", "old_text": "milk", "content": rest(more)}),
                ),
                (
                    "tea",
                    json!({"operations": [{"action": "add", "content": rest(more)}]}),
                ),
            ]
        };
        for more in [0, 1] {
            for (before, change) in ways(more) {
                std::fs::write(notes.join(file), before).unwrap();
                let told = call(&mut bench, "memory", filled(change));
                assert_eq!(told["success"], more == 0, "{target} {more}: {told}");
                let text = std::fs::read_to_string(notes.join(file)).unwrap();
                let letters = text.chars().count();
                assert_eq!(letters == most, more == 0, "{target} {more}: {letters}");
                assert_eq!(text == before, more == 1, "{target} {more}");
            }
        }
    }
}

/// Whether the model is told to leave its notes alone for now.
fn is_enough(told: &Value) -> bool {
    let why = told["error"].as_str().unwrap_or_default();
    why.starts_with("Memory consolidation failed 4 times this turn")
}

#[test]
fn who_fails_three_times_in_a_row_is_told_to_go_on_without_and_a_note_that_is_kept_ends_the_row() {
    let (mut bench, _) = bench("fs.*");
    let fails = json!({"action": "remove", "old_text": "tea"});
    let works = json!({"action": "add", "content": "milk"});
    let mut told = |change: &Value| is_enough(&call(&mut bench, "memory", change.clone()));
    assert_eq!([(); 4].map(|()| told(&fails)), [false, false, false, true]);
    assert!(!told(&works));
    assert_eq!([(); 4].map(|()| told(&fails)), [false, false, false, true]);
}

#[test]
fn a_list_of_what_is_to_do_and_each_thing_in_it_have_an_end() {
    let mut bench = Bench::new();
    let items: Vec<Value> = (0..300)
        .map(|id| json!({"id": id.to_string(), "content": "x".repeat(5000), "status": "pending"}))
        .collect();
    let told = call(&mut bench, "todo", json!({ "todos": items }));
    let kept = told["todos"].as_array().unwrap();
    assert_eq!(kept.len(), 256);
    let content = kept[0]["content"].as_str().unwrap();
    assert_eq!(content.chars().count(), 4000);
    assert!(content.ends_with("\u{2026} [truncated]"));
}
