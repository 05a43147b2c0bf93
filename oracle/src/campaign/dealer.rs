//! Hands places to workers, and closes a round before it opens the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::examine::Examined;
use super::guide::{Guide, ROUND};
use super::moments::Moments;
use super::plan;
use crate::cli::Shard;
use crate::generate::{Specimen, Target};

/// What is dealt, to whoever asks next.
pub(super) struct Dealer {
    target: Target,
    seed: u64,
    count: Option<u64>,
    shard: Option<Shard>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    next: u64,
    /// Where the open round ends; there is one round only without a guide.
    end: u64,
    guided: Option<Guided>,
    /// Dealt, and not back yet.
    out: BTreeSet<u64>,
    done: BTreeSet<u64>,
    is_over: bool,
}

/// What there is for a worker.
enum Step {
    Dealt(u64, Specimen),
    /// A round has to close first.
    Wait,
    Over,
}

struct Guided {
    by: By,
    begin: u64,
    round: Vec<Option<Specimen>>,
    /// What came back, until its round closes.
    results: BTreeMap<u64, Examined>,
}

/// Who says what comes next.
enum By {
    Commands(Guide),
    Races(Moments),
}

impl By {
    fn of(target: Target) -> Option<Self> {
        match target {
            Target::Commands => Some(Self::Commands(Guide::new())),
            Target::Races => Some(Self::Races(Moments::new())),
            Target::Paths
            | Target::Sequences
            | Target::Crashes
            | Target::Plans
            | Target::BenignTools
            | Target::Conversations => None,
        }
    }

    fn learn<'e>(&mut self, results: impl Iterator<Item = &'e Examined>) {
        match self {
            Self::Commands(guide) => guide.learn(results),
            Self::Races(moments) => moments.learn(results),
        }
    }

    fn deal(&mut self, seed: u64, from: u64) -> Vec<Option<Specimen>> {
        match self {
            Self::Commands(guide) => {
                let round = guide.deal(seed, from).into_iter();
                round
                    .map(|variant| variant.map(Specimen::Command))
                    .collect()
            }
            Self::Races(moments) => moments.deal(seed, from),
        }
    }
}

impl Dealer {
    /// A dealer of one campaign, of which this much is done.
    pub(super) fn new(
        (target, seed): (Target, u64),
        count: Option<u64>,
        shard: Option<Shard>,
        old: &[Examined],
    ) -> Self {
        let guided = By::of(target).map(|mut by| Guided {
            round: by.deal(seed, 0),
            by,
            begin: 0,
            results: old.iter().map(|seen| (seen.index, seen.clone())).collect(),
        });
        Self {
            target,
            seed,
            count,
            shard,
            state: Mutex::new(State {
                next: 0,
                end: if guided.is_some() { ROUND } else { u64::MAX },
                guided,
                out: BTreeSet::new(),
                done: old.iter().map(|seen| seen.index).collect(),
                is_over: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next place and what is there; `None` when there is no more. Waits
    /// where a round has to close first.
    pub(super) fn next(&self, is_over: impl Fn() -> bool) -> Option<(u64, Specimen)> {
        let mut state = self.lock();
        loop {
            match self.step(&mut state, &is_over) {
                Step::Dealt(index, specimen) => return Some((index, specimen)),
                Step::Over => return None,
                Step::Wait => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn step(&self, state: &mut State, is_over: &impl Fn() -> bool) -> Step {
        loop {
            let index = state.next;
            if state.is_over || is_over() || self.count.is_some_and(|count| index >= count) {
                return Step::Over;
            }
            if index >= state.end {
                if !state.out.is_empty() {
                    return Step::Wait;
                }
                self.open_next(state);
            }
            state.next += 1;
            let dealt = usize::try_from(index)
                .is_ok_and(|place| self.shard.is_none_or(|shard| shard.takes(place)));
            if !dealt || state.done.contains(&index) {
                continue;
            }
            let specimen = match &state.guided {
                None => plan::specimen(self.target, self.seed, index),
                Some(guided) => index
                    .checked_sub(guided.begin)
                    .and_then(|place| usize::try_from(place).ok())
                    .and_then(|place| guided.round.get(place).cloned().flatten()),
            };
            if let Some(specimen) = specimen {
                state.out.insert(index);
                return Step::Dealt(index, specimen);
            }
        }
    }

    fn open_next(&self, state: &mut State) {
        let end = state.end;
        if let Some(guided) = &mut state.guided {
            guided
                .by
                .learn(guided.results.range(..end).map(|(_, seen)| seen));
            guided.results = guided.results.split_off(&end);
            guided.begin = end;
            guided.round = guided.by.deal(self.seed, end);
        }
        state.end = end.saturating_add(ROUND);
    }

    /// A place is back.
    pub(super) fn back(&self, seen: &Examined) {
        let mut state = self.lock();
        state.out.remove(&seen.index);
        if let Some(guided) = &mut state.guided {
            guided.results.insert(seen.index, seen.clone());
        }
        self.changed.notify_all();
    }

    /// A worker ends without bringing its place back: the round never closes.
    pub(super) fn give_up(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::SINGLES;
    use crate::campaign::examine::Fate;

    /// What would be seen of a variant, were it a function of its name.
    fn seen(index: u64, specimen: &Specimen) -> Examined {
        let name = specimen.to_string();
        let sum: u64 = name.bytes().map(u64::from).sum();
        let silent = sum.is_multiple_of(3);
        let seed = name.split('+').next().unwrap_or_default().len() as u64;
        Examined {
            fate: if silent {
                Fate::HermesSilent
            } else {
                Fate::HermesStopped
            },
            matched: silent.then(|| vec![format!("dangerous {}", seed % 7)]),
            ..Examined::of(index, name)
        }
    }

    /// Deals to `workers` hands, each of which brings back what it holds in the
    /// order the numbers say; stops after `stop` results.
    fn play(
        workers: usize,
        order: u64,
        count: u64,
        stop: usize,
        old: &[Examined],
    ) -> Vec<Examined> {
        let dealer = Dealer::new((Target::Commands, 7), Some(count), None, old);
        let mut hands: Vec<(u64, Specimen)> = Vec::new();
        let mut all = old.to_vec();
        let mut numbers = plan::Numbers::new(order, 0, 0);
        while all.len() - old.len() < stop {
            while hands.len() < workers {
                match dealer.step(&mut dealer.lock(), &|| false) {
                    Step::Dealt(index, specimen) => hands.push((index, specimen)),
                    Step::Wait | Step::Over => break,
                }
            }
            if hands.is_empty() {
                break;
            }
            let (index, specimen) = hands.swap_remove(numbers.below(hands.len()));
            let one = seen(index, &specimen);
            dealer.back(&one);
            all.push(one);
        }
        all.sort_by_key(|seen| seen.index);
        all
    }

    #[test]
    fn neither_workers_nor_their_order_nor_a_kill_change_what_is_dealt() {
        let count = *SINGLES + 4 * ROUND;
        let whole = play(1, 1, count, usize::MAX, &[]);
        assert!(whole.len() as u64 > count - 50, "{}", whole.len());
        for (workers, order) in [(2, 3), (5, 4), (11, 5)] {
            assert_eq!(play(workers, order, count, usize::MAX, &[]), whole);
        }
        let guided = usize::try_from(*SINGLES).unwrap() + 100;
        for stop in [1, 63, guided] {
            let part = play(3, 6, count, stop, &[]);
            assert_eq!(play(2, 7, count, usize::MAX, &part), whole, "{stop}");
        }
    }

    #[test]
    fn what_was_seen_changes_what_is_dealt_after_its_round() {
        let count = *SINGLES + 2 * ROUND;
        let whole = play(1, 1, count, usize::MAX, &[]);
        let mut other: Vec<Examined> = whole
            .iter()
            .filter(|seen| seen.index < *SINGLES)
            .cloned()
            .collect();
        for seen in &mut other {
            seen.fate = Fate::HermesStopped;
            seen.matched = None;
        }
        let others = play(1, 1, count, usize::MAX, &other);
        let names = |all: &[Examined]| -> Vec<String> {
            let guided = all.iter().filter(|seen| seen.index >= *SINGLES + ROUND);
            guided.map(|seen| seen.variant.clone()).collect()
        };
        assert_ne!(names(&whole), names(&others));
    }

    #[test]
    fn a_worker_that_gives_up_keeps_nobody_waiting() {
        let dealer = Dealer::new((Target::Commands, 7), None, None, &[]);
        while let Step::Dealt(..) = dealer.step(&mut dealer.lock(), &|| false) {}
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| dealer.next(|| false).is_none());
            dealer.give_up();
            assert!(waiting.join().unwrap());
        });
    }
}
