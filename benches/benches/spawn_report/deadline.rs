//! From the deadline of a command to its result, with a hundred processes to kill.
//!
//! Three hundreds: a hundred programs of their own, a hundred forks of one small
//! program, and a hundred that have used up their processor time for now, which
//! is what a fork bomb is. Beside each the same hundred without a
//! sandbox, killed as one group and reaped by whoever started it. The target is a time
//! and no ratio, so how many bare spawns that is on the machine at hand is told, too.

use std::os::unix::process::CommandExt as _;
use std::process::{Command as Bare, Stdio};
use std::time::{Duration, Instant};

use hermitcrab_sandbox::DirCap;
use hermitcrab_sandbox::spawn::Ending;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid};

use crate::{Bench, command, sheet, spend, support};

/// Long enough for the hundred to have begun.
const BEGUN: Duration = Duration::from_millis(1500);
const MS_MAX: f64 = 5.0;
/// Those are a hundred with the first; what they are started with comes on top.
const PROCESSES_MAX: u64 = 150;

struct Tree {
    what: &'static str,
    program: &'static str,
    /// Ends with a line, and goes on.
    script: &'static str,
    target: Option<f64>,
}

const TREES: [Tree; 3] = [
    Tree {
        what: "100 forks of one small program (dash)",
        program: "/bin/sh",
        script: "mkfifo $D/f.$$; exec 3<>$D/f.$$; rm $D/f.$$; i=0; while [ $i -lt 99 ]; do \
                 (trap '' TERM; read x <&3) & i=$((i+1)); done; echo up; read x <&3",
        target: Some(MS_MAX),
    },
    Tree {
        what: "100 programs of their own (sleep)",
        program: "/bin/bash",
        script: "trap '' TERM; for i in {1..99}; do sleep 1000 & done; echo up; exec sleep 1000",
        target: Some(MS_MAX),
    },
    Tree {
        what: "100 that never rest",
        program: "/bin/sh",
        // None begins before all are there.
        script: "mkfifo $D/f.$$; exec 3<>$D/f.$$; rm $D/f.$$; i=0; while [ $i -lt 99 ]; do \
                 (trap '' TERM; read x <&3; while :; do :; done) & i=$((i+1)); done; \
                 i=0; while [ $i -lt 99 ]; do echo >&3; i=$((i+1)); done; \
                 echo up; while :; do :; done",
        target: None,
    },
];

/// The time from the deadline to the return, for both.
pub fn deadline(bench: &Bench, full: bool, notes: &mut Vec<String>) {
    let rounds = if full { 15 } else { 1 };
    for tree in &TREES {
        let (mut late, mut bare, mut spawn) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            late.push(confined(bench, tree));
            bare.push(reaped_bare(bench, tree));
            spawn.push(crate::bare(&["/bin/true"]));
        }
        let median = |times: &[Duration]| sheet::quantile(times, 0.5) / 1000.0;
        let judged = tree.target.map_or_else(String::new, |most| {
            format!(" ({})", sheet::at_most(median(&late), most))
        });
        notes.push(format!(
            "deadline to {} reaped and the result read: {:.1} ms{judged}, as much as {:.1} bare spawns; the same bare, killed as one group and reaped: {:.1} ms",
            tree.what,
            median(&late),
            median(&late) / median(&spawn),
            median(&bare)
        ));
    }
}

fn confined(bench: &Bench, tree: &Tree) -> Duration {
    let (mut session, dir) = support::session();
    let cap = DirCap::open_ambient_dir(bench.temp.path(), dir).unwrap();
    let mut command = command(bench, Some(&cap), &[tree.program, "-c", tree.script]);
    command.env.push((b"D".to_vec(), b"/tmp".to_vec()));
    command.limits.timeout = BEGUN;
    command.limits.processes_max = PROCESSES_MAX;
    let finished = spend(&bench.warm, &mut session, &command).unwrap();
    assert_eq!(finished.ending, Ending::TimedOut);
    assert_eq!(finished.stdout.to_bytes(), b"up\n", "the hundred was there");
    finished.elapsed.saturating_sub(BEGUN)
}

/// What is left of the hundred when they are nobody's but this process'.
#[expect(clippy::zombie_processes, reason = "it is reaped with its group")]
fn reaped_bare(bench: &Bench, tree: &Tree) -> Duration {
    rustix::process::set_child_subreaper(Some(Pid::INIT)).unwrap();
    let mut first = Bare::new(tree.program)
        .args(["-c", tree.script])
        .env("D", bench.temp.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut up = [0_u8; 3];
    std::io::Read::read_exact(&mut first.stdout.take().unwrap(), &mut up).unwrap();
    let group = Pid::from_child(&first);
    // The last have begun by then.
    std::thread::sleep(Duration::from_millis(200));
    let started = Instant::now();
    kill_process_group(group, Signal::KILL).unwrap();
    // Of this group only: the spawners are children, too.
    let mut reaped = 0_u32;
    while waitpgid(group, WaitOptions::empty()).is_ok() {
        reaped += 1;
    }
    let taken = started.elapsed();
    rustix::process::set_child_subreaper(None).unwrap();
    assert_eq!(reaped, 100);
    taken
}
