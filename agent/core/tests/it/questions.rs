//! Questions and answers in any order, beside a model of what each is worth.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::collections::BTreeMap;

use hermitcrab_core::{
    approval::{Answer, Question, Reply, Scope},
    authority::Verb,
    grant::AgentId,
    limits::{QUESTION_LIFETIME, SESSION_GRANT_LIFETIME},
    outcome::{Denial, DenialCode},
    session::{Asking, Event},
    tool::Tool,
};
use proptest::prelude::*;
use support::{Bench, Came, sha256};

#[derive(Clone, Debug)]
enum Op {
    Read(usize),
    Answer {
        which: usize,
        reply: Reply,
        shown: Shown,
    },
    Wait(u64),
    Tick,
}

/// What the answer was given to.
#[derive(Clone, Copy, Debug)]
enum Shown {
    This,
    AnotherQuestion(usize),
    SomethingElse,
}

fn replies() -> impl Strategy<Value = Reply> {
    prop_oneof![
        4 => Just(Reply::Yes(Scope::Once)),
        3 => Just(Reply::Yes(Scope::Session)),
        1 => Just(Reply::No),
        1 => "\\PC{0,8}".prop_map(Reply::Unknown),
        1 => Just(Reply::Silence),
        1 => Just(Reply::Cancelled),
        1 => Just(Reply::Failed),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let shown = prop_oneof![
        4 => Just(Shown::This),
        1 => (0..12_usize).prop_map(Shown::AnotherQuestion),
        1 => Just(Shown::SomethingElse),
    ];
    let op = prop_oneof![
        4 => (0..4_usize).prop_map(Op::Read),
        4 => (0..12_usize, replies(), shown).prop_map(|(which, reply, shown)| Op::Answer { which, reply, shown }),
        1 => prop::sample::select(vec![1, 300, 600, 601, 12 * 3600]).prop_map(Op::Wait),
        1 => Just(Op::Tick),
    ];
    prop::collection::vec(op, 0..60)
}

/// The worth of an answer, by the book.
fn worth(reply: &Reply) -> Result<Scope, DenialCode> {
    match reply {
        Reply::Yes(scope) => Ok(*scope),
        Reply::No => Err(DenialCode::RejectedByUser),
        Reply::Unknown(_) => Err(DenialCode::UnknownAnswer),
        Reply::Silence | Reply::Cancelled | Reply::Failed => Err(DenialCode::NoAnswer),
    }
}

fn check(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(Asking::Prompt);
    let places = ["a", "b", "src/c", ".env"];
    let mut asked: Vec<(usize, u64, Question)> = Vec::new();
    let mut open: BTreeMap<usize, ()> = BTreeMap::new();
    let mut standing: BTreeMap<usize, u64> = BTreeMap::new();
    let question_seconds = QUESTION_LIFETIME.get() / 1000;
    for op in ops {
        match op {
            Op::Read(place) => {
                let stands = standing
                    .get(&place)
                    .is_some_and(|until| bench.seconds <= *until);
                let expected = if stands {
                    Came::Permitted(1)
                } else {
                    Came::Asked
                };
                prop_assert_eq!(bench.read(places[place]), expected.clone());
                if expected == Came::Asked {
                    open.insert(asked.len(), ());
                    asked.push((place, bench.seconds, bench.question.clone().unwrap()));
                }
            }
            Op::Answer {
                which,
                reply,
                shown,
            } => {
                let Some((place, at, question)) = asked.get(which).cloned() else {
                    continue;
                };
                let digest = match shown {
                    Shown::This => question.digest(),
                    Shown::AnotherQuestion(other) => match asked.get(other) {
                        Some((_, _, other)) => other.digest(),
                        None => continue,
                    },
                    Shown::SomethingElse => sha256(b"something else"),
                };
                let expected = if open.remove(&which).is_none() {
                    Err(DenialCode::UnknownAnswer)
                } else if bench.seconds > at + question_seconds {
                    Err(DenialCode::NoAnswer)
                } else if digest != question.digest() {
                    Err(DenialCode::ChangedSinceShown)
                } else {
                    worth(&reply)
                };
                let came = bench.step(Event::Answer(Answer {
                    question: question.id(),
                    digest,
                    reply,
                }));
                match expected {
                    Err(code) => prop_assert_eq!(came, Came::Denied(code)),
                    Ok(scope) => {
                        prop_assert_eq!(
                            came,
                            Came::Permitted(1),
                            "a yes to what was shown permits it"
                        );
                        bench.finish();
                        // A sensitive name is never remembered.
                        if scope == Scope::Session && places[place] != ".env" {
                            let until = bench.seconds + SESSION_GRANT_LIFETIME.get() / 1000;
                            standing.insert(place, until);
                        }
                    }
                }
            }
            Op::Wait(seconds) => bench.seconds += seconds,
            Op::Tick => {
                let before = open.len();
                open.retain(|which, ()| bench.seconds <= asked[*which].1 + question_seconds);
                let expected = if open.len() < before {
                    Came::Denied(DenialCode::NoAnswer)
                } else {
                    Came::Nothing
                };
                prop_assert_eq!(bench.step(Event::Tick), expected);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_worth_what_was_shown_and_only_once(ops in ops()) {
        check(ops)?;
    }
}

#[test]
fn every_reply_has_a_word_of_its_own_in_the_ledger() {
    use hermitcrab_core::approval::{Reply, Scope};
    let words = [
        Reply::Yes(Scope::Once),
        Reply::Yes(Scope::Session),
        Reply::Yes(Scope::Always),
        Reply::No,
        Reply::Unknown("perhaps".to_owned()),
        Reply::Silence,
        Reply::Cancelled,
        Reply::Failed,
    ]
    .map(|reply| reply.as_str());
    let expected = [
        "once",
        "session",
        "always",
        "deny",
        "unknown",
        "silence",
        "cancelled",
        "failed",
    ];
    assert_eq!(words, expected);
}

#[test]
fn a_refusal_for_want_of_a_capability_carries_it_and_one_about_the_call_does_not() {
    let mut bench = Bench::new(Asking::Refuse);
    let write = bench.file(Verb::FsModify, "a");
    let came = bench.call_as(AgentId::FIRST, Tool::WriteFile, vec![write.clone()]);
    assert!(matches!(came, Came::Denied(_)), "{came:?}");
    let denial = bench.denial.clone().unwrap();
    assert_eq!(denial.cap(), Some(write.cap()));
    assert_eq!(denial.about(), write.cap().asked().to_string());
    let said = denial.said_as("/w/a\u{1b}");
    assert_eq!(
        (said.code(), said.cap()),
        (bench.denial.unwrap().code(), Some(write.cap()))
    );
    assert_eq!(said.about(), "/w/a\\u{1b}");
    assert_eq!(Denial::new(DenialCode::NoCap, "it").cap(), None);
}
