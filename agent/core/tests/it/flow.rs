//! What an agent has read decides which of its grants still act without a
//! question.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::Reply,
    approval::Scope,
    authority::{
        Authority, Cap, Extension, ExtensionName, Host, HostPattern, Name, Object, ObjectKind,
        Port, Program, Verb,
    },
    digest::Digest,
    grant::{AgentId, Uses},
    label::{Label, Readers, Source},
    outcome::DenialCode,
    session::{Asking, Attenuation, Call, Event},
    time::{Instant, Millis},
    tool::Tool,
};
use support::{Bench, Came, SESSION, any_program};

fn hear(bench: &mut Bench, agent: AgentId, source: Source) {
    let label = Label::new(source, Readers::Anyone);
    assert_eq!(bench.step(Event::Heard { agent, label }), Came::Nothing);
}

fn with_everything(asking: Asking) -> Bench {
    let mut bench = Bench::new(asking);
    let all = bench.on_files(&Verb::FILES, ".");
    bench.grant(all, Uses::Uncounted, SESSION);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    bench
}

#[test]
fn a_grant_acts_alone_until_its_holder_has_read_something() {
    let mut bench = with_everything(Asking::Prompt);
    for source in [Source::User, Source::Model] {
        hear(&mut bench, AgentId::FIRST, source);
        assert_eq!(bench.write("a"), Came::Permitted(1));
    }
    for source in [Source::File, Source::Command, Source::Network] {
        let mut bench = with_everything(Asking::Prompt);
        hear(&mut bench, AgentId::FIRST, source);
        assert_eq!(bench.write("a"), Came::Asked, "{source:?}");
        let question = bench.question.clone().unwrap();
        assert_eq!(question.because(), DenialCode::UntrustedFlow);
        assert!(question.is_after_reading());
        assert_eq!(
            bench.answer(Reply::No),
            Came::Denied(DenialCode::RejectedByUser)
        );
    }
}

#[test]
fn a_question_about_what_is_not_held_is_none_after_reading() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write("a"), Came::Asked);
    assert!(!bench.question.clone().unwrap().is_after_reading());
    hear(&mut bench, AgentId::FIRST, Source::File);
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    assert_eq!(bench.write("a"), Came::Asked);
    assert!(!bench.question.clone().unwrap().is_after_reading());
}

/// Whoever reads a question knows what was read when it was put. A yes for the session, said
/// to that, is one for what it shows if something came in the meantime.
#[test]
fn a_yes_to_a_question_that_news_overtook_is_for_what_it_shows() {
    let session = || Reply::Yes(Scope::Session);
    for (own, others, next) in [
        (&[][..], &[][..], Came::Permitted(1)),
        (&[Source::File, Source::Model], &[], Came::Permitted(1)),
        (&[], &[Source::Network], Came::Permitted(1)),
        (&[Source::Network], &[], Came::Asked),
        (&[Source::Command, Source::Model], &[], Came::Asked),
    ] {
        let mut bench = with_everything(Asking::Prompt);
        let (other, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
        hear(&mut bench, AgentId::FIRST, Source::File);
        assert_eq!(bench.write("a"), Came::Asked);
        for (agent, news) in [(AgentId::FIRST, own), (other, others)] {
            for source in news {
                hear(&mut bench, agent, *source);
            }
        }
        assert_eq!(bench.answer(session()), Came::Permitted(1));
        bench.finish();
        assert_eq!(bench.write("a"), next, "{own:?} {others:?}");
    }
}

#[test]
fn looking_reading_and_running_on_a_copy_stay_free() {
    let mut bench = with_everything(Asking::Prompt);
    hear(&mut bench, AgentId::FIRST, Source::Network);
    assert_eq!(bench.read("a"), Came::Permitted(1));
    assert_eq!(bench.run("make"), Came::Permitted(1));
    let change = bench.file(Verb::FsCreate, "out");
    assert_eq!(bench.effects(vec![change]), Came::Asked);
}

#[test]
fn a_loopback_that_only_its_own_commands_share_stays_free_and_a_peer_does_not() {
    let host = |name: &str| Host {
        name: HostPattern::Exact(Name::parse(name).unwrap()),
        port: Port::Any,
    };
    for (verb, name, expected) in [
        (Verb::NetListen, "localhost", Came::Permitted(2)),
        (Verb::NetListen, "example.com", Came::Asked),
        (Verb::NetConnect, "localhost", Came::Asked),
    ] {
        let mut bench = with_everything(Asking::Prompt);
        let held = Authority::of(Cap::new(verb, Object::Host(host(name))).unwrap());
        bench.grant(held, Uses::Uncounted, SESSION);
        hear(&mut bench, AgentId::FIRST, Source::File);
        let program = Object::Program(Program::AnyInView);
        let actions = vec![
            Action::new(Verb::ProcExec, program, Digest::NONE).unwrap(),
            Action::new(verb, Object::Host(host(name)), Digest::NONE).unwrap(),
        ];
        assert_eq!(
            bench.call_as(AgentId::FIRST, Tool::Terminal, actions),
            expected,
            "{verb} {name}"
        );
    }
}

#[test]
fn where_nobody_can_be_asked_it_is_refused() {
    let mut bench = with_everything(Asking::Refuse);
    hear(&mut bench, AgentId::FIRST, Source::File);
    assert_eq!(bench.write("a"), Came::Denied(DenialCode::UntrustedFlow));
}

#[test]
fn a_yes_for_the_session_vouches_for_what_had_been_read_and_no_more() {
    let mut bench = with_everything(Asking::Prompt);
    hear(&mut bench, AgentId::FIRST, Source::File);
    assert_eq!(bench.write("a"), Came::Asked);
    assert_eq!(bench.answer(Reply::Yes(Scope::Session)), Came::Permitted(1));
    bench.finish();
    assert_eq!(bench.write("a"), Came::Permitted(1));
    // For another file the old grant still does not vouch.
    assert_eq!(bench.write("b"), Came::Asked);
    bench.answer(Reply::No);
    // Data of another kind arrives: the yes was not about that.
    hear(&mut bench, AgentId::FIRST, Source::Network);
    assert_eq!(bench.write("a"), Came::Asked);
}

#[test]
fn a_yes_for_once_is_over_with_its_call() {
    let mut bench = with_everything(Asking::Prompt);
    hear(&mut bench, AgentId::FIRST, Source::Command);
    assert_eq!(bench.write("a"), Came::Asked);
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(1));
    bench.finish();
    assert_eq!(bench.write("a"), Came::Asked);
}

#[test]
fn a_grant_the_user_makes_afterwards_vouches_and_what_is_derived_from_it_too() {
    let mut bench = with_everything(Asking::Prompt);
    hear(&mut bench, AgentId::FIRST, Source::File);
    let all = bench.on_files(&Verb::FILES, "src");
    let from = bench.grant(all, Uses::Uncounted, SESSION);
    assert_eq!(bench.write("src/a"), Came::Permitted(1));
    assert_eq!(bench.write("b"), Came::Asked);
    bench.answer(Reply::No);
    let (child, _) = bench.spawn(AgentId::FIRST, &[from]).unwrap();
    let action = bench.file(Verb::FsModify, "src/a");
    let came = bench.call_as(child, hermitcrab_core::tool::Tool::WriteFile, vec![action]);
    assert_eq!(came, Came::Permitted(1));
}

#[test]
fn an_agent_cannot_launder_a_grant_by_deriving_one_or_starting_a_child() {
    let mut bench = Bench::new(Asking::Refuse);
    let all = bench.on_files(&Verb::FILES, ".");
    let from = bench.grant(all.clone(), Uses::Uncounted, SESSION);
    hear(&mut bench, AgentId::FIRST, Source::File);
    bench
        .attenuate(Attenuation {
            by: AgentId::FIRST,
            from,
            holder: AgentId::FIRST,
            authority: all,
            uses: Uses::Uncounted,
            lifetime: SESSION,
        })
        .unwrap();
    assert_eq!(bench.write("a"), Came::Denied(DenialCode::UntrustedFlow));
    let (child, _) = bench.spawn(AgentId::FIRST, &[from]).unwrap();
    let action = bench.file(Verb::FsModify, "a");
    let came = bench.call_as(child, hermitcrab_core::tool::Tool::WriteFile, vec![action]);
    assert_eq!(came, Came::Denied(DenialCode::UntrustedFlow));
}

#[test]
fn what_one_agent_reads_does_not_taint_another() {
    let mut bench = with_everything(Asking::Prompt);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    hear(&mut bench, child, Source::Network);
    assert_eq!(bench.write("a"), Came::Permitted(1));
    let label = Label::new(Source::File, Readers::Anyone);
    assert_eq!(
        bench.session.flow().label(child).unwrap().sources().count(),
        1
    );
    let nobody = Event::Heard {
        agent: child,
        label,
    };
    bench.step(Event::End);
    assert_eq!(bench.step(nobody), Came::Nothing);
}

#[test]
fn data_that_steers_one_call_taints_that_call_and_no_other() {
    let mut bench = with_everything(Asking::Prompt);
    let steered = |bench: &mut Bench, source, verb, tool| {
        let action = bench.file(verb, "a");
        bench.step(Event::SteeredCall {
            call: Call {
                by: AgentId::FIRST,
                tool,
                actions: vec![action],
            },
            by_data: Label::new(source, Readers::Anyone),
        })
    };
    let change = (Verb::FsModify, Tool::WriteFile);
    assert_eq!(
        steered(&mut bench, Source::User, change.0, change.1),
        Came::Permitted(1)
    );
    bench.finish();
    assert_eq!(
        steered(&mut bench, Source::File, Verb::FsRead, Tool::ReadFile),
        Came::Permitted(1)
    );
    bench.finish();
    assert_eq!(
        steered(&mut bench, Source::File, change.0, change.1),
        Came::Asked
    );
    let question = bench.question.clone().unwrap();
    assert_eq!(question.because(), DenialCode::UntrustedFlow);
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(1));
    bench.finish();
    assert_eq!(bench.write("a"), Came::Permitted(1), "the next is its own");
    let mut bench = with_everything(Asking::Refuse);
    assert_eq!(
        steered(&mut bench, Source::Network, change.0, change.1),
        Came::Denied(DenialCode::UntrustedFlow)
    );
}

#[test]
fn data_that_steers_a_call_which_is_never_made_taints_no_other() {
    let mut bench = with_everything(Asking::Prompt);
    let (gone, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    bench.step(Event::EndAgent(gone));
    let actions = vec![bench.file(Verb::FsModify, "a")];
    let came = bench.step(Event::SteeredCall {
        call: Call {
            by: gone,
            tool: Tool::WriteFile,
            actions,
        },
        by_data: Label::new(Source::Network, Readers::Anyone),
    });
    assert_eq!(came, Came::Denied(DenialCode::UnknownAgent));
    assert_eq!(bench.write("a"), Came::Permitted(1));
}

#[test]
fn before_a_call_a_grant_vouches_for_a_clean_agent_and_not_for_one_that_has_read() {
    let mut bench = Bench::new(Asking::Prompt);
    let all = bench.on_files(&Verb::FILES, ".");
    let grant = bench.grant(all, Uses::Uncounted, SESSION);
    let action = bench.file(Verb::FsModify, "a");
    let vouches = |bench: &Bench| {
        let (session, by) = (&bench.session, AgentId::FIRST);
        session
            .flow()
            .vouches_so_far(session.table(), by, grant, &action)
    };
    assert!(vouches(&bench));
    hear(&mut bench, AgentId::FIRST, Source::Network);
    assert!(!vouches(&bench));
}

#[test]
fn whatever_changes_something_or_lets_data_out_is_asked_about_after_reading() {
    let mut bench = Bench::new(Asking::Prompt);
    let grant = bench.grant(any_program(), Uses::Uncounted, SESSION);
    hear(&mut bench, AgentId::FIRST, Source::File);
    let name = |name: &str| Name::parse(name).unwrap();
    for verb in Verb::ALL.into_iter().chain([Verb::Extension]) {
        let object = match verb.object_kind() {
            ObjectKind::Dir => Object::tree(bench.dir, support::path("a")),
            ObjectKind::Program => Object::Program(Program::AnyInView),
            ObjectKind::Host => Object::Host(Host {
                name: HostPattern::Exact(name("example.com")),
                port: Port::Any,
            }),
            ObjectKind::Secret => Object::Secret(name("token")),
            ObjectKind::Model => Object::Model(name("m")),
            ObjectKind::Session => Object::Session,
            ObjectKind::Extension => Object::Extension(Extension {
                name: ExtensionName::parse("x.acme.deploy").unwrap(),
                on: None,
            }),
        };
        let action = Action::new(verb, object, Digest::NONE).unwrap();
        let session = &bench.session;
        let is_free =
            session
                .flow()
                .vouches_so_far(session.table(), AgentId::FIRST, grant, &action);
        let expected = match verb {
            Verb::FsList
            | Verb::FsRead
            | Verb::SessionRead
            | Verb::UserAsk
            | Verb::AgentSpawn
            | Verb::ModelSend
            | Verb::ProcExec => true,
            Verb::FsCreate
            | Verb::FsModify
            | Verb::FsDelete
            | Verb::FsMount
            | Verb::NetConnect
            | Verb::NetListen
            | Verb::SecretUse
            | Verb::ConfigChange
            | Verb::Extension => false,
        };
        assert_eq!(is_free, expected, "{verb}");
    }
}

#[test]
fn what_is_made_of_two_comes_from_both_and_is_for_those_both_are_for() {
    let only = |names: &[&str]| {
        Readers::Only(
            names
                .iter()
                .map(|name| Name::parse(name).unwrap())
                .collect(),
        )
    };
    for (one, other, expected) in [
        (Readers::Anyone, Readers::Anyone, Readers::Anyone),
        (Readers::Anyone, only(&["ann"]), only(&["ann"])),
        (only(&["ann", "bob"]), only(&["bob", "eve"]), only(&["bob"])),
        (only(&["ann"]), only(&["bob"]), only(&[])),
    ] {
        for (one, other) in [(&one, &other), (&other, &one)] {
            let file = Label::new(Source::File, one.clone());
            let joined = file.join(&Label::new(Source::Network, other.clone()));
            assert_eq!(*joined.readers(), expected, "{one:?} {other:?}");
            let sources: Vec<Source> = joined.sources().collect();
            assert_eq!(sources, [Source::File, Source::Network]);
        }
    }
}

#[test]
fn a_grant_counts_at_its_deadline_and_not_a_moment_longer() {
    let mut bench = Bench::new(Asking::Prompt);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    let grant = bench.grant(reading, Uses::Uncounted, support::for_seconds(10));
    let at = |millis: u64| Instant::BOOT.after(Millis::new(millis));
    let table = bench.session.table();
    assert_eq!(table.usable(grant, at(10_000)), Ok(()));
    assert_eq!(table.usable(grant, at(10_001)), Err(DenialCode::Expired));
}
