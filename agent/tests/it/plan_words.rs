//! Words of a command that come from data: names of files that begin like options.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::support::home::{Home, Ran};

fn put(home: &Home, name: &str, content: &str) {
    std::fs::write(home.project().join(name), content).unwrap();
}

fn text(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.project().join(name)).unwrap()
}

/// Copies one of the two logs over the other; nobody can be asked, and all files are granted.
fn copied(home: &Home) -> Ran {
    let plan = json!({"version": 1, "summary": "a test", "steps": [
        {"id": "found", "call": "find_files", "with": {"pattern": "*.log"}},
        {"id": "go", "call": "run_command", "with": {
            "program": "cp", "args": {"fn": "append", "of": [["-v"], {"$": "found.paths"}]}}}
    ]});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let words = ["run", "--plan", "../plan.json", "--yes-low"];
    home.run(&[&words[..], &["--grant", "fs.*=."]].concat())
}

/// A repository may hold a file whose name a program takes for an option.
#[test]
fn a_name_that_begins_like_an_option_steers_what_its_command_does() {
    let home = Home::new();
    put(&home, "a.log", "a\n");
    put(&home, "b.log", "b\n");
    // An option that the plan writes is one, and a name is a name.
    let ran = copied(&home);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(text(&home, "b.log"), "a\n");
    put(&home, "b.log", "b\n");
    put(&home, "--suffix=.log", "");
    let ran = copied(&home);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert_eq!(text(&home, "b.log"), "b\n");
}

/// What a plan goes on to do is for all that was found, so what was not looked at is no answer.
#[test]
fn a_directory_that_is_too_deep_to_be_looked_through_is_told_and_not_left_out() {
    let home = Home::new();
    let mut deep = home.project();
    for _ in 0..66 {
        deep.push("d");
    }
    let looked = || {
        let plan = json!({"version": 1, "summary": "a test", "steps": [
            {"id": "found", "call": "find_files", "with": {"pattern": "*", "kind": "directory"}}
        ]});
        std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
        home.run(&["run", "--plan", "../plan.json", "--yes-low"])
    };
    std::fs::create_dir_all(deep.ancestors().nth(2).unwrap()).unwrap();
    let ran = looked();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("64 found below"), "{ran:?}");
    std::fs::create_dir_all(&deep).unwrap();
    let ran = looked();
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let told = "more than 64 directories in each other below `.`";
    assert!(ran.out.contains(told), "{ran:?}");
}
