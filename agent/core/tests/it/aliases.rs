//! What lies under several names is judged by each of them, and the strictest word counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::path;

use hermitcrab_core::{
    action::Action,
    approval::Stance,
    authority::{DirId, Object, Verb},
    digest::Digest,
    limits::ALIASES_MAX,
    outcome::DenialCode,
    path::RelPath,
    rules::{
        ConfiguredRule, Isolation, Judgement, Layer, Pattern, Rules, Sensitivity, Shown, Withheld,
    },
    standing::PortableObject,
    tool::Tool,
};

/// Rules of which one is about `home/u/secrets`, with the agent's own places in
/// `home/u/.state`, and the directory `data`, in which `home` lies as well.
fn rules(stance: Stance) -> (Rules, DirId) {
    let mut rules = Rules::new(7, Isolation::Isolated, vec![path("home/u/.state")]);
    let verbs = vec![Verb::FsRead, Verb::FsModify, Verb::FsDelete];
    let pattern = Pattern::Object(PortableObject::tree(path("home/u/secrets")));
    let rule = ConfiguredRule::new("r", stance, verbs, pattern, ("rules.toml", 1, Layer::User));
    rules.add_rule(rule.unwrap()).unwrap();
    let dir = rules.add_dir(path("data")).unwrap();
    rules.also_lies(dir, path("home"), path("home")).unwrap();
    (rules, dir)
}

fn judged(rules: &Rules, verb: Verb, dir: DirId, below: &str) -> Option<DenialCode> {
    let action = Action::new(verb, Object::alone(dir, path(below)), Digest::NONE).unwrap();
    match rules.judge(Tool::WriteFile, &action) {
        Judgement::Plain => None,
        Judgement::Ask(code, _) | Judgement::Deny(code, _) => Some(code),
    }
}

#[test]
fn a_rule_and_the_agents_own_places_hold_by_each_name() {
    for (stance, code) in [
        (Stance::Deny, DenialCode::DeniedByRule),
        (Stance::Ask, DenialCode::AskedByRule),
    ] {
        let (rules, dir) = rules(stance);
        let own = Some(DenialCode::Protected);
        for (verb, below, expected) in [
            (Verb::FsModify, "home/u/secrets", Some(code)),
            (Verb::FsRead, "home/u/secrets/a", Some(code)),
            (Verb::FsCreate, "home/u/secrets/a", None),
            (Verb::FsModify, "home/u/other", None),
            (Verb::FsModify, "u/secrets", None),
            (Verb::FsRead, "home/u/.state/ledger", own),
            (Verb::FsDelete, "home/u/.state", own),
            // What is removed takes along what lies below it, by whatever name.
            (Verb::FsDelete, "home/u", own),
            (Verb::FsDelete, "home", own),
            (Verb::FsDelete, "homes", None),
            (Verb::FsModify, "home", None),
        ] {
            assert_eq!(
                judged(&rules, verb, dir, below),
                expected,
                "{verb:?} {below}"
            );
        }
        for (below, is_own, touches) in [
            ("home/u/.state/a", true, true),
            ("home/u", false, true),
            ("home", false, true),
            (".", false, true),
            ("other", false, false),
        ] {
            let below = path(below);
            assert_eq!(rules.is_protected(dir, &below), is_own, "{below}");
            assert_eq!(rules.touches_protected(dir, &below), touches, "{below}");
        }
    }
}

#[test]
fn commands_are_shown_what_every_name_leaves() {
    let all_but = |places: &[&str]| {
        Shown::AllBut(Withheld {
            places: places.iter().map(|place| path(place)).collect(),
            names: Vec::new(),
        })
    };
    let (mut rules, dir) = rules(Stance::Deny);
    assert_eq!(
        rules.shown_to_commands(dir, &RelPath::root()),
        Shown::Nothing
    );
    let inner = rules.add_dir(path("srv")).unwrap();
    rules
        .also_lies(inner, path("in"), path("home/u/secrets/deep"))
        .unwrap();
    rules
        .also_lies(inner, path("out"), path("home/u/work"))
        .unwrap();
    assert_eq!(
        rules.shown_to_commands(inner, &RelPath::root()),
        all_but(&["in"])
    );
    assert_eq!(rules.shown_to_commands(inner, &path("in")), Shown::Nothing);
    assert_eq!(rules.shown_to_commands(inner, &path("out")), all_but(&[]));
    let beside = rules.add_dir(path("mnt")).unwrap();
    let near = ConfiguredRule::new(
        "n",
        Stance::Ask,
        vec![Verb::FsRead],
        Pattern::Object(PortableObject::tree(path("opt/x/keys"))),
        ("rules.toml", 2, Layer::User),
    );
    rules.add_rule(near.unwrap()).unwrap();
    rules.also_lies(beside, path("a/b"), path("opt")).unwrap();
    assert_eq!(
        rules.shown_to_commands(beside, &RelPath::root()),
        all_but(&["a/b/x/keys"])
    );
}

#[test]
fn names_that_are_asked_about_each_time_are_so_by_each_name() {
    let mut rules = Rules::new(7, Isolation::Isolated, Vec::new());
    let dir = rules.add_dir(path("srv/plain")).unwrap();
    rules
        .also_lies(dir, RelPath::root(), path("home/u/.ssh"))
        .unwrap();
    let other = rules.add_dir(path("srv/other")).unwrap();
    for (dir, is_asked) in [(dir, true), (other, false)] {
        let action =
            |verb| Action::new(verb, Object::alone(dir, path("config")), Digest::NONE).unwrap();
        for verb in [Verb::FsRead, Verb::FsModify] {
            let judged = rules.sensitivity(Tool::SearchFiles, &action(verb));
            assert_eq!(judged != Sensitivity::Plain, is_asked);
            // A search decides about all names of a directory at once.
            let siblings = rules.siblings(Tool::SearchFiles, verb, dir, &RelPath::root());
            assert_eq!(siblings.sensitivity(b"config"), judged);
        }
    }
}

#[test]
fn other_names_are_of_directories_that_are_known_and_not_without_end() {
    let mut rules = Rules::new(7, Isolation::Isolated, Vec::new());
    let dir = rules.add_dir(path("srv")).unwrap();
    let mut others = Rules::new(7, Isolation::Isolated, Vec::new());
    let mut elsewhere = Rules::new(8, Isolation::Isolated, Vec::new());
    let _first = others.add_dir(path("a")).unwrap();
    for foreign in [
        others.add_dir(path("b")).unwrap(),
        elsewhere.add_dir(path("a")).unwrap(),
    ] {
        let denied = rules
            .also_lies(foreign, RelPath::root(), path("a"))
            .unwrap_err();
        assert_eq!(denied.code(), DenialCode::NoCap);
    }
    for _ in 0..ALIASES_MAX {
        rules.also_lies(dir, RelPath::root(), path("a")).unwrap();
    }
    let denied = rules
        .also_lies(dir, RelPath::root(), path("a"))
        .unwrap_err();
    assert_eq!(denied.code(), DenialCode::LimitReached);
}

#[test]
fn a_place_that_has_a_name_that_is_too_long_is_not_worked_on() {
    let mut rules = Rules::new(7, Isolation::Isolated, Vec::new());
    let dir = rules.add_dir(path("srv")).unwrap();
    let long = vec!["d".repeat(250); 15].join("/");
    rules.also_lies(dir, RelPath::root(), path(&long)).unwrap();
    let below = vec!["e".repeat(250); 3].join("/");
    assert!(judged(&rules, Verb::FsModify, dir, &below).is_some());
    assert!(rules.is_protected(dir, &path(&below)));
    assert_eq!(rules.shown_to_commands(dir, &path(&below)), Shown::Nothing);
    assert_eq!(judged(&rules, Verb::FsModify, dir, "short"), None);
}
