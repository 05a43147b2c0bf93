//! A command that waits for what another one leaves behind when it ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::Fate;
use serde_json::{Value, json};

use crate::support::Bench;

/// Starts a command in the background.
fn started(bench: &mut Bench, command: &str) -> String {
    let report = bench.call("terminal", json!({"command": command, "background": true}));
    let said: Value = serde_json::from_str(&report.text).unwrap();
    said["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_that_waits_for_another_sees_what_that_one_made_last() {
    let mut bench = Bench::with_files();
    let last = "for n in 1 2 3; do echo $n >> log.txt; sleep 0.1; done; echo status $? >> log.txt";
    let id = started(&mut bench, last);
    let waits = "until grep -q status log.txt 2>/dev/null; do sleep 0.02; done; cat log.txt";
    let report = bench.call("terminal", json!({"command": waits, "timeout": 60}));
    let said: Value = serde_json::from_str(&report.text).unwrap();
    assert_eq!(said["output"], "1\n2\n3\nstatus 0", "{said}");
    let ended = bench.call("process", json!({"action": "poll", "session_id": id}));
    assert!(ended.text.contains("\"exit_code\": 0"), "{}", ended.text);
}

#[test]
fn what_is_to_be_asked_about_waits_until_nothing_else_runs() {
    let mut bench = Bench::with_files();
    let id = started(
        &mut bench,
        "sleep 0.5; echo x > beside.txt; echo SECRET=1 > .env",
    );
    let wait = json!({"command": "for n in $(seq 40); do sleep 0.05; done; ls -A", "timeout": 60});
    let report = bench.call("terminal", wait);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.questions.is_empty(), "{:?}", report.questions);
    let ended = bench.call("process", json!({"action": "poll", "session_id": id}));
    assert_eq!(ended.questions.len(), 1, "{}", ended.text);
    assert_eq!(bench.text(".env"), None);
}
