//! What stands above every grant.

use crate::support::{Bench, Came, ONCE, SESSION, any_program, config, path};
use hermitcrab_core::{
    approval::{Reply, Scope},
    authority::{Authority, Cap, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    outcome::DenialCode,
    session::{Asking, SessionConfig},
    tool::Tool,
};

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
