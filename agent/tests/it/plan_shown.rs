//! What is shown of a plan before it is approved is all that it has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::home::Home;

/// Texts that come to stand in a file and in a command's words, in each place a plan has for
/// them besides the call itself.
fn hiding() -> Value {
    let long = format!("touch hidden{}", " ".repeat(90) + "; touch later");
    json!({"version": 1, "summary": "a test", "steps": [
        {"id": "all", "for_each": ["x"], "as": "p", "at_most": 1, "do": [
            {"id": "in", "let": "y"},
            {"id": "go", "if": true, "then": [
                {"id": "w", "call": "create_file", "with": {"path": "deep.txt", "text": "deep words"}}
            ], "else": [{"id": "no", "fail": "other words"}]}
        ], "gives": {"text": [{"$": "in"}, long, {"$": "p"}]}},
        {"id": "who", "ask_user": "which?", "schema": {"one_of": ["asked words", "b"]}},
        {"id": "pick", "extract": "some text", "ask": "which?",
         "schema": {"a": [{"maybe": {"one_of": ["picked words"]}}], "n": "whole"}},
        {"id": "r", "call": "run_command", "with": {"program": "sh", "args": ["-c", {"$": "all[0]"}]}}
    ]})
}

#[test]
fn what_a_loop_gives_and_what_is_chosen_among_is_shown_with_the_plan() {
    let home = Home::new();
    std::fs::write(home.path().join("p.json"), hiding().to_string()).unwrap();
    let told = home.ok(&["plan", "--plan", "../p.json"]);
    let long = "touch hidden".to_owned() + &" ".repeat(90) + "; touch later";
    for shown in [
        "for each p of [\"x\"], at most 1, each giving in + \"touch hidden",
        &format!("       > {long}"),
        "ask you for one of \"asked words\", \"b\": \"which?\"",
        "picks {a: [maybe one of \"picked words\"], n: whole} out of \"some text\": \"which?\"",
        "\"deep words\"",
        "\"other words\"",
    ] {
        assert!(told.contains(shown), "no {shown} in {told}");
    }
    // What it gives comes about within it, and comes after nothing.
    let of_the_loop = told.lines().find(|line| line.contains("each giving"));
    assert!(!of_the_loop.unwrap().contains("after"), "{told}");
}

#[test]
fn a_program_is_told_the_steps_within_a_step() {
    let home = Home::new();
    std::fs::write(home.path().join("p.json"), hiding().to_string()).unwrap();
    let told = home.ok(&["plan", "--plan", "../p.json", "--json"]);
    let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let go = &told["steps"][0]["do"][1];
    assert_eq!(go["id"], "go");
    let does = |step: &Value| step["does"].as_str().unwrap().to_owned();
    assert_eq!(
        does(&go["then"][0]),
        "create_file path=\"deep.txt\" text=\"deep words\""
    );
    assert_eq!(does(&go["else"][0]), "end with \"other words\"");
    let texts = told["steps"][0]["texts"].as_array().unwrap();
    assert!(texts[0].as_str().unwrap().ends_with("; touch later"));
}
