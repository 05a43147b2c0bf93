//! What one file call costs, beside the same call of the real Hermes.
//!
//! ```console
//! $ cargo xtask files-report
//! ```
//!
//! Both run in this process's own temporary directories, one after the other.
//! Hermes' half needs the environment that `cargo bisim doctor` installs; where
//! it is missing, only the agent's half is printed and it is said so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ambient.rs"]
mod ambient;

use std::{fmt::Write as _, os::fd::OwnedFd, path::Path, process::Command, time::Instant};

use hermitcrab::{
    ambient::{BootClock, NobodyThere},
    runtime::{GrantWords, Runtime, RuntimeConfig},
};
use hermitcrab_core::{rules::Isolation, session::Asking};
use hermitcrab_sandbox::SpawnerProgram;
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

fn ours(calls: usize) -> Vec<Cost> {
    let dirs = tempfile::tempdir().unwrap();
    let workspace = dirs.path().canonicalize().unwrap().join("w");
    std::fs::create_dir(&workspace).unwrap();
    fill(&workspace);
    let config = RuntimeConfig {
        home: dirs.path().to_owned(),
        state_dir: dirs.path().join("state"),
        workspace: workspace.clone(),
        protected: Vec::new(),
        env: Vec::new(),
        isolation: Isolation::Isolated,
        asking: Asking::Refuse,
        session: 1,
        spawner: SpawnerProgram::At("/nonexistent".into()),
    };
    let mut runtime = Runtime::open(config, Box::new(NobodyThere), Box::new(BootClock)).unwrap();
    let agent = runtime.first_agent();
    runtime
        .grant(
            agent,
            &GrantWords::new("fs.*", &workspace.to_string_lossy()),
        )
        .unwrap();
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

const HERMES: &str = r#"
import json, os, sys, time
os.chdir(sys.argv[1])
import model_tools
def used():
    t = os.times()
    return (t.user + t.system + t.children_user + t.children_system) * 1000
for line in sys.stdin:
    calls = json.loads(line)
    tool, args = calls[0]
    model_tools.handle_function_call(tool, args, task_id="warm")
    before, begun = used(), time.monotonic()
    for tool, args in calls[1:]:
        model_tools.handle_function_call(tool, args, task_id="bench")
    n = len(calls) - 1
    print("COST", (used() - before) / n, (time.monotonic() - begun) * 1000 / n, flush=True)
"#;

fn hermes() -> Option<Vec<Cost>> {
    let python = ambient::hermes_python().ok()?;
    let dirs = tempfile::tempdir().unwrap();
    let (home, workspace) = (dirs.path().join("h"), dirs.path().join("w"));
    std::fs::create_dir_all(home.join(".hermes")).unwrap();
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(
        home.join(".hermes/config.yaml"),
        "approvals:\n  mode: manual\nlsp:\n  enabled: false\nsecurity:\n  tirith_enabled: false\n",
    )
    .unwrap();
    fill(&workspace);
    let lines: String = KINDS
        .iter()
        .map(|kind| {
            let calls: Vec<Value> = (0..=HERMES_CALLS)
                .map(|number| json!(call(kind, number)))
                .collect();
            format!("{}\n", json!(calls))
        })
        .collect();
    let script = dirs.path().join("bench.py");
    std::fs::write(&script, HERMES).unwrap();
    let input = dirs.path().join("calls");
    std::fs::write(&input, lines).unwrap();
    let output = Command::new(python)
        .arg(&script)
        .arg(&workspace)
        .env_clear()
        .env("HOME", &home)
        .env("HERMES_HOME", home.join(".hermes"))
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .stdin(std::fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    let costs: Vec<Cost> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let (used, passed) = line.strip_prefix("COST ")?.split_once(' ')?;
            Some(Cost {
                used: used.parse().ok()?,
                passed: passed.parse().ok()?,
            })
        })
        .collect();
    (costs.len() == KINDS.len()).then_some(costs)
}

fn main() {
    // `cargo test --benches` runs this too; there it only has to work.
    let wants_figures = ambient::wants_figures();
    let calls = if wants_figures { CALLS } else { CALLS_TRIED };
    let (ours, floor) = (ours(calls), floor(calls));
    if !wants_figures {
        return;
    }
    let hermes = hermes();
    let report = report(&ours, floor, hermes.as_deref());
    println!("{report}");
    if let Some(dir) = ambient::write_to() {
        assert!(
            hermes.is_some(),
            "Hermes is not installed here (`cargo bisim doctor`)"
        );
        std::fs::write(dir.join("files.md"), report).unwrap();
    }
}

fn report(ours: &[Cost], floor: Cost, hermes: Option<&[Cost]>) -> String {
    let mut text = format!(
        "# What a file call costs\n\n\
         Written by `cargo xtask files-report`; do not edit. Milliseconds of one call, the ledger included: {CALLS} \
         calls of each kind here, {HERMES_CALLS} in Hermes, in one run on one machine. Carry the ratios to another \
         machine, not the times. What a command costs stands in [spawn.md](spawn.md).\n\n\
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
