//! Whether the grants that are named really let the calls through that were asked
//! about: these are replayed once more, under the grants.
//!
//! One call of each reason is replayed under the grants of that reason alone. From
//! the reasons that hold come the fewest grants that cover 95 % of the calls, and
//! under these every such call is replayed (what is alike, once). Nothing is called
//! proven that was not seen.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::work::Work;
use super::{Over, Remembering, under};
use crate::migrate::redact::MARK;
use crate::migrate::replay::{Asked, Class, Need, Outcome, Proof, Terms, Unit, reason};
use crate::migrate::suggest::covers;
use crate::subject::Subjects;

/// Reasons that are tried; those with fewer calls come last.
const REASONS_MAX: usize = 100;
/// The share of the calls that the grants are to cover, in percent.
pub const ENOUGH: u64 = 95;

/// The grants that cover most of what was asked about, and what a replay under
/// them came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Measured {
    /// The grants.
    pub grants: Vec<Need>,
    /// Calls that were asked about.
    pub asked: u64,
    /// Those whose reasons the grants cover.
    pub covered: u64,
    /// Those of them that do under the grants what they do in Hermes.
    pub ran: u64,
    /// That are asked about or refused all the same, or do something else.
    pub still: u64,
    /// That were not replayed again.
    pub not_tried: u64,
    /// That did under the grants what these do not cover. This must not happen.
    pub unsafe_calls: u64,
}

/// What became of the calls of a unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// All of it, for the progress.
    pub(super) calls: u64,
    ran: u64,
    still: u64,
    not_tried: u64,
    unsafe_calls: u64,
}

impl Measured {
    pub(super) fn add(&mut self, counts: &Counts) {
        self.ran += counts.ran;
        self.still += counts.still;
        self.not_tried += counts.not_tried;
        self.unsafe_calls += counts.unsafe_calls;
    }
}

/// What was seen of one reason.
pub(super) struct Seen {
    place: usize,
    proof: Proof,
    why: String,
}

/// Notes what was seen.
pub(super) fn note(asked: &mut [Asked], seen: Vec<Seen>) {
    for one in seen {
        if let Some(asked) = asked.get_mut(one.place) {
            asked.proof = one.proof;
            asked.why = one.why;
        }
    }
}

/// The grants of the reasons with the most calls, of those that were seen to hold.
pub(super) fn choose(asked: &[Asked]) -> Measured {
    let total: u64 = asked.iter().map(|one| one.calls).sum();
    let mut measured = Measured {
        asked: total,
        ..Measured::default()
    };
    let covered = |grants: &[Need]| -> u64 {
        let held = asked.iter().filter(|one| are_covered(one, grants));
        held.map(|one| one.calls).sum()
    };
    for one in asked.iter().filter(|one| holds(one)) {
        if measured.covered * 100 >= total * ENOUGH {
            break;
        }
        if !are_covered(one, &measured.grants) {
            measured.grants.extend(one.grants.iter().cloned());
            // A wider one that came later makes a narrower one superfluous.
            let all = std::mem::take(&mut measured.grants);
            for (place, grant) in all.iter().enumerate() {
                let superfluous = all.iter().enumerate().any(|(other, wider)| {
                    covers(wider, grant) && (wider != grant || other < place)
                });
                if !superfluous {
                    measured.grants.push(grant.clone());
                }
            }
            measured.covered = covered(&measured.grants);
        }
    }
    measured
}

const fn holds(asked: &Asked) -> bool {
    matches!(asked.proof, Proof::Proven)
}

fn are_covered(asked: &Asked, grants: &[Need]) -> bool {
    holds(asked)
        && asked
            .grants
            .iter()
            .all(|need| grants.iter().any(|grant| covers(grant, need)))
}

/// Tries one call of each reason.
pub(super) struct Witness<'a> {
    remembering: Remembering<'a>,
    base: [u8; 32],
    terms: &'a Terms,
    over: Over,
    reasons: HashMap<String, (usize, Vec<Need>)>,
    claimed: Vec<AtomicBool>,
    open: AtomicUsize,
}

impl<'a> Witness<'a> {
    pub(super) fn new(
        asked: &[Asked],
        remembering: Remembering<'a>,
        (terms, over): (&'a Terms, Over),
    ) -> Self {
        let reasons: HashMap<String, (usize, Vec<Need>)> = asked
            .iter()
            .enumerate()
            // A place that is not known whole cannot be granted.
            .filter(|(_, one)| {
                !one.grants.is_empty() && one.grants.iter().all(|need| !need.on.contains(MARK))
            })
            .take(REASONS_MAX)
            .map(|(place, one)| (one.reason.clone(), (place, one.grants.clone())))
            .collect();
        Self {
            base: under(&remembering.stamp, terms),
            remembering,
            terms,
            over,
            claimed: asked.iter().map(|_| AtomicBool::new(false)).collect(),
            open: AtomicUsize::new(reasons.len()),
            reasons,
        }
    }

    fn claim(&self, place: usize) -> bool {
        let mine = self
            .claimed
            .get(place)
            .is_some_and(|claimed| !claimed.swap(true, Ordering::Relaxed));
        if mine {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        mine
    }
}

impl Work for Witness<'_> {
    type Made = Vec<Seen>;

    fn unit(&self, subjects: &mut Subjects, unit: &Unit) -> Vec<Seen> {
        let Some((outcomes, _)) = self.remembering.known(&unit.key(&self.base)) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for (at, outcome) in outcomes.iter().enumerate() {
            if outcome.class != Class::Stricter || self.over.is() {
                continue;
            }
            let Some((place, grants)) = self.reasons.get(&reason(outcome)) else {
                continue;
            };
            if !self.claim(*place) {
                continue;
            }
            let terms = self.terms.with(grants);
            let ran = self
                .remembering
                .run(subjects, &unit.up_to(at + 1), &terms, &self.over);
            let last = ran.and_then(|(outcomes, _)| outcomes.into_iter().nth(at));
            all.push(seen(*place, last));
        }
        all
    }

    fn is_enough(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }
}

fn seen(place: usize, last: Option<Outcome>) -> Seen {
    let Some(last) = last else {
        return Seen {
            place,
            proof: Proof::NotTried,
            why: "the time was spent".to_owned(),
        };
    };
    let proof = match last.class {
        Class::Same | Class::Attenuated => Proof::Proven,
        Class::Changed => Proof::OtherResult,
        Class::Stricter => Proof::StillAsks,
        Class::Unsafe => Proof::Unsafe,
        Class::NotReplayed => Proof::NotTried,
    };
    let why = match proof {
        Proof::Proven => String::new(),
        Proof::StillAsks if !last.code.is_empty() => {
            let said = match last.code.as_str() {
                // The user of a replay says no to every question.
                "rejected-by-user" => "it is asked about all the same",
                "no-cap" => "it is refused all the same, since it needs more than that",
                _ => "it is refused all the same",
            };
            format!("{said} (`{}`)", last.code)
        }
        Proof::OtherResult
        | Proof::StillAsks
        | Proof::NoGrant
        | Proof::NotTried
        | Proof::Unsafe => last.why,
    };
    Seen { place, proof, why }
}

/// Runs every call that the chosen grants cover under these.
pub(super) struct Measure<'a> {
    remembering: Remembering<'a>,
    base: [u8; 32],
    terms: Terms,
    over: Over,
    covered: HashMap<String, ()>,
}

impl<'a> Measure<'a> {
    pub(super) fn new(
        asked: &[Asked],
        grants: &[Need],
        remembering: Remembering<'a>,
        (terms, over): (&Terms, Over),
    ) -> Self {
        Self {
            base: under(&remembering.stamp, terms),
            remembering,
            terms: terms.with(grants),
            over,
            covered: asked
                .iter()
                .filter(|one| are_covered(one, grants))
                .map(|one| (one.reason.clone(), ()))
                .collect(),
        }
    }
}

impl Work for Measure<'_> {
    type Made = Counts;

    fn unit(&self, subjects: &mut Subjects, unit: &Unit) -> Counts {
        let mut counts = Counts {
            calls: unit.calls.len() as u64,
            ..Counts::default()
        };
        let Some((outcomes, _)) = self.remembering.known(&unit.key(&self.base)) else {
            return counts;
        };
        let wanted: Vec<usize> = outcomes
            .iter()
            .enumerate()
            .filter(|(_, outcome)| {
                outcome.class == Class::Stricter && self.covered.contains_key(&reason(outcome))
            })
            .map(|(at, _)| at)
            .collect();
        let Some(last) = wanted.last() else {
            return counts;
        };
        let ran = self
            .remembering
            .run(subjects, &unit.up_to(last + 1), &self.terms, &self.over);
        let Some((again, _)) = ran else {
            counts.not_tried = wanted.len() as u64;
            return counts;
        };
        for at in wanted {
            match again.get(at).map(|outcome| outcome.class) {
                Some(Class::Same | Class::Attenuated) => counts.ran += 1,
                Some(Class::Stricter | Class::Changed) => counts.still += 1,
                Some(Class::Unsafe) => counts.unsafe_calls += 1,
                Some(Class::NotReplayed) | None => counts.not_tried += 1,
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::migrate::replay::{Asked, Need, Proof};

    fn asked(calls: u64, on: &str, proof: Proof) -> Asked {
        Asked {
            reason: on.to_owned(),
            calls,
            grants: vec![Need {
                verb: "fs.delete".to_owned(),
                on: on.to_owned(),
            }],
            proof,
            why: String::new(),
        }
    }

    #[test]
    fn the_grants_that_cover_most_are_those_that_were_seen_to_hold() {
        let all = [
            asked(500, "./build/out", Proof::Proven),
            asked(300, "./secret", Proof::StillAsks),
            asked(150, "./build", Proof::Proven),
            asked(40, "./rest", Proof::NotTried),
            asked(10, "./rare", Proof::Proven),
            asked(5, "./other", Proof::OtherResult),
        ];
        let measured = choose(&all);
        let grants: Vec<&str> = measured
            .grants
            .iter()
            .map(|grant| grant.on.as_str())
            .collect();
        assert_eq!(grants, ["./build", "./rare"]);
        assert_eq!((measured.asked, measured.covered), (1_005, 660));
        let few = choose(&all[..1]);
        assert_eq!((few.grants.len(), few.covered), (1, 500));
    }
}
