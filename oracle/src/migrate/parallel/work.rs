//! Reading, and running what is read on several pairs of workers.
//!
//! Nothing is held but what is being run: reading waits when the workers are behind.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::interrupt::Interrupt;
use crate::migrate::history::Sink;
use crate::migrate::replay::{Gather, Handed, Outcome, Unit, Workspaces};
use crate::subject::Subjects;

/// Units that wait for a worker, for each worker.
const WAITING_EACH: usize = 4;
/// Results that wait to be added up.
const RESULTS: usize = 256;

/// Where the calls of a session were, if it does not say so itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Where {
    pub(super) usual: Option<String>,
    pub(super) home: Option<String>,
}

/// What becomes of what is read.
pub(super) trait Work: Sync {
    /// What is made of it.
    type Made: Send;
    /// A unit was drawn, and a pair of workers is free.
    fn unit(&self, subjects: &mut Subjects, unit: &Unit) -> Self::Made;
    /// A unit was left out of the sample.
    fn left_out(&self, _unit: &Unit) -> Option<Self::Made> {
        None
    }
    /// A call cannot be run.
    fn not(&self, _outcome: Outcome) -> Option<Self::Made> {
        None
    }
    /// Whether more would tell nothing.
    fn is_enough(&self) -> bool {
        false
    }
}

/// Whether the unit with this number is in a sample of that share: the same ones in
/// every run, and evenly from all sessions.
fn is_drawn(number: u64, share: f64) -> bool {
    let digest = Sha256::digest(format!("sample {number}"));
    let first = digest.iter().take(4);
    let drawn = first.fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
    f64::from(drawn) < share * f64::from(u32::MAX)
}

/// Runs what `read` gives, and hands what is made of it to `take`.
pub(super) fn drive<W: Work>(
    pairs: &mut [Subjects],
    (workspaces, places): (&mut Workspaces, &Where),
    (sample, interrupt): (Option<f64>, &Interrupt),
    read: &mut dyn FnMut(&mut dyn Sink),
    work: &W,
    mut take: impl FnMut(W::Made) + Send,
) {
    let (units, waiting) = sync_channel::<Box<Unit>>(pairs.len() * WAITING_EACH);
    let (results, done) = sync_channel::<W::Made>(RESULTS);
    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        for subjects in pairs {
            let (results, waiting) = (results.clone(), &waiting);
            scope.spawn(move || {
                while let Some(unit) = next(waiting) {
                    if results.send(work.unit(subjects, &unit)).is_err() {
                        return;
                    }
                }
            });
        }
        scope.spawn(move || done.iter().for_each(&mut take));
        let mut number = 0;
        let hand = move |handed: Handed| {
            let more = || !interrupt.is_set() && !work.is_enough();
            let made = match handed {
                Handed::Unit(unit) => {
                    number += 1;
                    if sample.is_none_or(|share| is_drawn(number, share)) {
                        return units.send(unit).is_ok() && more();
                    }
                    work.left_out(&unit)
                }
                Handed::Not(outcome) => work.not(outcome),
            };
            made.is_none_or(|made| results.send(made).is_ok()) && more()
        };
        let mut gather = Gather::new(workspaces, places.usual.clone(), places.home.clone(), hand);
        read(&mut gather);
        // Whether more would be taken does not matter any more; the workers end
        // when nobody hands them anything, which `gather` holds the means to.
        let _ = gather.flush();
    });
}

fn next(waiting: &Mutex<Receiver<Box<Unit>>>) -> Option<Box<Unit>> {
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::is_drawn;

    #[test]
    fn a_sample_is_as_large_as_it_was_asked_for_and_the_same_each_time() {
        for (share, from, to) in [(0.0, 0, 0), (0.1, 900, 1_100), (1.0, 9_999, 10_000)] {
            let drawn = || {
                (0..10_000)
                    .filter(|number| is_drawn(*number, share))
                    .count()
            };
            assert!((from..=to).contains(&drawn()), "{share}: {}", drawn());
            assert_eq!(drawn(), drawn());
        }
    }
}
