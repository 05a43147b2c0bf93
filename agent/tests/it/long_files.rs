//! Files that are longer than anybody holds in memory: searched, and read by the page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    sync::mpsc,
    time::Duration,
};

use hermitcrab::{
    ports::{BufferPort, ProgressPort},
    runtime::{Fate, GrantWords},
};
use hermitcrab_core::{grant::AgentId, outcome::DenialCode};
use serde_json::{Value, json};

use crate::support::{Bench, ManualClock};

/// Lines of the long file: of 8 digits and an end each, and more than 64 MiB.
const LINES: u64 = 7_600_000;

fn put_log(bench: &Bench, name: &str) -> u64 {
    let mut log = BufWriter::new(File::create(bench.workspace.join(name)).unwrap());
    for number in 1..=LINES {
        writeln!(log, "{number:08}").unwrap();
    }
    log.write_all(b"the needle\n").unwrap();
    drop(log);
    bench.workspace.join(name).metadata().unwrap().len()
}

fn called(bench: &mut Bench, tool: &str, args: Value) -> Value {
    let report = bench.call(tool, args);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let told = report.text.split("\n\n[Hint").next().unwrap();
    serde_json::from_str(told).unwrap()
}

/// The most memory this process ever had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

#[test]
fn a_long_file_is_searched_and_read_by_the_page_in_little_memory() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "a needle before\n");
    bench.put("z.txt", "a needle behind\n");
    let bytes = put_log(&bench, "log.txt");
    assert!(bytes > 64 << 20);
    let before = peak();
    let part = json!({"path": "log.txt", "offset": 5_000_000, "limit": 2});
    assert_eq!(
        called(&mut bench, "read_file", part),
        json!({
            "content": "5000000|05000000\n5000001|05000001\n5000002|", "total_lines": LINES + 1,
            "file_size": bytes, "truncated": true,
            "hint": format!("Use offset=5000002 to continue reading (showing 5000000-5000001 of {} lines)", LINES + 1),
            "is_binary": false, "is_image": false,
        })
    );
    let last = json!({"path": "log.txt", "offset": LINES});
    let last = called(&mut bench, "read_file", last);
    let content = format!(
        "{LINES}|{LINES:08}\n{}|the needle\n{}|",
        LINES + 1,
        LINES + 2
    );
    assert_eq!(
        (&last["content"], &last["truncated"]),
        (&json!(content), &json!(false))
    );
    // Files before and after it are searched as well, and each is told once.
    let found = called(&mut bench, "search_files", json!({"pattern": "needle"}));
    let mut matches: Vec<(&str, u64)> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            (
                found["path"].as_str().unwrap(),
                found["line"].as_u64().unwrap(),
            )
        })
        .collect();
    matches.sort_unstable();
    assert_eq!(
        matches,
        [("./a.txt", 1), ("./log.txt", LINES + 1), ("./z.txt", 1)]
    );
    let args = json!({"pattern": "07500000", "path": "log.txt", "context": 1});
    let around = called(&mut bench, "search_files", args);
    assert_eq!(
        around["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| &found["content"])
            .collect::<Vec<_>>(),
        ["07499999", "07500000", "07500001"]
    );
    let args = json!({"pattern": "00$", "output_mode": "count", "file_glob": "*.txt"});
    let counts = called(&mut bench, "search_files", args);
    assert_eq!(counts["counts"]["./log.txt"], LINES / 100);
    let more = peak() - before;
    assert!(more < 48 << 20, "{more} bytes");
}

#[test]
fn a_long_file_is_written_anew_in_little_memory() {
    let mut bench = Bench::with_files();
    bench.grant("fs.*", ".");
    let bytes = put_log(&bench, "log.txt");
    let log = File::options()
        .append(true)
        .open(bench.workspace.join("log.txt"))
        .unwrap();
    log.set_len(bytes + (300 << 20)).unwrap();
    let before = peak();
    let args = json!({"path": "log.txt", "content": "short\n"});
    assert_eq!(called(&mut bench, "write_file", args)["bytes_written"], 6);
    assert_eq!(bench.text("log.txt").as_deref(), Some("short\n"));
    let more = peak() - before;
    assert!(more < 32 << 20, "{more} bytes");
}

#[test]
fn a_part_of_a_long_file_is_changed_where_it_is_quoted_to_the_letter() {
    let mut bench = Bench::with_files();
    bench.grant("fs.*", ".");
    bench.put("b.txt", "b\n");
    put_log(&bench, "log.txt");
    let place = bench.workspace.join("log.txt");
    let replace = |old: &str, new: &str, all: bool| {
        json!({
            "path": "log.txt", "old_string": old, "new_string": new, "replace_all": all,
        })
    };
    let done = called(&mut bench, "patch", replace("05000000\n", "five\n", false));
    let name = place.display();
    assert_eq!(
        done["diff"],
        format!(
            "--- a/{name}\n+++ b/{name}\n@@ -4999997,7 +4999997,7 @@\n 04999997\n 04999998\n 04999999\n-05000000\n+five\n \
             05000001\n 05000002\n 05000003\n"
        )
    );
    let patch = "*** Begin Patch\n*** Update File: log.txt\n@@\n 06999999\n-07000000\n+seven\n*** Move File: b.txt -> c.txt\n*** End Patch";
    let done = called(
        &mut bench,
        "patch",
        json!({"mode": "patch", "patch": patch}),
    );
    assert!(
        done["diff"]
            .as_str()
            .unwrap()
            .contains(" 06999999\n-07000000\n+seven\n"),
        "{done}"
    );
    let text = std::fs::read_to_string(&place).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.nth(4_999_999), Some("five"));
    assert_eq!(lines.nth(1_999_999), Some("seven"));
    assert_eq!(lines.last(), Some("the needle"));
    // What is not there to the letter, at several places, or at too many is told and changes nothing.
    for (args, told) in [
        (replace("the  needle", "x", false), "quoted to the letter"),
        (replace("0123", "x", false), "Provide more context"),
        (replace("0", "x", true), "more than is replaced at once"),
    ] {
        let report = bench.call("patch", args);
        assert_eq!(report.fate, Fate::ToolError, "{}", report.text);
        assert!(report.text.contains(told), "{}", report.text);
    }
    assert!(std::fs::read_to_string(&place).unwrap() == text);
    // Changes that are far apart are told by where they are.
    let far = called(&mut bench, "patch", replace("0000\n", "x\n", true));
    let told = far["diff"].as_str().unwrap();
    assert!(told.contains("too long to be compared"), "{told}");
}

#[test]
fn what_is_longer_than_can_be_changed_in_parts_is_refused_and_says_what_does_it() {
    let mut bench = Bench::with_files();
    bench.grant("fs.*", ".");
    let place = bench.workspace.join("log.txt");
    let log = File::create(&place).unwrap();
    log.set_len((256 << 20) + 1).unwrap();
    let patch = "*** Begin Patch\n*** Update File: log.txt\n@@\n-a\n+b\n*** End Patch";
    for args in [
        json!({"path": "log.txt", "old_string": "a", "new_string": "b"}),
        json!({"mode": "patch", "patch": patch}),
    ] {
        let report = bench.call("patch", args);
        assert_ne!(report.fate, Fate::Ran, "{}", report.text);
        assert!(
            report
                .text
                .contains("`patch` changes what is not longer than 256 MiB"),
            "{}",
            report.text
        );
    }
    assert_eq!(place.metadata().unwrap().len(), (256 << 20) + 1);
}

#[test]
fn one_use_of_what_is_held_is_enough_for_a_long_file() {
    let mut bench = Bench::new();
    let other = bench.workspace.parent().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    let place = other.join("log.txt");
    std::fs::write(&place, "text\n".repeat(1000)).unwrap();
    let log = File::options().append(true).open(&place).unwrap();
    log.set_len(65 << 20).unwrap();
    let words = GrantWords {
        uses: Some(1),
        ..GrantWords::new("fs.read", other.to_str().unwrap())
    };
    let first = bench.runtime.first_agent();
    bench.runtime.grant(first, &words).unwrap();
    let args = json!({"path": place.to_str().unwrap(), "limit": 1});
    let read = called(&mut bench, "read_file", args.clone());
    assert_eq!(
        (&read["content"], &read["total_lines"]),
        (&json!("1|text\n2|"), &json!(1000))
    );
    let again = bench.call("read_file", args);
    assert_eq!(
        again.fate,
        Fate::AskedRefused(DenialCode::RejectedByUser),
        "{}",
        again.text
    );
}

/// Somebody for whom a minute passes whenever it is asked whether something is still wanted.
struct Slow(ManualClock);

impl ProgressPort for Slow {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        self.0.set(100_000);
        true
    }
}

#[test]
fn a_search_that_takes_too_long_tells_what_it_has_found_and_why_it_ended() {
    let mut bench = Bench::with_files();
    put_log(&bench, "log.txt");
    bench
        .runtime
        .show_progress(Box::new(Slow(bench.clock.clone())));
    let found = called(&mut bench, "search_files", json!({"pattern": "^00000001$"}));
    assert_eq!(found["matches"][0]["line"], 1, "{found}");
    assert_eq!(
        (&found["truncated"], &found["limit_reason"]),
        (&json!(true), &json!("search_timeout")),
        "{found}"
    );
}

/// Says when it is asked whether something is still wanted, and what the answer is.
struct Asked(mpsc::Sender<()>, bool);

impl ProgressPort for Asked {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        // Whoever listened has heard enough.
        let _told = self.0.send(());
        self.1
    }
}

/// A file of text that nobody reads to its end in a test's time.
fn put_endless(bench: &Bench) {
    bench.put("endless.txt", &"text\n".repeat(1000));
    let file = File::options()
        .append(true)
        .open(bench.workspace.join("endless.txt"));
    file.unwrap().set_len(1 << 42).unwrap();
}

#[test]
fn reading_a_long_file_ends_with_the_grant_it_rests_on() {
    let mut bench = Bench::with_files();
    put_endless(&bench);
    let (asked, is_asked) = mpsc::channel();
    bench.runtime.show_progress(Box::new(Asked(asked, true)));
    let remote = bench.runtime.remote();
    let held = bench.runtime.grants_in_words(bench.runtime.first_agent());
    let other = std::thread::spawn(move || {
        is_asked.recv_timeout(Duration::from_secs(60)).unwrap();
        for (grant, words) in held {
            if words.starts_with("fs.") {
                remote.revoke_and_drain(grant).unwrap();
            }
        }
    });
    let report = bench.call("read_file", json!({"path": "endless.txt"}));
    other.join().unwrap();
    assert_eq!(
        report.fate,
        Fate::Refused(DenialCode::Revoked),
        "{}",
        report.text
    );
    assert!(!report.text.contains("text"), "{}", report.text);
    hermitcrab::audit::verify(&bench.state).unwrap();
}

#[test]
fn reading_a_long_file_ends_when_it_is_not_wanted_any_more() {
    let mut bench = Bench::with_files();
    put_endless(&bench);
    let (asked, is_asked) = mpsc::channel();
    bench.runtime.show_progress(Box::new(Asked(asked, false)));
    let report = bench.call("read_file", json!({"path": "endless.txt"}));
    assert_eq!(
        report.fate,
        Fate::Refused(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    drop(is_asked);
}

#[test]
fn what_is_no_text_is_told_without_reading_all_of_it() {
    let mut bench = Bench::with_files();
    // What has holes is no text to a search either.
    put_endless(&bench);
    bench.put("holes.txt", &"\0".repeat(1000));
    let holes = File::options()
        .append(true)
        .open(bench.workspace.join("holes.txt"));
    holes.unwrap().set_len(1 << 42).unwrap();
    let report = bench.call("read_file", json!({"path": "holes.txt"}));
    assert!(report.text.contains("Binary file"), "{}", report.text);
    assert!(
        report
            .text
            .contains(&format!("\"file_size\": {}", 1_u64 << 42)),
        "{}",
        report.text
    );
    let found = called(&mut bench, "search_files", json!({"pattern": "text"}));
    assert_eq!(found, json!({"total_count": 0}));
}

/// An editor that shows this text of every file.
struct Shows(String);

impl BufferPort for Shows {
    fn text(&mut self, _path: &str) -> Option<String> {
        Some(self.0.clone())
    }
}

#[test]
fn what_an_editor_holds_of_a_long_file_is_compared_and_line_ends_are_its_own() {
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
    let text = |end: &str| format!("{line}{end}").repeat((65 << 20) / 64);
    let plain = text("\n");
    for (on_disk, shown, is_saved) in [
        (&plain, plain.clone(), true),
        (&text("\r\n"), plain.clone(), true),
        (&plain, text("\r\n"), true),
        (&plain, format!("{plain}typed"), false),
        (&text("\r\n"), plain.replacen('0', "typed", 1), false),
    ] {
        let mut bench = Bench::with_files();
        bench.put("long.txt", on_disk);
        bench.runtime.read_through(Box::new(Shows(shown)));
        let agent = bench.runtime.first_agent();
        let words = GrantWords::new("fs.*", &bench.workspace.to_string_lossy());
        bench.runtime.grant(agent, &words).unwrap();
        let report = bench.call(
            "write_file",
            json!({"path": "long.txt", "content": "short\n"}),
        );
        // Its lines go on ending as they did.
        let is_written = bench.text("long.txt").unwrap().trim_end() == "short";
        assert_eq!(is_written, is_saved, "{}", report.text);
        let is_told = report.text.contains("changes that are not saved");
        assert_eq!(is_told, !is_saved, "{}", report.text);
    }
}
