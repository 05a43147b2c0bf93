//! Which type stands for which, what two have in common, and what is of a type.

use std::collections::BTreeSet;

use hermitcrab_core::{
    authority::Name,
    label::{Label, Readers},
    plan::{Tag, rule::rule},
};

use super::*;

fn list(item: Kind) -> Kind {
    Kind::list(user(item))
}

fn maybe(item: Kind) -> Kind {
    Kind::Optional(Box::new(user(item)))
}

fn choice(words: &[&str]) -> Kind {
    Kind::Choice(words.iter().map(|word| (*word).to_owned()).collect())
}

fn record(fields: &[(&str, Kind)]) -> Kind {
    let fields = fields.iter();
    Kind::Record(
        fields
            .map(|(name, kind)| ((*name).to_owned(), user(kind.clone())))
            .collect(),
    )
}

#[test]
fn two_types_have_the_least_one_both_fit_into_in_common() {
    let words = |from: usize, to: usize| {
        Kind::Choice((from..to).map(|number| format!("w{number}")).collect())
    };
    for (left, right, expected) in [
        (Kind::Never, Kind::Text, Some(Kind::Text)),
        (Kind::Whole, Kind::Whole, Some(Kind::Whole)),
        (Kind::Path, Kind::Path, Some(Kind::Path)),
        (Kind::Whole, Kind::Number, Some(Kind::Number)),
        (Kind::Whole, Kind::Text, None),
        (Kind::Truth, Kind::Number, None),
        (Kind::Path, Kind::Time, Some(Kind::Text)),
        (choice(&["a"]), Kind::Text, Some(Kind::Text)),
        (words(0, 32), words(32, 64), Some(words(0, 64))),
        (words(0, 32), words(31, 64), Some(words(0, 64))),
        (words(0, 32), words(32, 65), Some(Kind::Text)),
        (Kind::Nothing, Kind::Text, Some(maybe(Kind::Text))),
        (Kind::Nothing, maybe(Kind::Text), Some(maybe(Kind::Text))),
        (
            maybe(Kind::Whole),
            maybe(Kind::Number),
            Some(maybe(Kind::Number)),
        ),
        (maybe(Kind::Whole), Kind::Number, Some(maybe(Kind::Number))),
        (maybe(Kind::Whole), Kind::Text, None),
        (
            list(Kind::Whole),
            list(Kind::Number),
            Some(list(Kind::Number)),
        ),
        (list(Kind::Whole), list(Kind::Text), None),
        (list(Kind::Whole), Kind::Whole, None),
        (
            record(&[("a", Kind::Whole), ("b", Kind::Text)]),
            record(&[("a", Kind::Number), ("b", Kind::Text)]),
            Some(record(&[("a", Kind::Number), ("b", Kind::Text)])),
        ),
        (
            record(&[("a", Kind::Whole)]),
            record(&[("b", Kind::Whole)]),
            None,
        ),
        (
            record(&[("a", Kind::Whole)]),
            record(&[("a", Kind::Text)]),
            None,
        ),
        (
            record(&[("a", Kind::Whole)]),
            record(&[("a", Kind::Whole), ("b", Kind::Whole)]),
            None,
        ),
    ] {
        let joined = |one: &Kind, other: &Kind| {
            let lower = other.clone().at(Level::Picked);
            let joined = user(one.clone()).join(&lower)?;
            assert_eq!(joined.level, Level::Picked);
            Some(joined.at_most(Level::User).raised(Level::User).kind)
        };
        assert_eq!(joined(&left, &right), expected, "{left:?} {right:?}");
        let turned = joined(&right, &left);
        if let Some(Kind::Choice(words)) = &turned {
            // The same words, in the order in which they are met.
            assert!(matches!(&expected, Some(Kind::Choice(all)) if all.len() == words.len()));
        } else {
            assert_eq!(turned, expected, "{right:?} {left:?}");
        }
    }
    // Words both have stand in it once, and those of the first come first.
    let joined = user(choice(&["a", "b"])).join(&user(choice(&["b", "c"])));
    assert_eq!(joined, Some(user(choice(&["a", "b", "c"]))));
}

#[test]
fn a_value_stands_where_its_type_or_a_wider_one_is_asked_for() {
    for (have, want, fits) in [
        (Kind::Never, Kind::Whole, true),
        (Kind::Nothing, maybe(Kind::Whole), true),
        (Kind::Nothing, Kind::Whole, false),
        (maybe(Kind::Whole), maybe(Kind::Number), true),
        (maybe(Kind::Text), maybe(Kind::Number), false),
        (maybe(Kind::Whole), Kind::Whole, false),
        (Kind::Whole, maybe(Kind::Number), true),
        (choice(&["a"]), choice(&["a", "b"]), true),
        (choice(&["a", "c"]), choice(&["a", "b"]), false),
        (Kind::Text, choice(&["a"]), false),
        (choice(&["a"]), Kind::Path, true),
        (Kind::Text, Kind::Time, true),
        (Kind::Whole, Kind::Text, false),
        (Kind::Whole, Kind::Number, true),
        (Kind::Number, Kind::Whole, false),
        (list(Kind::Whole), list(Kind::Number), true),
        (list(Kind::Number), list(Kind::Whole), false),
        (
            record(&[("a", Kind::Whole), ("b", Kind::Text)]),
            record(&[("a", Kind::Number)]),
            true,
        ),
        (
            record(&[("a", Kind::Text)]),
            record(&[("a", Kind::Number)]),
            false,
        ),
        (
            record(&[("b", Kind::Number)]),
            record(&[("a", Kind::Number)]),
            false,
        ),
        (Kind::Truth, Kind::Truth, true),
        (Kind::Truth, Kind::Nothing, false),
    ] {
        let message = format!("{have:?} {want:?}");
        assert_eq!(user(have).fits(&user(want)), fits, "{message}");
    }
}

#[test]
fn what_comes_from_outside_is_a_value_of_its_type_or_none() {
    let text = |text: &str| Raw::Text(text.into());
    let fields = |fields: &[(&str, Raw)]| {
        let fields = fields.iter();
        Raw::Record(
            fields
                .map(|(name, raw)| ((*name).to_owned(), raw.clone()))
                .collect(),
        )
    };
    let both = record(&[("a", Kind::Whole), ("b", maybe(Kind::Text))]);
    let whole = Raw::Whole(3);
    for (raw, kind, expected) in [
        (Raw::Nothing, Kind::Nothing, Some(Raw::Nothing)),
        (Raw::Nothing, maybe(Kind::Text), Some(Raw::Nothing)),
        (Raw::Nothing, Kind::Text, None),
        (text("a"), maybe(Kind::Text), Some(text("a"))),
        (whole.clone(), maybe(Kind::Text), None),
        (Raw::Truth(true), Kind::Truth, Some(Raw::Truth(true))),
        (whole.clone(), Kind::Truth, None),
        (whole.clone(), Kind::Whole, Some(whole.clone())),
        (whole.clone(), Kind::Number, Some(Raw::Number(3.0))),
        (Raw::Number(1.5), Kind::Number, Some(Raw::Number(1.5))),
        (Raw::Number(1.5), Kind::Whole, None),
        (Raw::Number(f64::NAN), Kind::Number, None),
        (Raw::Number(f64::INFINITY), Kind::Number, None),
        (text("a/b"), Kind::Path, Some(text("a/b"))),
        (text("a"), choice(&["a", "b"]), Some(text("a"))),
        (text("c"), choice(&["a", "b"]), None),
        (
            Raw::List(vec![whole.clone()]),
            list(Kind::Whole),
            Some(Raw::List(vec![whole.clone()])),
        ),
        (Raw::List(vec![text("a")]), list(Kind::Whole), None),
        (
            fields(&[("b", text("x")), ("a", whole.clone()), ("more", text("y"))]),
            both.clone(),
            Some(fields(&[("a", whole.clone()), ("b", text("x"))])),
        ),
        (
            fields(&[("a", whole.clone())]),
            both.clone(),
            Some(fields(&[("a", whole), ("b", Raw::Nothing)])),
        ),
        (fields(&[("b", text("x"))]), both, None),
        (fields(&[]), record(&[("a", Kind::Nothing)]), None),
    ] {
        let message = format!("{raw:?} {kind:?}");
        let made = raw.typed(&user(kind), &Tag::USER);
        assert_eq!(made.map(|value| value.raw()), expected, "{message}");
    }
}

#[test]
fn functions_of_optional_values_lists_and_choices_have_the_type_both_have() {
    let yields = |function: Builtin, of: &[Kind]| {
        let of: Vec<Type> = of.iter().cloned().map(user).collect();
        function.yields(&of).map(|made| made.kind)
    };
    let default = |first: Kind, second: Kind| yields(Builtin::Default, &[first, second]);
    assert_eq!(
        default(maybe(Kind::Whole), Kind::Number),
        Some(Kind::Number)
    );
    assert_eq!(default(Kind::Nothing, Kind::Text), Some(Kind::Text));
    assert_eq!(default(Kind::Whole, Kind::Whole), None);
    let choose = |test: Kind| yields(Builtin::Choose, &[test, Kind::Whole, Kind::Number]);
    assert_eq!(choose(Kind::Truth), Some(Kind::Number));
    assert_eq!(choose(Kind::Text), None);
    let slice = |of: Kind, from: Kind| yields(Builtin::Slice, &[of, from]);
    assert_eq!(slice(Kind::Text, Kind::Whole), Some(Kind::Text));
    assert_eq!(slice(Kind::Text, Kind::Text), None);
    assert_eq!(slice(list(Kind::Text), Kind::Whole), Some(list(Kind::Text)));
    assert_eq!(slice(Kind::Truth, Kind::Whole), None);
}

#[test]
fn functions_over_lists_need_tests_orders_and_keys() {
    let of = user(list(Kind::Whole));
    let item = user(Kind::Whole);
    let yields = |over: Over, body: Kind| over.yields(&of, &item, &user(body), true);
    let kind = |over: Over, body: Kind| yields(over, body).map(|made| made.kind);
    for (over, body, expected) in [
        (Over::Filter, Kind::Truth, Some(list(Kind::Whole))),
        (Over::Filter, Kind::Whole, None),
        (Over::Any, Kind::Truth, Some(Kind::Truth)),
        (Over::Any, Kind::Whole, None),
        (Over::All, Kind::Text, None),
        (Over::Map, Kind::Text, Some(list(Kind::Text))),
        (Over::SortBy, Kind::Number, Some(list(Kind::Whole))),
        (Over::SortBy, Kind::Truth, None),
        (Over::MaxBy, Kind::Text, Some(Kind::Whole)),
        (Over::MinBy, Kind::Truth, None),
        (Over::GroupBy, Kind::Whole, None),
    ] {
        let message = format!("{over:?} {body:?}");
        assert_eq!(kind(over, body), expected, "{message}");
    }
    assert!(yields(Over::GroupBy, Kind::Text).is_some());
    for over in [Over::Filter, Over::Any, Over::All] {
        assert!(over.tests());
    }
    for over in [
        Over::Map,
        Over::SortBy,
        Over::MaxBy,
        Over::MinBy,
        Over::GroupBy,
    ] {
        assert!(!over.tests());
    }
}

#[test]
fn an_argument_asks_or_not_and_needs_no_question_from_some_level_on() {
    let quiet = FlowRules {
        outgoing: false,
        ..FlowRules::STRICT
    };
    for (role, asks, floor) in [
        (Role::Free, true, Level::Untrusted),
        (Role::Content, false, Level::Untrusted),
        (Role::Target, true, Level::Service),
        (Role::Word, true, Level::Service),
        (Role::Program, true, Level::User),
        (Role::Outgoing, false, Level::Picked),
    ] {
        assert_eq!(role.asks(), asks, "{role:?}");
        assert_eq!(role.floor(FlowRules::STRICT), floor, "{role:?}");
        let quietly = if role == Role::Outgoing {
            Level::Untrusted
        } else {
            floor
        };
        assert_eq!(role.floor(quiet), quietly, "{role:?}");
    }
}

#[test]
fn a_tag_tells_its_sources_and_only_readers_both_admit() {
    let names = |names: &[&str]| -> BTreeSet<Name> {
        names
            .iter()
            .map(|name| Name::parse(name).unwrap())
            .collect()
    };
    let all = [
        Source::User,
        Source::Model,
        Source::File,
        Source::Command,
        Source::Network,
        Source::Secret,
    ];
    for source in all {
        let label = Tag::new(Level::Service, source, 0).label();
        let expected =
            Label::new(Source::User, Readers::Anyone).join(&Label::new(source, Readers::Anyone));
        assert_eq!(label, expected);
        let told: Vec<Source> = label.sources().collect();
        assert!(told.contains(&source) && told.len() <= 2);
    }
    let left = Tag::USER.only_for(names(&["ann", "ben"]));
    let right = Tag::USER.only_for(names(&["ben", "cid"]));
    let both = Tag::USER.only_for(names(&["ben"]));
    assert_eq!(left.join(&right), both);
    assert_eq!(left.join(&left.clone()), left);
    assert_eq!(left.join(&Tag::USER), left);
    assert_eq!(
        both.label(),
        Label::new(Source::User, Readers::Only(names(&["ben"])))
    );
}

#[test]
fn levels_failures_and_errors_have_a_word_each() {
    let levels = [Level::Untrusted, Level::Picked, Level::Service, Level::User];
    let words = levels.map(Level::as_str);
    let expected = [
        "untrusted text",
        "picked out of untrusted text",
        "made by a tool",
        "the user's own",
    ];
    assert_eq!(words, expected);
    assert_eq!(Failure::Status(3).to_string(), "status 3");
    assert_eq!(Failure::Status(3).as_str(), "status");
    assert_eq!(Failure::NotText.to_string(), "not-text");
    assert_eq!(Status::Already.as_str(), "already so");
    assert_eq!(Status::Failed(Failure::Refused).as_str(), "refused");
    assert_eq!(Status::Failed(Failure::Full).as_str(), "failed");
    assert_eq!(ErrorKind::TooDeep.to_string(), "too-deep");
    let error = |step: Option<&str>| hermitcrab_core::plan::PlanError {
        step: step.map(str::to_owned),
        kind: ErrorKind::Empty,
    };
    assert_eq!(
        error(None).to_string(),
        "the plan: there is nothing to do (empty)"
    );
    assert_eq!(
        error(Some("a")).to_string(),
        "step a: there is nothing to do (empty)"
    );
    assert_eq!(
        rule(Failure::Said, false),
        hermitcrab_core::plan::Verdict::End
    );
}

#[test]
fn a_toolbox_is_narrowed_to_what_is_named_and_a_plan_tells_what_it_is() {
    let tools = toolbox();
    let names = |tools: &Toolbox| -> Vec<String> {
        tools.all().iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(names(&tools), ["read", "list", "write", "delete"]);
    let only = tools.only(&["write".to_owned(), "fly".to_owned()]);
    assert_eq!(names(&only), ["write"]);
    let steps = vec![call("a", "list", &[]), call("b", "list", &[])];
    let summary = "look twice".to_owned();
    let draft = PlanDraft {
        summary,
        steps: steps.clone(),
    };
    let plan = check(draft, tools.clone(), FlowRules::STRICT).unwrap();
    assert_eq!(plan.summary(), "look twice");
    assert_eq!(plan.steps(), steps);
    assert_eq!(plan.toolbox(), &*tools);
    assert_eq!(plan.calls_at_most(), 2);
}

#[test]
fn a_part_is_trusted_no_further_than_what_it_is_a_part_of() {
    let inner = Kind::record(&[
        ("inner", user(Kind::Text)),
        ("list", user(list(Kind::Text))),
    ]);
    let result = Kind::record(&[
        ("low", inner.clone().at(Level::Picked)),
        ("high", inner.at(Level::User)),
    ]);
    let keep = vec![param("text", Kind::Text, Role::Outgoing)];
    let tools = Arc::new(Toolbox::new(vec![
        tool("look", Vec::new(), result.at(Level::Service), None),
        tool("keep", keep, user(Kind::Nothing), Some(Verb::FsCreate)),
    ]));
    let seen = |path: &str| {
        let steps = vec![
            call("s", "look", &[]),
            call("w", "keep", &[("text", at(path))]),
        ];
        let draft = PlanDraft {
            summary: String::new(),
            steps,
        };
        let plan = check(draft, Arc::clone(&tools), FlowRules::STRICT)?;
        Ok::<_, Vec<hermitcrab_core::plan::PlanError>>(plan.fed()[0].level)
    };
    assert_eq!(seen("s.high.inner"), Ok(Level::Service));
    assert_eq!(seen("s.low.inner"), Ok(Level::Picked));
    assert_eq!(seen("s.low.list.0"), Ok(Level::Picked));
    for path in ["s.none", "s.low.0", "s.high.inner.more"] {
        let kinds = seen(path).unwrap_err();
        let kinds: Vec<_> = kinds.iter().map(|error| error.kind).collect();
        assert_eq!(kinds, [ErrorKind::UnknownField], "{path}");
    }
}
