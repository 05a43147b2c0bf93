//! What a machine is told to lack.

use super::{code, errors, ready::can_run};
use std::process::{Command, Stdio};

#[test]
fn all_that_is_lacking_is_told_at_once_and_what_is_there_as_well() {
    if !can_run() {
        return;
    }
    // The program alone, without the extension that is built beside it, and no Python.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = place.path().join("bisim");
    std::fs::hard_link(env!("CARGO_BIN_EXE_bisim"), &program).unwrap();
    let output = Command::new(&program)
        .arg("doctor")
        .current_dir(place.path())
        .env("PATH", place.path())
        .env("HERMITCRAB_CACHE", place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = errors(&output);
    assert_eq!(code(&output), 69, "{told}");
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    for row in [
        "shim                LACKING",
        "hermes environment  LACKING",
        "worlds              ok ",
        "hermes              not tried",
        "hermitcrab          ",
    ] {
        assert!(rows.contains(row), "{row}: {rows}{told}");
    }
    assert!(
        told.contains("error: no libhermes_shim.so beside")
            && told.contains("error: no python 3.11 to 3.13 was found on PATH"),
        "{told}"
    );
}
