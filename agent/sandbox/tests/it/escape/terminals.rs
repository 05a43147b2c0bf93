//! The suite below a terminal that controls the agent, as it is where a person started one;
//! and probes of that terminal, by commands without one, with one of their own, and with
//! the person's as their input.
//!
//! Lines that start with TERMINALS become a table of docs/escape-matrix.md.
//!
//! The tests run themselves once more below a terminal made for that. Each probe is seen to
//! work there without a sandbox.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command as Bare, Stdio};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{Ending, Input, Streams};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{nothing_gets_out_and_what_is_allowed_works, sandbox_without};
use crate::support::numbers::numbered;
use crate::support::{Workspace, text, with_permits};

const PROBES: &str = include_str!("terminals.pl");
/// How high the person's terminal is: no other one is.
const ROWS: u16 = 77;
/// What stands around the second run of a test: the name of its terminal.
const INSIDE: &str = "hermitcrab-below-a-terminal";

/// What has to do with terminals.
const LEFT_OUT: [Mechanism; 6] = [
    Mechanism::SystemCallFilter,
    Mechanism::OwnSession,
    Mechanism::Landlock,
    Mechanism::NoCapabilities,
    Mechanism::PrivateRoot,
    Mechanism::UserNamespace,
];

/// Which one mechanism alone stops, for commands with which input.
const SINGLE_LINE: &[(&[Given], &str, Mechanism)] = &[
    (
        &[Given::None, Given::Own, Given::Agents],
        "open the terminal of the agent",
        Mechanism::OwnSession,
    ),
    // Their own: what the agent reads there is the command's own word.
    (
        &[Given::Own],
        "type into a terminal",
        Mechanism::SystemCallFilter,
    ),
    (
        &[Given::Own, Given::Agents],
        "paste at a console (TIOCLINUX)",
        Mechanism::SystemCallFilter,
    ),
    (
        &[Given::Own, Given::Agents],
        "set a line discipline",
        Mechanism::SystemCallFilter,
    ),
];

/// What a command has as its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    None,
    Own,
    Agents,
}

impl Given {
    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Own => "its own",
            Self::Agents => "the agent's",
        }
    }
}

/// Our end and the other.
fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
    (ours, theirs)
}

/// Runs the test `name` once more, controlled by a terminal; the name of that there.
fn below_a_terminal(name: &str) -> Option<String> {
    if let Ok(terminal) = std::fs::read_to_string(INSIDE) {
        return Some(terminal);
    }
    let (ours, theirs) = terminal();
    let size = Winsize {
        ws_row: ROWS,
        ws_col: 99,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size).unwrap();
    let place = tempfile::tempdir().unwrap();
    let called = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
    std::fs::write(place.path().join(INSIDE), called.to_bytes()).unwrap();
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let told = Bare::new("setsid")
        .args(["--ctty", "--wait"])
        .arg(own)
        .args(["--exact", name, "--nocapture"])
        .current_dir(place.path())
        .stdin(theirs)
        .output();
    let Ok(told) = told else {
        println!("SKIPPED: no setsid to have a terminal by: {told:?}");
        return None;
    };
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&told.stderr)
    );
    let marks = ["SKIPPED", "TERMINALS"];
    text.lines()
        .filter(|line| marks.iter().any(|mark| line.starts_with(mark)))
        .for_each(|line| println!("{line}"));
    None
}

type Results = BTreeMap<String, bool>;

fn results(told: &str) -> Results {
    let lines = told.lines().filter_map(|line| line.split_once('\t'));
    let results: Results = lines
        .map(|(name, end)| (name.to_owned(), end == "through"))
        .collect();
    assert_eq!(results.len(), 6, "{told}");
    results
}

/// Without a sandbox, where the person's terminal controls and is the input.
fn bare(place: &Path, terminal: &str) -> Option<Results> {
    std::fs::write(place.join("bare.pl"), numbered(PROBES)).unwrap();
    let told = Bare::new("perl")
        .arg(place.join("bare.pl"))
        .args([&ROWS.to_string(), terminal])
        .stdin(Stdio::inherit())
        .output();
    match told {
        Ok(told) => Some(results(&String::from_utf8_lossy(&told.stdout))),
        Err(error) => {
            println!("SKIPPED: no perl to make system calls with: {error}");
            None
        }
    }
}

fn probe(given: Given, terminal_name: &str, without: MechanismSet) -> Results {
    let workspace = Workspace::new();
    workspace.file("terminals.pl", &numbered(PROBES));
    let script = format!("exec perl terminals.pl {ROWS} {terminal_name}");
    let command = workspace.command(&script);
    let (_ours, own) = terminal();
    let stdin = match given {
        Given::None => Input::Nothing,
        // Without a session of its own it cannot have it as its terminal.
        Given::Own if without.contains(Mechanism::OwnSession) => Input::From(own),
        Given::Own => Input::Terminal(own),
        Given::Agents => Input::From(std::io::stdin().as_fd().try_clone_to_owned().unwrap()),
    };
    let streams = Streams {
        stdin,
        ..Streams::default()
    };
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    let sandbox = sandbox_without(without);
    let running = with_permits(Tool::Terminal, vec![action], |mut permits| {
        sandbox.spawn(permits.pop().unwrap(), &command, streams)
    });
    let finished = running.unwrap().wait().unwrap();
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
    results(&text(&finished))
}

#[test]
fn below_a_terminal_nothing_gets_out_either() {
    let name = "escape::terminals::below_a_terminal_nothing_gets_out_either";
    if below_a_terminal(name).is_some() {
        assert!(std::fs::File::open("/dev/tty").is_ok());
        nothing_gets_out_and_what_is_allowed_works();
    }
}

#[test]
fn of_the_agents_terminal_a_second_mechanism_holds() {
    let name = "escape::terminals::of_the_agents_terminal_a_second_mechanism_holds";
    let Some(terminal) = below_a_terminal(name) else {
        return;
    };
    let columns: Vec<_> = LEFT_OUT.map(Mechanism::as_str).into();
    println!(
        "TERMINALS input | probe | nothing | {} | all of these",
        columns.join(" | ")
    );
    let mut found = Vec::new();
    for given in [Given::None, Given::Own, Given::Agents] {
        let nothing = probe(given, &terminal, MechanismSet::NONE);
        let through: Vec<_> = nothing.iter().filter(|(_, through)| **through).collect();
        assert!(through.is_empty(), "{through:?}");
        let alone = LEFT_OUT.map(|mechanism| MechanismSet::of([mechanism]));
        let all = [MechanismSet::of(LEFT_OUT)];
        let tried: Vec<_> = alone.into_iter().chain(all).collect();
        let ends: Vec<_> = tried
            .iter()
            .map(|set| probe(given, &terminal, *set))
            .collect();
        for name in nothing.keys() {
            let row: Vec<_> = ends.iter().map(|results| results[name]).collect();
            let cells: Vec<_> = row
                .iter()
                .map(|through| if *through { "**through**" } else { "held" })
                .collect();
            let input = given.as_str();
            println!("TERMINALS {input} | {name} | held | {}", cells.join(" | "));
            for (mechanism, through) in LEFT_OUT.iter().zip(&row) {
                if *through {
                    found.push((given, name.clone(), *mechanism));
                }
            }
        }
    }
    found.retain(|(given, name, mechanism)| {
        !SINGLE_LINE.iter().any(|(inputs, known, single)| {
            inputs.contains(given) && known == name && single == mechanism
        })
    });
    assert_eq!(found, []);
    // At last, because it takes the terminal away.
    let Some(bare) = bare(Path::new("."), &terminal) else {
        return;
    };
    let is_root = rustix::process::geteuid().is_root();
    for (name, through) in bare {
        // Of an ordinary user some kernels refuse these everywhere.
        let is_privileged = ["type into a terminal", "take the terminal of the agent"];
        assert!(
            through || !is_root && is_privileged.contains(&&*name),
            "{name}"
        );
    }
}
