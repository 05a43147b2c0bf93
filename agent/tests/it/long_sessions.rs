//! What is kept, in a session that lasts: its time goes on, and what others confirm stays.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::Fate;
use hermitcrab_core::{
    outcome::DenialCode,
    standing::{StandingId, WallTime},
    time::Millis,
};
use serde_json::json;

use crate::support::machine::{Machine, Opened};

const HOUR: u64 = Millis::from_hours(1).get();

fn write(opened: &mut Opened) -> Fate {
    let first = opened.runtime.first_agent();
    let args = json!({"path": "new.txt", "content": "1"});
    opened.runtime.call(first, "write_file", &args).fate
}

/// A machine on which this was said to making a file, which is gone again, so long ago.
fn said(word: &'static str, hours: u64) -> Machine {
    let mut machine = Machine::new();
    assert_eq!(machine.write(&[word], "new.txt", "1"), (1, true));
    std::fs::remove_file(machine.workspace.join("new.txt")).unwrap();
    machine.now += hours * HOUR;
    machine
}

#[test]
fn a_remembered_answer_is_given_for_twelve_hours_however_early_its_session_began() {
    let machine = said("repeat", 11);
    let mut opened = machine.open(&[]);
    opened.clock.set(HOUR);
    assert_eq!(write(&mut opened), Fate::Ran);
    std::fs::remove_file(machine.workspace.join("new.txt")).unwrap();
    opened.clock.set(HOUR + 1);
    let no = Fate::AskedRefused(DenialCode::RejectedByUser);
    assert_eq!(write(&mut opened), no);
    assert!(opened.user.shown.borrow()[0].contains("new.txt"));
}

#[test]
fn a_kept_grant_does_not_begin_anew_with_each_session_of_one_program() {
    let machine = said("always", 24 * 30 - 1);
    let mut opened = machine.open(&[]);
    assert_eq!(opened.taken_in.adopted.len(), 1);
    for (time, fate) in [
        (HOUR, Fate::Ran),
        (HOUR + 1, Fate::AskedRefused(DenialCode::RejectedByUser)),
    ] {
        opened.clock.set(time);
        opened.runtime.begin_session().unwrap();
        let first = opened.runtime.first_agent();
        opened.runtime.grant_basics(first).unwrap();
        assert_eq!(write(&mut opened), fate, "{time}");
        let _gone = std::fs::remove_file(machine.workspace.join("new.txt"));
    }
}

#[test]
fn what_is_kept_in_a_session_is_kept_from_that_moment_on() {
    let machine = Machine::new();
    let mut opened = machine.open(&["always"]);
    opened.clock.set(5 * HOUR);
    assert_eq!(write(&mut opened), Fate::Ran);
    let keeper = machine.keeper();
    let kept = &keeper.contents().standing[0].standing;
    let then = WallTime::from_millis(machine.now + 5 * HOUR);
    assert_eq!((kept.made_at, kept.confirmed_at), (then, then));
}

#[test]
fn what_somebody_confirms_elsewhere_does_not_end_where_it_counts() {
    let mut machine = said("always", 1);
    let mut opened = machine.open(&[]);
    // By then the clock on the wall was set, too.
    opened.clock.set(HOUR);
    machine.now += 3 * HOUR;
    machine
        .keeper()
        .confirm(StandingId::new(0))
        .unwrap()
        .unwrap();
    assert_eq!(write(&mut opened), Fate::Ran);
    assert!(!machine.ledger().contains("was ended in the store"));
}
