//! Starts a real worker for the tests, or says why it cannot.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bisim_world::launch::{Answer, Worker, hermes_command};
use bisim_world::protocol::*;
use serde_json::{Map, Value, json};

/// The venv's python: from `HERMITCRAB_TEST_VENV`, or where `cargo bisim` keeps its own.
pub fn python() -> Option<PathBuf> {
    let venvs = match std::env::var_os("HERMITCRAB_TEST_VENV") {
        Some(venv) => vec![PathBuf::from(venv)],
        None => {
            let cache = std::env::var_os("HERMITCRAB_CACHE")
                .map(PathBuf::from)
                .or_else(|| {
                    std::env::var_os("XDG_CACHE_HOME")
                        .map(PathBuf::from)
                        .or_else(|| {
                            std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"))
                        })
                        .map(|cache| cache.join("hermitcrab"))
                })?;
            std::fs::read_dir(cache.join("hermes"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path().join("venv"))
                .collect()
        }
    };
    venvs
        .into_iter()
        .map(|venv| venv.join("bin/python"))
        .find(|python| python.exists())
}

/// The shared object that cargo put beside this test.
fn extension() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libhermes_shim.so")
}

/// The command that starts a worker; `None` (after saying why) where there is no Hermes.
pub fn command() -> Option<Command> {
    let Some(python) = python() else {
        println!(
            "SKIPPED: no Hermes venv (set HERMITCRAB_TEST_VENV or run cargo bisim doctor once)"
        );
        return None;
    };
    let mut command = hermes_command(&python, &extension());
    command.stderr(std::process::Stdio::inherit());
    Some(command)
}

/// A running worker; `None` (after saying why) where there is no Hermes or no user namespace.
pub fn worker() -> Option<Worker> {
    started(command()?)
}

/// A worker that this command starts; `None` (after saying why) without user namespaces.
pub fn started(command: Command) -> Option<Worker> {
    match Worker::start(command, Duration::from_secs(120)) {
        Ok(worker) => Some(worker),
        Err(error) if error.message.contains("unprivileged user namespaces") => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("the worker does not start: {error}"),
    }
}

/// A part of a test, by its name: what it has a worker do.
pub type Part = (&'static str, fn(&mut Worker));

/// Functions by their names, as [`in_turn`] takes them.
#[allow(unused_macros)]
macro_rules! parts {
    ($($part:ident),+ $(,)?) => {
        &[$((stringify!($part), $part)),+]
    };
}
#[allow(unused_imports)]
pub(crate) use parts;

/// Has one worker serve all parts, one after the other: starting Hermes is most of what each
/// of them would take by itself. The end names those that failed, what each said is above it.
/// After one that failed the rest have a worker of their own, whatever became of the first.
pub fn in_turn(parts: &[Part]) {
    let Some(mut serving) = worker() else { return };
    let mut failed = Vec::new();
    for (name, part) in parts {
        println!("part {name}");
        if catch_unwind(AssertUnwindSafe(|| part(&mut serving))).is_err() {
            failed.push(*name);
            serving = worker().expect("there was one before");
        }
    }
    assert!(failed.is_empty(), "of the parts above failed {failed:?}");
}

/// A job in the standard project with these calls.
pub fn job(context: Context, user: UserModel, script: Vec<Step>) -> Job {
    Job {
        world: Some(WorldSpec {
            cwd: "/home/u/proj".to_owned(),
            files: Vec::new(),
            flip: None,
            serves: None,
            conversations: Vec::new(),
        }),
        context,
        user,
        held: Vec::new(),
        rules: Vec::new(),
        settings: Map::new(),
        drive: Drive::Calls,
        script,
        deadline_ms: 60_000,
    }
}

pub fn terminal(command: &str) -> Step {
    call("terminal", json!({ "command": command }))
}

pub fn call(tool: &str, args: Value) -> Step {
    Step::Call {
        tool: tool.to_owned(),
        args,
        by: None,
    }
}

/// Runs a job that the harness must manage.
pub fn run(worker: &mut Worker, job: Job) -> RawTrace {
    match worker.run(job) {
        Answer::Trace(trace) => *trace,
        other => panic!("the harness failed: {other:?}"),
    }
}

/// Effects as `kind path`.
pub fn told(effects: &[FsEffect]) -> Vec<String> {
    effects
        .iter()
        .map(|effect| format!("{:?} {}", effect.kind, effect.path))
        .collect()
}
