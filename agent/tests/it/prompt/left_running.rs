//! What a model left running, beside what a person approves.

use std::fs;

use serde_json::json;

use super::{settled, start};

#[test]
fn a_plan_that_is_approved_keeps_nothing_of_a_command_that_was_left_running() {
    let home = settled(
        "[models.planner]\nbackend = \"scripted\"\nmodel = \"m\"\nfile = \"script.jsonl\"\n",
    );
    let left = json!({"calls": [{"tool": "terminal", "arguments": {
        "command": "echo unseen > left; sleep 1000", "background": true}}]});
    let said = json!({ "text": "it is started" });
    let script = home.path().join(".config/hermitcrab/script.jsonl");
    fs::write(script, format!("{left}\n{said}\n")).unwrap();
    let look = |id: &str| json!({"id": id, "call": "list_files", "with": {"path": "."}});
    let plan = json!({"version": 1, "summary": "a test", "steps": [
        {"id": "d", "call": "create_directory", "with": {"path": "."}}, look("a"), look("b")
    ]});
    fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let mut pty = start(&home);
    pty.keys("go\r");
    pty.sees("it is started");
    pty.prompt();
    // It has made its file once it waits; whether it has is nothing anybody here can see.
    for _ in 0..3 {
        pty.keys("plan --plan ../plan.json\r");
        pty.until(|shown| shown.trim_end().ends_with("[n]:"));
        pty.keys("y\r");
        let shown = pty.prompt();
        assert!(shown.contains("3 done, 0 failed"), "{shown}");
    }
    assert!(!home.project().join("left").exists());
    pty.keys("exit\r");
    pty.ended();
    assert!(!home.project().join("left").exists());
}
