//! What each function takes and yields, by type, in full.

use super::*;

/// The types that are tried in every place, with the letter that stands for each.
fn types() -> Vec<(&'static str, Type)> {
    let list = |item: Kind| user(Kind::list(user(item)));
    vec![
        ("t", user(Kind::Text)),
        ("w", user(Kind::Whole)),
        ("n", user(Kind::Number)),
        ("b", user(Kind::Truth)),
        ("[t]", list(Kind::Text)),
        ("[w]", list(Kind::Whole)),
        ("[b]", list(Kind::Truth)),
    ]
}

fn word(kind: &Type) -> String {
    match &kind.kind {
        Kind::Text => "t".to_owned(),
        Kind::Whole => "w".to_owned(),
        Kind::Number => "n".to_owned(),
        Kind::Truth => "b".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Time => "time".to_owned(),
        Kind::List(item) => format!("[{}]", word(item)),
        other => format!("{other:?}"),
    }
}

/// Every way a function takes one to three of the types, as `arguments->result`.
fn ways(function: Builtin) -> Vec<String> {
    let types = types();
    let (least, most) = function.count();
    let mut found = Vec::new();
    for count in least..=most.min(3) {
        for number in 0..types.len().pow(u32::try_from(count).unwrap()) {
            let chosen: Vec<&(&str, Type)> = (0..count)
                .map(|place| {
                    let step = types.len().pow(u32::try_from(count - 1 - place).unwrap());
                    &types[number / step % types.len()]
                })
                .collect();
            let of: Vec<Type> = chosen.iter().map(|(_, kind)| kind.clone()).collect();
            if let Some(result) = function.yields(&of) {
                let names: Vec<&str> = chosen.iter().map(|(name, _)| *name).collect();
                found.push(format!("{}->{}", names.join(","), word(&result)));
            }
        }
    }
    found
}

#[test]
fn functions_of_texts_take_texts_in_every_place_and_nothing_else() {
    for (function, expected) in [
        (Builtin::Upper, "t->t"),
        (Builtin::Lower, "t->t"),
        (Builtin::Trim, "t->t"),
        (Builtin::FileName, "t->t"),
        (Builtin::Extension, "t->t"),
        (Builtin::Parent, "t->path"),
        (Builtin::JoinPath, "t,t->path"),
        (Builtin::Split, "t,t->[t]"),
        (Builtin::Lines, "t->[t]"),
        (Builtin::Contains, "t,t->b"),
        (Builtin::StartsWith, "t,t->b"),
        (Builtin::EndsWith, "t,t->b"),
        (Builtin::Replace, "t,t,t->t"),
        (Builtin::ToWhole, "t,w->w"),
        (Builtin::AddDays, "t,w->time"),
        (Builtin::AddMinutes, "t,w->time"),
        (Builtin::MinutesBetween, "t,t->w"),
        (Builtin::DayOf, "t->time"),
        (Builtin::ClockOf, "t->t"),
        (Builtin::Weekday, "t->t"),
        (Builtin::Join, "[t],t->t"),
    ] {
        assert_eq!(ways(function), [expected], "{}", function.as_str());
    }
}

#[test]
fn functions_of_numbers_stay_whole_where_all_are_whole() {
    for function in [Builtin::Add, Builtin::Subtract, Builtin::Multiply] {
        let expected = ["w,w->w", "w,n->n", "n,w->n", "n,n->n"];
        assert_eq!(ways(function), expected, "{}", function.as_str());
    }
    let expected = ["w,w->n", "w,n->n", "n,w->n", "n,n->n"];
    assert_eq!(ways(Builtin::Divide), expected);
    assert_eq!(ways(Builtin::Round), ["w,w->n", "n,w->n"]);
    assert_eq!(ways(Builtin::ToNumber), ["t,w->n", "t,n->n"]);
    assert_eq!(ways(Builtin::ToText), ["t->t", "w->t", "n->t", "b->t"]);
    for function in [Builtin::Sum, Builtin::Min, Builtin::Max] {
        assert_eq!(ways(function), ["[w]->w"], "{}", function.as_str());
    }
}

#[test]
fn only_texts_and_numbers_have_an_order_and_only_among_themselves() {
    let expected = ["t,t->b", "w,w->b", "w,n->b", "n,w->b", "n,n->b"];
    for function in [Builtin::Lt, Builtin::Le, Builtin::Gt, Builtin::Ge] {
        assert_eq!(ways(function), expected, "{}", function.as_str());
    }
    assert_eq!(ways(Builtin::Sorted), ["[t]->[t]", "[w]->[w]"]);
}

#[test]
fn truths_are_joined_with_truths() {
    for function in [Builtin::And, Builtin::Or] {
        let expected = ["b->b", "b,b->b", "b,b,b->b"];
        assert_eq!(ways(function), expected, "{}", function.as_str());
    }
    assert_eq!(ways(Builtin::Not), ["b->b"]);
}

#[test]
fn what_a_list_gives_is_of_its_own_kind() {
    for function in [Builtin::First, Builtin::Last] {
        let expected = ["[t]->t", "[w]->w", "[b]->b"];
        assert_eq!(ways(function), expected, "{}", function.as_str());
    }
    for function in [Builtin::Unique, Builtin::Reverse] {
        let expected = ["[t]->[t]", "[w]->[w]", "[b]->[b]"];
        assert_eq!(ways(function), expected, "{}", function.as_str());
    }
    let expected = ["t->w", "[t]->w", "[w]->w", "[b]->w"];
    assert_eq!(ways(Builtin::Length), expected);
    assert_eq!(ways(Builtin::Flatten), Vec::<String>::new());
}
