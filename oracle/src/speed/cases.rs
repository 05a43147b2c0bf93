//! Real cases in worlds, beside the same calls in a plain loop of one interpreter.

use std::fmt::Write as _;
use std::time::Duration;

use bisim_world::protocol::{Drive, End, Job, RawTrace, Step, StepOutcome};
use serde_json::{Value, json};

use super::own_cpu;
use crate::case::Case;
use crate::check::Subjects;
use crate::subject::Subject as _;

/// Rounds of the loop; the first, which imports and fills caches, is not counted.
const ROUNDS: u64 = 3;
/// A loop may take this many times what its case may.
const PATIENCE: u64 = 4;

/// What the compared cases took, in all.
#[derive(Default)]
pub(super) struct Cases {
    compared: usize,
    /// Chosen and not compared: one of the two did not come to its end.
    left_out: usize,
    calls: usize,
    world: Spent,
    bare: Spent,
    oracle: Duration,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    cpu_us: u64,
    wall_us: u64,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.cpu_us += other.cpu_us;
        self.wall_us += other.wall_us;
    }
}

/// Runs about that many cases, evenly spread over all that only call tools.
pub(super) fn measure(
    all: &[Case],
    count: usize,
    subjects: &mut Subjects,
) -> Result<Cases, String> {
    let fit: Vec<&Case> = all.iter().filter(|case| only_calls(case)).collect();
    let step = fit.len().div_ceil(count.max(1)).max(1);
    let mut seen = Cases::default();
    for case in fit.into_iter().step_by(step) {
        let before = own_cpu()?;
        let in_world = subjects.hermes.run(case.hermes_job());
        let oracle = own_cpu()?.saturating_sub(before);
        let bare = subjects.hermes.run(bare_loop(&case.hermes_job()));
        let (Ok(in_world), Ok(bare)) = (in_world, bare) else {
            seen.left_out += 1;
            continue;
        };
        match rounds(&bare) {
            Some(bare) if in_world.end == End::Finished => {
                eprintln!(
                    "{:40} {:>7.1} ms of processor time, {:>7.1} in a plain loop",
                    case.id,
                    in_world.cpu_us as f64 / 1e3,
                    bare.cpu_us as f64 / 1e3
                );
                seen.compared += 1;
                seen.calls += case.job.script.len();
                seen.oracle += oracle;
                seen.bare.add(bare);
                seen.world.add(Spent {
                    cpu_us: in_world.cpu_us,
                    wall_us: in_world.wall_us,
                });
            }
            _ => seen.left_out += 1,
        }
    }
    if seen.compared == 0 {
        return Err("no case could be compared with a plain loop".to_owned());
    }
    Ok(seen)
}

fn only_calls(case: &Case) -> bool {
    let job = &case.job;
    job.drive == Drive::Calls
        && case.hermes.world
        && job.held.is_empty()
        && job
            .script
            .iter()
            .all(|step| matches!(step, Step::Call { by: None, .. }))
}

fn bare_loop(job: &Job) -> Job {
    let calls: Vec<Value> = job
        .script
        .iter()
        .filter_map(|step| match step {
            Step::Call { tool, args, .. } => Some(json!({"tool": tool, "args": args})),
            Step::Probe { .. }
            | Step::Grant(_)
            | Step::Revoke { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Restart(_)
            | Step::Spawn { .. } => None,
        })
        .collect();
    Job {
        script: vec![Step::Probe {
            name: "bare_loop".to_owned(),
            input: json!({"rounds": ROUNDS, "calls": calls}),
        }],
        deadline_ms: job.deadline_ms * PATIENCE,
        ..job.clone()
    }
}

/// One round's time, on average over all but the first.
fn rounds(trace: &RawTrace) -> Option<Spent> {
    let step = trace.steps.first()?;
    if step.outcome != StepOutcome::Ran {
        return None;
    }
    let rounds = step.answer.as_array()?.get(1..)?;
    let mean = |index: usize| -> Option<u64> {
        let told = rounds.iter().map(|round| round.get(index)?.as_u64());
        let count = u64::try_from(rounds.len()).ok()?;
        told.sum::<Option<u64>>()?.checked_div(count)
    };
    Some(Spent {
        cpu_us: mean(0)?,
        wall_us: mean(1)?,
    })
}

impl Cases {
    pub(super) fn tell(&self, text: &mut String) {
        let each = |micros: u64| micros as f64 / 1e3 / self.compared as f64;
        let oracle = self.oracle.as_secs_f64() * 1e3 / self.compared as f64;
        let share = |with: f64, bare: f64| (with / bare - 1.0) * 100.0;
        let (cpu, bare_cpu) = (each(self.world.cpu_us) + oracle, each(self.bare.cpu_us));
        let (wall, bare_wall) = (each(self.world.wall_us), each(self.bare.wall_us));
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n## Cases of Hermes\n\n\
             {} cases with {} calls, evenly spread over the suites ({} more did not come to an end in \
             a plain loop): each in a world of its own, and its calls {} times in a plain loop of one \
             interpreter, each round a session. Milliseconds of one case.\n\n\
             | | processor time | on the clock |\n|---|--:|--:|\n\
             | in a world, the oracle's share included | {cpu:.1} | {wall:.1} |\n\
             | in a plain loop | {bare_cpu:.1} | {bare_wall:.1} |\n\
             | the harness adds | {:.1} % | {:.1} % |\n",
            self.compared,
            self.calls,
            self.left_out,
            ROUNDS - 1,
            share(cpu, bare_cpu),
            share(wall, bare_wall)
        );
    }
}
