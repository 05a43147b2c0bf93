//! The end of a session.

use crate::support::{Bench, Came, SESSION, any_program};
use hermitcrab_core::{
    approval::{Reply, Scope},
    authority::Verb,
    grant::{AgentId, Uses},
    outcome::{DenialCode, Outcome},
    session::{Asking, Event},
};

#[test]
fn the_end_of_the_session_ends_every_grant_and_stops_every_call() {
    let mut bench = Bench::new(Asking::Prompt);
    let all = bench.on_files(&Verb::FILES, ".");
    let grant = bench.grant(all.clone(), Uses::Uncounted, SESSION);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench.run("sleep");
    let call = bench.call.unwrap();
    bench.step(Event::End);
    assert_eq!(bench.stopped, [call]);
    assert!(bench.session.has_ended());
    let now = bench.now();
    assert_eq!(
        bench.session.table().usable(grant, now),
        Err(DenialCode::Revoked)
    );
    assert_eq!(bench.read("a"), Came::Denied(DenialCode::SessionEnded));
    let denial = bench
        .try_grant(AgentId::FIRST, all, Uses::Uncounted, SESSION)
        .unwrap_err();
    assert_eq!(denial.code(), DenialCode::SessionEnded);
    assert_eq!(
        bench.spawn(AgentId::FIRST, &[]),
        Err(DenialCode::SessionEnded)
    );
    assert_eq!(
        bench.step(Event::Finished {
            call,
            outcome: Outcome::Stopped
        }),
        Came::Nothing,
        "the past is still recorded"
    );
}

#[test]
fn an_open_question_cannot_be_answered_after_the_end() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.read("a");
    bench.step(Event::End);
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::SessionEnded)
    );
}
