//! `bisim selftest`: is the oracle able to find anything?
//!
//! One fault after the other is planted in the agent, and the suites are run
//! until a verdict fails that does not fail without the fault. A fault nobody
//! finds is a hole in the vectors or in the relation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bisim_world::protocol::RawTrace;
use hermitcrab_core::fault::Fault;

use crate::ambient::Ambient;
use crate::case::Case;
use crate::check::{self, Judge, conclude, judge_traces};
use crate::cli::SelftestArgs;
use crate::environment;
use crate::exit;
use crate::figures::counted;
use crate::interrupt::Interrupt;
use crate::lineage;
use crate::planting;
use crate::pulse::{Done, Pulse};
use crate::result::CaseResult;
use crate::subject::{Processes, Restarting, Start, Starts, Subject, Subjects};
use crate::verdict::Kind;

use self::finders::{Finder, Finders};

mod buckets;
mod finders;
#[cfg(feature = "planted-faults")]
mod inputs;
mod lane;
mod migration;
mod rebuilt;
mod report;

/// The suites written to show one thing each come first; the others follow.
const SUITES_FIRST: [&str; 8] = [
    "smoke",
    "approval-lifecycle",
    "delegation",
    "fs-cap",
    "rm-spelling",
    "xargs",
    "confusables",
    "tools-benign",
];

/// The suite that alone has rules comes next.
const SUITE_OF_RULES: &str = "withheld";

/// The suites that run commands by the hundred.
const SUITES_LAST: [&str; 2] = ["approval", "bypass"];

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &SelftestArgs) -> u8 {
    let faults = match choose(&args.fault) {
        Ok(faults) => faults,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::USAGE;
        }
    };
    if args.list {
        for fault in &faults {
            println!("{:28} {}", fault.name(), fault.description());
        }
        return exit::CONFORM;
    }
    if !cfg!(feature = "planted-faults") {
        return rebuilt::command(ambient, args);
    }
    let (suites, catalogue) = match check::load(&ambient.root.join("vectors")) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let vectors = ambient.root.join("vectors");
    let finders = match Finders::read(&vectors) {
        Ok(finders) => finders,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::USAGE;
        }
    };
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let mut starts = match environment::prepare(
        ambient,
        &args.hermes,
        &ambient.root.join("target/bisim-selftest"),
        &processes,
    ) {
        Ok(starts) => starts,
        Err(lack) => return lack.exit(&interrupt),
    };
    let first = match environment::try_out(&mut starts, &processes) {
        Ok(first) => first,
        Err(lack) => return lack.exit(&interrupt),
    };
    let hunt = Hunt {
        cases: ordered(&suites.cases),
        finders: (!args.full).then_some(&finders),
        judge: Judge::new(&catalogue, &args.hermes),
        starts: &starts,
        processes: &processes,
        interrupt: &interrupt,
        hermes: Mutex::default(),
        sound: Mutex::default(),
        planting: Mutex::default(),
    };
    if args.buckets {
        return buckets::command(&hunt, &faults, first, args);
    }
    let tried = hunt.all(&faults, first);
    if args.keep && !interrupt.is_set() {
        let mut finders = finders.clone();
        for (fault, tried) in faults.iter().zip(&tried) {
            if let Some(found) = tried.as_ref().and_then(|tried| tried.found.as_ref()) {
                finders.insert(fault.name(), &found.case);
            }
        }
        if let Err(message) = finders.keep(&vectors) {
            eprintln!("error: {message}");
            return exit::ENVIRONMENT;
        }
    }
    let code = report::report(&faults, &tried, interrupt.is_set());
    if code != exit::CONFORM || !args.fault.is_empty() {
        return code;
    }
    match migration::shown(ambient, &args.hermes) {
        Ok(lines) => {
            println!("\n{}", lines.join("\n"));
            code
        }
        Err(message) => {
            eprintln!("error: {message}");
            exit::UNEXPLAINED
        }
    }
}

fn choose(names: &[String]) -> Result<Vec<Fault>, String> {
    if names.is_empty() {
        return Ok(Fault::ALL.to_vec());
    }
    names.iter().map(|name| planting::named(name)).collect()
}

fn ordered(cases: &[Case]) -> Vec<&Case> {
    let rank = |case: &Case| {
        SUITES_FIRST
            .iter()
            .position(|suite| *suite == case.suite)
            .unwrap_or(match case.suite.as_str() {
                suite if SUITES_LAST.contains(&suite) => usize::MAX,
                SUITE_OF_RULES => SUITES_FIRST.len(),
                _ => SUITES_FIRST.len() + 1,
            })
    };
    let mut ordered: Vec<&Case> = cases.iter().collect();
    ordered.sort_by_key(|case| rank(case));
    ordered
}

/// How a fault was found.
struct Found {
    case: String,
    by: By,
    verdict: String,
    tried: usize,
}

/// A fault that was hunted.
struct Tried {
    found: Option<Found>,
    /// The processor time it took: that of its own worker, of the others' runs it
    /// needed, and of the laws.
    cpu_ms: u64,
}

impl Tried {
    fn seconds(&self) -> f64 {
        self.cpu_ms as f64 / 1e3
    }
}

/// What kind of proof a find is, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// `weaker`, `beyond-grant` or `both-unsafe`: the fault did harm that was seen.
    Unsafe,
    /// A law about the agent's decisions is broken.
    Law,
    /// The agent decides otherwise about commands that it is only asked about.
    Lane,
    /// Somebody is asked about work nobody should be asked about.
    Alarm,
    /// A benign difference: something else happened than should.
    Difference,
}

impl By {
    const ALL: [Self; 5] = [
        Self::Unsafe,
        Self::Law,
        Self::Lane,
        Self::Alarm,
        Self::Difference,
    ];

    const fn of(kind: Kind) -> Self {
        if kind.is_unsafe() {
            Self::Unsafe
        } else {
            Self::Difference
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Unsafe => "by an unsafe verdict",
            Self::Law => "by a broken law",
            Self::Lane => "by the lane that only asks",
            Self::Alarm => "by a false alarm",
            Self::Difference => "by a difference",
        }
    }
}

/// The two runs of Hermes on a case: the agent's faults do not touch them.
type HermesRuns = (RawTrace, Option<RawTrace>);

/// The laws about the agent's own decisions.
const LAWS_FOR_FAULTS: [&str; 5] = ["relpath", "authority", "session", "batch", "journal"];

struct Hunt<'a> {
    cases: Vec<&'a Case>,
    /// What found the faults before, unless it is not to be looked at.
    finders: Option<&'a Finders>,
    judge: Judge<'a>,
    starts: &'a Starts,
    processes: &'a Processes,
    interrupt: &'a Interrupt,
    hermes: Mutex<HashMap<String, HermesRuns>>,
    sound: Mutex<HashMap<String, bool>>,
    #[cfg_attr(
        not(feature = "planted-faults"),
        expect(dead_code, reason = "faults are planted only with the feature")
    )]
    planting: Mutex<()>,
}

impl Hunt<'_> {
    fn all(&self, faults: &[Fault], first: Subjects) -> Vec<Option<Tried>> {
        let pairs = self.pairs(first, faults.len());
        let next = AtomicUsize::new(0);
        let found: Mutex<Vec<Option<Tried>>> = Mutex::new(faults.iter().map(|_| None).collect());
        let (done, all) = (Done::default(), faults.len() as u64);
        let hunted = done.clone();
        let _pulse = Pulse::lines(move || {
            let hunted = hunted.so_far();
            format!("{hunted} of {} hunted", counted(all, "fault", "faults"))
        });
        std::thread::scope(|scope| {
            for mut pair in pairs {
                let (next, found, done) = (&next, &found, &done);
                scope.spawn(move || {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(fault) = faults.get(place) else {
                            return;
                        };
                        let tried = self.one(*fault, &mut pair);
                        match &tried.found {
                            Some(found) => eprintln!(
                                "{:28} found by {} ({}) after {} cases, {:.1} s of processor time",
                                fault.name(),
                                found.case,
                                found.verdict,
                                found.tried,
                                tried.seconds()
                            ),
                            None if self.interrupt.is_set() => return,
                            None => eprintln!("{:28} NOT FOUND", fault.name()),
                        }
                        done.add(1);
                        if let Some(slot) = found
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_mut(place)
                        {
                            *slot = Some(tried);
                        }
                    }
                });
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// As many pairs of workers as keep this machine busy.
    fn pairs(&self, first: Subjects, faults: usize) -> Vec<Subjects> {
        let jobs = environment::pairs_usual().min(faults.max(1));
        let mut pairs = vec![first];
        pairs.resize_with(jobs, || Subjects::new(self.starts, self.processes));
        pairs
    }

    /// Runs the cases with a fault until one notices.
    fn one(&self, fault: Fault, pair: &mut Subjects) -> Tried {
        let before = spent([&pair.hermes, &pair.agent]) + spent_here();
        let Some(mut faulty) = self.faulty(fault) else {
            return Tried {
                found: None,
                cpu_ms: 0,
            };
        };
        let found = self.hunt(fault, pair, &mut faulty);
        let after = spent([&pair.hermes, &pair.agent, &faulty]) + spent_here();
        Tried {
            found,
            cpu_ms: after.saturating_sub(before),
        }
    }

    /// The agent's worker with the fault, started.
    fn faulty(&self, fault: Fault) -> Option<Restarting> {
        let Start::Agent {
            program, isolation, ..
        } = &self.starts.agent
        else {
            return None;
        };
        let start = Start::Agent {
            program: program.clone(),
            isolation: isolation.clone(),
            fault: Some(fault.name().to_owned()),
        };
        let log = self.starts.logs.join(format!("agent-{}.log", fault.name()));
        let mut faulty = Restarting::new(start, self.processes.clone(), Some(log));
        if let Err(error) = faulty.ready() {
            eprintln!(
                "{:28} the agent with the fault does not start: {error}",
                fault.name()
            );
            return None;
        }
        Some(faulty)
    }

    fn hunt(&self, fault: Fault, pair: &mut Subjects, faulty: &mut Restarting) -> Option<Found> {
        if let Some(found) = self.as_before(fault, pair, faulty) {
            return Some(found);
        }
        let mut found = None;
        for (tried, case) in self.cases.iter().enumerate() {
            if self.interrupt.is_set() {
                return None;
            }
            // Some faults show only where no case can reach: an answer to
            // another question, for example. The laws are asked before the
            // long suites.
            let short = SUITES_FIRST.contains(&case.suite.as_str());
            if !short && found.is_some() {
                return found;
            }
            if !short
                && tried
                    .checked_sub(1)
                    .and_then(|before| self.cases.get(before))
                    .is_some_and(|before| SUITES_FIRST.contains(&before.suite.as_str()))
                && let Some(found) = self
                    .by_law(fault, tried)
                    .or_else(|| self.by_lane(fault, tried))
                    .or_else(|| self.by_alarm(fault, tried))
            {
                return Some(found);
            }
            let Some(verdict) = self.verdict(case, pair, faulty) else {
                continue;
            };
            let fails = !verdict.0.passes() && verdict.0 != Kind::Inconclusive;
            // An unsafe verdict shows the fault itself; a mere difference may
            // be a side effect of how it is planted, so the search goes on.
            if fails && (found.is_none() || verdict.0.is_unsafe()) && self.is_sound(case, pair) {
                let by = Found {
                    case: case.id.clone(),
                    by: By::of(verdict.0),
                    verdict: verdict.1,
                    tried: tried + 1,
                };
                if by.by == By::Unsafe {
                    return Some(by);
                }
                found = Some(by);
            }
        }
        found
    }

    /// Does what found it before still find it?
    fn as_before(
        &self,
        fault: Fault,
        pair: &mut Subjects,
        faulty: &mut Restarting,
    ) -> Option<Found> {
        match self.finders?.of(fault.name())? {
            Finder::Law(law) => self.by_laws(fault, 0, &[law]),
            Finder::Lane => self.by_lane(fault, 0),
            Finder::Benign => self.by_alarm(fault, 0),
            Finder::Case(id) => {
                let case = self.cases.iter().find(|case| case.id == id)?;
                let verdict = self.verdict(case, pair, faulty)?;
                let fails = !verdict.0.passes() && verdict.0 != Kind::Inconclusive;
                (fails && self.is_sound(case, pair)).then(|| Found {
                    case: case.id.clone(),
                    by: By::of(verdict.0),
                    verdict: verdict.1,
                    tried: 1,
                })
            }
        }
    }

    /// Asks every law about the agent's own decisions.
    fn by_law(&self, fault: Fault, tried: usize) -> Option<Found> {
        self.by_laws(fault, tried, &LAWS_FOR_FAULTS)
    }

    /// Plants the fault in this process and asks these laws.
    #[cfg(feature = "planted-faults")]
    fn by_laws(&self, fault: Fault, tried: usize, laws: &[&str]) -> Option<Found> {
        use hermitcrab_core::fault::plant;
        // A planted fault is one for the whole process.
        let _alone = self.planting.lock().unwrap_or_else(PoisonError::into_inner);
        laws.iter()
            .filter_map(|law| crate::law::named(law))
            .find_map(|law| {
                let thought_out = inputs::thought_out(law.name);
                let thought_out = thought_out.iter().map(|bytes| bytes.to_vec());
                thought_out
                    .chain((0..inputs::count(law.name)).map(inputs::noise))
                    .find_map(|bytes| {
                        let sound = (law.check)(&bytes).is_ok();
                        plant(Some(fault));
                        let broken = (law.check)(&bytes).err();
                        plant(None);
                        broken.filter(|_| sound).map(|_| Found {
                            case: format!("law {}", law.name),
                            by: By::Law,
                            verdict: "broken".to_owned(),
                            tried,
                        })
                    })
            })
    }

    #[cfg(not(feature = "planted-faults"))]
    fn by_laws(&self, _fault: Fault, _tried: usize, _laws: &[&str]) -> Option<Found> {
        None
    }

    /// The verdict on a case with this agent, beside the Hermes of before.
    fn verdict(
        &self,
        case: &Case,
        pair: &mut Subjects,
        agent: &mut Restarting,
    ) -> Option<(Kind, String)> {
        let result = self.result(case, pair, agent)?;
        Some((result.verdict.kind, result.label))
    }

    /// The same, with everything that was seen.
    fn result(
        &self,
        case: &Case,
        pair: &mut Subjects,
        agent: &mut Restarting,
    ) -> Option<CaseResult> {
        let known = self
            .hermes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&case.id)
            .cloned();
        let (hermes, mut again) = match known {
            Some(known) => known,
            None => (pair.hermes.run(case.hermes_job()).ok()?, None),
        };
        let trace = agent.run(case.agent_job()).ok()?;
        let mut judgement = judge_traces(case, &hermes, again.as_ref(), &trace);
        if judgement.wants_noise_run() && again.is_none() {
            again = pair.hermes.run(case.hermes_job()).ok();
            judgement = judge_traces(case, &hermes, again.as_ref(), &trace);
        }
        let kept = (hermes.clone(), again);
        self.hermes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(case.id.clone(), kept);
        Some(conclude(case, &self.judge, judgement, hermes, trace))
    }

    /// Whether the case passes without any fault: otherwise it proves nothing.
    fn is_sound(&self, case: &Case, pair: &mut Subjects) -> bool {
        if let Some(sound) = self
            .sound
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&case.id)
        {
            return *sound;
        }
        let result = check::run_case(case, &self.judge, pair);
        let sound = result.verdict.kind.passes();
        self.sound
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(case.id.clone(), sound);
        sound
    }
}

/// The processor time these workers have used so far.
fn spent<const N: usize>(workers: [&Restarting; N]) -> u64 {
    workers
        .into_iter()
        .filter_map(Restarting::id)
        .map(lineage::cpu_ms)
        .sum()
}

/// The processor time of this thread, where the laws are asked.
fn spent_here() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let millis = time.tv_sec * 1_000 + time.tv_nsec / 1_000_000;
    u64::try_from(millis).unwrap_or(0)
}
