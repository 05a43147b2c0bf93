//! Who may speak for the user: remembered answers, proposals. And what none of them reaches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::{Acceptor, Answer, ProposalSpec, Reply, Said, Scope, Stance},
    authority::{Host, HostPattern, Name, Object, Port, Verb},
    digest::Digest,
    grant::{AgentId, Origin, Uses},
    label::{Label, Readers, Source},
    outcome::DenialCode,
    session::{Asking, Event},
    tool::Tool,
};
use support::{Bench, Came, ONCE, SESSION, any_program, sha256};

// Remembered answers

fn remember(bench: &mut Bench, reply: Reply) -> Came {
    let question = bench.question.clone().unwrap();
    let answer = Answer {
        question: question.id(),
        digest: question.digest(),
        reply,
    };
    let came = bench.step(Event::AnswerAndRemember(answer));
    if matches!(came, Came::Permitted(_)) {
        bench.finish();
    }
    came
}

#[test]
fn a_remembered_yes_saves_the_same_question_and_no_other() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write("a"), Came::Asked);
    let yes = Reply::Yes(Scope::Once);
    assert_eq!(remember(&mut bench, yes), Came::Permitted(1));
    assert_eq!(bench.write("a"), Came::Permitted(1));
    assert_eq!(bench.write("a"), Came::Permitted(1));
    assert_eq!(bench.write("b"), Came::Asked, "another place");
    assert_eq!(bench.read("a"), Came::Asked, "another verb");
    let other = Object::tree(bench.dir, support::path("a"));
    let other = Action::new(Verb::FsModify, other, sha256(b"other text")).unwrap();
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::WriteFile, vec![other]),
        Came::Asked,
        "another content"
    );
    let made: Vec<Uses> = bench
        .session
        .held_by(AgentId::FIRST)
        .filter(|grant| grant.origin() == Origin::Remembered)
        .map(|grant| grant.limits().uses)
        .collect();
    assert_eq!(made, [ONCE, ONCE]);
}

#[test]
fn a_long_session_goes_on_asking() {
    let mut bench = Bench::new(Asking::Prompt);
    for number in 0..300 {
        assert_eq!(bench.write("a"), Came::Asked, "{number}");
        let no = Came::Denied(DenialCode::RejectedByUser);
        assert_eq!(bench.answer(Reply::No), no, "{number}");
    }
}

#[test]
fn a_remembered_no_refuses_without_asking_again() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write("a"), Came::Asked);
    let no = Came::Denied(DenialCode::RejectedByUser);
    assert_eq!(remember(&mut bench, Reply::No), no);
    assert_eq!(bench.write("a"), no);
    let both = vec![
        bench.file(Verb::FsModify, "b"),
        bench.file(Verb::FsModify, "a"),
    ];
    assert_eq!(bench.call_as(AgentId::FIRST, Tool::WriteFile, both), no);
}

#[test]
fn remembered_answers_are_listed_and_cleared() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.write("a");
    remember(&mut bench, Reply::Yes(Scope::Once));
    bench.write("b");
    remember(&mut bench, Reply::No);
    let list: Vec<(u32, String, Said)> = bench
        .session
        .memory()
        .list()
        .map(|(id, row)| (id.get(), row.cap.asked().to_string(), row.said))
        .collect();
    assert_eq!(
        list,
        [
            (0, "fs.modify /home/u/proj/a".into(), Said::Yes),
            (1, "fs.modify /home/u/proj/b".into(), Said::No),
        ]
    );
    let first = bench.session.memory().list().next().unwrap().0;
    bench.step(Event::Forget(Some(first)));
    assert_eq!(bench.write("a"), Came::Asked);
    bench.step(Event::Forget(None));
    assert_eq!(bench.session.memory().list().count(), 0);
    assert_eq!(bench.write("b"), Came::Asked);
}

#[test]
fn what_is_asked_each_time_and_what_was_not_answered_is_not_remembered() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.write(".env"), Came::Asked);
    remember(&mut bench, Reply::Yes(Scope::Session));
    assert_eq!(bench.write(".env"), Came::Asked);
    for reply in [
        Reply::Silence,
        Reply::Cancelled,
        Reply::Unknown("ok".into()),
    ] {
        assert_eq!(bench.write("a"), Came::Asked);
        remember(&mut bench, reply);
    }
    assert_eq!(bench.session.memory().list().count(), 0);
}

#[test]
fn a_remembered_yes_lifts_no_refusal() {
    let mut bench = Bench::new(Asking::Prompt);
    bench.write("a");
    remember(&mut bench, Reply::Yes(Scope::Once));
    // What the yes itself made was for one use, and is spent.
    bench.step(Event::SetAsking(Asking::Refuse));
    assert_eq!(bench.write("a"), Came::Denied(DenialCode::Exhausted));
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.write("a"), Came::Permitted(1));
    let deny = hermitcrab_core::rules::ConfiguredRule::new(
        "keep",
        Stance::Deny,
        vec![Verb::FsModify],
        hermitcrab_core::rules::Pattern::Named("a".into()),
        ("rules.toml", 3, hermitcrab_core::rules::Layer::Project),
    );
    bench.session.add_rule(deny.unwrap()).unwrap();
    assert_eq!(bench.write("a"), Came::Denied(DenialCode::DeniedByRule));
}

#[test]
fn an_answer_counts_for_nothing_once_the_right_to_ask_has_ended() {
    let yes = || Reply::Yes(Scope::Once);
    let mut bench = Bench::new(Asking::Prompt);
    // A call that has not begun.
    assert_eq!(bench.write("a"), Came::Asked);
    bench.step(Event::SetAsking(Asking::Refuse));
    assert_eq!(bench.answer(yes()), Came::Denied(DenialCode::Revoked));
    // Nothing of the yes is left lying there.
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.write("a"), Came::Asked);
    // Nor is it kept for a later time, and a no is still a no.
    bench.step(Event::SetAsking(Asking::Refuse));
    assert_eq!(
        remember(&mut bench, yes()),
        Came::Denied(DenialCode::Revoked)
    );
    assert_eq!(bench.session.memory().list().count(), 0);
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.write("a"), Came::Asked);
    bench.step(Event::SetAsking(Asking::Refuse));
    assert_eq!(
        bench.answer(Reply::No),
        Came::Denied(DenialCode::RejectedByUser)
    );
    // Who gave it again before the answer wants one.
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.write("a"), Came::Asked);
    bench.step(Event::SetAsking(Asking::Refuse));
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.answer(yes()), Came::Permitted(1));
}

// Proposals

fn proposal(bench: &Bench, below: &str) -> Event {
    Event::Propose(ProposalSpec {
        judge: Name::parse("judge-1").unwrap(),
        holder: AgentId::FIRST,
        authority: bench.on_files(&[Verb::FsRead], below),
        uses: Uses::AtMost(2),
        lifetime: SESSION,
    })
}

fn propose(bench: &mut Bench, below: &str) -> hermitcrab_core::approval::Proposal {
    let (now, event) = (bench.now(), proposal(bench, below));
    let parts = bench.session.step(now, event).into_parts();
    bench.ledger.extend(parts.records);
    parts.proposal.unwrap()
}

#[test]
fn a_judges_proposal_alone_gives_nothing() {
    let mut bench = Bench::new(Asking::Refuse);
    propose(&mut bench, ".");
    assert_eq!(bench.read("a"), Came::Denied(DenialCode::NoCap));
}

#[test]
fn proposals_are_numbered_one_after_the_other() {
    let mut bench = Bench::new(Asking::Refuse);
    let numbers = [".", "src", "."].map(|below| propose(&mut bench, below).id().get());
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_person_accepts_exactly_what_was_shown_once() {
    let mut bench = Bench::new(Asking::Refuse);
    let shown = propose(&mut bench, "src");
    let accept = |digest: Digest| Event::Accept {
        proposal: shown.id(),
        digest,
        by: Acceptor::User,
    };
    assert_eq!(
        bench.step(accept(sha256(b"something else"))),
        Came::Denied(DenialCode::ChangedSinceShown)
    );
    assert_eq!(
        bench.step(accept(shown.digest())),
        Came::Denied(DenialCode::UnknownProposal),
        "a wrong word settles it"
    );
    let shown = propose(&mut bench, "src");
    let accept = Event::Accept {
        proposal: shown.id(),
        digest: shown.digest(),
        by: Acceptor::User,
    };
    assert_eq!(bench.step(accept), Came::Nothing);
    assert_eq!(bench.read("src/a"), Came::Permitted(1));
    assert_eq!(bench.read("src/a"), Came::Permitted(1));
    assert_eq!(bench.read("src/a"), Came::Denied(DenialCode::Exhausted));
    assert_eq!(bench.read("b"), Came::Denied(DenialCode::NoCap));
}

#[test]
fn a_holder_accepts_no_more_than_it_holds() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let some = bench.on_files(&[Verb::FsRead], "src");
    let from = bench
        .try_grant(child, some, Uses::Uncounted, SESSION)
        .unwrap();
    for (below, agent, expected) in [
        (".", child, Came::Denied(DenialCode::Amplifies)),
        ("src", AgentId::FIRST, Came::Denied(DenialCode::NoCap)),
        ("src/deep", child, Came::Nothing),
    ] {
        let shown = propose(&mut bench, below);
        let accept = Event::Accept {
            proposal: shown.id(),
            digest: shown.digest(),
            by: Acceptor::Holder { agent, from },
        };
        assert_eq!(bench.step(accept), expected, "{below}");
    }
    assert_eq!(bench.read("src/deep/a"), Came::Permitted(1));
    bench.step(Event::Revoke(from));
    assert_eq!(bench.read("src/deep/a"), Came::Denied(DenialCode::Revoked));
}

#[test]
fn a_proposal_declined_or_left_lying_cannot_be_accepted() {
    let mut bench = Bench::new(Asking::Refuse);
    let declined = propose(&mut bench, ".");
    assert_eq!(bench.step(Event::Decline(declined.id())), Came::Nothing);
    let late = propose(&mut bench, ".");
    let accept = |shown: &hermitcrab_core::approval::Proposal| Event::Accept {
        proposal: shown.id(),
        digest: shown.digest(),
        by: Acceptor::User,
    };
    let unknown = Came::Denied(DenialCode::UnknownProposal);
    assert_eq!(bench.step(accept(&declined)), unknown);
    bench.seconds = 601;
    assert_eq!(
        bench.step(accept(&late)),
        Came::Denied(DenialCode::NoAnswer)
    );
    let stale = propose(&mut bench, ".");
    bench.seconds = 1300;
    bench.step(Event::Tick);
    assert_eq!(bench.step(accept(&stale)), unknown);
    assert_eq!(bench.read("a"), Came::Denied(DenialCode::NoCap));
}

// What nothing lifts

#[test]
fn what_is_not_waivable_is_refused_whatever_is_held_and_answered() {
    let mut bench = Bench::new(Asking::ApproveAll);
    let root = bench
        .session
        .add_dir(hermitcrab_core::path::RelPath::root())
        .unwrap();
    let place = |below: &str| Object::tree(root, support::path(below));
    let everything = hermitcrab_core::authority::Authority::from_caps(
        Verb::FILES.map(|verb| hermitcrab_core::authority::Cap::new(verb, place(".")).unwrap()),
    );
    bench.grant(everything.unwrap(), Uses::Uncounted, SESSION);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    let mut check = |verb, below: &str, expected| {
        let action = Action::new(verb, place(below), Digest::NONE).unwrap();
        let came = bench.call_as(AgentId::FIRST, Tool::Directory, vec![action]);
        if let Came::Permitted(_) = came {
            bench.finish();
        }
        assert_eq!(came, expected, "{verb} {below}");
    };
    let denied = Came::Denied;
    check(
        Verb::FsModify,
        "proc/sys/kernel/x",
        denied(DenialCode::IsolationControl),
    );
    check(
        Verb::FsModify,
        "proc/self/uid_map",
        denied(DenialCode::IsolationControl),
    );
    check(
        Verb::FsCreate,
        "sys/fs/cgroup/x",
        denied(DenialCode::IsolationControl),
    );
    check(Verb::FsRead, "sys/fs/cgroup/x", Came::Permitted(1));
    check(Verb::FsRead, "dev/sda", denied(DenialCode::RawDevice));
    check(Verb::FsModify, "dev/mem", denied(DenialCode::RawDevice));
    check(Verb::FsList, "dev/disk", Came::Permitted(1));
    check(Verb::FsRead, "dev/null", Came::Permitted(1));
    check(
        Verb::FsModify,
        "home/u/.hermitcrab/config",
        denied(DenialCode::Protected),
    );
    check(Verb::FsDelete, "home/u", denied(DenialCode::Protected));
    check(Verb::FsRead, "home/u/notes", Came::Permitted(1));
}

#[test]
fn a_secret_never_enters_what_a_model_reads() {
    let mut bench = Bench::new(Asking::ApproveAll);
    let secret = Label::new(Source::Secret, Readers::Anyone);
    let mixed = Label::new(Source::File, Readers::Anyone).join(&secret);
    for label in [secret, mixed] {
        let agent = AgentId::FIRST;
        let heard = Event::Heard { agent, label };
        assert_eq!(bench.step(heard), Came::Denied(DenialCode::SecretToModel));
    }
    assert!(bench.session.flow().label(AgentId::FIRST).is_none());
}

#[test]
fn a_connection_names_its_peer() {
    let bench = Bench::new(Asking::Prompt);
    let host = |name: HostPattern| {
        let port = Port::Only(443);
        Action::new(
            Verb::NetConnect,
            Object::Host(Host { name, port }),
            Digest::NONE,
        )
        .unwrap()
    };
    let name = || Name::parse("example.org").unwrap();
    let explain = |action: &Action| {
        bench
            .session
            .explain(AgentId::FIRST, Tool::Terminal, action)
    };
    let wide = explain(&host(HostPattern::Subdomains(name())));
    assert_eq!(wide.code, Some(DenialCode::NetworkUnnamed));
    assert_eq!(
        explain(&host(HostPattern::Exact(name()))).stance,
        Stance::Ask
    );
}

#[test]
fn what_was_said_is_told_in_its_own_word() {
    assert_eq!((Said::Yes.as_str(), Said::No.as_str()), ("yes", "no"));
}

#[test]
fn no_tool_changes_how_the_agent_is_set_up_and_other_acts_of_a_session_are_asked_about() {
    let bench = Bench::new(Asking::ApproveAll);
    let stance = |verb| {
        let action = Action::new(verb, Object::Session, Digest::NONE).unwrap();
        let told = bench
            .session
            .explain(AgentId::FIRST, Tool::Terminal, &action);
        (told.stance, told.code)
    };
    let denied = (Stance::Deny, Some(DenialCode::Protected));
    assert_eq!(stance(Verb::ConfigChange), denied);
    assert_ne!(stance(Verb::AgentSpawn), denied);
    assert_ne!(stance(Verb::UserAsk), denied);
}

// A yes for one time

/// The first agent holds the right to make `a`, and is asked about `b` with it.
fn asked_beside_what_is_held(bench: &mut Bench) -> (hermitcrab_core::grant::GrantId, Vec<Action>) {
    let held = bench.on_files(&[Verb::FsModify], "a");
    let held = bench.grant(held, Uses::Uncounted, SESSION);
    let actions = vec![
        bench.file(Verb::FsModify, "a"),
        bench.file(Verb::FsModify, "b"),
    ];
    let came = bench.call_as(AgentId::FIRST, Tool::WriteFile, actions.clone());
    assert_eq!(came, Came::Asked);
    (held, actions)
}

#[test]
fn a_yes_for_one_time_that_came_to_nothing_lets_nothing_else_happen() {
    let mut bench = Bench::new(Asking::Prompt);
    let (held, _) = asked_beside_what_is_held(&mut bench);
    bench.step(Event::Revoke(held));
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::Revoked)
    );
    // Another call, another content: the user has seen nothing of it.
    assert_eq!(bench.write("b"), Came::Asked);
}

#[test]
fn a_yes_for_one_time_to_what_was_stopped_meanwhile_lets_nothing_else_happen() {
    let mut bench = Bench::new(Asking::Prompt);
    let runs = bench.grant(any_program(), Uses::Uncounted, SESSION);
    assert_eq!(bench.run("touch b"), Came::Permitted(1));
    let effect = bench.file(Verb::FsModify, "b");
    assert_eq!(bench.effects(vec![effect]), Came::Asked);
    bench.step(Event::Revoke(runs));
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::Revoked)
    );
    bench.finish();
    assert_eq!(bench.write("b"), Came::Asked);
}

#[test]
fn a_yes_for_one_time_is_not_used_up_by_what_is_held_anyway() {
    let mut bench = Bench::new(Asking::Prompt);
    let held = bench.on_files(&[Verb::FsDelete], "d/x");
    bench.grant(held, Uses::Uncounted, SESSION);
    let actions = vec![
        bench.file(Verb::FsDelete, "d/x"),
        bench.file(Verb::FsDelete, "d"),
    ];
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::Patch, actions),
        Came::Asked
    );
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Permitted(2),
        "what is held covers the one, the yes the other"
    );
}

/// Who spends a use of a grant on `b` while its holder is asked about `a`.
#[derive(Clone, Copy, Debug)]
enum Spends {
    Nobody,
    /// Another call of the same agent.
    Itself,
    /// One it was passed on to before.
    Child,
    /// One it is passed on to meanwhile.
    NewChild,
    /// What a command changed that runs meanwhile.
    Command,
}

#[test]
fn a_use_that_is_spent_while_the_rest_is_asked_about_is_not_made_up_for_by_the_yes() {
    let whose = [
        Spends::Nobody,
        Spends::Itself,
        Spends::Child,
        Spends::NewChild,
        Spends::Command,
    ];
    for (who, uses) in whose.into_iter().flat_map(|who| [(who, 1), (who, 2)]) {
        let mut bench = Bench::new(Asking::Prompt);
        let on_b = bench.on_files(&[Verb::FsModify], "b");
        let held = bench.grant(on_b, Uses::AtMost(uses), SESSION);
        bench.grant(any_program(), Uses::Uncounted, SESSION);
        let change = |bench: &Bench, name| vec![bench.file(Verb::FsModify, name)];
        let child = match who {
            Spends::Child => Some(bench.spawn(AgentId::FIRST, &[held]).unwrap().0),
            _ => None,
        };
        let running = match who {
            Spends::Command => {
                assert_eq!(bench.run("touch b"), Came::Permitted(1));
                bench.call
            }
            _ => None,
        };
        let both = ["a", "b"].map(|name| bench.file(Verb::FsModify, name));
        let asked = bench.call_as(AgentId::FIRST, Tool::Patch, both.into());
        assert_eq!(asked, Came::Asked, "{who:?}");
        let asking = bench.call;
        let on_b = change(&bench, "b");
        let spent = match who {
            Spends::Nobody => Came::Permitted(1),
            Spends::Itself => bench.call_as(AgentId::FIRST, Tool::WriteFile, on_b),
            Spends::Child => bench.call_as(child.unwrap(), Tool::WriteFile, on_b),
            Spends::NewChild => {
                let (child, _) = bench.spawn(AgentId::FIRST, &[held]).unwrap();
                bench.call_as(child, Tool::WriteFile, on_b)
            }
            Spends::Command => {
                bench.call = running;
                bench.effects(on_b)
            }
        };
        assert_eq!(spent, Came::Permitted(1), "{who:?}");
        if !matches!(who, Spends::Nobody) {
            bench.finish();
        }
        let is_left = uses == 2 || matches!(who, Spends::Nobody);
        let came = bench.answer(Reply::Yes(Scope::Once));
        if is_left {
            assert_eq!(came, Came::Permitted(2), "{who:?}");
            continue;
        }
        assert_eq!(came, Came::Denied(DenialCode::Exhausted), "{who:?}");
        // Nor does the yes lie there for another call, and the one that asked is over.
        let again = change(&bench, "a");
        bench.call = asking;
        assert_eq!(
            bench.effects(again),
            Came::Denied(DenialCode::UnknownCall),
            "{who:?}"
        );
        assert_eq!(bench.write("a"), Came::Asked, "{who:?}");
        assert_eq!(bench.write("b"), Came::Asked, "{who:?}");
    }
}

#[test]
fn of_two_questions_that_count_on_the_last_use_one_yes_gets_it() {
    let mut bench = Bench::new(Asking::Prompt);
    let on_b = bench.on_files(&[Verb::FsModify], "b");
    bench.grant(on_b, ONCE, SESSION);
    let mut ask = |other: &str| {
        let both = [other, "b"].map(|name| bench.file(Verb::FsModify, name));
        let asked = bench.call_as(AgentId::FIRST, Tool::Patch, both.into());
        assert_eq!(asked, Came::Asked);
        bench.question.clone()
    };
    let [first, second] = ["a", "c"].map(&mut ask);
    bench.question = second;
    assert_eq!(bench.answer(Reply::Yes(Scope::Session)), Came::Permitted(2));
    bench.question = first;
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Once)),
        Came::Denied(DenialCode::Exhausted)
    );
    assert_eq!(bench.write("a"), Came::Asked);
}
