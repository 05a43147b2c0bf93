//! What tools for files did, taken back by their person as what commands did is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::home::Home;

fn call(home: &Home, tool: &str, arguments: &Value) {
    let arguments = arguments.to_string();
    let ran = home.run(&["call", "--grant", "fs.*=.", tool, &arguments]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn text(home: &Home, name: &str) -> Option<String> {
    std::fs::read_to_string(home.project().join(name)).ok()
}

fn patch(old: &str, new: &str) -> Value {
    json!({"mode": "replace", "path": "a.txt", "old_string": old, "new_string": new})
}

#[test]
fn what_write_file_and_patch_did_is_taken_back_and_brought_again() {
    let home = Home::new();
    let file = home.project().join("a.txt");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    home.ok(&["exec", "--grant", "fs.*=.", "--", "echo before > other.txt"]);
    call(
        &home,
        "write_file",
        &json!({"path": "a.txt", "content": "written\n"}),
    );
    call(&home, "patch", &patch("written", "patched"));
    let listed = home.ok(&["undo", "--list"]);
    assert!(listed.contains("write_file: a.txt"), "{listed}");
    assert!(listed.contains("patch: a.txt"), "{listed}");
    home.ok(&["undo"]);
    assert_eq!(text(&home, "a.txt").as_deref(), Some("written\n"));
    home.ok(&["undo"]);
    assert_eq!(text(&home, "a.txt").as_deref(), Some("a\n"));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    // The command's own is the next, and not before.
    assert!(text(&home, "other.txt").is_some());
    home.ok(&["undo"]);
    assert_eq!(text(&home, "other.txt"), None);
    let ran = home.run(&["undo"]);
    let last = "nothing to undo but an undo: `hermitcrab undo 6` takes back `undo 1: ";
    assert!(ran.code == Some(1) && ran.err.contains(last), "{ran:?}");
    // An undo is undone by its number.
    home.ok(&["undo", "5"]);
    assert_eq!(text(&home, "a.txt").as_deref(), Some("written\n"));
    home.ok(&["audit", "verify"]);
}

#[test]
fn a_new_file_goes_with_the_directories_that_were_made_for_it() {
    let home = Home::new();
    let made = json!({"path": "n/m/new.txt", "content": "new\n"});
    call(&home, "write_file", &made);
    call(
        &home,
        "write_file",
        &json!({"path": "plain.txt", "content": "new\n"}),
    );
    home.ok(&["undo"]);
    assert_eq!(text(&home, "plain.txt"), None);
    home.ok(&["undo"]);
    assert!(!home.project().join("n").exists());
    call(&home, "write_file", &made);
    std::fs::write(home.project().join("n/mine"), "mine\n").unwrap();
    let ran = home.run(&["undo"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(text(&home, "n/m/new.txt").as_deref(), Some("new\n"));
    assert_eq!(text(&home, "n/mine").as_deref(), Some("mine\n"));
}

#[test]
fn what_was_changed_since_or_deleted_by_a_patch_is_not_lost() {
    let home = Home::new();
    call(&home, "patch", &patch("a", "patched"));
    std::fs::write(home.project().join("a.txt"), "mine\n").unwrap();
    let ran = home.run(&["undo"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(text(&home, "a.txt").as_deref(), Some("mine\n"));
    let away = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    call(&home, "patch", &json!({"mode": "patch", "patch": away}));
    assert_eq!(text(&home, "a.txt"), None);
    home.ok(&["undo"]);
    assert_eq!(text(&home, "a.txt").as_deref(), Some("mine\n"));
}

#[test]
fn nothing_is_left_of_a_write_that_did_not_happen() {
    let home = Home::new();
    let arguments = json!({"path": "a.txt", "content": "b\n"}).to_string();
    let ran = home.run(&["call", "write_file", &arguments]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(text(&home, "a.txt").as_deref(), Some("a\n"));
    let ran = home.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("nothing to undo"), "{ran:?}");
}
