//! Nothing stays behind of cases that make trouble, and nothing they showed is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Stdio};

/// Every trouble once in a bare shell and once in the agent; a thousand cases
/// are what `bisim leaks` runs by itself.
const CASES: &str = "20";

#[test]
fn trouble_in_worlds_leaves_nothing_behind_and_loses_no_finding() {
    // Other tests make temporary files of their own meanwhile.
    let temporary = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(["leaks", "--count", CASES])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output.status.code() == Some(69) {
        println!("SKIPPED: bisim leaks: {}", errors.replace('\n', " "));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}\n{errors}");
    assert!(
        said.starts_with("20 of 20 cases and 1 interrupted runs"),
        "{said}"
    );
    assert!(said.contains("20 of 20 findings told"), "{said}");
}
