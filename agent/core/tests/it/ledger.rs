//! What the ledger holds, and that no change to it goes unnoticed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    approval::{Reply, Scope},
    audit::{ChainError, Record, Verifier},
    authority::{Authority, Cap, Object, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    limits::ITEMS_PER_RECORD_MAX,
    outcome::{DenialCode, Outcome},
    session::{Asking, Event, Session, SessionConfig},
    tool::Tool,
};
use support::{Bench, Came, SESSION, config, sha256};

fn a_busy_session() -> Bench {
    let mut bench = Bench::new(Asking::Prompt);
    let reading = bench.on_files(&[Verb::FsRead], "src");
    let grant = bench.grant(reading, Uses::Uncounted, SESSION);
    assert_eq!(bench.read("src/a"), Came::Permitted(1));
    assert_eq!(bench.write("b"), Came::Asked);
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(1));
    bench.finish();
    assert_eq!(bench.write("c"), Came::Asked);
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    bench.step(Event::Note("line\none\u{202e}".into()));
    bench.step(Event::Revoke(grant));
    bench.step(Event::End);
    bench
}

fn verify(records: &[Record]) -> Result<(), ChainError> {
    let mut verifier = Verifier::new(sha256);
    records.iter().try_for_each(|record| verifier.check(record))
}

#[test]
fn every_turn_is_recorded_in_one_chain() {
    let bench = a_busy_session();
    assert_eq!(verify(&bench.ledger), Ok(()));
    let kinds: Vec<&str> = bench
        .ledger
        .iter()
        .map(|record| record.kind.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "opened",
            "granted",
            "granted",
            "granted",
            "intent",
            "outcome",
            "asked",
            "answered",
            "granted",
            "intent",
            "outcome",
            "asked",
            "answered",
            "refused",
            "forwarded",
            "spawned",
            "note",
            "revoked",
            "revoked",
            "ended",
        ]
    );
    assert!(
        bench
            .ledger
            .iter()
            .all(|record| !record.text.contains(['\n', '\u{202e}'])),
        "one printable line each"
    );
}

#[test]
fn the_intent_is_recorded_before_the_permit_can_be_spent() {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    bench.grant(reading, Uses::Uncounted, SESSION);
    let action = bench.file(Verb::FsRead, "a");
    let now = bench.now();
    let call = hermitcrab_core::session::Call {
        by: AgentId::FIRST,
        tool: Tool::ReadFile,
        actions: vec![action],
    };
    let effects: Vec<String> = bench
        .session
        .step(now, Event::Call(call))
        .into_iter()
        .map(|effect| format!("{effect:?}"))
        .collect();
    assert_eq!(effects.len(), 2);
    assert!(
        effects[0].starts_with("Record") && effects[0].contains("intent"),
        "{}",
        effects[0]
    );
    assert!(effects[1].starts_with("Execute"), "{}", effects[1]);
}

#[test]
fn a_changed_missing_repeated_or_moved_record_is_noticed() {
    let ledger = a_busy_session().ledger;
    let last = ledger.len() - 1;
    for place in 0..ledger.len() {
        let changes: [fn(&mut Record); 6] = [
            |record| record.text.push('x'),
            |record| record.kind.push('x'),
            |record| {
                record.at = hermitcrab_core::time::Instant::from_millis(record.at.as_millis() + 1)
            },
            |record| record.prev = sha256(b"x"),
            |record| record.digest = sha256(b"x"),
            |record| record.seq += 1,
        ];
        for change in changes {
            let mut forged = ledger.clone();
            change(&mut forged[place]);
            assert!(verify(&forged).is_err(), "change at {place}");
        }
        let mut missing = ledger.clone();
        missing.remove(place);
        assert_eq!(
            verify(&missing).is_err(),
            place != last,
            "only a cut tail is invisible: {place}"
        );
        let mut repeated = ledger.clone();
        repeated.insert(place, ledger[place].clone());
        assert!(verify(&repeated).is_err(), "repeated {place}");
        if place < last {
            let mut moved = ledger.clone();
            moved.swap(place, place + 1);
            assert!(verify(&moved).is_err(), "moved {place}");
        }
    }
}

#[test]
fn a_record_forged_with_a_fresh_digest_breaks_the_next_one() {
    let mut ledger = a_busy_session().ledger;
    ledger[3].text.push('x');
    ledger[3].digest = ledger[3].expected_digest(sha256);
    assert_eq!(verify(&ledger), Err(ChainError::Broken(4)));
}

#[test]
fn text_cannot_move_between_the_fields_of_a_record() {
    let ledger = a_busy_session().ledger;
    let mut record = ledger[0].clone();
    record.kind.push_str("se");
    record.text = record.text.strip_prefix("se").unwrap().into();
    assert_ne!(record.expected_digest(sha256), ledger[0].digest);
}

#[test]
fn a_new_session_continues_the_ledger_of_the_one_before() {
    let bench = a_busy_session();
    let (session, records) = Session::open(SessionConfig {
        id: 8,
        ledger: bench.session.ledger(),
        ..config(Asking::Refuse)
    });
    let mut ledger = bench.ledger;
    ledger.extend(records);
    assert_eq!(verify(&ledger), Ok(()));
    assert_eq!(session.ledger().next, ledger.len() as u64);
}

#[test]
fn a_long_list_of_effects_is_named_by_a_digest_of_all_of_them() {
    let intent = |last: &str| {
        let mut bench = Bench::new(Asking::Refuse);
        let reading = bench.on_files(&[Verb::FsRead], ".");
        bench.grant(reading, Uses::Uncounted, SESSION);
        let mut actions: Vec<_> = (0..ITEMS_PER_RECORD_MAX)
            .map(|number| bench.file(Verb::FsRead, &format!("f{number}")))
            .collect();
        actions.push(bench.file(Verb::FsRead, last));
        bench.call_as(AgentId::FIRST, Tool::SearchFiles, actions);
        bench.ledger.pop().unwrap().text
    };
    assert!(intent("x").contains(" and 1 more, all "));
    assert!(!intent("x").contains(":x"));
    assert_ne!(intent("x"), intent("y"));
}

#[test]
fn a_list_as_long_as_a_record_may_be_is_spelled_out() {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    bench.grant(reading, Uses::Uncounted, SESSION);
    let mut intent = |count: usize| {
        let actions = (0..count).map(|number| bench.file(Verb::FsRead, &format!("f{number}")));
        let actions = actions.collect();
        bench.call_as(AgentId::FIRST, Tool::SearchFiles, actions);
        bench.ledger.last().unwrap().text.clone()
    };
    let full = intent(ITEMS_PER_RECORD_MAX);
    assert!(!full.contains(" more, all "), "{full}");
    let two = intent(2);
    assert_eq!(two.matches(", ").count(), 1, "{two}");
    let (first, second) = two.split_once(", ").unwrap();
    assert!(first.ends_with("fs.read dir0:f0"), "{two}");
    assert!(second.ends_with("fs.read dir0:f1"), "{two}");
}

#[test]
fn outcomes_name_their_kind_and_code() {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    bench.grant(reading, Uses::Uncounted, SESSION);
    let outcomes = [
        (
            Outcome::Done(Digest::NONE),
            format!("call0 done {}", "0".repeat(64)),
        ),
        (
            Outcome::Discarded(DenialCode::NoAnswer),
            "call1 discarded no-answer".to_owned(),
        ),
        (
            Outcome::Refused(DenialCode::OutsideRoot),
            "call2 refused outside-root".to_owned(),
        ),
        (Outcome::TimedOut, "call3 timed-out".to_owned()),
        (Outcome::Stopped, "call4 stopped".to_owned()),
        (Outcome::Failed, "call5 failed".to_owned()),
    ];
    for (outcome, text) in outcomes {
        let action = bench.file(Verb::FsRead, "a");
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![action]);
        let call = bench.call.unwrap();
        bench.step(Event::Finished { call, outcome });
        assert_eq!(bench.ledger.last().unwrap().text, text);
    }
}

#[test]
fn a_spawn_that_fails_half_way_keeps_the_chain_and_leaves_no_grant() {
    let mut bench = Bench::new(Asking::Refuse);
    let (first, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let reading = bench.on_files(&[Verb::FsRead], "src");
    let kept = bench
        .try_grant(first, reading, Uses::Uncounted, SESSION)
        .unwrap();
    let spawning = Authority::of(Cap::new(Verb::AgentSpawn, Object::Session).unwrap());
    let last = bench
        .try_grant(first, spawning, Uses::AtMost(1), SESSION)
        .unwrap();
    // Starting the child is the last use of what it was to be given.
    assert_eq!(
        bench.spawn(first, &[kept, last]),
        Err(DenialCode::Exhausted)
    );
    assert_eq!(verify(&bench.ledger), Ok(()));
    let kinds = bench.ledger.iter().rev().map(|record| record.kind.as_str());
    assert_eq!(
        kinds.take(3).collect::<Vec<_>>(),
        ["refused", "revoked", "forwarded"]
    );
    // Nor an agent, which would be one of those that can be started.
    assert_eq!(bench.session.children(first).count(), 0);
}
