//! A yes to more than what was shown: what it holds, and when it is none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    approval::{Answer, Reply, Scope},
    authority::{Authority, Verb},
    grant::{AgentId, GrantId, Origin, Uses},
    label::{Label, Readers, Source},
    outcome::DenialCode,
    session::{Asking, Event},
    tool::Tool,
};
use support::{Bench, Came, any_program, sha256};

const YES: Reply = Reply::Yes(Scope::Session);

/// What the first agent holds that came from an answer, and how often it may be used.
fn given(bench: &Bench) -> Vec<(GrantId, Authority, Uses, Scope)> {
    let held = bench.session.held_by(AgentId::FIRST);
    held.filter_map(|grant| match grant.origin() {
        Origin::Answer(scope) => Some((
            grant.id(),
            grant.authority().clone(),
            grant.limits().uses,
            scope,
        )),
        _ => None,
    })
    .collect()
}

#[test]
fn all_of_a_directory_is_held_from_there_on_and_nothing_beside_it() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write("src/a"), Came::Asked);
    let wider = bench.on_files(&[Verb::FsModify], "src");
    assert_eq!(
        bench.answer_holding(YES, wider.clone()),
        Came::Permitted(1),
        "what was shown is permitted with it"
    );
    // It stands in the place of what was shown, not beside it.
    let given = given(&bench);
    let [(grant, authority, uses, scope)] = given.as_slice() else {
        panic!("{given:?}");
    };
    assert_eq!(
        (authority, *uses, *scope),
        (&wider, Uses::Uncounted, Scope::Session)
    );
    for below in ["src/a", "src/b", "src/deep/c"] {
        assert_eq!(bench.write(below), Came::Permitted(1), "{below}");
    }
    for beside in ["b", "source/a"] {
        assert_eq!(bench.write(beside), Came::Asked, "{beside}");
    }
    // A name that is asked about each time is, whatever is held around it.
    assert_eq!(bench.write("src/.env"), Came::Asked);
    assert_eq!(bench.question.clone().unwrap().widest(), Scope::Once);
    let removal = bench.file(Verb::FsDelete, "src/a");
    bench.grant(any_program(), Uses::Uncounted, support::SESSION);
    assert_eq!(bench.run("rm src/a"), Came::Permitted(1));
    assert_eq!(bench.effects(vec![removal]), Came::Asked);
    bench.step(Event::Revoke(*grant));
    assert_eq!(bench.write("src/b"), Came::Asked);
}

#[test]
fn what_is_of_another_kind_or_does_not_hold_what_was_shown_is_a_yes_for_this_one_time() {
    let check = |what: &str, verbs: &[Verb], below: &str, other: Option<Authority>| {
        let mut bench = Bench::new(Asking::Prompt);
        assert_eq!(bench.write("src/a"), Came::Asked);
        let files = bench.on_files(verbs, below);
        let caps = files
            .caps()
            .iter()
            .chain(other.iter().flat_map(Authority::caps));
        let wider = Authority::from_caps(caps.cloned().collect::<Vec<_>>()).unwrap();
        let came = bench.answer_holding(YES, wider);
        assert_eq!(came, Came::Permitted(1), "{what}");
        bench.finish();
        for next in ["src/a", "src/b", "doc/a"] {
            assert_eq!(bench.write(next), Came::Asked, "{what}: {next}");
        }
    };
    check("another place", &[Verb::FsModify], "doc", None);
    check("another kind", &[Verb::FsDelete], "src", None);
    let both = [Verb::FsModify, Verb::FsDelete];
    check("another kind beside it", &both, "src", None);
    check("no file", &[Verb::FsModify], "src", Some(any_program()));
}

#[test]
fn a_name_that_is_asked_about_each_time_is_allowed_once_whatever_is_to_be_held() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write("src/.env"), Came::Asked);
    let wider = bench.on_files(&[Verb::FsModify], "src");
    assert_eq!(bench.answer_holding(YES, wider), Came::Permitted(1));
    bench.finish();
    for next in ["src/.env", "src/a"] {
        assert_eq!(bench.write(next), Came::Asked, "{next}");
    }
}

#[test]
fn a_yes_for_one_time_is_one_whatever_is_to_be_held() {
    for (scope, next) in [
        (Scope::Once, Came::Asked),
        (Scope::Session, Came::Permitted(1)),
        (Scope::Always, Came::Permitted(1)),
    ] {
        let mut bench = Bench::new(Asking::Prompt);
        assert_eq!(bench.write("src/a"), Came::Asked);
        let wider = bench.on_files(&[Verb::FsModify], "src");
        let came = bench.answer_holding(Reply::Yes(scope), wider);
        assert_eq!(came, Came::Permitted(1), "{scope:?}");
        bench.finish();
        assert_eq!(bench.write("src/b"), next, "{scope:?}");
    }
}

#[test]
fn nothing_is_held_without_a_clear_yes_to_what_was_shown() {
    for reply in [
        Reply::No,
        Reply::Silence,
        Reply::Cancelled,
        Reply::Failed,
        Reply::Unknown("below".to_owned()),
    ] {
        let mut bench = Bench::new(Asking::Prompt);
        bench.write("src/a");
        let wider = bench.on_files(&[Verb::FsModify], "src");
        let came = bench.answer_holding(reply.clone(), wider);
        assert!(matches!(came, Came::Denied(_)), "{reply:?}");
        assert_eq!(given(&bench), [], "{reply:?}");
    }
    let mut bench = Bench::new(Asking::Prompt);
    bench.write("src/a");
    let answer = Answer {
        question: bench.question.as_ref().unwrap().id(),
        digest: sha256(b"other"),
        reply: YES,
    };
    let wider = bench.on_files(&[Verb::FsModify], "src");
    let came = bench.step(Event::AnswerHolding { answer, wider });
    assert_eq!(came, Came::Denied(DenialCode::ChangedSinceShown));
    assert_eq!(given(&bench), []);
}

#[test]
fn it_is_held_by_the_child_that_asked() {
    let mut bench = Bench::new(Asking::Prompt);
    let right = bench.session.held_by(AgentId::FIRST);
    let right = right
        .filter(|grant| {
            grant
                .authority()
                .caps()
                .iter()
                .any(|cap| cap.verb() == Verb::UserAsk)
        })
        .map(|grant| grant.id())
        .next()
        .unwrap();
    let (child, _) = bench.spawn(AgentId::FIRST, &[right]).unwrap();
    let writes = |bench: &mut Bench, by, below| {
        let action = bench.file(Verb::FsModify, below);
        bench.call_as(by, Tool::WriteFile, vec![action])
    };
    assert_eq!(writes(&mut bench, child, "src/a"), Came::Asked);
    let wider = bench.on_files(&[Verb::FsModify], "src");
    assert_eq!(bench.answer_holding(YES, wider), Came::Permitted(1));
    assert_eq!(writes(&mut bench, child, "src/b"), Came::Permitted(1));
    assert_eq!(writes(&mut bench, AgentId::FIRST, "src/b"), Came::Asked);
}

#[test]
fn it_vouches_for_what_was_read_when_it_was_given() {
    let mut bench = Bench::new(Asking::Prompt);
    let reading = bench.on_files(&[Verb::FsModify], ".");
    bench.grant(reading, Uses::Uncounted, support::SESSION);
    let heard = |source| Event::Heard {
        agent: AgentId::FIRST,
        label: Label::new(source, Readers::Anyone),
    };
    bench.step(heard(Source::File));
    assert_eq!(bench.write("src/a"), Came::Asked);
    let wider = bench.on_files(&[Verb::FsModify], "src");
    assert_eq!(bench.answer_holding(YES, wider), Came::Permitted(1));
    assert_eq!(bench.write("src/b"), Came::Permitted(1));
    // What is read later is nothing anybody had answered about.
    bench.step(heard(Source::Network));
    assert_eq!(bench.write("src/b"), Came::Asked);
}
