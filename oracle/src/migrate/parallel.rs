//! Replaying on several pairs of workers while the history is read.
//!
//! Nothing is held but what is being run: reading waits when the workers are
//! behind. What was run once is not run again.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::history::Sink;
use super::home::Home;
use super::replay::{
    Gather, Handed, Need, Outcome, Replayed, Replayer, Tally, Terms, Unit, Unreplayable, Workspaces,
};
use super::report::grouped;
use super::translate::Proposal;
use crate::ambient::Ambient;
use crate::check::{Judge, Subjects};
use crate::cli::MigrateArgs;
use crate::environment::{self, Lack, Starts};
use crate::interrupt::Interrupt;
use crate::known::{self, Catalogue};
use crate::subject::Processes;

/// Units that wait for a worker, for each worker.
const WAITING_EACH: usize = 4;
/// Units whose outcome is remembered.
const REMEMBERED_MAX: usize = 20_000;
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What a replay came to.
pub struct Ended {
    /// What became of the calls.
    pub replayed: Replayed,
    /// What they needed.
    pub wanted: BTreeMap<Vec<Need>, u64>,
    /// Whether some were not run for want of time.
    pub cut: bool,
    /// How many sessions started from what.
    pub started_from: BTreeMap<String, u64>,
}

/// Everything a replay needs.
pub struct Machine<'m> {
    starts: Starts,
    first: Subjects,
    pairs: usize,
    catalogue: Catalogue,
    version: String,
    terms: Terms,
    workspaces: Workspaces,
    usual: Option<String>,
    home: Option<String>,
    budget: Duration,
    interrupt: &'m Interrupt,
    processes: &'m Processes,
    // The workers' logs may hold anything; nobody keeps them.
    _logs: tempfile::TempDir,
}

impl<'m> Machine<'m> {
    /// Starts the first pair of workers and tries them out.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn prepare(
        ambient: &Ambient,
        args: &MigrateArgs,
        version: &str,
        home: &Home,
        proposals: &[Proposal],
        (interrupt, processes): (&'m Interrupt, &'m Processes),
    ) -> Result<Self, Lack> {
        let logs = tempfile::tempdir().map_err(|error| Lack {
            what: format!("cannot make a private directory: {error}"),
            help: "without it nothing can be replayed; TMPDIR names another place".to_owned(),
        })?;
        let mut starts = environment::prepare(ambient, version, logs.path())?;
        let first = environment::try_out(&mut starts, processes)?;
        let text = |path: &std::path::Path| path.to_str().map(str::to_owned);
        let real = |path: &std::path::Path| path.canonicalize().ok();
        let home_folder = real(&args.hermes_home)
            .filter(|path| path.file_name().is_some_and(|name| name == ".hermes"))
            .and_then(|path| path.parent().and_then(text));
        Ok(Self {
            starts,
            first,
            pairs: args.jobs.unwrap_or_else(environment::pairs_usual).max(1),
            // Without the list nothing is named, and nothing else is lost.
            catalogue: known::load(&ambient.root.join("vectors/known-divergences.toml"))
                .unwrap_or_default(),
            version: version.to_owned(),
            terms: Terms::new(&home.settings, proposals),
            workspaces: Workspaces::new(args.workspace.as_deref().and_then(real).as_deref()),
            usual: args
                .workspace
                .as_deref()
                .and_then(real)
                .as_deref()
                .and_then(text),
            home: home_folder,
            budget: args.budget,
            interrupt,
            processes,
            _logs: logs,
        })
    }

    /// Runs what `read` gives.
    pub fn run(
        mut self,
        clean: &(dyn Fn(&str) -> String + Sync),
        read: &mut dyn FnMut(&mut dyn Sink),
    ) -> Ended {
        let judge = Judge {
            catalogue: &self.catalogue,
            version: self.version.clone(),
        };
        let until = Instant::now().checked_add(self.budget);
        let over = || self.interrupt.is_set() || until.is_some_and(|until| Instant::now() >= until);
        let mut pairs = vec![self.first];
        pairs.resize_with(self.pairs, || Subjects::new(&self.starts, self.processes));
        let (units, waiting) = sync_channel::<Box<Unit>>(self.pairs * WAITING_EACH);
        let (outcomes, done) = sync_channel::<Vec<Outcome>>(1_024);
        let waiting = Mutex::new(waiting);
        let memory = Mutex::new(HashMap::new());
        let cut = std::sync::atomic::AtomicBool::new(false);
        let (replayed, wanted) = std::thread::scope(|scope| {
            for mut subjects in pairs {
                let outcomes = outcomes.clone();
                let (waiting, memory, judge, over, cut) = (&waiting, &memory, &judge, &over, &cut);
                let terms = &self.terms;
                scope.spawn(move || {
                    let mut replayer = Replayer {
                        terms,
                        judge,
                        subjects: &mut subjects,
                    };
                    while let Some(unit) = next(waiting) {
                        let run = if over() {
                            cut.store(true, std::sync::atomic::Ordering::Relaxed);
                            not_run(&unit)
                        } else {
                            remembered(memory, &unit, || replayer.run(&unit))
                        };
                        if outcomes.send(run).is_err() {
                            return;
                        }
                    }
                });
            }
            let adding = scope.spawn(move || add(&done, clean));
            feed(
                &mut self.workspaces,
                (self.usual.clone(), self.home.clone()),
                read,
                (units, outcomes),
                self.interrupt,
            );
            // A thread that panicked has said so; what it knew is lost.
            adding.join().unwrap_or_default()
        });
        Ended {
            replayed,
            wanted,
            cut: cut.into_inner() || self.interrupt.is_set(),
            started_from: self
                .workspaces
                .used
                .iter()
                .map(|(word, count)| ((*word).to_owned(), *count))
                .collect(),
        }
    }
}

type Added = (Replayed, BTreeMap<Vec<Need>, u64>);
type Senders = (SyncSender<Box<Unit>>, SyncSender<Vec<Outcome>>);

/// Reads, and hands on what is read until nobody takes it.
fn feed(
    workspaces: &mut Workspaces,
    (usual, home): (Option<String>, Option<String>),
    read: &mut dyn FnMut(&mut dyn Sink),
    (units, outcomes): Senders,
    interrupt: &Interrupt,
) {
    let hand = |handed: Handed| {
        let taken = match handed {
            Handed::Unit(unit) => units.send(unit).is_ok(),
            Handed::Not(outcome) => outcomes.send(vec![outcome]).is_ok(),
        };
        taken && !interrupt.is_set()
    };
    let mut gather = Gather::new(workspaces, usual, home, hand);
    read(&mut gather);
    // Whether more would be taken does not matter any more.
    let _ = gather.flush();
}

fn next(waiting: &Mutex<Receiver<Box<Unit>>>) -> Option<Box<Unit>> {
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}

fn not_run(unit: &Unit) -> Vec<Outcome> {
    unit.calls
        .iter()
        .map(|call| Outcome::unreplayed(call, &Unreplayable::Budget))
        .collect()
}

/// The outcome of the same calls in the same surroundings, run once.
fn remembered(
    memory: &Mutex<HashMap<[u8; 32], Vec<Outcome>>>,
    unit: &Unit,
    run: impl FnOnce() -> Vec<Outcome>,
) -> Vec<Outcome> {
    let mut hash = Sha256::new();
    hash.update(unit.session.context().word());
    hash.update(format!("{};", unit.workspace.name));
    for (path, text) in &unit.known {
        hash.update(format!("{}:{path}{}:{text}", path.len(), text.len()));
    }
    for call in &unit.calls {
        let line = serde_json::json!([call.tool, call.args, call.result]).to_string();
        hash.update(format!("{}:{line}", line.len()));
    }
    let key: [u8; 32] = hash.finalize().into();
    let known = |memory: &Mutex<HashMap<[u8; 32], Vec<Outcome>>>| {
        let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.get(&key).cloned()
    };
    if let Some(outcomes) = known(memory) {
        return outcomes;
    }
    let outcomes = run();
    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
    if memory.len() < REMEMBERED_MAX {
        memory.insert(key, outcomes.clone());
    }
    outcomes
}

fn add(done: &Receiver<Vec<Outcome>>, clean: &(dyn Fn(&str) -> String + Sync)) -> Added {
    let mut tally = Tally::new(clean);
    let (mut count, mut line) = (0_u64, Instant::now());
    for outcome in done.iter().flatten() {
        tally.add(&outcome);
        count += 1;
        if line.elapsed() >= LINE_EVERY {
            line = Instant::now();
            eprintln!("{} calls done", grouped(count));
        }
    }
    tally.finish()
}
