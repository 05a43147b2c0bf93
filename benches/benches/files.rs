//! What one file call costs, beside the same call of the real Hermes.
//!
//! Both run in this process's own temporary directories, one after the other.
//! Hermes' half needs the environment that `cargo bisim doctor` installs; where
//! it is missing, only the agent's half is printed and it is said so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ambient.rs"]
mod ambient;

use std::{path::Path, process::Command};

use hermitcrab::{
    ambient::{BootClock, NobodyThere},
    runtime::{GrantWords, Runtime, RuntimeConfig},
};
use hermitcrab_core::{rules::Isolation, session::Asking};
use hermitcrab_sandbox::SpawnerProgram;
use serde_json::{Value, json};

/// Calls of each kind that are timed.
const CALLS: usize = 200;
/// The same for Hermes, which takes far longer.
const HERMES_CALLS: usize = 20;

/// The calls, by number: each works on a file of its own, so that none is
/// answered from what an earlier one left.
fn call(kind: &str, number: usize) -> (&'static str, Value) {
    match kind {
        "write_file" => (
            "write_file",
            json!({"path": format!("w{number}.txt"), "content": "line\n".repeat(100)}),
        ),
        "read_file" => ("read_file", json!({"path": format!("r{number}.txt")})),
        "patch" => (
            "patch",
            json!({"mode": "replace", "path": format!("p{number}.txt"), "old_string": "second", "new_string": "2nd"}),
        ),
        _ => (
            "search_files",
            json!({"pattern": "second", "path": ".", "limit": 5 + number}),
        ),
    }
}

const KINDS: [&str; 4] = ["write_file", "read_file", "patch", "search_files"];

fn fill(dir: &Path) {
    for number in 0..CALLS {
        for letter in ["r", "p"] {
            std::fs::write(
                dir.join(format!("{letter}{number}.txt")),
                "first\nsecond\nthird\n",
            )
            .unwrap();
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

fn ours() -> Vec<f64> {
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
            let before = used();
            for number in 0..CALLS {
                let (tool, args) = call(kind, number);
                let report = runtime.call(agent, tool, &args);
                assert!(!report.text.contains("\"error\""), "{}", report.text);
            }
            (used() - before) / CALLS as f64
        })
        .collect()
}

const HERMES: &str = r#"
import json, os, sys
os.chdir(sys.argv[1])
import model_tools
def used():
    t = os.times()
    return (t.user + t.system + t.children_user + t.children_system) * 1000
for line in sys.stdin:
    calls = json.loads(line)
    tool, args = calls[0]
    model_tools.handle_function_call(tool, args, task_id="warm")
    before = used()
    for tool, args in calls[1:]:
        model_tools.handle_function_call(tool, args, task_id="bench")
    print("COST", (used() - before) / (len(calls) - 1), flush=True)
"#;

fn hermes() -> Option<Vec<f64>> {
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
    let costs: Vec<f64> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_prefix("COST ")?.parse().ok())
        .collect();
    (costs.len() == KINDS.len()).then_some(costs)
}

fn main() {
    // `cargo test --benches` runs this too; there it only has to work.
    let ours = ours();
    if !ambient::wants_figures() {
        return;
    }
    let hermes = hermes();
    println!("processor time of one call, in milliseconds");
    for (at, kind) in KINDS.iter().enumerate() {
        match &hermes {
            Some(hermes) => println!(
                "{kind:13} hermitcrab {:8.3}  hermes {:8.3}  ratio {:6.0}",
                ours[at],
                hermes[at],
                hermes[at] / ours[at].max(0.001)
            ),
            None => println!(
                "{kind:13} hermitcrab {:8.3}  hermes: not installed here (`cargo bisim doctor`)",
                ours[at]
            ),
        }
    }
}
