//! The ledger from the command line, whole and damaged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

struct Home {
    dir: tempfile::TempDir,
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proj")).unwrap();
        std::fs::write(dir.path().join("proj/a.txt"), "a\n").unwrap();
        Self { dir }
    }

    /// With so many sessions in its ledger.
    fn with_sessions(sessions: usize) -> Self {
        let home = Self::new();
        for _ in 0..sessions {
            let ran = home.run(&["call", "read_file", "{\"path\": \"a.txt\"}"]);
            assert_eq!(ran.code, Some(0), "{}", ran.err);
        }
        home
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command
            .arg("--wait")
            .arg(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(arguments)
            .current_dir(self.dir.path().join("proj"))
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin");
        command
    }

    /// Started by itself, to be killed by itself.
    fn directly(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(arguments)
            .current_dir(self.dir.path().join("proj"))
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join(".local/state/hermitcrab").join(name)
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(self.state("ledger.jsonl"))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn write(&self, lines: &[String]) {
        std::fs::write(self.state("ledger.jsonl"), lines.join("\n") + "\n").unwrap();
    }

    /// Verifying and starting both refuse, and say this.
    #[track_caller]
    fn refuses(&self, said: &str) {
        for arguments in [&["audit", "verify"][..], &["exec", "--", "true"]] {
            let ran = self.run(arguments);
            assert_eq!(ran.code, Some(74), "{arguments:?}: {}{}", ran.out, ran.err);
            assert!(ran.err.contains(said), "{arguments:?}: {}", ran.err);
            assert!(
                ran.err.contains("hermitcrab doctor --repair"),
                "{}",
                ran.err
            );
        }
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn one_sessions_records_are_shown_as_lines_or_as_json() {
    let home = Home::with_sessions(3);
    let all = home.run(&["audit"]);
    assert_eq!(all.code, Some(0));
    let sessions: Vec<&str> = all
        .out
        .lines()
        .filter_map(|line| line.split_once("session=").map(|(_, session)| session))
        .map(|session| session.split(' ').next().unwrap())
        .collect();
    assert_eq!(sessions.len(), 3, "{}", all.out);
    let per_session = home.lines().len() / 3;
    for (place, session) in sessions.iter().enumerate() {
        let json = home.run(&["audit", "--session", session, "--json"]);
        let lines: Vec<&str> = json.out.lines().collect();
        let from = place * per_session;
        assert_eq!(lines, &home.lines()[from..from + per_session]);
    }
    // As `hermitcrab session` names it, by its beginning, and by the number of its record.
    let number = home.lines()[per_session]
        .split_once("session=")
        .unwrap()
        .1
        .to_owned();
    let number = number.split(['"', ' ']).next().unwrap();
    for session in [sessions[1], &sessions[1][..8], number] {
        let named = home.run(&["audit", "--session", session]);
        assert_eq!(named.out.lines().count(), per_session, "{session}");
        assert!(named.out.contains(sessions[1]), "{}", named.out);
    }
    let none = home.run(&["audit", "--session", "nosuch"]);
    assert_eq!((none.code, &*none.out), (Some(64), ""));
    assert!(none.err.contains("no session `nosuch`"), "{}", none.err);
    // What was granted and done is told by the calendar.
    home.run(&["caps", "grant", "fs.create=."]);
    let kept = home.run(&["audit"]).out;
    let kept = kept
        .lines()
        .find(|line| line.contains("kept by command as standing0"));
    assert!(
        kept.is_some_and(|line| line.get(7..9) == Some("20")),
        "{kept:?}"
    );
    let year = |line: &&str| line.contains(" until 2") && line.get(7..9) == Some("20");
    assert!(all.out.lines().any(|line| year(&line)), "{}", all.out);
    // An index that lies is not believed, and one that is gone not missed.
    let index = std::fs::read_to_string(home.state("ledger.index")).unwrap();
    std::fs::write(
        home.state("ledger.index"),
        index.replace("\"offset\":", "\"offset\":1"),
    )
    .unwrap();
    let lied_to = home.run(&["audit", "--session", sessions[1]]);
    assert_eq!(lied_to.out.lines().count(), per_session);
    std::fs::remove_file(home.state("ledger.index")).unwrap();
    let without = home.run(&["audit", "--session", sessions[1]]);
    assert_eq!(without.out, lied_to.out);
    assert_eq!(home.run(&["exec", "--", "true"]).code, Some(0));
    let rebuilt = std::fs::read_to_string(home.state("ledger.index")).unwrap();
    assert!(rebuilt.starts_with(&index), "{rebuilt}");
}

#[test]
fn following_shows_what_is_written_later() {
    let home = Home::with_sessions(1);
    let mut following = home
        .directly(&["audit", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| {
        for line in lines.by_ref() {
            if line.unwrap().contains(wanted) {
                return true;
            }
        }
        false
    };
    assert!(until("ended"));
    assert_eq!(home.run(&["exec", "--", "true"]).code, Some(0));
    assert!(until("opened"));
    assert!(until("ended"));
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn the_first_record_that_does_not_hold_is_named() {
    let home = Home::with_sessions(2);
    let good = home.lines();
    let mut changed = good.clone();
    changed[3] = changed[3].replacen("fs.", "FS.", 1);
    changed[5] = changed[5].replacen("\"text\":\"", "\"text\":\"x", 1);
    if changed[3] == good[3] {
        changed[3] = changed[3].replacen("\"text\":\"", "\"text\":\"x", 1);
    }
    home.write(&changed);
    home.refuses("record 3 of the ledger was changed");

    let mut missing = good.clone();
    missing.remove(4);
    home.write(&missing);
    home.refuses("lacks record 4");

    let mut garbled = good.clone();
    garbled[2] = "not json".to_owned();
    home.write(&garbled);
    home.refuses("record 2 of the ledger");

    home.write(&good);
    let ran = home.run(&["audit", "verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.out
            .starts_with(&format!("{} records, whole", good.len()))
    );
}

#[test]
fn a_whole_ledger_of_somebody_elses_is_not_gone_on_with() {
    let (home, other) = (Home::with_sessions(1), Home::with_sessions(1));
    let theirs = other.lines();
    // It holds, and has as many records.
    assert_eq!(other.run(&["audit", "verify"]).code, Some(0));
    assert_eq!(theirs.len(), home.lines().len());
    home.write(&theirs);
    home.refuses("lacks records it had");
    assert_eq!(home.lines(), theirs);
}

#[test]
fn a_tail_cut_off_shows_against_the_anchor_and_against_a_published_head() {
    let home = Home::with_sessions(2);
    let head = home.run(&["audit", "head"]).out.trim().to_owned();
    let good = home.lines();
    home.write(&good[..good.len() - 2]);
    home.refuses("lacks records it had");

    // Somebody may take the anchor away, but not what was published.
    std::fs::remove_file(home.state("anchor")).unwrap();
    std::fs::remove_file(home.state("store.key")).unwrap();
    assert_eq!(home.run(&["audit", "verify"]).code, Some(0));
    let ran = home.run(&["audit", "verify", "--expect", &head]);
    assert_eq!(ran.code, Some(74), "{}", ran.out);
    assert!(ran.err.contains("lacks records it had"), "{}", ran.err);

    home.write(&good);
    let ran = home.run(&["audit", "verify", "--expect", &head]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        home.run(&["audit", "verify", "--expect", "7"]).code,
        Some(64)
    );
}

#[test]
fn half_a_record_at_the_end_is_explained_and_removed_by_the_next_start() {
    let home = Home::with_sessions(1);
    let mut bytes = std::fs::read(home.state("ledger.jsonl")).unwrap();
    let whole = bytes.clone();
    bytes.extend_from_slice(b"{\"seq\":9,\"at_");
    std::fs::write(home.state("ledger.jsonl"), &bytes).unwrap();
    let ran = home.run(&["audit", "verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("the last 13 bytes"), "{}", ran.out);
    assert_eq!(home.run(&["exec", "--", "true"]).code, Some(0));
    let after = std::fs::read(home.state("ledger.jsonl")).unwrap();
    assert!(after.starts_with(&whole));
    let shown = home.run(&["audit"]).out;
    assert!(shown.contains("recovered: 13 bytes"), "{shown}");
    assert_eq!(home.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn room_a_killed_program_left_is_no_part_of_the_ledger() {
    let home = Home::with_sessions(1);
    let whole = std::fs::read(home.state("ledger.jsonl")).unwrap();
    assert!(!whole.contains(&0), "what ends as meant leaves none");
    let shown = home.run(&["audit"]).out;
    let told = home.run(&["audit", "verify"]).out;
    assert!(told.contains("whole") && !told.contains("bytes"), "{told}");
    let mut left = whole.clone();
    left.resize(whole.len() + 5000, 0);
    std::fs::write(home.state("ledger.jsonl"), &left).unwrap();
    assert_eq!(home.run(&["audit"]).out, shown);
    assert_eq!(home.run(&["audit", "verify"]).out, told);
    assert_eq!(home.run(&["audit", "--json"]).out.as_bytes(), whole);
    assert_eq!(home.run(&["exec", "--", "true"]).code, Some(0));
    let after = std::fs::read(home.state("ledger.jsonl")).unwrap();
    assert!(after.starts_with(&whole) && !after.contains(&0));
    let shown = home.run(&["audit"]).out;
    assert!(!shown.contains("recovered"), "{shown}");
    assert_eq!(home.run(&["audit", "verify"]).code, Some(0));
    // What stands behind NUL is still no room.
    let mut left = after.clone();
    left.extend_from_slice(b"\0\0\0seq\0\0");
    std::fs::write(home.state("ledger.jsonl"), &left).unwrap();
    let told = home.run(&["audit", "verify"]).out;
    assert!(told.contains("the last 6 bytes"), "{told}");
    // And one NUL hides nothing that stands behind it.
    let mut left = after.clone();
    left[after.len() / 2] = 0;
    std::fs::write(home.state("ledger.jsonl"), &left).unwrap();
    let shown = home.run(&["audit"]);
    assert!(shown.err.contains("is not a record"), "{}", shown.err);
    assert_ne!(shown.code, Some(0));
}

/// A program that reads the ledger while a session writes it, and after it was killed.
#[test]
fn a_ledger_that_is_written_is_read_by_programs_in_whole_records() {
    let home = Home::with_sessions(1);
    let mut session = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["exec", "--", "echo began; exec sleep 600"])
        .current_dir(home.dir.path().join("proj"))
        .env_clear()
        .env("HOME", home.dir.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(session.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "began\n");
    let check = || {
        let ran = home.run(&["audit", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        for line in ran.out.lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(record["seq"].is_u64(), "{line}");
        }
        assert!(
            ran.out
                .contains("\"kind\":\"intent\",\"text\":\"call0 by agent0 terminal")
        );
        assert_eq!(home.run(&["audit", "verify"]).code, Some(0));
        ran.out
    };
    let raw = std::fs::read(home.state("ledger.jsonl")).unwrap();
    assert_eq!(raw.last(), Some(&0), "there is room behind what is in it");
    let while_it_runs = check();
    session.kill().unwrap();
    session.wait().unwrap();
    assert_eq!(check(), while_it_runs);
}

#[test]
fn a_call_that_was_begun_and_never_ended_is_told() {
    let home = Home::with_sessions(1);
    let lines = home.lines();
    let upto = lines
        .iter()
        .position(|line| line.contains("\"outcome\""))
        .unwrap();
    for gone in ["anchor", "store.key"] {
        std::fs::remove_file(home.state(gone)).unwrap();
    }
    home.write(&lines[..upto]);
    let ran = home.run(&["audit", "verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let number = lines[0].split_once("session=").unwrap().1;
    let number = number.split(['"', ' ']).next().unwrap();
    let number: u64 = number.parse().unwrap();
    let said = format!("call0 of session {number:016x} was begun");
    assert!(ran.out.contains(&said), "{said}: {}", ran.out);
    assert!(ran.out.contains("may have happened"), "{}", ran.out);
}

#[test]
fn a_ledger_others_can_reach_or_that_is_a_link_is_refused() {
    let home = Home::with_sessions(1);
    open_to_all(&home.state("ledger.jsonl"));
    home.refuses("mode 0644");

    let home = Home::with_sessions(1);
    let elsewhere = home.dir.path().join("elsewhere.jsonl");
    std::fs::rename(home.state("ledger.jsonl"), &elsewhere).unwrap();
    symlink(&elsewhere, home.state("ledger.jsonl")).unwrap();
    home.refuses("symbolic link");
}

#[test]
fn a_ledger_in_use_is_not_written_by_another_and_can_be_read() {
    let home = Home::with_sessions(1);
    let before = home.lines().len();
    let mut first = home
        .directly(&["exec", "--", "sleep 600"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // It holds the ledger from its first record on.
    while home.lines().len() == before {
        assert_eq!(first.try_wait().unwrap(), None, "it ended at once");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let second = home.run(&["exec", "--", "true"]);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert!(home.state("beside/1/ledger.jsonl").exists());
    assert_eq!(home.run(&["audit", "verify"]).code, Some(0));
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn where_nothing_was_recorded_yet_there_is_nothing_to_complain_about() {
    let home = crate::support::home::Home::new();
    assert!(
        home.ok(&["audit", "verify"])
            .contains("nothing is recorded yet")
    );
    assert!(home.ok(&["audit", "head"]).starts_with("0:"));
    assert_eq!(home.run(&["audit"]).code, Some(0));
    // A ledger that was there and is gone is another matter.
    home.ok(&["exec", "--", "true"]);
    std::fs::remove_file(home.state("ledger.jsonl")).unwrap();
    assert_eq!(home.run(&["audit", "verify"]).code, Some(74));
}

#[test]
fn a_session_that_cannot_begin_as_it_was_asked_to_is_ended_on_record() {
    let home = crate::support::home::Home::new();
    for arguments in [
        &["exec", "--grant", "fs.modfy=.", "--", "true"][..],
        &[
            "call",
            "--grant",
            "fs.modfy=.",
            "read_file",
            "{\"path\": \"a.txt\"}",
        ],
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.err.contains("fs.modfy"), "{ran:?}");
    }
    let ledger = home.ledger();
    let count = |kind: &str| ledger.matches(&format!("\"kind\":\"{kind}\"")).count();
    assert_eq!((count("opened"), count("ended")), (2, 2), "{ledger}");
}
