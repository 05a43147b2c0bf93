//! What a grant is worth, and when it ends.

use crate::support::{Bench, Came, ONCE, SESSION, config, for_seconds, path};
use hermitcrab_core::{
    authority::{Authority, Cap, Object, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    outcome::{DenialCode, Outcome},
    path::RelPath,
    session::{Asking, Event, Session, SessionConfig},
    tool::Tool,
};

const READ: &[Verb] = &[Verb::FsRead];

#[test]
fn a_call_without_any_grant_is_refused() {
    let mut bench = Bench::new(Asking::Refuse);
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::NoCap));
}

#[test]
fn a_once_grant_works_once_and_is_then_exhausted() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, ONCE, SESSION);
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Exhausted));
}

#[test]
fn a_session_grant_works_until_it_is_revoked() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    bench.step(Event::Revoke(grant));
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Revoked));
}

#[test]
fn a_grant_for_60_seconds_works_at_60_and_is_expired_at_61() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, for_seconds(60));
    for seconds in [0, 59, 60] {
        bench.seconds = seconds;
        assert_eq!(bench.read("a.txt"), Came::Permitted(1), "after {seconds} s");
    }
    bench.seconds = 61;
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Expired));
}

#[test]
fn a_clock_that_runs_backwards_does_not_revive_a_grant() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, for_seconds(60));
    bench.seconds = 61;
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Expired));
    bench.seconds = 10;
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Expired));
}

#[test]
fn no_grant_outlives_thirty_days() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, for_seconds(u64::MAX));
    bench.seconds = 30 * 24 * 3600;
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    bench.seconds += 1;
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Expired));
}

#[test]
fn a_dead_grant_says_revoked_before_expired_before_exhausted() {
    let dead = |expire: bool, revoke: bool| {
        let mut bench = Bench::new(Asking::Refuse);
        let authority = bench.on_files(READ, ".");
        let grant = bench.grant(authority, ONCE, for_seconds(60));
        assert_eq!(bench.read("a.txt"), Came::Permitted(1));
        if expire {
            bench.seconds = 61;
        }
        if revoke {
            bench.step(Event::Revoke(grant));
        }
        bench.read("a.txt")
    };
    assert_eq!(dead(false, false), Came::Denied(DenialCode::Exhausted));
    assert_eq!(dead(true, false), Came::Denied(DenialCode::Expired));
    assert_eq!(dead(false, true), Came::Denied(DenialCode::Revoked));
    assert_eq!(dead(true, true), Came::Denied(DenialCode::Revoked));
}

#[test]
fn a_use_is_charged_before_the_effect_and_not_given_back_when_it_fails() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, ONCE, SESSION);
    let action = bench.file(Verb::FsRead, "a.txt");
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![action]),
        Came::Permitted(1)
    );
    assert_eq!(bench.session.table().get(grant).unwrap().used(), 1);
    let call = bench.call.unwrap();
    bench.step(Event::Finished {
        call,
        outcome: Outcome::Failed,
    });
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Exhausted));
}

#[test]
fn a_refused_call_is_not_charged() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(&[Verb::FsRead], ".");
    let grant = bench.grant(authority, ONCE, SESSION);
    let (read, modify) = (
        bench.file(Verb::FsRead, "a.txt"),
        bench.file(Verb::FsModify, "a.txt"),
    );
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::Patch, vec![read, modify]),
        Came::Denied(DenialCode::NoCap)
    );
    assert_eq!(bench.session.table().get(grant).unwrap().used(), 0);
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
}

#[test]
fn one_use_does_not_cover_two_effects_of_one_call() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, ONCE, SESSION);
    let actions = vec![
        bench.file(Verb::FsRead, "a.txt"),
        bench.file(Verb::FsRead, "b.txt"),
    ];
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::SearchFiles, actions),
        Came::Denied(DenialCode::Exhausted)
    );
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
}

#[test]
fn a_grant_on_one_place_or_verb_is_none_on_another() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, "src");
    bench.grant(authority, Uses::Uncounted, SESSION);
    assert_eq!(bench.read("src/main.rs"), Came::Permitted(1));
    assert_eq!(bench.read("src"), Came::Permitted(1));
    assert_eq!(bench.read("src2/main.rs"), Came::Denied(DenialCode::NoCap));
    assert_eq!(bench.read("README.md"), Came::Denied(DenialCode::NoCap));
    assert_eq!(bench.write("src/main.rs"), Came::Denied(DenialCode::NoCap));
}

#[test]
fn a_handle_of_another_session_names_nothing() {
    let (mut other, _) = Session::open(SessionConfig {
        id: 8,
        ..config(Asking::Refuse)
    });
    let foreign = other.add_dir(path("home/u/proj")).unwrap();
    let mut bench = Bench::new(Asking::Refuse);
    let cap = Cap::new(Verb::FsRead, Object::tree(foreign, RelPath::root())).unwrap();
    bench.grant(Authority::of(cap.clone()), Uses::Uncounted, SESSION);
    let action =
        hermitcrab_core::action::Action::new(cap.verb(), cap.object().clone(), Digest::NONE)
            .unwrap();
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![action]),
        Came::Denied(DenialCode::NoCap)
    );
}
