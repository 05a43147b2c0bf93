//! Whoever writes a plan themselves: what they can look up, and what they are told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::{actions, planner::vocabulary};
use hermitcrab_core::plan::builtin::{Builtin, Over};
use serde_json::{Value, json};

use crate::support::{home::Home, pty::Pty};

fn plan(home: &Home, steps: &Value) {
    let plan = json!({"version": 1, "summary": "a test", "steps": steps});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
}

const FILE: [&str; 2] = ["--plan", "../plan.json"];

#[test]
fn each_action_with_what_it_takes_and_gives_is_in_the_document_and_in_the_list() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/PLANS.md");
    let document = std::fs::read_to_string(root).unwrap().replace("\\|", "|");
    let listed = Home::new().ok(&["plan", "--actions"]);
    for tool in actions::toolbox().all() {
        let (takes, gives) = (vocabulary::takes(tool), vocabulary::words(&tool.result));
        let row = format!("| `{takes}` | `{gives}` |\n");
        assert!(document.contains(&row), "{row}");
        let line = format!("- {takes} gives {gives}\n");
        assert!(listed.contains(&line), "{line}");
    }
    let builtins = Builtin::ALL.iter().map(|one| one.as_str());
    for name in builtins.chain(Over::ALL.iter().map(|one| one.as_str())) {
        assert!(listed.contains(&format!("- {name}: ")), "{name}");
    }
}

#[test]
fn without_words_and_without_a_plan_both_ways_are_named() {
    for command in ["plan", "run"] {
        let told = Home::new().run(&[command]);
        assert_eq!(told.code, Some(64), "{told:?}");
        assert!(told.err.contains("`--plan FILE`"), "{}", told.err);
        // What a shell makes several arguments of.
        let told = Home::new().run(&[command, "sort", "my", "downloads"]);
        assert_eq!(told.code, Some(64), "{told:?}");
        assert!(told.err.contains("put it in quotes"), "{}", told.err);
    }
}

#[test]
fn a_plan_that_leads_out_says_which_step_does_and_one_in_json_has_the_steps_of_its_blocks() {
    let home = Home::new();
    plan(
        &home,
        &json!([
            {"id": "each", "for_each": ["a.txt"], "as": "f", "do": [
                {"id": "if", "if": true, "then": [
                    {"id": "out", "call": "read_file", "with": {"path": "../other"}}
                ], "else": [{"id": "say", "answer": {"$": "f"}}]}
            ]}
        ]),
    );
    let shown = home.ok(&[&["plan"], &FILE[..]].concat());
    let note = "note: out is about \"../other\", which is outside the workspace: the plan will not be carried out\n";
    assert!(shown.contains(note), "{shown}");
    let described = home.ok(&[&["plan", "--json"], &FILE[..]].concat());
    let described: Value = serde_json::from_str(&described).unwrap();
    let branch = &described["steps"][0]["do"][0];
    assert_eq!(branch["then"][0]["id"], "out");
    assert_eq!(branch["then"][0]["risk"], "blocked");
    assert_eq!(branch["else"][0]["does"], "say f");
}

#[test]
fn every_step_is_counted_and_a_slip_is_asked_about_again() {
    let home = Home::new();
    plan(
        &home,
        &json!([
            {"id": "many", "ask_user": "how many?", "schema": "whole"},
            {"id": "when", "ask_user": "when?", "schema": "time"},
            {"id": "if", "if": {"fn": "gt", "of": [{"$": "many"}, 2]}, "then": [
                {"id": "say", "answer": {"text": ["more than two, on ", {"$": "when"}]}}
            ]}
        ]),
    );
    let mut pty = Pty::start(&home, &[&["run"], &FILE[..]].concat(), &[]);
    pty.sees("run these 4 steps?");
    pty.keys("y\n");
    pty.sees("how many? (a whole number)");
    pty.keys("three\n");
    pty.sees("`three` is no answer here; how many? (a whole number)");
    pty.keys("3\n");
    pty.sees("when? (a date as 2026-01-31, or with a time,");
    pty.keys("2026-02-30\n");
    pty.sees("`2026-02-30` is no answer here; when?");
    pty.keys("2026-02-28\n");
    pty.sees("more than two, on 2026-02-28");
    assert_eq!(pty.ended().code(), Some(0));
}

/// Three times is no slip any more, and what depends on it is left out.
#[test]
fn what_is_no_answer_three_times_is_none() {
    let home = Home::new();
    plan(
        &home,
        &json!([
            {"id": "many", "ask_user": "how many?", "schema": "whole"},
            {"id": "say", "answer": {"fn": "to_text", "of": [{"$": "many"}]}}
        ]),
    );
    let mut pty = Pty::start(&home, &[&["run"], &FILE[..]].concat(), &[]);
    pty.sees("run these 2 steps?");
    pty.keys("y\n");
    pty.sees("how many? (a whole number)");
    for word in ["one", "two", "three"] {
        pty.keys(&format!("{word}\n"));
        if word != "three" {
            pty.sees(&format!("`{word}` is no answer here"));
        }
    }
    pty.sees("- many: failed (not-enough-information): what came does not say it");
    pty.sees("- say: skipped, because many came to nothing");
    assert_eq!(pty.ended().code(), Some(1));
}

#[test]
fn why_a_directory_on_the_way_is_not_made_is_told() {
    let home = Home::new();
    plan(
        &home,
        &json!([{"id": "w", "call": "create_file", "with": {"path": "out/x.md", "text": "x"}}]),
    );
    let ran = home.run(&[&["run", "--yes-low"], &FILE[..]].concat());
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let place = home.project().join("out");
    let why = format!("fs.create {}", place.display());
    assert!(
        ran.out.contains(&why) && ran.out.contains("(no-cap)"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("- w: refused\n"), "{}", ran.out);
}

#[test]
fn a_word_that_is_no_answer_to_a_step_is_said_to_count_as_no() {
    let home = Home::new();
    plan(
        &home,
        &json!([
            {"id": "one", "call": "read_file", "with": {"path": "a.txt"}},
            {"id": "two", "call": "file_info", "with": {"path": "a.txt"}}
        ]),
    );
    let mut pty = Pty::start(&home, &[&["run", "--step"], &FILE[..]].concat(), &[]);
    pty.sees("run these 2 steps?");
    pty.keys("y\n");
    pty.sees("one: read_file");
    pty.sees("do this?");
    pty.keys("d\n");
    pty.sees("`d` is no answer here, which counts as no; `?` explains the answers");
    pty.until(|shown| shown.matches("do this?").count() == 2);
    pty.keys("y\n");
    pty.sees("1 done, 0 failed, 1 refused, 0 skipped");
    pty.ended();
}
