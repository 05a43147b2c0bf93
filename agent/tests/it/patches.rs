//! Patches of several files: all of it, or none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::runtime::{Fate, GrantWords};
use serde_json::json;
use support::Bench;

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n-one\n+uno\n*** Delete File: b.txt\n*** Add File: new/c.txt\n+c\n\
                     *** Move File: d.txt -> e.txt\n*** End Patch";

fn filled() -> Bench {
    let bench = Bench::new();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "b\n"), ("d.txt", "d\n")] {
        std::fs::write(bench.workspace.join(name), text).unwrap();
    }
    bench
}

/// Every file below the workspace and what it holds.
fn tree(bench: &Bench) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo = vec![bench.workspace.clone()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(&bench.workspace).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((name.to_string_lossy().into_owned(), text));
            }
        }
    }
    found.sort();
    found
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn a_patch_that_is_held_changes_every_file_it_names() {
    let mut bench = filled();
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(agent, &GrantWords::new("fs.*", &workspace))
        .unwrap();
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": PATCH}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.questions.is_empty());
    assert_eq!(
        tree(&bench),
        pairs(&[("a.txt", "uno\n"), ("e.txt", "d\n"), ("new/c.txt", "c")])
    );
}

#[test]
fn one_question_shows_the_whole_patch_and_a_no_changes_nothing() {
    let mut bench = filled();
    let before = tree(&bench);
    let agent = bench.runtime.first_agent();
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": PATCH}));
    assert!(
        matches!(report.fate, Fate::AskedRefused(_)),
        "{}",
        report.text
    );
    let shown = bench.user.shown.borrow();
    assert_eq!(shown.len(), 1);
    for part in ["-one", "+uno", "b.txt", "new/c.txt", "e.txt"] {
        assert!(shown[0].contains(part), "{part}: {}", shown[0]);
    }
    assert_eq!(tree(&bench), before);
}

#[test]
fn a_patch_of_which_one_part_may_not_be_done_does_nothing() {
    let mut bench = filled();
    let before = tree(&bench);
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    // Deleting is not held: the rest of the patch would be.
    for verb in ["fs.create", "fs.modify"] {
        bench
            .runtime
            .grant(agent, &GrantWords::new(verb, &workspace))
            .unwrap();
    }
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": PATCH}));
    assert!(
        matches!(report.fate, Fate::AskedRefused(_)),
        "{}",
        report.text
    );
    assert_eq!(tree(&bench), before);
}

#[test]
fn broken_data_in_one_file_keeps_all_files_as_they_were() {
    let mut bench = filled();
    let before = tree(&bench);
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(agent, &GrantWords::new("fs.*", &workspace))
        .unwrap();
    let patch = "*** Update File: a.txt\n-one\n+uno\n*** Add File: x.json\n+{\"a\": }\n";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert_eq!(report.fate, Fate::ToolError);
    assert!(
        report.text.contains("no files were modified"),
        "{}",
        report.text
    );
    assert_eq!(tree(&bench), before);
}
