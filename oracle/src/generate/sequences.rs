//! Scripts in which authority changes between calls.
//!
//! What for: most ways to hold too much show only in an order: a use after the
//! end, a child after its parent's grant, an answer after a restart. A sequence
//! is a list of moves over grants, revocations, children, the clock, ends and
//! restarts, with calls in between and a user who answers by a list of words.
//! A move that refers to nothing (a revocation before any grant) is left out,
//! so every part of a sequence is a sequence, and it shrinks to the shortest
//! script with the same verdict.

mod call;
mod moves;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, UserModel};

pub use call::CALLS;
pub use moves::{ADVANCES, DAMAGES, HOLDS, Move};

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
    /// Places in [`ANSWERS`]; the last one goes on.
    pub answers: Vec<usize>,
    /// Where it happens, and so whether there is somebody to ask.
    pub context: Context,
    /// What happens.
    pub moves: Vec<Move>,
}

impl Sequence {
    /// The script as a case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let words = self
            .answers
            .iter()
            .filter_map(|answer| ANSWERS.get(*answer))
            .map(|word| (*word).to_owned())
            .collect();
        let script = moves::script(&self.moves);
        CaseFile {
            world: surroundings::world(call::files(), None),
            user: Some(UserModel::Words(words)),
            ..surroundings::case_file(format!("sequence:{self}"), self.context, script)
        }
    }

    /// The kinds of its moves.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        self.moves.iter().map(Move::class).collect()
    }

    /// Sequences with one move or one answer less, and the same at a terminal; the
    /// answers never run out.
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
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        moves
            .chain(answers)
            .chain(usual)
            .filter(|smaller| !smaller.answers.is_empty() && smaller.has_call())
    }

    fn has_call(&self) -> bool {
        self.moves.iter().any(|m| matches!(m, Move::Call { .. }))
    }

    /// The sequence with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('+');
        let answers: Option<Vec<usize>> = parts
            .next()?
            .split('.')
            .map(|number| number.parse().ok().filter(|n| *n < ANSWERS.len()))
            .collect();
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
        let answers = (0..bytes.int_in_range(1..=ANSWERS_MAX)?)
            .map(|_| bytes.choose_index(ANSWERS.len()))
            .collect::<arbitrary::Result<_>>()?;
        let count = bytes.int_in_range(1..=MOVES_MAX)?;
        let mut moves: Vec<Move> = (1..count)
            .map(|_| Move::arbitrary(bytes))
            .collect::<arbitrary::Result<_>>()?;
        // What comes after the last call changes nothing that could be seen.
        moves.push(Move::call(bytes)?);
        Ok(Self {
            answers,
            context,
            moves,
        })
    }
}
