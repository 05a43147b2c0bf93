//! The contract of grants, calls, questions and delegation, case by case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use hermitcrab_core::{
    approval::{Answer, Reply, Scope},
    authority::{Authority, Cap, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    limits::ACTIONS_PER_TURN_MAX,
    outcome::{DenialCode, Outcome},
    path::RelPath,
    rules::Isolation,
    session::{Asking, Attenuation, Event, Session, SessionConfig},
    tool::Tool,
};
use support::{Bench, Came, ONCE, SESSION, any_program, config, for_seconds, path, sha256};

const READ: &[Verb] = &[Verb::FsRead];
const WRITE: &[Verb] = &[Verb::FsCreate, Verb::FsModify, Verb::FsDelete];

// Grants

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
    let cap = Cap::new(
        Verb::FsRead,
        Object::Dir {
            dir: foreign,
            below: RelPath::root(),
        },
    )
    .unwrap();
    bench.grant(Authority::of(cap.clone()), Uses::Uncounted, SESSION);
    let action =
        hermitcrab_core::action::Action::new(cap.verb(), cap.object().clone(), Digest::NONE)
            .unwrap();
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![action]),
        Came::Denied(DenialCode::NoCap)
    );
}

// Delegation

#[test]
fn a_child_spawned_with_no_caps_is_denied_whatever_its_parent_holds() {
    let mut bench = Bench::new(Asking::Prompt);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    assert_eq!(held, []);
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::NoCap)
    );
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
}

#[test]
fn a_child_with_its_parents_cap_forwarded_is_allowed() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(bench.read_as(child, "a.txt"), Came::Permitted(1));
}

#[test]
fn a_grant_made_after_the_spawn_does_not_reach_the_child() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, SESSION);
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::NoCap)
    );
}

#[test]
fn revoking_the_parents_grant_kills_the_childs_and_the_grandchilds() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let spawning = bench.session.held_by(AgentId::FIRST).next().unwrap().id();
    let (child, held) = bench.spawn(AgentId::FIRST, &[grant, spawning]).unwrap();
    let reading = *held
        .iter()
        .find(|id| bench.session.table().descends(**id, grant))
        .unwrap();
    let (grandchild, _) = bench.spawn(child, &[reading]).unwrap();
    assert_eq!(bench.read_as(grandchild, "a.txt"), Came::Permitted(1));
    bench.step(Event::Revoke(grant));
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::Revoked)
    );
    assert_eq!(
        bench.read_as(grandchild, "a.txt"),
        Came::Denied(DenialCode::Revoked)
    );
}

#[test]
fn revoking_the_childs_grant_leaves_the_parents() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    bench.step(Event::Revoke(*held.first().unwrap()));
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::Revoked)
    );
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
}

#[test]
fn parent_and_child_share_the_uses_of_a_forwarded_grant() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::AtMost(2), SESSION);
    let (child, _) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    assert_eq!(bench.read_as(child, "a.txt"), Came::Permitted(1));
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::Exhausted)
    );
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Exhausted));
}

#[test]
fn only_a_living_grant_of_ones_own_can_be_passed_on() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let spawning = bench.session.held_by(AgentId::FIRST).next().unwrap().id();
    let (child, _) = bench.spawn(AgentId::FIRST, &[spawning]).unwrap();
    assert_eq!(bench.spawn(child, &[grant]), Err(DenialCode::NoCap));
    bench.step(Event::Revoke(grant));
    assert_eq!(
        bench.spawn(AgentId::FIRST, &[grant]),
        Err(DenialCode::Revoked)
    );
}

#[test]
fn an_agent_without_the_cap_to_spawn_cannot_spawn() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    assert_eq!(bench.spawn(child, &[]), Err(DenialCode::NoCap));
}

#[test]
fn starting_an_agent_is_a_use_of_the_cap_to_do_so() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let spawning = Authority::of(Cap::new(Verb::AgentSpawn, Object::Session).unwrap());
    bench.try_grant(child, spawning, ONCE, SESSION).unwrap();
    assert!(bench.spawn(child, &[]).is_ok());
    assert_eq!(bench.spawn(child, &[]), Err(DenialCode::Exhausted));
}

#[test]
fn a_grant_can_be_narrowed_but_not_widened() {
    let mut bench = Bench::new(Asking::Refuse);
    let src = bench.on_files(READ, "src");
    let from = bench.grant(src, Uses::Uncounted, for_seconds(60));
    let mut narrowed = |authority: Authority, lifetime| {
        bench.attenuate(Attenuation {
            by: AgentId::FIRST,
            from,
            holder: AgentId::FIRST,
            authority,
            uses: Uses::Uncounted,
            lifetime,
        })
    };
    let object = |below: &str| Object::Dir {
        dir: support::Bench::new(Asking::Refuse).dir,
        below: path(below),
    };
    let cap = |verb, below: &str| Authority::of(Cap::new(verb, object(below)).unwrap());
    let narrower = narrowed(cap(Verb::FsRead, "src/bin"), SESSION).unwrap();
    assert_eq!(
        narrowed(cap(Verb::FsRead, "."), SESSION)
            .unwrap_err()
            .code(),
        DenialCode::Amplifies
    );
    assert_eq!(
        narrowed(cap(Verb::FsModify, "src"), SESSION)
            .unwrap_err()
            .code(),
        DenialCode::Amplifies
    );
    let (table, from) = (bench.session.table(), from);
    assert_eq!(
        table.get(narrower).unwrap().limits().expires_at,
        table.get(from).unwrap().limits().expires_at
    );
}

// Questions

#[test]
fn what_is_not_held_is_asked_about_and_a_no_refuses_it() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.read("a.txt"), Came::Asked);
    assert_eq!(
        bench.question.as_ref().unwrap().because(),
        DenialCode::NoCap
    );
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    assert_eq!(
        bench.denial.as_ref().unwrap().cause(),
        Some(DenialCode::NoCap)
    );
}

#[test]
fn a_yes_for_once_permits_the_call_and_not_the_next() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.read("a.txt"), Came::Asked);
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(1));
    assert_eq!(bench.read("a.txt"), Came::Asked);
    assert_eq!(
        bench.question.as_ref().unwrap().because(),
        DenialCode::Exhausted
    );
}

#[test]
fn a_yes_for_the_session_permits_the_same_effect_and_no_other() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.read("a.txt"), Came::Asked);
    assert_eq!(bench.answer(Reply::Yes(Scope::Session)), Came::Permitted(1));
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    assert_eq!(bench.read("b.txt"), Came::Asked);
    assert_eq!(bench.write("a.txt"), Came::Asked);
}

#[test]
fn a_yes_for_always_is_asked_again_after_thirty_days() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.read("a.txt");
    assert_eq!(bench.answer(Reply::Yes(Scope::Always)), Came::Permitted(1));
    bench.seconds = 30 * 24 * 3600;
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    bench.seconds += 1;
    // By then the right to ask has ended, too: a session that old is opened again.
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Expired));
}

#[test]
fn every_reply_that_is_not_an_offered_yes_refuses() {
    let expected = [
        (Reply::No, DenialCode::RejectedByUser),
        (Reply::parse("deny"), DenialCode::RejectedByUser),
        (Reply::parse("yes"), DenialCode::UnknownAnswer),
        (Reply::parse("Once"), DenialCode::UnknownAnswer),
        (Reply::parse("once "), DenialCode::UnknownAnswer),
        (Reply::parse("approve"), DenialCode::UnknownAnswer),
        (Reply::parse(""), DenialCode::UnknownAnswer),
        (Reply::Silence, DenialCode::NoAnswer),
        (Reply::Cancelled, DenialCode::NoAnswer),
        (Reply::Failed, DenialCode::NoAnswer),
    ];
    for (reply, code) in expected {
        let mut bench = Bench::new(Asking::Prompt);
        assert_eq!(bench.read("a.txt"), Came::Asked);
        assert_eq!(bench.answer(reply.clone()), Came::Denied(code), "{reply:?}");
    }
}

#[test]
fn an_answer_with_another_digest_is_void() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.read("a.txt");
    let question = bench.question.clone().unwrap().id();
    let digest = sha256(b"something else");
    let void = Answer {
        question,
        digest,
        reply: Reply::Yes(Scope::Once),
    };
    assert_eq!(
        bench.step(Event::Answer(void)),
        Came::Denied(DenialCode::ChangedSinceShown)
    );
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::UnknownAnswer),
        "the question is gone"
    );
}

#[test]
fn the_digest_of_a_question_changes_with_everything_it_shows() {
    let shown = |below: &str, content: &str, verb: Verb, tool: Tool| {
        let mut bench = Bench::new(Asking::Prompt);
        let action = hermitcrab_core::action::Action::on_path(
            verb,
            bench.dir,
            path(below),
            sha256(content.as_bytes()),
        )
        .unwrap();
        assert_eq!(
            bench.call_as(AgentId::FIRST, tool, vec![action]),
            Came::Asked
        );
        bench.question.unwrap().digest()
    };
    let base = shown("a", "1", Verb::FsModify, Tool::WriteFile);
    assert_eq!(base, shown("a", "1", Verb::FsModify, Tool::WriteFile));
    assert_ne!(base, shown("b", "1", Verb::FsModify, Tool::WriteFile));
    assert_ne!(base, shown("a", "2", Verb::FsModify, Tool::WriteFile));
    assert_ne!(base, shown("a", "1", Verb::FsCreate, Tool::WriteFile));
    assert_ne!(base, shown("a", "1", Verb::FsModify, Tool::Patch));
}

#[test]
fn an_answer_counts_for_one_question_only() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.read("a.txt");
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(1));
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::UnknownAnswer)
    );
}

#[test]
fn a_late_answer_is_no_answer() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.read("a.txt");
    bench.seconds = 601;
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::NoAnswer)
    );
    bench.read("a.txt");
    bench.seconds = 1203;
    assert_eq!(bench.step(Event::Tick), Came::Denied(DenialCode::NoAnswer));
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::UnknownAnswer)
    );
}

#[test]
fn a_child_may_ask_only_with_the_cap_to_ask() {
    let mut bench = Bench::new(Asking::Prompt);
    let asking = bench.session.held_by(AgentId::FIRST).find(|grant| {
        grant
            .authority()
            .caps()
            .iter()
            .any(|cap| cap.verb() == Verb::UserAsk)
    });
    let asking = asking.unwrap().id();
    let (mute, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let (asker, _) = bench.spawn(AgentId::FIRST, &[asking]).unwrap();
    assert_eq!(
        bench.read_as(mute, "a.txt"),
        Came::Denied(DenialCode::NoCap)
    );
    assert_eq!(bench.read_as(asker, "a.txt"), Came::Asked);
    assert_eq!(bench.question.as_ref().unwrap().by(), asker);
    assert_eq!(bench.answer(Reply::Yes(Scope::Session)), Came::Permitted(1));
    bench.finish();
    assert_eq!(bench.read_as(asker, "a.txt"), Came::Permitted(1));
    assert_eq!(
        bench.read("a.txt"),
        Came::Asked,
        "a yes to the child is none to its parent"
    );
}

#[test]
fn a_grant_revoked_while_the_question_was_open_does_not_count() {
    let mut bench = Bench::new(Asking::Prompt);
    let authority = bench.on_files(READ, ".");
    let reading = bench.grant(authority, Uses::Uncounted, SESSION);
    let actions = vec![
        bench.file(Verb::FsRead, "a.txt"),
        bench.file(Verb::FsModify, "a.txt"),
    ];
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::Patch, actions),
        Came::Asked
    );
    bench.step(Event::Revoke(reading));
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::Revoked)
    );
}

#[test]
fn the_user_can_still_be_asked_after_a_day() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.seconds = 24 * 3600;
    assert_eq!(bench.read("a.txt"), Came::Asked);
}

// Commands and their effects

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
fn any_program_in_the_view_is_no_program_on_the_host() {
    let mut bench = Bench::new(Asking::Refuse);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let name = hermitcrab_core::authority::Name::parse("ls").unwrap();
    let on_host = Object::Program(Program::OnHost(name.clone()));
    let in_view = Object::Program(Program::InView(name));
    for (object, expected) in [
        (on_host, Came::Denied(DenialCode::NoCap)),
        (in_view, Came::Permitted(1)),
    ] {
        let action =
            hermitcrab_core::action::Action::new(Verb::ProcExec, object, Digest::NONE).unwrap();
        assert_eq!(
            bench.call_as(AgentId::FIRST, Tool::Terminal, vec![action]),
            expected
        );
    }
}

// Rules above every grant

#[test]
fn the_agents_own_files_are_out_of_reach_whatever_is_held_or_answered() {
    let mut bench = Bench::with(SessionConfig {
        protected: vec![path("home/u/proj/.state")],
        ..config(Asking::Prompt)
    });
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    assert_eq!(
        bench.read(".state/ledger"),
        Came::Denied(DenialCode::Protected)
    );
    assert_eq!(bench.write(".state"), Came::Denied(DenialCode::Protected));
    assert_eq!(bench.read(".state2"), Came::Permitted(1));
    let whole = bench.file(Verb::FsDelete, ".");
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::Directory, vec![whole]),
        Came::Denied(DenialCode::Protected)
    );
    assert!(
        bench
            .session
            .rules()
            .is_protected(bench.dir, &path(".state/x"))
    );
    assert!(!bench.session.rules().is_protected(bench.dir, &path("x")));
}

#[test]
fn one_protected_effect_refuses_the_whole_change_set() {
    let mut bench = Bench::with(SessionConfig {
        protected: vec![path("home/u/proj/.state")],
        ..config(Asking::Prompt)
    });
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench.run("make");
    let actions = vec![
        bench.file(Verb::FsCreate, "a"),
        bench.file(Verb::FsModify, ".state/ledger"),
    ];
    assert_eq!(bench.effects(actions), Came::Denied(DenialCode::Protected));
}

#[test]
fn the_settings_cannot_be_changed_by_any_grant() {
    let mut bench = Bench::new(Asking::Prompt);
    let cap = Cap::new(Verb::ConfigChange, Object::Session).unwrap();
    bench.grant(Authority::of(cap), Uses::Uncounted, SESSION);
    let action =
        hermitcrab_core::action::Action::new(Verb::ConfigChange, Object::Session, Digest::NONE)
            .unwrap();
    for tool in Tool::ALL {
        let came = bench.call_as(AgentId::FIRST, tool, vec![action.clone()]);
        assert_eq!(came, Came::Denied(DenialCode::EffectNotCovered), "{tool}");
    }
}

#[test]
fn a_sensitive_name_is_asked_about_each_time_although_it_is_held() {
    let mut bench = Bench::new(Asking::Prompt);
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    for _ in 0..2 {
        assert_eq!(bench.read(".env"), Came::Asked);
        assert_eq!(
            bench.question.as_ref().unwrap().because(),
            DenialCode::SensitivePath
        );
        assert_eq!(bench.question.as_ref().unwrap().widest(), Scope::Once);
        assert_eq!(
            bench.answer(Reply::Yes(Scope::Always)),
            Came::Permitted(1),
            "cut down to once"
        );
        let made = bench.session.held_by(AgentId::FIRST).next_back().unwrap();
        assert_eq!(made.limits().uses, ONCE);
        bench.finish();
    }
}

#[test]
fn a_sensitive_name_is_refused_when_nobody_can_be_asked() {
    let mut bench = Bench::new(Asking::Refuse);
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    assert_eq!(bench.read(".env"), Came::Denied(DenialCode::SensitivePath));
    assert_eq!(bench.read("env"), Came::Permitted(1));
}

#[test]
fn a_guarded_place_is_asked_about_each_time() {
    let mut bench = Bench::new(Asking::Prompt);
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    assert_eq!(bench.read("notes/a"), Came::Permitted(1));
    bench
        .session
        .guard_place(path("home/u/proj/notes"))
        .unwrap();
    assert_eq!(bench.read("notes/a"), Came::Asked);
    assert_eq!(bench.read("notes2"), Came::Permitted(1));
}

// The end

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
