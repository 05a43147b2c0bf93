//! What a campaign with races deals, by what was seen before.
//!
//! A race is won or lost right before one system call that names what changes places, and
//! how many such calls there are is known to nobody before. So each operation on each pair of
//! names is tried right before its first such call, its second and so on, until there was
//! none more under either subject: then the next ones are left out. The pairs take turns, and
//! each begins elsewhere in its list, so that the first few hundred races are of every
//! operation and of all of its first calls. Places are dealt in rounds as for commands.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bisim_world::flip::Seen;
use bisim_world::protocol::When;

use super::examine::{Examined, Windows};
use super::guide::ROUND;
use super::plan::{self, Numbers};
use crate::generate::crashes::CHANGES_MAX;
use crate::generate::paths::Holding;
use crate::generate::races::{self, WINDOWS_MAX};
use crate::generate::{Race, Specimen, Target};

/// Every so many-th race is one against the start after a kill.
const TURNS: u64 = 4;
/// From one pair to the next, so that neighbours are of different operations; it shares no
/// divisor with the number of pairs.
const STRIDE: usize = 163;
/// The calls among which each pair begins somewhere.
const FRONT: u32 = 4;

/// What is known of the races that were dealt.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    pairs: Vec<Pair>,
    /// Where the next turn begins.
    turn: usize,
    /// Races against the start after a kill so far.
    starts: usize,
    /// What is known of these, by operation.
    of_starts: BTreeMap<&'static str, Start>,
}

/// A call that is killed, and the start after it.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    /// The changes to files that the call makes, once it was not killed in time.
    changes: Option<u32>,
    /// The most system calls that were seen to name one of the two.
    calls: Option<u32>,
}

/// One operation on one pair.
#[derive(Clone, Debug, Default)]
struct Pair {
    /// How much of its list was dealt.
    dealt: usize,
    /// The system calls there are that name one of the two, once that was seen.
    calls: Option<u32>,
}

impl Moments {
    /// Nothing is known yet.
    pub(super) fn new() -> Self {
        Self {
            pairs: vec![Pair::default(); races::pairs().len()],
            turn: 0,
            starts: 0,
            of_starts: BTreeMap::new(),
        }
    }

    /// Learns a round's results, which are given by place.
    pub(super) fn learn<'e>(&mut self, results: impl Iterator<Item = &'e Examined>) {
        for seen in results {
            let name = seen.variant.strip_prefix("race:");
            let race = Race::named(name.unwrap_or(&seen.variant));
            // One that ran out of time has not said anything.
            let (Some(race), Some(windows)) = (race, seen.windows) else {
                continue;
            };
            if race.cut.is_some() {
                let known = self.of_starts.entry(race.operation.name).or_default();
                known.learn(&windows);
                continue;
            }
            let place = races::pairs().iter().position(|(operation, swap)| {
                operation.name == race.operation.name && swap.name == race.swap.name
            });
            if let Some(pair) = place.and_then(|place| self.pairs.get_mut(place)) {
                pair.learn(&race, &windows);
            }
        }
    }

    /// What the round from this place on deals, in order.
    pub(super) fn deal(&mut self, seed: u64, from: u64) -> Vec<Option<Specimen>> {
        let places = from..from.saturating_add(ROUND);
        let last = TURNS.saturating_sub(1);
        places
            .map(|index| {
                if index.checked_rem(TURNS) == Some(last) {
                    return self.start(seed, index).map(Specimen::Race);
                }
                let next = self.next(seed).map(Specimen::Race);
                // All that is known of was tried.
                next.or_else(|| plan::specimen(Target::Races, seed, index))
            })
            .collect()
    }

    /// The next moment of the next pair that has one.
    fn next(&mut self, seed: u64) -> Option<Race> {
        for _ in 0..self.pairs.len() {
            let place = nth(seed, self.turn, self.pairs.len());
            self.turn = self.turn.wrapping_add(1);
            if let Some(when) = self.pairs.get_mut(place)?.next(seed, place) {
                return race(place, when, None);
            }
        }
        None
    }

    /// All pairs in turn, killed and raced at moments the numbers say, of those there are.
    fn start(&mut self, seed: u64, index: u64) -> Option<Race> {
        let place = nth(seed, self.starts, self.pairs.len());
        self.starts = self.starts.wrapping_add(1);
        let (operation, _) = races::pairs().get(place)?;
        let known = self
            .of_starts
            .get(operation.name)
            .copied()
            .unwrap_or_default();
        // Some more than were seen: a kill at another place is followed by another start.
        let one_more = |most: u32| most.saturating_add(1);
        let calls = known.calls.map_or(WINDOWS_MAX, one_more);
        let changes = known.changes.unwrap_or(CHANGES_MAX);
        let mut numbers = Numbers::new(seed, index, 0);
        let mut up_to = |most: u32| {
            let below = usize::try_from(most.max(1)).unwrap_or(1);
            u32::try_from(numbers.below(below)).map_or(1, |number| number.saturating_add(1))
        };
        let (cut, at) = (
            up_to(changes.min(CHANGES_MAX)),
            up_to(calls.min(WINDOWS_MAX)),
        );
        let kinds = [
            When::First(true),
            When::Always(true),
            When::Before(at),
            When::Before(at),
            When::During(at),
            When::During(at),
        ];
        race(place, *kinds.get(numbers.below(kinds.len()))?, Some(cut))
    }
}

/// The larger of what was counted under either.
fn of_both(windows: &Windows, count: fn(&Seen) -> u64) -> u32 {
    let most = count(&windows.hermes).max(count(&windows.agent));
    u32::try_from(most).unwrap_or(u32::MAX)
}

impl Start {
    fn learn(&mut self, windows: &Windows) {
        let most =
            |known: Option<u32>, seen| Some(known.map_or(seen, |known: u32| known.max(seen)));
        if windows.agent.cut {
            self.calls = most(self.calls, of_both(windows, |seen| seen.windows));
        } else {
            self.changes = most(self.changes, of_both(windows, |seen| seen.changes));
        }
    }
}

impl Pair {
    fn learn(&mut self, race: &Race, windows: &Windows) {
        let calls = of_both(windows, |seen| seen.windows);
        match race.when {
            When::First(_) | When::Always(_) => {}
            // Where nothing changed places these are all there are; else there are more, or
            // somebody noticed and went no further.
            When::Before(number) | When::During(number) => {
                let is_whole = windows.hermes.flips == 0 && windows.agent.flips == 0;
                if is_whole && calls < number {
                    self.calls = Some(self.calls.unwrap_or(0).max(calls));
                }
            }
        }
    }

    /// The next of its list that there is, as far as is known.
    fn next(&mut self, seed: u64, place: usize) -> Option<When> {
        let begin = Numbers::new(seed, place as u64, 0).below(LIST.0.len());
        loop {
            let when = in_list(begin, self.dealt)?;
            self.dealt = self.dealt.saturating_add(1);
            match when {
                When::First(_) | When::Always(_) => return Some(when),
                // One more than was seen: processes beside each other need not be counted
                // the same each time.
                When::Before(number) | When::During(number) => {
                    let there_are = self
                        .calls
                        .map_or(WINDOWS_MAX, |calls| calls.saturating_add(1));
                    if number <= there_are {
                        return Some(when);
                    }
                }
            }
        }
    }
}

/// All moments: those a pair begins among, and those after them.
static LIST: LazyLock<(Vec<When>, Vec<When>)> =
    LazyLock::new(|| races::moments().partition(is_in_front));

/// What stands at a place of a list that begins there.
fn in_list(begin: usize, place: usize) -> Option<When> {
    let (front, rest) = &*LIST;
    match place.checked_sub(front.len()) {
        None => front.get(begin.wrapping_add(place).checked_rem(front.len())?),
        Some(place) => rest.get(place),
    }
    .copied()
}

fn is_in_front(when: &When) -> bool {
    match when {
        When::First(_) | When::Always(_) => true,
        When::Before(number) | When::During(number) => *number <= FRONT,
    }
}

/// The place of the pair whose turn it is; the seed says with which it begins.
fn nth(seed: u64, turn: usize, pairs: usize) -> usize {
    let begin = Numbers::new(seed, 0, 0).below(pairs);
    let place = begin.wrapping_add(turn.wrapping_mul(STRIDE));
    place.checked_rem(pairs).unwrap_or(0)
}

fn race(place: usize, when: When, cut: Option<u32>) -> Option<Race> {
    let (operation, swap) = *races::pairs().get(place)?;
    Some(Race {
        operation,
        swap,
        holding: Holding::All,
        when,
        cut,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Changes that every call makes.
    const CHANGES: u32 = 3;

    /// What is seen of a race in which the agent makes so many calls, and Hermes one.
    fn seen(race: &Race, calls: u32) -> Examined {
        let of = |calls: u32| {
            let flips = match race.when {
                When::First(_) | When::Always(_) => 1,
                When::Before(number) | When::During(number) => u64::from(number <= calls),
            };
            // Whoever is shown something else goes no further.
            let windows = match race.when {
                When::Before(number) | When::During(number) => number.min(calls),
                When::First(_) | When::Always(_) => 0,
            };
            let cut = race.cut.is_some_and(|cut| cut <= CHANGES);
            Seen {
                windows: u64::from(windows),
                flips,
                changes: u64::from(race.cut.map_or(0, |cut| CHANGES.min(cut - 1))),
                cut,
                ..Seen::default()
            }
        };
        Examined {
            windows: Some(Windows {
                hermes: of(1),
                agent: of(calls),
            }),
            ..Examined::of(0, format!("race:{race}"))
        }
    }

    /// All that is dealt in these rounds where the operations make so many calls.
    fn dealt(seed: u64, rounds: u64, calls: u32) -> Vec<Race> {
        let mut moments = Moments::new();
        let mut all = Vec::new();
        for round in 0..rounds {
            let dealt = moments.deal(seed, round * ROUND);
            let races: Vec<Race> = dealt
                .into_iter()
                .flatten()
                .map(|specimen| match specimen {
                    Specimen::Race(race) => race,
                    other => panic!("{other}"),
                })
                .collect();
            let results: Vec<Examined> = races.iter().map(|race| seen(race, calls)).collect();
            moments.learn(results.iter());
            all.extend(races);
        }
        all
    }

    #[test]
    fn every_operation_on_every_pair_meets_each_call_there_is_and_hardly_any_there_is_not() {
        let pairs = races::pairs().len();
        let calls = 5;
        // Each has two for each call, two without a number, and what it takes to know its calls.
        let rounds = (pairs as u64 * 20 * TURNS).div_ceil(ROUND * (TURNS - 1));
        let mut met: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for race in dealt(7, rounds, calls) {
            if race.cut.is_none() && race.holding == Holding::All {
                let name = race.to_string();
                let (pair, when) = name.split_once("+all+").unwrap();
                met.entry(pair.to_owned())
                    .or_default()
                    .insert(when.to_owned());
            }
        }
        assert_eq!(met.len(), pairs);
        for (pair, moments) in &met {
            for number in 1..=calls {
                for kind in ["before", "during"] {
                    let moment = format!("{kind}~{number}");
                    assert!(moments.contains(&moment), "{pair}: {moment}");
                }
            }
            assert!(moments.contains("first") && moments.contains("always"));
        }
        let all: usize = met.values().map(BTreeSet::len).sum();
        assert!(all < pairs * 18, "{all}");
    }

    #[test]
    fn the_first_races_are_of_every_operation_and_of_all_of_its_first_calls() {
        let pairs = races::pairs().len();
        let rounds = (pairs as u64 * TURNS).div_ceil(ROUND * (TURNS - 1));
        let first = dealt(11, rounds, 9);
        let plain = first.iter().filter(|race| race.cut.is_none());
        let mut met: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut whens: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for race in plain.take(pairs) {
            met.insert((race.operation.name, race.swap.name));
            let name = race.to_string();
            let when = name.rsplit('+').next().unwrap().to_owned();
            whens.entry(race.operation.name).or_default().insert(when);
        }
        assert_eq!(met.len(), pairs);
        let everywhere: BTreeSet<&str> = races::pairs()
            .iter()
            .filter(|(_, swap)| swap.name == races::SWAPS[0].name)
            .map(|(operation, _)| operation.name)
            .collect();
        for operation in everywhere {
            let met = &whens[operation];
            assert!(met.len() >= 5, "{operation}: {met:?}");
        }
        let cut = first.iter().filter(|race| race.cut.is_some()).count();
        assert_eq!(cut as u64, rounds * ROUND / TURNS);
    }

    #[test]
    fn a_start_after_a_kill_is_raced_where_there_is_something_to_race() {
        let pairs = races::pairs().len() as u64;
        let rounds = 3 * pairs * TURNS / ROUND;
        let starts: Vec<Race> = dealt(3, rounds, 2)
            .into_iter()
            .filter(|race| race.cut.is_some())
            .collect();
        let is_there = |race: &&Race| {
            let number = match race.when {
                When::Before(number) | When::During(number) => number,
                When::First(_) | When::Always(_) => 1,
            };
            race.cut.unwrap() <= CHANGES && number <= 3
        };
        let hits = |races: &[Race]| races.iter().filter(is_there).count() * 100 / races.len();
        // Of the first round nothing is known.
        let known = usize::try_from(ROUND / TURNS).unwrap();
        let (before, after) = (&starts[..known], &starts[starts.len() * 2 / 3..]);
        assert!(hits(before) < 20, "{}", hits(before));
        assert!(hits(after) > 60, "{}", hits(after));
    }
}
