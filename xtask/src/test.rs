//! `cargo xtask test`: every test in its own process, then the doc tests (these
//! only when everything is asked for).
//!
//! Own processes because many tests are about process-wide things: namespaces,
//! limits, planted faults, a fork from a single thread. The outcome of a test is
//! its exit status; the one thing read from its output is the marker
//! `SKIPPED: reason`, by which a test says that the machine lacks what it needs.
//! A skipped test is counted apart and never as passed; so is one that failed and, repeated
//! alone, did not fail again (`steady`).

pub mod build;
mod early;
mod room;
mod run;
mod skips;
mod steady;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::cmd::{self, Passed};
use run::Fate;
pub use run::wait;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this package (may be repeated); default: the whole workspace.
    #[arg(short, long)]
    package: Vec<String>,
    /// Only tests whose name contains one of these.
    filter: Vec<String>,
    /// Tests at a time; default: one per processor and one more, as many of them wait.
    #[arg(short, long)]
    jobs: Option<usize>,
    /// A test that runs longer than this many seconds is killed and has failed.
    #[arg(long, default_value_t = 600)]
    timeout_s: u64,
    /// So many tests may fail among others and pass each time they are repeated alone;
    /// default: 2 of all tests, none of a choice.
    #[arg(long)]
    unsteady_max: Option<usize>,
    /// Fail on every skip that this file does not list with a reason.
    #[arg(long)]
    accepted_skips: Option<PathBuf>,
    /// Build nothing: run what `cargo xtask kernels` has built and listed in this file.
    #[arg(long, hide = true, conflicts_with = "package")]
    built: Option<PathBuf>,
    /// Write the three counts to this file as JSON.
    #[arg(long)]
    summary: Option<PathBuf>,
}

/// What the run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Tests that ended with status 0.
    pub passed: usize,
    /// Tests that did not.
    pub failed: usize,
    /// Tests that said the machine lacks what they need.
    pub skipped: usize,
    /// Tests that failed among others, and not when they were repeated alone.
    #[serde(default)]
    pub unsteady: usize,
    /// What the list of accepted skips does not explain, or explains for nothing.
    #[serde(default)]
    pub unexplained: usize,
}

/// Unsteady tests that a run of all of them bears.
const UNSTEADY_MAX: usize = 2;

/// Build, run, print, count.
pub fn run(args: &Args) -> Result<Passed> {
    let started = Instant::now();
    let everything = args.package.is_empty() && args.filter.is_empty() && args.built.is_none();
    if everything {
        install_hermes()?;
    }
    if args.built.is_none() {
        early::check(&cmd::root(), &args.filter)?;
    }
    let programs = match &args.built {
        Some(list) => build::read_programs(list)?,
        None => build::programs(&args.package, None)?,
    };
    let cases = build::cases(&programs, &args.filter)?;
    println!("{} tests", cases.len());
    match room::clear() {
        0 => {}
        cleared => println!("cleared what runs that were killed left of {cleared} tests"),
    }
    let jobs = args.jobs.unwrap_or_else(jobs).max(1);
    let timeout = Duration::from_secs(args.timeout_s);
    let mut ended = run::all(&cases, jobs, timeout)?;
    steady::settle(&mut ended, timeout)?;

    let mut counts = Counts::default();
    let mut skips = Vec::new();
    let mut unsteady = Vec::new();
    let mut failures = Vec::new();
    for end in &ended {
        match &end.fate {
            Fate::Passed => counts.passed += 1,
            Fate::Skipped(reason) => {
                counts.skipped += 1;
                skips.push((end.case.label(), reason.as_str()));
            }
            Fate::Failed(why) => {
                counts.failed += 1;
                failures.push((end.case.label(), why.as_str()));
            }
            Fate::Unsteady(why) => {
                counts.unsteady += 1;
                unsteady.push((end.case.label(), why.as_str()));
            }
        }
    }
    if everything {
        let docs = run::doc_tests()?;
        counts.passed += docs.passed;
        counts.failed += docs.failed;
        if docs.failed > 0 {
            failures.push(("doc tests".to_owned(), "see above"));
        }
    }

    let unexplained = match &args.accepted_skips {
        Some(path) => skips::unexplained(path, &skips)?,
        None => Vec::new(),
    };
    counts.unexplained = unexplained.len();
    println!();
    for (label, reason) in &skips {
        println!("SKIPPED {label}: {reason}");
    }
    for finding in &unexplained {
        println!("{finding}");
    }
    for (label, why) in &unsteady {
        println!(
            "UNSTEADY {label}: {why} among others, passed each time alone; its output is above"
        );
    }
    let borne = if everything { UNSTEADY_MAX } else { 0 };
    let borne = args.unsteady_max.unwrap_or(borne);
    if counts.unsteady > borne {
        println!(
            "{} unsteady are more than {borne} (--unsteady-max): each counts as failed",
            counts.unsteady
        );
        counts.failed += counts.unsteady;
        counts.unsteady = 0;
    }
    let left = ended.iter().filter(|end| end.left > 0).count();
    if left > 0 {
        println!(
            "{left} tests left temporary files, which are gone by now unless it is said above"
        );
    }
    for (label, why) in &failures {
        println!("FAILED {label}: {why}");
    }
    if let Some(path) = &args.summary {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        fs::write(path, serde_json::to_vec(&counts)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("in {} s", started.elapsed().as_secs());
    println!(
        "{} passed, {} failed, {} skipped, {} unsteady",
        counts.passed, counts.failed, counts.skipped, counts.unsteady
    );
    if ended.is_empty() {
        println!("no test has this name");
    }
    Ok(Passed::when(
        counts.failed == 0 && unexplained.is_empty() && !ended.is_empty(),
    ))
}

/// Some tests drive the real Hermes. The doctor installs it on first use, with
/// progress, and is quick afterwards. Where it cannot, it says why, and the
/// tests in question report themselves as skipped.
fn install_hermes() -> Result<()> {
    if cmd::status(cmd::cargo().args(["bisim", "doctor"]))? == Passed::No {
        println!("without the real Hermes the tests that drive it will be skipped");
    }
    Ok(())
}

/// The counts a run with `--summary` has left.
pub fn read_summary(path: &std::path::Path) -> Result<Counts> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not a summary", path.display()))
}

/// How many tests run at a time: while one waits for a clock, a disk or another process, a
/// processor is free for the next.
fn jobs() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    processors.saturating_add(1)
}

/// `-p` arguments, or the whole workspace.
fn selection(packages: &[String]) -> Vec<String> {
    if packages.is_empty() {
        return vec!["--workspace".to_owned()];
    }
    packages
        .iter()
        .flat_map(|p| ["-p".to_owned(), p.clone()])
        .collect()
}
