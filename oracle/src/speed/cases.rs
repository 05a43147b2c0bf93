//! Real cases in worlds, beside the same calls in a plain loop of one interpreter.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bisim_world::protocol::{Drive, End, Job, RawTrace, Step, StepOutcome};
use serde_json::{Value, json};

use super::own_cpu;
use crate::case::Case;
use crate::subject::Subject as _;
use crate::subject::Subjects;

/// Rounds of the loop; the first, which imports and fills caches, is not counted.
const ROUNDS: u64 = 3;
/// The tools of servers, each of which a few cases call, are one kind.
const OF_SERVERS: &str = "mcp__*";
/// A loop may take this many times what its case may.
const PATIENCE: u64 = 4;

/// What the compared cases took.
#[derive(Default)]
pub(super) struct Cases {
    /// By the tool of the first call.
    kinds: BTreeMap<String, Group>,
    /// Chosen and not compared: one of the two did not come to its end.
    left_out: usize,
    /// Chosen and not compared: in a loop its calls tell another thing than the first time.
    unlike: usize,
}

/// Cases of one kind.
#[derive(Default)]
struct Group {
    /// How many the vectors hold.
    of: usize,
    compared: Vec<One>,
}

/// One case.
struct One {
    calls: usize,
    /// With the oracle's share.
    world: Spent,
    bare: Spent,
}

#[derive(Clone, Copy)]
struct Spent {
    cpu_us: u64,
    wall_us: u64,
}

/// Runs about that many cases, equally many of each kind, evenly spread over all of it.
pub(super) fn measure(
    all: &[Case],
    count: usize,
    subjects: &mut Subjects,
) -> Result<Cases, String> {
    let mut fit: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in all.iter().filter(|case| only_calls(case)) {
        fit.entry(first_tool(case)).or_default().push(case);
    }
    let each = count.div_ceil(fit.len().max(1));
    let mut seen = Cases::default();
    for (tool, cases) in fit {
        let step = cases.len().div_ceil(each.max(1)).max(1);
        let mut group = Group {
            of: cases.len(),
            compared: Vec::new(),
        };
        for case in cases.into_iter().step_by(step) {
            match compare(case, subjects)? {
                Some(Rounds::Alike(one)) => group.compared.push(one),
                Some(Rounds::Unlike) => seen.unlike += 1,
                None => seen.left_out += 1,
            }
        }
        if !group.compared.is_empty() {
            seen.kinds.insert(tool.to_owned(), group);
        }
    }
    if seen.kinds.is_empty() {
        return Err("no case could be compared with a plain loop".to_owned());
    }
    Ok(seen)
}

/// What a case took in its world and in a loop; nothing where one of them did not end.
fn compare(case: &Case, subjects: &mut Subjects) -> Result<Option<Rounds<One>>, String> {
    let bare = subjects.hermes.run(bare_loop(&case.hermes_job()));
    // The first world of a kind has its zygote import more, for all that follow.
    let first = subjects.hermes.run(case.hermes_job());
    let before = own_cpu()?;
    let in_world = subjects.hermes.run(case.hermes_job());
    let oracle = own_cpu()?.saturating_sub(before);
    let (Ok(_), Ok(in_world), Ok(bare)) = (first, in_world, bare) else {
        return Ok(None);
    };
    if in_world.end != End::Finished {
        return Ok(None);
    }
    let bare = match rounds(&bare) {
        Some(Rounds::Alike(bare)) => bare,
        Some(Rounds::Unlike) => return Ok(Some(Rounds::Unlike)),
        None => return Ok(None),
    };
    let oracle = u64::try_from(oracle.as_micros()).unwrap_or(u64::MAX);
    let world = Spent {
        cpu_us: in_world.cpu_us.saturating_add(oracle),
        wall_us: in_world.wall_us,
    };
    eprintln!(
        "{:40} {:>7.1} ms of processor time, {:>7.1} in a plain loop",
        case.id,
        world.cpu_us as f64 / 1e3,
        bare.cpu_us as f64 / 1e3
    );
    Ok(Some(Rounds::Alike(One {
        calls: case.job.script.len(),
        world,
        bare,
    })))
}

fn first_tool(case: &Case) -> &str {
    match case.job.script.first() {
        Some(Step::Call { tool, .. }) if tool.starts_with("mcp__") => OF_SERVERS,
        Some(Step::Call { tool, .. }) => tool,
        Some(
            Step::Probe { .. }
            | Step::Grant(_)
            | Step::Revoke { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Restart(_)
            | Step::Spawn { .. },
        )
        | None => "",
    }
}

fn only_calls(case: &Case) -> bool {
    let job = &case.job;
    job.drive == Drive::Calls
        && case.hermes.world
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

/// What a loop gave.
enum Rounds<T> {
    /// Each of its rounds told the same; from the time of all but the first.
    Alike(T),
    /// What a round did could not be done again.
    Unlike,
}

fn rounds(trace: &RawTrace) -> Option<Rounds<Spent>> {
    let step = trace.steps.first()?;
    if step.outcome != StepOutcome::Ran {
        return None;
    }
    let rounds = step.answer.as_array()?.get(1..)?;
    let alike = |round: &Value| round.get(2).and_then(Value::as_bool);
    if !rounds
        .iter()
        .map(alike)
        .collect::<Option<Vec<_>>>()?
        .iter()
        .all(|same| *same)
    {
        return Some(Rounds::Unlike);
    }
    let mean = |index: usize| -> Option<u64> {
        let told = rounds.iter().map(|round| round.get(index)?.as_u64());
        let count = u64::try_from(rounds.len()).ok()?;
        told.sum::<Option<u64>>()?.checked_div(count)
    };
    Some(Rounds::Alike(Spent {
        cpu_us: mean(0)?,
        wall_us: mean(1)?,
    }))
}

/// The value in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn added(world: f64, bare: f64) -> f64 {
    (world / bare - 1.0) * 100.0
}

/// One kind: how many, the medians of both, and of what is added.
fn row(name: &str, group: &Group, of: fn(&Spent) -> u64) -> String {
    let ms = |spent: &Spent| of(spent) as f64 / 1e3;
    let middle = |figure: &dyn Fn(f64, f64) -> f64| {
        let each = |one: &One| figure(ms(&one.world), ms(&one.bare));
        median(group.compared.iter().map(each))
    };
    format!(
        "| `{name}` | {} of {} | {:.1} | {:.1} | {:.1} | {:.0} % |\n",
        group.compared.len(),
        group.of,
        middle(&|world, _| world),
        middle(&|_, bare| bare),
        middle(&|world, bare| world - bare),
        middle(&added),
    )
}

/// All kinds: each with its mean, as often as the vectors hold a case of it.
fn all(kinds: &BTreeMap<String, Group>, of: fn(&Spent) -> u64) -> String {
    let (mut world, mut bare, mut cases) = (0.0, 0.0, 0);
    for group in kinds.values() {
        let weight = group.of as f64 / group.compared.len() as f64 / 1e3;
        for one in &group.compared {
            world += of(&one.world) as f64 * weight;
            bare += of(&one.bare) as f64 * weight;
        }
        cases += group.of;
    }
    let each = cases as f64;
    format!(
        "| all {cases}, by the means of their kinds | | {:.1} | {:.1} | {:.1} | {:.0} % |\n",
        world / each,
        bare / each,
        (world - bare) / each,
        added(world, bare)
    )
}

impl Cases {
    pub(super) fn tell(&self, text: &mut String) {
        let compared = || self.kinds.values().flat_map(|group| &group.compared);
        let head = "| | cases | in a world | in a plain loop | the harness adds | of its own time |\n\
                    |---|--:|--:|--:|--:|--:|\n";
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n## Cases of Hermes\n\n\
             {} cases with {} calls, equally many of each kind, evenly spread over all of it: each in \
             a world of its own, and its calls {} times in a plain loop of one warm interpreter, each \
             round a session with a shell environment of its own. Left out: {} that tell another \
             thing when they are done again, {} that did not come to an end. Milliseconds of one \
             case, medians by the tool of its first call.\n\n\
             Processor time, the oracle's share included:\n\n{head}",
            compared().count(),
            compared().map(|one| one.calls).sum::<usize>(),
            ROUNDS - 1,
            self.unlike,
            self.left_out,
        );
        self.table(text, |spent| spent.cpu_us);
        let _ = write!(text, "\nOn the clock:\n\n{head}");
        self.table(text, |spent| spent.wall_us);
    }

    fn table(&self, text: &mut String, of: fn(&Spent) -> u64) {
        for (tool, group) in &self.kinds {
            text.push_str(&row(tool, group, of));
        }
        text.push_str(&all(&self.kinds, of));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(answer: Value) -> Option<Rounds<Spent>> {
        let step = bisim_world::protocol::StepTrace {
            answer,
            ..bisim_world::protocol::StepTrace::of(StepOutcome::Ran)
        };
        rounds(&RawTrace {
            steps: vec![step],
            effects: Vec::new(),
            network: Vec::new(),
            tripwires: Vec::new(),
            end: End::Finished,
            cpu_us: 0,
            wall_us: 0,
        })
    }

    #[test]
    fn the_first_round_of_a_loop_is_not_counted() {
        let Some(Rounds::Alike(spent)) =
            told(json!([[900, 9000, true], [10, 100, true], [30, 300, true]]))
        else {
            panic!("not compared");
        };
        assert_eq!((spent.cpu_us, spent.wall_us), (20, 200));
    }

    #[test]
    fn a_loop_whose_rounds_tell_different_things_is_not_compared() {
        assert!(matches!(
            told(json!([[9, 9, true], [1, 1, false], [1, 1, true]])),
            Some(Rounds::Unlike)
        ));
        assert!(told(json!([[9, 9, true]])).is_none());
        assert!(told(json!("nothing")).is_none());
    }

    fn group(of: usize, times: &[(u64, u64)]) -> Group {
        let spent = |cpu_us| Spent { cpu_us, wall_us: 0 };
        Group {
            of,
            compared: times
                .iter()
                .map(|(world, bare)| One {
                    calls: 1,
                    world: spent(*world),
                    bare: spent(*bare),
                })
                .collect(),
        }
    }

    #[test]
    fn a_kind_is_told_by_its_middle_case_and_all_by_how_many_of_each_kind_there_are() {
        let short = group(30, &[(2000, 1000), (1500, 1000), (9000, 8000)]);
        assert_eq!(
            row("x", &short, |spent| spent.cpu_us),
            "| `x` | 3 of 30 | 2.0 | 1.0 | 1.0 | 50 % |\n"
        );
        let kinds = BTreeMap::from([
            ("x".to_owned(), group(3, &[(2000, 1000)])),
            ("y".to_owned(), group(1, &[(10_000, 9000), (12_000, 9000)])),
        ]);
        assert_eq!(
            all(&kinds, |spent| spent.cpu_us),
            "| all 4, by the means of their kinds | | 4.2 | 3.0 | 1.2 | 42 % |\n"
        );
    }
}
