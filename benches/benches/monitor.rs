//! What a decision costs: the monitor alone, and one turn of the session
//! machine with its ledger record and digest, beside few and beside many grants;
//! and what Hermes' detector of dangerous commands costs for the same command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ambient.rs"]
mod ambient;
#[path = "support/detector.rs"]
mod detector;
mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::cap::CapTable;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Lifetime, Limits, Uses};
use hermitcrab_core::monitor::{Decision, Request, authorize};
use hermitcrab_core::rules::{Isolation, Rules};
use hermitcrab_core::session::{Call, Event};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::sha256;
use support::{grant, on_dir, rel, session, turn};

/// The command that both sides are asked about.
const COMMAND: &str = "cd src && rm -rf ./build/cache && cp -r ../assets/img ./build && python3 tools/gen.py --out build/x.json";

/// Grants beside which decisions are timed; few where only the benchmark itself is tried.
const MANY: usize = if cfg!(debug_assertions) {
    10_000
} else {
    1_000_000
};

fn turns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("turn");
    for others in [0_usize, 100, 1000] {
        let (mut session, dir) = session();
        for number in 0..others {
            let below = rel(&format!("other/{number}"));
            grant(&mut session, vec![on_dir(Verb::FsRead, dir, below)]);
        }
        let read = Action::on_path(Verb::FsRead, dir, rel("src/deep/a.rs"), Digest::NONE).unwrap();
        group.bench_function(BenchmarkId::new("permit", others), |bencher| {
            bencher.iter(|| {
                turn(&mut session, Tool::ReadFile, read.clone(), |permit| {
                    permit.spend()
                })
            });
        });
    }
    let (mut session, dir) = session();
    let mount = Action::on_path(Verb::FsMount, dir, rel("a"), Digest::NONE).unwrap();
    group.bench_function("refusal", |bencher| {
        bencher.iter(|| {
            let call = Call {
                by: AgentId::FIRST,
                tool: Tool::ReadFile,
                actions: vec![mount.clone()],
            };
            let parts = session.step(Instant::BOOT, Event::Call(call)).into_parts();
            assert!(parts.permits.is_empty());
            parts.denials
        });
    });
    group.finish();
}

/// The monitor alone: rules, search, charge, permit.
fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    let mut ours = f64::MAX;
    for others in [0_usize, 1000, MANY] {
        let (mut table, rules, actions) = held(others);
        for (name, tool, action) in actions {
            let actions = [action];
            let call = some_call();
            let request = Request::new(call, AgentId::FIRST, tool, &actions);
            let mut decide = || match authorize(&mut table, &rules, &request, Instant::BOOT) {
                Decision::Permit(permits) => {
                    let mut spent = 0_usize;
                    for permit in permits {
                        let _spent = permit.spend();
                        spent += 1;
                    }
                    spent
                }
                Decision::Ask(_) | Decision::Deny(_) => panic!("{name} is held"),
            };
            group.bench_function(BenchmarkId::new(name, others), |bencher| {
                bencher.iter(|| black_box(decide()));
            });
            let best = best_of(&mut decide);
            println!("{name} beside {others} grants: {best:.0} ns at best");
            if name == "command" && others == 0 {
                ours = best;
            }
        }
    }
    group.finish();
    match ambient::hermes_python().and_then(|python| detector::times(&python, &[COMMAND])) {
        Ok(times) => {
            for hermes in times {
                println!(
                    "`{COMMAND}`: Hermes' detector {:.1} us, the monitor {:.3} us: {:.0} times",
                    hermes / 1000.0,
                    ours / 1000.0,
                    hermes / ours
                );
            }
        }
        Err(reason) => println!("SKIPPED: Hermes' detector was not timed: {reason}"),
    }
}

/// Nanoseconds of one call, the best of several batches.
fn best_of(call: &mut impl FnMut() -> usize) -> f64 {
    let batch = 2000_u32;
    (0..7)
        .map(|_| {
            let started = std::time::Instant::now();
            for _ in 0..batch {
                black_box(call());
            }
            started.elapsed().as_secs_f64() * 1e9 / f64::from(batch)
        })
        .fold(f64::MAX, f64::min)
}

fn some_call() -> hermitcrab_core::approval::CallId {
    let (mut session, dir) = session();
    let read = Action::on_path(Verb::FsRead, dir, rel("a"), Digest::NONE).unwrap();
    turn(&mut session, Tool::ReadFile, read, |permit| permit.call())
}

type Actions = [(&'static str, Tool, Action); 2];

/// A table with one grant on a directory and on commands beside `others`.
fn held(others: usize) -> (CapTable, Rules, Actions) {
    let mut rules = Rules::new(1, Isolation::Isolated, vec![rel("home/u/.config/agent")]);
    let dir = rules.add_dir(rel("home/u/project")).unwrap();
    let mut table = CapTable::new();
    let limits = Limits::starting(Instant::BOOT, Uses::Uncounted, Lifetime::Session);
    let program = Object::Program(Program::AnyInView);
    let caps = vec![
        on_dir(Verb::FsRead, dir, rel("src")),
        hermitcrab_core::authority::Cap::new(Verb::ProcExec, program.clone()).unwrap(),
    ];
    let authority = hermitcrab_core::authority::Authority::from_caps(caps).unwrap();
    table.grant(AgentId::FIRST, authority, limits).unwrap();
    for number in 0..others {
        let below = rel(&format!("other/{number}"));
        let cap = on_dir(Verb::FsRead, dir, below);
        let authority = hermitcrab_core::authority::Authority::of(cap);
        table.grant(AgentId::FIRST, authority, limits).unwrap();
    }
    let read = Action::on_path(Verb::FsRead, dir, rel("src/deep/a.rs"), Digest::NONE).unwrap();
    let run = Action::new(Verb::ProcExec, program, sha256(COMMAND.as_bytes())).unwrap();
    let actions = [
        ("file", Tool::ReadFile, read),
        ("command", Tool::Terminal, run),
    ];
    (table, rules, actions)
}

criterion_group!(benches, decisions, turns);
criterion_main!(benches);
