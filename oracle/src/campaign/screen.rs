//! `bisim fuzz --screen N`: commands by the thousand before both guards, and only what
//! is new about them in worlds.
//!
//! A case in a world costs worlds; what Hermes' guard and the agent's core say of a
//! command costs neither. Here both are only asked: the real Hermes by the entry its
//! terminal tool uses, thousands of commands at once in one interpreter that has a
//! disposable world around it, the agent's core in this process. Nothing is run and
//! nothing is believed: what is new (`novelty`) goes on into three worlds as any
//! variant of a campaign does, and it is counted where these tell something else.
//!
//! A screening is a function of its seed and of what was seen. Where rounds end is
//! fixed; what goes on from a round is fixed by the rounds before it, so neither the
//! number of workers nor a kill changes anything.

mod desk;
mod guard;
mod lane;
mod novelty;
mod rounds;
mod so_far;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub use self::guard::{Guard, HermesGuard, NoGuard};
pub use self::lane::{Batch, Piece, Screened, deal, screen, screen_while};
pub use self::novelty::{Agreement, Chosen, Key, Known, agreement};
use self::rounds::Rounds;
pub use self::rounds::{Round, of as rounds_of, together};
use self::so_far::SoFar;
use super::examine::{Examined, Trio};
use super::keep::{self, Log};
use super::tally::Tally;
use super::{Hunt, escape, plan};
use crate::generate::{SEEDS, Specimen};
use crate::pulse::Pulse;

/// Places asked about at once: a world for each context of them is little beside them.
pub const PIECE: u64 = 4096;
/// Places of a round at most, and of the first one.
const ROUND_MAX: u64 = 4 * PIECE;
const ROUND_FIRST: u64 = 1024;
/// A round is asked about in so many pieces at least, by as many workers at once.
const PIECES: u64 = 4;
/// How often a piece is asked about when its worker is lost.
const TRIES: usize = 2;

/// The workers of one thread.
struct Bench {
    guard: HermesGuard,
    trio: Trio,
}

/// A screening under way.
pub(super) struct Screening<'a> {
    hunt: &'a Hunt<'a>,
    /// How many places there are.
    places: u64,
    until: Option<Instant>,
    benches: Vec<Bench>,
    present: BTreeSet<&'static str>,
    known: Known,
    log: Log,
    rounds: Rounds,
    /// Everything examined, by place.
    examined: BTreeMap<u64, Examined>,
    tally: Tally,
    so_far: Arc<SoFar>,
}

/// Where the round ends that begins here: it is as long as all before it together, so that
/// something is known early and little is lost where the time is up, and no longer than what
/// comes into worlds has to wait for.
fn end_of_round(from: u64) -> u64 {
    from.saturating_add(from.clamp(ROUND_FIRST, ROUND_MAX))
}

/// Screens these many places; the rounds of the log are not asked about again.
pub(super) fn run(
    hunt: &Hunt<'_>,
    places: u64,
    mut log: Log,
    place: &Path,
) -> Result<Tally, String> {
    let until = Instant::now().checked_add(hunt.args.time);
    let mut tally = Tally::of(hunt.args.target);
    let old = log.take_old();
    old.iter().for_each(|seen| tally.add(seen));
    let (rounds, done) = Rounds::open(place)?;
    // Before anything is started.
    if let Some(first) = done.first().filter(|first| !is_of(first, hunt, 0)) {
        return Err(of_another(first, 0));
    }
    let so_far = Arc::new(SoFar::new(places, until));
    let told = Arc::clone(&so_far);
    let _pulse = Pulse::lines(move || told.line());
    let mut benches: Vec<Bench> = (0..hunt.jobs())
        .map(|_| Bench {
            guard: HermesGuard::new(hunt.starts, &hunt.processes),
            trio: Trio::new(hunt.starts, &hunt.processes),
        })
        .collect();
    let first = benches.first_mut().ok_or("there are no workers")?;
    let present = first.trio.present().map_err(|error| error.to_string())?;
    let present = present.clone();
    let matched: Result<Vec<Vec<String>>, _> = SEEDS
        .iter()
        .map(|seed| escape::matched(first.guard.worker(), &seed.script().print()))
        .collect();
    let matched = matched.map_err(|error| error.to_string())?;
    let mut screening = Screening {
        hunt,
        places,
        until,
        benches,
        present,
        known: Known::new(matched),
        log,
        rounds,
        examined: old.into_iter().map(|seen| (seen.index, seen)).collect(),
        tally,
        so_far,
    };
    let all = screening.all(done)?;
    let Screening {
        mut tally,
        examined,
        log,
        ..
    } = screening;
    tally.screen = Some(together(&all, |index| examined.get(&index)));
    tally.made_from = log.made_from().clone();
    keep::summary(place, hunt.part(&log), &hunt.args.hermes, &tally)?;
    Ok(tally)
}

impl Screening<'_> {
    /// Every round: those that are done, and those that are left while there is time.
    fn all(&mut self, done: Vec<Round>) -> Result<Vec<Round>, String> {
        let mut all = Vec::new();
        let mut done = done.into_iter();
        let mut from = 0;
        while from < self.places {
            let to = self.places.min(end_of_round(from));
            let round = match done.next() {
                Some(round) if is_of(&round, self.hunt, from) => {
                    self.learn(&round.chosen)?;
                    round
                }
                Some(round) => return Err(of_another(&round, from)),
                None => match self.round(from, to)? {
                    Some(round) => round,
                    None => {
                        if !self.hunt.interrupt.is_set() {
                            eprintln!("{}", self.so_far.cut(from, to));
                        }
                        break;
                    }
                },
            };
            from = round.to;
            all.push(round);
        }
        Ok(all)
    }

    fn is_over(&self) -> bool {
        self.hunt.interrupt.is_set() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// One round; `None` where the time is up before its end.
    fn round(&mut self, from: u64, to: u64) -> Result<Option<Round>, String> {
        self.so_far.asks_from(from);
        let Some(pieces) = self.ask(from, to)? else {
            return Ok(None);
        };
        let mut round = Round {
            from,
            to,
            shard: shard(self.hunt),
            ..Round::default()
        };
        pieces.iter().for_each(|piece| round.add(piece));
        let screened: Vec<Screened> = pieces.into_iter().flat_map(|one| one.screened).collect();
        let mut tried = BTreeSet::new();
        loop {
            let seed = self.hunt.args.seed;
            let chosen = self.known.choose(&screened, |index| {
                let variant = plan::variant(seed, index);
                let needs = variant.map(|variant| variant.needs());
                !tried.contains(&index)
                    && needs.is_some_and(|all| all.iter().all(|one| self.present.contains(one)))
            });
            if chosen.is_empty() {
                break;
            }
            if !self.examine(&chosen)? {
                return Ok(None);
            }
            self.learn(&chosen)?;
            let things = self.known.shown().count();
            self.so_far.shows(things, 0, &self.tally);
            tried.extend(chosen.iter().map(|one| one.index));
            round.chosen.extend(chosen);
        }
        // Who asked about a round in which nothing was new had a part in it as well.
        self.log.mark()?;
        self.rounds.add(&round)?;
        Ok(Some(round))
    }

    /// What both sides say at all these places; `None` where the time is up.
    fn ask(&mut self, from: u64, to: u64) -> Result<Option<Vec<Piece>>, String> {
        let mut starts: Vec<u64> = Vec::new();
        let mut at = from;
        // By the round as it is meant, so that a campaign of fewer places has the same pieces.
        let long = (end_of_round(from) - from).div_ceil(PIECES).min(PIECE);
        while at < to {
            starts.push(at);
            at = at.saturating_add(long);
        }
        starts.reverse();
        let (seed, shard) = (self.hunt.args.seed, self.hunt.args.shard);
        let left = Mutex::new(starts);
        let pieces = Mutex::new(BTreeMap::new());
        let mut benches = std::mem::take(&mut self.benches);
        let this = &*self;
        let asked: Result<(), String> = std::thread::scope(|scope| {
            let running: Vec<_> = benches
                .iter_mut()
                .map(|bench| {
                    let (left, pieces) = (&left, &pieces);
                    scope.spawn(move || {
                        while !this.is_over() {
                            let start = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
                            let Some(start) = start else { break };
                            let places = start..to.min(start.saturating_add(long));
                            let mut last = Err("nobody was asked".to_owned());
                            for _ in 0..TRIES {
                                let guard = &mut bench.guard;
                                let is_awaited = |commands| {
                                    this.so_far.asked(commands);
                                    !this.is_over()
                                };
                                last =
                                    screen_while(seed, places.clone(), shard, guard, &is_awaited)
                                        .map_err(|error| error.to_string());
                                if last.is_ok() || this.is_over() {
                                    break;
                                }
                            }
                            match last {
                                Ok(None) => break,
                                Ok(Some(piece)) => {
                                    let mut all =
                                        pieces.lock().unwrap_or_else(PoisonError::into_inner);
                                    all.insert(start, piece);
                                }
                                Err(_) if this.is_over() => break,
                                Err(error) => return Err(error),
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            joined(running)
        });
        self.benches = benches;
        asked?;
        let pieces = pieces.into_inner().unwrap_or_else(PoisonError::into_inner);
        let wanted = to.saturating_sub(from).div_ceil(long);
        Ok((pieces.len() as u64 == wanted).then(|| pieces.into_values().collect()))
    }

    /// Has worlds show what was chosen, but for what they showed before; whether all
    /// was shown before the time was up.
    fn examine(&mut self, chosen: &[Chosen]) -> Result<bool, String> {
        let seed = self.hunt.args.seed;
        let left: Vec<u64> = chosen
            .iter()
            .rev()
            .map(|one| one.index)
            .filter(|index| !self.examined.contains_key(index))
            .collect();
        let wanted = left.len();
        let left = Mutex::new(left);
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut benches = std::mem::take(&mut self.benches);
        let (hunt, until) = (self.hunt, self.until);
        let is_over =
            || hunt.interrupt.is_set() || until.is_some_and(|until| Instant::now() >= until);
        let (mut failed, mut shown) = (None, 0);
        let ended = std::thread::scope(|scope| {
            let running: Vec<_> = benches
                .iter_mut()
                .map(|bench| {
                    let (left, sender, is_over) = (&left, sender.clone(), &is_over);
                    scope.spawn(move || {
                        while !is_over() {
                            let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
                            let Some(index) = next else { break };
                            let variant = plan::variant(seed, index)
                                .ok_or_else(|| format!("place {index} has no variant"))?;
                            let specimen = Specimen::Command(variant);
                            let seen = bench.trio.examine(index, &specimen, hunt.judge);
                            if hunt.interrupt.is_set() || sender.send(seen).is_err() {
                                break;
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            drop(sender);
            for seen in receiver {
                shown += 1;
                self.tally.add(&seen);
                let things = self.known.shown().count();
                self.so_far
                    .shows(things, wanted.saturating_sub(shown), &self.tally);
                if let Err(message) = self.log.add(&seen) {
                    failed = Some(message);
                    hunt.interrupt.set();
                }
                self.examined.insert(seen.index, seen);
            }
            joined(running)
        });
        self.benches = benches;
        ended?;
        match failed {
            Some(message) => Err(message),
            None => Ok(shown == wanted),
        }
    }

    fn learn(&mut self, chosen: &[Chosen]) -> Result<(), String> {
        for one in chosen {
            let Some(seen) = self.examined.get(&one.index) else {
                return Err(format!(
                    "place {} went on into worlds, and the campaign's log has nothing of it",
                    one.index
                ));
            };
            self.known.learn(one, seen);
        }
        Ok(())
    }
}

fn joined(
    running: Vec<std::thread::ScopedJoinHandle<'_, Result<(), String>>>,
) -> Result<(), String> {
    let mut all = Ok(());
    for one in running {
        let ended = one
            .join()
            .unwrap_or_else(|_| Err("a thread died".to_owned()));
        all = all.and(ended);
    }
    all
}

/// Which part of the places is screened.
fn shard(hunt: &Hunt<'_>) -> Option<String> {
    let shard = hunt.args.shard;
    shard.map(|shard| format!("{}/{}", shard.part, shard.parts))
}

/// Whether this screening has this round at this place.
fn is_of(round: &Round, hunt: &Hunt<'_>, from: u64) -> bool {
    round.from == from && round.to > from && round.shard == shard(hunt)
}

fn of_another(round: &Round, from: u64) -> String {
    format!(
        "the rounds in this directory go on from place {} where this screening goes on \
         from {from}; give the --shard of the first run, or name another --report",
        round.from
    )
}

/// What a screening is called on the disk.
pub(super) fn directory(seed: u64) -> String {
    format!("fuzz-screen-{seed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_begin_short_double_and_never_split_one_of_full_length() {
        let ends: Vec<u64> = std::iter::successors(Some(0), |from| Some(end_of_round(*from)))
            .take(8)
            .collect();
        let expected = [0, 1024, 2048, 4096, 8192, 16_384, 32_768, 49_152];
        assert_eq!(ends, expected);
        assert_eq!(end_of_round(u64::MAX), u64::MAX);
    }
}
