//! What confinement costs: a command in the sandbox and the same command bare,
//! taken in turns, so that their ratio means something on a busy machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use criterion::Criterion;
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::session::Session;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::spawn::{Command, Ending, Limits, Sandbox, View, ViewMode};
use hermitcrab_sandbox::{DirCap, SpawnError, SpawnerProgram, maybe_run_as_child};
use support::{session, turn};

/// By hand instead of by macro: the sandbox starts this program again.
fn main() {
    maybe_run_as_child();
    let mut criterion = Criterion::default().configure_from_args();
    spawn(&mut criterion);
    criterion.final_summary();
}

fn spawn(criterion: &mut Criterion) {
    let temp = tempfile::tempdir().unwrap();
    let (mut session, dir) = session();
    let cap = DirCap::open_ambient_dir(temp.path(), dir).unwrap();
    let sandbox = Sandbox::new(SpawnerProgram::Own);
    let command = Command {
        argv: vec![b"/bin/sh".to_vec(), b"-c".to_vec(), b"true".to_vec()],
        env: Vec::new(),
        cwd: temp.path().to_owned(),
        views: vec![View {
            dir: &cap,
            at: temp.path().to_owned(),
            mode: ViewMode::CopyOnWrite,
            withheld: Withheld::default(),
        }],
        private_dirs: Vec::new(),
        inputs: Vec::new(),
        merge_stderr: true,
        network: hermitcrab_sandbox::net::Network::none(),
        limits: Limits::default(),
    };
    if let Err(error) = confined(&sandbox, &mut session, &command) {
        println!("SKIPPED: no confined command can run here: {error}");
        return;
    }
    let (mut all_confined, mut all_bare) = (Duration::ZERO, Duration::ZERO);
    let mut group = criterion.benchmark_group("spawn");
    group.sample_size(20);
    group.bench_function("confined `sh -c true`", |bencher| {
        bencher.iter_custom(|times| {
            let mut taken = Duration::ZERO;
            for _ in 0..times {
                all_bare += bare();
                taken += confined(&sandbox, &mut session, &command).unwrap();
            }
            all_confined += taken;
            taken
        });
    });
    group.finish();
    if !all_bare.is_zero() {
        println!(
            "confined takes {:.1} times as long as bare",
            all_confined.as_secs_f64() / all_bare.as_secs_f64()
        );
    }
}

fn confined(
    sandbox: &Sandbox,
    session: &mut Session,
    command: &Command<'_>,
) -> Result<Duration, SpawnError> {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    let started = Instant::now();
    let finished = turn(session, Tool::Terminal, action, |permit| {
        sandbox.run(permit, command)
    })?;
    let taken = started.elapsed();
    assert_eq!(finished.ending, Ending::Exited(0));
    assert!(finished.changes.iter().all(|changes| changes.is_empty()));
    Ok(taken)
}

fn bare() -> Duration {
    let started = Instant::now();
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", "true"])
        .status()
        .unwrap();
    assert!(status.success());
    started.elapsed()
}
