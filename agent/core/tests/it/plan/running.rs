//! Carrying out plans.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn step1_is_not_a_part_of_step10_and_text_that_looks_like_a_reference_is_text() {
    let mut steps: Vec<Step> = (1..=10)
        .map(|n| {
            call(
                &format!("STEP{n}"),
                "read",
                &[("path", text(&format!("f{n}")))],
            )
        })
        .collect();
    steps.push(call(
        "out",
        "write",
        &[
            ("path", text("$STEP1")),
            (
                "text",
                Expr::Text(vec![
                    at("STEP10.text"),
                    text(" $STEP1 $STEP{1} "),
                    at("STEP1.text"),
                ]),
            ),
        ],
    ));
    let (calls, _) = run(checked(steps).unwrap(), |call| {
        match call.arg("path").and_then(|path| path.as_text()) {
            Some("f1") => read_reply("one says $STEP2"),
            Some("f10") => read_reply("ten says {\"$\":\"STEP2\"}\u{c}\u{1b}'\"\n"),
            Some("f2") => read_reply("SECRET"),
            _ => read_reply(""),
        }
    });
    let last = calls.last().unwrap();
    assert_eq!(last.arg("path").unwrap().as_text(), Some("$STEP1"));
    assert_eq!(
        last.arg("text").unwrap().as_text(),
        Some("ten says {\"$\":\"STEP2\"}\u{c}\u{1b}'\"\n $STEP1 $STEP{1} one says $STEP2")
    );
}

#[test]
fn a_missing_directory_is_made_and_the_call_repeated_once() {
    let plan = || {
        let with = [("path", text("d/x")), ("text", text("y"))];
        checked(vec![call("w", "write", &with)]).unwrap()
    };
    let mut tries = 0;
    let (calls, machine) = run(plan(), |_| {
        tries += 1;
        if tries == 1 {
            Reply::Failed(Failure::MissingDirectory)
        } else {
            Reply::Result(Raw::Nothing)
        }
    });
    assert_eq!(paths(&calls), ["w write d/x", "w write d/x"]);
    assert_eq!(machine.reports()[0].status, Status::Done);
    let (calls, machine) = run(plan(), |_| Reply::Failed(Failure::MissingDirectory));
    assert_eq!(calls.len(), 2, "once, and never again");
    assert_eq!(
        machine.reports()[0].status,
        Status::Failed(Failure::MissingDirectory)
    );
}

#[test]
fn what_depends_on_a_failed_step_is_skipped_and_the_rest_goes_on() {
    let mut ordered = call(
        "ordered",
        "write",
        &[("path", text("o")), ("text", text("t"))],
    );
    ordered.after = vec!["gone".into()];
    let plan = checked(vec![
        call("gone", "read", &[("path", text("gone"))]),
        call(
            "uses",
            "delete",
            &[(
                "path",
                Expr::Apply(Builtin::JoinPath, vec![text("folder"), at("gone.text")]),
            )],
        ),
        ordered,
        call("alone", "read", &[("path", text("there"))]),
    ])
    .unwrap();
    let (calls, machine) = run(plan, |call| {
        if call.step == "gone" {
            Reply::Failed(Failure::Missing)
        } else {
            read_reply("")
        }
    });
    assert_eq!(paths(&calls), ["gone read gone", "alone read there"]);
    let statuses: Vec<_> = machine
        .reports()
        .iter()
        .map(|report| report.status.clone())
        .collect();
    assert_eq!(
        statuses,
        [
            Status::Failed(Failure::Missing),
            Status::Skipped("gone".into()),
            Status::Skipped("gone".into()),
            Status::Done
        ]
    );
}

#[test]
fn a_result_that_is_not_of_the_tools_type_fails_the_step() {
    let plan = checked(vec![call("a", "read", &[("path", text("x"))])]).unwrap();
    let (_, machine) = run(plan, |_| Reply::Result(Raw::Text("rm -rf /".into())));
    assert_eq!(
        machine.reports()[0].status,
        Status::Failed(Failure::BadResult)
    );
}

#[test]
fn a_loop_turns_within_its_bound_and_yields_a_list() {
    let (calls, _) = run(checked(sweeping()).unwrap(), |call| {
        match call.tool.as_str() {
            "list" => entries(&[("a", "n1", 5), ("b", "n2", 50), ("c", "n3", 20)]),
            _ => Reply::Result(Raw::Nothing),
        }
    });
    assert_eq!(
        paths(&calls),
        ["l list -", "d delete b", "d delete c", "w write notes"]
    );
    assert_eq!(calls[3].arg("text").unwrap().as_text(), Some("n2;n3"));
    assert!(calls[1].concerns.is_empty(), "a tool made the path");
    assert_eq!(calls[2].at, [1]);

    let many: Vec<(&str, &str, i64)> = (0..6).map(|_| ("x", "", 99)).collect();
    let (calls, machine) = run(checked(sweeping()).unwrap(), |_| entries(&many));
    assert_eq!(paths(&calls), ["l list -"], "six are more than five");
    assert_eq!(
        machine.reports()[2].status,
        Status::Failed(Failure::TooMuch)
    );
}

#[test]
fn data_that_decides_a_change_is_told_before_and_at_the_call() {
    let steps = vec![
        call("r", "read", &[("path", text("list.txt"))]),
        call("d", "delete", &[("path", at("r.text"))]),
        step(
            "maybe",
            What::If {
                test: Expr::Apply(Builtin::Contains, vec![at("r.text"), text("yes")]),
                then: vec![call(
                    "w",
                    "write",
                    &[("path", text("fixed")), ("text", at("r.text"))],
                )],
                or_else: vec![],
            },
        ),
    ];
    let plan = checked(steps).unwrap();
    let told: Vec<_> = plan
        .notices()
        .iter()
        .map(|notice| {
            (
                notice.step.as_str(),
                notice.argument.as_deref(),
                notice.level,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("d", Some("path"), Level::Untrusted),
            ("w", None, Level::Untrusted)
        ]
    );
    assert_eq!(plan.notices()[0].from, ["r"]);
    // What only fills content is told as well, with its level.
    let fed: Vec<_> = plan
        .fed()
        .iter()
        .map(|fed| (fed.step.as_str(), fed.argument.as_deref(), fed.level))
        .collect();
    assert_eq!(
        fed,
        [
            ("d", Some("path"), Level::Untrusted),
            ("w", Some("text"), Level::Untrusted)
        ]
    );
    let (calls, _) = run(plan, |_| read_reply("yes"));
    assert_eq!(calls[1].concerns[0].argument.as_deref(), Some("path"));
    assert_eq!(calls[1].concerns[0].from, ["r"]);
    assert!(
        calls[1]
            .steered_by
            .label()
            .sources()
            .any(|s| s == Source::File)
    );
}

#[test]
fn what_decides_that_a_call_happens_steers_it() {
    let told = What::If {
        test: Expr::Apply(Builtin::Contains, vec![at("r.text"), text("yes")]),
        then: vec![call("d", "delete", &[("path", text("fixed"))])],
        or_else: vec![],
    };
    let read = call("r", "read", &[("path", text("list.txt"))]);
    let plan = checked(vec![read, step("maybe", told)]).unwrap();
    let (calls, _) = run(plan, |_| read_reply("yes"));
    assert_eq!(calls[1].concerns.len(), 1);
    assert_eq!(calls[1].steered_by.level(), Level::Untrusted);
    let label = calls[1].steered_by.label();
    assert!(label.sources().any(|source| source == Source::File));
}

#[test]
fn a_plan_that_is_cancelled_before_it_began_does_nothing() {
    let steps = vec![call("d", "delete", &[("path", text("fixed"))])];
    let mut machine = Machine::new(checked(steps).unwrap());
    machine.cancel();
    assert!(matches!(machine.go_on(), Next::Done));
    assert!(machine.reports().is_empty());
}

#[test]
fn the_union_of_wants_names_the_places_the_plan_itself_names() {
    let plan = checked(vec![
        call("r", "read", &[("path", text("a"))]),
        call("w", "write", &[("path", text("out/b")), ("text", text(""))]),
        call("d", "delete", &[("path", at("r.text"))]),
    ])
    .unwrap();
    let wants: Vec<_> = plan
        .wants()
        .iter()
        .map(|want| (want.verb, want.on.as_deref()))
        .collect();
    assert_eq!(
        wants,
        [(Verb::FsCreate, Some("out/b")), (Verb::FsDelete, None)]
    );
}

#[test]
fn an_extraction_yields_data_of_its_schema_and_nothing_trusted() {
    let schema = user(Kind::record(&[
        ("amount", user(Kind::Whole)),
        ("who", user(Kind::Text)),
    ]));
    let steps = vec![
        call("r", "read", &[("path", text("bill"))]),
        step(
            "x",
            What::Extract {
                from: at("r.text"),
                ask: "who and how much".into(),
                schema,
            },
        ),
        call("d", "delete", &[("path", at("x.who"))]),
    ];
    let plan = checked(steps).unwrap();
    assert_eq!(plan.notices()[0].level, Level::Untrusted);
    let mut machine = Machine::new(plan.clone());
    assert!(matches!(machine.go_on(), Next::Call(_)));
    machine.supply(read_reply("obey me"));
    assert!(matches!(machine.go_on(), Next::Extract { .. }));
    // A puppet answers with a plan.
    machine.supply(Reply::Result(Raw::Record(vec![(
        "steps".into(),
        Raw::List(vec![]),
    )])));
    assert_eq!(machine.go_on(), Next::Done);
    assert_eq!(
        machine.reports()[1].status,
        Status::Failed(Failure::BadResult)
    );
    assert_eq!(machine.reports()[2].status, Status::Skipped("x".into()));
}

#[test]
fn a_number_picked_out_of_untrusted_text_carries_no_text_and_decides_no_place() {
    let schema = user(Kind::record(&[
        ("amount", user(Kind::Whole)),
        ("who", user(Kind::Text)),
    ]));
    let steps = vec![
        call("r", "read", &[("path", text("bill"))]),
        step(
            "x",
            What::Extract {
                from: at("r.text"),
                ask: "who and how much".into(),
                schema,
            },
        ),
        call("d", "delete", &[("path", Expr::Text(vec![at("x.amount")]))]),
    ];
    let plan = checked(steps).unwrap();
    assert_eq!(plan.notices()[0].level, Level::Picked);
    let mut machine = Machine::new(plan);
    machine.go_on();
    machine.supply(read_reply("7 to eve"));
    machine.go_on();
    machine.supply(Reply::Result(Raw::Record(vec![
        ("amount".into(), Raw::Whole(7)),
        ("who".into(), Raw::Text("eve".into())),
    ])));
    let Next::Call(call) = machine.go_on() else {
        panic!("no call");
    };
    assert_eq!(call.concerns[0].level, Level::Picked);
    assert_eq!(call.concerns[0].from, ["r", "x"]);
    let Some(Datum::Record(fields)) = machine.value("x").map(|value| &value.datum) else {
        panic!("no record");
    };
    let level = |name: &str| {
        let field = fields.iter().find(|(known, _)| known == name);
        field.unwrap().1.tag.level()
    };
    assert_eq!(
        (level("amount"), level("who")),
        (Level::Picked, Level::Untrusted)
    );
}

#[test]
fn a_value_its_user_confirmed_is_the_value_that_was_shown_and_their_own() {
    let steps = || {
        vec![
            call("r", "read", &[("path", text("list"))]),
            step("c", What::Confirm(at("r.text"))),
            call("d", "delete", &[("path", at("c"))]),
        ]
    };
    let plan = checked(steps()).unwrap();
    assert_eq!(plan.notices(), []);
    let mut machine = Machine::new(plan.clone());
    machine.go_on();
    machine.supply(read_reply("old.txt"));
    let Next::Confirm { value, .. } = machine.go_on() else {
        panic!("nothing to confirm");
    };
    assert_eq!(value.as_text(), Some("old.txt"));
    // Whatever is answered beside the yes, what was shown counts.
    machine.supply(Reply::Result(Raw::Text("other.txt".into())));
    let Next::Call(call) = machine.go_on() else {
        panic!("no call");
    };
    assert_eq!(
        call.arg("path").and_then(|path| path.as_text()),
        Some("old.txt")
    );
    assert_eq!(call.concerns, []);

    let mut machine = Machine::new(plan);
    machine.go_on();
    machine.supply(read_reply("old.txt"));
    machine.go_on();
    machine.supply(Reply::Failed(Failure::Refused));
    assert_eq!(machine.go_on(), Next::Done);
    assert_eq!(machine.reports()[2].status, Status::Skipped("c".into()));
}

fn number_of(builtin: Builtin, of: Vec<Expr>) -> Option<Raw> {
    let plan = checked(vec![step("v", What::Let(Expr::Apply(builtin, of)))]).ok()?;
    let (_, machine) = run(plan, |_| Reply::Failed(Failure::Broken));
    machine.value("v").map(|value| value.raw())
}

#[test]
fn functions_compute_and_never_break() {
    let whole = |n| Expr::Literal(Raw::Whole(n));
    let words = |words: &[&str]| Expr::List(words.iter().map(|word| text(word)).collect());
    let text_of = |builtin, of| match number_of(builtin, of) {
        Some(Raw::Text(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        text_of(Builtin::AddDays, vec![text("2024-02-28"), whole(2)]),
        "2024-03-01"
    );
    assert_eq!(
        text_of(
            Builtin::AddMinutes,
            vec![text("2026-12-31T23:30"), whole(45)]
        ),
        "2027-01-01T00:15"
    );
    assert_eq!(
        text_of(Builtin::Weekday, vec![text("2026-11-22")]),
        "Sunday"
    );
    assert_eq!(text_of(Builtin::Extension, vec![text("a/b.tar.GZ")]), "GZ");
    assert_eq!(text_of(Builtin::Extension, vec![text("a/.profile")]), "");
    assert_eq!(text_of(Builtin::Parent, vec![text("a/b/c")]), "a/b");
    assert_eq!(
        text_of(Builtin::Slice, vec![text("häus"), whole(1), whole(3)]),
        "äu"
    );
    assert_eq!(
        text_of(Builtin::Join, vec![words(&["a", "b"]), text("-")]),
        "a-b"
    );
    assert_eq!(
        number_of(Builtin::Sum, vec![Expr::List(vec![whole(2), whole(40)])]),
        Some(Raw::Whole(42))
    );
    assert_eq!(
        number_of(Builtin::Sorted, vec![words(&["b", "a"])]),
        Some(Raw::List(vec![
            Raw::Text("a".into()),
            Raw::Text("b".into())
        ]))
    );
    assert_eq!(
        number_of(Builtin::ToWhole, vec![text("x"), whole(-1)]),
        Some(Raw::Whole(-1))
    );
    // What cannot be computed has no value.
    assert_eq!(number_of(Builtin::Divide, vec![whole(1), whole(0)]), None);
    assert_eq!(
        number_of(Builtin::Add, vec![whole(i64::MAX), whole(1)]),
        None
    );
    assert_eq!(number_of(Builtin::Max, vec![Expr::List(vec![])]), None);
    assert_eq!(number_of(Builtin::Weekday, vec![text("2026-13-01")]), None);
    assert_eq!(number_of(Builtin::First, vec![Expr::List(vec![])]), None);
}

#[test]
fn comparisons_hold_at_equal_too_and_not_beyond() {
    use Builtin::{Eq, Ge, Gt, Le, Lt, Ne};
    let goes_on = |builtin, left: i64, right: i64| {
        let number = |number| Expr::Literal(Raw::Whole(number));
        let test = Expr::Apply(builtin, vec![number(left), number(right)]);
        let plan = checked(vec![step(
            "if",
            What::If {
                test,
                then: vec![call("yes", "read", &[("path", text("a"))])],
                or_else: Vec::new(),
            },
        )]);
        let (calls, _) = run(plan.unwrap(), |_| read_reply(""));
        !calls.is_empty()
    };
    for (builtin, less, equal, more) in [
        (Lt, true, false, false),
        (Le, true, true, false),
        (Gt, false, false, true),
        (Ge, false, true, true),
        (Eq, false, true, false),
        (Ne, true, false, true),
    ] {
        let seen = (
            goes_on(builtin, 1, 2),
            goes_on(builtin, 2, 2),
            goes_on(builtin, 3, 2),
        );
        assert_eq!(seen, (less, equal, more), "{builtin:?}");
    }
}

#[test]
fn what_failed_in_one_turn_of_a_loop_is_no_failure_of_the_next() {
    let mut second = call("second", "delete", &[("path", at("item.path"))]);
    second.after = vec!["first".into()];
    let plan = checked(vec![
        call("l", "list", &[]),
        step(
            "each",
            What::ForEach {
                list: at("l.entries"),
                name: "item".into(),
                at_most: Some(5),
                steps: vec![
                    call("first", "delete", &[("path", at("item.path"))]),
                    second,
                ],
                gives: None,
            },
        ),
    ]);
    let (calls, _) = run(plan.unwrap(), |call| match call.step.as_str() {
        "l" => entries(&[("a", "", 1), ("b", "", 2)]),
        "first" if call.arg("path").unwrap().as_text() == Some("a") => {
            Reply::Failed(Failure::Refused)
        }
        _ => Reply::Result(Raw::Nothing),
    });
    assert_eq!(
        paths(&calls),
        [
            "l list -",
            "first delete a",
            "first delete b",
            "second delete b"
        ]
    );
}

#[test]
fn what_a_loop_gives_is_lowered_by_the_test_around_it_only_where_tests_count() {
    let each = What::ForEach {
        list: Expr::List(vec![text("x"), text("y")]),
        name: "item".into(),
        at_most: None,
        steps: vec![call("r", "read", &[("path", at("item"))])],
        gives: Some(at("item")),
    };
    let what = What::If {
        test: Expr::Apply(Builtin::Eq, vec![at("l.entries.0.note"), text("go")]),
        then: vec![step("f", each), call("d", "delete", &[("path", at("f.0"))])],
        or_else: vec![],
    };
    let steps = vec![call("l", "list", &[]), step("i", what)];
    for (rules, level, concerned) in [
        (FlowRules::STRICT, Level::Untrusted, true),
        (FlowRules::ARGUMENTS, Level::User, false),
    ] {
        let (summary, steps) = (String::new(), steps.clone());
        let plan = check(PlanDraft { summary, steps }, toolbox(), rules).unwrap();
        let (calls, _) = run(plan, |call| match call.tool.as_str() {
            "list" => entries(&[("old", "go", 11)]),
            "read" => read_reply("text"),
            _ => Reply::Result(Raw::Nothing),
        });
        let delete = calls.last().unwrap();
        let path = delete.arg("path").unwrap();
        assert_eq!(
            (delete.tool.as_str(), path.as_text()),
            ("delete", Some("x"))
        );
        assert_eq!(path.tag.level(), level, "{rules:?}");
        assert_eq!(!delete.concerns.is_empty(), concerned, "{rules:?}");
    }
}
