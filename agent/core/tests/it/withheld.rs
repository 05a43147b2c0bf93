//! What commands are shown of a directory under rules, and what they are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::path;

use hermitcrab_core::{
    approval::Stance,
    authority::{Host, HostPattern, Name, Port, Verb},
    path::RelPath,
    rules::{ConfiguredRule, Isolation, Layer, Pattern, Rules, Shown, Withheld},
    standing::PortableObject,
};

const SEES: &[Verb] = &[Verb::FsRead];
const CHANGES: &[Verb] = &[Verb::FsModify, Verb::FsDelete];

fn place(text: &str) -> Pattern {
    Pattern::Object(PortableObject::tree(path(text)))
}

fn named(pattern: &str) -> Pattern {
    Pattern::Named(pattern.into())
}

/// What is shown of the directory `home/u/proj` under one rule.
fn shown(stance: Stance, verbs: &[Verb], pattern: Pattern) -> Shown {
    let at = ("rules.toml", 1, Layer::User);
    let rule = ConfiguredRule::new("r", stance, verbs.to_vec(), pattern, at).unwrap();
    assert_eq!(rule.verbs(), verbs);
    let mut rules = Rules::new(7, Isolation::Isolated, vec![path("home/u/.hermitcrab")]);
    rules.add_rule(rule).unwrap();
    let dir = rules.add_dir(path("home/u/proj")).unwrap();
    rules.shown_to_commands(dir, &RelPath::root())
}

fn all_but(places: &[&str], names: &[&str]) -> Shown {
    Shown::AllBut(Withheld {
        places: places.iter().map(|place| path(place)).collect(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    })
}

#[test]
fn what_a_rule_refuses_or_wants_asked_is_withheld_and_what_it_allows_is_not() {
    for (stance, expected) in [
        (Stance::Deny, all_but(&["src"], &[])),
        (Stance::Ask, all_but(&["src"], &[])),
        (Stance::Allow, all_but(&[], &[])),
    ] {
        assert_eq!(shown(stance, SEES, place("home/u/proj/src")), expected);
    }
    let listing = shown(Stance::Ask, &[Verb::FsList], named("*.key"));
    assert_eq!(listing, all_but(&[], &["*.key"]));
}

#[test]
fn a_rule_about_changing_alone_withholds_nothing() {
    for stance in [Stance::Deny, Stance::Ask] {
        let seen = shown(stance, CHANGES, place("home/u/proj/src"));
        assert_eq!(seen, all_but(&[], &[]), "{stance:?}");
    }
}

#[test]
fn a_rule_about_the_whole_directory_leaves_nothing_of_it() {
    for pattern in [
        Pattern::Anything,
        place("home/u/proj"),
        place("home"),
        named("PROJ"),
    ] {
        assert_eq!(shown(Stance::Deny, SEES, pattern), Shown::Nothing);
    }
    let elsewhere = shown(Stance::Deny, SEES, place("home/u/other"));
    assert_eq!(elsewhere, all_but(&[], &[]));
}

#[test]
fn the_agents_own_places_and_what_holds_them_are_not_shown_and_their_neighbours_are() {
    let mut rules = Rules::new(7, Isolation::Isolated, vec![path("home/u/.hermitcrab")]);
    let home = rules.add_dir(path("home/u")).unwrap();
    let see = |below: &RelPath| rules.shown_to_commands(home, below);
    assert_eq!(see(&path(".hermitcrab/store")), Shown::Nothing);
    assert_eq!(see(&path(".hermitcrab")), Shown::Nothing);
    assert_eq!(see(&RelPath::root()), Shown::Nothing);
    assert_eq!(see(&path("proj")), all_but(&[], &[]));
    let other = Rules::new(8, Isolation::Isolated, Vec::new());
    assert_eq!(
        other.shown_to_commands(home, &RelPath::root()),
        Shown::Nothing,
        "a directory nobody knows"
    );
}

#[test]
fn what_is_withheld_knows_its_names_and_whether_it_is_anything() {
    let withheld = |places: &[&str], names: &[&str]| match all_but(places, names) {
        Shown::AllBut(withheld) => withheld,
        Shown::Nothing => panic!("made of parts"),
    };
    assert!(withheld(&[], &[]).is_empty());
    assert!(!withheld(&["a"], &[]).is_empty());
    assert!(!withheld(&[], &["*.key"]).is_empty());
    let keys = withheld(&["a"], &["*.key", "secret"]);
    for name in ["a.key", "A.KEY", ".key", "Secret"] {
        assert!(keys.has_name(name.as_bytes()), "{name}");
    }
    for name in ["a", "a.keys", "secrets", ""] {
        assert!(!keys.has_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn a_rule_about_a_host_withholds_no_file() {
    let host = Host {
        name: HostPattern::Exact(Name::parse("example.org").unwrap()),
        port: Port::Only(443),
    };
    let pattern = Pattern::Object(PortableObject::Host(host));
    let seen = shown(Stance::Deny, &[Verb::NetConnect], pattern);
    assert_eq!(seen, all_but(&[], &[]));
}
