//! Notes that an agent keeps: which one is meant, and what is nobody's list.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::{Fate, GrantWords};
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

#[test]
fn words_that_several_notes_hold_mean_none_of_them() {
    let mut bench = Bench::new();
    let notes = bench.workspace.parent().unwrap().join(".hermes");
    std::fs::create_dir(&notes).unwrap();
    let words = GrantWords::new("fs.*", &notes.to_string_lossy());
    let agent = bench.runtime.first_agent();
    bench.runtime.grant(agent, &words).unwrap();
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
