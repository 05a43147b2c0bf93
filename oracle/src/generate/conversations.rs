//! Whole conversations, with models that say what a name says.
//!
//! What for: much of what can go wrong lies between calls: several of one answer that run
//! beside each other, a command that ends while its user speaks, work that is handed to a
//! child whose model was talked into something. Here a conversation is a list of moves, over
//! calls of ordinary work and calls beyond what it is about, and it shrinks call by call.
//!
//! An ordinary one holds its workspace and makes no call beyond it: both subjects must tell
//! the same. Any other is about authority alone: what is refused is refused in other words,
//! and everything after it may differ.

mod beyond;
mod moves;
pub mod ordinary;
pub mod speaker;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, Drive, Step, UserModel};
use serde_json::json;

pub use self::moves::{Ask, Move};
use super::paths::Holding;
use super::sequences::{self, Around, Doing, Reply};
use super::surroundings::{self, CONTEXTS, USUAL};
use crate::canon::CONVERSATION;
use crate::case::CaseFile;

/// The most moves.
const MOVES_MAX: usize = 8;
/// The most words a user has for what they are asked.
const WORDS_MAX: usize = 4;
/// What the user of an ordinary one says.
const ONCE: Reply = Reply {
    word: 1,
    first: None,
};
/// How long one may take.
const DEADLINE_MS: u64 = 180_000;

/// All families a conversation can be counted under.
pub fn families() -> impl Iterator<Item = &'static str> {
    let beyond = (0..beyond::count()).map(beyond::name);
    let doings = [
        Doing::Revoke(0),
        Doing::Advance(0),
        Doing::End,
        Doing::Refuse,
    ];
    let doings = doings.into_iter().map(Doing::class);
    moves::KINDS.into_iter().chain(beyond).chain(doings)
}

/// Whether it can happen while a question of a conversation waits: nothing outlives its
/// session, and a child that a model starts has no name in the case.
const fn happens(doing: Doing) -> bool {
    !matches!(doing, Doing::Withdraw | Doing::EndChild(_))
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talk {
    /// What is held of the workspace.
    pub holding: Holding,
    /// What the user answers in turn; the last one goes on.
    pub answers: Vec<Reply>,
    /// Where it is had.
    pub context: Context,
    /// What comes in it.
    pub moves: Vec<Move>,
}

impl Talk {
    /// Whether all of it is work that is held, so that both subjects must tell the same.
    /// Where nobody is, what was read forbids what nobody vouches for.
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        self.holding == Holding::All
            && self.context.has_user()
            && self.answers == [ONCE]
            && self.asks().all(|ask| matches!(ask, Ask::Work(_)))
    }

    /// All calls in it, but for those about commands left running.
    pub fn asks(&self) -> impl Iterator<Item = Ask> + '_ {
        self.moves.iter().flat_map(Move::asks)
    }

    /// The case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let probe = Step::Probe {
            name: CONVERSATION.to_owned(),
            input: moves::input(&self.moves, self.context),
        };
        let mut files = ordinary::files();
        let held = self.holding.held();
        let user = if self.is_ordinary() {
            UserModel::GrantOnce
        } else {
            files.extend(sequences::files());
            let around = Around {
                grants: held.iter().map(|held| held.id.as_str()).collect(),
                may_end: true,
                ..Around::default()
            };
            let words = self.answers.iter().filter_map(|reply| reply.word(&around));
            UserModel::Words(words.collect())
        };
        let mut file = surroundings::case_file(format!("talk:{self}"), self.context, vec![probe]);
        if self.moves.iter().any(|step| matches!(step, Move::Hand(_))) {
            // A model that is reminded of a check goes on with its next answer, beside its child.
            file.settings
                .insert("agent.verify_on_stop".to_owned(), json!(false));
        }
        CaseFile {
            world: surroundings::world(files, None),
            user: Some(user),
            drive: Some(Drive::Conversation),
            held: Some(held),
            deadline_ms: Some(DEADLINE_MS),
            ..file
        }
    }

    /// The families it is counted under.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        let doings = self.answers.iter().filter_map(|reply| reply.first);
        let doings = doings.filter(|doing| happens(*doing));
        let moves = self.moves.iter().flat_map(Move::classes);
        moves.chain(doings.map(Doing::class)).collect()
    }

    /// The same with one move, call, child or answer less, with nothing before an answer, and
    /// the same at a terminal.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let shorter = (0..self.moves.len()).map(|without| {
            let mut smaller = self.clone();
            smaller.moves.remove(without);
            smaller
        });
        let lesser = self
            .moves
            .iter()
            .enumerate()
            .flat_map(move |(place, step)| {
                step.smaller().into_iter().filter_map(move |step| {
                    let mut smaller = self.clone();
                    *smaller.moves.get_mut(place)? = step;
                    Some(smaller)
                })
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
        shorter
            .chain(lesser)
            .chain(answers)
            .chain(at_once)
            .chain(usual)
            .filter(|smaller| !smaller.answers.is_empty() && smaller.has_call())
            // What is judged by more than it was is another finding.
            .filter(|smaller| smaller.is_ordinary() == self.is_ordinary())
    }

    fn has_call(&self) -> bool {
        self.moves.iter().any(Move::calls)
    }

    /// The one with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('+');
        let (holding, answers) = parts.next()?.split_once('.')?;
        let answers: Option<Vec<Reply>> = answers.split('.').map(Reply::named).collect();
        let moves: Option<Vec<Move>> = parts.map(Move::named).collect();
        let talk = Self {
            holding: Holding::named(holding)?,
            answers: answers.filter(|answers| answers.len() <= WORDS_MAX)?,
            context,
            moves: moves.filter(|moves| moves.len() <= MOVES_MAX)?,
        };
        talk.has_call().then_some(talk)
    }
}

impl fmt::Display for Talk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.holding.word())?;
        for answer in &self.answers {
            write!(f, ".{answer}")?;
        }
        for step in &self.moves {
            write!(f, "+{step}")?;
        }
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl<'a> Arbitrary<'a> for Talk {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let is_ordinary = bytes.arbitrary()?;
        let context = match *bytes.choose(&CONTEXTS)? {
            nobody if is_ordinary && !nobody.has_user() => USUAL,
            any => any,
        };
        let (holding, mut answers) = if is_ordinary {
            (Holding::All, vec![ONCE])
        } else {
            let answers = (0..bytes.int_in_range(1..=WORDS_MAX)?)
                .map(|_| Reply::arbitrary(bytes))
                .collect::<arbitrary::Result<_>>()?;
            (*bytes.choose(&Holding::ALL)?, answers)
        };
        let mut moves = (0..bytes.int_in_range(1..=MOVES_MAX)?)
            .map(|_| Move::arbitrary(bytes, is_ordinary))
            .collect::<arbitrary::Result<Vec<Move>>>()?;
        if !moves.iter().any(Move::calls)
            && let Some(first) = moves.first_mut()
        {
            *first = Move::Answer(vec![Ask::Work(0)]);
        }
        // Last, so that the bytes before mean what they meant without it.
        if !is_ordinary {
            for reply in &mut answers {
                let after = reply.after(bytes)?;
                reply.first = after.first.filter(|doing| happens(*doing));
            }
            // A model that was refused, or let once, often does the same again.
            let again = bytes.choose_index(moves.len())?;
            if let Some(again) = moves
                .get(again)
                .filter(|_| moves.len() < MOVES_MAX)
                .cloned()
                && bytes.int_in_range(0..=2_u8)? == 2
            {
                moves.push(again);
            }
        }
        Ok(Self {
            holding,
            answers,
            context,
            moves,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generate::strategy;

    /// Of a case's only step, the calls of each agent.
    fn calls(talk: &Talk) -> Vec<(String, String)> {
        let script = talk.case_file().script;
        let [Step::Probe { input, .. }] = script.as_slice() else {
            panic!("{talk} is no conversation");
        };
        let agents = input["script"].as_object().unwrap();
        agents
            .iter()
            .flat_map(|(agent, answers)| {
                let calls = answers.as_array().unwrap().iter();
                calls
                    .filter_map(|answer| answer["calls"].as_array())
                    .flatten()
                    .map(|call| (agent.clone(), call["name"].as_str().unwrap().to_owned()))
            })
            .collect()
    }

    fn named(name: &str) -> Talk {
        Talk::named(name).unwrap_or_else(|| panic!("{name} is not read"))
    }

    #[test]
    fn what_is_held_and_said_and_called_decides_whether_all_is_compared() {
        for (name, is_ordinary) in [
            ("all.1+a7", true),
            ("all.1+a7.8+t2+h1-2+b3+l4@gateway", true),
            ("all.0+a7", false),
            ("all.1.1+a7", false),
            ("reading.1+a7", false),
            ("all.1!e+a7", false),
            ("all.1+a7.x3", false),
            ("all.1+a7+h1-x2", false),
        ] {
            assert_eq!(named(name).is_ordinary(), is_ordinary, "{name}");
        }
    }

    #[test]
    fn what_happens_before_an_answer_is_done_in_conversations_too() {
        for (name, first) in [
            ("reading.1!r2+ax3", r#"[{"revoke":{"grant":"ws"}}]"#),
            ("nothing.1!r2+ax3", "[]"),
            ("all.1!e.2+h1-x2", r#"[{"end_session":{}}]"#),
            ("all.2!a2+b3", r#"[{"advance":{"seconds":61}}]"#),
            ("all.0.1!m+a7", r#"[{"mode":{"to":"reject_all"}}]"#),
            ("all.1!k0+h1-x2", "[]"),
            ("all.1!w+a7", "[]"),
        ] {
            let talk = named(name);
            assert_eq!(talk.to_string(), name);
            let user = talk.case_file().user.unwrap();
            let doings: Vec<_> = user.doings().collect();
            assert_eq!(serde_json::to_string(&doings).unwrap(), first, "{name}");
        }
        let shorter = named("all.1!e+ax3");
        assert!(shorter.smaller().any(|less| less == named("all.1+ax3")));
    }

    #[test]
    fn names_of_nothing_are_refused() {
        for name in [
            "",
            "all",
            "all.1",
            "all.1+t0+l3",
            "all.9+a1",
            "all+a1",
            "some.1+a1",
            "all.1+a",
            "all.1+a1.2.3.4.5",
            "all.1+ax99",
            "all.1+h1-2-3",
            "all.1+b99",
            "all.1+z1",
            "all.1!z+a1",
            "all.9!e+a1",
        ] {
            assert_eq!(Talk::named(name), None, "{name}");
        }
    }

    #[test]
    fn children_have_names_of_their_own_and_their_parent_waits_for_them() {
        let of = |name: &str| calls(&named(name));
        let one = of("nothing.0+hx0.x1-x2");
        let expected = [
            ("kid0n0", "read_file"),
            ("kid0n0", "write_file"),
            ("kid0n1", "write_file"),
            ("parent", "delegate_task"),
        ];
        let expected = expected.map(|(agent, tool)| (agent.to_owned(), tool.to_owned()));
        assert_eq!(one, expected);
        // A command that ends is waited for in the same breath; what is looked after is one
        // that was left running, or their list.
        let tools: Vec<String> = of("all.1+b0+b9+l1")
            .into_iter()
            .map(|(_, tool)| tool)
            .collect();
        assert_eq!(tools[..3], ["terminal", "process", "terminal"]);
        assert!(tools[3..].iter().all(|tool| tool == "process") && tools.len() > 3);
    }

    proptest! {
        #[test]
        fn several_children_of_an_ordinary_one_change_nothing(talk in strategy::talks()) {
            let is_hard = talk.moves.iter().any(|step| {
                matches!(step, Move::Hand(children) if children.len() == 1)
            });
            prop_assume!(talk.is_ordinary() && !is_hard);
            for (agent, tool) in calls(&talk) {
                let looks = ["read_file", "search_files", "terminal"].contains(&tool.as_str());
                prop_assert!(agent == "parent" || looks, "{agent} {tool}");
            }
        }
    }
}
