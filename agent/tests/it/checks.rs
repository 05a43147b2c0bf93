//! Checks by a program of the language: run confined after a write, with
//! nothing kept and nobody asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::PermissionsExt as _;

use hermitcrab::runtime::Fate;
use serde_json::{Value, json};
use support::Bench;

/// Stands in for the real one: it finds fault with `broken`, and leaves a file.
const NODE: &str = "#!/bin/sh\n[ \"$1\" = --check ] || exit 3\necho x > left-behind\n\
                    grep -q broken \"$2\" || exit 0\necho \"$2:1\"\necho 'SyntaxError: broken'\nexit 1\n";

fn bench() -> Bench {
    let mut bench = Bench::with_files();
    bench.put("bin/node", NODE);
    let node = bench.workspace.join("bin/node");
    std::fs::set_permissions(node, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = "export PATH=\"$PWD/bin:$PATH\"";
    let report = bench.call("terminal", json!({"command": command}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    bench
}

fn lint(bench: &mut Bench, tool: &str, args: Value) -> Value {
    let report = bench.call(tool, args);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.questions.is_empty(), "{:?}", report.questions);
    let result: Value = serde_json::from_str(&report.text).unwrap();
    result["lint"].clone()
}

#[test]
fn a_script_is_checked_by_its_program_and_nothing_of_the_check_is_kept() {
    let mut bench = bench();
    let path = bench
        .workspace
        .join("it's.js")
        .to_string_lossy()
        .into_owned();
    // A program looks at the file, whose earlier content is gone by then: what it
    // says the second time is what it said the first time, as it is in Hermes.
    let problem = json!({
        "status": "error",
        "output": format!("{path}:1\nSyntaxError: broken"),
        "message": "Pre-existing lint errors \u{2014} this edit didn't introduce new ones but the file is still broken.",
    });
    let fine = json!({"status": "ok", "output": ""});
    let write = |text: &str| json!({"path": "it's.js", "content": text});
    assert_eq!(lint(&mut bench, "write_file", write("let a = 1;\n")), fine);
    assert_eq!(lint(&mut bench, "write_file", write("broken\n")), problem);
    let patch = json!({"mode": "replace", "path": "it's.js", "old_string": "broken", "new_string": "mended"});
    assert_eq!(lint(&mut bench, "patch", patch), fine);
    let several = "*** Begin Patch\n*** Update File: it's.js\n-mended\n+broken\n*** End Patch";
    let lints = lint(
        &mut bench,
        "patch",
        json!({"mode": "patch", "patch": several}),
    );
    assert_eq!(
        lints["it's.js"],
        json!({"status": "error", "output": "it's.js:1\nSyntaxError: broken"})
    );
    assert_eq!(bench.text("left-behind"), None);
}

/// Takes the right to run programs away.
fn without_programs(bench: &mut Bench) {
    let first = bench.runtime.first_agent();
    for grant in bench.runtime.held_by(first) {
        let words = bench.runtime.grants_in_words(first);
        let runs = words
            .iter()
            .any(|(id, words)| *id == grant && words.contains("proc.exec"));
        if runs {
            bench.runtime.revoke(grant).unwrap();
        }
    }
}

#[test]
fn without_the_right_to_run_programs_no_check_is_made() {
    let mut bench = bench();
    without_programs(&mut bench);
    let args = json!({"path": "a.js", "content": "broken\n"});
    assert_eq!(
        lint(&mut bench, "write_file", args),
        json!({"status": "skipped", "message": "node not available"})
    );
}

#[test]
fn python_says_what_is_wrong_with_python_and_runs_nothing_of_it() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        println!("SKIPPED: there is no /usr/bin/python3");
        return;
    }
    let mut bench = Bench::with_files();
    let write = |text: &str| json!({"path": "m.py", "content": text});
    let wrong = |what: &str| json!({"status": "error", "output": what});
    let fine = json!({"status": "ok", "output": ""});
    let marks = format!("open({:?}, 'w')\n", bench.workspace.join("left-behind"));
    let unfinished = format!("{marks}if True\n    pass\n");
    assert_eq!(
        lint(&mut bench, "write_file", write(&unfinished)),
        wrong("SyntaxError: expected ':' (line 2, column 8)")
    );
    assert_eq!(lint(&mut bench, "write_file", write(&marks)), fine);
    assert_eq!(bench.text("left-behind"), None);
    // Where no program may look, the tokens decide, and know less.
    without_programs(&mut bench);
    assert_eq!(lint(&mut bench, "write_file", write(&unfinished)), fine);
    assert_eq!(
        lint(&mut bench, "write_file", write("x = (\n")),
        wrong("SyntaxError: '(' was never closed (line 1, column 5)")
    );
}
