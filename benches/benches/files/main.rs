//! What one call of a file tool or of `terminal` costs, beside the same call of
//! the real Hermes.
//!
//! ```console
//! $ cargo xtask files-report
//! ```
//!
//! Both run in this process's own temporary directories, one after the other.
//! Hermes' half needs the environment that `cargo bisim doctor` installs; where
//! it is missing, only the agent's half is printed and it is said so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/ambient.rs"]
mod ambient;
mod commands;
mod hermes;

use std::{fmt::Write as _, os::fd::OwnedFd, path::Path, time::Instant};

use hermitcrab::{
    ambient::{BootClock, NobodyThere},
    runtime::{GrantWords, Runtime, RuntimeConfig},
};
use hermitcrab_core::{rules::Isolation, session::Asking};
use hermitcrab_sandbox::{SpawnerProgram, maybe_run_as_child};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};

/// Calls of each kind that are timed; a clock tick is far below what they take.
const CALLS: usize = 1000;
/// The same where it only has to work.
const CALLS_TRIED: usize = 20;
/// Files that a search looks through, for either kind of it.
const SEARCHED: [(&str, usize); 2] = [("s", 20), ("m", 200)];
/// The same for Hermes, which takes far longer.
const HERMES_CALLS: usize = 20;

/// The calls, by number: each works on a file of its own, so that none is
/// answered from what an earlier one left.
fn call(kind: &str, number: usize) -> (&'static str, Value) {
    match kind {
        "write_file" => (
            "write_file",
            json!({"path": format!("w/{number}.txt"), "content": "line\n".repeat(100)}),
        ),
        "read_file" => ("read_file", json!({"path": format!("r/{number}.txt")})),
        "patch" => (
            "patch",
            json!({"mode": "replace", "path": format!("p/{number}.txt"), "old_string": "second", "new_string": "2nd"}),
        ),
        _ => {
            let path = if kind == FEW { "s" } else { "m" };
            (
                "search_files",
                json!({"pattern": "second", "path": path, "limit": 5 + number % 100, "offset": number / 100}),
            )
        }
    }
}

const FEW: &str = "search_files, 20 files";
const MANY: &str = "search_files, 200 files";
const KINDS: [&str; 5] = ["write_file", "read_file", "patch", FEW, MANY];

fn fill(dir: &Path) {
    std::fs::create_dir(dir.join("w")).unwrap();
    for (letter, files) in [("r", CALLS), ("p", CALLS)].into_iter().chain(SEARCHED) {
        std::fs::create_dir(dir.join(letter)).unwrap();
        for number in 0..files {
            let path = dir.join(letter).join(format!("{number}.txt"));
            std::fs::write(path, "first\nsecond\nthird\n").unwrap();
        }
    }
}

/// Milliseconds of processor time this process and its children have used.
fn used() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .skip(11)
        .take(4)
        .map(|field| field.parse().unwrap())
        .collect();
    fields.iter().sum::<f64>() * 10.0
}

/// Milliseconds of one call: of processor time, and on the clock.
#[derive(Clone, Copy)]
struct Cost {
    used: f64,
    passed: f64,
}

/// What reading all the files of the larger search costs by itself: one name
/// after the other opened, read and closed, and nothing decided or recorded.
fn floor(rounds: usize) -> Cost {
    let dirs = tempfile::tempdir().unwrap();
    fill(dirs.path());
    let (letter, files) = SEARCHED[1];
    let open = |dir: &OwnedFd, name: &str, flags: OFlags| {
        rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let root = rustix::fs::open(
        dirs.path(),
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    );
    let dir = open(&root.unwrap(), letter, OFlags::RDONLY | OFlags::DIRECTORY);
    let names: Vec<String> = (0..files).map(|number| format!("{number}.txt")).collect();
    let mut buffer = [0_u8; 4096];
    cost(rounds, |_| {
        for name in &names {
            let file = open(&dir, name, OFlags::RDONLY);
            assert!(rustix::io::read(&file, &mut buffer).unwrap() > 0);
        }
    })
}

/// What one of these takes, of so many.
fn cost(rounds: usize, mut one: impl FnMut(usize)) -> Cost {
    let (before, begun) = (used(), Instant::now());
    for number in 0..rounds {
        one(number);
    }
    let rounds = rounds as f64;
    Cost {
        used: (used() - before) / rounds,
        passed: begun.elapsed().as_secs_f64() * 1000.0 / rounds,
    }
}

/// An agent that may do anything in the directory `w` of this one.
fn agent(dir: &Path, spawner: SpawnerProgram) -> Runtime {
    let workspace = dir.canonicalize().unwrap().join("w");
    std::fs::create_dir(&workspace).unwrap();
    fill(&workspace);
    let config = RuntimeConfig {
        home: dir.to_owned(),
        state_dir: dir.join("state"),
        workspace: workspace.clone(),
        protected: Vec::new(),
        env: Vec::new(),
        isolation: Isolation::Isolated,
        asking: Asking::Refuse,
        session: 1,
        spawner,
        umask: 0o022,
    };
    let mut runtime = Runtime::open(config, Box::new(NobodyThere), Box::new(BootClock)).unwrap();
    let agent = runtime.first_agent();
    let place = workspace.to_string_lossy();
    for (verb, object) in [("fs.*", &*place), ("proc.exec", "*")] {
        runtime
            .grant(agent, &GrantWords::new(verb, object))
            .unwrap();
    }
    runtime
}

fn ours(calls: usize) -> Vec<Cost> {
    let dirs = tempfile::tempdir().unwrap();
    let mut runtime = agent(dirs.path(), SpawnerProgram::At("/nonexistent".into()));
    let agent = runtime.first_agent();
    KINDS
        .iter()
        .map(|kind| {
            cost(calls, |number| {
                let (tool, args) = call(kind, number);
                let report = runtime.call(agent, tool, &args);
                assert!(!report.text.contains("\"error\""), "{}", report.text);
            })
        })
        .collect()
}

fn main() {
    maybe_run_as_child();
    // `cargo test --benches` runs this too; there it only has to work.
    let wants_figures = ambient::wants_figures();
    let calls = if wants_figures { CALLS } else { CALLS_TRIED };
    let (ours, floor) = (ours(calls), floor(calls));
    if !wants_figures {
        commands::measured(commands::ROUNDS_TRIED, None);
        return;
    }
    let mut hermes = hermes::start();
    let theirs: Option<Vec<Cost>> = hermes.as_mut().map(|hermes| {
        let calls = |kind: &str| {
            (0..=HERMES_CALLS)
                .map(|number| call(kind, number))
                .collect()
        };
        KINDS.map(|kind| hermes.cost(calls(kind))).to_vec()
    });
    let commands = commands::measured(commands::ROUNDS, hermes.as_mut());
    let mut report = report(&ours, floor, theirs.as_deref());
    report.push_str(&commands::section(commands.as_deref()));
    println!("{report}");
    if let Some(dir) = ambient::write_to() {
        assert!(
            theirs.is_some() && commands.is_some(),
            "Hermes is not installed here (`cargo bisim doctor`), or commands cannot be confined"
        );
        std::fs::write(dir.join("files.md"), report).unwrap();
    }
}

fn report(ours: &[Cost], floor: Cost, hermes: Option<&[Cost]>) -> String {
    let mut text = format!(
        "# What a call costs\n\n\
         Written by `cargo xtask files-report`; do not edit. Milliseconds of one call, the ledger included: {CALLS} \
         calls of each kind here, {HERMES_CALLS} in Hermes, in one run on one machine. Carry the ratios to another \
         machine, not the times. What confining a command costs by itself stands in [spawn.md](spawn.md).\n\n\
         | call | processor time | of Hermes | ratio | on the clock | of Hermes | ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|\n"
    );
    for (at, kind) in KINDS.iter().enumerate() {
        let one = ours[at];
        let row = match hermes.map(|hermes| hermes[at]) {
            Some(other) => format!(
                "| `{kind}` | {:.3} | {:.1} | {:.0} | {:.3} | {:.1} | {:.0} |",
                one.used,
                other.used,
                other.used / one.used.max(0.001),
                one.passed,
                other.passed,
                other.passed / one.passed.max(0.001),
            ),
            None => format!(
                "| `{kind}` | {:.3} | - | - | {:.3} | - | - |",
                one.used, one.passed
            ),
        };
        writeln!(text, "{row}").unwrap();
    }
    let files = SEARCHED[1].1;
    writeln!(
        text,
        "\nA bare loop that opens, reads and closes the {files} files, with nothing decided and nothing recorded: {:.3} \
         of processor time, {:.3} on the clock. A search reads no more of them than its page needs.",
        floor.used, floor.passed,
    )
    .unwrap();
    text
}
