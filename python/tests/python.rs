//! The module as Python programs use it, in a real interpreter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]
use std::path::{Path, PathBuf};
use std::process::Command;

/// An interpreter of 3.11 or later: that of the Hermes venv, as for the tests
/// of the oracle, or the machine's.
fn python() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = set("HERMITCRAB_CACHE").or_else(|| {
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        cache.map(|cache| cache.join("hermitcrab"))
    });
    let venvs = cache
        .and_then(|cache| std::fs::read_dir(cache.join("hermes")).ok())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("venv"));
    set("HERMITCRAB_TEST_VENV")
        .into_iter()
        .chain(venvs)
        .map(|venv| venv.join("bin/python"))
        .chain([PathBuf::from("python3")])
        .find(|python| {
            let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
            Command::new(python)
                .args(["-c", new_enough])
                .output()
                .is_ok_and(|ran| ran.status.success())
        })
}

/// Runs one function of `caps.py` in an empty directory and says what it printed.
fn runs(case: &str) {
    let Some(python) = python() else {
        println!("SKIPPED: no Python of version 3.11 or later");
        return;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let test = std::env::current_exe().unwrap();
    let extension = test.parent().unwrap().join("libhermitcrab_caps.so");
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(python)
        .args(["-I", "-B"])
        .arg(package.join("tests/caps.py"))
        .arg(extension)
        .arg(case)
        .arg(folder.path())
        .arg(package.join("../vectors/suites/path-security.json"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let complained = String::from_utf8_lossy(&ran.stderr);
    print!("{said}");
    assert!(ran.status.success(), "{case}: {said}{complained}");
    assert!(said.contains("held"), "{case} checked nothing");
}

#[test]
fn the_check_answers_every_recorded_case_as_hermes_does() {
    runs("recorded_cases");
}

#[test]
fn a_link_swapped_after_the_check_passes_the_check_and_not_the_use() {
    runs("swap_after_check");
}

#[test]
fn a_path_made_to_be_held_passes_the_check_and_is_held_at_the_use() {
    runs("held_path");
}

#[test]
fn no_race_of_swapped_links_ever_opens_what_lies_outside() {
    runs("swap_race");
}

#[test]
fn every_operation_works_below_the_directory_and_nowhere_else() {
    runs("operations");
}

#[test]
fn rights_that_are_not_held_are_refused_and_never_grow() {
    runs("rights");
}

#[test]
fn a_grant_ends_by_uses_by_deadline_and_by_revocation() {
    runs("endings");
}

#[test]
fn grants_that_are_dropped_make_room_for_others() {
    runs("many_grants");
}

#[test]
fn a_forked_process_holds_nothing() {
    runs("forked");
}
