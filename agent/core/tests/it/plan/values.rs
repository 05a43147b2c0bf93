//! What each function makes of values, and where it stops.

use hermitcrab_core::plan::{
    Tag, Value,
    eval::{Env, Trouble},
    limits::{ITEMS_MAX, TEXT_BYTES_MAX},
};

use super::*;

fn whole(number: i64) -> Expr {
    Expr::Literal(Raw::Whole(number))
}

fn number(number: f64) -> Expr {
    Expr::Literal(Raw::Number(number))
}

fn truth(truth: bool) -> Expr {
    Expr::Literal(Raw::Truth(truth))
}

fn nothing() -> Expr {
    Expr::Literal(Raw::Nothing)
}

fn list(items: &[Expr]) -> Expr {
    Expr::List(items.to_vec())
}

fn wholes(items: &[i64]) -> Expr {
    Expr::List(items.iter().copied().map(whole).collect())
}

fn record(fields: &[(&str, i64)]) -> Expr {
    let fields = fields.iter();
    Expr::Record(
        fields
            .map(|(name, at)| ((*name).to_owned(), whole(*at)))
            .collect(),
    )
}

fn value(expr: &Expr) -> Result<Raw, Trouble> {
    Env::new(FlowRules::STRICT)
        .eval(expr)
        .map(|value| value.raw())
}

/// What `function` makes of these is what `expected` says in words of the plan.
fn check(function: Builtin, of: &[Expr], expected: Expr) {
    let made = value(&Expr::Apply(function, of.to_vec()));
    let expected = value(&expected);
    assert_eq!(made, expected, "{} {of:?}", function.as_str());
}

fn fails(function: Builtin, of: &[Expr], expected: Trouble) {
    let made = value(&Expr::Apply(function, of.to_vec()));
    assert_eq!(made, Err(expected), "{} {of:?}", function.as_str());
}

#[test]
fn numbers_are_reckoned_whole_where_both_are_whole_and_never_wrap() {
    check(Builtin::Add, &[whole(2), whole(3)], whole(5));
    check(Builtin::Subtract, &[whole(5), whole(3)], whole(2));
    check(Builtin::Multiply, &[whole(5), whole(3)], whole(15));
    check(Builtin::Add, &[number(1.5), number(2.25)], number(3.75));
    check(Builtin::Add, &[whole(1), number(2.5)], number(3.5));
    check(
        Builtin::Subtract,
        &[number(5.5), number(2.25)],
        number(3.25),
    );
    check(Builtin::Multiply, &[number(2.5), number(3.0)], number(7.5));
    check(Builtin::Divide, &[whole(7), whole(2)], number(3.5));
    fails(Builtin::Divide, &[whole(7), whole(0)], Trouble::Arithmetic);
    for function in [Builtin::Add, Builtin::Multiply] {
        fails(function, &[whole(i64::MAX), whole(2)], Trouble::Arithmetic);
    }
    fails(
        Builtin::Subtract,
        &[whole(i64::MIN), whole(1)],
        Trouble::Arithmetic,
    );
    check(Builtin::Sum, &[wholes(&[2, 3, 4])], whole(9));
    check(Builtin::Sum, &[list(&[number(1.5), whole(2)])], number(3.5));
    check(Builtin::Sum, &[wholes(&[])], whole(0));
    fails(Builtin::Sum, &[wholes(&[i64::MAX, 1])], Trouble::Arithmetic);
    check(Builtin::Max, &[wholes(&[1, 3, 2])], whole(3));
    check(Builtin::Min, &[wholes(&[2, 1, 3])], whole(1));
    fails(Builtin::Max, &[wholes(&[])], Trouble::NoItem);
}

#[test]
fn rounding_goes_to_the_nearest_away_from_nought_and_leaves_what_is_too_large() {
    for (given, decimals, expected) in [
        (2.5, 0, 3.0),
        (-2.5, 0, -3.0),
        (2.4, 0, 2.0),
        (0.125, 2, 0.13),
        (1.25, 1, 1.3),
        (-1.25, 1, -1.3),
        (0.0, 0, 0.0),
        (1234.0, -3, 1234.0),
        (1e300, 2, 1e300),
        (-1e300, 2, -1e300),
        // Multiplied they reach the bound itself, and divided again they would be another number.
        (900_719_925.474_099_3, 7, 900_719_925.474_099_3),
        (-900_719_925.474_099_3, 7, -900_719_925.474_099_3),
    ] {
        check(
            Builtin::Round,
            &[number(given), whole(decimals)],
            number(expected),
        );
    }
}

#[test]
fn texts_are_read_as_numbers_only_where_they_are_some() {
    check(Builtin::ToNumber, &[text(" 2.5 "), whole(0)], number(2.5));
    for odd in ["inf", "NaN", "x"] {
        check(Builtin::ToNumber, &[text(odd), number(1.5)], number(1.5));
        check(Builtin::ToNumber, &[text(odd), whole(2)], number(2.0));
    }
    check(Builtin::ToWhole, &[text(" 25 "), whole(0)], whole(25));
    check(Builtin::ToWhole, &[text("2.5"), whole(7)], whole(7));
    check(Builtin::ToText, &[truth(true)], text("true"));
    check(Builtin::ToText, &[whole(-3)], text("-3"));
    check(Builtin::ToText, &[number(1.5)], text("1.5"));
}

#[test]
fn data_are_the_same_if_every_part_of_them_is() {
    let rows = [
        (wholes(&[1, 2]), wholes(&[1, 2]), true),
        (wholes(&[1]), wholes(&[1, 2]), false),
        (wholes(&[1, 3]), wholes(&[1, 2]), false),
        (
            record(&[("a", 1), ("b", 2)]),
            record(&[("b", 2), ("a", 1)]),
            true,
        ),
        (record(&[("a", 1)]), record(&[("a", 1), ("b", 2)]), false),
        (record(&[("a", 1)]), record(&[("b", 1)]), false),
        (record(&[("a", 1)]), record(&[("a", 2)]), false),
        (nothing(), nothing(), true),
        (nothing(), whole(1), false),
        (truth(true), truth(true), true),
        (truth(true), truth(false), false),
        (whole(2), number(2.0), true),
        (text("a"), text("a"), true),
        (text("a"), whole(1), false),
    ];
    for (left, right, same) in rows {
        let both = [left.clone(), right.clone()];
        check(Builtin::Eq, &both, truth(same));
        check(Builtin::Ne, &both, truth(!same));
        check(
            Builtin::In,
            &[left, list(&[nothing(), right])],
            truth(same || both[0] == nothing()),
        );
    }
}

#[test]
fn order_is_exact_for_whole_numbers_and_by_letters_for_texts() {
    // As numbers of any kind these two would be equal.
    let (large, larger) = (whole(9_007_199_254_740_992), whole(9_007_199_254_740_993));
    for (left, right) in [
        (large, larger),
        (text("a"), text("b")),
        (number(1.5), whole(2)),
    ] {
        for (function, less, equal, greater) in [
            (Builtin::Lt, true, false, false),
            (Builtin::Le, true, true, false),
            (Builtin::Gt, false, false, true),
            (Builtin::Ge, false, true, true),
        ] {
            check(function, &[left.clone(), right.clone()], truth(less));
            check(function, &[left.clone(), left.clone()], truth(equal));
            check(function, &[right.clone(), left.clone()], truth(greater));
        }
    }
    check(Builtin::Sorted, &[wholes(&[3, 1, 2])], wholes(&[1, 2, 3]));
    let mixed = list(&[number(2.5), whole(1)]);
    check(Builtin::Sorted, &[mixed], list(&[whole(1), number(2.5)]));
    let texts = list(&[text("b"), text("a")]);
    check(Builtin::Sorted, &[texts], list(&[text("a"), text("b")]));
}

#[test]
fn truths_are_joined_and_chosen_by() {
    for (left, right) in [(true, true), (true, false), (false, true), (false, false)] {
        let both = [truth(left), truth(right)];
        check(Builtin::And, &both, truth(left && right));
        check(Builtin::Or, &both, truth(left || right));
    }
    check(Builtin::Not, &[truth(true)], truth(false));
    check(
        Builtin::Choose,
        &[truth(true), whole(1), whole(2)],
        whole(1),
    );
    check(
        Builtin::Choose,
        &[truth(false), whole(1), whole(2)],
        whole(2),
    );
    check(Builtin::Default, &[nothing(), whole(2)], whole(2));
    check(Builtin::Default, &[whole(1), whole(2)], whole(1));
}

#[test]
fn texts_and_paths_are_taken_apart_and_put_together() {
    let split = list(&[text("a"), text(""), text("b")]);
    check(Builtin::Split, &[text("a,,b"), text(",")], split);
    check(Builtin::Split, &[text("a"), text("")], list(&[text("a")]));
    check(
        Builtin::Lines,
        &[text("a\nb\n")],
        list(&[text("a"), text("b")]),
    );
    let parts = list(&[text("a"), text("b"), text("c")]);
    check(Builtin::Join, &[parts, text("; ")], text("a; b; c"));
    check(
        Builtin::Replace,
        &[text("aXbX"), text("X"), text("--")],
        text("a--b--"),
    );
    check(
        Builtin::Replace,
        &[text("ab"), text(""), text("-")],
        text("ab"),
    );
    check(Builtin::Length, &[text("a\u{e9}c")], whole(3));
    check(Builtin::Length, &[wholes(&[5, 6])], whole(2));
    check(
        Builtin::Slice,
        &[text("abcd"), whole(1), whole(3)],
        text("bc"),
    );
    check(Builtin::Slice, &[text("abcd"), whole(-4)], text("abcd"));
    check(
        Builtin::Slice,
        &[wholes(&[1, 2, 3]), whole(1)],
        wholes(&[2, 3]),
    );
    check(
        Builtin::Slice,
        &[wholes(&[1, 2, 3]), whole(2), whole(1)],
        wholes(&[]),
    );
    for (path, name, extension, parent) in [
        ("a/b.txt", "b.txt", "txt", "a"),
        ("/b", "b", "", "/"),
        ("b", "b", "", "."),
        ("a/.hidden", ".hidden", "", "a"),
        ("a/b/", "b", "", "a"),
    ] {
        check(Builtin::FileName, &[text(path)], text(name));
        check(Builtin::Extension, &[text(path)], text(extension));
        check(Builtin::Parent, &[text(path)], text(parent));
    }
    for (dir, below, joined) in [
        ("", "a", "a"),
        (".", "a", "a"),
        ("d", "a", "d/a"),
        ("d/", "/a", "d/a"),
    ] {
        check(Builtin::JoinPath, &[text(dir), text(below)], text(joined));
    }
}

#[test]
fn lists_give_their_ends_and_are_joined_turned_and_freed_of_doubles() {
    let three = wholes(&[1, 2, 3]);
    check(Builtin::First, std::slice::from_ref(&three), whole(1));
    check(Builtin::Last, std::slice::from_ref(&three), whole(3));
    fails(Builtin::First, &[wholes(&[])], Trouble::NoItem);
    check(
        Builtin::Reverse,
        std::slice::from_ref(&three),
        wholes(&[3, 2, 1]),
    );
    check(
        Builtin::Append,
        &[three, wholes(&[4])],
        wholes(&[1, 2, 3, 4]),
    );
    let nested = list(&[wholes(&[1]), wholes(&[2, 3])]);
    check(Builtin::Flatten, &[nested], wholes(&[1, 2, 3]));
    check(Builtin::Unique, &[wholes(&[1, 2, 1])], wholes(&[1, 2]));
}

#[test]
fn a_text_may_reach_its_bound_and_not_pass_it() {
    let long = |bytes: usize| Expr::text(&"x".repeat(bytes));
    let bounded = |expr: &Expr, fits: bool| {
        let made = value(expr).map(drop);
        assert_eq!(made, if fits { Ok(()) } else { Err(Trouble::TooMuch) });
    };
    let apply = |function, of: &[Expr]| Expr::Apply(function, of.to_vec());
    for (more, expected) in [(0, true), (1, false)] {
        let most = TEXT_BYTES_MAX + more;
        bounded(
            &apply(Builtin::JoinPath, &[text("d"), long(most - 2)]),
            expected,
        );
        bounded(
            &apply(Builtin::Join, &[list(&[long(most)]), text("")]),
            expected,
        );
        let replaced = [long(most), text("z"), text("zz")];
        bounded(&apply(Builtin::Replace, &replaced), expected);
        let parts = Expr::Text(vec![long(TEXT_BYTES_MAX), long(more)]);
        bounded(&parts, expected);
        let lines = Expr::text(&"\n".repeat(ITEMS_MAX + more));
        bounded(&apply(Builtin::Lines, &[lines]), expected);
    }
}

#[test]
fn the_work_of_a_plan_is_bounded_by_what_it_reads_and_builds() {
    let mut env = Env::new(FlowRules::STRICT);
    let text = Datum::Text("x".repeat(TEXT_BYTES_MAX));
    env.bind("t", Value::new(text, Tag::USER));
    // Each turn reads the text twice: once as what is referred to, once as an argument.
    let length = Expr::Apply(Builtin::Length, vec![at("t")]);
    let turns = (0..40).take_while(|_| env.eval(&length).is_ok()).count();
    assert_eq!(turns, 31);
    // What no longer stands for anything cannot be referred to.
    let mut env = Env::new(FlowRules::STRICT);
    env.bind("t", Value::new(Datum::Whole(1), Tag::USER));
    assert!(env.eval(&at("t")).is_ok());
    env.forget("t");
    assert_eq!(env.eval(&at("t")), Err(Trouble::Depends("t".into())));
    assert_eq!(env.get("t"), None);
}

#[test]
fn a_part_is_found_by_its_name_or_its_place() {
    let mut env = Env::new(FlowRules::STRICT);
    let list = env
        .eval(&list(&[record(&[("a", 1)]), record(&[("a", 2)])]))
        .unwrap();
    env.bind("l", list);
    assert_eq!(env.eval(&at("l.1.a")).unwrap().raw(), Raw::Whole(2));
    for missing in ["l.2", "l.a", "l.0.b", "l.0.0"] {
        assert_eq!(env.eval(&at(missing)), Err(Trouble::NoItem), "{missing}");
    }
}

fn over(over: Over, list: Expr, body: Expr) -> Expr {
    Expr::Over {
        over,
        list: Box::new(list),
        name: "e".into(),
        body: Box::new(body),
    }
}

fn large() -> Expr {
    Expr::Apply(Builtin::Gt, vec![at("e"), whole(2)])
}

#[test]
fn a_function_over_a_list_looks_at_each_item() {
    let made = |function, items: &[i64], body| value(&over(function, wholes(items), body));
    let raw = |items: &[i64]| Ok(Raw::List(items.iter().copied().map(Raw::Whole).collect()));
    assert_eq!(made(Over::Filter, &[1, 3, 2, 4], large()), raw(&[3, 4]));
    for (items, any, all) in [
        (&[][..], false, true),
        (&[1, 3], true, false),
        (&[3, 4], true, true),
        (&[1, 2], false, false),
    ] {
        assert_eq!(made(Over::Any, items, large()), Ok(Raw::Truth(any)));
        assert_eq!(made(Over::All, items, large()), Ok(Raw::Truth(all)));
    }
    let negative = || Expr::Apply(Builtin::Subtract, vec![whole(0), at("e")]);
    assert_eq!(made(Over::Map, &[1, 2], negative()), raw(&[-1, -2]));
    assert_eq!(made(Over::SortBy, &[1, 3, 2], negative()), raw(&[3, 2, 1]));
    assert_eq!(made(Over::MaxBy, &[2, 1, 3], negative()), Ok(Raw::Whole(1)));
    assert_eq!(made(Over::MinBy, &[2, 3, 1], negative()), Ok(Raw::Whole(3)));
    assert_eq!(made(Over::MinBy, &[], negative()), Err(Trouble::NoItem));
}

#[test]
fn groups_keep_the_order_in_which_their_keys_came() {
    let name = Expr::Apply(Builtin::Choose, vec![large(), text("large"), text("small")]);
    let group = |key: &str, items: &[i64]| {
        let items = items.iter().copied().map(Raw::Whole).collect();
        Raw::Record(vec![
            ("key".into(), Raw::Text(key.into())),
            ("items".into(), Raw::List(items)),
        ])
    };
    assert_eq!(
        value(&over(Over::GroupBy, wholes(&[3, 1, 4, 2]), name)),
        Ok(Raw::List(vec![
            group("large", &[3, 4]),
            group("small", &[1, 2])
        ]))
    );
}

#[test]
fn what_is_looked_at_lowers_what_it_selects_where_the_rules_say_so_and_always_a_truth() {
    for (rules, function, expected) in [
        (FlowRules::STRICT, Over::Filter, Level::Untrusted),
        (FlowRules::ARGUMENTS, Over::Filter, Level::User),
        (FlowRules::STRICT, Over::Any, Level::Untrusted),
        (FlowRules::ARGUMENTS, Over::Any, Level::Untrusted),
        (FlowRules::ARGUMENTS, Over::All, Level::Untrusted),
    ] {
        let mut env = Env::new(rules);
        let foreign = Tag::new(Level::Untrusted, Source::File, 0);
        env.bind("t", Value::new(Datum::Whole(2), foreign));
        let body = Expr::Apply(Builtin::Gt, vec![at("e"), at("t")]);
        let made = env.eval(&over(function, wholes(&[1, 3]), body)).unwrap();
        assert_eq!(made.tag.level(), expected, "{rules:?} {function:?}");
    }
}
