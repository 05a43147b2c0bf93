//! What is configured, at a terminal and in a file that means nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{home::Home, pty::Pty};

#[test]
fn at_a_terminal_that_is_too_narrow_what_a_key_is_for_stands_below_it() {
    let home = Home::new();
    home.configure("");
    let mut pty = Pty::start(&home, &["config", "show", "limits.pids_max"], &[]);
    // The last of what is shown: all before it is there, too.
    let shown = pty.sees("    processes");
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let at = lines
        .iter()
        .position(|line| *line == "limits.pids_max  100  (usual)")
        .unwrap_or_else(|| panic!("{shown}"));
    assert!(
        lines
            .get(at + 1)
            .is_some_and(|line| line.starts_with("    processes")),
        "{shown}"
    );
    assert!(pty.ended().success());
    // A program reads one line for each.
    let shown = home.ok(&["config", "show", "limits.pids_max"]);
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

#[test]
fn a_file_that_means_nothing_is_told_with_the_way_out_and_that_leads_out() {
    let home = Home::new();
    home.configure("mode = \"prompt\n");
    for words in [&["config"][..], &["doctor"], &["exec", "--", "true"]] {
        let ran = home.run(words);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.err.contains("line 1: "), "{}", ran.err);
        assert!(ran.err.contains("`hermitcrab config reset`"), "{}", ran.err);
    }
    home.ok(&["config", "reset"]);
    home.ok(&["config"]);
}

#[test]
fn a_grant_of_the_file_may_name_a_place_below_the_workspace_that_is_not_there_yet() {
    let home = Home::new();
    home.configure("[[grants]]\nverb = \"fs.create\"\non = \"./build\"\n");
    let ran = home.run(&["exec", "--", "mkdir build; echo x > build/x.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.project().join("build/x.txt").exists());
    let ran = home.run(&["exec", "--", "echo x > y.txt"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join("y.txt").exists());
    // What names no place is told with where it stands.
    home.configure("[[grants]]\nverb = \"fs.create\"\non = \"build\"\n");
    let ran = home.run(&["exec", "--", "true"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    let said = "a grant of the configuration: `fs.create` cannot be granted on `build`";
    assert!(ran.err.contains(said), "{}", ran.err);
}
