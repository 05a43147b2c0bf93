//! Commands: run first, decided by what they did.

use crate::support::{Bench, Came, SESSION, any_program, config};
use hermitcrab_core::{
    approval::{Answer, Reply, Scope},
    authority::Verb,
    grant::{AgentId, Uses},
    limits::ACTIONS_PER_TURN_MAX,
    outcome::{DenialCode, Outcome},
    rules::Isolation,
    session::{Asking, Event, SessionConfig},
    tool::Tool,
};

const WRITE: &[Verb] = &[Verb::FsCreate, Verb::FsModify, Verb::FsDelete];

#[test]
fn a_command_runs_in_the_view_and_covered_effects_are_permitted() {
    let mut bench = Bench::new(Asking::Prompt);
    let files = bench.on_files(WRITE, ".");
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench.grant(files, Uses::Uncounted, SESSION);
    assert_eq!(bench.run("make"), Came::Permitted(1));
    let actions = vec![
        bench.file(Verb::FsCreate, "out/a.o"),
        bench.file(Verb::FsDelete, "old"),
    ];
    assert_eq!(bench.effects(actions), Came::Permitted(2));
    bench.finish();
}

#[test]
fn a_command_without_changes_needs_no_file_cap() {
    let mut bench = Bench::new(Asking::Refuse);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    assert_eq!(bench.run("true"), Came::Permitted(1));
    assert_eq!(bench.effects(Vec::new()), Came::Nothing);
    bench.finish();
}

#[test]
fn one_question_covers_the_effects_that_are_not_held_and_shows_all() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let files = bench.on_files(WRITE, "src");
    bench.grant(files, Uses::Uncounted, SESSION);
    assert_eq!(bench.run("make"), Came::Permitted(1));
    let actions = vec![
        bench.file(Verb::FsModify, "src/a.c"),
        bench.file(Verb::FsDelete, "doc/b"),
        bench.file(Verb::FsCreate, "c"),
    ];
    assert_eq!(bench.effects(actions.clone()), Came::Asked);
    let question = bench.question.clone().unwrap();
    assert_eq!(question.actions(), actions);
    assert_eq!(
        question.uncovered().cloned().collect::<Vec<_>>(),
        actions[1..]
    );
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(3));
    bench.finish();
}

#[test]
fn a_change_set_as_large_as_allowed_takes_one_question_and_a_larger_one_is_refused() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench.run("unpack");
    let action =
        |number: usize| bench.file(Verb::FsCreate, &format!("d{}/f{number}", number % 100));
    let mut actions: Vec<_> = (0..ACTIONS_PER_TURN_MAX).map(action).collect();
    assert_eq!(bench.effects(actions.clone()), Came::Asked);
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Permitted(ACTIONS_PER_TURN_MAX)
    );
    assert!(
        bench.ledger.iter().all(|record| record.text.len() < 20_000),
        "records stay readable"
    );
    actions.push(bench.file(Verb::FsCreate, "one-more"));
    assert_eq!(
        bench.effects(actions),
        Came::Denied(DenialCode::LimitReached)
    );
}

#[test]
fn a_no_to_the_change_set_permits_none_of_it() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let files = bench.on_files(WRITE, "src");
    bench.grant(files, Uses::Uncounted, SESSION);
    bench.run("make");
    let actions = vec![
        bench.file(Verb::FsModify, "src/a.c"),
        bench.file(Verb::FsDelete, "doc/b"),
    ];
    assert_eq!(bench.effects(actions), Came::Asked);
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    let call = bench.call.unwrap();
    let outcome = Outcome::Discarded(DenialCode::RejectedByUser);
    assert_eq!(bench.step(Event::Finished { call, outcome }), Came::Nothing);
}

#[test]
fn effects_are_taken_only_from_a_running_call_and_only_of_its_kind() {
    let mut bench = Bench::new(Asking::Prompt);
    let files = bench.on_files(
        &[Verb::FsRead, Verb::FsCreate, Verb::FsModify, Verb::FsDelete],
        ".",
    );
    bench.grant(files, Uses::Uncounted, SESSION);
    assert_eq!(bench.read("a"), Came::Permitted(1));
    let change = bench.file(Verb::FsModify, "a");
    assert_eq!(
        bench.effects(vec![change.clone()]),
        Came::Denied(DenialCode::UnknownCall),
        "it is finished"
    );
    let reading = bench.file(Verb::FsRead, "a");
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![reading]),
        Came::Permitted(1)
    );
    assert_eq!(
        bench.effects(vec![change.clone()]),
        Came::Denied(DenialCode::EffectNotCovered)
    );
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![change]),
        Came::Denied(DenialCode::EffectNotCovered)
    );
}

#[test]
fn a_command_whose_grant_was_revoked_is_stopped_and_leaves_nothing() {
    let mut bench = Bench::new(Asking::Prompt);
    let running = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let files = bench.on_files(WRITE, ".");
    bench.grant(files, Uses::Uncounted, SESSION);
    bench.run("make");
    let call = bench.call.unwrap();
    bench.step(Event::Revoke(running));
    assert_eq!(bench.stopped, [call]);
    let change = bench.file(Verb::FsModify, "a");
    assert_eq!(
        bench.step(Event::Effects {
            call,
            actions: vec![change]
        }),
        Came::Denied(DenialCode::Revoked)
    );
}

#[test]
fn revoking_the_parents_grant_stops_what_the_child_runs_on_it() {
    let mut bench = Bench::new(Asking::Refuse);
    let running = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let other = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[running]).unwrap();
    assert_eq!(bench.run_as(child, "make"), Came::Permitted(1));
    let call = bench.call.unwrap();
    bench.step(Event::Revoke(other));
    assert_eq!(bench.stopped, []);
    bench.step(Event::Revoke(running));
    assert_eq!(bench.stopped, [call]);
    assert_eq!(bench.revoked, [running, held[0]]);
}

#[test]
fn a_yes_given_after_the_command_was_stopped_commits_nothing() {
    let mut bench = Bench::new(Asking::Prompt);
    let running = bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench.run("make");
    let change = bench.file(Verb::FsModify, "a");
    assert_eq!(bench.effects(vec![change]), Came::Asked);
    bench.step(Event::Revoke(running));
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::Revoked)
    );
}

#[test]
fn no_command_runs_where_isolation_was_not_proved() {
    for isolation in [Isolation::Unknown, Isolation::Unisolated] {
        let mut bench = Bench::with(SessionConfig {
            isolation,
            ..config(Asking::Prompt)
        });
        bench.grant(any_program(), Uses::Uncounted, SESSION);
        assert_eq!(
            bench.run("true"),
            Came::Denied(DenialCode::IsolationUnknown)
        );
    }
}

#[test]
fn what_a_command_did_so_far_stands_if_it_is_held_without_count_and_nobody_is_asked() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let held = bench.on_files(WRITE, "out");
    bench.grant(held, Uses::Uncounted, SESSION);
    let counted = bench.on_files(WRITE, "log");
    let counted = bench.grant(counted, Uses::AtMost(2), SESSION);
    bench.run("serve");
    let call = bench.call.unwrap();
    let so_far = |bench: &mut Bench, paths: &[&str]| {
        let actions = paths.iter().map(|path| bench.file(Verb::FsCreate, path));
        let actions = actions.collect();
        bench.step(Event::EffectsSoFar { call, actions })
    };
    assert_eq!(so_far(&mut bench, &["out/a", "out/b"]), Came::Permitted(2));
    assert_eq!(so_far(&mut bench, &["out/a"]), Came::Permitted(1), "again");
    let not_covered = Came::Denied(DenialCode::EffectNotCovered);
    // Nothing is used up that counts, nothing asked, nothing done by half.
    assert_eq!(so_far(&mut bench, &["log/a"]), not_covered);
    assert_eq!(so_far(&mut bench, &["out/a", "elsewhere"]), not_covered);
    // Names that are asked about each time are asked about in the end.
    assert_eq!(so_far(&mut bench, &["out/.env"]), not_covered);
    let used = bench.session.table().get(counted).map(|grant| grant.used());
    assert_eq!(used, Some(0));
    let at_the_end = vec![bench.file(Verb::FsCreate, "log/a")];
    assert_eq!(bench.effects(at_the_end), Came::Permitted(1));
    bench.finish();
    assert_eq!(
        so_far(&mut bench, &["out/a"]),
        Came::Denied(DenialCode::UnknownCall)
    );
}

#[test]
fn a_mode_that_allows_uses_up_nothing_that_counts_before_the_end() {
    let mut bench = Bench::new(Asking::ApproveAll);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let counted = bench.on_files(WRITE, "log");
    let counted = bench.grant(counted, Uses::AtMost(2), SESSION);
    bench.run("serve");
    let call = bench.call.unwrap();
    let so_far = |bench: &mut Bench, path: &str| {
        let actions = vec![bench.file(Verb::FsCreate, path)];
        bench.step(Event::EffectsSoFar { call, actions })
    };
    assert_eq!(so_far(&mut bench, "elsewhere"), Came::Permitted(1));
    let not_covered = Came::Denied(DenialCode::EffectNotCovered);
    assert_eq!(so_far(&mut bench, "log/a"), not_covered);
    let used = bench.session.table().get(counted).map(|grant| grant.used());
    assert_eq!(used, Some(0));
}

#[test]
fn a_mode_that_allows_speaks_early_where_it_speaks_at_the_end() {
    // Somebody said no to this very effect.
    let mut bench = Bench::new(Asking::Prompt);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench.run("make");
    let effects = vec![bench.file(Verb::FsCreate, "a")];
    assert_eq!(bench.effects(effects.clone()), Came::Asked);
    let question = bench.question.clone().unwrap();
    bench.step(Event::AnswerAndRemember(Answer {
        question: question.id(),
        digest: question.digest(),
        reply: Reply::No,
    }));
    bench.finish();
    bench.step(Event::SetAsking(Asking::ApproveAll));
    bench.run("make");
    let may = bench.session.may_stand_early(bench.call.unwrap(), &effects);
    assert_eq!(may, [false]);
    assert_eq!(
        bench.effects(effects.clone()),
        Came::Denied(DenialCode::RejectedByUser)
    );
    // A child that may not ask.
    let mut bench = Bench::new(Asking::ApproveAll);
    let program = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let (child, _) = bench.spawn(AgentId::FIRST, &[program]).unwrap();
    assert_eq!(bench.run_as(child, "make"), Came::Permitted(1));
    let may = bench.session.may_stand_early(bench.call.unwrap(), &effects);
    assert_eq!(may, [false]);
    assert_eq!(bench.effects(effects), Came::Denied(DenialCode::NoCap));
}

#[test]
fn what_a_stopped_command_did_so_far_does_not_stand() {
    let mut bench = Bench::new(Asking::Prompt);
    let running = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let files = bench.on_files(WRITE, ".");
    bench.grant(files, Uses::Uncounted, SESSION);
    bench.run("serve");
    let call = bench.call.unwrap();
    bench.step(Event::Revoke(running));
    let actions = vec![bench.file(Verb::FsCreate, "a")];
    assert_eq!(bench.session.may_stand_early(call, &actions), [false]);
    assert_eq!(
        bench.step(Event::EffectsSoFar { call, actions }),
        Came::Denied(DenialCode::Revoked)
    );
}
