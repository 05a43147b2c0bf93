//! What a question shows and an answer is worth.

use crate::support::{Bench, Came, SESSION, path, sha256};
use hermitcrab_core::{
    approval::{Answer, Reply, Scope},
    authority::Verb,
    grant::{AgentId, Uses},
    outcome::DenialCode,
    session::{Asking, Event},
    tool::Tool,
};

const READ: &[Verb] = &[Verb::FsRead];

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
