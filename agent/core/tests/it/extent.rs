//! How far a yes reaches: the names that were shown, and nothing below them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::{Reply, Scope},
    authority::{Authority, Cap, Object, Verb},
    digest::Digest,
    grant::{AgentId, Origin, Uses},
    outcome::DenialCode,
    session::{Asking, Attenuation, Call, Event},
    standing::{PortableCap, PortableObject},
    tool::Tool,
};
use support::{Bench, Came, any_program, path};

const SESSION: Reply = Reply::Yes(Scope::Session);

/// A command ran and had these effects.
fn has(bench: &mut Bench, effects: &[(Verb, &str)]) -> Came {
    let effects = effects
        .iter()
        .map(|(verb, below)| bench.file(*verb, below))
        .collect();
    assert_eq!(bench.run("make"), Came::Permitted(1));
    bench.effects(effects)
}

fn bench() -> Bench {
    let mut bench = Bench::new(Asking::Prompt);
    bench.grant(any_program(), Uses::Uncounted, support::SESSION);
    bench
}

#[test]
fn a_yes_about_a_directory_holds_nothing_below_it() {
    for scope in [Scope::Session, Scope::Always] {
        for verb in [Verb::FsCreate, Verb::FsModify, Verb::FsDelete] {
            let mut bench = bench();
            assert_eq!(has(&mut bench, &[(verb, "out")]), Came::Asked);
            assert_eq!(bench.answer(Reply::Yes(scope)), Came::Permitted(1));
            bench.finish();
            // The same again is not asked about.
            assert_eq!(has(&mut bench, &[(verb, "out")]), Came::Permitted(1));
            bench.finish();
            let evil = has(&mut bench, &[(verb, "out/evil")]);
            assert_eq!(evil, Came::Asked, "{verb} {scope:?}");
        }
    }
}

#[test]
fn a_yes_about_a_name_holds_nothing_below_it_if_it_becomes_a_directory() {
    let mut bench = bench();
    assert_eq!(has(&mut bench, &[(Verb::FsModify, "x")]), Came::Asked);
    assert_eq!(bench.answer(SESSION), Came::Permitted(1));
    bench.finish();
    assert_eq!(has(&mut bench, &[(Verb::FsModify, "x/y")]), Came::Asked);
}

#[test]
fn each_name_that_was_shown_is_held_and_the_same_command_is_not_asked_about_again() {
    let made = [
        (Verb::FsCreate, "out"),
        (Verb::FsCreate, "out/a"),
        (Verb::FsCreate, "out/deep"),
        (Verb::FsCreate, "out/deep/b"),
    ];
    let gone = made.map(|(_, below)| (Verb::FsDelete, below));
    let mut bench = bench();
    // One question for all of it.
    for effects in [made, gone] {
        assert_eq!(has(&mut bench, &effects), Came::Asked);
        assert_eq!(bench.answer(SESSION), Came::Permitted(4));
        bench.finish();
    }
    for effects in [made, gone] {
        assert_eq!(has(&mut bench, &effects), Came::Permitted(4));
        bench.finish();
    }
    // A name that was not among them is asked about, and it alone.
    let more = [made.as_slice(), &[(Verb::FsCreate, "out/c")]].concat();
    assert_eq!(has(&mut bench, &more), Came::Asked);
    let question = bench.question.clone().unwrap();
    let asked: Vec<String> = question
        .uncovered()
        .map(|action| action.cap().asked().to_string())
        .collect();
    assert_eq!(asked, ["fs.create dir0:out/c"]);
}

#[test]
fn what_a_person_grants_of_a_directory_is_all_of_it() {
    let mut bench = bench();
    let wanted = bench.on_files(&[Verb::FsCreate], "src");
    bench.grant(wanted, Uses::Uncounted, support::SESSION);
    let below = [(Verb::FsCreate, "src"), (Verb::FsCreate, "src/deep/a")];
    assert_eq!(has(&mut bench, &below), Came::Permitted(2));
}

#[test]
fn a_name_that_is_passed_on_stays_one() {
    let mut bench = bench();
    assert_eq!(has(&mut bench, &[(Verb::FsModify, "src")]), Came::Asked);
    assert_eq!(bench.answer(SESSION), Came::Permitted(1));
    bench.finish();
    let held = |bench: &Bench| {
        let mut held = bench.session.held_by(AgentId::FIRST);
        held.find(|grant| grant.origin() == Origin::Answer(Scope::Session))
            .unwrap()
            .id()
    };
    let from = held(&bench);
    let wanted = |authority| Attenuation {
        by: AgentId::FIRST,
        from,
        holder: AgentId::FIRST,
        authority,
        uses: Uses::Uncounted,
        lifetime: support::SESSION,
    };
    let tree = bench.on_files(&[Verb::FsModify], "src");
    let denial = bench.attenuate(wanted(tree)).unwrap_err();
    assert_eq!(denial.code(), DenialCode::Amplifies);
    let below =
        Authority::of(Cap::new(Verb::FsModify, Object::alone(bench.dir, path("src/a"))).unwrap());
    let denial = bench.attenuate(wanted(below)).unwrap_err();
    assert_eq!(denial.code(), DenialCode::Amplifies);
    let itself =
        Authority::of(Cap::new(Verb::FsModify, Object::alone(bench.dir, path("src"))).unwrap());
    assert!(bench.attenuate(wanted(itself.clone())).is_ok());
    // In words for another session it says the same, and means it there.
    let portable = bench.session.portable(from).unwrap();
    let place = PortableObject::alone(path("home/u/proj/src"));
    let expected = PortableCap::new(Verb::FsModify, place).unwrap();
    assert_eq!(portable.caps(), [expected]);
    let (child, grants) = bench.spawn(AgentId::FIRST, &[from]).unwrap();
    let [grant] = grants.as_slice() else {
        panic!("{grants:?}");
    };
    assert_eq!(
        bench.session.table().get(*grant).unwrap().authority(),
        &itself
    );
    assert_eq!(
        bench.read_as(child, "src/a"),
        Came::Denied(DenialCode::NoCap)
    );
}

#[test]
fn a_permit_for_a_name_is_not_spent_on_all_below_it() {
    let (of, digest) = (Verb::FsRead, Digest::NONE);
    let dir = Bench::new(Asking::Refuse).dir;
    for (action, expected) in [
        (
            Action::on_path(of, dir, path("src"), digest),
            Some("fs.read dir0:src spent on all below it"),
        ),
        (Action::on_tree(of, dir, path("src"), digest), None),
    ] {
        let mut bench = Bench::new(Asking::Refuse);
        let all = bench.on_files(&[of], ".");
        bench.grant(all, Uses::Uncounted, support::SESSION);
        let call = Call {
            by: AgentId::FIRST,
            tool: Tool::Directory,
            actions: vec![action.unwrap(); 2],
        };
        let now = bench.now();
        let parts = bench.session.step(now, Event::Call(call)).into_parts();
        let [first, second] = <[_; 2]>::try_from(parts.permits).unwrap();
        // What is for all of it is for the name as well.
        assert!(first.spend_on_path(of, dir, &path("src")).is_ok());
        let denial = second.for_all_below().map(Permit::spend).err();
        let told = denial
            .as_ref()
            .map(|denial| (denial.code(), denial.about()));
        let expected = expected.map(|told| (DenialCode::PermitMismatch, told));
        assert_eq!(told, expected);
    }
}
