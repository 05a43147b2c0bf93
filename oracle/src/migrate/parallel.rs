//! Replaying on several pairs of workers while the history is read.
//!
//! What was run once, in this run or in one before, is not run again: a
//! [`Journal`] remembers it. After the replay under the proposed terms comes a
//! second one of what was asked about, under the grants that would allow it.

mod progress;
mod prove;
mod work;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::history::{Call, Session, Sink};
use super::home::Home;
use super::journal::{self, Journal, Key};
use super::replay::{
    Outcome, Replayed, Replayer, Tally, Terms, Unit, Unreplayable, Wanted, Workspaces, never,
};
use super::translate::Proposal;
use crate::ambient::Ambient;
use crate::check::Judge;
use crate::cli::MigrateArgs;
use crate::environment::{self, Lack};
use crate::figures::{calls, grouped};
use crate::interrupt::Interrupt;
use crate::known::{self, Catalogue};
use crate::pulse::Pulse;
use crate::subject::{Processes, Start, Subjects};
use progress::Progress;
use prove::{Measure, Witness};
use work::{Where, Work, drive};

pub use prove::Measured;

/// What the second replay gets at least, as a part of the budget.
const PROOF_PART: u32 = 4;

/// What a replay came to.
pub struct Ended {
    /// What became of the calls.
    pub replayed: Replayed,
    /// What they needed.
    pub wanted: Wanted,
    /// Whether some were not run for want of time.
    pub cut: bool,
    /// How many calls there are, whether or not they were reached.
    pub total: u64,
    /// How many sessions started from what.
    pub started_from: BTreeMap<String, u64>,
    /// What it took.
    pub effort: Effort,
}

/// How many calls were really run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Effort {
    /// Calls that were run on both.
    pub run: u64,
    /// Calls that are alike to one of these in everything a world is made of.
    pub alike: u64,
    /// Calls that an earlier run had replayed.
    pub before: u64,
}

/// Everything a replay needs.
pub struct Machine<'m> {
    pairs: Vec<Subjects>,
    common: Common<'m>,
    terms: Terms,
    workspaces: Workspaces,
    places: Where,
    budget: Duration,
    sample: Option<u64>,
    /// The share of the units that is drawn, once that is known.
    share: Option<f64>,
    interrupt: &'m Interrupt,
    // The workers' logs may hold anything; nobody keeps them.
    _logs: tempfile::TempDir,
}

/// What a machine is made from, beside the arguments.
#[derive(Clone, Copy)]
pub struct Parts<'m> {
    /// What the home says.
    pub home: &'m Home,
    /// Its translation.
    pub proposals: &'m [Proposal],
    /// A digest of what says what is allowed and what is secret.
    pub digest: [u8; 32],
    /// What was replayed already.
    pub journal: &'m Mutex<Journal>,
    /// Whether the user has had enough.
    pub interrupt: &'m Interrupt,
    /// What to end then.
    pub processes: &'m Processes,
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
        parts: Parts<'m>,
    ) -> Result<Self, Lack> {
        let logs = tempfile::tempdir().map_err(|error| Lack {
            what: format!("cannot make a private directory: {error}"),
            help: "without it nothing can be replayed; TMPDIR names another place".to_owned(),
        })?;
        let mut starts = environment::prepare(ambient, version, logs.path(), parts.processes)?;
        if let Start::Agent { fault, .. } = &mut starts.agent {
            fault.clone_from(&args.fault);
        }
        let first = environment::try_out(&mut starts, parts.processes)?;
        let count = args.jobs.unwrap_or_else(environment::pairs_usual).max(1);
        let mut pairs = vec![first];
        pairs.resize_with(count, || Subjects::new(&starts, parts.processes));
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let real = |path: &Path| path.canonicalize().ok();
        let home_folder = real(&args.hermes_home)
            .filter(|path| path.file_name().is_some_and(|name| name == ".hermes"))
            .and_then(|path| path.parent().and_then(text));
        let workspace = args.workspace.as_deref().and_then(real);
        Ok(Self {
            pairs,
            common: Common {
                // Without the list nothing is named, and nothing else is lost.
                catalogue: known::load(&ambient.root.join("vectors/known-divergences.toml"))
                    .unwrap_or_default(),
                version: version.to_owned(),
                stamp: stamp(ambient, version, args.fault.as_deref(), parts.digest),
                journal: parts.journal,
            },
            terms: Terms::new(&parts.home.settings, parts.proposals),
            workspaces: Workspaces::new(workspace.as_deref()),
            places: Where {
                usual: workspace.as_deref().and_then(text),
                home: home_folder,
            },
            budget: args.budget,
            sample: args.sample,
            share: None,
            interrupt: parts.interrupt,
            _logs: logs,
        })
    }

    /// Runs what `read` gives; it is read twice, to know how much there is.
    pub fn run(&mut self, clean: Clean<'_>, read: &mut Reader<'_>) -> Ended {
        let mut counted = Counted {
            calls: 0,
            replayable: 0,
            interrupt: self.interrupt,
        };
        let reading = Pulse::start("reading the history");
        read(&mut counted, Pass::Count);
        drop(reading);
        // The whole is no sample.
        self.share = self
            .sample
            .filter(|sample| *sample < counted.replayable)
            .map(|sample| sample as f64 / counted.replayable as f64);
        let over = self.over(self.budget);
        if counted.calls > 0 {
            let all = calls(counted.calls);
            let those = match self.sample.filter(|_| self.share.is_some()) {
                Some(sample) => format!(
                    "about {} of {all}, drawn from all sessions",
                    grouped(sample)
                ),
                None => format!("{all}, the newest sessions first"),
            };
            eprintln!("replaying {those}; ^C keeps what has run");
        }
        let progress = Progress::new("done", counted.calls, over.until);
        let first = First {
            remembering: self.common.remembering(clean),
            terms: &self.terms,
            over,
            cut: AtomicBool::new(false),
            efforts: Default::default(),
        };
        let mut tally = Tally::new(clean);
        let mut not_drawn = 0;
        drive(
            &mut self.pairs,
            (&mut self.workspaces, &self.places),
            (self.share, self.interrupt),
            &mut |sink| read(sink, Pass::Keep),
            &first,
            |made: Made| match made {
                Made::Outcomes(outcomes, project) => {
                    tally.add_unit(&outcomes, project.as_deref());
                    progress.add(outcomes.len() as u64);
                }
                Made::LeftOut(calls) => {
                    not_drawn += calls;
                    progress.add(calls);
                }
            },
        );
        let [run, alike, before] = first.efforts.map(AtomicU64::into_inner);
        let cut = first.cut.into_inner() || self.interrupt.is_set();
        let (mut replayed, wanted) = tally.finish(self.share.map(|_| not_drawn));
        // After ^C the rest is not even read.
        let came_to = replayed.classes.values().sum::<u64>() + not_drawn;
        replayed.add_unreached(counted.calls.saturating_sub(came_to));
        let started_from = std::mem::take(&mut self.workspaces.used);
        Ended {
            replayed,
            wanted,
            cut,
            total: counted.calls,
            started_from: started_from
                .into_iter()
                .map(|(word, count)| (word.to_owned(), count))
                .collect(),
            effort: Effort { run, alike, before },
        }
    }

    /// Replays what was asked about under the grants that would allow it; what was
    /// seen of each reason goes into `replayed`.
    pub fn prove(
        &mut self,
        replayed: &mut Replayed,
        clean: Clean<'_>,
        read: &mut Reader<'_>,
    ) -> Measured {
        let over = self.over(self.budget / PROOF_PART);
        let witness = Witness::new(
            &replayed.asked,
            self.common.remembering(clean),
            (&self.terms, over.clone()),
        );
        let mut seen = Vec::new();
        let trying = Pulse::start("trying the grants that would let through what was asked about");
        drive(
            &mut self.pairs,
            (&mut self.workspaces, &self.places),
            (self.share, self.interrupt),
            &mut |sink| read(sink, Pass::Again),
            &witness,
            |made| seen.extend(made),
        );
        drop(trying);
        prove::note(&mut replayed.asked, seen);
        let mut measured = prove::choose(&replayed.asked);
        if measured.grants.is_empty() {
            return measured;
        }
        let measure = Measure::new(
            &replayed.asked,
            &measured.grants,
            self.common.remembering(clean),
            (&self.terms, over.clone()),
        );
        let progress = Progress::new("proved", replayed.judged(), over.until);
        drive(
            &mut self.pairs,
            (&mut self.workspaces, &self.places),
            (self.share, self.interrupt),
            &mut |sink| read(sink, Pass::Again),
            &measure,
            |made| {
                measured.add(&made);
                progress.add(made.calls);
            },
        );
        measured
    }

    fn over(&self, time: Duration) -> Over {
        Over {
            until: Instant::now().checked_add(time),
            interrupt: self.interrupt.clone(),
        }
    }
}

/// What all replays of a machine share.
struct Common<'m> {
    catalogue: Catalogue,
    version: String,
    /// What a key covers beside terms and unit.
    stamp: [u8; 32],
    journal: &'m Mutex<Journal>,
}

impl Common<'_> {
    fn remembering<'a>(&'a self, clean: Clean<'a>) -> Remembering<'a> {
        Remembering {
            judge: Judge::new(&self.catalogue, &self.version),
            journal: self.journal,
            stamp: self.stamp,
            clean,
        }
    }
}

/// Strikes out secrets.
pub type Clean<'c> = &'c (dyn Fn(&str) -> String + Sync);
/// Reads the history.
pub type Reader<'r> = dyn FnMut(&mut dyn Sink, Pass) + 'r;

/// What the history is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// To see how much there is.
    Count,
    /// To be replayed, and counted.
    Keep,
    /// To be replayed once more.
    Again,
}

/// Whether time or patience is spent.
#[derive(Clone)]
struct Over {
    until: Option<Instant>,
    interrupt: Interrupt,
}

impl Over {
    fn is(&self) -> bool {
        self.interrupt.is_set() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Runs units and remembers what became of them.
struct Remembering<'a> {
    judge: Judge<'a>,
    journal: &'a Mutex<Journal>,
    stamp: [u8; 32],
    clean: Clean<'a>,
}

impl Remembering<'_> {
    fn known(&self, key: &Key) -> Option<(Vec<Outcome>, journal::From)> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.get(key)
    }

    /// Runs a unit under these terms, unless that is known; whence, if it is.
    fn run(
        &self,
        subjects: &mut Subjects,
        unit: &Unit,
        terms: &Terms,
        over: &Over,
    ) -> Option<(Vec<Outcome>, Option<journal::From>)> {
        let key = unit.key(&under(&self.stamp, terms));
        if let Some((outcomes, from)) = self.known(&key) {
            return Some((outcomes, Some(from)));
        }
        if over.is() {
            return None;
        }
        let mut replayer = Replayer {
            terms,
            judge: &self.judge,
            subjects,
        };
        let outcomes: Vec<Outcome> = replayer
            .run(unit)
            .iter()
            .map(|outcome| outcome.cleaned(self.clean))
            .collect();
        // What was running when the user had enough was ended, and says nothing.
        if over.interrupt.is_set() {
            return None;
        }
        // What failed on the oracle's side may work the next time.
        if !outcomes.iter().any(Outcome::is_without_verdict) {
            let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.put(&key, &outcomes);
        }
        Some((outcomes, None))
    }
}

/// What a key covers beside the unit.
fn under(stamp: &[u8; 32], terms: &Terms) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(stamp);
    hash.update(terms.name());
    hash.finalize().into()
}

/// What outcomes depend on beside terms and units: both subjects, and what is struck out.
fn stamp(ambient: &Ambient, version: &str, fault: Option<&str>, digest: [u8; 32]) -> [u8; 32] {
    let built = std::fs::metadata(&ambient.program)
        .ok()
        .map(|seen| (seen.len(), seen.modified().ok()));
    let mut hash = Sha256::new();
    hash.update(format!("{version:?} {fault:?} {built:?}"));
    hash.update(digest);
    hash.finalize().into()
}

/// The replay under the proposed terms.
struct First<'a> {
    remembering: Remembering<'a>,
    terms: &'a Terms,
    over: Over,
    cut: AtomicBool,
    /// Run, alike, known before.
    efforts: [AtomicU64; 3],
}

enum Made {
    /// What became of calls, and the project they were in.
    Outcomes(Vec<Outcome>, Option<String>),
    LeftOut(u64),
}

impl Work for First<'_> {
    type Made = Made;

    fn unit(&self, subjects: &mut Subjects, unit: &Unit) -> Made {
        let ran = self.remembering.run(subjects, unit, self.terms, &self.over);
        let Some((outcomes, from)) = ran else {
            self.cut.store(true, Ordering::Relaxed);
            let not = |call: &Call| Outcome::unreplayed(call, &Unreplayable::Budget);
            return Made::Outcomes(unit.calls.iter().map(not).collect(), None);
        };
        let [run, alike, before] = &self.efforts;
        let effort = match from {
            None => run,
            Some(journal::From::ThisRun) => alike,
            Some(journal::From::Before) => before,
        };
        effort.fetch_add(unit.calls.len() as u64, Ordering::Relaxed);
        Made::Outcomes(outcomes, unit.project.clone())
    }

    fn left_out(&self, unit: &Unit) -> Option<Made> {
        Some(Made::LeftOut(unit.calls.len() as u64))
    }

    fn not(&self, outcome: Outcome) -> Option<Made> {
        Some(Made::Outcomes(vec![outcome], None))
    }
}

/// How much there is to replay.
struct Counted<'i> {
    calls: u64,
    replayable: u64,
    interrupt: &'i Interrupt,
}

impl Sink for Counted<'_> {
    fn session(&mut self, _session: &Session) {}

    fn call(&mut self, call: Call) -> bool {
        self.calls += 1;
        self.replayable += u64::from(never(&call.tool).is_none() && call.result.is_some());
        !self.interrupt.is_set()
    }
}
