//! Scripts in which authority changes between calls.
//!
//! What for: most ways to hold too much show only in an order: a use after the
//! end, a child after its parent's grant, an answer after a restart. A sequence
//! is a list of moves over grants, revocations, children, the clock, ends and
//! restarts, with calls in between and a user who answers by a list of words; before an
//! answer, while the question waits, something of this may happen as well.
//! A move that refers to nothing (a revocation before any grant) is left out,
//! so every part of a sequence is a sequence, and it shrinks to the shortest
//! script with the same verdict.

mod call;
mod moves;
mod reply;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, Step, UserModel};

pub use call::{Args, CALLS, files};
pub use moves::{ADVANCES, DAMAGES, HOLDS, Move};
pub use reply::{Around, Doing, Reply};

use super::surroundings::{self, CONTEXTS, USUAL};
use crate::case::CaseFile;

/// The most moves of one sequence.
pub const MOVES_MAX: usize = 12;
/// The most answers before the last goes on.
pub const ANSWERS_MAX: usize = 4;
/// What the user may say; the last ones are nothing anybody offered.
pub const ANSWERS: [&str; 7] = ["deny", "once", "session", "always", "view", "YES", ""];

/// Moves in order, and a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// What is answered in turn; the last one goes on.
    pub answers: Vec<Reply>,
    /// Where it happens, and so whether there is somebody to ask.
    pub context: Context,
    /// What happens.
    pub moves: Vec<Move>,
}

impl Sequence {
    /// The script as a case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let script = moves::script(&self.moves);
        let around = Around::script(&script);
        let words = self.answers.iter().filter_map(|reply| reply.word(&around));
        let user = Some(UserModel::Words(words.collect()));
        CaseFile {
            world: surroundings::world(call::files(), None),
            user,
            ..surroundings::case_file(format!("sequence:{self}"), self.context, script)
        }
    }

    /// The kinds of its moves, and of what happens before an answer.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        let moves = self.moves.iter().map(Move::class);
        let doings = self.answers.iter().filter_map(|reply| reply.first);
        moves.chain(doings.map(Doing::class)).collect()
    }

    /// Sequences with one move or one answer less or nothing before it, and the same at a
    /// terminal; the answers never run out.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let moves = (0..self.moves.len()).map(|without| {
            let mut smaller = self.clone();
            smaller.moves.remove(without);
            smaller
        });
        let answers = (0..self.answers.len()).map(|without| {
            let mut smaller = self.clone();
            smaller.answers.remove(without);
            smaller
        });
        let at_once = (0..self.answers.len()).filter_map(|place| {
            let mut smaller = self.clone();
            smaller.answers.get_mut(place)?.first.take()?;
            Some(smaller)
        });
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        moves
            .chain(answers)
            .chain(at_once)
            .chain(usual)
            .filter(|smaller| !smaller.answers.is_empty() && smaller.has_call())
    }

    /// Whether a call is made: one that refers to nothing is left out.
    fn has_call(&self) -> bool {
        let script = moves::script(&self.moves);
        script.iter().any(|step| matches!(step, Step::Call { .. }))
    }

    /// The sequence with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('+');
        let answers: Option<Vec<Reply>> = parts.next()?.split('.').map(Reply::named).collect();
        let moves: Option<Vec<Move>> = parts.map(Move::named).collect();
        let sequence = Self {
            answers: answers.filter(|answers| answers.len() <= ANSWERS_MAX)?,
            context,
            moves: moves.filter(|moves| moves.len() <= MOVES_MAX)?,
        };
        sequence.has_call().then_some(sequence)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers: Vec<String> = self.answers.iter().map(ToString::to_string).collect();
        f.write_str(&answers.join("."))?;
        for step in &self.moves {
            write!(f, "+{step}")?;
        }
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl<'a> Arbitrary<'a> for Sequence {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let context = *bytes.choose(&CONTEXTS)?;
        let mut answers: Vec<Reply> = (0..bytes.int_in_range(1..=ANSWERS_MAX)?)
            .map(|_| Reply::arbitrary(bytes))
            .collect::<arbitrary::Result<_>>()?;
        let count = bytes.int_in_range(1..=MOVES_MAX)?;
        let mut moves: Vec<Move> = (1..count)
            .map(|_| Move::arbitrary(bytes))
            .collect::<arbitrary::Result<_>>()?;
        // What comes after the last call changes nothing that could be seen.
        moves.push(Move::call(bytes)?);
        // Last, so that the bytes before mean what they meant without it.
        for reply in &mut answers {
            *reply = reply.after(bytes)?;
        }
        let mut made = Self {
            answers,
            context,
            moves,
        };
        if !made.has_call()
            && let Some(last) = made.moves.last_mut()
        {
            *last = Move::Call { call: 0, by: 0 };
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(name: &str) -> Option<Vec<String>> {
        let script = Sequence::named(name)?.case_file().script;
        let told = script.iter().map(|step| match step {
            Step::Call { tool, args, by } => {
                let word = |name: &str| Some(args.get(name)?.as_str()?.to_owned());
                let from = args
                    .pointer("/session_id/$from")
                    .map(|from| format!(" of {from}"));
                let by = by.as_deref().map(|by| format!(" by {by}"));
                let action = word("action").unwrap_or_default();
                format!(
                    "{tool} {action}{}{}",
                    from.unwrap_or_default(),
                    by.unwrap_or_default()
                )
            }
            Step::Restart(_) => "restart".to_owned(),
            Step::EndSession {} => "end".to_owned(),
            _ => "other".to_owned(),
        });
        Some(told.map(|told| told.trim().to_owned()).collect())
    }

    #[test]
    fn what_is_about_a_command_names_the_last_one_left_running_and_else_is_left_out() {
        for (name, expected) in [
            ("0+c27.0", None),
            ("0+k27.3+c29.0", None),
            (
                "0+c24.0+c27.0",
                Some(&["terminal", "process poll of 1"][..]),
            ),
            (
                "0+h0+c24.0+c24.0+c29.0",
                Some(&["other", "terminal", "terminal", "process kill of 3"]),
            ),
            // Only what asks is told something, and its end is waited for.
            ("0+c24.0+c28.0", Some(&["terminal"])),
            (
                "0+c25.0+c28.0+c27.0",
                Some(&[
                    "terminal",
                    "process submit of 1",
                    "process wait of 1",
                    "process poll of 1",
                ]),
            ),
            // A child looks after nothing of its own, and may name what is its parent's.
            (
                "0+s0+c24.1+c27.0+c0.0",
                Some(&["other", "terminal  by k0", "read_file"]),
            ),
            (
                "0+c24.0+s0+c29.1",
                Some(&["terminal", "other", "process kill of 1 by k1"]),
            ),
            // What was left running is gone with its session, and with its program.
            (
                "0+c24.0+e+c27.0+c0.0",
                Some(&["terminal", "end", "read_file"]),
            ),
            (
                "0+c24.0+x0+c27.0+c0.0",
                Some(&["terminal", "restart", "read_file"]),
            ),
            ("0+c24.0+k27.3+c27.0", Some(&["terminal", "restart"])),
        ] {
            let expected = expected.map(|all| {
                all.iter()
                    .map(|told| (*told).to_owned())
                    .collect::<Vec<_>>()
            });
            assert_eq!(tools(name), expected, "{name}");
        }
    }

    #[test]
    fn every_call_is_dealt_and_every_sequence_makes_one() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..4_000_u64 {
            let mut state = seed;
            let random = std::iter::repeat_with(|| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            });
            let random: Vec<u8> = random.take(200).collect();
            let made = Sequence::arbitrary(&mut Unstructured::new(&random)).unwrap();
            assert!(made.has_call(), "{made}");
            assert_eq!(Sequence::named(&made.to_string()), Some(made.clone()));
            for smaller in made.smaller() {
                assert!(smaller.has_call(), "{smaller}");
            }
            seen.extend(made.classes());
        }
        for (name, ..) in CALLS {
            assert!(seen.contains(name), "{name}");
        }
    }
}
