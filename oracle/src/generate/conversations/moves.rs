//! What comes in a conversation, and how it becomes the answers of models.

use std::fmt;

use arbitrary::{Arbitrary as _, Unstructured};
use bisim_world::protocol::Context;
use serde_json::{Map, Value, json};

use super::beyond;
use super::ordinary::{self, Call};
use super::speaker::{ENDING, STAYING, Speaker, WORDS};
use crate::generate::work::Draw;

/// The most calls of one answer, and the most answers of one child.
pub const CALLS_MAX: usize = 4;
/// The most children at once.
pub const CHILDREN_MAX: usize = 2;
/// How many commands there are to be left running.
const COMMANDS: usize = ENDING.len() + STAYING.len();
/// What a model says last.
const LAST: &str = "that is all";

/// The kinds of moves.
pub const KINDS: [&str; 7] = [
    "one-call",
    "calls-at-once",
    "turn",
    "child",
    "children",
    "left-running",
    "looked-after",
];

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Ordinary work, drawn from this number.
    Work(u16),
    /// One of the calls beyond what a conversation is about.
    Beyond(usize),
}

/// One move of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// The model makes these calls in one answer.
    Answer(Vec<Ask>),
    /// It says something, and its user goes on with these words.
    Turn(usize),
    /// Each of so many children is given work, and makes one of its calls in each answer.
    Hand(Vec<Vec<Ask>>),
    /// A command is left running.
    Begin(usize),
    /// What was left running is looked after, as this number says.
    Look(u16),
}

impl Ask {
    fn arbitrary(bytes: &mut Unstructured<'_>, is_ordinary: bool) -> arbitrary::Result<Self> {
        if is_ordinary || bytes.ratio(1_u8, 3_u8)? {
            return Ok(Self::Work(u16::arbitrary(bytes)?));
        }
        Ok(Self::Beyond(bytes.choose_index(beyond::count())?))
    }

    fn call(self) -> Option<Call> {
        match self {
            Self::Work(salt) => {
                let Ok(call) = ordinary::call(&mut Draw::from(u32::from(salt)), "all");
                Some(call)
            }
            Self::Beyond(number) => beyond::call(number),
        }
    }

    fn named(name: &str) -> Option<Self> {
        match name.strip_prefix('x') {
            Some(number) => {
                let number = number.parse().ok()?;
                beyond::call(number).map(|_| Self::Beyond(number))
            }
            None => name.parse().ok().map(Self::Work),
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(salt) => write!(f, "{salt}"),
            Self::Beyond(number) => write!(f, "x{number}"),
        }
    }
}

impl Move {
    pub(super) fn arbitrary(
        bytes: &mut Unstructured<'_>,
        is_ordinary: bool,
    ) -> arbitrary::Result<Self> {
        Ok(match bytes.int_in_range(0..=9_u8)? {
            0..=4 => Self::Answer(asks(bytes, is_ordinary)?),
            5 => Self::Turn(bytes.choose_index(WORDS.len())?),
            6 => Self::Begin(bytes.choose_index(COMMANDS)?),
            7 => Self::Look(u16::arbitrary(bytes)?),
            _ => {
                let count = bytes.int_in_range(1..=CHILDREN_MAX)?;
                let children = (0..count).map(|_| asks(bytes, is_ordinary));
                Self::Hand(children.collect::<arbitrary::Result<_>>()?)
            }
        })
    }

    /// Its kinds.
    pub(super) fn classes(&self) -> Vec<&'static str> {
        let [
            one_call,
            calls_at_once,
            turn,
            child,
            children,
            left_running,
            looked_after,
        ] = KINDS;
        let own = match self {
            Self::Answer(asks) if asks.len() > 1 => calls_at_once,
            Self::Answer(_) => one_call,
            Self::Turn(_) => turn,
            Self::Hand(all) if all.len() > 1 => children,
            Self::Hand(_) => child,
            Self::Begin(_) => left_running,
            Self::Look(_) => looked_after,
        };
        let beyond = self.asks().filter_map(|ask| match ask {
            Ask::Work(_) => None,
            Ask::Beyond(number) => Some(beyond::name(number)),
        });
        std::iter::once(own).chain(beyond).collect()
    }

    /// All calls in it.
    pub(super) fn asks(&self) -> impl Iterator<Item = Ask> + '_ {
        let (own, children) = match self {
            Self::Answer(asks) => (asks.as_slice(), &[][..]),
            Self::Hand(children) => (&[][..], children.as_slice()),
            Self::Turn(_) | Self::Begin(_) | Self::Look(_) => (&[][..], &[][..]),
        };
        own.iter().chain(children.iter().flatten()).copied()
    }

    /// Whether anything is called by it.
    pub(super) const fn calls(&self) -> bool {
        match self {
            Self::Answer(_) | Self::Hand(_) | Self::Begin(_) => true,
            Self::Turn(_) | Self::Look(_) => false,
        }
    }

    /// Moves with one call or one child less.
    pub(super) fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Answer(asks) => fewer(asks).into_iter().map(Self::Answer).collect(),
            Self::Hand(children) => {
                let fewer_children = fewer(children);
                let shorter = children.iter().enumerate().flat_map(|(place, child)| {
                    fewer(child).into_iter().filter_map(move |child| {
                        let mut all = children.clone();
                        *all.get_mut(place)? = child;
                        Some(all)
                    })
                });
                fewer_children
                    .into_iter()
                    .chain(shorter)
                    .map(Self::Hand)
                    .collect()
            }
            Self::Turn(_) | Self::Begin(_) | Self::Look(_) => Vec::new(),
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_at_checked(1)?;
        Some(match kind {
            "a" => Self::Answer(asks_named(rest)?),
            "t" => Self::Turn(rest.parse().ok().filter(|n| *n < WORDS.len())?),
            "h" => {
                let children: Option<Vec<_>> = rest.split('-').map(asks_named).collect();
                Self::Hand(children.filter(|all| all.len() <= CHILDREN_MAX)?)
            }
            "b" => Self::Begin(rest.parse().ok().filter(|n| *n < COMMANDS)?),
            "l" => Self::Look(rest.parse().ok()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(asks) => write!(f, "a{}", joined(asks)),
            Self::Turn(number) => write!(f, "t{number}"),
            Self::Hand(children) => {
                let children: Vec<String> = children.iter().map(|asks| joined(asks)).collect();
                write!(f, "h{}", children.join("-"))
            }
            Self::Begin(number) => write!(f, "b{number}"),
            Self::Look(salt) => write!(f, "l{salt}"),
        }
    }
}

fn asks(bytes: &mut Unstructured<'_>, is_ordinary: bool) -> arbitrary::Result<Vec<Ask>> {
    (0..bytes.int_in_range(1..=CALLS_MAX)?)
        .map(|_| Ask::arbitrary(bytes, is_ordinary))
        .collect()
}

fn asks_named(names: &str) -> Option<Vec<Ask>> {
    let asks: Option<Vec<Ask>> = names.split('.').map(Ask::named).collect();
    asks.filter(|asks| asks.len() <= CALLS_MAX)
}

fn joined(asks: &[Ask]) -> String {
    let asks: Vec<String> = asks.iter().map(ToString::to_string).collect();
    asks.join(".")
}

/// The same without one of them, as long as one is left.
fn fewer<T: Clone>(all: &[T]) -> Vec<Vec<T>> {
    let without = |place| {
        let mut fewer = all.to_vec();
        fewer.remove(place);
        fewer
    };
    match all {
        [] | [_] => Vec::new(),
        _ => (0..all.len()).map(without).collect(),
    }
}

/// What the probe `scripted_conversation` is given. In a chat and behind an editor Hermes does
/// not know everywhere where a shell went, so that none goes anywhere.
pub(super) fn input(moves: &[Move], context: Context) -> Value {
    let stays = matches!(context, Context::Gateway | Context::Acp);
    let mut script = Map::new();
    let mut parent = Speaker::default();
    let mut user = Vec::new();
    for (place, step) in moves.iter().enumerate() {
        match step {
            Move::Answer(asks) => {
                let calls = asks.iter().filter_map(|ask| ask.call());
                let calls = calls.filter(|call| !(stays && goes_elsewhere(call)));
                parent.answer(&ordinary::steady(calls.collect()));
            }
            Move::Turn(number) => {
                parent.says(LAST);
                user.push(WORDS.get(*number).copied().unwrap_or_default());
            }
            Move::Hand(children) => {
                let names: Vec<String> = (0..children.len())
                    .map(|number| format!("kid{place}n{number}"))
                    .collect();
                for (name, asks) in names.iter().zip(children) {
                    script.insert(name.clone(), child(asks, children.len() > 1));
                }
                parent.hands_out(&names);
            }
            Move::Begin(number) => match ENDING.get(*number) {
                Some(command) => parent.leaves_running(command, true, false),
                None => {
                    let staying = number.checked_sub(ENDING.len());
                    let command = staying.and_then(|number| STAYING.get(number));
                    parent.leaves_running(command.copied().unwrap_or_default(), false, false);
                }
            },
            Move::Look(salt) => {
                let Ok(()) = parent.looks_after(&mut Draw::from(u32::from(*salt)));
            }
        }
    }
    parent.says(LAST);
    script.insert("parent".to_owned(), parent.answers());
    json!({ "script": script, "user": user })
}

/// What a child does before it says what it came to. Of several at once none changes what
/// another may look at.
fn child(asks: &[Ask], is_beside_another: bool) -> Value {
    let mut speaker = Speaker::default();
    for ask in asks {
        let Some(call) = ask.call() else { continue };
        let is_fit = match ask {
            // Under Hermes a child's command may move its parent and set its variables.
            Ask::Work(_) if goes_elsewhere(&call) => false,
            Ask::Work(_) => !is_beside_another || ordinary::only_looks(&call),
            Ask::Beyond(_) => true,
        };
        if is_fit {
            speaker.answer(&[call]);
        }
    }
    speaker.says("looked after");
    speaker.answers()
}

fn goes_elsewhere(call: &Call) -> bool {
    ordinary::moves_its_shell(call) || call.1.get("workdir").is_some()
}
