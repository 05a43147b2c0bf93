//! What is kept for one and what is kept beside it stay apart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::{
    runtime::Fate,
    store::{FILE_NAME, State, StoreError, contents::Said, db, keeper},
};
use hermitcrab_core::{
    authority::Verb,
    digest::Digest,
    grant::Uses,
    outcome::DenialCode,
    path::RelPath,
    standing::{PortableAuthority, PortableCap, PortableObject},
};
use serde_json::json;

use crate::support::machine::Machine;

fn reading() -> PortableCap {
    let place = RelPath::parse(b"home/u/a.txt").unwrap();
    PortableCap::new(Verb::FsRead, PortableObject::tree(place)).unwrap()
}

#[test]
fn a_yes_for_good_is_kept_beside_a_grant_whose_uses_are_counted() {
    let machine = Machine::new();
    let authority = PortableAuthority::from_caps([reading()]).unwrap();
    let first = machine.keeper().keep(&authority).unwrap();
    // The same once more is the same.
    assert_eq!(machine.keeper().keep(&authority).unwrap(), first);
    let mut state = State::open(&machine.state_dir()).unwrap();
    db::change::<_, StoreError>(&machine.state_dir(), &mut state, |held| {
        held.standing[0].standing.uses_left = Uses::AtMost(1);
        Ok(())
    })
    .unwrap();
    drop(state);
    let second = machine.keeper().keep(&authority).unwrap();
    assert_ne!(second, first);
    let keeper = machine.keeper();
    let uses: Vec<_> = keeper
        .live()
        .map(|(kept, _)| (kept.id, kept.uses_left))
        .collect();
    assert_eq!(uses, [(first, Uses::AtMost(1)), (second, Uses::Uncounted)]);
}

#[test]
fn a_reference_is_given_out_only_to_what_still_counts() {
    let machine = Machine::new();
    let authority = PortableAuthority::from_caps([reading()]).unwrap();
    let mut keeper = machine.keeper();
    let id = keeper.keep(&authority).unwrap();
    let (audience, site) = (keeper.here().audience.clone(), keeper.here().site);
    let name = keeper.share(id, (&audience, site)).unwrap();
    assert!(name.is_ok());
    assert!(keeper.revoke(id).unwrap());
    let refused = keeper.share(id, (&audience, site)).unwrap();
    assert_eq!(refused.unwrap_err().code(), DenialCode::NoSuchObject);
}

#[test]
fn an_answer_to_be_repeated_in_one_workspace_leaves_that_of_another() {
    let mut machine = Machine::new();
    let what = [(reading(), Digest::NONE)];
    let first = machine.workspace.clone();
    machine.keeper().remember(&what, Said::Yes).unwrap();
    machine.workspace = first.with_file_name("other");
    std::fs::create_dir(&machine.workspace).unwrap();
    assert_ne!(
        keeper::audience(&first),
        keeper::audience(&machine.workspace)
    );
    assert_eq!(machine.keeper().recall(&what[0].0, what[0].1), None);
    machine.keeper().remember(&what, Said::No).unwrap();
    let said = |machine: &Machine| machine.keeper().recall(&what[0].0, what[0].1);
    assert_eq!(said(&machine), Some(Said::No));
    machine.workspace = first;
    assert_eq!(said(&machine), Some(Said::Yes));
    // Where it was given, the later one stands.
    machine.keeper().remember(&what, Said::No).unwrap();
    assert_eq!(said(&machine), Some(Said::No));
}

#[test]
fn a_yes_for_good_that_cannot_be_kept_counts_in_its_session_and_that_is_told_and_noted() {
    let machine = Machine::new();
    let mut opened = machine.open(&["always"]);
    let first = opened.runtime.first_agent();
    let store = machine.state_dir().join(FILE_NAME);
    if store.exists() {
        std::fs::remove_file(&store).unwrap();
    }
    std::fs::create_dir(&store).unwrap();
    let args = json!({"path": "a.txt", "content": "1"});
    let report = opened.runtime.call(first, "write_file", &args);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let told = opened.runtime.take_told();
    let counts = "your answer counts in this session only: ";
    assert!(told.iter().any(|line| line.starts_with(counts)), "{told:?}");
    assert!(machine.ledger().contains("not kept: "));
    assert!(!machine.ledger().contains("kept as "));
}
