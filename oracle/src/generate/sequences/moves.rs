//! The moves, and how they become the steps of a case.

use std::fmt;

use arbitrary::Unstructured;
use bisim_world::protocol::{Damage, Harm, Held, Kept, Restart, Step};

use super::super::surroundings::{JOBS, MEMORIES, SKILLS};
use super::call::{self, Begun};
use crate::generate::crashes::{self, CHANGES_MAX};

/// A grant: its name, verb, place, uses and seconds.
pub type Hold = (
    &'static str,
    &'static str,
    &'static str,
    Option<u64>,
    Option<u64>,
);

/// All grants, in a fixed order.
pub const HOLDS: &[Hold] = &[
    ("all", "fs.*", "/home/u/proj", None, None),
    ("all-a-minute", "fs.*", "/home/u/proj", None, Some(60)),
    ("all-once", "fs.*", "/home/u/proj", Some(1), None),
    ("reading", "fs.read", "/home/u/proj", None, None),
    ("reading-twice", "fs.read", "/home/u/proj", Some(2), None),
    ("creating-once", "fs.create", "/home/u/proj", Some(1), None),
    ("creating-below", "fs.create", "/home/u/proj/sq", None, None),
    (
        "changing-one",
        "fs.modify",
        "/home/u/proj/sq/a.txt",
        None,
        None,
    ),
    (
        "changing-a-minute",
        "fs.modify",
        "/home/u/proj/sq",
        None,
        Some(60),
    ),
    (
        "deleting",
        "fs.delete",
        "/home/u/proj/sq/victim",
        None,
        None,
    ),
    ("the-data", "fs.read", "/srv/data", None, None),
    ("the-notes", "fs.*", MEMORIES, None, None),
    ("the-notes-a-minute", "fs.*", MEMORIES, None, Some(60)),
    ("the-skills", "fs.*", SKILLS, None, None),
    ("the-jobs", "fs.*", JOBS, None, None),
];

/// How far the clock is moved, in seconds.
pub const ADVANCES: [u64; 5] = [1, 59, 61, 3_600, 90_000];

/// What befalls what is kept, at a restart.
///
/// Only what may befall a program that has kept nothing yet.
pub const DAMAGES: [Option<Damage>; 3] = [
    None,
    Some(Damage {
        of: Kept::Machine,
        how: Harm::Rebooted,
    }),
    Some(Damage {
        of: Kept::Machine,
        how: Harm::MonthLater,
    }),
];

/// One move; the numbers are places in the tables, or count what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A grant is added.
    Hold(usize),
    /// The grant with this number, from 0 and modulo those there are, is revoked.
    Revoke(usize),
    /// A child is started with the grants in this set of bits.
    Spawn(u8),
    /// A call, by the child with this number or, with 0, by the first agent.
    Call {
        /// Which.
        call: usize,
        /// By whom.
        by: usize,
    },
    /// The clock moves on.
    Advance(usize),
    /// The session ends.
    End,
    /// The program ends without a word.
    Restart(usize),
    /// The program is killed in the middle of a call, right before this change to files.
    Crash {
        /// Which call, by the first agent.
        call: usize,
        /// Which change.
        before: u32,
    },
}

impl Move {
    /// One of any kind.
    pub(super) fn arbitrary(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        Ok(match bytes.int_in_range(0..=17_u8)? {
            0..=3 => Self::Hold(bytes.choose_index(HOLDS.len())?),
            4..=5 => Self::Revoke(bytes.choose_index(4)?),
            6..=7 => Self::Spawn(bytes.int_in_range(0..=15)?),
            8..=11 => return Self::call(bytes),
            12 => Self::Advance(bytes.choose_index(ADVANCES.len())?),
            13 => Self::End,
            14 => Self::Restart(bytes.choose_index(DAMAGES.len())?),
            15..=16 => Self::Crash {
                call: bytes.choose_index(call::CALLS.len())?,
                before: bytes.int_in_range(1..=CHANGES_MAX)?,
            },
            _ => Self::Hold(0),
        })
    }

    /// A call.
    pub(super) fn call(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        Ok(Self::Call {
            call: bytes.choose_index(call::CALLS.len())?,
            by: bytes.choose_index(3)?,
        })
    }

    /// Its kind.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Hold(_) => "grant",
            Self::Revoke(_) => "revocation",
            Self::Spawn(_) => "delegation",
            Self::Call { call, .. } => call::CALLS.get(*call).map_or("call", |(name, ..)| name),
            Self::Advance(_) => "clock",
            Self::End => "session-end",
            Self::Restart(_) => "restart",
            Self::Crash { .. } => "crash",
        }
    }

    /// The move with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub(super) fn named(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_at_checked(1)?;
        let number = || rest.parse::<usize>().ok();
        Some(match kind {
            "h" => Self::Hold(number().filter(|n| *n < HOLDS.len())?),
            "r" => Self::Revoke(number()?),
            "s" => Self::Spawn(rest.parse().ok()?),
            "c" => {
                let (call, by) = rest.split_once('.')?;
                let call = call.parse().ok().filter(|n| *n < call::CALLS.len())?;
                Self::Call {
                    call,
                    by: by.parse().ok()?,
                }
            }
            "a" => Self::Advance(number().filter(|n| *n < ADVANCES.len())?),
            "e" if rest.is_empty() => Self::End,
            "k" => {
                let (call, before) = rest.split_once('.')?;
                let call = call.parse().ok().filter(|n| *n < call::CALLS.len())?;
                let before = crashes::change(before)?;
                Self::Crash { call, before }
            }
            "x" => Self::Restart(number().filter(|n| *n < DAMAGES.len())?),
            _ => return None,
        })
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold(number) => write!(f, "h{number}"),
            Self::Revoke(number) => write!(f, "r{number}"),
            Self::Spawn(bits) => write!(f, "s{bits}"),
            Self::Call { call, by } => write!(f, "c{call}.{by}"),
            Self::Advance(number) => write!(f, "a{number}"),
            Self::End => f.write_str("e"),
            Self::Restart(number) => write!(f, "x{number}"),
            Self::Crash { call, before } => write!(f, "k{call}.{before}"),
        }
    }
}

/// The steps; a move that refers to nothing is left out.
pub(super) fn script(moves: &[Move]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut known = Known::default();
    for (place, step) in moves.iter().enumerate() {
        steps.extend(known.steps(place, *step, steps.len()));
    }
    steps
}

/// What a move can name. What a session's end or a restart takes away can be named no more.
#[derive(Default)]
struct Known {
    grants: Vec<String>,
    children: Vec<String>,
    /// The command that was last left running.
    begun: Option<Begun>,
}

impl Known {
    /// The steps of the move at this place, behind so many others.
    fn steps(&mut self, place: usize, step: Move, before: usize) -> Vec<Step> {
        match step {
            Move::Call { call, by } => return self.call(call, by, before),
            Move::Crash { call, before } => {
                let cut = call::steps(call, None, self.begun);
                let cut = cut.into_iter().next();
                return cut
                    .map(|step| {
                        *self = Self::default();
                        crashes::cut_off(step, before)
                    })
                    .into_iter()
                    .collect();
            }
            Move::Hold(number) => HOLDS.get(number).map(|hold| {
                let id = format!("g{place}");
                self.grants.push(id.clone());
                Step::Grant(held(id, hold))
            }),
            Move::Revoke(number) => number
                .checked_rem(self.grants.len())
                .and_then(|place| self.grants.get(place))
                .map(|grant| Step::Revoke {
                    grant: grant.clone(),
                }),
            Move::Spawn(bits) => {
                let forward = (0_u32..)
                    .zip(&self.grants)
                    .filter(|(bit, _)| bits.checked_shr(*bit).is_some_and(|bits| bits & 1 == 1))
                    .map(|(_, grant)| grant.clone())
                    .collect();
                let child = format!("k{place}");
                self.children.push(child.clone());
                Some(Step::Spawn { child, forward })
            }
            Move::Advance(number) => ADVANCES
                .get(number)
                .map(|seconds| Step::Advance { seconds: *seconds }),
            Move::End => {
                *self = Self::default();
                Some(Step::EndSession {})
            }
            Move::Restart(number) => DAMAGES.get(number).map(|damage| {
                *self = Self::default();
                Step::Restart(Restart {
                    damage: *damage,
                    repair: false,
                    during: None,
                })
            }),
        }
        .into_iter()
        .collect()
    }

    fn call(&mut self, call: usize, by: usize, before: usize) -> Vec<Step> {
        let by = by.checked_sub(1).and_then(|place| self.children.get(place));
        let steps = call::steps(call, by, self.begun);
        // No child may leave a command running, so what it would be called is not known.
        if by.is_none() {
            let begun = call::begun(call, before.saturating_add(1));
            self.begun = begun.or(self.begun);
        }
        steps
    }
}

fn held(id: String, (_, verb, on, uses, seconds): &Hold) -> Held {
    Held {
        id,
        verb: (*verb).to_owned(),
        on: (*on).to_owned(),
        uses: *uses,
        seconds: *seconds,
        holder: None,
        hermes: None,
    }
}
