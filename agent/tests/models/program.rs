//! The program as a person has it, with a model in a file.

use std::{path::Path, process::Command};

use super::{program, tiny::Tiny, tiny_model};

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(home: &Path, arguments: &[&str]) -> Ran {
    let output = Command::new("setsid")
        .arg("--wait")
        .arg(program())
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_file_is_loaded_configured_checked_and_planned_with() {
    let (dir, file) = tiny_model(&Tiny::default());
    let home = dir.path();
    let file = file.to_str().unwrap();
    let ok = |arguments: &[&str]| {
        let ran = run(home, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {} {}", ran.out, ran.err);
        ran.out
    };
    let out = ok(&["model", "load", file]);
    for part in [
        "architecture llama",
        "parameters",
        "16384 tokens of context",
        "a second",
        "with a template",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    ok(&["config", "backend", "llama", "--file", "tiny.gguf"]);
    ok(&["config", "set", "models.planner.temperature", "1.0"]);
    ok(&["config", "set", "models.planner.threads", "1"]);
    let out = ok(&["model", "check"]);
    assert!(
        out.contains("`tiny` answers") && out.contains("in the form asked for"),
        "{out}"
    );
    let out = ok(&["model", "load"]);
    assert!(out.contains("architecture llama"), "{out}");
    // The one that reads what nobody vouches for is configured apart.
    ok(&[
        "config",
        "backend",
        "llama",
        "--quarantined",
        "--model",
        "other",
        "--file",
        file,
    ]);
    let out = ok(&["model", "check"]);
    assert!(
        out.contains("planner: `tiny`") && out.contains("quarantined: `other`"),
        "{out}"
    );
    let ran = run(home, &["--help"]);
    assert!(!ran.out.contains("model-process"), "{}", ran.out);
    // A model made of chance plans, and the plan is one.
    std::fs::create_dir(home.join("proj")).unwrap();
    let out = ok(&["plan", "tidy up", "--json", "--workspace", "proj"]);
    assert!(out.contains("\"steps\""), "{out}");
}

#[test]
fn what_cannot_be_loaded_is_said_and_the_program_goes_on() {
    let (dir, file) = tiny_model(&Tiny {
        architecture: "frobnicator",
        ..Tiny::default()
    });
    let ran = run(
        dir.path(),
        &["model", "load", file.to_str().unwrap(), "/nowhere.gguf"],
    );
    assert_eq!(ran.code, Some(1), "{} {}", ran.out, ran.err);
    assert!(
        ran.out.contains("frobnicator") && ran.out.contains("/nowhere.gguf"),
        "{}",
        ran.out
    );
    let ran = run(dir.path(), &["model-process"]);
    assert_eq!(ran.code, Some(64), "{} {}", ran.out, ran.err);
}
