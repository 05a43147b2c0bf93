//! What is kept for a workspace, where another directory came to lie at its path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use crate::support::{home::Home, machine::Machine};

const REMOVE: [&str; 3] = ["exec", "--", "rm a.txt"];

/// Puts another directory with a file `a.txt` in the place of this one, which is moved aside.
fn replace(dir: &Path, aside: &Path) {
    std::fs::rename(dir, aside).unwrap();
    std::fs::create_dir(dir).unwrap();
    std::fs::write(dir.join("a.txt"), "of another repository\n").unwrap();
}

#[test]
fn a_standing_grant_is_not_inherited_by_another_directory_at_the_same_path() {
    let home = Home::new();
    home.ok(&["caps", "grant", "fs.delete=."]);
    let (project, aside) = (home.project(), home.path().join("aside"));
    replace(&project, &aside);
    let ran = home.run(&REMOVE);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(project.join("a.txt").exists());
    let waits = "another directory lies where the one was";
    assert!(ran.err.contains(waits), "{}", ran.err);
    let listed = home.ok(&["caps"]);
    assert!(listed.contains("waits for `hermitcrab caps confirm standing0`: another"));
    // A yes here is for this one, and says to what.
    let said = home.ok(&["caps", "confirm", "standing0"]);
    assert!(said.contains(": fs.delete /"), "{said}");
    assert_eq!(home.run(&REMOVE).code, Some(0));
    // The first one has to be said yes to in turn.
    std::fs::rename(&project, home.path().join("second")).unwrap();
    std::fs::rename(&aside, &project).unwrap();
    assert_eq!(home.run(&REMOVE).code, Some(77));
    assert!(project.join("a.txt").exists());
}

#[test]
fn a_directory_that_was_away_and_comes_back_is_the_same() {
    let home = Home::new();
    home.ok(&["caps", "grant", "fs.delete=."]);
    let (project, aside) = (home.project(), home.path().join("aside"));
    std::fs::rename(&project, &aside).unwrap();
    assert!(!project.exists());
    std::fs::rename(&aside, &project).unwrap();
    assert_eq!(home.run(&REMOVE).code, Some(0));
}

#[test]
fn an_answer_that_is_given_again_is_for_the_directory_it_was_given_in() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["repeat"], "b.txt", "1"), (1, true));
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    assert_eq!(machine.write(&[], "b.txt", "1"), (0, true));
    replace(&machine.workspace, &machine.dirs.path().join("aside"));
    assert_eq!(machine.write(&[], "b.txt", "1"), (1, false));
}

#[test]
fn a_reference_leads_to_a_grant_in_the_directory_it_was_made_for() {
    let home = Home::new();
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    home.ok(&["caps", "grant", "fs.delete=../other"]);
    let shared = home.ok(&["caps", "share", "standing0", "--with", "../other"]);
    let reference = home.path().join("reference");
    std::fs::write(&reference, shared).unwrap();
    let words = ["exec", "--object", "../reference", "--", "rm a.txt"];
    std::fs::write(other.join("a.txt"), "a\n").unwrap();
    let ran = home.run_in(&other, &words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    replace(&other, &home.path().join("aside"));
    let ran = home.run_in(&other, &words);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(other.join("a.txt").exists());
}
