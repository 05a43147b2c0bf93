//! What the check of a plan counts and measures: every bound is reached and passed by one.

use hermitcrab_core::plan::{
    check::is_name,
    limits::{
        ARGUMENTS_MAX, BLOCK_DEPTH_MAX, CALLS_MAX, EXPR_DEPTH_MAX, EXPR_PARTS_MAX, FIELDS_MAX,
        LITERAL_BYTES_MAX, LOOP_TURNS_MAX, NAME_BYTES_MAX, STEPS_MAX,
    },
};

use super::*;

fn whole(number: i64) -> Expr {
    Expr::Literal(Raw::Whole(number))
}

fn truth(truth: bool) -> Expr {
    Expr::Literal(Raw::Truth(truth))
}

fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn value(expr: Expr) -> Step {
    step("a", What::Let(expr))
}

/// The one thing wrong with a plan of these steps, and at which step.
fn wrong(steps: Vec<Step>) -> Option<(Option<String>, ErrorKind)> {
    let mut errors = checked(steps).err()?;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.pop()
}

/// What is wrong with the value of a step called `a`, if anything.
fn wrong_value(expr: Expr) -> Option<ErrorKind> {
    let (at, kind) = wrong(vec![value(expr)])?;
    assert_eq!(at.as_deref(), Some("a"));
    Some(kind)
}

/// Of two plans the first is one, the second is not one because of `kind`.
fn bound(steps: impl Fn(usize) -> Vec<Step>, most: usize, at: Option<&str>, kind: ErrorKind) {
    assert_eq!(wrong(steps(most)), None, "{most}");
    let error = Some((at.map(str::to_owned), kind));
    assert_eq!(wrong(steps(most + 1)), error, "{}", most + 1);
    // Far past it, not only one past it.
    assert_eq!(wrong(steps(most + 2)), error, "{}", most + 2);
}

fn ifs(depth: usize) -> Vec<Step> {
    (0..depth).fold(Vec::new(), |then, place| {
        let what = What::If {
            test: truth(true),
            then,
            or_else: Vec::new(),
        };
        vec![step(&format!("s{place}"), what)]
    })
}

fn turns(times: usize, steps: Vec<Step>, name: &str) -> Vec<Step> {
    let what = What::ForEach {
        list: Expr::List(vec![text("x")]),
        name: format!("{name}_item"),
        at_most: Some(u32::try_from(times).unwrap()),
        steps,
        gives: None,
    };
    vec![step(name, what)]
}

#[test]
fn a_value_refers_to_all_it_names_but_the_items_of_its_own_lists() {
    let named = |name: &str| Expr::Ref {
        name: name.into(),
        path: Vec::new(),
    };
    let over = |list: &str, name: &str, body: Expr| Expr::Over {
        over: Over::Map,
        list: Box::new(named(list)),
        name: name.into(),
        body: Box::new(body),
    };
    let check = |expr: &Expr, expected: &[&str]| {
        let mut names = Vec::new();
        expr.names(&mut |name| names.push(name));
        assert_eq!(names, expected, "{expr:?}");
    };
    let both = || Expr::List(vec![named("item"), named("step")]);
    check(&over("all", "item", both()), &["all", "step"]);
    check(&over("all", "other", both()), &["all", "item", "step"]);
    // A list's own items are not known where the list stands.
    check(&over("item", "item", named("item")), &["item"]);
    let within = over("all", "item", over("item", "step", both()));
    check(&within, &["all"]);
}

#[test]
fn a_plan_has_so_many_steps_blocks_turns_and_calls_and_no_more() {
    let steps = |count| {
        (0..count)
            .map(|n| step(&format!("s{n}"), What::Let(whole(1))))
            .collect()
    };
    bound(steps, STEPS_MAX, None, ErrorKind::TooManySteps);
    bound(ifs, BLOCK_DEPTH_MAX, None, ErrorKind::TooDeep);
    let most = usize::try_from(LOOP_TURNS_MAX).unwrap();
    let one = |times| turns(times, Vec::new(), "l");
    bound(one, most, Some("l"), ErrorKind::TooManyCalls);
    let calls = |times| turns(times, turns(most, vec![call("c", "list", &[])], "k"), "l");
    bound(calls, 100, None, ErrorKind::TooManyCalls);
    assert_eq!(CALLS_MAX, 100 * u64::from(LOOP_TURNS_MAX));
}

#[test]
fn every_text_a_plan_writes_has_a_bound() {
    let summary = |bytes| {
        let draft = PlanDraft {
            summary: long(bytes),
            steps: vec![value(whole(1))],
        };
        check(draft, toolbox(), FlowRules::STRICT).map(drop)
    };
    assert_eq!(summary(LITERAL_BYTES_MAX), Ok(()));
    for more in [1, 2] {
        let errors = summary(LITERAL_BYTES_MAX + more).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (errors[0].step.clone(), errors[0].kind),
            (None, ErrorKind::TooLong)
        );
    }
    let schema = || user(Kind::Truth);
    let texts: [fn(String, Type) -> What; 4] = [
        |ask, schema| What::Extract {
            from: text("x"),
            ask,
            schema,
        },
        |question, schema| What::AskUser { question, schema },
        |text, _| What::Fail(text),
        |text, _| What::Let(Expr::text(&text)),
    ];
    for what in texts {
        let steps = |bytes| vec![step("a", what(long(bytes), schema()))];
        bound(steps, LITERAL_BYTES_MAX, Some("a"), ErrorKind::TooLong);
    }
}

#[test]
fn an_expression_has_so_many_parts_and_levels_and_no_more() {
    let items = |count| vec![value(Expr::List(vec![whole(1); count]))];
    bound(items, EXPR_PARTS_MAX - 1, Some("a"), ErrorKind::TooLong);
    let wraps: [fn(Expr) -> Expr; 6] = [
        |inner| Expr::List(vec![inner]),
        |inner| Expr::Record(vec![("f".into(), inner)]),
        |inner| Expr::Text(vec![inner]),
        |inner| Expr::Apply(Builtin::Upper, vec![inner]),
        |inner| Expr::Over {
            over: Over::Map,
            list: Box::new(inner),
            name: "e".into(),
            body: Box::new(whole(1)),
        },
        |inner| Expr::Over {
            over: Over::Map,
            list: Box::new(Expr::List(vec![])),
            name: "e".into(),
            body: Box::new(inner),
        },
    ];
    for (which, wrap) in wraps.into_iter().enumerate() {
        // Names of items inside one another are different.
        let named = |expr: Expr, place: usize| match expr {
            Expr::Over {
                over, list, body, ..
            } => Expr::Over {
                over,
                list,
                name: format!("e{place}"),
                body,
            },
            other => other,
        };
        let innermost = || match which {
            4 => Expr::List(vec![]),
            _ => text("x"),
        };
        let nested = |depth| {
            let expr = (0..depth).fold(innermost(), |inner, place| named(wrap(inner), place));
            vec![value(expr)]
        };
        bound(nested, EXPR_DEPTH_MAX, Some("a"), ErrorKind::TooDeep);
    }
    // Too many parts at the last level there may be are too many, not too deep.
    let wide = (0..EXPR_DEPTH_MAX - 1)
        .fold(Expr::List(vec![whole(1); EXPR_PARTS_MAX]), |inner, _| {
            Expr::List(vec![inner])
        });
    assert_eq!(wrong_value(wide), Some(ErrorKind::TooLong));
    let way = |hops: usize| format!("l{}", ".entries".repeat(hops));
    let far = |hops| wrong(vec![call("l", "list", &[]), value(at(&way(hops)))]);
    let error = |kind| Some((Some("a".to_owned()), kind));
    assert_eq!(far(EXPR_DEPTH_MAX), error(ErrorKind::UnknownField));
    assert_eq!(far(EXPR_DEPTH_MAX + 1), error(ErrorKind::TooDeep));
    assert_eq!(far(EXPR_DEPTH_MAX + 2), error(ErrorKind::TooDeep));
}

#[test]
fn a_record_has_so_many_fields_with_a_name_each() {
    let fields = |count: usize| (0..count).map(|n| (format!("f{n}"), whole(1))).collect();
    let record = |count| vec![value(Expr::Record(fields(count)))];
    bound(record, FIELDS_MAX, Some("a"), ErrorKind::TooLong);
    let named = |names: &[&str]| {
        let fields = names.iter().map(|name| ((*name).to_owned(), whole(1)));
        wrong_value(Expr::Record(fields.collect()))
    };
    assert_eq!(named(&["a", "b", "c"]), None);
    assert_eq!(named(&["a", "b", "a"]), Some(ErrorKind::BadName));
    assert_eq!(named(&["a", "2b"]), Some(ErrorKind::BadName));
}

#[test]
fn a_name_is_letters_digits_and_underscores_and_not_long() {
    for (name, expected) in [
        ("a", true),
        ("_", true),
        ("_1", true),
        ("a_1", true),
        ("Z9", true),
        ("", false),
        ("1a", false),
        ("-a", false),
        ("a-b", false),
        ("a b", false),
        ("\u{e4}", false),
    ] {
        assert_eq!(is_name(name), expected, "{name}");
    }
    assert!(is_name(&long(NAME_BYTES_MAX)));
    assert!(!is_name(&long(NAME_BYTES_MAX + 1)));
}

#[test]
fn a_number_or_a_list_written_in_a_plan_is_one() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let literal = Expr::Literal(Raw::Number(odd));
        assert_eq!(wrong_value(literal), Some(ErrorKind::WrongType));
    }
    assert_eq!(wrong_value(Expr::Literal(Raw::Number(1.5))), None);
    let list = Expr::Literal(Raw::List(vec![]));
    assert_eq!(wrong_value(list), Some(ErrorKind::WrongType));
}

#[test]
fn a_text_is_put_together_of_texts_numbers_and_truths() {
    let parts = |part| wrong_value(Expr::Text(vec![text("x"), part]));
    for part in [
        text("y"),
        whole(1),
        Expr::Literal(Raw::Number(1.5)),
        truth(true),
    ] {
        assert_eq!(parts(part), None);
    }
    for part in [Expr::Literal(Raw::Nothing), Expr::List(vec![])] {
        assert_eq!(parts(part), Some(ErrorKind::WrongType));
    }
}

#[test]
fn a_function_takes_the_arguments_it_takes() {
    let apply = |function, count| wrong_value(Expr::Apply(function, vec![text("x"); count]));
    for (function, count, expected) in [
        (Builtin::Upper, 0, Some(ErrorKind::WrongCount)),
        (Builtin::Upper, 1, None),
        (Builtin::Upper, 2, Some(ErrorKind::WrongCount)),
        (Builtin::Replace, 2, Some(ErrorKind::WrongCount)),
        (Builtin::Replace, 3, None),
        (Builtin::Replace, 4, Some(ErrorKind::WrongCount)),
    ] {
        assert_eq!(apply(function, count), expected, "{function:?} {count}");
    }
    let and = |count| vec![value(Expr::Apply(Builtin::And, vec![truth(true); count]))];
    bound(
        and,
        Builtin::And.count().1.min(ARGUMENTS_MAX),
        Some("a"),
        ErrorKind::WrongCount,
    );
}

#[test]
fn an_items_name_is_new_where_it_stands() {
    let over = |over, name: &str, body| Expr::Over {
        over,
        list: Box::new(Expr::List(vec![whole(1)])),
        name: name.into(),
        body: Box::new(body),
    };
    let inner = |name: &str| over(Over::Map, name, whole(1));
    assert_eq!(wrong_value(over(Over::Map, "e", inner("f"))), None);
    let taken = Some(ErrorKind::NameTaken);
    assert_eq!(wrong_value(over(Over::Map, "e", inner("e"))), taken);
    // The name of a step that comes later is taken, too.
    let later = step("later", What::Let(whole(1)));
    let error = Some((Some("a".to_owned()), ErrorKind::NameTaken));
    assert_eq!(wrong(vec![value(inner("later")), later]), error);
    let bad = Some(ErrorKind::BadName);
    assert_eq!(wrong_value(inner("2")), bad);
    let untrue = Some(ErrorKind::NotATruth);
    assert_eq!(wrong_value(over(Over::Filter, "e", whole(1))), untrue);
    assert_eq!(wrong_value(over(Over::Filter, "e", truth(true))), None);
}

#[test]
fn what_leans_on_a_wrong_step_is_not_wrong_because_of_that() {
    let loops = |list| What::ForEach {
        list,
        name: "item".into(),
        at_most: None,
        steps: vec![],
        gives: None,
    };
    let broken = || call("b", "fly", &[]);
    let error = |at: &str, kind| Some((Some(at.to_owned()), kind));
    let unknown = error("b", ErrorKind::UnknownTool);
    assert_eq!(wrong(vec![broken(), step("l", loops(at("b")))]), unknown);
    assert_eq!(wrong(vec![broken(), value(at("b.text.0"))]), unknown);
    assert_eq!(
        wrong(vec![step("l", loops(whole(1)))]),
        error("l", ErrorKind::NotAList)
    );
    let branch = |test| What::If {
        test,
        then: vec![],
        or_else: vec![],
    };
    assert_eq!(wrong(vec![broken(), step("i", branch(at("b")))]), unknown);
    let untrue = error("i", ErrorKind::NotATruth);
    assert_eq!(wrong(vec![step("i", branch(whole(1)))]), untrue);
    let list = call("l", "list", &[]);
    assert_eq!(
        wrong(vec![list.clone(), value(at("l.entries.0.size"))]),
        None
    );
    let missing = error("a", ErrorKind::UnknownField);
    assert_eq!(wrong(vec![list, value(at("l.0"))]), missing);
}

#[test]
fn only_a_text_is_delegated_and_only_to_known_tools() {
    let delegate = |from, tools: Vec<&str>| {
        let tools = tools.into_iter().map(str::to_owned).collect();
        vec![step("a", What::Delegate { from, tools })]
    };
    let error = |kind| Some((Some("a".to_owned()), kind));
    assert_eq!(wrong(delegate(text("x"), vec!["read"])), None);
    assert_eq!(
        wrong(delegate(whole(1), vec!["read"])),
        error(ErrorKind::WrongType)
    );
    assert_eq!(
        wrong(delegate(text("x"), vec!["fly"])),
        error(ErrorKind::UnknownTool)
    );
    let many = |count| delegate(text("x"), vec!["read"; count]);
    bound(many, ARGUMENTS_MAX, Some("a"), ErrorKind::TooLong);
}

#[test]
fn a_form_of_an_answer_is_one_that_can_be_asked_for() {
    let list = |item: Kind| Kind::list(user(item));
    let choice = |words: Vec<String>| Kind::Choice(words);
    let words = |count: usize| (0..count).map(|n| format!("w{n}")).collect();
    let fields = |names: &[&str]| {
        let fields: Vec<(&str, Type)> =
            names.iter().map(|name| (*name, user(Kind::Text))).collect();
        Kind::record(&fields)
    };
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        fields(&names)
    };
    let nested = |depth| (0..depth).fold(Kind::Text, |inner, _| list(inner));
    let in_records =
        |depth| (0..depth).fold(Kind::Text, |inner, _| Kind::record(&[("f", user(inner))]));
    for (schema, expected) in [
        (Kind::Text, true),
        (Kind::Time, true),
        (Kind::Nothing, false),
        (Kind::Never, false),
        (choice(vec![]), false),
        (choice(words(FIELDS_MAX)), true),
        (choice(words(FIELDS_MAX + 1)), false),
        (choice(vec!["a".into(), long(128)]), true),
        (choice(vec!["a".into(), long(129)]), false),
        (Kind::Optional(Box::new(user(Kind::Whole))), true),
        (Kind::Optional(Box::new(user(Kind::Nothing))), false),
        (nested(4), true),
        (nested(5), false),
        (in_records(4), true),
        (in_records(5), false),
        (fields(&[]), false),
        (many(FIELDS_MAX), true),
        (many(FIELDS_MAX + 1), false),
        (fields(&["a", "b"]), true),
        (fields(&["a", "a"]), false),
        (fields(&["a", "2"]), false),
        (
            Kind::record(&[("a", user(Kind::Text)), ("b", user(Kind::Never))]),
            false,
        ),
    ] {
        let message = format!("{schema:?}");
        let question = "which?".to_owned();
        let schema = user(schema);
        let asked = wrong(vec![step("a", What::AskUser { question, schema })]);
        let error = Some((Some("a".to_owned()), ErrorKind::BadSchema));
        assert_eq!(asked, if expected { None } else { error }, "{message}");
    }
}

/// A tool with as many arguments as this, one that takes a choice, and one that runs a program.
fn tools(arguments: usize) -> Arc<Toolbox> {
    let names: Vec<String> = (0..arguments).map(|n| format!("p{n}")).collect();
    let params = names
        .iter()
        .map(|name| param(name, Kind::Whole, Role::Free));
    let word = Kind::Choice(vec![long(128), long(129)]);
    let words = Kind::list(user(Kind::Text));
    Arc::new(Toolbox::new(vec![
        tool("many", params.collect(), user(Kind::Nothing), None),
        tool(
            "pick",
            vec![param("word", word, Role::Free)],
            user(Kind::Nothing),
            None,
        ),
        tool(
            "run",
            vec![param("argv", words, Role::Program)],
            user(Kind::Nothing),
            None,
        ),
        tool("say", vec![], user(Kind::Text), None),
    ]))
}

fn wrong_with(tools: Arc<Toolbox>, steps: Vec<Step>) -> Vec<ErrorKind> {
    let summary = String::new();
    match check(PlanDraft { summary, steps }, tools, FlowRules::STRICT) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.kind).collect(),
    }
}

#[test]
fn a_call_has_so_many_arguments() {
    let called = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("p{n}")).collect();
        let with: Vec<(&str, Expr)> = names.iter().map(|name| (name.as_str(), whole(1))).collect();
        wrong_with(tools(count), vec![call("a", "many", &with)])
    };
    assert_eq!(called(ARGUMENTS_MAX), []);
    for more in [1, 2] {
        assert_eq!(called(ARGUMENTS_MAX + more), [ErrorKind::TooLong]);
    }
}

#[test]
fn a_short_text_is_a_choice_of_itself_and_a_long_one_is_none() {
    let picked = |bytes| {
        wrong_with(
            tools(0),
            vec![call("a", "pick", &[("word", Expr::text(&long(bytes)))])],
        )
    };
    assert_eq!(picked(128), []);
    assert_eq!(picked(127), [ErrorKind::WrongType]);
    assert_eq!(picked(129), [ErrorKind::WrongType]);
}

#[test]
fn a_program_is_written_in_the_plan_itself() {
    let run = |argv| {
        let steps = vec![call("s", "say", &[]), call("a", "run", &[("argv", argv)])];
        wrong_with(tools(0), steps)
    };
    assert_eq!(run(Expr::List(vec![text("make"), text("all")])), []);
    let fed = Expr::List(vec![text("make"), at("s")]);
    assert_eq!(run(fed), [ErrorKind::NotLiteral]);
    let made = Expr::Apply(
        Builtin::Append,
        vec![Expr::List(vec![]), Expr::List(vec![text("make")])],
    );
    assert_eq!(run(made), [ErrorKind::NotLiteral]);
}

/// The steps and arguments of which data decides something.
fn steered(steps: Vec<Step>, rules: FlowRules) -> Vec<(String, Option<String>)> {
    let summary = String::new();
    let plan = check(PlanDraft { summary, steps }, toolbox(), rules).unwrap();
    let notices = plan.notices().iter();
    notices
        .map(|notice| (notice.step.clone(), notice.argument.clone()))
        .collect()
}

#[test]
fn whether_a_change_happens_is_noticed_where_text_decides_it_and_not_where_a_tool_does() {
    let test = |of: &str, function, against| Expr::Apply(function, vec![at(of), against]);
    let by_size = || test("l.entries.0.size", Builtin::Gt, whole(10));
    let by_note = || test("l.entries.0.note", Builtin::Eq, text("go"));
    let plan = |test: Expr, inside: Step| {
        let what = What::If {
            test,
            then: vec![inside],
            or_else: vec![],
        };
        vec![call("l", "list", &[]), step("i", what)]
    };
    let delete = || call("d", "delete", &[("path", text("old"))]);
    let read = || call("r", "read", &[("path", text("old"))]);
    let noticed = vec![("d".to_owned(), None)];
    assert_eq!(
        steered(plan(by_note(), delete()), FlowRules::STRICT),
        noticed
    );
    assert_eq!(steered(plan(by_size(), delete()), FlowRules::STRICT), []);
    assert_eq!(steered(plan(by_note(), read()), FlowRules::STRICT), []);
    assert_eq!(steered(plan(by_note(), delete()), FlowRules::ARGUMENTS), []);
    // The same at the call itself.
    for (test, inside, rules, expected) in [
        (by_note(), delete(), FlowRules::STRICT, 1),
        (by_size(), delete(), FlowRules::STRICT, 0),
        (by_note(), read(), FlowRules::STRICT, 0),
        (by_note(), delete(), FlowRules::ARGUMENTS, 0),
    ] {
        let summary = String::new();
        let steps = plan(test, inside);
        let plan = check(PlanDraft { summary, steps }, toolbox(), rules).unwrap();
        let (calls, _) = run(plan, |call| match call.tool.as_str() {
            "list" => entries(&[("old", "go", 11)]),
            "read" => read_reply("text"),
            _ => Reply::Result(Raw::Nothing),
        });
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1].concerns.len(), expected);
    }
}

#[test]
fn a_report_says_in_which_turns_of_the_loops_around_a_step_was_done() {
    let what = What::ForEach {
        list: Expr::List(vec![text("x"), text("y")]),
        name: "item".into(),
        at_most: None,
        steps: vec![call("r", "read", &[("path", at("item"))])],
        gives: None,
    };
    let (_, machine) = run(checked(vec![step("l", what)]).unwrap(), |_| {
        read_reply("text")
    });
    let told: Vec<(&str, &[usize])> = machine
        .reports()
        .iter()
        .map(|report| (report.step.as_str(), report.at.as_slice()))
        .collect();
    assert_eq!(told, [("r", &[0][..]), ("r", &[1]), ("l", &[])]);
}

#[test]
fn what_is_left_out_is_refused_and_what_is_cancelled_ends_the_plan() {
    let two = || {
        let steps = ["a", "b"].map(|id| call(id, "read", &[("path", text(id))]));
        Machine::new(checked(steps.to_vec()).unwrap())
    };
    let told = |machine: &Machine| -> Vec<(String, Status)> {
        let reports = machine.reports().iter();
        reports
            .map(|report| (report.step.clone(), report.status.clone()))
            .collect()
    };
    let mut machine = two();
    assert!(matches!(machine.go_on(), Next::Call(call) if call.step == "a"));
    machine.leave_out();
    assert_eq!(
        told(&machine),
        [("a".to_owned(), Status::Failed(Failure::Refused))]
    );
    assert!(matches!(machine.go_on(), Next::Call(call) if call.step == "b"));
    machine.cancel();
    let cancelled = ("b".to_owned(), Status::Failed(Failure::Cancelled));
    assert_eq!(told(&machine).last(), Some(&cancelled));
    assert!(matches!(machine.go_on(), Next::Done));
}
