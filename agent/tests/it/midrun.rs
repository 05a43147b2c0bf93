//! What becomes of a command whose grant ends while it runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use hermitcrab::{
    ports::ProgressPort,
    runtime::{Fate, Remote},
};
use hermitcrab_core::{
    grant::{AgentId, GrantId},
    outcome::DenialCode,
};
use serde_json::{Value, json};

use crate::support::{Bench, home::Home};

/// Far longer than anything here takes, and far shorter than the commands.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says when a command's first words come.
struct Begun(mpsc::Sender<()>);

impl ProgressPort for Begun {
    fn output(&mut self, _: AgentId, _: &str) {
        // Whoever listened has heard enough.
        let _told = self.0.send(());
    }
}

fn held(bench: &Bench, verb: &str) -> GrantId {
    let held = bench.runtime.grants_in_words(bench.runtime.first_agent());
    let found = held.iter().find(|(_, words)| words.starts_with(verb));
    found.unwrap().0
}

fn ledger(bench: &Bench) -> String {
    std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap()
}

/// Runs a command that takes long, and does this once it runs.
fn while_running(
    bench: &mut Bench,
    act: impl FnOnce(Remote) + Send + 'static,
) -> hermitcrab::runtime::CallReport {
    let (begun, has_begun) = mpsc::channel();
    bench.runtime.show_progress(Box::new(Begun(begun)));
    let remote = bench.runtime.remote();
    let other = std::thread::spawn(move || {
        has_begun.recv().unwrap();
        act(remote);
    });
    let report = bench.call(
        "terminal",
        json!({"command": "echo x > made.txt; echo begun; sleep 600; echo y > made.txt"}),
    );
    other.join().unwrap();
    report
}

#[test]
fn a_revocation_kills_the_command_that_runs_and_nothing_of_it_stays() {
    for verb in ["proc.exec", "fs.read"] {
        let mut bench = Bench::with_files();
        let grant = held(&bench, verb);
        let report = while_running(&mut bench, move |remote| {
            let asked = Instant::now();
            let ended = remote.revoke_and_drain(grant).unwrap();
            println!("{verb}: nothing ran any more after {:?}", asked.elapsed());
            assert!(ended.contains(&grant));
        });
        assert_eq!(
            report.fate,
            Fate::RanDiscarded(DenialCode::Revoked),
            "{}",
            report.text
        );
        assert_eq!(bench.text("made.txt"), None);
        let ledger = ledger(&bench);
        for kind in ["revoked", "stopped", "drained"] {
            assert!(ledger.contains(&format!("\"kind\":\"{kind}\"")), "{kind}");
        }
        if verb == "proc.exec" {
            let again = bench.call("terminal", json!({"command": "true"}));
            assert_eq!(again.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
        }
        hermitcrab::audit::verify(&bench.state).unwrap();
    }
}

#[test]
fn a_revocation_of_something_else_leaves_the_command_alone() {
    let mut bench = Bench::with_files();
    let other = bench.grant("fs.create", "elsewhere");
    let (begun, has_begun) = mpsc::channel();
    bench.runtime.show_progress(Box::new(Begun(begun)));
    let remote = bench.runtime.remote();
    let thread = std::thread::spawn(move || {
        has_begun.recv().unwrap();
        remote.revoke_and_drain(other).unwrap();
    });
    let report = bench.call(
        "terminal",
        json!({"command": "echo begun; sleep 0.3; echo y > made.txt"}),
    );
    thread.join().unwrap();
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("made.txt").as_deref(), Some("y\n"));
}

#[test]
fn the_end_of_the_session_kills_the_command_that_runs() {
    let mut bench = Bench::with_files();
    let report = while_running(&mut bench, |remote| remote.end().unwrap());
    assert_eq!(report.fate, Fate::RanDiscarded(DenialCode::Revoked));
    assert_eq!(bench.text("made.txt"), None);
    let again = bench.call("terminal", json!({"command": "true"}));
    assert_eq!(again.fate, Fate::Refused(DenialCode::SessionEnded));
}

/// Starts a command in the background that would write if it were asked to end, and waits
/// for its first words.
fn in_background(bench: &mut Bench) -> String {
    let command = "trap 'echo x > made.txt; exit' TERM; echo begun; sleep 600 & wait";
    let started = bench.call("terminal", json!({"command": command, "background": true}));
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let id = started["session_id"].as_str().unwrap().to_owned();
    let until = Instant::now() + PATIENCE;
    loop {
        let log = bench.call("process", json!({"action": "log", "session_id": id}));
        if log.text.contains("begun") {
            return id;
        }
        assert!(Instant::now() < until, "{}", log.text);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_revocation_kills_a_background_command_while_nobody_calls_anything() {
    let mut bench = Bench::with_files();
    let id = in_background(&mut bench);
    let grant = held(&bench, "proc.exec");
    let asked = Instant::now();
    // The session's own thread does nothing meanwhile: it is this one.
    bench.runtime.remote().revoke_and_drain(grant).unwrap();
    println!("nothing ran any more after {:?}", asked.elapsed());
    assert!(ledger(&bench).contains("\"kind\":\"drained\""));
    // Nothing runs; the thread that looks after the job may be about to say so.
    let until = Instant::now() + PATIENCE;
    let poll = loop {
        let poll = bench.call("process", json!({"action": "poll", "session_id": id}));
        let poll: Value = serde_json::from_str(&poll.text).unwrap();
        if poll["status"] != "running" || Instant::now() > until {
            break poll;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(
        (&poll["status"], &poll["exit_code"]),
        (&json!("exited"), &json!(-15)),
        "{poll}"
    );
    assert_eq!(bench.text("made.txt"), None);
    bench.runtime.end_session().unwrap();
    hermitcrab::audit::verify(&bench.state).unwrap();
}

#[test]
fn a_background_command_that_outlives_its_deadline_is_killed_while_nobody_calls_anything() {
    let mut bench = Bench::with_files();
    in_background(&mut bench);
    // Grants of a session last twelve hours, and what began before the end of
    // one has a few seconds more.
    bench.clock.set(12 * 60 * 60 * 1000 + 60_000);
    let until = Instant::now() + PATIENCE;
    while bench.runtime.has_running_jobs() {
        assert!(Instant::now() < until, "it still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ledger = ledger(&bench);
    assert!(ledger.contains("\"kind\":\"expired\"") && ledger.contains("\"kind\":\"stopped\""));
    assert_eq!(bench.text("made.txt"), None);
}

#[derive(PartialEq, Eq)]
enum Again {
    Yes,
    No,
}

/// A command runs that is shown what a kept grant opens, until something becomes of the store.
/// Whatever is done to it may be done again: what is done before the session has written its
/// last there is written over.
fn runs_until(mut becomes: impl FnMut(&Home) -> Again) -> (Home, Option<i32>, String) {
    let home = Home::new();
    let data = home.path().join("data");
    std::fs::create_dir(&data).unwrap();
    home.ok(&["caps", "grant", &format!("fs.read={}", data.display())]);
    let mut session = home
        .command(
            &home.project(),
            &["exec", "--", "echo x > made.txt; sleep 600"],
        )
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(home.state("ledger.jsonl"))
        .is_ok_and(|ledger| ledger.contains("\"kind\":\"intent\""))
    {
        assert!(Instant::now() < until, "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let again = becomes(&home);
    let asked = Instant::now();
    let until = asked + PATIENCE;
    let status = loop {
        if let Some(status) = session.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < until, "it still runs");
        if again == Again::Yes {
            becomes(&home);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    println!("the session was over after {:?}", asked.elapsed());
    let said = std::io::read_to_string(session.stderr.take().unwrap()).unwrap();
    assert!(!home.project().join("made.txt").exists());
    (home, status.code(), said)
}

#[test]
fn a_store_that_is_damaged_by_another_process_ends_the_command_of_a_running_session() {
    let damage = |home: &Home| {
        std::fs::write(home.state("anchor"), b"nothing").unwrap();
        Again::Yes
    };
    let (home, code, said) = runs_until(damage);
    // Nor can the end of the ledger be vouched for, which is what is told.
    assert_eq!(code, Some(74), "{said}");
    assert!(said.contains("doctor --repair"), "{said}");
    let ledger = home.ledger();
    assert!(ledger.contains("was ended in the store") && ledger.contains("\"kind\":\"stopped\""));
}

#[test]
fn a_grant_revoked_by_another_process_ends_the_command_of_a_running_session() {
    let (home, code, said) = runs_until(|home| {
        home.ok(&["caps", "revoke", "standing0"]);
        Again::No
    });
    assert_eq!(code, Some(77), "{said}");
    assert!(said.contains("revoked"), "{said}");
    let ledger = home.ledger();
    assert!(ledger.contains("was ended in the store") && ledger.contains("\"kind\":\"stopped\""));
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}
