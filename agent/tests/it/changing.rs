//! Files that change while a tool looks at them: a whole result or an error in
//! the tool's own shape, and never half a write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use hermitcrab::runtime::Fate;
use serde_json::{Value, json};
use support::Bench;

/// Calls made while the file changes.
const CALLS: usize = 24;
/// Between two changes.
const PAUSE: Duration = Duration::from_micros(300);

/// Makes calls while another thread does something to the file over and over.
fn while_it_changes(
    bench: &mut Bench,
    change: impl Fn(&Path, usize) + Sync,
    mut call: impl FnMut(&mut Bench, usize),
) {
    let over = AtomicBool::new(false);
    let path = bench.workspace.join("f.txt");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !over.load(Ordering::SeqCst) {
                change(&path, round);
                std::thread::sleep(PAUSE);
                round += 1;
            }
        });
        // Ends the other thread also where a call breaks down.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 0..CALLS {
                call(bench, number);
            }
        }));
        over.store(true, Ordering::SeqCst);
        if let Err(broken) = done {
            std::panic::resume_unwind(broken);
        }
    });
}

/// One call of each file tool in turn, each with arguments of its own.
fn any_call(number: usize) -> (&'static str, Value) {
    match number % 5 {
        0 => ("read_file", json!({"path": "f.txt", "offset": 1 + number})),
        1 => (
            "search_files",
            json!({"pattern": "one", "path": "f.txt", "offset": number}),
        ),
        2 => (
            "write_file",
            json!({"path": "f.txt", "content": "mine\n".repeat(2000)}),
        ),
        3 => (
            "patch",
            json!({"mode": "replace", "path": "f.txt", "old_string": "two", "new_string": "2"}),
        ),
        _ => (
            "patch",
            json!({"mode": "patch", "patch": "*** Begin Patch\n*** Update File: f.txt\n-two\n+2\n*** End Patch"}),
        ),
    }
}

/// A result of the tool's own, or an error in its shape; nothing broke down.
fn is_whole(bench: &mut Bench, number: usize) -> String {
    let (tool, args) = any_call(number);
    let report = bench.call(tool, args);
    assert!(!matches!(report.fate, Fate::Failed(_)), "{}", report.text);
    let shown: Value = serde_json::from_str(&report.text).unwrap();
    assert!(
        report.fate == Fate::Ran || shown["error"].is_string(),
        "{tool}: {shown}"
    );
    report.text
}

/// No draft of a write is left beside it.
fn is_tidy(bench: &Bench) {
    let left: Vec<String> = std::fs::read_dir(&bench.workspace)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "f.txt")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_file_that_is_replaced_is_read_as_it_was_before_or_after() {
    let mut bench = Bench::with_files();
    bench.put("f.txt", &"x".repeat(9000));
    let replace = |path: &Path, round: usize| {
        let draft = path.with_extension("draft");
        let letter = if round.is_multiple_of(2) { "y" } else { "x" };
        std::fs::write(&draft, letter.repeat(9000)).unwrap();
        std::fs::rename(&draft, path).unwrap();
    };
    while_it_changes(&mut bench, replace, |bench, number| {
        let report = bench.call("read_file", json!({"path": "f.txt", "limit": 1 + number}));
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        let shown: Value = serde_json::from_str(&report.text).unwrap();
        let content = shown["content"].as_str().unwrap();
        assert_ne!(content.contains('x'), content.contains('y'), "{content}");
    });
}

#[test]
fn a_file_that_grows_shrinks_and_goes_away_never_breaks_a_call() {
    let mut bench = Bench::with_files();
    bench.put("f.txt", "one\n");
    let change = |path: &Path, round: usize| match round % 4 {
        0 => std::fs::write(path, "one\n".repeat(5000)).unwrap(),
        1 => std::fs::write(path, "").unwrap(),
        2 => drop(std::fs::remove_file(path)),
        _ => std::fs::write(path, "one\ntwo").unwrap(),
    };
    while_it_changes(&mut bench, change, |bench, number| {
        is_whole(bench, number);
    });
    is_tidy(&bench);
}

#[test]
fn a_file_that_becomes_a_directory_a_link_or_a_pipe_never_breaks_a_call_and_leads_nowhere() {
    let mut bench = Bench::with_files();
    let outside = bench.workspace.parent().unwrap().join("outside.txt");
    std::fs::write(&outside, "one two unseen\n").unwrap();
    bench.put("f.txt", "one\ntwo\n");
    let change = |path: &Path, round: usize| {
        // Whichever it is at the moment, and whoever was quicker.
        drop(std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path)));
        match round % 5 {
            0 => drop(std::fs::create_dir(path)),
            1 => drop(symlink(&outside, path)),
            2 => drop(rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )),
            _ => drop(std::fs::write(path, "one\ntwo\n")),
        }
    };
    while_it_changes(&mut bench, change, |bench, number| {
        let text = is_whole(bench, number);
        assert!(!text.contains("unseen"), "{text}");
    });
    assert_eq!(
        std::fs::read_to_string(&outside).unwrap(),
        "one two unseen\n"
    );
    is_tidy(&bench);
}
