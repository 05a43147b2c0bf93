//! A command can be asked to end before it is killed, and a kill still comes at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::Duration;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::spawn::{Ending, Finished, Grace, Running, Streams};
use support::time::out_of_time;
use support::{Workspace, marker, processes_with, sandbox, text, with_permits};

/// Longer than any test runs.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);
const LOOP: &str = "while :; do sleep 0.05; done";

fn spawn(workspace: &Workspace, script: &str) -> Running {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        let command = workspace.command(script);
        sandbox()
            .spawn(permits.pop().unwrap(), &command, Streams::default())
            .unwrap()
    })
}

/// Waits until it has said this.
fn until(running: &mut Running, said: &mut String, words: &str) {
    while !said.contains(words) {
        let over = running.attend(FOR_EVER, |_, bytes| {
            said.push_str(&String::from_utf8_lossy(bytes));
        });
        assert!(!over.unwrap(), "{said}");
    }
}

fn made(finished: &Finished) -> Vec<String> {
    let changes = finished.changes[0].changes().iter();
    changes.map(|change| change.path.to_string()).collect()
}

#[test]
fn what_is_asked_to_end_puts_away_what_it_made_when_its_time_is_over() {
    let workspace = Workspace::new();
    let marker = marker(90);
    // Who sleeps so long has said what it does when it is asked.
    let sleeps = format!("while :; do sleep {marker}; done");
    let late = |script: &str, sleepers: usize| {
        let mut command = workspace.command(script);
        command.limits.grace = Grace::Terminate(FOR_EVER);
        out_of_time(sandbox(), &mut command, Duration::from_secs(1), |_| {
            processes_with(&marker) == sleepers
        })
    };
    // The first ends at once, and what it started takes its time.
    let script = format!(
        "bash -c 'trap \"sleep 0.3; echo inner > inner; exit 0\" TERM; {sleeps}' &
         (trap 'echo other > other; exit 0' TERM; {sleeps}) &
         echo up; exec sleep {marker}"
    );
    assert_eq!(made(&late(&script, 3)), ["inner", "other"]);

    // One that could have ended otherwise did not end in time.
    let finished = late(&format!("trap 'echo bye; exit 3' TERM; {sleeps}"), 1);
    assert!(text(&finished).ends_with("bye\n"), "{}", text(&finished));
}

#[test]
fn what_does_not_end_when_asked_is_killed_with_all_it_started() {
    let workspace = Workspace::new();
    let marker = marker(97);
    // The command itself ends, or does not.
    for rest in ["exec sleep", "trap '' TERM; exec sleep"] {
        let script = format!(
            "for i in 1 2 3 4 5; do (trap '' TERM HUP INT; setsid sleep {marker} &); done
             echo up; {rest} {marker}"
        );
        let mut command = workspace.command(&script);
        command.limits.grace = Grace::Terminate(Duration::from_millis(500));
        out_of_time(sandbox(), &mut command, Duration::from_secs(1), |_| {
            processes_with(&marker) == 6
        });
        assert_eq!(processes_with(&marker), 0, "{rest}");
    }
}

#[test]
fn who_is_asked_to_end_can_be_killed_at_once() {
    let workspace = Workspace::new();
    let script = format!("trap 'echo asked' TERM; echo up; {LOOP}");
    for by_killer in [false, true] {
        let mut running = spawn(&workspace, &script);
        let mut said = String::new();
        until(&mut running, &mut said, "up\n");
        running.end(Grace::Terminate(FOR_EVER));
        until(&mut running, &mut said, "asked\n");
        if by_killer {
            let killer = running.killer();
            let thread = std::thread::spawn(move || killer.kill());
            assert_eq!(running.wait().unwrap().ending, Ending::Killed);
            thread.join().unwrap();
        } else {
            running.kill();
            assert_eq!(running.wait().unwrap().ending, Ending::Killed);
        }
    }
    // When only something it started is left. What it starts in turn ends soon: begun just
    // after the word came, it never heard it, and the trap waits for its end.
    let marker = marker(98);
    let script = format!(
        "(trap 'echo asked' TERM; echo up; while :; do sh -c 'sleep 0.05; :' {marker}; done) &
         exec sleep 1000"
    );
    let mut running = spawn(&workspace, &script);
    let mut said = String::new();
    until(&mut running, &mut said, "up\n");
    running.end(Grace::Terminate(FOR_EVER));
    until(&mut running, &mut said, "asked\n");
    running.kill();
    assert_eq!(running.wait().unwrap().ending, Ending::Killed);
    assert_eq!(processes_with(&marker), 0);
}

#[test]
fn who_loses_its_terminal_is_told_so_and_then_interrupted() {
    let workspace = Workspace::new();
    for (traps, patience, file) in [
        (
            "trap 'echo > hung-up; exit 0' HUP",
            FOR_EVER,
            Some("hung-up"),
        ),
        // That is waited for twice before it is interrupted, and then for its end.
        (
            "trap '' HUP; trap 'echo > interrupted; exit 0' INT",
            Duration::from_secs(4),
            Some("interrupted"),
        ),
        ("trap 'echo > asked; exit 0' TERM", FOR_EVER, None),
        ("trap '' HUP INT", Duration::from_millis(300), None),
    ] {
        let mut running = spawn(&workspace, &format!("{traps}; echo up; {LOOP}"));
        until(&mut running, &mut String::new(), "up\n");
        running.end(Grace::HangUp(patience));
        let finished = running.wait().unwrap();
        assert_eq!(finished.ending, Ending::Killed, "{traps}");
        assert_eq!(made(&finished), Vec::from_iter(file), "{traps}");
    }
}

#[test]
fn one_that_has_hardly_begun_ends_as_well() {
    let workspace = Workspace::new();
    let mut running = spawn(&workspace, "sleep 1000; echo > f");
    running.end(Grace::Terminate(FOR_EVER));
    // Before its sandbox says that it stands there is nobody to ask.
    match running.wait() {
        Ok(finished) => {
            assert_eq!(finished.ending, Ending::Killed);
            assert_eq!(made(&finished), Vec::<String>::new());
        }
        Err(error) => assert!(matches!(error, SpawnError::Step(_)), "{error}"),
    }
}
