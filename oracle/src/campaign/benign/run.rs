//! `bisim benign --run N`: lines in worlds, one of a bare shell and one of the agent's.
//!
//! What is said of a line has to be what a bare shell shows; and the agent, who holds the
//! workspace, has to ask nobody and to leave the same behind.

use std::collections::BTreeSet;

use bisim_world::WorldError;

use super::job_at;
use super::observe::shell;
use super::worlds::{over, see};
use crate::ambient::Ambient;
use crate::cli::BenignArgs;
use crate::environment;
use crate::exit;
use crate::figures::counted;
use crate::generate::benign::Benign;
use crate::generate::benign::does::{Does, steady};
use crate::interrupt::Interrupt;
use crate::subject::{Processes, Subject};

/// How many of each are printed.
const SHOWN_MAX: usize = 20;
/// What two worlds disagree about is looked at again: a busy machine is no finding.
const TRIES: usize = 2;

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It does what is said, and the agent did the same and asked nobody.
    Right,
    /// A bare shell shows something else than is said.
    Otherwise(String),
    /// The agent asked or refused.
    Alarm(String),
    /// The agent left something else than the shell.
    Differs(String),
}

/// Runs the command; returns the exit code.
pub(super) fn command(ambient: &Ambient, args: &BenignArgs, many: u64) -> u8 {
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let jobs: Vec<Benign> = (0..)
        .filter_map(|index| job_at(args.seed, index))
        .filter(|job| job.prepare.is_some())
        .take(usize::try_from(many).unwrap_or(usize::MAX))
        .collect();
    let agent = match environment::agent_alone(ambient, args.fault.as_deref(), &processes) {
        Ok(start) => start,
        Err(lack) => return lack.exit(&interrupt),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let pairs = (0..workers)
        .map(|_| {
            let agent = crate::subject::Restarting::new(agent.clone(), processes.clone(), None);
            (shell(ambient, &processes), agent)
        })
        .collect();
    let came = over(
        pairs,
        (&jobs, "lines"),
        &interrupt,
        |(shell, agent), job| {
            let mut came = examined(shell, agent, job)?;
            for _ in 1..TRIES {
                if came != Came::Right {
                    came = examined(shell, agent, job)?;
                }
            }
            Ok(came)
        },
    );
    let came = match came {
        Ok(came) => came,
        Err(_) if interrupt.is_set() => return exit::INCONCLUSIVE,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INTERNAL;
        }
    };
    told(&jobs, &came, args.seed)
}

fn told(jobs: &[Benign], came: &[Came], seed: u64) -> u8 {
    let shapes: BTreeSet<(&str, &str)> = jobs
        .iter()
        .flat_map(|job| job.parts.iter().map(|part| (part.kind, part.shape)))
        .collect();
    let mut counts = [0_usize; 3];
    let wrong = came
        .iter()
        .zip(jobs)
        .filter(|(came, _)| **came != Came::Right);
    for (number, (came, job)) in wrong.enumerate() {
        let (place, word, why) = match came {
            Came::Right => continue,
            Came::Otherwise(why) => (0, "OTHERWISE", why),
            Came::Alarm(why) => (1, "ALARM", why),
            Came::Differs(why) => (2, "DIFFERS", why),
        };
        if let Some(count) = counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        if number < SHOWN_MAX {
            println!("{word} {}\n  {}", why, job.command.replace('\n', "\n  "));
        }
    }
    let [otherwise, alarms, differs] = counts;
    println!(
        "{} of {} in worlds: {otherwise} otherwise than is said, {} of the agent, {differs} left \
         something else, seed {seed}",
        counted(jobs.len() as u64, "line", "lines"),
        counted(shapes.len() as u64, "shape", "shapes"),
        counted(alarms as u64, "false alarm", "false alarms"),
    );
    if counts == [0; 3] {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    }
}

/// Runs a line in both worlds.
///
/// # Errors
/// The harness failed.
pub fn examined(
    shell: &mut dyn Subject,
    agent: &mut dyn Subject,
    job: &Benign,
) -> Result<Came, WorldError> {
    let prepare = job.prepare.as_deref().unwrap_or("true");
    let shown = steady(&see(shell, prepare, &job.command)?.does);
    if let Some(why) = other(&steady(&job.does), &shown) {
        return Ok(Came::Otherwise(why));
    }
    let held = see(agent, prepare, &job.command)?;
    if let Some(why) = held.stopped {
        return Ok(Came::Alarm(why));
    }
    Ok(other(&shown, &steady(&held.does)).map_or(Came::Right, Came::Differs))
}

/// In what a bare shell shows something else than is said of a line, in words.
///
/// # Errors
/// The harness failed.
pub fn otherwise(shell: &mut dyn Subject, job: &Benign) -> Result<Option<String>, WorldError> {
    let prepare = job.prepare.as_deref().unwrap_or("true");
    let shown = see(shell, prepare, &job.command)?;
    Ok(other(&steady(&job.does), &steady(&shown.does)))
}

/// In what two differ, in words.
fn other(one: &Does, two: &Does) -> Option<String> {
    let (lost, more): (Vec<_>, Vec<_>) = (
        one.iter()
            .filter(|(path, fate)| two.get(*path) != Some(fate))
            .collect(),
        two.iter()
            .filter(|(path, fate)| one.get(*path) != Some(fate))
            .collect(),
    );
    (!lost.is_empty() || !more.is_empty()).then(|| format!("{lost:?} was {more:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::benign::Fate;

    #[test]
    fn two_that_differ_in_a_name_or_in_its_fate_are_told_apart() {
        let one = Does::from([("a".to_owned(), Fate::Changed)]);
        assert_eq!(other(&one, &one.clone()), None);
        for two in [
            Does::new(),
            Does::from([("a".to_owned(), Fate::Gone)]),
            Does::from([("b".to_owned(), Fate::Changed)]),
        ] {
            assert!(other(&one, &two).is_some());
            assert!(other(&two, &one).is_some());
        }
    }
}
