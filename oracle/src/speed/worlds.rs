//! Worlds in which nothing happens.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::own_cpu;
use crate::environment::bare;
use crate::subject::{Processes, Restarting, Start, Starts, Subject as _};

/// What the prototype had, on a loaded machine: worlds a second, and milliseconds of each.
const PROTOTYPE: &str = "about 20 a second, 14 ms of processor time each";

/// What was seen, by subject.
pub(super) struct Worlds {
    workers: usize,
    rows: Vec<Row>,
}

struct Row {
    subject: &'static str,
    per_second: f64,
    /// Processor time of a world with its processes, and what the oracle added.
    world_ms: f64,
    oracle_ms: f64,
}

/// Has each subject make that many worlds, on as many workers as there are processors.
pub(super) fn measure(
    starts: &Starts,
    processes: &Processes,
    count: usize,
) -> Result<Worlds, String> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let program = match &starts.agent {
        Start::Agent { program, .. } => program.clone(),
        Start::Hermes { .. } | Start::Shell { .. } => {
            return Err("the agent's worker is no agent".to_owned());
        }
    };
    let rows = [
        ("a bare shell", Start::Shell { program }),
        ("the agent", starts.agent.clone()),
        ("Hermes", starts.hermes.clone()),
    ]
    .into_iter()
    .map(|(subject, start)| one(subject, &start, processes, workers, count))
    .collect::<Result<_, _>>()?;
    Ok(Worlds { workers, rows })
}

fn one(
    subject: &'static str,
    start: &Start,
    processes: &Processes,
    workers: usize,
    count: usize,
) -> Result<Row, String> {
    let mut ready = Vec::new();
    for _ in 0..workers {
        let mut worker = Restarting::new(start.clone(), processes.clone(), None);
        // The first world of a worker is not like the others.
        worker
            .run(bare(Vec::new()))
            .map_err(|error| error.to_string())?;
        ready.push(worker);
    }
    let (oracle, begun) = (own_cpu()?, Instant::now());
    let each = count.div_ceil(workers);
    let used = std::thread::scope(|scope| {
        let running: Vec<_> = ready
            .iter_mut()
            .map(|worker| {
                scope.spawn(move || -> Result<u64, String> {
                    (0..each)
                        .map(|_| match worker.run(bare(Vec::new())) {
                            Ok(trace) => Ok(trace.cpu_us),
                            Err(error) => Err(error.to_string()),
                        })
                        .sum()
                })
            })
            .collect();
        running
            .into_iter()
            .map(|one| {
                one.join()
                    .unwrap_or_else(|_| Err("a thread died".to_owned()))
            })
            .sum::<Result<u64, String>>()
    })?;
    let passed = begun.elapsed();
    let oracle = own_cpu()?.saturating_sub(oracle);
    let all = (each * workers) as f64;
    Ok(Row {
        subject,
        per_second: all / passed.as_secs_f64(),
        world_ms: Duration::from_micros(used).as_secs_f64() * 1e3 / all,
        oracle_ms: oracle.as_secs_f64() * 1e3 / all,
    })
}

impl Worlds {
    pub(super) fn tell(&self, text: &mut String) {
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "## Empty worlds\n\nMade, watched, listed and ended by {} workers at once. \
             The prototype: {PROTOTYPE}.\n\n\
             | world of | a second | ms of processor time | and of the oracle |\n\
             |---|--:|--:|--:|\n",
            self.workers
        );
        for row in &self.rows {
            let _ = writeln!(
                text,
                "| {} | {:.0} | {:.2} | {:.2} |",
                row.subject, row.per_second, row.world_ms, row.oracle_ms
            );
        }
    }
}
