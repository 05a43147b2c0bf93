//! What is kept of a command in the background where somebody else changed what it changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use hermitcrab::runtime::{CallReport, Ceilings, Fate};
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use crate::support::Bench;

const PATIENCE: Duration = Duration::from_secs(60);

fn value(report: &CallReport) -> Value {
    serde_json::from_str(&report.text).unwrap()
}

/// Everything waits for the end.
fn waits(bench: &mut Bench) {
    bench.runtime.set_ceilings(Ceilings {
        files_max: Some(10_000),
        ..Ceilings::default()
    });
}

/// Starts a command in the background and waits until it has done this.
fn has_done(bench: &mut Bench, command: &str) -> String {
    let command = format!("{command}\necho do''ne\nsleep 600");
    let started = bench.call("terminal", json!({"command": command, "background": true}));
    let id = value(&started)["session_id"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    loop {
        let polled = bench.call("process", json!({"action": "poll", "session_id": id}));
        if value(&polled)["output_preview"]
            .to_string()
            .contains("done")
        {
            return id;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", polled.text);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(bench: &mut Bench, id: &str) -> (CallReport, String) {
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    let told = value(&report)["changes"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (report, told)
}

/// Where what the command made of a file of the workspace was kept.
fn version(bench: &Bench, told: &str, name: &str) -> PathBuf {
    let begin = bench.state.join("conflicts").display().to_string();
    let place = told.split('`').find(|part| part.starts_with(&begin));
    let place = place.unwrap_or_else(|| panic!("{told}"));
    let outside = bench.workspace.join(name);
    Path::new(place).join(outside.strip_prefix("/").unwrap())
}

#[test]
fn what_nobody_else_changed_is_kept_and_the_rest_is_told_and_can_be_had() {
    let mut bench = Bench::with_files();
    for name in ["both.txt", "own.txt", "gone.txt"] {
        bench.put(name, "old\n");
    }
    waits(&mut bench);
    let id = has_done(
        &mut bench,
        "echo theirs >> both.txt; echo more >> own.txt; mkdir d; echo new > d/new.txt; rm gone.txt",
    );
    bench.put("both.txt", "mine\n");
    let (report, told) = ended(&mut bench, &id);
    assert_eq!(bench.text("both.txt").as_deref(), Some("mine\n"), "{told}");
    assert_eq!(
        bench.text("own.txt").as_deref(),
        Some("old\nmore\n"),
        "{told}"
    );
    assert_eq!(bench.text("d/new.txt").as_deref(), Some("new\n"));
    // It may have gone into what does not stand.
    assert_eq!(bench.text("gone.txt").as_deref(), Some("old\n"));
    let code = DenialCode::ChangedSinceShown;
    assert_eq!(report.fate, Fate::RanDiscarded(code), "{}", report.text);
    assert!(
        told.starts_with("kept, but for this (changed-since-shown): "),
        "{told}"
    );
    assert!(told.contains("both.txt` (by somebody else)"), "{told}");
    assert!(
        told.contains("1 names that it removed are still there"),
        "{told}"
    );
    let theirs = std::fs::read_to_string(version(&bench, &told, "both.txt"));
    assert_eq!(theirs.unwrap(), "old\ntheirs\n");
    assert_eq!((report.changes.created, report.changes.modified), (2, 1));
}

#[test]
fn where_nothing_was_put_that_is_missing_what_was_removed_goes() {
    let mut bench = Bench::with_files();
    for name in ["both.txt", "gone.txt", "d/kept.txt", "d/saved.txt"] {
        bench.put(name, "old\n");
    }
    waits(&mut bench);
    let id = has_done(&mut bench, "rm -r both.txt gone.txt d");
    bench.put("both.txt", "mine\n");
    bench.put("d/saved.txt", "mine\n");
    let (_, told) = ended(&mut bench, &id);
    let texts = ["both.txt", "gone.txt", "d/kept.txt", "d/saved.txt"].map(|name| bench.text(name));
    let all = texts.each_ref().map(Option::as_deref);
    // A directory goes with all that is in it, or not at all.
    assert_eq!(
        all,
        [Some("mine\n"), None, Some("old\n"), Some("mine\n")],
        "{told}"
    );
    assert!(!told.contains("made of"), "{told}");
}

#[test]
fn what_is_only_in_what_is_left_out_is_taken_from_nowhere() {
    let mut bench = Bench::with_files();
    for (name, text) in [("a", "a\n"), ("b", "b\n"), ("c", "c\n"), ("both", "x\n")] {
        bench.put(name, text);
    }
    waits(&mut bench);
    // What `b` held is in `both`, and what `c` held in `b`.
    let id = has_done(&mut bench, "cat b > both; cat c > b; echo new > c; rm a");
    bench.put("both", "mine\n");
    let (_, told) = ended(&mut bench, &id);
    let texts = ["a", "b", "c", "both"].map(|name| bench.text(name));
    let all = texts.each_ref().map(Option::as_deref);
    assert_eq!(
        all,
        [Some("a\n"), Some("b\n"), Some("c\n"), Some("mine\n")],
        "{told}"
    );
}

#[test]
fn what_makes_sense_only_together_goes_together() {
    let mut bench = Bench::with_files();
    for name in [
        "repo/.git/index",
        "repo/.git/HEAD",
        "repo/main.c",
        "a.db",
        "b.db",
    ] {
        bench.put(name, "old\n");
    }
    waits(&mut bench);
    let id = has_done(
        &mut bench,
        "for f in repo/.git/index repo/.git/HEAD repo/main.c a.db a.db-wal b.db; do echo new > $f; done",
    );
    bench.put("repo/.git/index", "mine\n");
    bench.put("a.db-wal", "mine\n");
    let (_, told) = ended(&mut bench, &id);
    let names = [
        "repo/.git/index",
        "repo/.git/HEAD",
        "repo/main.c",
        "a.db",
        "a.db-wal",
        "b.db",
    ];
    let texts = names.map(|name| bench.text(name));
    let all = texts.each_ref().map(Option::as_deref);
    let (mine, old, new) = (Some("mine\n"), Some("old\n"), Some("new\n"));
    assert_eq!(all, [mine, old, new, old, mine, new], "{told}");
    assert!(
        told.contains("so do 2 names that go together with that"),
        "{told}"
    );
}

#[test]
fn what_is_never_kept_takes_nothing_else_along_and_is_told() {
    let mut bench = Bench::with_files();
    bench.put("own.txt", "old\n");
    bench.put("both.txt", "old\n");
    waits(&mut bench);
    let socket = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"run/s\")'";
    let script = format!(
        "mkdir run; {socket}; echo new > own.txt; printf '#!/bin/sh\\n' > tool; chmod 4755 tool"
    );
    let id = has_done(&mut bench, &script);
    let (report, told) = ended(&mut bench, &id);
    assert_eq!(bench.text("own.txt").as_deref(), Some("new\n"), "{told}");
    assert!(bench.workspace.join("run").is_dir(), "{told}");
    for name in ["run/s", "tool"] {
        assert!(!bench.workspace.join(name).exists(), "{name}: {told}");
        let told_of = format!("`{}` (", bench.workspace.join(name).display());
        assert!(told.contains(&told_of), "{name}: {told}");
    }
    let code = DenialCode::NotRegularFile;
    assert_eq!(report.fate, Fate::RanDiscarded(code), "{}", report.text);
    assert!(
        told.starts_with("kept, but for this (not-regular-file): ")
            && told.contains("(effect-not-covered: ")
            && told.contains(" is never kept and stays as it was outside"),
        "{told}"
    );
    // For a person, without the rights it was to lend.
    let tool = version(&bench, &told, "tool");
    assert_eq!(std::fs::read_to_string(&tool).unwrap(), "#!/bin/sh\n");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&tool).unwrap());
    assert_eq!(mode & 0o7777, 0o600);

    // Beside what somebody else changed.
    let script = "rm -f run/s; mkfifo pipe; echo theirs > both.txt; echo more > own.txt";
    let id = has_done(&mut bench, script);
    bench.put("both.txt", "mine\n");
    let (report, told) = ended(&mut bench, &id);
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::ChangedSinceShown)
    );
    assert_eq!(bench.text("own.txt").as_deref(), Some("more\n"), "{told}");
    assert!(
        told.contains("both.txt` (by somebody else) changed while"),
        "{told}"
    );
    assert!(told.contains("pipe` (not-regular-file: "), "{told}");

    // Where there is nothing else, all is discarded.
    let id = has_done(&mut bench, "mkfifo pipe");
    let (_, told) = ended(&mut bench, &id);
    assert!(told.starts_with("discarded (not-regular-file): "), "{told}");
}

#[test]
fn what_somebody_saves_while_the_rest_is_asked_about_is_left_out_and_asked_about_anew() {
    let mut bench = Bench::new();
    bench.put("both.txt", "old\n");
    let id = has_done(&mut bench, "echo theirs > both.txt; echo new > new.txt");
    let path = bench.workspace.join("both.txt");
    *bench.user.meanwhile.borrow_mut() = Some(Box::new(move || {
        std::fs::write(&path, "mine\n").unwrap();
    }));
    bench.user.words.borrow_mut().extend(["once", "once"]);
    let (report, told) = ended(&mut bench, &id);
    assert_eq!(bench.text("both.txt").as_deref(), Some("mine\n"), "{told}");
    assert_eq!(bench.text("new.txt").as_deref(), Some("new\n"), "{told}");
    let shown = bench.user.shown.borrow();
    assert_eq!((report.questions.len(), shown.len()), (2, 2));
    let name = bench.workspace.join("both.txt").display().to_string();
    assert!(shown[0].contains(&name) && !shown[1].contains(&name));
    assert!(version(&bench, &told, "both.txt").is_file());
}

#[test]
fn a_no_to_the_rest_discards_it_and_what_is_left_out_is_told_all_the_same() {
    let mut bench = Bench::new();
    bench.put("both.txt", "old\n");
    let id = has_done(&mut bench, "echo theirs > both.txt; echo new > new.txt");
    bench.put("both.txt", "mine\n");
    let (report, told) = ended(&mut bench, &id);
    assert_eq!(report.fate, Fate::RanDiscarded(DenialCode::RejectedByUser));
    assert_eq!(bench.text("new.txt"), None);
    assert!(told.contains("both.txt` (by somebody else)"), "{told}");
}

#[test]
fn whose_change_it_was_is_told_where_it_is_known() {
    let mut bench = Bench::with_files();
    bench.put("both.txt", "old\n");
    waits(&mut bench);
    let waiting = has_done(&mut bench, "echo one > both.txt; echo one > one.txt");
    let other = has_done(&mut bench, "echo two > both.txt");
    ended(&mut bench, &other);
    let (_, told) = ended(&mut bench, &waiting);
    assert_eq!(bench.text("both.txt").as_deref(), Some("two\n"));
    assert_eq!(bench.text("one.txt").as_deref(), Some("one\n"));
    let whose = format!("both.txt` (by the background command {other} (echo two > both.txt");
    assert!(told.contains(&whose), "{told}");

    let waiting = has_done(&mut bench, "echo one > both.txt");
    let args = json!({"path": "both.txt", "content": "tool\n"});
    assert_eq!(bench.call("write_file", args).fate, Fate::Ran);
    let (_, told) = ended(&mut bench, &waiting);
    assert!(
        told.contains("both.txt` (by another call of this session)"),
        "{told}"
    );

    // What somebody saved on top of it is theirs.
    let waiting = has_done(&mut bench, "echo one > both.txt");
    let args = json!({"path": "both.txt", "content": "again\n"});
    assert_eq!(bench.call("write_file", args).fate, Fate::Ran);
    bench.put("both.txt", "mine\n");
    let (_, told) = ended(&mut bench, &waiting);
    assert!(told.contains("both.txt` (by somebody else)"), "{told}");
}

#[test]
fn a_command_somebody_waits_for_is_told_whose_change_it_was_and_keeps_nothing() {
    let mut bench = Bench::with_files();
    bench.put("both.txt", "old\n");
    let id = has_done(&mut bench, "(sleep 1; echo theirs > both.txt) &");
    let command = "echo own > own.txt; echo own > both.txt; sleep 3";
    let report = bench.call("terminal", json!({"command": command}));
    let code = DenialCode::ChangedSinceShown;
    assert_eq!(report.fate, Fate::RanDiscarded(code), "{}", report.text);
    let whose = format!("both.txt, by the background command {id}");
    assert!(report.text.contains(&whose), "{}", report.text);
    assert_eq!(bench.text("both.txt").as_deref(), Some("theirs\n"));
    assert_eq!(bench.text("own.txt"), None);
    ended(&mut bench, &id);
}
