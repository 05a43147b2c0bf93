//! What grants cost, and that they hold under load, in one run: a table.
//!
//! ```console
//! $ cargo xtask grants-report
//! ```
//!
//! Without `--write` everything is done a few times only, to see that it works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/ambient.rs"]
mod ambient;
#[path = "../support/detector.rs"]
mod detector;
mod load;
mod mid_run;
#[path = "../support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant as Moment;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Program, Verb};
use hermitcrab_core::cap::CapTable;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, GrantId, Lifetime, Limits, Revoker, Uses};
use hermitcrab_core::monitor::{self, Request};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::{Isolation, Rules};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::sha256;
use support::{on_dir, rel, session};

/// The commands Hermes' detector is given: one it flags, and two it must search
/// to the end. The monitor decides on effects, so its time is the same for all.
const COMMANDS: [&str; 3] = [
    "rm -rf build && git push --force origin main",
    "cargo test --workspace -- --nocapture",
    "git add -A && git commit -m 'work in progress' && make -j4 all",
];

fn main() {
    // Before anything else: the sandbox starts this program again.
    hermitcrab_sandbox::maybe_run_as_child();
    let write_to = ambient::write_to();
    let in_full = write_to.is_some();
    let mut sheet = String::from(
        "# What grants cost\n\nWritten by `cargo xtask grants-report`, in one run on one machine.\n\n| What | Figure |\n|---|---|\n",
    );
    let mut row = |what: &str, figure: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(sheet, "| {what} | {figure} |");
    };
    for depth in [0, 1, 3, 10] {
        let nanos = invocation(depth, in_full);
        row(
            &format!("a use through {depth} forwarders"),
            format!("{nanos:.0} ns"),
        );
    }
    let (ours, about_a_file) = decisions(in_full);
    row(
        "a decision of the monitor about a command, beside 1001 grants",
        format!("{ours:.0} ns"),
    );
    row(
        "a decision of the monitor about a file that a command wants to remove, beside 1001 grants",
        format!("{about_a_file:.0} ns"),
    );
    match ambient::hermes_python().and_then(|python| detector::times(&python, &COMMANDS)) {
        Ok(times) => {
            for (command, hermes) in COMMANDS.iter().zip(times) {
                row(
                    &format!("Hermes' detector on `{command}`"),
                    format!(
                        "{:.1} us, {:.0} times as long as ours about a command, {:.0} times as long as about a file",
                        hermes / 1000.0,
                        hermes / ours,
                        hermes / about_a_file
                    ),
                );
            }
        }
        Err(why) => row("Hermes' detector", format!("not timed: {why}")),
    }
    beside_many(if in_full { 1_000_000 } else { 10_000 }, &mut row);
    let done = load::run(if in_full { 10_000_000 } else { 100_000 });
    row(
        &format!(
            "{} operations of {} threads on one session",
            done.operations,
            load::THREADS
        ),
        format!(
            "{:.1} s; {} uses of at most {}, {} refusals, none after the revocation",
            done.seconds, done.used, done.limit, done.refused
        ),
    );
    let (what, figure) = revocations(if in_full { 200 } else { 2 });
    row(&what, figure);
    println!("{sheet}");
    if let Some(dir) = write_to {
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("grants.md"), sheet).unwrap();
    }
}

/// From the word that takes a grant back until nothing of its command runs.
fn revocations(count: usize) -> (String, String) {
    let what = format!("the end of a running command of 21 processes, {count} times");
    let figure = match mid_run::times(count) {
        None => "not measured: commands cannot be confined here".to_owned(),
        Some(times) => {
            let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
            format!(
                "{:.1} ms in the median, {:.1} ms at 99 %, {:.1} ms at most",
                at(50),
                at(99),
                at(100)
            )
        }
    };
    (what, figure)
}

fn limits(uses: Uses) -> Limits {
    Limits::starting(Instant::BOOT, uses, Lifetime::Session)
}

/// Nanoseconds of one call, the median of several batches.
fn median_of(in_full: bool, mut call: impl FnMut()) -> f64 {
    let (batches, batch) = if in_full { (31, 20_000_u32) } else { (3, 100) };
    let mut times: Vec<f64> = (0..batches)
        .map(|_| {
            let started = Moment::now();
            for _ in 0..batch {
                call();
            }
            started.elapsed().as_secs_f64() * 1e9 / f64::from(batch)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn invocation(depth: usize, in_full: bool) -> f64 {
    let (_, dir) = session();
    let mut table = CapTable::new();
    let whole = Authority::of(on_dir(Verb::FsRead, dir, RelPath::root()));
    let first = AgentId::FIRST;
    let root = table.grant(first, whole, limits(Uses::AtMost(u64::MAX)));
    let mut last: GrantId = root.unwrap().grant();
    for _ in 0..depth {
        let next = table.forward(first, last, first, Instant::BOOT);
        last = next.unwrap().grant();
    }
    median_of(in_full, || {
        table.invoke(first, black_box(last), Instant::BOOT).unwrap();
    })
}

/// Nanoseconds of a decision about a command, and of one about an effect it
/// wants to have on a file, beside a thousand grants on other places.
fn decisions(in_full: bool) -> (f64, f64) {
    let mut rules = Rules::new(1, Isolation::Isolated, vec![rel("home/u/.config/agent")]);
    let dir = rules.add_dir(rel("home/u/project")).unwrap();
    let mut table = CapTable::new();
    for number in 0..1000 {
        grant(&mut table, dir, &format!("other/{number}"));
    }
    let program = Object::Program(Program::AnyInView);
    let held = [
        on_dir(Verb::FsDelete, dir, rel("build")),
        Cap::new(Verb::ProcExec, program.clone()).unwrap(),
    ];
    for cap in held {
        table
            .grant(AgentId::FIRST, Authority::of(cap), limits(Uses::Uncounted))
            .unwrap();
    }
    let call = {
        let (mut session, dir) = session();
        let read = Action::on_path(Verb::FsRead, dir, rel("a"), Digest::NONE).unwrap();
        support::turn(&mut session, Tool::ReadFile, read, |permit| permit.call())
    };
    let mut nanos = |action: Action| {
        let actions = [action];
        median_of(in_full, || {
            let request = Request::new(call, AgentId::FIRST, Tool::Terminal, black_box(&actions));
            let decided = monitor::authorize(&mut table, &rules, &request, Instant::BOOT);
            assert!(matches!(
                black_box(decided),
                monitor::Decision::Permit(ref permits) if permits.len() == 1
            ));
        })
    };
    let shown = sha256(COMMANDS[0].as_bytes());
    let command = nanos(Action::new(Verb::ProcExec, program, shown).unwrap());
    let below = rel("build/out/a.o");
    let file = nanos(Action::on_path(Verb::FsDelete, dir, below, Digest::NONE).unwrap());
    (command, file)
}

fn grant(table: &mut CapTable, dir: DirId, below: &str) -> Revoker {
    let cap = on_dir(Verb::FsRead, dir, rel(below));
    table
        .grant(AgentId::FIRST, Authority::of(cap), limits(Uses::Uncounted))
        .unwrap()
}

fn beside_many(count: usize, row: &mut impl FnMut(&str, String)) {
    let (_, dir) = session();
    let before = resident();
    let mut table = CapTable::new();
    for number in 0..count {
        grant(&mut table, dir, &format!("other/{number}"));
    }
    let bytes = resident().saturating_sub(before) / count;
    row(
        &format!("memory of a grant, {count} of them live"),
        format!("{bytes} bytes"),
    );
    let asked = on_dir(
        Verb::FsRead,
        dir,
        rel(&format!("other/{}/deep/file", count / 2)),
    );
    let nanos = median_of(count > 100_000, || {
        table
            .choose(AgentId::FIRST, black_box(&asked), Instant::BOOT)
            .unwrap();
    });
    row(
        &format!("a lookup beside {count} grants"),
        format!("{nanos:.0} ns"),
    );
    // Ending is for good, so each is timed once.
    for (size, families) in [(1_usize, 200_usize), (10, 200), (100, 100), (1000, 15)] {
        let roots: Vec<Revoker> = (0..families)
            .map(|_| {
                let root = grant(&mut table, dir, "family");
                let mut last = root.grant();
                for member in 1..size {
                    // As deep as grants may be derived, then from the root again.
                    let from = if member % 30 == 0 { root.grant() } else { last };
                    let next = table.forward(AgentId::FIRST, from, AgentId::FIRST, Instant::BOOT);
                    last = next.unwrap().grant();
                }
                root
            })
            .collect();
        let mut times: Vec<f64> = roots
            .iter()
            .map(|root| {
                let started = Moment::now();
                let ended = black_box(table.revoke(root));
                let took = started.elapsed().as_secs_f64() * 1e9;
                assert_eq!(ended.len(), size);
                took
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        row(
            &format!("the end of a grant with {size} in its subtree, beside {count}"),
            format!(
                "{median:.0} ns, {:.0} ns for each",
                median / f64::from(u32::try_from(size).unwrap())
            ),
        );
    }
}

/// Bytes of memory this process holds.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
