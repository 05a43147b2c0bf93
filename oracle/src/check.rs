//! `bisim check`: choose the cases, run them on both subjects, judge, report.

mod choose;
mod run;
mod steady;

use std::path::Path;
use std::time::Instant;

use choose::choose;
pub(crate) use run::canaries;
pub use run::{Judge, conclude, judge_traces, run_case};
use steady::{Quiet, run_steady};

use crate::ambient::Ambient;
use crate::case::Case;
use crate::cli::CheckArgs;
use crate::commit;
use crate::interrupt::Interrupt;
use crate::known::{self, Catalogue};
use crate::progress::{Progress, ticking};
use crate::pulse::Pulse;
use crate::report::publish::{self, NotRun, Outputs, Run};
use crate::report::row::{name, seen};
use crate::report::{explain, history, json, table};
use crate::result::{CaseResult, Summary};
use crate::subject::{Processes, Starts, Subjects};
use crate::suite::{self, Suites};
use crate::verdict::Kind;
use crate::{environment, exit};

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &CheckArgs) -> u8 {
    // From here on ^C is answered: reading the vectors takes a moment as well.
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let vectors = args
        .vectors
        .clone()
        .unwrap_or_else(|| ambient.root.join("vectors"));
    if let Err(message) = named_vectors(args.vectors.as_deref()) {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let (suites, catalogue) = match load(&vectors) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let chosen = match choose(&suites, args) {
        Ok(chosen) => chosen,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::USAGE;
        }
    };
    if args.list {
        return list(&chosen, args.json);
    }
    // Who looks at one case does not lose the report of all.
    let usual = match args.explain {
        Some(_) => "target/bisim/explain",
        None => "target/bisim",
    };
    let report = args
        .report
        .clone()
        .unwrap_or_else(|| ambient.reports.join(usual));
    let _alone = match environment::alone(&report, "--report") {
        Ok(alone) => alone,
        Err(unwritten) => return unwritten.exit(),
    };
    let outputs = Outputs {
        folder: &report,
        json: args.json,
        junit: args.junit.as_deref(),
        sarif: args.sarif.as_deref(),
        places: (&vectors, &ambient.root),
    };
    if let Err(unwritten) = outputs.begin() {
        return unwritten.exit();
    }
    // Before an hour in which somebody may go on working on it.
    let commit = commit::built_from();
    let again = publish::again(args.vectors.as_deref(), &args.hermes);
    // Whoever waits for the files reads in them that nothing ran.
    let nothing_ran = |lack: &environment::Lack| {
        let code = lack.exit(&interrupt);
        let reason = match interrupt.is_set() {
            true => "the run was interrupted before its first case",
            false => "the machine lacks what a run needs",
        };
        let not_run: Vec<_> = chosen
            .iter()
            .map(|case| NotRun::new(case, reason))
            .collect();
        let run = Run {
            results: &[],
            not_run: &not_run,
            vectors: (&suites, &catalogue),
            hermes: &args.hermes,
            today: &ambient.today,
            again: &again,
        };
        let summary = Summary {
            exit: code,
            commit: commit.clone(),
            ..run.summary(args.allowed)
        };
        eprintln!("nothing ran: {reason}");
        let published = json::Log::create(&report)
            .map_err(|error| format!("cannot write in `{}`: {error}", report.display()))
            .and_then(|_log| run.publish(&summary, &outputs));
        publish::exit(published, &summary)
    };
    let mut starts = match environment::prepare(ambient, &args.hermes, &report, &processes) {
        Ok(starts) => starts,
        Err(lack) => return nothing_ran(&lack),
    };
    // Known before an hour of cases; the exit code waits for what they say.
    for fault in publish::faults_before(&suites, &catalogue, &ambient.today) {
        eprintln!(
            "the catalogue needs work: {}: {}: {}",
            fault.kind, fault.entry, fault.why
        );
    }
    if let Some(due) = known::due(&catalogue, &ambient.today) {
        eprintln!("{due}");
    }
    let judge = Judge::new(&catalogue, &args.hermes);
    if judge.version != args.hermes {
        eprintln!(
            "a second opinion: the known differences are those of {}, and what is left is new in {}",
            judge.version, args.hermes
        );
    }
    let started = Instant::now();
    let outcome = run_all(
        &chosen,
        args,
        &judge,
        &mut starts,
        &report,
        &interrupt,
        &processes,
    );
    let (results, not_run) = match outcome {
        Ok(outcome) => outcome,
        Err(Stop::Lack(lack)) => return nothing_ran(&lack),
        Err(Stop::Io(message, results)) => {
            show_failures(&results);
            eprintln!("error: {message}");
            eprintln!(
                "  {} of {} cases had ended; what of them fails is above",
                results.len(),
                chosen.len()
            );
            let is_unsafe = |result: &CaseResult| result.verdict.kind.is_unsafe();
            return match results.iter().any(is_unsafe) {
                true => exit::UNSAFE,
                false => exit::INTERNAL,
            };
        }
    };
    let run = Run {
        results: &results,
        not_run: &not_run,
        vectors: (&suites, &catalogue),
        hermes: &args.hermes,
        today: &ambient.today,
        again: &again,
    };
    let summary = Summary {
        chosen: chosen.len(),
        commit: commit.clone(),
        wall_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..run.summary(args.allowed)
    };
    let published = run
        .publish(&summary, &outputs)
        .and_then(|()| history::add(&report, &ambient.today, &summary));
    if let Some(id) = &args.explain
        && let Some(result) = results.iter().find(|result| result.id == *id)
        && let Some(case) = chosen.iter().find(|case| case.id == *id)
    {
        print!("{}", explain::render(case, result));
    } else if !args.json {
        show_failures(&results);
        print!("{}", table::render(&summary, Some(&report)));
    }
    publish::exit(published, &summary)
}

/// Whether there are suites where `--vectors` says; that there are none is its fault, and not
/// that of the vectors.
pub(crate) fn named_vectors(named: Option<&Path>) -> Result<(), String> {
    let Some(named) = named else { return Ok(()) };
    let why = match std::fs::read_dir(named.join(suite::FOLDER)) {
        Ok(_) => return Ok(()),
        Err(_) if named.is_file() => "it is a file".to_owned(),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            format!("`{}` cannot be listed: {error}", suite::FOLDER)
        }
        Err(_) if named.is_dir() => format!("it holds no directory `{}`", suite::FOLDER),
        Err(_) => "it is not there".to_owned(),
    };
    Err(format!(
        "`{}` is no directory of vectors: {why}; name with --vectors one such as `vectors` of the checkout, or leave it out",
        named.display()
    ))
}

/// Reads vectors and catalogue, and says what is wrong with them.
pub(crate) fn load(vectors: &Path) -> Result<(Suites, Catalogue), u8> {
    let reading = Pulse::start("reading the vectors");
    let suites = suite::load(vectors);
    drop(reading);
    let suites = suites.map_err(|problems| {
        for problem in &problems {
            eprintln!("error: {problem}");
        }
        eprintln!(
            "error: {} in the vectors; nothing was run",
            match problems.len() {
                1 => "1 problem".to_owned(),
                count => format!("{count} problems"),
            }
        );
        exit::VECTORS
    })?;
    let listed = vectors.join(suite::CATALOGUE);
    let catalogue = known::load(&listed).map_err(|message| {
        eprintln!("error: {message}");
        exit::CATALOGUE
    })?;
    if !listed.exists() {
        eprintln!(
            "there is no `{}`, so no difference is known",
            listed.display()
        );
    }
    Ok((suites, catalogue))
}

fn list(chosen: &[&Case], is_for_programs: bool) -> u8 {
    for case in chosen {
        match is_for_programs {
            true => println!(
                "{}",
                serde_json::json!({"id": case.id, "suite": case.suite})
            ),
            false => println!("{:16} {}", case.suite, case.id),
        }
    }
    eprintln!("{}", table::cases(chosen.len()));
    exit::CONFORM
}

/// Why a run could not be finished.
enum Stop {
    Lack(environment::Lack),
    /// And what had ended by then.
    Io(String, Vec<CaseResult>),
}

type Finished = (Vec<CaseResult>, Vec<NotRun>);

/// Runs the chosen cases on `--jobs` pairs of workers.
fn run_all(
    chosen: &[&Case],
    args: &CheckArgs,
    judge: &Judge<'_>,
    starts: &mut Starts,
    report: &Path,
    interrupt: &Interrupt,
    processes: &Processes,
) -> Result<Finished, Stop> {
    let io = |what: &str| {
        let what = format!("{what} in `{}`", report.display());
        move |error: std::io::Error| format!("{what}: {error}")
    };
    let mut log = json::Log::create(report).map_err(|error| {
        Stop::Lack(environment::Lack {
            what: io("cannot start the log")(error),
            help: "name another place with --report".to_owned(),
        })
    })?;
    let jobs = args
        .jobs
        .unwrap_or_else(environment::pairs_usual)
        .clamp(1, chosen.len().max(1));
    // The first pair shows whether this machine can run worlds at all.
    let first = environment::try_out(starts, processes).map_err(Stop::Lack)?;
    let mut pairs = vec![first];
    pairs.resize_with(jobs, || Subjects::new(starts, processes));
    let deadline = args.budget.map(|budget| Instant::now() + budget);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let quiet = Quiet::default();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut progress = Progress::start(chosen.len(), deadline);
    let mut results: Vec<Option<CaseResult>> = Vec::new();
    results.resize_with(chosen.len(), || None);
    let mut failed = None;
    std::thread::scope(|scope| {
        for mut pair in pairs {
            let (sender, next, quiet) = (sender.clone(), &next, &quiet);
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(case) = chosen.get(place) else {
                        return;
                    };
                    if interrupt.is_set() || deadline.is_some_and(|at| Instant::now() >= at) {
                        return;
                    }
                    let result = run_steady(case, judge, &mut pair, quiet);
                    // A worker that was ended by ^C has no say about its case.
                    if interrupt.is_set() && result.verdict.kind == Kind::Inconclusive {
                        return;
                    }
                    if sender.send((place, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for heard in ticking(receiver) {
            let Some((place, result)) = heard else {
                progress.tick();
                continue;
            };
            progress.add(result.verdict.kind);
            if let Err(error) = log.add(&result) {
                failed = Some(io("cannot write the log")(error));
                interrupt.set();
            }
            if args.json {
                print_line(&result);
            }
            if let Some(slot) = results.get_mut(place) {
                *slot = Some(result);
            }
        }
    });
    progress.finish();
    if let Some(message) = failed {
        return Err(Stop::Io(message, results.into_iter().flatten().collect()));
    }
    let reason = if interrupt.is_set() {
        "the run was interrupted"
    } else {
        "the budget was spent"
    };
    let not_run = results
        .iter()
        .zip(chosen)
        .filter(|(result, _)| result.is_none())
        .map(|(_, case)| NotRun::new(case, reason))
        .collect();
    Ok((results.into_iter().flatten().collect(), not_run))
}

fn print_line(result: &CaseResult) {
    let line = serde_json::json!({
        "id": result.id,
        "suite": result.suite,
        "verdict": result.label,
        "why": result.verdict.why,
        "fingerprint": result.verdict.fingerprint,
    });
    println!("{line}");
}

/// The failing cases, some of each kind.
pub(crate) fn show_failures(results: &[CaseResult]) {
    const SHOWN_MAX: usize = 20;
    let failing: Vec<_> = results
        .iter()
        .filter(|result| !result.verdict.kind.passes())
        .collect();
    for result in failing.iter().take(SHOWN_MAX) {
        let (label, id) = (name(&result.label), name(&result.id));
        println!("{label}  {id}: {}", seen(&result.verdict.why));
    }
    if failing.len() > SHOWN_MAX {
        println!(
            "... and {} more; the report has all",
            failing.len() - SHOWN_MAX
        );
    }
    if !failing.is_empty() {
        println!();
    }
}
