//! `bisim fuzz`: hunt for commands that get past a guard, ours first of all.
//!
//! Each generated variant goes through three worlds. A bare shell shows whether
//! it has its effect at all (if not, it says nothing and is not counted). The
//! real Hermes and the agent then run it with a user who denies every prompt,
//! and the relation judges as it does for every case. Two things come out: any
//! unsafe verdict about the agent, made small and kept as a vector; and the map
//! of what Hermes lets through unasked, class by class.
//!
//! A campaign is a pure function of its seed: variant `i` is the same on every
//! machine, so shards and resumed runs deal the same cards. What was seen is
//! appended to a log line by line; killing the run loses at most the variants
//! in flight.

pub mod benign;
mod bucket;
mod crashes;
mod dealer;
pub mod escape;
mod examine;
mod guide;
mod keep;
mod made_from;
mod moments;
mod named;
mod operators;
mod patterns;
mod plan;
mod races;
mod read;
mod replay;
mod said;
pub mod screen;
mod screened;
mod spare;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Instant;

use hermitcrab::screen::on_one_line;

pub use self::benign::command as benign_work;
pub use self::bucket::{Symptom, of_law};
use self::dealer::Dealer;
use self::examine::Trio;
pub use self::examine::{Examined, Fate, found, smallest};
use self::keep::{Deal, Log, Part};
pub(crate) use self::named::is_found_below_a_dot;
pub use self::operators::command as operators;
pub use self::patterns::{command as patterns, flagged, outdated as patterns_outdated};
pub use self::plan::{Numbers, SINGLES, specimen, variant};
pub use self::read::{Seen, is_campaign, merge, read};
pub use self::replay::command as replay;
pub use self::said::Said;
pub use self::tally::Tally;
use crate::ambient::Ambient;
use crate::check::Judge;
use crate::cli::FuzzArgs;
use crate::commit::{self, differ};
use crate::environment;
use crate::generate::Target;
use crate::interrupt::Interrupt;
use crate::progress::{LINE_EVERY, ticking, time};
use crate::subject::{Processes, Start, Starts};
use crate::{check, exit, planting};

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &FuzzArgs) -> u8 {
    if args.screen.is_some() && !args.target.is_commands() {
        eprintln!(
            "error: only commands are screened; leave out --screen, or --target {}",
            args.target.word()
        );
        return exit::USAGE;
    }
    if let Err((code, message)) = planting::possible("fuzz", args.fault.as_deref()) {
        eprintln!("error: {message}");
        return code;
    }
    let place = args.report.clone().unwrap_or_else(|| {
        ambient
            .reports
            .join(format!("target/bisim/{}", directory(args)))
    });
    // From here on ^C is answered: reading the vectors takes a moment as well.
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    // Before anything is installed or built for it.
    let deal = match args.screen {
        None => Deal::Worlds(args.target),
        Some(_) => Deal::Screen,
    };
    if let Err(unwritten) = Log::check(&place, deal, args.seed, args.resume) {
        return unwritten.exit();
    }
    let _alone = match environment::alone(&place, "--report") {
        Ok(alone) => alone,
        Err(unwritten) => return unwritten.exit(),
    };
    let catalogue = match check::load(&ambient.root.join("vectors")) {
        Ok((_, catalogue)) => catalogue,
        Err(code) => return code,
    };
    let mut starts = match environment::prepare(ambient, &args.hermes, &place, &processes) {
        Ok(starts) => starts,
        Err(lack) => return lack.exit(&interrupt),
    };
    let mut log = match Log::open(&place, deal, args.seed, args.resume) {
        Ok(log) => log,
        Err(unwritten) => return unwritten.exit(),
    };
    let commit = commit::built_from();
    log.goes_on_from(&commit);
    if let Some(other) = log.made_from().known().find(|old| differ(old, &commit)) {
        eprintln!(
            "note: `{}` holds what was made from commit {}, and this program is of {commit}; its log and summary will say which variants are whose, and `merge` puts only parts of one commit together. For a campaign of one commit begin another with --report",
            place.display(),
            on_one_line(other),
        );
    }
    if let Err(lack) = environment::try_out(&mut starts, &processes) {
        return lack.exit(&interrupt);
    }
    // After the sandbox was tried out, which would notice some faults by itself.
    if let Start::Agent { fault, .. } = &mut starts.agent {
        fault.clone_from(&args.fault);
    }
    let judge = Judge::new(&catalogue, &args.hermes);
    let hunt = Hunt {
        args,
        judge: &judge,
        starts: &starts,
        interrupt: &interrupt,
        processes: processes.clone(),
    };
    // Until the first line of progress a terminal would be empty.
    eprintln!(
        "seed {}, against hermes-agent {}, for at most {}; a line every {}, and ^C keeps what has run",
        args.seed,
        args.hermes,
        time(args.time),
        time(LINE_EVERY)
    );
    let hunted = match args.screen {
        None => hunt.run(log, &place),
        Some(places) => screen::run(&hunt, places, log, &place),
    };
    match hunted {
        Ok(tally) => {
            print!("{}", tally.render());
            println!(
                "{}, seed {}, hermes-agent {}",
                args.target.word(),
                args.seed,
                args.hermes
            );
            println!("log, findings and summary: {}", place.display());
            match tally.exit() {
                exit::CONFORM if interrupt.is_set() => exit::INCONCLUSIVE,
                // A part of few places may have none.
                exit::CONFORM if tally.is_empty() && args.shard.is_none() => {
                    eprintln!("error: nothing was tried, and nothing that ran has passed");
                    exit::INCONCLUSIVE
                }
                code => code,
            }
        }
        // Whoever stops a campaign ends its workers.
        Err(_) if processes.is_over() => exit::INCONCLUSIVE,
        Err(message) => {
            eprintln!("error: {message}");
            exit::INTERNAL
        }
    }
}

/// What a campaign works with.
struct Hunt<'a> {
    args: &'a FuzzArgs,
    judge: &'a Judge<'a>,
    starts: &'a Starts,
    interrupt: &'a Interrupt,
    processes: Processes,
}

impl Hunt<'_> {
    /// How many threads with workers there are.
    fn jobs(&self) -> usize {
        self.args
            .jobs
            .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
            .unwrap_or(1)
            .max(1)
    }

    /// What of the campaign was run, once that is over.
    fn part(&self, log: &Log) -> Part {
        Part {
            seed: self.args.seed,
            shard: self.args.shard,
            is_stopped: self.interrupt.is_set(),
            made_from: log.made_from().clone(),
        }
    }

    fn run(&self, mut log: Log, place: &Path) -> Result<Tally, String> {
        let jobs = self.jobs();
        let until = Instant::now().checked_add(self.args.time);
        let mut tally = Tally::of(self.args.target);
        let old = log.take_old();
        old.iter().for_each(|seen| tally.add(seen));
        let kind = (self.args.target, self.args.seed);
        let dealer = Dealer::new(kind, self.args.count, self.args.shard, &old);
        let (sender, receiver) = std::sync::mpsc::channel();
        let started = Instant::now();
        let mut line = Instant::now();
        let (mut new, mut failed) = (0_u64, None);
        let mut behaviours = tally.behaviours();
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let (sender, dealer) = (sender.clone(), &dealer);
                scope.spawn(move || {
                    let mut trio = Trio::new(self.starts, &self.processes);
                    let is_over = || {
                        until.is_some_and(|until| Instant::now() >= until)
                            || self.interrupt.is_set()
                    };
                    while let Some((index, specimen)) = dealer.next(is_over) {
                        let examined = trio.examine(index, &specimen, self.judge);
                        if self.interrupt.is_set() {
                            break;
                        }
                        dealer.back(&examined);
                        if sender.send(examined).is_err() {
                            break;
                        }
                    }
                    dealer.give_up();
                });
            }
            drop(sender);
            for heard in ticking(receiver) {
                if let Some(examined) = heard {
                    tally.add(&examined);
                    new += 1;
                    if let Err(message) = log.add(&examined) {
                        failed = Some(message);
                        self.interrupt.set();
                    }
                }
                if line.elapsed() >= LINE_EVERY {
                    line = Instant::now();
                    let rate = new as f64 / started.elapsed().as_secs_f64().max(0.001);
                    let left = time(self.args.time.saturating_sub(started.elapsed()));
                    let fresh = tally.behaviours().saturating_sub(behaviours);
                    behaviours = tally.behaviours();
                    eprintln!(
                        "{}; {}, {fresh} of them new; {rate:.1} a second, {left} left",
                        tally.line(),
                        tally.reach()
                    );
                }
            }
        });
        if let Some(message) = failed {
            // What was found is no less so because the disk is full.
            if tally.exit() != exit::UNSAFE {
                return Err(message);
            }
            eprintln!("error: {message}");
            tally.made_from = log.made_from().clone();
            return Ok(tally);
        }
        tally.made_from = log.made_from().clone();
        keep::summary(place, self.part(&log), &self.args.hermes, &tally)?;
        Ok(tally)
    }
}

/// The usual name of a campaign's directory.
fn directory(args: &FuzzArgs) -> String {
    if args.screen.is_some() {
        return screen::directory(args.seed);
    }
    match args.target {
        Target::Commands => format!("fuzz-{}", args.seed),
        Target::Paths
        | Target::Sequences
        | Target::Races
        | Target::Crashes
        | Target::Plans
        | Target::BenignTools
        | Target::Conversations => {
            format!("fuzz-{}-{}", args.target.word(), args.seed)
        }
    }
}

/// Where the findings of a campaign are kept.
fn findings(place: &Path) -> PathBuf {
    place.join("findings")
}
