//! Defects of a planning tool before ours that are no plan's: its settings, its
//! records, its prompt, its set-up. The groups that are plans are in the suite
//! `hermit` and in `plans`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{io::Write as _, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

use serde_json::json;

use crate::support::home::Home;

fn deleting(home: &Home) {
    let plan = json!({"version": 1, "steps": [
        {"id": "d", "call": "delete_files", "with": {"paths": ["a.txt"]}},
    ]});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
}

/// Every file below a directory, with its permission bits.
fn modes(dir: &Path, found: &mut Vec<(String, u32)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            modes(&entry.path(), found);
        } else if kind.is_file() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            found.push((entry.path().display().to_string(), mode));
        }
    }
}

#[test]
fn hermit_16_a_section_that_is_there_in_part_drops_no_confirmation() {
    let home = Home::new();
    deleting(&home);
    let arguments = ["run", "--plan", "../plan.json", "--yes-low"];
    for config in [
        "",
        "[safety]\n",
        "[safety]\nmax_files_per_operation = 50\n",
        "[limits]\n",
    ] {
        home.configure(config);
        let ran = home.run(&arguments);
        assert_ne!(ran.code, Some(0), "{config}: {ran:?}");
        assert!(home.project().join("a.txt").exists(), "{config}: {ran:?}");
    }
    // And with what it wants held the same plan runs.
    home.configure("[safety]\nmax_files_per_operation = 50\n");
    let ran = home.run(&[&arguments[..], &["--grant", "fs.delete=."]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.project().join("a.txt").exists());
}

#[test]
fn hermit_16_records_are_their_owners_and_say_what_was_asked_and_answered() {
    let home = Home::new();
    deleting(&home);
    let ran = home.run(&["run", "--plan", "../plan.json", "--yes-low"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let mut found = Vec::new();
    modes(&home.path().join(".local"), &mut found);
    assert!(!found.is_empty());
    for (path, mode) in found {
        assert_eq!(mode & 0o077, 0, "{path} is {mode:o}");
    }
    // What was proved is said, and not what is hoped for.
    assert!(home.ledger().contains("proved "), "{}", home.ledger());
    home.ok(&["audit", "verify"]);
    let ledger = home.state("ledger.jsonl");
    let text = home.ledger();
    let (first, rest) = text.split_once('\n').unwrap();
    let forged = first.replacen("session=", "session=1", 1);
    assert_ne!(forged, first, "{first}");
    std::fs::write(&ledger, format!("{forged}\n{rest}")).unwrap();
    let ran = home.run(&["audit", "verify"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{ran:?}");
}

#[test]
fn hermit_19_a_backend_that_is_not_there_ends_the_request_and_not_the_program() {
    let home = Home::new();
    // Nobody listens on a port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    home.configure(&format!(
        "[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n"
    ));
    let ran = home.run(&["run", "sort my files", "--yes-low"]);
    assert_eq!(ran.code, Some(69), "{ran:?}");
    assert!(
        ran.err.contains("nothing was done") && !ran.err.contains("panicked"),
        "{ran:?}"
    );
    let mut child = home
        .command(&home.project(), &[])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"plan sort my files\n?\nls\n!cat a.txt\n")
        .unwrap();
    drop(keys);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    // The end of its input is an end like any other.
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("dry-run COMMAND"), "{out}{err}");
    assert!(out.ends_with("a\n"), "{out}{err}");
}

#[test]
fn hermit_19_a_flag_that_means_nothing_is_refused() {
    let home = Home::new();
    for arguments in [
        &["--frobnicate"][..],
        &["run", "--plan", "x", "--unsafe"],
        &["plan"],
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, Some(64), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn hermit_20_setting_up_changes_nothing_of_the_machine() {
    const SWITCHES: [&str; 4] = [
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/kernel/yama/ptrace_scope",
    ];
    let read = || SWITCHES.map(|path| std::fs::read_to_string(path).ok());
    let before = read();
    let home = Home::new();
    // Whether the sandbox is whole here is not what this is about.
    let _doctor = home.run(&["doctor"]);
    home.ok(&["config", "show"]);
    home.ok(&["exec", "--", "true"]);
    assert_eq!(read(), before);
    let mut names: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| ![".local", ".config", ".cache"].contains(&name.as_str()))
        .collect();
    names.sort();
    assert_eq!(names, ["proj"]);
}
