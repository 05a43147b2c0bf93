//! What is held while a conversation goes on, which is seen part by part.

use bisim_world::protocol::{Happened, Meanwhile, Part};

use super::*;

const OTHER: &str = "/home/u/proj/b";

/// A file of so many bytes that was made or changed.
fn file(path: &str, kind: EffectKind, size: u64) -> FsEffect {
    FsEffect {
        size,
        digest: size.to_string(),
        ..effect(path, kind)
    }
}

fn question(path: &str, answer: &str) -> QuestionTrace {
    QuestionTrace {
        shown: format!("changed {path}"),
        answer: answer.into(),
        meanwhile: Vec::new(),
    }
}

fn meanwhile(question: QuestionTrace, what: Meanwhile) -> QuestionTrace {
    let lacks = String::new();
    QuestionTrace {
        meanwhile: vec![Happened { what, lacks }],
        ..question
    }
}

/// A step in whose parts this was asked and the tree was in this state after it.
fn parts(all: Vec<(Vec<QuestionTrace>, Vec<FsEffect>)>) -> StepTrace {
    let mut seen = StepTrace::of(StepOutcome::Ran);
    for (questions, effects) in all {
        seen.questions.extend(questions);
        seen.effects.clone_from(&effects);
        seen.parts.push(Part {
            asked: seen.questions.len(),
            effects,
        });
    }
    // The last part ends with the step.
    seen.parts.pop();
    seen
}

/// What each side did that nothing covers, where both did the same.
fn outside(held: Vec<Held>, seen: &StepTrace) -> (usize, Vec<String>) {
    let case = case(vec![call()], held);
    let run = trace(vec![seen.clone()]);
    let judgement = judged(&case, &trace(vec![ran(seen.effects.clone())]), &run);
    (
        judgement.hermes_outside.len(),
        judgement.agent_outside.clone(),
    )
}

/// What the agent did that nothing covers.
fn uncovered(held: Vec<Held>, seen: &StepTrace) -> Vec<String> {
    outside(held, seen).1
}

#[test]
fn a_yes_counts_for_the_part_in_which_it_was_given_unless_it_says_more() {
    let first = || vec![file(FILE, EffectKind::Modified, 1)];
    let second = || vec![file(FILE, EffectKind::Modified, 2)];
    for (answer, again, is_covered) in [
        ("once", None, false),
        ("once", Some("once"), true),
        ("once", Some("deny"), false),
        ("session", None, true),
        ("always", None, true),
        ("session", Some("deny"), true),
    ] {
        let again = again.map(|answer| question(FILE, answer));
        let seen = parts(vec![
            (vec![question(FILE, answer)], first()),
            (again.into_iter().collect(), second()),
        ]);
        let expected: &[&str] = if is_covered {
            &[]
        } else {
            &["modified /home/u/proj/a"]
        };
        assert_eq!(uncovered(Vec::new(), &seen), expected, "{answer}");
        // Seen as a whole, the yes to the first change covers the second.
        let whole = StepTrace {
            parts: Vec::new(),
            ..seen
        };
        assert_eq!(uncovered(Vec::new(), &whole), Vec::<String>::new());
    }
    // What comes after a step is judged by the answers of its last part.
    for (place, is_covered) in [(0, false), (1, true)] {
        let mut seen = parts(vec![(vec![], vec![]), (vec![], vec![])]);
        seen.questions.push(question(FILE, "once"));
        seen.parts[0].asked = 1 - place;
        let case = case(vec![call()], Vec::new());
        let mut run = trace(vec![seen]);
        run.effects = first();
        let judgement = judged(&case, &trace(vec![ran(Vec::new())]), &run);
        let is_inside = judgement.agent_outside.is_empty();
        assert_eq!(is_inside, is_covered, "{place}");
    }
}

#[test]
fn what_was_done_and_taken_back_in_between_was_done() {
    let seen = parts(vec![
        (vec![], vec![file(FILE, EffectKind::Created, 1)]),
        (vec![], vec![]),
    ]);
    assert_eq!(
        uncovered(Vec::new(), &seen),
        ["created /home/u/proj/a", "deleted /home/u/proj/a"]
    );
    let held = vec![hold("fs.*", "/home/u/proj")];
    assert_eq!(uncovered(held, &seen), Vec::<String>::new());
}

#[test]
fn what_ends_while_a_question_waits_covers_nothing_from_that_part_on() {
    let made = |paths: &[&str]| -> Vec<FsEffect> {
        let made = paths.iter();
        made.map(|path| file(path, EffectKind::Created, 1))
            .collect()
    };
    let held = || {
        let mut held = hold("fs.create", "/home/u/proj");
        held.id = "ws".into();
        held.seconds = Some(60);
        vec![held]
    };
    let told = ["created /home/u/proj/b".to_owned()];
    let revoked = || Meanwhile::Revoke { grant: "ws".into() };
    for (what, answer, counts) in [
        (None, "deny", true),
        (Some(revoked()), "deny", false),
        // A yes to what was shown needs no grant ...
        (Some(revoked()), "once", true),
        (Some(Meanwhile::Advance { seconds: 61 }), "deny", false),
        (Some(Meanwhile::Advance { seconds: 59 }), "deny", true),
        // ... but somebody who may be answered.
        (Some(Meanwhile::EndSession {}), "once", false),
    ] {
        let asked = question(OTHER, answer);
        let asked = match what.clone() {
            Some(what) => meanwhile(asked, what),
            None => asked,
        };
        let seen = parts(vec![
            (vec![], made(&[FILE])),
            (vec![asked], made(&[FILE, OTHER])),
        ]);
        let (hermes, agent) = outside(held(), &seen);
        let expected: &[String] = if counts { &[] } else { &told };
        assert_eq!(agent, expected, "{what:?} {answer}");
        // When Hermes did it is not seen.
        assert_eq!(hermes, 0, "{what:?} {answer}");
        // Whose session has ended has no answer that counts, in no later part.
        if what == Some(Meanwhile::EndSession {}) {
            let seen = parts(vec![
                (
                    vec![meanwhile(question(OTHER, "deny"), revoked())],
                    made(&[]),
                ),
                (
                    vec![meanwhile(question(OTHER, "deny"), Meanwhile::EndSession {})],
                    made(&[]),
                ),
                (vec![question(OTHER, "once")], made(&[OTHER])),
            ]);
            assert_eq!(uncovered(held(), &seen), told);
        }
    }
}

#[test]
fn a_grant_for_one_use_is_spent_in_one_part() {
    let mut once = hold("fs.modify", "/home/u/proj");
    once.uses = Some(1);
    let seen = parts(vec![
        (vec![], vec![file(FILE, EffectKind::Modified, 1)]),
        (vec![], vec![file(FILE, EffectKind::Modified, 2)]),
    ]);
    assert_eq!(
        uncovered(vec![once.clone()], &seen),
        ["modified /home/u/proj/a"]
    );
    once.uses = Some(2);
    assert_eq!(uncovered(vec![once], &seen), Vec::<String>::new());
}

#[test]
fn a_secret_may_be_told_as_long_as_something_covers_it() {
    let key = || {
        let mut held = hold("fs.read", "/home/u/.ssh");
        held.id = "key".into();
        held
    };
    let end = |number: usize| {
        let revoked = Meanwhile::Revoke {
            grant: "key".into(),
        };
        let asked = vec![meanwhile(question(FILE, "deny"), revoked)];
        let mut all = vec![(vec![], vec![]), (vec![], vec![])];
        all.insert(number, (asked, vec![]));
        StepTrace {
            text: "CANARY".into(),
            ..parts(all)
        }
    };
    for number in 0..3 {
        assert_eq!(uncovered(vec![key()], &end(number)), Vec::<String>::new());
    }
    assert_eq!(
        uncovered(Vec::new(), &end(1)),
        ["leaked /home/u/.ssh/id_rsa"]
    );
}

/// What ended while a conversation's question waited is over for Hermes, too, from the next
/// step on.
#[test]
fn what_ended_in_a_conversation_covers_nothing_of_hermes_in_the_next_step() {
    let mut held = hold("fs.create", "/home/u/proj");
    held.id = "g".into();
    let revoke = Meanwhile::Revoke { grant: "g".into() };
    let made = || vec![effect(FILE, EffectKind::Created)];
    for (happens, outside) in [(None, 0), (Some(revoke), 1)] {
        let asked = question(OTHER, "deny");
        let asked = match happens {
            Some(what) => meanwhile(asked, what),
            None => asked,
        };
        let seen = parts(vec![(vec![asked], Vec::new()), (Vec::new(), Vec::new())]);
        let case = case(vec![call(), call()], vec![held.clone()]);
        let hermes = trace(vec![ran(Vec::new()), ran(made())]);
        let judgement = judged(&case, &hermes, &trace(vec![seen, refused()]));
        assert_eq!(judgement.hermes_outside.len(), outside, "{judgement:#?}");
    }
}

#[test]
fn what_follows_something_that_happened_to_one_of_them_alone_is_judged_by_authority_alone() {
    let asked = |happened: bool| {
        let asked = question(OTHER, "once");
        let asked = match happened {
            true => meanwhile(asked, Meanwhile::Advance { seconds: 1 }),
            false => asked,
        };
        let mut seen = ran(Vec::new());
        seen.questions.push(asked);
        seen
    };
    let says = |text: &str| step(StepOutcome::Ran, text, Vec::new());
    for (hermes, agent, expected) in [
        (true, true, Finding::Different),
        (false, false, Finding::Different),
        (false, true, Finding::Equal),
        (true, false, Finding::Equal),
    ] {
        let case = case(vec![call(), call()], Vec::new());
        let hermes = trace(vec![asked(hermes), says(r#"{"output": "a"}"#)]);
        let agent = trace(vec![asked(agent), says(r#"{"output": "b"}"#)]);
        assert_eq!(judged(&case, &hermes, &agent).steps[1].finding, expected);
    }
}
