//! Who may see a value, checked wherever it would come before somebody's eyes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use hermitcrab_core::{
    authority::Name,
    plan::{Reach, Seer},
};

use super::*;

/// `secret` yields a text for `ann` and the server `mail`, `open` one for
/// everybody; `send` shows its text to `mail` and whom `to` names; `keep` puts
/// it into a file.
fn tools(readers: &[&str]) -> Arc<Toolbox> {
    let readers: BTreeSet<Name> = readers
        .iter()
        .map(|name| Name::parse(name).unwrap())
        .collect();
    let gives = || Kind::record(&[("text", user(Kind::Text))]).at(Level::User);
    let secret = Signature {
        readers: Some(readers),
        ..tool("secret", vec![], gives(), None)
    };
    let send = Signature {
        reaches: vec![Reach::Reader("mail".into()), Reach::NamedBy("to".into())],
        ..tool(
            "send",
            vec![
                param("to", Kind::list(user(Kind::Text)), Role::Target),
                param("text", Kind::Text, Role::Content),
            ],
            user(Kind::Nothing),
            Some(Verb::NetConnect),
        )
    };
    let keep = Signature {
        reaches: vec![Reach::Reader("files".into())],
        ..tool(
            "keep",
            vec![
                param("path", Kind::Path, Role::Target),
                param("text", Kind::Text, Role::Content),
            ],
            user(Kind::Nothing),
            Some(Verb::FsCreate),
        )
    };
    let ask = Signature {
        reaches: vec![Reach::Reader("search".into())],
        ..tool(
            "ask",
            vec![param("words", Kind::Text, Role::Free)],
            user(Kind::Nothing),
            None,
        )
    };
    Arc::new(Toolbox::new(vec![
        secret,
        tool("open", vec![], gives(), None),
        send,
        keep,
        ask,
    ]))
}

fn plan(steps: Vec<Step>, readers: &[&str]) -> Plan {
    let summary = String::new();
    check(
        PlanDraft { summary, steps },
        tools(readers),
        FlowRules::STRICT,
    )
    .unwrap()
}

fn reads() -> Vec<Step> {
    vec![call("s", "secret", &[]), call("o", "open", &[])]
}

fn send(to: &[&str], of: Expr) -> Step {
    let to = Expr::List(to.iter().map(|name| text(name)).collect());
    call("send", "send", &[("to", to), ("text", of)])
}

/// Who would see what for whom it is not, before anything of the plan runs.
fn foretold(steps: Vec<Step>, readers: &[&str]) -> Vec<(String, Option<String>, Seer)> {
    plan(steps, readers)
        .notices()
        .iter()
        .filter_map(|notice| {
            let unseen = notice.unseen.clone()?;
            let only_for: Vec<&str> = unseen.only_for.iter().map(Name::as_str).collect();
            assert_eq!(only_for, readers);
            Some((notice.step.clone(), notice.argument.clone(), unseen.seer))
        })
        .collect()
}

/// Of the last call: which argument would come before whose eyes. Whatever is
/// found at the call was told before, and of a call that shows nobody anything
/// nothing was.
fn unseen(steps: Vec<Step>, readers: &[&str]) -> Vec<(Option<String>, String)> {
    let told = foretold(steps.clone(), readers);
    let found = at_the_call(steps, readers);
    let arguments = |told: &[(String, Option<String>, Seer)]| -> Vec<Option<String>> {
        told.iter()
            .map(|(_, argument, _)| argument.clone())
            .collect()
    };
    let found_arguments: Vec<_> = found.iter().map(|(argument, _)| argument.clone()).collect();
    assert_eq!(arguments(&told), found_arguments, "{told:?} {found:?}");
    for ((_, _, seer), (_, reader)) in told.iter().zip(&found) {
        assert_eq!(*seer, Seer::Reader(reader.clone()));
    }
    found
}

fn at_the_call(steps: Vec<Step>, readers: &[&str]) -> Vec<(Option<String>, String)> {
    let (calls, _) = run(plan(steps, readers), |call| match call.tool.as_str() {
        "secret" | "open" => read_reply("words"),
        _ => Reply::Result(Raw::Nothing),
    });
    let last = calls.last().unwrap();
    assert_ne!(last.tool, "secret");
    last.concerns
        .iter()
        .filter_map(|concern| Some((concern.argument.clone(), concern.reader.clone()?)))
        .collect()
}

fn with(step: Step) -> Vec<Step> {
    let mut steps = reads();
    steps.push(step);
    steps
}

#[test]
fn a_value_for_some_reaches_them_and_nobody_else_unasked() {
    let readers = ["ann", "mail"];
    let concern = |reader: &str| vec![(Some("text".to_owned()), reader.to_owned())];
    // For whom it is, and what is for everybody.
    assert_eq!(unseen(with(send(&["ann"], at("s.text"))), &readers), []);
    assert_eq!(unseen(with(send(&["bob"], at("o.text"))), &readers), []);
    // One who is not of them is enough.
    let both = send(&["ann", "bob"], at("s.text"));
    assert_eq!(unseen(with(both), &readers), concern("bob"));
    // The server that carries it sees it, too.
    assert_eq!(
        unseen(with(send(&["ann"], at("s.text"))), &["ann"]),
        concern("mail")
    );
    // Files, and tools that change nothing, are no way round.
    let keep = call("k", "keep", &[("path", text("f")), ("text", at("s.text"))]);
    assert_eq!(unseen(with(keep), &readers), concern("files"));
    let ask = call("a", "ask", &[("words", at("s.text"))]);
    assert_eq!(
        unseen(with(ask), &readers),
        [(Some("words".to_owned()), "search".to_owned())]
    );
}

#[test]
fn what_is_made_of_a_value_is_for_its_readers_and_no_spelling_makes_one_of_another() {
    let readers = ["ann", "mail"];
    let made = Expr::Text(vec![
        text("said: "),
        Expr::Apply(Builtin::Upper, vec![at("s.text")]),
        at("o.text"),
    ]);
    assert_eq!(unseen(with(send(&["bob"], made)), &readers).len(), 1);
    for other in ["Ann", "ann ", "", "\u{430}nn", "ann,bob"] {
        let found = unseen(with(send(&[other], at("s.text"))), &readers);
        assert_eq!(found, [(Some("text".to_owned()), other.to_owned())]);
    }
}

#[test]
fn that_something_happens_can_tell_as_much_as_what_it_says() {
    let says = Expr::Apply(Builtin::Eq, vec![at("s.text"), text("words")]);
    let told = What::If {
        test: says,
        then: vec![send(&["bob"], text("yes"))],
        or_else: Vec::new(),
    };
    let found = unseen(with(step("if", told)), &["ann", "mail"]);
    assert_eq!(found, [(None, "bob".to_owned())]);
    // And so can what was put down because of it.
    let says = Expr::Apply(Builtin::Eq, vec![at("s.text"), text("words")]);
    let told = What::If {
        test: says,
        then: vec![step("y", What::Let(text("yes"))), send(&["bob"], at("y"))],
        or_else: Vec::new(),
    };
    let found = unseen(with(step("if", told)), &["ann", "mail"]);
    assert_eq!(
        found,
        [
            (Some("text".to_owned()), "bob".to_owned()),
            (None, "bob".to_owned())
        ]
    );
}

#[test]
fn a_plan_tells_beforehand_who_would_see_what_is_not_for_them() {
    let readers = ["ann", "mail"];
    let told = |step: &str, argument: Option<&str>, seer: Seer| {
        vec![(step.to_owned(), argument.map(str::to_owned), seer)]
    };
    let by_data = || Seer::NamedBy("to".into());
    // Whom data will name is not known yet, and that is said.
    let send_to = |to: Expr, of: Expr| call("send", "send", &[("to", to), ("text", of)]);
    let open = Expr::List(vec![at("o.text")]);
    assert_eq!(
        foretold(with(send_to(open.clone(), at("s.text"))), &readers),
        told("send", Some("text"), by_data())
    );
    assert_eq!(foretold(with(send_to(open, at("o.text"))), &readers), []);
    // Who certainly may not is told rather than who perhaps may not.
    let both = Expr::List(vec![at("o.text"), text("bob")]);
    assert_eq!(
        foretold(with(send_to(both, at("s.text"))), &readers),
        told("send", Some("text"), Seer::Reader("bob".into()))
    );
    // What is made of it, in a loop too, and what a model picked out of it.
    let each = What::ForEach {
        list: Expr::Apply(Builtin::Lines, vec![at("s.text")]),
        name: "line".into(),
        at_most: None,
        steps: vec![send(&["bob"], at("line"))],
        gives: Some(at("line")),
    };
    let mut steps = with(step("each", each));
    let bob = || Seer::Reader("bob".into());
    let mut both = told("send", Some("text"), bob());
    both.extend(told("send", None, bob()));
    assert_eq!(foretold(steps.clone(), &readers), both);
    let joined = Expr::Apply(Builtin::Join, vec![at("each"), text("")]);
    steps.push(call("k", "keep", &[("path", text("f")), ("text", joined)]));
    both.extend(told("k", Some("text"), Seer::Reader("files".into())));
    assert_eq!(foretold(steps, &readers), both);
    let extract = What::Extract {
        from: at("s.text"),
        ask: "who".into(),
        schema: user(Kind::Text),
    };
    let mut steps = with(step("x", extract));
    steps.push(send(&["bob"], at("x")));
    let mut model = told("x", None, Seer::Reader("model".into()));
    model.extend(told("send", Some("text"), bob()));
    assert_eq!(foretold(steps, &readers), model);
    // What its user is shown first is theirs.
    let mut steps = with(step("ok", What::Confirm(at("s.text"))));
    steps.push(send(&["bob"], at("ok")));
    assert_eq!(foretold(steps, &readers), []);
}

#[test]
fn what_was_asked_for_tells_as_much_as_the_answer() {
    let ask = call("a", "ask", &[("words", at("s.text"))]);
    let mut steps = with(ask);
    steps.push(call(
        "k",
        "keep",
        &[("path", text("f")), ("text", text("asked"))],
    ));
    // Only the question itself was for somebody.
    let readers = ["ann", "search"];
    assert_eq!(foretold(steps.clone(), &readers), []);
    let is_asked = Expr::Apply(Builtin::Eq, vec![at("s.text"), text("x")]);
    let told = What::If {
        test: is_asked,
        then: steps.pop().into_iter().collect(),
        or_else: Vec::new(),
    };
    let found = foretold(with(step("if", told)), &readers);
    assert_eq!(
        found,
        [("k".to_owned(), None, Seer::Reader("files".into()))]
    );
}

#[test]
fn a_model_reads_what_is_for_it_and_a_yes_of_the_user_makes_a_value_theirs() {
    let extract = || {
        let what = What::Extract {
            from: at("s.text"),
            ask: "the amount".into(),
            schema: user(Kind::Whole),
        };
        with(step("x", what))
    };
    for (readers, is_asked) in [(&["ann"][..], false), (&["ann", "model"][..], true)] {
        let mut machine = Machine::new(plan(extract(), readers));
        let mut asked = false;
        loop {
            match machine.go_on() {
                Next::Done => break,
                Next::Call(_) => machine.supply(read_reply("7")),
                Next::Extract { .. } => {
                    asked = true;
                    machine.supply(Reply::Result(Raw::Whole(7)));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(asked, is_asked, "{readers:?}");
    }
    let mut steps = with(step("ok", What::Confirm(at("s.text"))));
    steps.push(send(&["bob"], at("ok")));
    let mut machine = Machine::new(plan(steps, &["ann"]));
    loop {
        match machine.go_on() {
            Next::Done => panic!("nothing was sent"),
            Next::Call(call) if call.tool == "send" => {
                assert_eq!(call.concerns, []);
                break;
            }
            Next::Call(_) => machine.supply(read_reply("words")),
            Next::Confirm { .. } => machine.supply(Reply::Result(Raw::Nothing)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_a_tool_was_asked_is_in_its_answer_and_what_it_was_given_is_not() {
    let readers = ["ann", "mail"];
    let gives = || Kind::record(&[("text", user(Kind::Text))]).at(Level::User);
    let mut all = tools(&readers).all().to_vec();
    for (name, role) in [("find", Role::Free), ("store", Role::Content)] {
        all.push(tool(
            name,
            vec![param("text", Kind::Text, role)],
            gives(),
            None,
        ));
    }
    let toolbox = Arc::new(Toolbox::new(all));
    let told = |tool: &str, rules: FlowRules| {
        let mut steps = reads();
        steps.push(call("t", tool, &[("text", at("s.text"))]));
        steps.push(send(&["bob"], at("t.text")));
        let summary = String::new();
        let plan = check(PlanDraft { summary, steps }, toolbox.clone(), rules).unwrap();
        let is_told = plan.notices().iter().any(|notice| notice.unseen.is_some());
        let (calls, _) = run(plan, |call| match call.tool.as_str() {
            "send" => Reply::Result(Raw::Nothing),
            _ => read_reply("words"),
        });
        let concerns = &calls.last().unwrap().concerns;
        let is_found = concerns.iter().any(|concern| concern.reader.is_some());
        assert_eq!(is_told, is_found, "{tool}");
        is_told
    };
    assert!(told("find", FlowRules::STRICT));
    assert!(!told("store", FlowRules::STRICT));
    assert!(!told("find", FlowRules::ARGUMENTS));
}

#[test]
fn a_call_that_shows_a_value_for_some_is_steered_by_that_value() {
    let steered = |text: Expr| {
        let steps = with(send(&["bob"], text));
        let (calls, _) = run(plan(steps, &["ann", "mail"]), |call| {
            match call.tool.as_str() {
                "secret" | "open" => read_reply("words"),
                _ => Reply::Result(Raw::Nothing),
            }
        });
        calls.last().unwrap().steered_by.clone()
    };
    assert!(!steered(at("s.text")).admits_named("bob"));
    assert!(steered(at("s.text")).admits_named("ann"));
    assert!(steered(at("o.text")).admits_named("bob"));
}

#[test]
fn a_call_that_happens_because_of_what_is_for_some_is_steered_by_that() {
    let readers = ["ann", "mail"];
    let mut all = tools(&readers).all().to_vec();
    // A tool's own field: that it decides whether something happens is no matter by itself.
    all.push(Signature {
        readers: Some(
            readers
                .iter()
                .map(|name| Name::parse(name).unwrap())
                .collect(),
        ),
        ..tool(
            "flag",
            vec![],
            Kind::record(&[("set", Kind::Truth.at(Level::Service))]).at(Level::Service),
            None,
        )
    });
    let told = What::If {
        test: at("f.set"),
        then: vec![send(&["bob"], text("yes"))],
        or_else: Vec::new(),
    };
    let steps = vec![call("f", "flag", &[]), step("if", told)];
    let draft = PlanDraft {
        summary: String::new(),
        steps,
    };
    let plan = check(draft, Arc::new(Toolbox::new(all)), FlowRules::STRICT).unwrap();
    let (calls, _) = run(plan, |call| match call.tool.as_str() {
        "flag" => Reply::Result(Raw::Record(vec![("set".into(), Raw::Truth(true))])),
        _ => Reply::Result(Raw::Nothing),
    });
    let last = calls.last().unwrap();
    let concerns: Vec<_> = last
        .concerns
        .iter()
        .map(|one| (&one.argument, &one.reader))
        .collect();
    assert_eq!(concerns, [(&None, &Some("bob".to_owned()))]);
    assert!(!last.steered_by.admits_named("bob"));
    assert!(last.steered_by.admits_named("ann"));
}

#[test]
fn whoever_is_named_anywhere_in_an_argument_is_a_reader() {
    let to = Kind::record(&[
        ("who", user(Kind::Text)),
        ("all", user(Kind::list(user(Kind::Text)))),
    ]);
    let mut all = tools(&["ann", "mail"]).all().to_vec();
    all.push(Signature {
        reaches: vec![Reach::NamedBy("to".into())],
        ..tool(
            "post",
            vec![
                param("to", to, Role::Target),
                param("text", Kind::Text, Role::Content),
            ],
            user(Kind::Nothing),
            Some(Verb::NetConnect),
        )
    });
    let toolbox = Arc::new(Toolbox::new(all));
    let seen_by = |who: &str, other: &str| {
        let to = Expr::Record(vec![
            ("who".into(), text(who)),
            ("all".into(), Expr::List(vec![text("ann"), text(other)])),
        ]);
        let steps = with(call("post", "post", &[("to", to), ("text", at("s.text"))]));
        let summary = String::new();
        let draft = PlanDraft { summary, steps };
        let plan = check(draft, toolbox.clone(), FlowRules::STRICT).unwrap();
        let (calls, _) = run(plan, |call| match call.tool.as_str() {
            "post" => Reply::Result(Raw::Nothing),
            _ => read_reply("words"),
        });
        let concerns = calls.last().unwrap().concerns.clone();
        concerns.into_iter().find_map(|concern| concern.reader)
    };
    assert_eq!(seen_by("ann", "ann"), None);
    assert_eq!(seen_by("bob", "ann").as_deref(), Some("bob"));
    assert_eq!(seen_by("ann", "bob").as_deref(), Some("bob"));
}

#[test]
fn what_is_put_together_of_two_secrets_is_for_those_both_are_for() {
    let only = |names: &[&str]| {
        names
            .iter()
            .map(|name| Name::parse(name).unwrap())
            .collect()
    };
    let mut all = tools(&["ann", "mail"]).all().to_vec();
    all.push(Signature {
        readers: Some(only(&["bob", "mail"])),
        ..tool(
            "other",
            vec![],
            Kind::record(&[("text", user(Kind::Text))]).at(Level::User),
            None,
        )
    });
    let toolbox = Arc::new(Toolbox::new(all));
    for (to, is_among) in [("ann", false), ("bob", false), ("mail", true)] {
        let mut steps = with(call("p", "other", &[]));
        steps.push(send(&[to], Expr::Text(vec![at("s.text"), at("p.text")])));
        let summary = String::new();
        let draft = PlanDraft { summary, steps };
        let plan = check(draft, toolbox.clone(), FlowRules::STRICT).unwrap();
        let told = plan.notices().iter().any(|notice| notice.unseen.is_some());
        assert_eq!(told, !is_among, "{to}");
        let (calls, _) = run(plan, |call| match call.tool.as_str() {
            "send" => Reply::Result(Raw::Nothing),
            _ => read_reply("words"),
        });
        let concerns = &calls.last().unwrap().concerns;
        let found = concerns.iter().any(|concern| concern.reader.is_some());
        assert_eq!(found, !is_among, "{to}");
    }
}
