//! Every name has words for a person.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use hermitcrab_core::{
    approval::Asking,
    authority::{Reversibility, Verb},
    grant::State,
    outcome::DenialCode,
    rules::NonWaivable,
    standing::Due,
    wording::{Kind, table},
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
