//! Grants that outlive a session, through the runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::{
    audit::{Ledger, LedgerError},
    runtime::Fate,
    store::State,
};
use hermitcrab_core::{
    outcome::DenialCode,
    rules::Isolation,
    standing::{Due, StandingId},
    time::Millis,
};
use serde_json::json;

use crate::support::machine::Machine;

const MONTH: Millis = Millis::from_hours(24 * 30);

#[test]
fn always_is_kept_and_counts_without_a_question_in_the_next_session() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    // Making it was granted; changing it is another effect.
    assert_eq!(machine.write(&["always"], "a.txt", "2"), (1, true));
    assert_eq!(machine.write(&[], "a.txt", "3"), (0, true));
    assert_eq!(machine.write(&[], "b.txt", "1"), (1, false), "another file");
    let ledger = machine.ledger();
    for line in [
        "to be kept: always fs.create only /",
        "kept as standing0",
        "kept as standing1",
    ] {
        assert!(ledger.contains(line), "`{line}`: {ledger}");
    }
}

#[test]
fn always_said_too_late_is_kept_no_more_than_it_counts() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always, late"], "a.txt", "1"), (1, false));
    assert!(!machine.ledger().contains("to be kept"));
    assert_eq!(machine.write(&[], "a.txt", "1"), (1, false));
}

#[test]
fn once_and_session_leave_nothing_behind() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["once"], "a.txt", "1"), (1, true));
    assert_eq!(machine.write(&["session"], "a.txt", "2"), (1, true));
    assert_eq!(machine.write(&[], "a.txt", "3"), (1, false));
    assert!(!machine.state_dir().join("store.redb").exists());
}

#[test]
fn what_is_asked_about_each_time_is_never_kept() {
    let machine = Machine::new();
    for word in ["always", "repeat"] {
        assert_eq!(machine.write(&[word], ".env", word), (1, true), "{word}");
        std::fs::remove_file(machine.workspace.join(".env")).unwrap();
        assert_eq!(machine.write(&[], ".env", "other"), (1, false), "{word}");
    }
    assert!(machine.keeper().contents().standing.is_empty());
    assert!(machine.keeper().contents().remembered.is_empty());
}

/// What no longer counts is asked about again, and says why it waits.
#[test]
fn a_standing_grant_waits_for_a_new_yes_after_a_reboot_a_month_or_a_weaker_sandbox() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    let check = |machine: &Machine, due: Option<Due>| {
        let keeper = machine.keeper();
        let waiting: Vec<Due> = keeper.due().map(|(_, due)| due).collect();
        assert_eq!(waiting, Vec::from_iter(due));
        assert_eq!(keeper.live().count(), usize::from(due.is_none()));
        let taken_in = machine.open(&[]).taken_in;
        assert_eq!(taken_in.adopted.len(), usize::from(due.is_none()));
    };
    let mut later = Machine::new();
    later.dirs = machine.dirs;
    later.workspace.clone_from(&machine.workspace);
    check(&later, None);
    later.now += MONTH.get();
    check(&later, None);
    later.now += 1;
    check(&later, Some(Due::IntervalOver));
    later.now = 999_999;
    check(&later, Some(Due::ClockWentBack));
    later.now = 1_000_000;
    // The wall's clock was set back meanwhile, and the other is set by nobody.
    later.in_boot += MONTH.get();
    check(&later, None);
    later.in_boot += 1;
    check(&later, Some(Due::IntervalOver));
    later.in_boot = 1_000_000;
    later.boot = 2;
    check(&later, Some(Due::Rebooted));
    later.boot = 1;
    later.isolation = Isolation::Unknown;
    check(&later, Some(Due::IsolationWeaker));
    later.isolation = Isolation::Isolated;
    later.boot = 2;
    std::fs::remove_file(later.workspace.join("a.txt")).unwrap();
    assert_eq!(
        later.write(&[], "a.txt", "2"),
        (1, false),
        "not silently active"
    );
    let confirmed = later.keeper().confirm(StandingId::new(0)).unwrap();
    assert_eq!(confirmed, Ok(MONTH));
    assert_eq!(later.write(&[], "a.txt", "2"), (0, true));
    // Saying always again is a confirmation, too, and makes no second grant.
    later.boot = 3;
    std::fs::remove_file(later.workspace.join("a.txt")).unwrap();
    assert_eq!(later.write(&["always"], "a.txt", "3"), (1, true));
    check(&later, None);
    assert_eq!(later.keeper().contents().standing.len(), 1);
}

/// The program may be killed right after an answer for good, and the ledger cut.
#[test]
fn a_ledger_cut_after_a_kill_is_refused_down_to_the_record_of_what_was_kept() {
    let machine = Machine::new();
    let mut opened = machine.open(&["always"]);
    let first = opened.runtime.first_agent();
    let args = json!({"path": "a.txt", "content": "1"});
    let report = opened.runtime.call(first, "write_file", &args);
    assert_eq!(report.fate, Fate::Ran);
    // Killed: nothing ends the session.
    drop(opened);
    let whole = machine.ledger();
    assert!(whole.lines().last().unwrap().contains("kept as standing0"));
    let again = || {
        let state = State::open(&machine.state_dir()).unwrap();
        Ledger::open_anchored(&machine.state_dir(), Some(state.anchor)).map(drop)
    };
    again().unwrap();
    let path = machine.state_dir().join("ledger.jsonl");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for left in 0..lines.len() {
        std::fs::write(&path, lines[..left].concat()).unwrap();
        assert!(matches!(again(), Err(LedgerError::Cut(..))), "{left} left");
    }
    std::fs::write(&path, &whole).unwrap();
    again().unwrap();
}

#[test]
fn a_place_that_became_a_link_is_not_the_place_that_was_granted() {
    let machine = Machine::new();
    std::fs::create_dir(machine.workspace.join("dir")).unwrap();
    assert_eq!(machine.write(&["always"], "dir/a.txt", "1"), (1, true));
    let elsewhere = machine.dirs.path().join("elsewhere");
    std::fs::rename(machine.workspace.join("dir"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, machine.workspace.join("dir")).unwrap();
    let taken_in = machine.open(&[]).taken_in;
    assert_eq!((taken_in.adopted.len(), taken_in.refused.len()), (0, 1));
}

#[test]
fn a_revocation_elsewhere_ends_the_grant_in_a_session_that_runs() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    assert_eq!(machine.write(&["always"], "a.txt", "2"), (1, true));
    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    let mut write = |content: &str| {
        let args = json!({"path": "a.txt", "content": content});
        opened.runtime.call(first, "write_file", &args).fate
    };
    assert_eq!(write("3"), Fate::Ran);
    for id in [0, 1] {
        assert!(machine.keeper().revoke(StandingId::new(id)).unwrap());
    }
    assert_eq!(write("4"), Fate::AskedRefused(DenialCode::RejectedByUser));
    assert_eq!(
        std::fs::read_to_string(machine.workspace.join("a.txt")).unwrap(),
        "3"
    );
    assert!(
        machine
            .ledger()
            .contains("standing1 was ended in the store")
    );
    drop(opened);
    // A store that cannot be trusted any more ends what came from it, too.
    assert_eq!(machine.write(&["always"], "a.txt", "5"), (1, true));
    let mut opened = machine.open(&[]);
    std::fs::write(machine.state_dir().join("anchor"), b"nothing").unwrap();
    let args = json!({"path": "a.txt", "content": "6"});
    let fate = opened.runtime.call(first, "write_file", &args).fate;
    assert_eq!(fate, Fate::AskedRefused(DenialCode::RejectedByUser));
}

/// What it held can be told by nobody any more, and an older reading of it is no word of its user's.
#[test]
fn a_store_that_is_damaged_while_a_session_runs_ends_what_came_from_it() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    assert_eq!(machine.write(&["always"], "a.txt", "2"), (1, true));
    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    // Somebody ended the other one, and what they wrote is lost.
    assert!(machine.keeper().revoke(StandingId::new(0)).unwrap());
    std::fs::write(machine.state_dir().join("store.redb"), b"nothing").unwrap();
    let args = json!({"path": "a.txt", "content": "3"});
    let fate = opened.runtime.call(first, "write_file", &args).fate;
    assert_eq!(fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    let kept = std::fs::read_to_string(machine.workspace.join("a.txt"));
    assert_eq!(kept.unwrap(), "2");
    let ledger = machine.ledger();
    assert!(
        ledger.contains("the store is not trusted any more"),
        "{ledger}"
    );
}

/// Who said "always" in a session and ends it at another terminal means that session, too.
#[test]
fn a_yes_for_good_ends_with_what_was_kept_of_it_in_the_session_it_was_said_in() {
    let machine = Machine::new();
    let mut opened = machine.open(&["always", "always", "always", "session"]);
    let first = opened.runtime.first_agent();
    let mut write = |name: &str, content: &str| {
        let args = json!({"path": name, "content": content});
        opened.runtime.call(first, "write_file", &args).fate
    };
    let refused = Fate::AskedRefused(DenialCode::RejectedByUser);
    for (name, content) in [
        ("a.txt", "1"),
        ("a.txt", "2"),
        ("b.txt", "1"),
        ("b.txt", "2"),
    ] {
        assert_eq!(write(name, content), Fate::Ran);
    }
    // Without another question: each of them counts.
    assert_eq!(
        [write("a.txt", "3"), write("b.txt", "3")],
        [Fate::Ran, Fate::Ran]
    );
    assert!(machine.keeper().revoke(StandingId::new(1)).unwrap());
    assert_eq!(write("a.txt", "4"), refused);
    assert_eq!(
        write("b.txt", "4"),
        Fate::Ran,
        "said for this session alone"
    );
    assert_eq!(
        std::fs::read_to_string(machine.workspace.join("a.txt")).unwrap(),
        "3"
    );
    let ledger = machine.ledger();
    assert!(
        ledger.contains("standing1 was ended in the store"),
        "{ledger}"
    );
    assert!(
        !ledger.contains("standing0 was ended in the store"),
        "{ledger}"
    );
}

/// A hard refusal is not asked about, so nothing remembered or kept reaches it.
#[test]
fn nothing_kept_reaches_past_a_hard_refusal() {
    let machine = Machine::new();
    let mut keeper = machine.keeper();
    let place = machine.state_dir().join("ledger.jsonl");
    let below = hermitcrab_core::path::RelPath::parse(
        place
            .strip_prefix("/")
            .unwrap()
            .to_str()
            .unwrap()
            .as_bytes(),
    )
    .unwrap();
    let cap = hermitcrab_core::standing::PortableCap::new(
        hermitcrab_core::authority::Verb::FsModify,
        hermitcrab_core::standing::PortableObject::tree(below),
    )
    .unwrap();
    let authority = hermitcrab_core::standing::PortableAuthority::from_caps([cap]).unwrap();
    keeper.keep(&authority).unwrap();
    let (asked, written) = machine.write(&["always"], place.to_str().unwrap(), "x");
    assert_eq!((asked, written), (0, false));
}
