//! Names of capabilities: what a bearer's name is good for, who never sees one, and what
//! a model sees instead.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::fd::AsFd as _;

use hermitcrab::{
    handles::ObjectRef,
    runtime::{Fate, Runtime},
    store::keeper,
};
use hermitcrab_core::outcome::DenialCode;
use serde_json::json;

use crate::support::machine::Machine;

fn audience(name: &str) -> hermitcrab_core::standing::Audience {
    hermitcrab_core::standing::Audience::new(hermitcrab_core::authority::Name::parse(name).unwrap())
}

/// A bearer's name counts once, for its audience, in its session; every other
/// use is refused the same way.
#[test]
fn a_bearers_name_is_bound_to_its_session_and_its_audience() {
    let machine = Machine::new();
    let mut opened = machine.open(&[]);
    let runtime = &mut opened.runtime;
    let first = runtime.first_agent();
    let place = machine.workspace.to_string_lossy().into_owned();
    let grant = runtime
        .grant(
            first,
            &hermitcrab::runtime::GrantWords::new("fs.create", &place),
        )
        .unwrap();
    let looking = runtime.harmless_grants(first);
    let child = runtime.spawn(first, &looking).unwrap();
    let refused = |result: Result<_, hermitcrab_core::outcome::Denial>| {
        let denial = result
            .map(|_: hermitcrab_core::grant::GrantId| ())
            .unwrap_err();
        (denial.code(), denial.to_string())
    };
    let export = |runtime: &mut Runtime| {
        runtime
            .export(first, grant, audience("child"))
            .unwrap()
            .reveal()
    };
    let uniform = refused(runtime.claim(child, &audience("child"), "/object/nothing"));
    assert_eq!(uniform.0, DenialCode::NoSuchObject);
    let unknown = ObjectRef::draw().unwrap().reveal();
    let name = export(runtime);
    for (who, text) in [("child", unknown.as_str()), ("other", name.as_str())] {
        assert_eq!(refused(runtime.claim(child, &audience(who), text)), uniform);
    }
    let claimed = runtime.claim(child, &audience("child"), &name).unwrap();
    assert_eq!(
        refused(runtime.claim(child, &audience("child"), &name)),
        uniform,
        "once"
    );
    let args = json!({"path": "made.txt", "content": "x"});
    assert_eq!(runtime.call(child, "write_file", &args).fate, Fate::Ran);
    // What was claimed ends with what it came from.
    let name = export(runtime);
    assert!(runtime.revoke(grant).unwrap().contains(&claimed));
    assert_eq!(
        refused(runtime.claim(child, &audience("child"), &name)),
        uniform,
        "revoked"
    );

    let grant = runtime
        .grant(
            first,
            &hermitcrab::runtime::GrantWords::new("fs.create", &place),
        )
        .unwrap();
    let name = runtime
        .export(first, grant, audience("child"))
        .unwrap()
        .reveal();
    runtime.begin_session().unwrap();
    let first = runtime.first_agent();
    assert_eq!(
        refused(runtime.claim(first, &audience("child"), &name)),
        uniform,
        "session"
    );
    assert!(
        !machine
            .ledger()
            .contains(name.strip_prefix("/object/").unwrap())
    );
}

/// Nothing that reaches a model or the ledger allows making a call by itself.
#[test]
fn no_bearers_name_reaches_a_model_or_the_ledger() {
    let machine = Machine::new();
    std::fs::write(machine.workspace.join("a.txt"), "x").unwrap();
    let mut keeper = machine.keeper();
    let mut words = machine.open(&[]);
    let authority = {
        let first = words.runtime.first_agent();
        let place = machine.workspace.to_string_lossy().into_owned();
        let words_of = hermitcrab::runtime::GrantWords::new("fs.delete", &place);
        words.runtime.portable_words(first, &words_of).unwrap()
    };
    drop(words);
    let id = keeper.keep(&authority).unwrap();
    let own = keeper::audience(&machine.workspace).unwrap();
    let sturdy = keeper
        .share(id, (&own, keeper.here().site))
        .unwrap()
        .unwrap()
        .reveal();
    assert!(keeper.redeem(&sturdy).is_ok());
    assert!(keeper.redeem(&sturdy.to_uppercase()).is_err());

    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    let grant = opened.runtime.held_by(first)[0];
    let exported = opened
        .runtime
        .export(first, grant, audience("x"))
        .unwrap()
        .reveal();
    let mut all_text = String::new();
    for name in [&sturdy, &exported] {
        let letters = name.strip_prefix("/object/").unwrap();
        // It came into files, by whatever way, and the model reads them.
        let text = format!("see {name} and {}\n", letters.to_uppercase());
        std::fs::write(machine.workspace.join("leak.txt"), &text).unwrap();
        let calls = [
            ("read_file", json!({"path": "leak.txt"})),
            ("terminal", json!({"command": "cat leak.txt"})),
        ];
        for (tool, args) in calls {
            let report = opened.runtime.call(first, tool, &args);
            assert!(
                report.text.contains("was removed here"),
                "{tool}: {}",
                report.text
            );
            all_text.push_str(&report.text);
        }
        // So it is where calls of one answer run beside each other.
        let other = format!("leak-{}.txt", &letters[..4]);
        std::fs::write(machine.workspace.join(&other), &text).unwrap();
        let beside = [
            ("read_file", json!({"path": other})),
            ("read_file", json!({"path": "a.txt"})),
        ];
        let (_, told) = crate::together::answered(&mut opened.runtime, &beside);
        assert!(told[0].contains("was removed here"), "{told:?}");
        all_text.push_str(&told.concat());
        // A model that has it all the same cannot put it into a call.
        let hidden = json!({"path": "b.txt", "content": {"deep": [text]}});
        for args in [json!({"path": format!("x{letters}")}), hidden] {
            let report = opened.runtime.call(first, "read_file", &args);
            assert_eq!(report.fate, Fate::Refused(DenialCode::NoSuchObject));
            all_text.push_str(&report.text);
        }
    }
    opened.runtime.end_session().unwrap();
    all_text.push_str(&machine.ledger());
    let all_text = all_text.to_lowercase();
    for name in [sturdy, exported] {
        assert!(!all_text.contains(name.strip_prefix("/object/").unwrap()));
    }
    assert!(
        machine
            .ledger()
            .contains("names of capabilities were removed")
    );
    assert!(opened.desk.borrow().keeper.contents().sturdy.len() == 1);
}

/// A reference to a standing grant is its audience's alone, and worth no more than the grant
/// it leads to.
#[test]
fn a_reference_is_for_its_audience_and_ends_with_what_it_leads_to() {
    let mut machine = Machine::new();
    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    let place = machine.workspace.to_string_lossy().into_owned();
    let words = hermitcrab::runtime::GrantWords::new("fs.delete", &place);
    let authority = opened.runtime.portable_words(first, &words).unwrap();
    drop(opened);
    let mut keeper = machine.keeper();
    let id = keeper.keep(&authority).unwrap();
    let site = keeper.here().site;
    let mut shared = |audience| {
        keeper
            .share(id, (&audience, site))
            .unwrap()
            .unwrap()
            .reveal()
    };
    let own = shared(keeper::audience(&machine.workspace).unwrap());
    let others = shared(audience("workspace:other"));
    let none = |machine: &Machine, text: &str| {
        let denial = machine.keeper().redeem(text).unwrap_err();
        assert_eq!(denial.code(), DenialCode::NoSuchObject);
    };
    // Another directory by the name of this one is another, whatever lay there before.
    let aside = tempfile::tempdir().unwrap();
    let aside = std::fs::File::open(aside.path()).unwrap();
    let elsewhere = hermitcrab::store::site::site(aside.as_fd());
    assert!(elsewhere.is_some() && elsewhere != site);
    let of_another = keeper
        .share(
            id,
            (&keeper::audience(&machine.workspace).unwrap(), elsewhere),
        )
        .unwrap()
        .unwrap()
        .reveal();
    none(&machine, &of_another);
    assert!(machine.keeper().redeem(&own).is_ok());
    none(&machine, &others);
    // What waits to be confirmed is worth nothing through a reference either.
    machine.boot = 2;
    none(&machine, &own);
    machine.boot = 1;
    assert!(machine.keeper().redeem(&own).is_ok());
    assert!(machine.keeper().revoke(id).unwrap());
    none(&machine, &own);
}

/// What a model sees instead are names that mean something only to it.
#[test]
fn what_is_held_has_names_that_mean_nothing_elsewhere() {
    let machine = Machine::new();
    let mut opened = machine.open(&[]);
    let runtime = &mut opened.runtime;
    let first = runtime.first_agent();
    let list = runtime.cap_list(first);
    assert!(list.len() >= 3, "{list:?}");
    for (place, (name, grant)) in list.iter().enumerate() {
        assert_eq!(*name, format!("cap:{place}"));
        assert_eq!(runtime.cap_named(first, name).unwrap(), *grant);
    }
    let child = runtime.spawn(first, &[]).unwrap();
    for name in ["cap:0", "cap:99", "cap:", "grant0"] {
        let denial = runtime.cap_named(child, name).unwrap_err();
        assert_eq!(denial.code(), DenialCode::NoSuchObject, "{name}");
    }
}
