//! `bisim leaks`: does anything stay behind, and is anything lost?
//!
//! Cases that make trouble (fork bombs, endless output, killed workers, a full
//! disk, ...) run in worlds of all three subjects by the hundred, and runs of the
//! oracle are interrupted. Processes, mounts, control groups, temporary files
//! and descriptors are counted before and after, and what the workers hold at
//! rest after their first case and after their last. The directory of temporary files is
//! one that only this run has. Each case leaves a trace
//! before it makes trouble; every one of them must be told of.

mod apart;
mod census;
mod interrupted;
mod trouble;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bisim_world::WorldError;
use bisim_world::protocol::RawTrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ambient::Ambient;
use crate::cli::LeakArgs;
use crate::environment;
use crate::figures::{counted, grouped};
use crate::interrupt::Interrupt;
use crate::progress::time;
use crate::pulse::{Done, Pulse};
use crate::subject::{Processes, Restarting, Start, Starts, Subject as _};
use crate::{exit, lineage};

use census::{Census, left_over};
use trouble::{Pace, Trouble, WAITING, is_found, job};

/// Of ten rounds of troubles this many go to a bare shell, which lets through
/// everything; then the agent, then Hermes, whose workers take longest to start.
const ROUNDS: [Who; 10] = [
    Who::Shell,
    Who::Agent,
    Who::Shell,
    Who::Hermes,
    Who::Shell,
    Who::Shell,
    Who::Agent,
    Who::Shell,
    Who::Shell,
    Who::Shell,
];
/// One run of the oracle is interrupted for so many cases.
const CASES_PER_INTERRUPT: usize = 100;
/// How long a case may take to come to where its worker is killed.
const COMING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Whose world a case runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Shell,
    Agent,
    Hermes,
}

/// What one case came to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    /// Whether its finding was told.
    found: bool,
    /// Runs it took.
    runs: usize,
    /// Why it was not found, or why it ran again.
    why: Option<String>,
}

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &LeakArgs) -> u8 {
    let done = if args.apart {
        run(ambient, args)
    } else {
        apart::command(ambient, args).map_err(Stop::Failed)
    };
    match done {
        Ok(code) => code,
        Err(Stop::Lack(lack)) => {
            lack.print();
            exit::ENVIRONMENT
        }
        Err(Stop::Interrupted) => exit::INCONCLUSIVE,
        Err(Stop::Failed(message)) => {
            eprintln!("error: {message}");
            exit::INTERNAL
        }
    }
}

enum Stop {
    Lack(environment::Lack),
    Interrupted,
    Failed(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

fn run(ambient: &Ambient, args: &LeakArgs) -> Result<u8, Stop> {
    lineage::adopt()?;
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let logs = ambient.root.join("target/bisim-leaks");
    let lacks = |lack| match interrupt.is_set() {
        true => Stop::Interrupted,
        false => Stop::Lack(lack),
    };
    let mut starts =
        environment::prepare(ambient, &args.hermes, &logs, &processes).map_err(lacks)?;
    // Whether worlds can be had here at all; and what is made once is made.
    drop(environment::try_out(&mut starts, &processes).map_err(lacks)?);
    let before = Census::take(&ambient.temporary)?;
    let started = Instant::now();
    let fleet = Fleet {
        starts: &starts,
        processes: &processes,
        interrupt: &interrupt,
        count: args.count,
        next: AtomicUsize::new(0),
        done: Done::default(),
        seen: Mutex::default(),
        rest: Mutex::default(),
    };
    let jobs = args.jobs.unwrap_or_else(environment::pairs_usual).max(1);
    let all = args.count;
    let pulse = Pulse::lines({
        let done = fleet.done.clone();
        move || {
            let (done, all) = (grouped(done.so_far()), grouped(all as u64));
            format!("{done} of {all} cases run; ^C tells what was seen until then")
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| fleet.sail());
        }
    });
    let interrupts = args.count.div_ceil(CASES_PER_INTERRUPT);
    let mut broken = Vec::new();
    drop(pulse);
    let interrupted = Done::default();
    let pulse = Pulse::counting(&interrupted, move |done| {
        format!(
            "{done} of {}",
            counted(interrupts as u64, "run interrupted", "runs interrupted")
        )
    });
    for _ in 0..interrupts {
        if interrupt.is_set() {
            break;
        }
        broken.extend(interrupted::check(ambient, &args.hermes, &interrupt)?);
        interrupted.add(1);
    }
    drop(pulse);
    let (after, left) = left_over(&before, &ambient.temporary)?;
    let told = Told {
        seen: fleet
            .seen
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
        rest: fleet
            .rest
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
        is_cut: interrupt.is_set(),
        interrupts: usize::try_from(interrupted.so_far()).unwrap_or(usize::MAX),
        broken,
        took: started.elapsed(),
    };
    let clean = told.print(args.count, &before, &after, &left);
    Ok(if interrupt.is_set() {
        eprintln!("the run was interrupted; it says nothing about what did not run");
        exit::INCONCLUSIVE
    } else if clean {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    })
}

/// All threads' common state.
struct Fleet<'a> {
    starts: &'a Starts,
    processes: &'a Processes,
    interrupt: &'a Interrupt,
    count: usize,
    next: AtomicUsize,
    done: Done,
    seen: Mutex<BTreeMap<usize, (Trouble, Who, Seen)>>,
    /// Of each worker that was meant to live: what it held at rest, first and last.
    rest: Mutex<Vec<(Vec<String>, Vec<String>)>>,
}

/// A worker that is meant to live through everything, and what it held after its first case.
struct Steady {
    worker: Restarting,
    first: Option<Vec<String>>,
}

impl Fleet<'_> {
    /// Runs cases until there are none.
    fn sail(&self) {
        let mut steady: BTreeMap<Who, Steady> = BTreeMap::new();
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            if place >= self.count || self.interrupt.is_set() {
                break;
            }
            let (trouble, who) = dealt(place);
            let seen = if trouble.kills() {
                self.kill_one(trouble, who)
            } else {
                let steady = steady.entry(who).or_insert_with(|| Steady {
                    worker: self.worker(who),
                    first: None,
                });
                self.live_through(trouble, steady)
            };
            // What was ended by ^C was not lost.
            if self.interrupt.is_set() {
                break;
            }
            if !seen.found {
                let why = seen.why.as_deref().unwrap_or("no effect was told");
                eprintln!("case {place}, {} in {who:?}: LOST: {why}", trouble.word());
            }
            lock(&self.seen).insert(place, (trouble, who, seen));
            self.done.add(1);
        }
        // What ^C has ended holds nothing, and that is no growth.
        if self.interrupt.is_set() {
            return;
        }
        for (_, mut one) in steady {
            let last = one.worker.ready().map(|worker| worker.id());
            if let (Some(first), Ok(id)) = (one.first, last) {
                let last = lineage::holdings(id).unwrap_or_else(|error| vec![error]);
                lock(&self.rest).push((first, last));
            }
        }
    }

    fn worker(&self, who: Who) -> Restarting {
        let (start, log) = match who {
            Who::Shell => match &self.starts.agent {
                Start::Agent { program, .. } | Start::Shell { program } => {
                    let program = program.clone();
                    (Start::Shell { program }, "shell.log")
                }
                hermes @ Start::Hermes { .. } => (hermes.clone(), "shell.log"),
            },
            Who::Agent => (self.starts.agent.clone(), "agent.log"),
            Who::Hermes => (self.starts.hermes.clone(), "hermes.log"),
        };
        let log = self.starts.logs.join(log);
        Restarting::new(start, self.processes.clone(), Some(log))
    }

    /// A worker that lives: what it holds at rest after its first case is noted.
    fn live_through(&self, trouble: Trouble, steady: &mut Steady) -> Seen {
        let mut seen = told(steady.worker.run(job(trouble, Pace::Usual)));
        if !seen.found && !self.interrupt.is_set() {
            // A busy machine may need longer to begin than a bomb is given to burn.
            let again = told(steady.worker.run(job(trouble, Pace::Busy)));
            seen = Seen {
                runs: 2,
                why: seen.why.or(again.why.clone()),
                ..again
            };
        }
        if steady.first.is_none()
            && let Ok(worker) = steady.worker.ready()
        {
            steady.first = Some(lineage::holdings(worker.id()).unwrap_or_else(|error| vec![error]));
        }
        seen
    }

    /// A worker is lost in mid-case; the case runs again, in another one.
    fn kill_one(&self, trouble: Trouble, who: Who) -> Seen {
        let mut worker = self.worker(who);
        let id = match worker.ready() {
            Ok(worker) => worker.id(),
            Err(error) => return told(Err(error)),
        };
        let killed = std::thread::scope(|scope| {
            let killer = scope.spawn(|| strike(id, trouble, self.interrupt));
            let lost = worker.run(job(trouble, Pace::Usual)).is_err();
            (killer.join().unwrap_or(false), lost)
        });
        match killed {
            (true, true) => {}
            (false, _) => return unseen("what was to be killed did not come to be"),
            (true, false) => return unseen("the loss of a process was not told"),
        }
        let again = told(worker.run(job(Trouble::None, Pace::Busy)));
        Seen { runs: 2, ..again }
    }
}

/// Kills the process that the trouble names once the case is running.
fn strike(worker: u32, trouble: Trouble, interrupt: &Interrupt) -> bool {
    let until = Instant::now() + COMING;
    while !lineage::descendants(worker)
        .values()
        .any(|name| name == WAITING)
    {
        if Instant::now() >= until || interrupt.is_set() {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    let worker = i32::try_from(worker).ok();
    let zygote = worker.and_then(|worker| lineage::children(worker).first().copied());
    // The stem is the first child of a zygote, and has one observer at a time.
    let stem = zygote.and_then(|zygote| lineage::children(zygote).first().copied());
    let victim = match trouble {
        Trouble::ZygoteKilled => zygote,
        Trouble::ObserverKilled => stem.and_then(|stem| lineage::children(stem).first().copied()),
        _ => worker,
    };
    victim.is_some_and(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok())
}

fn dealt(place: usize) -> (Trouble, Who) {
    let troubles = Trouble::ALL;
    let trouble = troubles.get(place % troubles.len());
    let who = ROUNDS.get(place / troubles.len() % ROUNDS.len());
    (
        trouble.copied().unwrap_or(Trouble::None),
        who.copied().unwrap_or(Who::Shell),
    )
}

fn told(outcome: Result<RawTrace, WorldError>) -> Seen {
    match outcome {
        Ok(trace) if is_found(&trace) => Seen {
            found: true,
            runs: 1,
            why: None,
        },
        Ok(trace) => {
            let steps: Vec<_> = trace.steps.iter().map(|step| &step.outcome).collect();
            unseen(&format!("{:?} after {steps:?}", trace.end))
        }
        Err(error) => unseen(&error.to_string()),
    }
}

fn unseen(why: &str) -> Seen {
    Seen {
        found: false,
        runs: 1,
        why: Some(why.to_owned()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is to say in the end.
struct Told {
    seen: BTreeMap<usize, (Trouble, Who, Seen)>,
    rest: Vec<(Vec<String>, Vec<String>)>,
    /// Whether somebody stopped it: its workers were ended, and what they held was not compared.
    is_cut: bool,
    interrupts: usize,
    /// What was wrong with interrupted runs.
    broken: Vec<String>,
    took: Duration,
}

impl Told {
    /// Prints it; whether nothing is left and nothing lost.
    fn print(&self, count: usize, before: &Census, after: &Census, left: &Census) -> bool {
        println!(
            "{} of {} and {} in {}",
            grouped(self.seen.len() as u64),
            counted(count as u64, "case", "cases"),
            counted(
                self.interrupts as u64,
                "interrupted run",
                "interrupted runs"
            ),
            time(self.took)
        );
        for trouble in Trouble::ALL {
            let of = |who: Who| {
                let cases = self.seen.values();
                cases
                    .filter(|(one, by, _)| (*one, *by) == (trouble, who))
                    .count()
            };
            println!(
                "  {:26} {:>4} in a shell, {:>3} in the agent, {:>3} in Hermes",
                trouble.word(),
                of(Who::Shell),
                of(Who::Agent),
                of(Who::Hermes)
            );
        }
        println!(
            "\n{:24}  {:>6}  {:>6}  {:>6}",
            "", "before", "after", "left"
        );
        for ((kind, then), ((_, now), (_, more))) in before
            .kinds()
            .iter()
            .zip(after.kinds().iter().zip(left.kinds()))
        {
            println!(
                "{kind:24}  {:>6}  {:>6}  {:>6}",
                then.len(),
                now.len(),
                more.len()
            );
            for one in more {
                println!("  LEFT: {one}");
            }
        }
        let grown: Vec<_> = self
            .rest
            .iter()
            .filter(|(first, last)| first != last)
            .collect();
        if self.is_cut {
            println!(
                "\nwhat workers hold was not compared, since the run was stopped before their last case"
            );
        } else {
            println!(
                "\n{} of {} workers hold after their last case what they held after their first",
                self.rest.len() - grown.len(),
                self.rest.len()
            );
            for (first, last) in &grown {
                println!("  GROWN: {first:?} became {last:?}");
            }
        }
        let found = self.seen.values().filter(|(_, _, seen)| seen.found).count();
        let again = self
            .seen
            .values()
            .filter(|(_, _, seen)| seen.runs > 1)
            .count();
        println!(
            "{} of {} told, {} of them in a second run",
            grouped(found as u64),
            counted(self.seen.len() as u64, "finding", "findings"),
            grouped(again as u64)
        );
        for broken in &self.broken {
            println!("  LOST: {broken}");
        }
        let nothing_left = left.kinds().iter().all(|(_, more)| more.is_empty());
        nothing_left
            && grown.is_empty()
            && !self.rest.is_empty()
            && self.broken.is_empty()
            && found == self.seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_hundred_cases_are_every_trouble_in_every_subject() {
        let dealt: BTreeSet<_> = (0..100).map(dealt).collect();
        assert_eq!(dealt.len(), Trouble::ALL.len() * 3);
    }

    /// A run of one case in which everything is as it should be.
    fn good() -> Told {
        let seen = Seen {
            found: true,
            runs: 1,
            why: None,
        };
        let held = vec!["bisim: 9 descriptors, 3 mounts".to_owned()];
        Told {
            seen: BTreeMap::from([(0, (Trouble::None, Who::Shell, seen))]),
            rest: vec![(held.clone(), held)],
            is_cut: false,
            interrupts: 1,
            broken: Vec::new(),
            took: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_run_is_clean_only_if_nothing_is_left_or_grown_or_lost() {
        let none = Census::default();
        let clean = |told: &Told, left: &Census| told.print(1, &none, left, left);
        assert!(clean(&good(), &none));
        let mut left = none.clone();
        left.processes.insert("7 sleep".to_owned());
        assert!(!clean(&good(), &left));
        let mut grown = good();
        grown.rest[0].1[0] = "bisim: 10 descriptors, 3 mounts".to_owned();
        assert!(!clean(&grown, &none));
        let mut unwatched = good();
        unwatched.rest.clear();
        assert!(
            !clean(&unwatched, &none),
            "of workers nobody looked at nothing is known"
        );
        let mut lost = good();
        lost.seen.get_mut(&0).unwrap().2.found = false;
        assert!(!clean(&lost, &none));
        let mut broken = good();
        broken
            .broken
            .push("an interrupted run kept 0 of 1 results".to_owned());
        assert!(!clean(&broken, &none));
    }
}
