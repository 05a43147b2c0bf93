//! Sessions that run at the same time, each with a ledger of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use hermitcrab::{
    audit::{Ledger, beside},
    store::State,
};

use crate::support::home::{Home, until};

/// A session that goes on until it is ended, in a directory.
struct Going {
    child: Child,
    dir: PathBuf,
}

impl Going {
    fn in_dir(home: &Home, dir: &Path) -> Self {
        let child = home
            .command(dir, &["exec", "--", "sleep 600"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let shown = format!(" in {} (process ", dir.display());
        until(|| {
            let listed = home.run(&["session", "list"]).out;
            let mut lines = listed.lines();
            lines
                .any(|line| line.contains(&shown) && line.contains("1 call running"))
                .then_some(())
        });
        Self {
            child,
            dir: dir.to_owned(),
        }
    }

    fn number(&self, home: &Home) -> String {
        let listed = home.ok(&["session"]);
        let shown = format!(" in {} (process ", self.dir.display());
        let line = listed.lines().find(|line| line.contains(&shown)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn ended(mut self) {
        until(|| self.child.try_wait().unwrap());
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // Gone already, unless a test failed.
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// A home with two projects, by their real names.
fn home() -> (Home, PathBuf, PathBuf) {
    let home = Home::new();
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let [project, other] = [home.project(), other].map(|dir| dir.canonicalize().unwrap());
    (home, project, other)
}

/// Writes a file in a session of its own.
#[track_caller]
fn writes(home: &Home, name: &str) {
    let command = format!("echo {name} > {name}");
    home.ok(&["exec", "--mode", "approve_all", "--", &command]);
    assert!(home.project().join(name).exists());
}

#[test]
fn a_session_beside_another_works_and_both_are_recorded_whole() {
    let (home, project, _) = home();
    let first = Going::in_dir(&home, &project);
    let before = home.ledger();
    writes(&home, "b.txt");
    assert_eq!(home.ledger(), before, "two wrote one ledger");
    let row = home.state("beside/1/ledger.jsonl");
    assert!(
        std::fs::read_to_string(&row)
            .unwrap()
            .contains("\"kind\":\"ended\"")
    );

    let shown = home.ok(&["audit"]);
    let (of_first, of_second) = shown.split_once("beside/1:\n").expect("no second ledger");
    assert!(
        of_first.contains("intent") && !of_first.contains("b.txt"),
        "{shown}"
    );
    assert!(of_second.contains("b.txt"), "{shown}");

    // What can be undone is common to all of them.
    assert!(home.ok(&["undo", "--list"]).contains("echo b.txt"));
    home.ok(&["undo"]);
    assert!(!project.join("b.txt").exists());

    home.ok(&["session", "end"]);
    first.ended();
    let verified = home.ok(&["audit", "verify"]);
    let lines: Vec<&str> = verified.lines().collect();
    assert_eq!(lines.len(), 2, "{verified}");
    assert!(
        lines.iter().all(|line| line.contains("whole")),
        "{verified}"
    );
    assert!(lines[1].starts_with("beside/1: "), "{verified}");
}

#[test]
fn what_a_person_grants_meanwhile_is_recorded_by_the_command() {
    let (home, project, _) = home();
    let first = Going::in_dir(&home, &project);
    let kept = home.ok(&["caps", "grant", "fs.modify=a.txt"]);
    assert!(!kept.contains("will record it"), "{kept}");
    let row = std::fs::read_to_string(home.state("beside/1/ledger.jsonl")).unwrap();
    assert!(row.contains("a.txt"), "{row}");
    assert!(row.contains("\"kind\":\"ended\""), "{row}");
    // The session that runs took in what was there when it began.
    assert!(!home.ledger().contains("a.txt"));
    home.ok(&["session", "end"]);
    first.ended();
    assert_eq!(home.ok(&["audit", "verify"]).lines().count(), 2);
}

#[test]
fn ledgers_in_the_row_serve_again_also_after_their_writer_was_killed() {
    let (home, project, other) = home();
    let first = Going::in_dir(&home, &project);
    let mut second = Going::in_dir(&home, &other);
    // `setsid` replaces itself by the program.
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    writes(&home, "b.txt");
    home.ok(&["session", "end"]);
    first.ended();
    // The first one is free again.
    writes(&home, "c.txt");
    assert!(home.ledger().contains("c.txt"));
    assert!(!home.state("beside/2").exists());
    assert!(home.ok(&["audit", "verify"]).contains("beside/1: "));
}

#[test]
fn of_several_sessions_the_one_here_is_meant_or_one_is_named() {
    let (home, project, other) = home();
    let first = Going::in_dir(&home, &project);
    let second = Going::in_dir(&home, &other);
    let (one, two) = (first.number(&home), second.number(&home));
    let listed = home.ok(&["session", "list", "--json"]);
    let found: Vec<serde_json::Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1]["workspace"], other.display().to_string());

    // Where neither works, nothing is guessed.
    let unsure = home.run_in(home.path(), &["session", "end"]);
    assert_eq!(unsure.code, Some(64), "{unsure:?}");
    for number in [&one, &two] {
        assert!(unsure.err.contains(number.as_str()), "{}", unsure.err);
    }
    let none = home.run(&["session", "--session", "no-number", "end"]);
    assert_eq!(none.code, Some(64), "{none:?}");

    let only = home.run_in(home.path(), &["session", "--session", &two]);
    assert!(
        only.out.contains(&two) && !only.out.contains(&one),
        "{only:?}"
    );
    let ended = home.run_in(&other, &["session", "end"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    second.ended();
    assert!(home.ok(&["session"]).contains(&one));
    let ended = home.run_in(home.path(), &["session", "end", "--session", &one]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    first.ended();
}

#[test]
fn a_head_of_any_ledger_is_known_again_and_one_that_was_cut_is_missed() {
    let (home, project, _) = home();
    let first = Going::in_dir(&home, &project);
    writes(&home, "b.txt");
    let heads = home.ok(&["audit", "head"]);
    let heads: Vec<&str> = heads.lines().collect();
    assert_eq!(heads.len(), 2);
    for head in &heads {
        home.ok(&["audit", "verify", "--expect", head]);
    }
    let row = home.state("beside/1/ledger.jsonl");
    let text = std::fs::read_to_string(&row).unwrap();
    let records: Vec<&str> = text.lines().collect();
    let kept = records.split_last().unwrap().1.join("\n");
    std::fs::write(&row, format!("{kept}\n")).unwrap();
    let missed = home.run(&["audit", "verify", "--expect", heads[1]]);
    assert_eq!(missed.code, Some(74), "{missed:?}");
    // The anchor beside it knows by itself.
    assert_eq!(home.run(&["audit", "verify"]).code, Some(74));
    assert_eq!(home.run(&["doctor"]).code, Some(74));
    let refused = home.run(&["exec", "--", "true"]);
    assert_eq!(refused.code, Some(74), "{refused:?}");
    assert!(refused.err.contains("beside/1"), "{}", refused.err);

    home.ok(&["session", "end"]);
    first.ended();
    let repaired = home.ok(&["doctor", "--repair"]);
    assert!(
        repaired.contains("beside/1: the ledger lacks records"),
        "{repaired}"
    );
    home.ok(&["audit", "verify"]);
}

#[test]
fn a_head_of_the_first_ledger_is_missed_where_only_others_are_left() {
    let (home, project, _) = home();
    let first = Going::in_dir(&home, &project);
    writes(&home, "b.txt");
    home.ok(&["session", "end"]);
    first.ended();
    let heads = home.ok(&["audit", "head"]);
    let head = heads.lines().next().unwrap();
    for entry in std::fs::read_dir(home.state("")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    let missed = home.run(&["audit", "verify", "--expect", head]);
    assert_eq!(missed.code, Some(74), "{missed:?}");
}

#[test]
fn beside_a_session_that_does_not_answer_nothing_is_guessed() {
    let (home, project, _) = home();
    let first = Going::in_dir(&home, &project);
    let number = first.number(&home);
    // As one of another version, whose words are not known.
    let other = home.state("beside/1");
    std::fs::create_dir_all(&other).unwrap();
    let listener = UnixListener::bind(other.join("session.socket")).unwrap();
    let answers = std::thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = stream.try_clone().unwrap();
            BufReader::new(asked).read_line(&mut String::new()).unwrap();
            stream.write_all(b"{}\n").unwrap();
        }
    });
    let listed = home.run(&["session"]);
    assert!(listed.out.contains(&number), "{listed:?}");
    assert!(listed.err.contains("answer is none"), "{listed:?}");
    let unsure = home.run(&["session", "end"]);
    assert_eq!(unsure.code, Some(64), "{unsure:?}");
    home.ok(&["session", "end", "--session", &number]);
    answers.join().unwrap();
    first.ended();
}

/// One whose program is stopped takes a question and never answers it.
#[test]
fn a_session_that_hangs_keeps_nobody_from_the_others() {
    let (home, project, _) = home();
    let other = home.state("beside/1");
    std::fs::create_dir_all(&other).unwrap();
    let _silent = UnixListener::bind(other.join("session.socket")).unwrap();
    let whose = format!("process {} may be stopped", std::process::id());
    let alone = home.run(&["session"]);
    assert_eq!(alone.code, Some(70), "{alone:?}");
    assert!(alone.err.contains(&whose), "{alone:?}");

    let first = Going::in_dir(&home, &project);
    let number = first.number(&home);
    let listed = home.run(&["session"]);
    assert!(listed.out.contains(&number), "{listed:?}");
    assert!(listed.err.contains(&whose), "{listed:?}");
    home.ok(&["session", "end", "--session", &number]);
    first.ended();
}

/// The journal is common, and what a session says was kept is what changed where it works.
#[test]
fn what_another_session_kept_elsewhere_is_not_told_as_ones_own() {
    let (home, project, _) = home();
    let mut prompt = home
        .command(&project, &["prompt", "--mode", "prompt"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = prompt.stdin.take().unwrap();
    typed.write_all(b"!sleep 600\n").unwrap();
    until(|| {
        let listed = home.run(&["session"]);
        listed.out.contains("1 call running").then_some(())
    });
    let other = home.path().join("another");
    std::fs::create_dir(&other).unwrap();
    let made = ["exec", "--grant", "fs.*=.", "--", "echo x > x"];
    assert_eq!(home.run_in(&other, &made).code, Some(0));
    home.ok(&["session", "end"]);
    until(|| prompt.try_wait().unwrap());
    let said = std::io::read_to_string(prompt.stderr.take().unwrap()).unwrap();
    assert!(said.contains("ended from elsewhere"), "{said}");
    assert!(!said.contains("kept as commit"), "{said}");
}

#[test]
fn a_ledger_that_begins_later_is_followed_too() {
    let (home, project, _) = home();
    let first = Going::in_dir(&home, &project);
    let mut following = home
        .command(&project, &["audit", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut comes = |wanted: &str| {
        let line = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(wanted));
        assert!(line.is_some(), "`{wanted}` never came");
    };
    comes("intent");
    writes(&home, "b.txt");
    comes("beside/1:");
    comes("b.txt");
    home.ok(&["session", "end"]);
    comes("the first ledger:");
    first.ended();
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn a_session_that_finds_every_ledger_taken_does_not_begin() {
    let home = Home::new();
    let state = home.state("");
    let open = |number| {
        let place = beside::place(&state, number);
        let anchor = State::open(&place).unwrap().anchor;
        Ledger::open_anchored(&place, Some(anchor)).unwrap()
    };
    let held: Vec<_> = (0..=beside::MOST).map(open).collect();
    let refused = home.run(&["exec", "--", "true"]);
    assert_eq!(refused.code, Some(74), "{refused:?}");
    assert!(
        refused.err.contains("in use by another process"),
        "{}",
        refused.err
    );
    drop(held);
    home.ok(&["exec", "--", "true"]);
}
