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
use bisim_world::protocol::{Context, UserModel};

pub use call::CALLS;
pub use moves::{ADVANCES, DAMAGES, HOLDS, Move};
pub use reply::{Doing, Reply};

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
        let words = self.answers.iter().filter_map(|reply| reply.word(&script));
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

    fn has_call(&self) -> bool {
        self.moves.iter().any(|m| matches!(m, Move::Call { .. }))
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
        Ok(Self {
            answers,
            context,
            moves,
        })
    }
}
