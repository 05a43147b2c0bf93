//! Every name has words for a person.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use hermitcrab_core::{
    approval::{Asking, Stance},
    authority::{AuthorityError, Cap, Host, HostPattern, Name, Object, Port, Reversibility, Verb},
    fault::Fault,
    grant::State,
    outcome::DenialCode,
    rules::NonWaivable,
    standing::Due,
    wording::{Kind, Row, table},
};

#[test]
fn every_value_has_a_row_with_one_line_of_words_and_a_next_step() {
    let rows = table();
    let count = |kind: Kind| rows.iter().filter(|row| row.kind == kind).count();
    assert_eq!(count(Kind::Capability), Verb::ALL.len() + 1);
    assert_eq!(count(Kind::Class), Reversibility::ALL.len());
    assert_eq!(count(Kind::Refusal), DenialCode::ALL.len());
    assert_eq!(count(Kind::NonWaivable), NonWaivable::ALL.len());
    assert_eq!(count(Kind::Mode), Asking::ALL.len());
    assert_eq!(count(Kind::Isolation), 3);
    assert_eq!(count(Kind::State), State::ALL.len());
    assert_eq!(count(Kind::Standing), Due::ALL.len());
    for kind in Kind::ALL {
        let names: BTreeSet<&str> = rows
            .iter()
            .filter(|row| row.kind == kind)
            .map(|row| row.name)
            .collect();
        assert_eq!(names.len(), count(kind), "a name twice among {kind:?}");
    }
    for row in rows {
        for text in [row.name, row.meaning, row.next] {
            let fits = !text.is_empty() && text.len() <= 160 && !text.contains(['\n', '|']);
            assert!(fits && !text.ends_with('.'), "{row:?}");
        }
    }
}

#[test]
fn every_kind_has_a_word_of_its_own() {
    let words: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(words.len(), Kind::ALL.len());
    assert!(words.iter().all(|word| word.len() > 3), "{words:?}");
}

#[test]
fn a_row_of_each_kind_reads_so() {
    let rows = table();
    let check = |kind, name, meaning, next| {
        let row = Row {
            kind,
            name,
            meaning,
            next,
        };
        let found = rows.iter().find(|row| row.kind == kind && row.name == name);
        assert_eq!(found, Some(&row));
    };
    check(
        Kind::Capability,
        "secret.use",
        "use a secret",
        "grant it for one secret by its name",
    );
    check(
        Kind::Class,
        "lossy",
        "loses what was there before",
        "keep a copy of what matters first",
    );
    check(
        Kind::Refusal,
        "revoked",
        "the grant was revoked",
        "grant it again",
    );
    check(
        Kind::NonWaivable,
        NonWaivable::UnnamedNetwork.id(),
        "a connection names its peer",
        DenialCode::NetworkUnnamed.next_step(),
    );
    check(
        Kind::Mode,
        Asking::Prompt.as_str(),
        "what is not held is asked about",
        "answer the questions",
    );
    check(
        Kind::Isolation,
        "isolated",
        "every layer of the sandbox was seen to work",
        "nothing",
    );
    check(
        Kind::State,
        "orphaned",
        "it can be used until its deadline, but whoever gave it is gone",
        "revoke it, or let it end",
    );
    check(
        Kind::Standing,
        "rebooted",
        "the machine was restarted since it was confirmed",
        "look at it and confirm it",
    );
    check(
        Kind::Standing,
        "revoked",
        "it was revoked",
        "grant it again if it is still wanted",
    );
}

#[test]
fn every_planted_fault_and_every_stance_is_known_by_its_name_alone() {
    for fault in Fault::ALL {
        assert_eq!(Fault::parse(fault.name()), Some(*fault));
    }
    assert_eq!(Fault::parse("no-such-fault"), None);
    for (stance, word) in [
        (Stance::Allow, "allow"),
        (Stance::Ask, "ask"),
        (Stance::Deny, "deny"),
    ] {
        assert_eq!(stance.to_string(), word);
        assert_eq!(Stance::parse(word), Some(stance));
    }
    assert_eq!(Stance::parse("Deny"), None);
    assert_eq!(Asking::Prompt.to_string(), Asking::Prompt.as_str());
}

#[test]
fn what_makes_an_authority_none_says_so_in_its_refusal() {
    let host = Host {
        name: HostPattern::Exact(Name::parse("example.org").unwrap()),
        port: Port::Only(443),
    };
    let cap = Cap::new(Verb::NetConnect, Object::Host(host)).unwrap();
    let amplifies = AuthorityError::Amplifies(Box::new(cap.clone()));
    let text = amplifies.to_string();
    assert_eq!(text, cap.to_string());
    assert!(text.contains("example.org"), "{text}");
    assert_eq!(amplifies.code(), DenialCode::Amplifies);
    assert!(AuthorityError::TooMany.to_string().contains("capabilities"));
    assert_eq!(AuthorityError::TooMany.code(), DenialCode::LimitReached);
}
