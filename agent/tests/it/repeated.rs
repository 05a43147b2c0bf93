//! Answers that are given again, and where they are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    label::Source,
    outcome::DenialCode,
    path::RelPath,
    rules::{ConfiguredRule, Isolation, Layer, Pattern},
    standing::PortableObject,
    time::Millis,
};
use serde_json::json;

use crate::support::machine::Machine;

/// Whoever said it had not seen what the agent read since.
#[test]
fn a_yes_to_be_repeated_is_none_to_what_was_read_since_and_a_no_stays_one() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["repeat"], "b.txt", "yes"), (1, true));
    assert_eq!(machine.write(&["never"], "a.txt", "no"), (1, false));
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    let again = |machine: &Machine, reads: bool, name: &str, content: &str| {
        let mut opened = machine.open(&["deny"]);
        let agent = opened.runtime.first_agent();
        let place = machine.workspace.to_str().unwrap().to_owned();
        for verb in ["fs.create", "fs.modify"] {
            let words = GrantWords::new(verb, &place);
            opened.runtime.grant(agent, &words).unwrap();
        }
        if reads {
            opened.runtime.hear(agent, Source::Network).unwrap();
        }
        let args = json!({"path": name, "content": content});
        opened.runtime.call(agent, "write_file", &args).fate
    };
    let asked = Fate::AskedRefused(DenialCode::RejectedByUser);
    assert_eq!(again(&machine, true, "b.txt", "yes"), asked);
    assert!(!machine.workspace.join("b.txt").exists());
    assert!(!machine.ledger().contains("repeated: yes"));
    assert_eq!(again(&machine, true, "a.txt", "no"), asked);
    assert!(machine.ledger().contains("repeated: no"));
    // Where nothing was read the grant does, and nobody is asked.
    assert_eq!(again(&machine, false, "b.txt", "yes"), Fate::Ran);
}

/// A rule that came since wants it asked each time, and no earlier answer is one.
#[test]
fn what_is_asked_about_each_time_by_now_gets_no_answer_of_before() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["repeat"], "b.txt", "yes"), (1, true));
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    let mut opened = machine.open(&["deny"]);
    let place = machine.workspace.to_str().unwrap().trim_start_matches('/');
    let place = RelPath::parse_dir(place.as_bytes()).unwrap();
    let pattern = Pattern::Object(PortableObject::tree(place));
    let written = ("config.toml", 7, Layer::User);
    let verbs = vec![Verb::FsCreate];
    let rule = ConfiguredRule::new("ask", Stance::Ask, verbs, pattern, written).unwrap();
    opened.runtime.add_rule(rule).unwrap();
    let agent = opened.runtime.first_agent();
    let args = json!({"path": "b.txt", "content": "yes"});
    let report = opened.runtime.call(agent, "write_file", &args);
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    assert_eq!(opened.user.shown.borrow().len(), 1);
    assert!(!machine.workspace.join("b.txt").exists());
}

/// A remembered answer stands in for exactly the same request only.
#[test]
fn an_answer_to_be_repeated_is_given_again_to_exactly_the_same() {
    let mut machine = Machine::new();
    assert_eq!(machine.write(&["never"], "a.txt", "no"), (1, false));
    assert_eq!(
        machine.write(&["once"], "a.txt", "no"),
        (0, false),
        "repeated"
    );
    assert_eq!(machine.write(&["repeat"], "b.txt", "yes"), (1, true));
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    assert_eq!(machine.write(&[], "b.txt", "yes"), (0, true), "repeated");
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    assert_eq!(
        machine.write(&[], "b.txt", "more"),
        (1, false),
        "other content"
    );
    assert_eq!(
        machine.write(&[], "c.txt", "yes"),
        (1, false),
        "another file"
    );
    assert!(
        machine
            .ledger()
            .contains("answered as the user wanted it repeated: yes")
    );

    machine.isolation = Isolation::Unknown;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "less is proved"
    );
    machine.isolation = Isolation::Isolated;
    machine.boot = 2;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "another boot"
    );
    machine.boot = 1;
    machine.now += Millis::from_hours(12).get() + 1;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "too long ago"
    );
    machine.now = 1_000_000;
    machine.in_boot += Millis::from_hours(12).get() + 1;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "too long ago, whatever the wall's clock says"
    );
    machine.in_boot = 1_000_000;
    assert_eq!(machine.keeper().forget(Some(0)).unwrap(), 1);
    assert_eq!(
        machine.write(&["once"], "a.txt", "no"),
        (1, true),
        "forgotten"
    );
    assert_eq!(machine.keeper().forget(None).unwrap(), 1);
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "all forgotten"
    );
}

/// What would be lost was shown with the question, and is a part of it.
#[test]
fn an_answer_to_be_repeated_is_not_given_where_another_content_would_be_lost() {
    let machine = Machine::new();
    let file = machine.workspace.join("a.txt");
    let delete_named = |name: &str, words: &[&'static str], content: &str| {
        let file = machine.workspace.join(name);
        std::fs::write(&file, content).unwrap();
        let mut opened = machine.open(words);
        let first = opened.runtime.first_agent();
        let args = json!({"command": format!("rm '{name}'")});
        let report = opened.runtime.call(first, "terminal", &args);
        opened.runtime.end_session().unwrap();
        let asked = opened.user.shown.borrow().len();
        (asked, report.fate == Fate::Ran && !file.exists())
    };
    let delete = |words: &[&'static str], content: &str| delete_named("a.txt", words, content);
    assert_eq!(delete(&["repeat"], "scratch"), (1, true));
    assert_eq!(delete(&[], "scratch"), (0, true), "repeated");
    assert_eq!(delete(&[], "the only copy"), (1, false), "another content");
    assert_eq!(machine.write(&["repeat"], "a.txt", "new"), (1, true));
    std::fs::write(&file, "the only copy").unwrap();
    assert_eq!(machine.write(&[], "a.txt", "new"), (0, true), "repeated");
    std::fs::write(&file, "another").unwrap();
    assert_eq!(
        machine.write(&[], "a.txt", "new"),
        (1, false),
        "over another content"
    );
    // Nor where the name is not told letter by letter: what it holds is not found by that.
    for name in ["a\\b", "a\u{2764}\u{fe0f}", "a\u{a0}b", "a\nb"] {
        assert_eq!(delete_named(name, &["repeat"], "scratch"), (1, true));
        let (asked, is_gone) = delete_named(name, &[], "the only copy");
        assert_eq!((asked, is_gone), (1, false), "{name:?}");
    }
}
