//! The spawn path beside its peers, in one run: a table and a plot.
//!
//! ```console
//! $ cargo xtask bench-report
//! ```
//!
//! Without `--write` everything is done a few times only, to see that it works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ambient;
mod deadline;
mod filter;
mod floor;
mod mechanisms;
mod peers;
mod sheet;
#[path = "../support/mod.rs"]
mod support;

use std::process::{Command as Bare, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::AgentId;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::session::{Call, Event};
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::DirCap;
use hermitcrab_sandbox::spawn::{
    Command, Ending, Finished, Limits, PoolSize, Sandbox, View, ViewMode,
};
use hermitcrab_sandbox::spawner::maybe_run_as_weakened_child;
use sheet::Line;

/// Time for the pool to be full again; it works while the agent does not.
const REFILL: Duration = Duration::from_millis(12);

fn main() {
    // Leaves a mechanism out when it is told to, to see what each costs.
    maybe_run_as_weakened_child();
    if filter::maybe_install() || floor::maybe_isolate() {
        return;
    }
    let write_to = ambient::write_to();
    let rounds = if write_to.is_some() { 300 } else { 4 };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let bench = Bench::new();
    if let Err(why) = bench.usable() {
        println!("SKIPPED: no confined command can run here: {why}");
        return;
    }
    let mut notes = vec![format!(
        "load of the machine at the start: {}; {} processors",
        load.split(' ').next().unwrap_or_default(),
        std::thread::available_parallelism().map_or(0, usize::from)
    )];
    let mut lines = one_by_one(&bench, rounds, &mut notes);
    lines.extend(mechanisms::left_out(&bench, rounds / 6));
    let base = || bare(&["/bin/true"]);
    lines.extend(filter::installed(rounds / 2, &base));
    lines.extend(interpreters(&bench, rounds / 2));
    lines.extend(pauses(&bench, rounds / 4));
    lines.extend(big_parents(&bench, rounds, write_to.is_some(), &mut notes));
    lines.extend(under_load(&bench, rounds * BUSY_TIMES, &mut notes));
    at_once(&bench, write_to.is_some(), &mut notes);
    deadline::deadline(&bench, write_to.is_some(), &mut notes);
    commit(&bench, write_to.is_some(), &mut notes);
    let table = sheet::table(&lines, &notes);
    println!("{table}");
    if let Some(dir) = write_to {
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("spawn.md"), table).unwrap();
        std::fs::write(dir.join("spawn.svg"), sheet::plot(&lines)).unwrap();
    }
}

struct Bench {
    temp: tempfile::TempDir,
    warm: Sandbox,
    /// No network that served another.
    warm_fresh: Sandbox,
    cold: Sandbox,
    cold_fresh: Sandbox,
}

impl Bench {
    fn new() -> Self {
        Self {
            temp: tempfile::tempdir().unwrap(),
            warm: Sandbox::builder().build(),
            warm_fresh: Sandbox::builder().pool(fresh(PoolSize::default())).build(),
            cold: Sandbox::builder().pool(PoolSize::OFF).build(),
            cold_fresh: Sandbox::builder().pool(fresh(PoolSize::OFF)).build(),
        }
    }

    fn usable(&self) -> Result<(), String> {
        let (mut session, dir) = support::session();
        let cap = DirCap::open_ambient_dir(self.temp.path(), dir).unwrap();
        let command = command(self, Some(&cap), &["/bin/true"]);
        spend(&self.cold, &mut session, &command).map(drop)
    }

    /// One confined run; with a view of the directory, or without any.
    fn confined(&self, sandbox: &Sandbox, argv: &[&str], seen: bool) -> Duration {
        let (mut session, dir) = support::session();
        let cap = DirCap::open_ambient_dir(self.temp.path(), dir).unwrap();
        let command = command(self, seen.then_some(&cap), argv);
        let started = Instant::now();
        let finished = spend(sandbox, &mut session, &command).unwrap();
        let taken = started.elapsed();
        assert_eq!(finished.ending, Ending::Exited(0));
        taken
    }

    fn warm(&self, argv: &[&str]) -> Duration {
        std::thread::sleep(REFILL);
        self.confined(&self.warm, argv, true)
    }
}

fn fresh(size: PoolSize) -> PoolSize {
    PoolSize {
        recycled: false,
        ..size
    }
}

fn command<'a>(bench: &Bench, cap: Option<&'a DirCap>, argv: &[&str]) -> Command<'a> {
    Command {
        argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
        cwd: "/".into(),
        views: cap
            .map(|dir| View {
                dir,
                at: bench.temp.path().to_owned(),
                mode: ViewMode::CopyOnWrite,
                withheld: Withheld::default(),
            })
            .into_iter()
            .collect(),
        private_dirs: Vec::new(),
        inputs: Vec::new(),
        merge_stderr: false,
        network: hermitcrab_sandbox::net::Network::none(),
        limits: Limits::default(),
    }
}

fn spend(
    sandbox: &Sandbox,
    session: &mut hermitcrab_core::session::Session,
    command: &Command<'_>,
) -> Result<Finished, String> {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    support::turn(session, Tool::Terminal, action, |permit| {
        sandbox.run(permit, command)
    })
    .map_err(|error| error.to_string())
}

/// posix_spawn with two capture pipes, read to their end.
fn bare(argv: &[&str]) -> Duration {
    let started = Instant::now();
    let output = Bare::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{argv:?}: {output:?}");
    started.elapsed()
}

/// A name, the ratio it should reach, and one run of it.
type Contender<'a> = (String, Option<f64>, Box<dyn Fn() -> Duration + 'a>);

/// Runs all contenders and the baseline in turns.
fn in_turns(
    group: &'static str,
    rounds: usize,
    base: &dyn Fn() -> Duration,
    contenders: Vec<Contender<'_>>,
) -> Vec<Line> {
    let mut lines: Vec<Line> = contenders
        .iter()
        .map(|(name, target, _)| Line {
            group,
            name: name.clone(),
            times: Vec::new(),
            base: Vec::new(),
            target: *target,
        })
        .collect();
    for _ in 0..rounds.max(1) {
        for (line, (_, _, run)) in lines.iter_mut().zip(&contenders) {
            line.base.push(base());
            line.times.push(run());
        }
    }
    lines
}

fn one_by_one(bench: &Bench, rounds: usize, notes: &mut Vec<String>) -> Vec<Line> {
    let ours: Vec<Contender<'_>> = vec![
        (
            "hermitcrab, waiting sandbox".into(),
            Some(1.15),
            Box::new(|| bench.warm(&["/bin/true"])),
        ),
        (
            "hermitcrab, waiting sandbox, no view".into(),
            None,
            Box::new(|| {
                std::thread::sleep(REFILL);
                bench.confined(&bench.warm, &["/bin/true"], false)
            }),
        ),
    ];
    let group = "One `/bin/true`";
    let base = || bare(&["/bin/true"]);
    let mut lines = in_turns(group, rounds, &base, ours);
    // Each apart from the others: network namespaces that are destroyed slow down
    // what follows, whoever made them.
    let fresh: Vec<Contender<'_>> = vec![(
        "hermitcrab, waiting sandbox, every namespace fresh".into(),
        Some(1.15),
        Box::new(|| {
            std::thread::sleep(REFILL);
            bench.confined(&bench.warm_fresh, &["/bin/true"], true)
        }),
    )];
    lines.extend(in_turns(group, rounds, &base, fresh));
    let recycled: Vec<Contender<'_>> = vec![(
        "hermitcrab, cold, recycled empty network".into(),
        Some(2.1),
        Box::new(|| bench.confined(&bench.cold, &["/bin/true"], true)),
    )];
    lines.extend(in_turns(group, rounds, &base, recycled));
    let cold: [Contender<'_>; 2] = [
        (
            "hermitcrab, cold, everything fresh".into(),
            Some(3.0),
            Box::new(|| bench.confined(&bench.cold_fresh, &["/bin/true"], true)),
        ),
        (
            "hermitcrab, cold, everything fresh, no view".into(),
            Some(3.0),
            Box::new(|| bench.confined(&bench.cold_fresh, &["/bin/true"], false)),
        ),
    ];
    for one in cold {
        lines.extend(in_turns(group, rounds / 2, &base, vec![one]));
    }
    let bundle = tempfile::tempdir().unwrap();
    let others = peers::that_run(bundle.path(), notes);
    lines.extend(in_turns(group, rounds / 2, &base, others));
    lines
}

fn interpreters(bench: &Bench, rounds: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (argv, target) in [
        (&["/bin/sh", "-c", "true"][..], 0.5),
        (&["/bin/bash", "-c", "echo hi; ls / > /dev/null"], 0.9),
        (&["/usr/bin/python3", "-c", "print(1)"], 0.4),
    ] {
        if !std::path::Path::new(argv[0]).exists() {
            continue;
        }
        let name = format!("hermitcrab, `{}`", argv.join(" "));
        let run: Box<dyn Fn() -> Duration + '_> = Box::new(|| bench.warm(argv));
        let base = || bare(argv);
        lines.extend(in_turns(
            "Interpreters, to the same one started bare",
            rounds,
            &base,
            vec![(name, Some(target), run)],
        ));
    }
    lines
}

fn pauses(bench: &Bench, rounds: usize) -> Vec<Line> {
    let pause = Duration::from_millis(200);
    let base = || {
        std::thread::sleep(pause);
        bare(&["/bin/true"])
    };
    let run: Box<dyn Fn() -> Duration + '_> = Box::new(|| {
        std::thread::sleep(pause);
        bench.confined(&bench.warm, &["/bin/true"], true)
    });
    in_turns(
        "One command every 200 ms",
        rounds,
        &base,
        vec![(
            "hermitcrab, waiting sandbox, after a pause".into(),
            Some(1.2),
            run,
        )],
    )
}

/// The same from parents of several sizes, in turns as well, so that each meets
/// the same states of the machine.
fn big_parents(bench: &Bench, rounds: usize, full: bool, notes: &mut Vec<String>) -> Vec<Line> {
    const TURNS: usize = 4;
    let sizes: &[usize] = if full { &[0, 50, 500, 1024] } else { &[0, 50] };
    let mut lines: Vec<Line> = Vec::new();
    for _ in 0..TURNS {
        for megabytes in sizes {
            // Written, so that the pages exist.
            let memory = vec![1_u8; (megabytes << 20).max(1)];
            let base = || bare(&["/bin/true"]);
            let run: Box<dyn Fn() -> Duration + '_> = Box::new(|| bench.warm(&["/bin/true"]));
            let name = match megabytes {
                0 => "hermitcrab, from a small parent".to_owned(),
                _ => format!("hermitcrab, from {megabytes} MB resident"),
            };
            let part = in_turns(
                "From a big parent",
                rounds / TURNS,
                &base,
                vec![(name, Some(1.15), run)],
            );
            assert_eq!(std::hint::black_box(&memory).last(), Some(&1));
            for more in part {
                match lines.iter_mut().find(|line| line.name == more.name) {
                    Some(line) => {
                        line.times.extend(more.times);
                        line.base.extend(more.base);
                    }
                    None => lines.push(more),
                }
            }
        }
    }
    let small = lines.first().map_or(f64::NAN, Line::median);
    for line in lines.iter().skip(1) {
        let share = line.median() / small;
        notes.push(format!(
            "{}: {share:.2} of the time from a small parent ({})",
            line.name,
            sheet::at_most(share, 1.05)
        ));
    }
    lines
}

/// How many more are started there: the last hundredth of a few says little.
const BUSY_TIMES: usize = 4;

/// Two busy threads for each core.
fn under_load(bench: &Bench, rounds: usize, notes: &mut Vec<String>) -> Vec<Line> {
    let stop = AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores * 2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let base = || bare(&["/bin/true"]);
        let run: Box<dyn Fn() -> Duration + '_> = Box::new(|| bench.warm(&["/bin/true"]));
        let lines = in_turns(
            "On a busy machine: two spinning threads for each core",
            rounds,
            &base,
            vec![("hermitcrab, waiting sandbox, busy".into(), None, run)],
        );
        stop.store(true, Ordering::Relaxed);
        for line in &lines {
            let share = line.p99() / sheet::quantile(&line.base, 0.5);
            let bare = sheet::quantile(&line.base, 0.99) / sheet::quantile(&line.base, 0.5);
            notes.push(format!(
                "busy: the 99th percentile is {share:.2} times the median of a bare spawn there ({}); that of the bare spawns themselves is {bare:.2} times it",
                sheet::at_most(share, 2.5)
            ));
        }
        lines
    })
}

/// Commands in a second, from 1 to 16 threads, refill included; bare ones and
/// ours in turns.
fn at_once(bench: &Bench, full: bool, notes: &mut Vec<String>) {
    const TURNS: u32 = 4;
    let time = Duration::from_millis(if full { 500 } else { 20 });
    for threads in [1_usize, 2, 4, 8, 16] {
        let count = |run: &(dyn Fn() -> Duration + Sync)| {
            let started = Instant::now();
            let all: u32 = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut done = 0_u32;
                            while started.elapsed() < time {
                                run();
                                done += 1;
                            }
                            done
                        })
                    })
                    .collect();
                workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap())
                    .sum()
            });
            f64::from(all) / started.elapsed().as_secs_f64()
        };
        let mut floors = match threads {
            // So many that the processors have work while some of them wait.
            8 => floor::start(threads, bench.temp.path()),
            _ => Vec::new(),
        };
        let (mut bares, mut ours, mut kernel) = (0.0, 0.0, 0.0);
        for _ in 0..TURNS {
            bares += count(&|| bare(&["/bin/true"])) / f64::from(TURNS);
            ours += count(&|| bench.confined(&bench.warm, &["/bin/true"], true)) / f64::from(TURNS);
            kernel += floor::a_second(&mut floors, time) / f64::from(TURNS);
        }
        let share = ours / bares;
        let target = match threads {
            // "On two processors" can be read both ways: one after another, and one for each.
            1 | 2 => format!(" ({})", sheet::at_least(share, 0.5)),
            _ => String::new(),
        };
        notes.push(format!(
            "sustained, refill included, {threads} at once: {ours:.0} a second, bare {bares:.0}, share {share:.2}{target}"
        ));
        if let Some(floor) = floors.first() {
            notes.push(format!(
                "of that the kernel's share: the same isolation by plain system calls, nothing prepared, asked or read back ({} control groups), {threads} at once: {kernel:.0} a second, share {:.2}",
                floor.groups(),
                kernel / bares
            ));
        }
    }
}

fn commit(bench: &Bench, full: bool, notes: &mut Vec<String>) {
    let files = if full { 1000 } else { 10 };
    let (mut session, dir) = support::session();
    let cap = DirCap::open_ambient_dir(bench.temp.path(), dir).unwrap();
    let script = format!(
        "cd {}; for i in $(seq {files}); do echo $i > f$i; done",
        bench.temp.path().display()
    );
    let command = command(bench, Some(&cap), &["/bin/bash", "-c", &script]);
    let finished = spend(&bench.warm, &mut session, &command).unwrap();
    let changes = finished.changes.first().unwrap();
    let actions = changes.actions(dir).unwrap();
    let parts = session
        .step(
            hermitcrab_core::time::Instant::BOOT,
            Event::Call(Call {
                by: AgentId::FIRST,
                tool: Tool::Directory,
                actions,
            }),
        )
        .into_parts();
    let state = tempfile::tempdir().unwrap();
    let (journal, _) = hermitcrab_sandbox::Journal::open(state.path()).unwrap();
    let part = hermitcrab_sandbox::journal::Part {
        dir: &cap,
        set: changes,
        permits: parts.permits,
    };
    let started = Instant::now();
    let commit = journal.commit(vec![part], "bench");
    let taken = started.elapsed();
    assert!(commit.failure.is_none(), "{:?}", commit.failure);
    notes.push(format!(
        "commit of {files} new files, each made durable: {:.0} µs a file",
        taken.as_secs_f64() * 1e6 / f64::from(files)
    ));
}
