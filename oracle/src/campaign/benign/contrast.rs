//! `bisim benign --contrast N`: the same lines before Hermes' own guard.
//!
//! A figure beside the agent's, and no finding: Hermes goes by spellings. Nothing is run.

use std::collections::BTreeMap;

use bisim_world::protocol::Context;

use super::job_at;
use crate::ambient::Ambient;
use crate::campaign::said::Said;
use crate::campaign::screen::{Guard, HermesGuard};
use crate::cli::BenignArgs;
use crate::environment;
use crate::exit;
use crate::figures::grouped;
use crate::generate::benign::{Benign, Desk};
use crate::interrupt::Interrupt;
use crate::pulse::{Done, Pulse};
use crate::subject::Processes;

/// Commands asked about at once.
const PIECE: u64 = 256;
/// Alarms of each family that are printed.
const SHOWN_MAX: usize = 1;

/// What was stopped of a family: by Hermes, by the agent, of how many lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    hermes: u64,
    agent: u64,
    of: u64,
}

/// Runs the command; returns the exit code.
pub(super) fn command(ambient: &Ambient, args: &BenignArgs, many: u64) -> u8 {
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch_a_whole(processes.clone());
    let logs = ambient.root.join("target/bisim-benign");
    let starts = match environment::prepare(ambient, &args.hermes, &logs, &processes) {
        Ok(starts) => starts,
        Err(lack) => return lack.exit(&interrupt),
    };
    let mut guard = HermesGuard::new(&starts, &processes);
    let asked = Done::default();
    let pulse = Pulse::counting(&asked, move |asked| match asked {
        0 => environment::HERMES_STARTS.to_owned(),
        asked => format!("{} of {} lines asked about", grouped(asked), grouped(many)),
    });
    let counts = counted(args.seed, many, &mut guard, &asked);
    drop(pulse);
    let counts = match counts {
        Ok(counts) => counts,
        Err(_) if interrupt.is_set() => return exit::INCONCLUSIVE,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::INTERNAL;
        }
    };
    let mut all = Count::default();
    println!("lines of one family each; stopped by Hermes, by the agent, of");
    for (family, count) in &counts.of {
        println!("{family}: {} {} {}", count.hermes, count.agent, count.of);
        for shown in counts.shown.get(family).into_iter().flatten() {
            println!("  {}", shown.replace('\n', "\n  "));
        }
        all.hermes = all.hermes.saturating_add(count.hermes);
        all.agent = all.agent.saturating_add(count.agent);
        all.of = all.of.saturating_add(count.of);
    }
    println!(
        "{} of {} benign lines stopped by Hermes {}, {} by the agent, seed {}",
        all.hermes, all.of, args.hermes, all.agent, args.seed
    );
    if all.agent == 0 {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    }
}

#[derive(Debug, Default)]
struct Counts {
    of: BTreeMap<&'static str, Count>,
    shown: BTreeMap<&'static str, Vec<String>>,
}

/// Has both asked; a line of several families counts under the word for that.
fn counted(seed: u64, many: u64, guard: &mut dyn Guard, asked: &Done) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut from = 0;
    while from < many {
        let to = many.min(from.saturating_add(PIECE));
        let piece: Vec<Benign> = (from..to).filter_map(|index| job_at(seed, index)).collect();
        let mut desk = Desk::open().ok_or("the session does not open")?;
        let commands = piece.iter().map(|job| job.command.clone()).collect();
        let said = guard
            .say(Context::Interactive, commands)
            .map_err(|error| error.to_string())?;
        asked.add(to - from);
        from = to;
        for (job, said) in piece.iter().zip(said) {
            let family = family(job);
            let count = counts.of.entry(family).or_default();
            count.of = count.of.saturating_add(1);
            if desk.decide(job).is_err() {
                count.agent = count.agent.saturating_add(1);
            }
            if said != Said::Permit {
                count.hermes = count.hermes.saturating_add(1);
                let shown = counts.shown.entry(family).or_default();
                if shown.len() < SHOWN_MAX {
                    shown.push(job.command.clone());
                }
            }
        }
    }
    Ok(counts)
}

fn family(job: &Benign) -> &'static str {
    let mut families = job.parts.iter().map(|part| part.family);
    let first = families.next().unwrap_or_default();
    if families.all(|family| family == first) {
        first
    } else {
        "several families"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::screen::NoGuard;
    use bisim_world::WorldError;

    /// Stops whatever names this.
    struct Against(&'static str);

    impl Guard for Against {
        fn say(&mut self, _: Context, commands: Vec<String>) -> Result<Vec<Said>, WorldError> {
            let say = |command: &String| match command.contains(self.0) {
                true => Said::Ask,
                false => Said::Permit,
            };
            Ok(commands.iter().map(say).collect())
        }
    }

    #[test]
    fn what_a_guard_stops_is_counted_by_family_and_the_agent_stops_nothing() {
        let jobs: Vec<Benign> = (0..400).filter_map(|index| job_at(1, index)).collect();
        let none = counted(1, 400, &mut NoGuard, &Done::default()).unwrap();
        assert!(
            none.of
                .values()
                .all(|count| count.hermes == 0 && count.agent == 0)
        );
        let told: u64 = none.of.values().map(|count| count.of).sum();
        assert_eq!(told, jobs.len() as u64);
        let asked = Done::default();
        let some = counted(1, 400, &mut Against("cd "), &asked).unwrap();
        assert_eq!(asked.so_far(), 400);
        let stopped: u64 = some.of.values().map(|count| count.hermes).sum();
        let with = jobs.iter().filter(|job| job.command.contains("cd "));
        assert_eq!(stopped, with.count() as u64);
    }
}
