//! The end of the process or of the power at every point of every write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use hermitcrab::{
    audit::{Ledger, Opened, Tail},
    runtime::{GrantWords, Runtime},
};
use hermitcrab_core::{
    audit::{Head, Record},
    outcome::DenialCode,
    rules::Isolation,
    session::{Asking, Event, Session, SessionConfig},
    time::Instant,
};
use serde_json::json;
use support::{
    ManualClock, ScriptedUser,
    plug::{Plug, until_pulled},
};

pub fn records(bytes: &[u8]) -> Vec<String> {
    String::from_utf8(bytes.to_vec())
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Opens what a crash left, as the next start does. It always can, and it
/// removes nothing that was waited for.
fn reopen(left: &[u8], durable: &[u8], what: &str) -> Vec<String> {
    let (disk, opened, _) = open_left(left, what);
    let kept = disk.borrow().written.clone();
    assert!(
        kept.starts_with(durable),
        "{what}: a committed record is gone"
    );
    match opened.removed {
        Tail::Whole => assert_eq!(kept, left, "{what}"),
        Tail::CutOff { bytes } => {
            assert_eq!(kept.len() as u64 + bytes, left.len() as u64, "{what}");
        }
    }
    records(&kept)
}

fn open_left(left: &[u8], what: &str) -> (Plug, Opened, Ledger) {
    let disk = Plug::holding(left, 1 << 20, None);
    let (ledger, opened) = Ledger::on(Box::new(disk.clone()), Path::new("left"))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    (disk, opened, ledger)
}

/// After a crash the ledger goes on, and stays one chain.
fn goes_on(left: &[u8], what: &str) {
    let (disk, opened, mut ledger) = open_left(left, what);
    let (_, more) = session(opened.head);
    ledger.append(&more).unwrap();
    let left = disk.borrow().written.clone();
    let (_, again, _) = open_left(&left, what);
    assert_eq!(again.removed, Tail::Whole, "{what}");
    assert_eq!(
        again.head.next,
        opened.head.next + more.len() as u64,
        "{what}"
    );
}

fn session(ledger: Head) -> (Session, Vec<Record>) {
    Session::open(SessionConfig {
        id: 9,
        hash: hermitcrab::digest::sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Prompt,
        ledger,
        opened_at: Instant::BOOT,
    })
}

/// What the agent does until the plug is pulled: a file made, changed, one
/// refused, one on a yes, and the end.
fn work(disk: &Plug, workspace: &Path, state: &Path) {
    let ledger = Ledger::on(Box::new(disk.clone()), Path::new("plugged")).unwrap();
    let user = ScriptedUser::default();
    user.words.borrow_mut().extend(["deny", "once"]);
    let mut runtime = Runtime::open_on(
        support::config(workspace.to_owned(), state.to_owned()),
        ledger,
        Box::new(user),
        Box::new(ManualClock::default()),
    )
    .unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let place = workspace.join("held").to_string_lossy().into_owned();
    for verb in ["fs.create", "fs.modify"] {
        runtime
            .grant(first, &GrantWords::new(verb, &place))
            .unwrap();
    }
    let mut call = |tool: &str, args: serde_json::Value| {
        runtime.call(first, tool, &args);
    };
    call(
        "write_file",
        json!({"path": "held/made.txt", "content": "one\n"}),
    );
    call(
        "write_file",
        json!({"path": "held/made.txt", "content": "two\n"}),
    );
    call(
        "write_file",
        json!({"path": "denied.txt", "content": "no\n"}),
    );
    call(
        "write_file",
        json!({"path": "asked.txt", "content": "yes\n"}),
    );
    runtime.end_session().unwrap();
}

fn files_below(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.insert(entry.file_name().into_string().unwrap());
        }
    }
    found
}

/// Bytes between two points of an append: small enough for more than a
/// thousand points in all.
const STRIDE: usize = 9;

#[test]
fn no_effect_without_its_intent_wherever_the_agent_dies() {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let mut points = 0;
    let mut with_effect = 0;
    for pull_at in 1.. {
        let workspace = root.join(format!("w{pull_at}"));
        std::fs::create_dir_all(workspace.join("held")).unwrap();
        let disk = Plug::holding(b"", STRIDE, Some(pull_at));
        let ended = until_pulled(|| work(&disk, &workspace, &root.join("state")));
        let made = files_below(&workspace);
        assert!(!made.contains("denied.txt"));
        with_effect += usize::from(!made.is_empty());
        for (which, left) in disk.left().iter().enumerate() {
            let what = format!("point {pull_at}, left {which}");
            let kept = reopen(left, &disk.durable(), &what);
            for file in made.iter().filter(|file| !file.starts_with('.')) {
                let announced = kept
                    .iter()
                    .any(|line| line.contains("\"kind\":\"intent\"") && line.contains(file));
                assert!(announced, "{what}: `{file}` was made without an intent");
            }
        }
        std::fs::remove_dir_all(&workspace).unwrap();
        if ended {
            assert_eq!(made, ["made.txt", "asked.txt"].map(str::to_owned).into());
            break;
        }
        points += 1;
    }
    println!("{points} points, {with_effect} with an effect");
    assert!(points >= 1000, "only {points} points");
    assert!(
        with_effect > 100,
        "only {with_effect} points with an effect"
    );
}

#[test]
fn every_byte_of_the_ledger_is_a_safe_place_to_die() {
    let (mut session, opening) = session(Head::EMPTY);
    let mut batches = vec![opening];
    for number in 0..2 {
        let mut step = |event| session.step(Instant::BOOT, event).into_parts().records;
        let mut batch = step(Event::Note(format!("note {number}")));
        batch.extend(step(Event::Note("é\u{1F600} \"quoted\"".into())));
        batches.push(batch);
        batches.push(step(Event::Revoke(support::some_grant_id())));
    }
    batches.push(session.step(Instant::BOOT, Event::End).into_parts().records);
    let run = |disk: &Plug| {
        let (mut ledger, _) = Ledger::on(Box::new(disk.clone()), Path::new("plugged")).unwrap();
        for batch in &batches {
            ledger.append(batch).unwrap();
        }
    };
    let mut points = 0;
    for pull_at in 1.. {
        let disk = Plug::holding(b"", 1, Some(pull_at));
        let ended = until_pulled(|| run(&disk));
        for (which, left) in disk.left().iter().enumerate() {
            let what = format!("point {pull_at}, left {which}");
            reopen(left, &disk.durable(), &what);
            if pull_at % 41 == 0 {
                goes_on(left, &what);
                // The next start can die in the middle of cleaning up, too.
                for second in 1..=3 {
                    let cleaning = Plug::holding(left, 1, Some(second));
                    until_pulled(|| {
                        drop(Ledger::on(Box::new(cleaning.clone()), Path::new("left")).unwrap());
                    });
                    for left in cleaning.left() {
                        reopen(
                            &left,
                            &disk.durable(),
                            &format!("{what}, cleaning {second}"),
                        );
                    }
                }
            }
        }
        if ended {
            break;
        }
        points += 1;
    }
    println!("{points} points");
    assert!(points >= 1000, "only {points} points");
}

/// Starts the program and kills it after a while, many times over.
#[test]
fn the_program_killed_at_any_time_leaves_a_ledger_that_holds() {
    const ROUNDS: u32 = 25;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let workspace = root.join("proj");
    std::fs::create_dir(&workspace).unwrap();
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(arguments)
            .current_dir(&workspace)
            .env_clear()
            .env("HOME", &root)
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let state: PathBuf = root.join(".local/state/hermitcrab");
    // How long one takes here, to spread the kills over all of it.
    let started = std::time::Instant::now();
    let first = json!({"path": "first.txt", "content": "x"}).to_string();
    let status = program(&["call", "--grant", "fs.create=.", "write_file", &first])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let whole = started.elapsed() + Duration::from_millis(5);
    let (mut killed, mut finished) = (0, 0);
    for round in 0..ROUNDS {
        let name = format!("made{round}.txt");
        let args = json!({"path": name, "content": "x"}).to_string();
        let mut child = program(&["call", "--grant", "fs.create=.", "write_file", &args])
            .spawn()
            .unwrap();
        std::thread::sleep(whole * round / ROUNDS);
        child.kill().unwrap();
        let done = child.wait().unwrap().success();
        killed += u32::from(!done);
        finished += u32::from(done);
        let mut intents = String::new();
        let mut outcomes = 0;
        if state.join(hermitcrab::audit::FILE_NAME).exists() {
            hermitcrab::audit::verify(&state).unwrap_or_else(|error| panic!("{round}: {error}"));
            let path = state.join(hermitcrab::audit::FILE_NAME);
            let whole = std::fs::read_to_string(path).unwrap();
            for line in whole.lines() {
                if line.contains("\"kind\":\"intent\"") {
                    intents.push_str(line);
                }
                outcomes += usize::from(line.contains("\"kind\":\"outcome\""));
            }
        }
        if workspace.join(&name).exists() {
            assert!(intents.contains(&name), "{name} was made without an intent");
        }
        if done {
            assert!(outcomes > 0 && intents.contains(&name), "{name} was lost");
        }
    }
    println!("{killed} killed, {finished} finished before");
    assert!(killed > 0, "nothing was killed");
    let status = program(&[
        "call",
        "--grant",
        "fs.create=.",
        "write_file",
        &json!({"path": "last.txt", "content": "x"}).to_string(),
    ])
    .status()
    .unwrap();
    assert!(status.success(), "the ledger is continued: {status}");
    assert_eq!(
        program(&["audit", "verify"]).status().unwrap().code(),
        Some(0)
    );
}

/// A disk that fails once is not written to again, and nothing happens on it.
#[test]
fn a_full_disk_stops_the_effects_not_the_ledger() {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("w/held")).unwrap();
    let disk = support::Filling::of(6000);
    let ledger = Ledger::on(Box::new(disk.clone()), Path::new("filling")).unwrap();
    let mut runtime = Runtime::open_on(
        support::config(root.join("w"), root.join("state")),
        ledger,
        Box::new(ScriptedUser::default()),
        Box::new(ManualClock::default()),
    )
    .unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let place = root.join("w").to_string_lossy().into_owned();
    runtime
        .grant(first, &GrantWords::new("fs.create", &place))
        .unwrap();
    let mut made = 0;
    for number in 0..20 {
        let args = json!({"path": format!("f{number}.txt"), "content": "x"});
        let report = runtime.call(first, "write_file", &args);
        let there = root.join(format!("w/f{number}.txt")).exists();
        let ran = report.fate == hermitcrab::runtime::Fate::Ran;
        // The outcome of the last one may not have fitted any more.
        assert!(there || !ran, "{report:?}");
        let refused = hermitcrab::runtime::Fate::Refused(DenialCode::LedgerUnwritable);
        assert!(there || report.fate == refused, "{report:?}");
        made += usize::from(there);
    }
    assert!((1..20).contains(&made), "{made}");
    let refused = runtime.revoke(support::some_grant_id()).unwrap_err();
    assert_eq!(
        refused.code(),
        DenialCode::LedgerUnwritable,
        "nothing can be recorded, so nothing is done"
    );
    // And why it could not be then, however long ago that was.
    let told = refused.to_string();
    assert!(
        told.contains("failed before") && told.contains("has no room"),
        "{told}"
    );
    let bytes = disk.bytes();
    let kept = reopen(&bytes, b"", "after the disk was full");
    goes_on(&bytes, "after the disk was full");
    let intents = kept
        .iter()
        .filter(|line| line.contains("\"kind\":\"intent\""))
        .count();
    assert!(intents >= made, "{intents} intents, {made} files");
}

/// Whether programs can be watched here.
fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "true"]);
    strace.stderr(Stdio::null());
    strace.status().is_ok_and(|status| status.success())
}

/// The calls of a call that make names, move them or wait for the disk, in order.
fn calls_of(state: &Path, workspace: &Path, tool: &str, args: &serde_json::Value) -> Vec<String> {
    let trace = workspace.with_extension("trace");
    let status = Command::new("strace")
        .args(["-f", "-y", "-s", "0", "-o"])
        .arg(&trace)
        .args([
            "-e",
            "trace=openat,mkdir,mkdirat,renameat2,fsync,fdatasync",
            "--",
        ])
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["call", "--grant", "fs.create=.", "--state-dir"])
        .arg(state)
        .args([tool, &args.to_string()])
        .current_dir(workspace)
        .env("HOME", workspace.with_extension("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let seen = std::fs::read_to_string(&trace).unwrap();
    seen.lines()
        .filter(|line| !line.contains(" = -1 "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_names_of_ledger_and_journal_are_on_the_disk_before_anything_counts_on_them() {
    if !can_trace() {
        println!("SKIPPED: no strace that can trace");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let workspace = root.join("proj");
    std::fs::create_dir(&workspace).unwrap();
    // Its parent is made on the way.
    let state = root.join("kept/state");
    let calls = calls_of(
        &state,
        &workspace,
        "terminal",
        &json!({"command": "echo x > made"}),
    );
    assert!(workspace.join("made").exists());
    let place = |what: &str, from: usize, is_it: &dyn Fn(&str) -> bool| {
        let found = calls.iter().skip(from).position(|call| is_it(call));
        from + found.unwrap_or_else(|| panic!("{what}: {calls:#?}"))
    };
    let is_sync_of = |dir: &Path| {
        let end = format!("<{}>", dir.display());
        move |call: &str| call.contains(" fsync(") && call.contains(&end)
    };
    let parent = place(
        "the parent is waited for",
        0,
        &is_sync_of(&root.join("kept")),
    );
    let made = place("the ledger is made", parent, &|call| {
        call.contains("openat(") && call.contains("ledger.jsonl>")
    });
    let named = place("its name is waited for", made, &is_sync_of(&state));
    let record = place("a record is waited for", 0, &|call| {
        call.contains("fdatasync(") && call.contains("ledger.jsonl")
    });
    assert!(named < record, "{calls:#?}");
    let journal = state.join("journal");
    let entry = place("an entry is waited for", record, &is_sync_of(&journal));
    let synced = place("its name is waited for", record, &is_sync_of(&state));
    let moved = place("a file is put in place", record, &|call| {
        call.contains("renameat2(") && call.contains(&format!("<{}>", workspace.display()))
    });
    assert!(synced < moved && entry < moved, "{calls:#?}");
}
