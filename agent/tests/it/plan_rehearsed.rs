//! The dry run of a plan tells of everything it wants, and of what it cannot know that.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::home::Home;

/// What would become of each step, a line each without the places of rules.
fn rehearsed(home: &Home, steps: &Value) -> Vec<String> {
    let plan = json!({"version": 1, "summary": "a test", "steps": steps});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let told = home.ok(&["run", "--plan", "../plan.json", "--dry-run", "--json"]);
    let lines = told.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["type"] == "would")
        .map(|line| {
            let what = line["what"].as_str().unwrap().lines().next().unwrap();
            let what = what.replace(&format!("{}/", home.project().display()), "");
            format!("{} {what}", line["step"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn what_goes_is_told_by_name_and_what_data_will_name_as_that() {
    let home = Home::new();
    for name in ["a.txt", "b.txt"] {
        std::fs::write(home.project().join(name), "x\n").unwrap();
    }
    let told = rehearsed(
        &home,
        &json!([
            {"id": "here", "call": "list_files", "with": {}},
            {"id": "gone", "call": "delete_files", "with": {"paths": ["a.txt", "b.txt"]}},
            {"id": "found", "call": "find_files", "with": {"pattern": "*.log"}},
            {"id": "more", "call": "delete_files", "with": {"paths": {"$": "found.paths"}}},
            {"id": "away", "call": "move_files", "with": {"paths": ["a.txt"], "into": "d"}},
            {"id": "run", "call": "run_command", "with": {"program": "rm", "args": ["-r", "d"]}}
        ]),
    );
    let of = |step: &str| -> Vec<&str> {
        let begins = format!("{step} ");
        let lines = told
            .iter()
            .filter_map(|line| line.strip_prefix(begins.as_str()));
        lines.collect()
    };
    let is_about = |line: &str, verb: &str, name: &str| {
        line.contains(verb) && line.ends_with(name) && !line.contains("is decided")
    };
    let gone = of("gone");
    assert!(
        gone.len() == 2
            && is_about(gone[0], "fs.delete", "a.txt")
            && is_about(gone[1], "fs.delete", "b.txt"),
        "{told:?}"
    );
    assert_eq!(
        of("more"),
        ["fs.delete of what the steps before it find is decided when it is known"]
    );
    let away = of("away");
    for (verb, name) in [
        ("fs.delete", "a.txt"),
        ("fs.read", "a.txt"),
        ("fs.create", "d"),
    ] {
        assert!(
            away.iter().any(|line| is_about(line, verb, name)),
            "{told:?}"
        );
    }
    assert_eq!(away.len(), 3, "{told:?}");
    assert!(of("here")[0].contains("fs.list"), "{told:?}");
    assert!(
        of("run").contains(&"what the command changes is decided when it has run, on a copy"),
        "{told:?}"
    );
}
