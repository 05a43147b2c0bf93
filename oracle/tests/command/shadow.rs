//! A live Hermes that is watched: nothing of it may change.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{can_run, code, errors};

/// A stand-in for Hermes' module with one door, and a program that goes through it.
const DOOR: &str = r#"
import json, subprocess

def handle_function_call(name, args, task_id=None, **more):
    if name == "write_file":
        with open(args["path"], "w") as file:
            file.write(args["content"])
        return json.dumps({"bytes_written": len(args["content"])})
    done = subprocess.run(args["command"], shell=True, capture_output=True, text=True)
    args["command"] = "changed by the tool"
    return json.dumps({"output": done.stdout, "exit_code": done.returncode, "error": None})
"#;
const THROUGH: &str = r#"
import os, sys
from model_tools import handle_function_call as call

# What Hermes starts sees nothing of the mirror.
assert "HERMITCRAB_SHADOW" not in os.environ
assert "PYTHONPATH" not in os.environ, os.environ["PYTHONPATH"]
call("write_file", {"path": "a.txt", "content": "one\n"}, task_id="t")
call("terminal", {"command": "cat a.txt"}, task_id="t")
call("terminal", {"command": "echo ghp_planted5aB7cD9eF1gH3iJ5kL7mN9oP2qR"}, task_id="t")
for _ in range(300):
    # More than a socket holds that nobody reads.
    command = ": " + 2000 * "x"
    call("terminal", {"command": command}, task_id="t") if len(sys.argv) > 1 else None
sys.exit(7)
"#;

/// A Python that works; a stand-in of a version manager may be there and not.
fn python() -> Option<&'static str> {
    let names = ["python3", "python3.13", "python3.12", "python3.11"];
    names.into_iter().find(|name| {
        let tried = Command::new(name).args(["-c", "pass"]).output();
        tried.is_ok_and(|output| output.status.success())
    })
}

fn through_the_door() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["home", "work", "program"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("home/config.yaml"), "{}\n").unwrap();
    std::fs::write(folder.path().join("program/model_tools.py"), DOOR).unwrap();
    std::fs::write(folder.path().join("program/through.py"), THROUGH).unwrap();
    folder
}

#[test]
fn a_home_without_anything_of_hermes_is_refused_before_hermes_runs() {
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::remove_file(folder.path().join("home/config.yaml")).unwrap();
    // Many a project has one.
    std::fs::write(folder.path().join("home/.env"), "A=1\n").unwrap();
    for (home, told) in [
        (
            "home",
            "where Hermes has never run, start it once without the mirror",
        ),
        ("nowhere", "the home of Hermes is usually `~/.hermes`"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
            .args([
                "shadow",
                "--hermes-home",
                &at(home),
                "--workspace",
                &at("work"),
            ])
            .args(["--report", &at("report"), "--", "touch", &at("work/ran")])
            .output()
            .unwrap();
        assert_eq!(code(&output), 64, "{}", errors(&output));
        assert!(errors(&output).contains(told), "{}", errors(&output));
        assert!(!folder.path().join("work/ran").exists());
        assert!(!folder.path().join("report").exists());
    }
}

#[test]
fn a_live_hermes_is_mirrored_call_by_call_and_keeps_its_own_end() {
    if !can_run() {
        return;
    }
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args([
            "shadow",
            "--hermes-home",
            &at("home"),
            "--workspace",
            &at("work"),
        ])
        .args(["--report", &at("report"), "--finish", "10m", "--"])
        .args([python().unwrap(), &at("program/through.py")])
        .env_remove("PYTHONPATH")
        .current_dir(at("work"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(code(&output), 7, "{}", errors(&output));
    let lines = std::fs::read_to_string(at("report/shadow.jsonl")).unwrap();
    assert!(
        !lines.contains("ghp_planted5aB7cD9eF1gH3iJ5kL7mN9oP2qR"),
        "{lines}"
    );
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let became: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["became"].as_str())
        .collect();
    assert_eq!(became, ["same", "same", "same"], "{lines:?}");
    assert_eq!(lines[1]["call"], "cat a.txt");
    let summary = std::fs::read_to_string(at("report/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(
        (&summary["calls"], &summary["left_out"]),
        (&3.into(), &0.into())
    );
    assert_eq!(std::fs::read_to_string(at("work/a.txt")).unwrap(), "one\n");
}

#[test]
fn a_mirror_that_is_gone_or_dies_changes_nothing_for_hermes() {
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name);
    let hook = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shim/src/shadow");
    // One that was never there, one that hangs up on whoever comes, and one that
    // lets everybody in and hears nobody.
    let listener = std::os::unix::net::UnixListener::bind(at("hangs-up")).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let _deaf = std::os::unix::net::UnixListener::bind(at("hears-nobody")).unwrap();
    for socket in ["never-there", "hangs-up", "hears-nobody"] {
        let Some(python) = python() else {
            println!("SKIPPED: no python3 on the path");
            return;
        };
        let output = Command::new(python)
            .arg(at("program/through.py"))
            .arg("many")
            .env("PYTHONPATH", &hook)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("HERMITCRAB_SHADOW", at(socket))
            .current_dir(at("work"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(code(&output), 7, "{socket}: {}", errors(&output));
        assert_eq!(errors(&output), "", "{socket}");
        assert_eq!(std::fs::read_to_string(at("work/a.txt")).unwrap(), "one\n");
    }
}

/// What sits at the terminal: it must be one, and ^C must arrive.
const AT_TERMINAL: &str = r#"
import os, signal, sys
from model_tools import handle_function_call as call

assert all(os.isatty(number) for number in (0, 1, 2))
assert os.tcgetpgrp(0) == os.getpgrp()

def caught(*ignored):
    print("caught", flush=True)
    sys.exit(9)

signal.signal(signal.SIGINT, caught)
print("rea" + "dy", flush=True)
print("got", input(), flush=True)
call("write_file", {"path": "a.txt", "content": "one\n"}, task_id="t")
print("wait" + "ing", flush=True)
while True:
    signal.pause()
"#;

/// Who types: COMMAND..., in a terminal of its own; ends as the command does.
const TYPIST: &str = r#"
import os, pty, select, sys, time

pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen, until = b"", time.monotonic() + 300

def more():
    global seen
    ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
    try:
        piece = os.read(terminal, 4096) if ready else b""
    except OSError:
        piece = b""
    seen += piece
    return bool(piece)

def wait_for(word):
    while word not in seen:
        if not more():
            sys.exit(f"no {word!r} in {seen!r}")

wait_for(b"ready")
os.write(terminal, b"hello\n")
wait_for(b"got hello")
wait_for(b"waiting")
os.write(terminal, b"\x03")
wait_for(b"caught")
while more():
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn a_hermes_at_a_terminal_keeps_it_and_the_interrupt_and_its_end() {
    if !can_run() {
        return;
    }
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("program/terminal.py"), AT_TERMINAL).unwrap();
    // The report cannot be written: that is no reason to stop, either.
    std::fs::create_dir(at("report")).unwrap();
    std::os::unix::fs::symlink("/dev/full", at("report/shadow.jsonl")).unwrap();
    let python = python().unwrap();
    let output = Command::new(python)
        .args(["-c", TYPIST, env!("CARGO_BIN_EXE_bisim"), "shadow"])
        .args(["--hermes-home", &at("home"), "--workspace", &at("work")])
        .args(["--report", &at("report"), "--finish", "10m", "--"])
        .args([python, &at("program/terminal.py")])
        .env_remove("PYTHONPATH")
        .current_dir(at("work"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(code(&output), 9, "{}", errors(&output));
    assert_eq!(std::fs::read_to_string(at("work/a.txt")).unwrap(), "one\n");
    let summary = std::fs::read_to_string(at("report/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(
        (&summary["calls"], &summary["classes"]["same"]),
        (&1.into(), &1.into()),
        "{summary}"
    );
}

/// Goes on when it is told to, and says when it is through.
const GOES_ON: &str = r#"
from model_tools import handle_function_call as call

call("terminal", {"command": "echo one"}, task_id="t")
print("first", flush=True)
input()
for _ in range(300):
    call("write_file", {"path": "a.txt", "content": "x" * 10_000}, task_id="t")
call("write_file", {"path": "done.txt", "content": "done"}, task_id="t")
"#;

#[test]
fn a_hermes_whose_mirror_is_killed_goes_on_to_its_end() {
    if !can_run() {
        return;
    }
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("program/goes_on.py"), GOES_ON).unwrap();
    let mut mirror = Command::new(env!("CARGO_BIN_EXE_bisim"))
        .arg("shadow")
        .args(["--hermes-home", &at("home"), "--workspace", &at("work")])
        .args(["--report", &at("report"), "--"])
        .args([python().unwrap(), &at("program/goes_on.py")])
        .env_remove("PYTHONPATH")
        .current_dir(at("work"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(mirror.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert_eq!(said, "first\n");
    let mut stdin = mirror.stdin.take().unwrap();
    mirror.kill().unwrap();
    mirror.wait().unwrap();
    stdin.write_all(b"go on\n").unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while std::fs::read_to_string(at("work/done.txt")).unwrap_or_default() != "done" {
        assert!(Instant::now() < patience, "Hermes did not go on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_program_that_cannot_be_started_or_is_not_heard_of_is_told_so() {
    if !can_run() {
        return;
    }
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let shadow = |program: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
            .args(["shadow", "--hermes-home", &at("home")])
            .args(["--workspace", &at("work"), "--report", &at("report")])
            .args(["--", program])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (code(&output), errors(&output))
    };
    let (ended, said) = shadow("no-such-hermes");
    assert_eq!(ended, 64, "{said}");
    assert!(said.contains("cannot start `no-such-hermes`: "), "{said}");
    assert!(!said.contains("0 calls"), "{said}");
    assert!(!said.contains("Hermes runs"), "it never did: {said}");
    let (ended, said) = shadow("true");
    assert_eq!(ended, 0, "{said}");
    assert!(said.contains("Hermes runs as always"), "{said}");
    assert!(said.contains("no call was heard of: "), "{said}");
}

/// Makes more calls than are mirrored in a moment, and ends.
const MANY: &str = r#"
from model_tools import handle_function_call as call

for number in range(40):
    call("terminal", {"command": "echo " + str(number)}, task_id="t")
print("thr" + "ough", flush=True)
"#;

/// Who has seen enough: waits until Hermes has ended and its mirror says so, and types ^C.
const HAS_SEEN_ENOUGH: &str = r#"
import os, pty, select, sys, time

pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execv(sys.argv[1], sys.argv[1:])
seen, until, typed = b"", time.monotonic() + 300, False
while True:
    ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
    try:
        piece = os.read(terminal, 4096) if ready else b""
    except OSError:
        piece = b""
    if not piece:
        break
    seen += piece
    if not typed and b"through" in seen and b"Hermes has ended" in seen:
        os.write(terminal, b"\x03")
        typed = True
sys.stderr.write(seen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if typed else 99)
"#;

#[test]
fn calls_that_wait_once_hermes_has_ended_are_left_out_at_a_word() {
    if !can_run() {
        return;
    }
    let folder = through_the_door();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("program/many.py"), MANY).unwrap();
    let python = python().unwrap();
    let output = Command::new(python)
        .args(["-c", HAS_SEEN_ENOUGH, env!("CARGO_BIN_EXE_bisim"), "shadow"])
        .args(["--hermes-home", &at("home"), "--workspace", &at("work")])
        .args(["--report", &at("report"), "--finish", "10m", "--"])
        .args([python, &at("program/many.py")])
        .env_remove("PYTHONPATH")
        .current_dir(at("work"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let summary = std::fs::read_to_string(at("report/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(count("calls") + count("left_out"), 40, "{summary}");
    assert!(count("left_out") > 0, "{}", errors(&output));
}
