//! What a session tells whoever drives it, and what is remembered of what was heard.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    approval::{Acceptor, Answer, ProposalSpec, Reply, Scope},
    authority::{Name, Verb},
    grant::{AgentId, GrantId, Uses},
    label::{Label, Readers, Source},
    limits::GRANT_LIFETIME_MAX,
    outcome::DenialCode,
    rules::Isolation,
    session::{Asking, Call, Event, GrantSpec},
    standing::{
        Audience, BootId, Kept, PortableAuthority, PortableCap, PortableObject, Standing,
        StandingId, Surroundings, WallTime,
    },
    time::Instant,
    tool::Tool,
};
use support::{Bench, Came, SESSION, any_program, path, sha256};

fn hear(bench: &mut Bench, source: Source) {
    let (agent, label) = (AgentId::FIRST, Label::new(source, Readers::Anyone));
    assert_eq!(bench.step(Event::Heard { agent, label }), Came::Nothing);
}

#[test]
fn a_session_tells_its_time_its_grants_and_whether_it_is_over() {
    let mut bench = Bench::new(Asking::Prompt);
    assert!(!bench.session.has_ended());
    let all = bench.on_files(&Verb::FILES, ".");
    let grant = bench.grant(all, Uses::Uncounted, SESSION);
    assert_eq!(bench.session.grant_named(grant.get()), Some(grant));
    assert_eq!(bench.session.grant_named(grant.get() + 1), None);
    assert_eq!(bench.session.rules().session(), 7);
    for made in 0..3 {
        assert_eq!(bench.session.calls_made(), made);
        bench.write("a");
    }
    bench.seconds = 5;
    bench.step(Event::Tick);
    assert_eq!(bench.session.now(), bench.now());
    bench.step(Event::End);
    assert!(bench.session.has_ended());
}

#[test]
fn the_effects_of_a_turn_outlive_it_without_their_permits() {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    let now = bench.now();
    let call = |verb, bench: &Bench| {
        Event::Call(Call {
            by: AgentId::FIRST,
            tool: Tool::WriteFile,
            actions: vec![bench.file(verb, "a")],
        })
    };
    let event = call(Verb::FsModify, &bench);
    let effects = bench.session.step(now, event);
    assert_eq!(
        effects.denial().map(|denial| denial.code()),
        Some(DenialCode::NoCap)
    );
    let numbered = effects.call();
    let parts = effects.into_parts().without_permits();
    assert!(numbered.is_some());
    assert_eq!(parts.call, numbered);
    assert_eq!(parts.denials.len(), 1);
    assert!(!parts.records.is_empty());
    bench.grant(reading, Uses::Uncounted, SESSION);
    let event = Event::Call(Call {
        by: AgentId::FIRST,
        tool: Tool::ReadFile,
        actions: vec![bench.file(Verb::FsRead, "a")],
    });
    let effects = bench.session.step(now, event);
    assert!(effects.denial().is_none());
    let parts = effects.into_parts();
    assert_eq!(parts.permits.len(), 1);
    assert!(parts.without_permits().permits.is_empty());
}

#[test]
fn a_permit_is_spent_on_exactly_what_it_is_for() {
    let mut bench = Bench::new(Asking::Refuse);
    let elsewhere = bench.session.add_dir(path("elsewhere")).unwrap();
    let changes = bench.on_files(&[Verb::FsModify, Verb::FsDelete], ".");
    let grant = bench.grant(changes, Uses::Uncounted, SESSION);
    let content = sha256(b"a");
    let (here, now) = (bench.dir, bench.now());
    let mut permit = |check: &dyn Fn(hermitcrab_core::monitor::Permit<'_>)| {
        let event = Event::Call(Call {
            by: AgentId::FIRST,
            tool: Tool::WriteFile,
            actions: vec![bench.file(Verb::FsModify, "a")],
        });
        let mut permits = bench.session.step(now, event).into_parts().permits;
        assert_eq!(permits.len(), 1);
        check(permits.pop().unwrap());
    };
    permit(&|permit| {
        let shown = format!("{permit:?}");
        assert!(shown.contains("fs.modify dir0:a") && shown.contains(&grant.to_string()));
        let spent = permit
            .spend_on_path(Verb::FsModify, here, &path("a"))
            .unwrap();
        assert_eq!(spent.grant(), grant);
    });
    for (verb, dir, below) in [
        (Verb::FsDelete, here, "a"),
        (Verb::FsModify, elsewhere, "a"),
        (Verb::FsModify, here, "b"),
        (Verb::FsDelete, elsewhere, "b"),
    ] {
        permit(&|permit| {
            let denial = permit.spend_on_path(verb, dir, &path(below)).unwrap_err();
            assert_eq!(denial.code(), DenialCode::PermitMismatch, "{verb} {below}");
        });
    }
    for (below, digest, expected) in [
        ("a", content, None),
        ("a", sha256(b"b"), Some(DenialCode::ChangedSinceShown)),
        ("b", content, Some(DenialCode::PermitMismatch)),
    ] {
        permit(&|permit| {
            let spent = permit.spend_on_content(Verb::FsModify, here, &path(below), digest);
            assert_eq!(spent.err().map(|denial| denial.code()), expected, "{below}");
        });
    }
}

fn running(bench: &mut Bench) -> GrantId {
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    let seen = bench.grant(reading, Uses::Uncounted, SESSION);
    assert_eq!(bench.run("make"), Came::Permitted(1));
    seen
}

#[test]
fn a_command_ends_with_any_grant_that_lets_it_see_something() {
    let mut bench = Bench::new(Asking::Refuse);
    let seen = running(&mut bench);
    let call = bench.call.unwrap();
    assert_eq!(bench.session.why_stopped(call), None);
    assert!(bench.session.leans_on(call, &[seen]));
    bench.step(Event::Revoke(seen));
    assert_eq!(bench.stopped, [call]);
    assert_eq!(bench.session.why_stopped(call), Some(DenialCode::Revoked));
    assert!(!bench.session.leans_on(call, &[]), "it was told to stop");
}

#[test]
fn a_command_does_not_lean_on_what_is_over() {
    let mut bench = Bench::new(Asking::Refuse);
    let seen = running(&mut bench);
    let call = bench.call.unwrap();
    bench.step(Event::Revoke(seen));
    assert!(bench.stopped.is_empty());
    assert!(!bench.session.leans_on(call, &[seen]));
    assert_eq!(bench.session.why_stopped(call), Some(DenialCode::Revoked));
    bench.finish();
    assert!(!bench.session.leans_on(call, &[]), "it is over");
    assert_eq!(bench.session.why_stopped(call), None);
}

#[test]
fn what_was_heard_is_recorded_once_by_its_kind() {
    let mut bench = Bench::new(Asking::Prompt);
    let last = |bench: &Bench| bench.ledger.last().unwrap().text.clone();
    for (source, word) in [
        (Source::User, "user"),
        (Source::Model, "model"),
        (Source::File, "file"),
        (Source::Command, "command"),
        (Source::Network, "network"),
    ] {
        assert_eq!(source.as_str(), word);
        let before = bench.ledger.len();
        hear(&mut bench, source);
        assert_eq!(bench.ledger.len(), before + 1, "{word}");
        assert_eq!(last(&bench), format!("heard by agent0: {word}"));
        hear(&mut bench, source);
        assert_eq!(bench.ledger.len(), before + 1, "{word} is no news");
    }
    assert_eq!(Source::Secret.as_str(), "secret");
}

fn adopt(bench: &mut Bench) {
    let here = Surroundings {
        audience: Audience::new(Name::parse("workspace-1").unwrap()),
        site: None,
        boot: BootId::from_bytes([1; 16]),
        now: WallTime::from_millis(5),
        in_boot: Instant::BOOT,
        isolation: Isolation::Isolated,
    };
    let place = PortableObject::tree(path("home/u/proj"));
    let cap = PortableCap::new(Verb::FsModify, place).unwrap();
    let standing = Standing {
        id: StandingId::new(3),
        audience: here.audience.clone(),
        site: here.site,
        authority: PortableAuthority::from_caps([cap]).unwrap(),
        uses_left: Uses::Uncounted,
        isolation: Isolation::Isolated,
        made_at: here.now,
        confirmed_at: here.now,
        confirm_every: GRANT_LIFETIME_MAX,
        boot: here.boot,
        confirmed_in_boot: Some(here.in_boot),
        kept: Kept::Confirmed,
    };
    let holder = AgentId::FIRST;
    let came = bench.step(Event::Adopt {
        holder,
        standing,
        here,
    });
    assert_eq!(came, Came::Nothing);
}

#[test]
fn a_kept_grant_does_not_vouch_for_what_was_read_before_it_was_taken_up() {
    let mut bench = Bench::new(Asking::Prompt);
    adopt(&mut bench);
    assert_eq!(bench.write("a"), Came::Permitted(1));
    let mut bench = Bench::new(Asking::Prompt);
    hear(&mut bench, Source::File);
    adopt(&mut bench);
    assert_eq!(bench.write("a"), Came::Asked);
    let because = bench.question.as_ref().unwrap().because();
    assert_eq!(because, DenialCode::UntrustedFlow);
}

#[test]
fn a_no_to_something_else_is_not_remembered_as_a_no_to_this() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write("a"), Came::Asked);
    let question = bench.question.clone().unwrap();
    let came = bench.step(Event::AnswerAndRemember(Answer {
        question: question.id(),
        digest: sha256(b"another question"),
        reply: Reply::No,
    }));
    assert_eq!(came, Came::Denied(DenialCode::ChangedSinceShown));
    assert_eq!(bench.write("a"), Came::Asked);
}

#[test]
fn whoever_may_ask_already_is_given_no_second_right_to() {
    let mut bench = Bench::new(Asking::Prompt);
    let before = bench.session.table().len();
    bench.step(Event::SetAsking(Asking::ApproveAll));
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.session.table().len(), before);
    bench.step(Event::SetAsking(Asking::Refuse));
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.session.table().len(), before + 1);
    assert_eq!(bench.read("a"), Came::Asked);
}

#[test]
fn a_proposal_can_be_accepted_until_its_last_instant_and_not_after() {
    for (seconds, tick, expected) in [
        (600, true, Came::Nothing),
        (600, false, Came::Nothing),
        (601, false, Came::Denied(DenialCode::NoAnswer)),
        (601, true, Came::Denied(DenialCode::UnknownProposal)),
    ] {
        let mut bench = Bench::new(Asking::Refuse);
        let propose = Event::Propose(ProposalSpec {
            judge: Name::parse("judge-1").unwrap(),
            holder: AgentId::FIRST,
            authority: bench.on_files(&[Verb::FsRead], "."),
            uses: Uses::Uncounted,
            lifetime: SESSION,
        });
        let now = bench.now();
        let shown = bench.session.step(now, propose).into_parts();
        bench.ledger.extend(shown.records);
        let shown = shown.proposal.unwrap();
        assert_eq!(shown.id().to_string(), "proposal0");
        bench.seconds = seconds;
        if tick {
            bench.step(Event::Tick);
        }
        let accept = Event::Accept {
            proposal: shown.id(),
            digest: shown.digest(),
            by: Acceptor::User,
        };
        assert_eq!(bench.step(accept), expected, "{seconds} {tick}");
    }
}

#[test]
fn the_words_that_are_offered_mean_what_they_say() {
    for (word, reply) in [
        ("once", Reply::Yes(Scope::Once)),
        ("session", Reply::Yes(Scope::Session)),
        ("always", Reply::Yes(Scope::Always)),
        ("deny", Reply::No),
        ("Once", Reply::Unknown("Once".into())),
        ("yes", Reply::Unknown("yes".into())),
    ] {
        assert_eq!(Reply::parse(word), reply);
    }
}

#[test]
fn whoever_sees_all_of_a_place_sees_what_is_protected_below_it() {
    let mut config = support::config(Asking::Prompt);
    config.protected = vec![path("home/u/proj/deep/state")];
    let mut bench = Bench::with(config);
    let other = Bench::with({
        let mut config = support::config(Asking::Prompt);
        config.id = 8;
        config
    });
    let touches = |bench: &Bench, below: &str| {
        let below = hermitcrab_core::path::RelPath::parse_dir(below.as_bytes()).unwrap();
        bench.session.rules().touches_protected(bench.dir, &below)
    };
    for (below, expected) in [
        (".", true),
        ("deep", true),
        ("deep/state", true),
        ("deep/state/ledger", true),
        ("deep/state2", false),
        ("deeper", false),
        ("a", false),
    ] {
        assert_eq!(touches(&bench, below), expected, "{below}");
    }
    // Of another session's directory nothing is known.
    bench.dir = other.dir;
    assert!(touches(&bench, "a"));
}

/// For the first agent, anywhere in the workspace.
fn making_files(bench: &Bench) -> GrantSpec {
    GrantSpec {
        holder: AgentId::FIRST,
        authority: bench.on_files(&[Verb::FsCreate], "."),
        uses: Uses::Uncounted,
        lifetime: SESSION,
    }
}

#[test]
fn what_was_lent_is_for_one_tool_alone_and_its_end_is_nobodys_reason() {
    for lent_to in [Tool::Undo, Tool::Directory] {
        let mut bench = Bench::new(Asking::Refuse);
        let now = bench.now();
        let lend = Event::Lend(lent_to, making_files(&bench));
        let parts = bench.session.step(now, lend).into_parts();
        bench.ledger.extend(parts.records);
        let loan = parts.granted.unwrap();
        let record = bench.ledger.last().unwrap();
        let recorded = format!(" by loan for {lent_to} ");
        assert!(record.text.contains(&recorded), "{record:?}");
        let creates = |tool: &Tool| tool.verbs().contains(&Verb::FsCreate);
        for tool in Tool::ALL.into_iter().filter(creates) {
            let actions = vec![bench.file(Verb::FsCreate, "a")];
            let came = bench.call_as(AgentId::FIRST, tool, actions);
            let expected = match tool == lent_to {
                true => Came::Permitted(1),
                false => Came::Denied(DenialCode::NoCap),
            };
            assert_eq!(came, expected, "{tool}, lent to {lent_to}");
        }
        bench.step(Event::Revoke(loan));
        let actions = vec![bench.file(Verb::FsCreate, "a")];
        let came = bench.call_as(AgentId::FIRST, lent_to, actions);
        assert_eq!(came, Came::Denied(DenialCode::NoCap), "{lent_to}");
    }
}

#[test]
fn what_a_command_did_is_not_covered_by_what_was_lent_to_a_plan() {
    let mut bench = Bench::new(Asking::Refuse);
    bench.step(Event::Lend(Tool::Directory, making_files(&bench)));
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    assert_eq!(bench.run("touch a"), Came::Permitted(1));
    let made = vec![bench.file(Verb::FsCreate, "a")];
    assert_eq!(bench.effects(made), Came::Denied(DenialCode::NoCap));
}
