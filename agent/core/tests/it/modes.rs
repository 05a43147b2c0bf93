//! What the mode of a session may say for the user, and what it never reaches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::Stance,
    authority::{Authority, Cap, Object, Reversibility, Verb},
    digest::Digest,
    grant::{AgentId, Origin, Uses},
    label::{Label, Readers, Source},
    outcome::DenialCode,
    rules::Isolation,
    session::{Asking, Event, SessionConfig},
    tool::Tool,
};
use support::{Bench, Came, ONCE, SESSION, config};

#[test]
fn the_table_of_modes_is_what_it_is_said_to_be() {
    use Reversibility::{Harmless, Irrevocable, Lossy, Undoable};
    for isolation in [
        Isolation::Isolated,
        Isolation::Unisolated,
        Isolation::Unknown,
    ] {
        for class in [Harmless, Undoable, Lossy, Irrevocable] {
            let stance = |mode: Asking| mode.stance(isolation, class);
            assert_eq!(stance(Asking::Refuse), Stance::Deny);
            assert_eq!(stance(Asking::Prompt), Stance::Ask);
            let all = match (isolation, class) {
                (Isolation::Isolated, Harmless | Undoable | Lossy) => Stance::Allow,
                _ => Stance::Ask,
            };
            assert_eq!(stance(Asking::ApproveAll), all, "{isolation:?} {class}");
        }
    }
    for mode in Asking::ALL {
        assert_eq!(Asking::parse(mode.as_str()), Some(mode));
    }
    assert_eq!(Asking::parse("Prompt"), None);
}

#[test]
fn approving_all_allows_what_can_be_undone_and_records_why() {
    let mut bench = Bench::new(Asking::ApproveAll);
    assert_eq!(bench.read("a"), Came::Permitted(1));
    assert_eq!(bench.write("a"), Came::Permitted(1));
    let made = bench.session.held_by(AgentId::FIRST).last().unwrap();
    assert_eq!((made.origin(), made.limits().uses), (Origin::Mode, ONCE));
    assert!(
        bench
            .ledger
            .iter()
            .any(|record| record.text.contains("by mode"))
    );
}

#[test]
fn approving_all_reaches_past_no_rule() {
    let mut bench = Bench::new(Asking::ApproveAll);
    assert_eq!(bench.read(".env"), Came::Asked, "a sensitive name");
    let own = Object::tree(
        bench.session.add_dir(support::path("home/u")).unwrap(),
        support::path(".hermitcrab/ledger"),
    );
    let own = Action::new(Verb::FsRead, own, Digest::NONE).unwrap();
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::ReadFile, vec![own]),
        Came::Denied(DenialCode::Protected)
    );
    let mut unproved = Bench::with(SessionConfig {
        isolation: Isolation::Unknown,
        ..config(Asking::ApproveAll)
    });
    assert_eq!(
        unproved.run("ls"),
        Came::Denied(DenialCode::IsolationUnknown)
    );
    assert_eq!(unproved.write("a"), Came::Asked);
}

/// A grant on one file opens the directory it lies in. Nobody said that the agent may do
/// anything there but that.
#[test]
fn approving_all_speaks_for_the_workspace_alone() {
    let mut bench = Bench::new(Asking::ApproveAll);
    let elsewhere = bench
        .session
        .add_dir(support::path("home/u/other"))
        .unwrap();
    let on = |verb, name: &str| {
        let place = Object::tree(elsewhere, support::path(name));
        Action::new(verb, place, Digest::NONE).unwrap()
    };
    let held = Object::tree(elsewhere, support::path("one"));
    let held = Authority::from_caps([Cap::new(Verb::FsRead, held).unwrap()]).unwrap();
    bench.grant(held, Uses::Uncounted, SESSION);
    for (name, came) in [("one", Came::Permitted(1)), ("two", Came::Asked)] {
        let actions = vec![on(Verb::FsRead, name)];
        let read = bench.call_as(AgentId::FIRST, Tool::ReadFile, actions);
        assert_eq!(read, came, "{name}");
    }
    let made = vec![on(Verb::FsCreate, "two")];
    let explained = bench
        .session
        .explain(AgentId::FIRST, Tool::WriteFile, &made[0]);
    assert_eq!(explained.stance, Stance::Ask);
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::WriteFile, made),
        Came::Asked
    );
    assert_eq!(bench.write("two"), Came::Permitted(1), "where it works");
    // A directory that is open beneath the workspace is part of it.
    let beneath = bench
        .session
        .add_dir(support::path("home/u/proj/sub"))
        .unwrap();
    let place = Object::tree(beneath, support::path("two"));
    let made = vec![Action::new(Verb::FsCreate, place, Digest::NONE).unwrap()];
    assert_eq!(
        bench.call_as(AgentId::FIRST, Tool::WriteFile, made),
        Came::Permitted(1)
    );
}

#[test]
fn approving_all_asks_once_something_untrusted_was_read() {
    let mut bench = Bench::new(Asking::ApproveAll);
    bench.step(Event::Heard {
        agent: AgentId::FIRST,
        label: Label::new(Source::File, Readers::Anyone),
    });
    assert_eq!(bench.write("a"), Came::Asked);
    assert_eq!(bench.read("a"), Came::Permitted(1));
}

#[test]
fn approving_all_is_no_business_of_a_child_without_the_right_to_ask() {
    let mut bench = Bench::new(Asking::ApproveAll);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    assert_eq!(bench.read_as(child, "a"), Came::Denied(DenialCode::NoCap));
}

#[test]
fn the_user_changes_the_mode_in_mid_session() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.read("a"), Came::Asked);
    bench.step(Event::SetAsking(Asking::Refuse));
    assert_eq!(bench.read("b"), Came::Denied(DenialCode::NoCap));
    bench.step(Event::SetAsking(Asking::ApproveAll));
    assert_eq!(bench.read("b"), Came::Permitted(1));
    bench.step(Event::SetAsking(Asking::Prompt));
    assert_eq!(bench.read("b"), Came::Asked);
}
