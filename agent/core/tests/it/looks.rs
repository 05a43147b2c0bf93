//! A yes to looking at places: what its call may look at by it, and that nobody
//! else, nothing else and no later call may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::{Answer, CallId, Reply, Scope, Stance},
    authority::{DirId, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    outcome::{DenialCode, Outcome},
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    session::{Asking, Attenuation, Event},
    standing::PortableObject,
    tool::Tool,
};
use proptest::prelude::*;
use support::{Bench, Came, ONCE, SESSION, path};

const YES: Reply = Reply::Yes(Scope::Once);

fn look(dir: DirId, verb: Verb, below: &str) -> Action {
    Action::on_path(verb, dir, path(below), Digest::NONE).unwrap()
}

fn all_of(dir: DirId, verb: Verb, below: &str) -> Action {
    Action::on_tree(verb, dir, path(below), Digest::NONE).unwrap()
}

/// A search of all of a directory was asked about, and allowed.
fn searching(bench: &mut Bench, below: &str, reply: Reply) -> CallId {
    let asked = [Verb::FsList, Verb::FsRead].map(|verb| all_of(bench.dir, verb, below));
    let came = bench.call_as(AgentId::FIRST, Tool::SearchFiles, asked.to_vec());
    assert_eq!(came, Came::Asked);
    assert_eq!(bench.answer(reply), Came::Permitted(2));
    bench.call.unwrap()
}

fn further(bench: &mut Bench, call: CallId, looks: &[(Verb, &str)]) -> Came {
    let looks = looks
        .iter()
        .map(|(verb, below)| look(bench.dir, *verb, below));
    let actions: Vec<Action> = looks.collect();
    let may = bench.session.may_look_further(call, &actions);
    let came = bench.step(Event::LooksFurther { call, actions });
    if may {
        assert!(matches!(came, Came::Permitted(_)), "{came:?}");
    }
    came
}

/// Written out, so that it is no word of what is looked at here.
const fn is_a_look(verb: Verb) -> bool {
    matches!(verb, Verb::FsList | Verb::FsRead)
}

fn may_look(bench: &Bench, call: CallId, looks: &[(Verb, &str)]) -> bool {
    let looks = looks
        .iter()
        .map(|(verb, below)| look(bench.dir, *verb, below));
    bench
        .session
        .may_look_further(call, &looks.collect::<Vec<_>>())
}

fn over(bench: &mut Bench, call: CallId) {
    let outcome = Outcome::Done(Digest::NONE);
    bench.step(Event::Finished { call, outcome });
}

#[test]
fn one_yes_lets_one_search_look_at_all_it_finds_and_no_other_call() {
    let mut bench = Bench::new(Asking::Prompt);
    let call = searching(&mut bench, "lib", YES);
    let found = [(Verb::FsList, "lib/deep"), (Verb::FsRead, "lib/deep/a")];
    assert_eq!(further(&mut bench, call, &found), Came::Permitted(2));
    let more = further(&mut bench, call, &[(Verb::FsRead, "lib/b")]);
    assert_eq!(more, Came::Permitted(1));
    // Each is in the ledger under its call.
    let told = |below: &str| {
        let told = |text: &str| text.contains(&format!("{call} ")) && text.contains(below);
        bench.ledger.iter().filter(|one| told(&one.text)).count()
    };
    assert_eq!((told(":lib/deep/a"), told(":lib/b")), (1, 1));
    // Another call beside it is asked, and one after it.
    assert_eq!(bench.read("lib/b"), Came::Asked);
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    over(&mut bench, call);
    assert_eq!(bench.read("lib/b"), Came::Asked);
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    let late = further(&mut bench, call, &[(Verb::FsRead, "lib/b")]);
    assert_eq!(late, Came::Denied(DenialCode::UnknownCall));
}

#[test]
fn a_further_look_reaches_no_other_place_or_verb_and_asks_nobody() {
    let mut bench = Bench::new(Asking::Prompt);
    let call = searching(&mut bench, "lib", YES);
    for beyond in ["libs", "li", "other/lib/a"] {
        let came = further(&mut bench, call, &[(Verb::FsRead, beyond)]);
        assert_eq!(came, Came::Denied(DenialCode::NoCap), "{beyond}");
    }
    for verb in [Verb::FsCreate, Verb::FsModify, Verb::FsDelete] {
        let came = further(&mut bench, call, &[(verb, "lib/a")]);
        assert_eq!(came, Came::Denied(DenialCode::EffectNotCovered), "{verb}");
    }
    // All of them or none.
    let mixed = [(Verb::FsRead, "lib/a"), (Verb::FsRead, "b")];
    assert_eq!(
        further(&mut bench, call, &mixed),
        Came::Denied(DenialCode::NoCap)
    );
    // What is held besides counts as ever, and its uses are counted.
    let held = bench.on_files(&[Verb::FsRead], "b");
    bench.grant(held, ONCE, SESSION);
    assert_eq!(further(&mut bench, call, &mixed), Came::Permitted(2));
    assert_eq!(
        further(&mut bench, call, &mixed),
        Came::Denied(DenialCode::Exhausted)
    );
    let only = further(&mut bench, call, &[(Verb::FsRead, "lib/a")]);
    assert_eq!(only, Came::Permitted(1));
}

#[test]
fn a_call_may_look_by_its_yes_where_some_of_it_is_of_the_yes_and_the_rest_is_held() {
    let mut bench = Bench::new(Asking::Prompt);
    let held = bench.on_files(&[Verb::FsRead], "held");
    bench.grant(held, Uses::Uncounted, SESSION);
    let call = searching(&mut bench, "lib", YES);
    let (by_yes, by_grant) = ((Verb::FsRead, "lib/a"), (Verb::FsRead, "held/a"));
    let (nobodys, change) = ((Verb::FsRead, "other"), (Verb::FsModify, "lib/a"));
    for (looks, expected) in [
        (&[by_yes][..], true),
        (&[by_yes, by_grant], true),
        (&[by_grant, by_yes], true),
        // That needs no yes.
        (&[by_grant], false),
        (&[], false),
        (&[nobodys], false),
        (&[by_yes, nobodys], false),
        (&[change], false),
        (&[by_yes, change], false),
        (&[by_yes, (Verb::FsRead, "lib/.env")], false),
    ] {
        assert_eq!(may_look(&bench, call, looks), expected, "{looks:?}");
    }
    // Nobody else's call, and no longer than the call goes on.
    assert_eq!(bench.read("other"), Came::Asked);
    let asked = bench.call.unwrap();
    assert!(!may_look(&bench, asked, &[by_yes]));
    bench.answer(Reply::No);
    over(&mut bench, call);
    assert!(!may_look(&bench, call, &[by_yes]));
}

#[test]
fn a_stopped_call_may_look_at_nothing_more() {
    let mut bench = Bench::new(Asking::Prompt);
    let held = bench.on_files(&[Verb::FsRead], "held");
    bench.grant(held, Uses::Uncounted, SESSION);
    let call = searching(&mut bench, "lib", YES);
    let looks = [(Verb::FsRead, "lib/a")];
    assert!(may_look(&bench, call, &looks));
    let grant = bench.session.held_by(AgentId::FIRST).last().unwrap().id();
    bench.step(Event::Revoke(grant));
    assert_eq!(bench.stopped, [call]);
    assert!(!may_look(&bench, call, &looks));
    assert!(!may_look(&bench, call, &[(Verb::FsRead, "held/a")]));
}

/// A tool that may change as well as look.
#[test]
fn a_yes_to_a_change_lets_nothing_more_be_changed() {
    let mut bench = Bench::new(Asking::Prompt);
    let asked = [Verb::FsRead, Verb::FsModify].map(|verb| look(bench.dir, verb, "lib/a"));
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::Patch, asked.to_vec()),
        Came::Asked
    );
    assert_eq!(bench.answer(YES), Came::Permitted(2));
    let call = bench.call.unwrap();
    let (read, change) = ((Verb::FsRead, "lib/a"), (Verb::FsModify, "lib/a"));
    for looks in [&[change][..], &[read, change]] {
        assert!(!may_look(&bench, call, looks), "{looks:?}");
        let came = further(&mut bench, call, looks);
        assert_eq!(came, Came::Denied(DenialCode::EffectNotCovered));
    }
    assert!(may_look(&bench, call, &[read]));
    assert_eq!(further(&mut bench, call, &[read]), Came::Permitted(1));
}

#[test]
fn a_search_for_names_reads_nothing_by_its_yes() {
    let mut bench = Bench::new(Asking::Prompt);
    let asked = vec![all_of(bench.dir, Verb::FsList, "lib")];
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::SearchFiles, asked),
        Came::Asked
    );
    assert_eq!(bench.answer(YES), Came::Permitted(1));
    let call = bench.call.unwrap();
    let listed = further(&mut bench, call, &[(Verb::FsList, "lib/a")]);
    assert_eq!(listed, Came::Permitted(1));
    let read = further(&mut bench, call, &[(Verb::FsRead, "lib/a")]);
    assert_eq!(read, Came::Denied(DenialCode::NoCap));
}

#[test]
fn a_yes_to_a_name_lets_nothing_but_that_name_be_looked_at() {
    let mut bench = Bench::new(Asking::Prompt);
    let asked = vec![look(bench.dir, Verb::FsRead, "lib")];
    bench.call_as(AgentId::FIRST, Tool::SearchFiles, asked);
    assert_eq!(bench.answer(YES), Came::Permitted(1));
    let call = bench.call.unwrap();
    let again = further(&mut bench, call, &[(Verb::FsRead, "lib")]);
    assert_eq!(again, Came::Permitted(1));
    for (verb, below) in [(Verb::FsRead, "lib/a"), (Verb::FsList, "lib")] {
        let came = further(&mut bench, call, &[(verb, below)]);
        assert_eq!(came, Came::Denied(DenialCode::NoCap), "{verb} {below}");
    }
    let actions = vec![all_of(bench.dir, Verb::FsRead, "lib")];
    let came = bench.step(Event::LooksFurther { call, actions });
    assert_eq!(came, Came::Denied(DenialCode::NoCap));
    over(&mut bench, call);
    assert_eq!(bench.read("lib"), Came::Asked);
    bench.answer(Reply::No);
    // Nor does what is held make any call one that was let look.
    let held = bench.on_files(&[Verb::FsRead, Verb::FsList], "lib");
    bench.grant(held, Uses::Uncounted, SESSION);
    let asked = vec![all_of(bench.dir, Verb::FsRead, "lib")];
    bench.call_as(AgentId::FIRST, Tool::SearchFiles, asked);
    let call = bench.call.unwrap();
    let came = further(&mut bench, call, &[(Verb::FsRead, "lib/a")]);
    assert_eq!(came, Came::Denied(DenialCode::EffectNotCovered));
}

#[test]
fn no_yes_reaches_past_a_rule_or_a_name_that_is_asked_about_each_time() {
    let mut bench = Bench::new(Asking::Prompt);
    for (stance, below) in [(Stance::Deny, "no"), (Stance::Ask, "ask")] {
        let place = path(&format!("home/u/proj/lib/{below}"));
        let pattern = Pattern::Object(PortableObject::tree(place));
        let written = ("f", 1, Layer::User);
        let rule = ConfiguredRule::new("r", stance, vec![Verb::FsRead], pattern, written).unwrap();
        bench.session.add_rule(rule).unwrap();
    }
    let call = searching(&mut bench, "lib", YES);
    for (below, code) in [
        ("lib/no/a", DenialCode::DeniedByRule),
        ("lib/ask/a", DenialCode::AskedByRule),
        ("lib/.env", DenialCode::SensitivePath),
        ("lib/.ssh/id_rsa", DenialCode::SensitivePath),
    ] {
        let came = further(&mut bench, call, &[(Verb::FsRead, below)]);
        assert_eq!(came, Came::Denied(code), "{below}");
        // Nor with what was allowed beside it.
        let both = [(Verb::FsRead, "lib/a"), (Verb::FsRead, below)];
        assert!(matches!(further(&mut bench, call, &both), Came::Denied(_)));
    }
}

#[test]
fn a_yes_that_is_taken_back_or_over_lets_nothing_more_be_looked_at() {
    let looks = [(Verb::FsRead, "lib/a")];
    let mut bench = Bench::new(Asking::Prompt);
    let call = searching(&mut bench, "lib", YES);
    let grant = bench.session.held_by(AgentId::FIRST).last().unwrap().id();
    bench.step(Event::Revoke(grant));
    assert_eq!(bench.stopped, [call]);
    assert_eq!(
        further(&mut bench, call, &looks),
        Came::Denied(DenialCode::Revoked)
    );
    // Past its deadline, before anybody says that time passed.
    let mut bench = Bench::new(Asking::Prompt);
    let call = searching(&mut bench, "lib", YES);
    bench.seconds += 11 * 60;
    let actions = vec![look(bench.dir, Verb::FsRead, "lib/a")];
    let came = bench.step(Event::LooksFurther { call, actions });
    assert!(matches!(came, Came::Denied(_)), "{came:?}");
    let mut bench = Bench::new(Asking::Prompt);
    let call = searching(&mut bench, "lib", YES);
    bench.step(Event::End);
    assert!(matches!(further(&mut bench, call, &looks), Came::Denied(_)));
}

#[test]
fn a_yes_for_one_search_cannot_be_passed_on_or_narrowed() {
    let mut bench = Bench::new(Asking::Prompt);
    searching(&mut bench, "lib", YES);
    let grant = bench.session.held_by(AgentId::FIRST).last().unwrap().id();
    let narrower = Attenuation {
        by: AgentId::FIRST,
        from: grant,
        holder: AgentId::FIRST,
        authority: bench.on_files(&[Verb::FsRead], "lib/a"),
        uses: ONCE,
        lifetime: SESSION,
    };
    assert!(bench.attenuate(narrower).is_err());
    assert_eq!(
        bench.spawn(AgentId::FIRST, &[grant]),
        Err(DenialCode::Exhausted)
    );
}

#[test]
fn a_yes_for_the_session_holds_for_later_calls_as_ever() {
    let mut bench = Bench::new(Asking::Prompt);
    let call = searching(&mut bench, "lib", Reply::Yes(Scope::Session));
    over(&mut bench, call);
    assert_eq!(bench.read("lib/deep/a"), Came::Permitted(1));
    assert_eq!(bench.read("b"), Came::Asked);
}

/// A name below the directory, of one to three parts.
fn name() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab]|lib", 1..4).prop_map(|parts| parts.join("/"))
}

fn verb() -> impl Strategy<Value = Verb> {
    prop::sample::select(vec![
        Verb::FsList,
        Verb::FsRead,
        Verb::FsCreate,
        Verb::FsModify,
        Verb::FsDelete,
    ])
}

proptest! {
    /// Whatever was asked about and whatever else is held: a further look is permitted
    /// exactly where every part of it lies in what the yes was about, by its verb, or is
    /// held; and it leaves nothing behind for another call.
    #[test]
    fn a_further_look_is_a_part_of_what_was_asked_about(
        asked in prop::collection::vec((verb(), any::<bool>(), name()), 1..4),
        held in prop::collection::vec((verb(), name()), 0..3),
        looks in prop::collection::vec((verb(), name()), 1..4),
    ) {
        let mut bench = Bench::new(Asking::Prompt);
        for (verb, below) in &held {
            let authority = bench.on_files(&[*verb], below);
            bench.grant(authority, Uses::Uncounted, SESSION);
        }
        let is_below = |above: &str, below: &str| {
            let (above, below): (RelPath, RelPath) = (path(above), path(below));
            below.starts_with(&above)
        };
        let is_held = |verb: Verb, below: &str| {
            held.iter().any(|(other, above)| *other == verb && is_below(above, below))
        };
        let actions = asked.iter().map(|(verb, is_tree, below)| match is_tree {
            true => all_of(bench.dir, *verb, below),
            false => look(bench.dir, *verb, below),
        }).collect();
        let came = bench.call_as(AgentId::FIRST, Tool::Patch, actions);
        let was_asked = came == Came::Asked;
        if was_asked {
            let question = bench.question.clone().unwrap();
            let digest = question.digest();
            let came = bench.step(Event::Answer(Answer { question: question.id(), digest, reply: YES }));
            prop_assert_eq!(came, Came::Permitted(asked.len()));
        }
        let call = bench.call.unwrap();
        let by_yes = |verb: Verb, below: &str| {
            was_asked && asked.iter().any(|(other, is_tree, above)| {
                // What was held was not asked about, and is held all the same.
                let is_of_it = if *is_tree { is_below(above, below) } else { above == below };
                *other == verb && is_a_look(verb) && is_of_it && !is_held(verb, above)
            })
        };
        let was_let_look = was_asked && asked.iter().any(|(verb, _, above)| {
            is_a_look(*verb) && !is_held(*verb, above)
        });
        let expected = was_let_look && looks.iter().all(|(verb, below)| {
            is_a_look(*verb) && (by_yes(*verb, below) || is_held(*verb, below))
        });
        // The yes itself must have a part in it.
        let may = expected && looks.iter().any(|(verb, below)| by_yes(*verb, below));
        let looks: Vec<(Verb, &str)> = looks.iter().map(|(verb, below)| (*verb, below.as_str())).collect();
        prop_assert_eq!(may_look(&bench, call, &looks), may);
        let came = further(&mut bench, call, &looks);
        prop_assert_eq!(matches!(came, Came::Permitted(_)), expected, "{:?}", came);
        prop_assert!(came != Came::Asked);
        over(&mut bench, call);
        for (verb, below) in looks {
            let again = vec![look(bench.dir, verb, below)];
            let came = bench.call_as(AgentId::FIRST, Tool::Patch, again);
            prop_assert_eq!(came == Came::Asked, !is_held(verb, below));
            if came == Came::Asked {
                bench.answer(Reply::No);
            } else {
                bench.finish();
            }
        }
    }
}
