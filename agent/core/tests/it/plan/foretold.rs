//! Whatever is asked about at a call was told when the plan was approved.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use hermitcrab_core::{authority::Name, plan::Reach};
use proptest::prelude::*;

use super::*;

/// `secret` gives somebody's text for `ann` and `mail`, `open` a text of the
/// service's for everybody; `send` and `keep` show theirs to others.
fn tools() -> Arc<Toolbox> {
    let gives = |level| Kind::record(&[("text", Kind::Text.at(level))]).at(Level::Service);
    let readers: BTreeSet<Name> = ["ann", "mail"]
        .map(|name| Name::parse(name).unwrap())
        .into();
    let words = || param("text", Kind::Text, Role::Outgoing);
    let to = || param("to", Kind::Text, Role::Target);
    let path = || param("path", Kind::Path, Role::Target);
    let about = || Param {
        required: false,
        ..param("about", Kind::Text, Role::Free)
    };
    let nothing = || user(Kind::Nothing);
    Arc::new(Toolbox::new(vec![
        Signature {
            readers: Some(readers),
            ..tool("secret", vec![about()], gives(Level::Untrusted), None)
        },
        tool("open", vec![about()], gives(Level::Service), None),
        Signature {
            reaches: vec![Reach::Reader("mail".into()), Reach::NamedBy("to".into())],
            ..tool(
                "send",
                vec![to(), words()],
                nothing(),
                Some(Verb::NetConnect),
            )
        },
        Signature {
            reaches: vec![Reach::Reader("files".into())],
            ..tool(
                "keep",
                vec![path(), words()],
                nothing(),
                Some(Verb::FsCreate),
            )
        },
    ]))
}

/// Chooses among what there is.
fn one(names: &[String], by: u8) -> Expr {
    match names.get(usize::from(by) % (names.len() + 1)) {
        Some(name) => at(name),
        None => text(["ann", "bob", "mail"][usize::from(by) % 3]),
    }
}

fn lines(of: Expr) -> Expr {
    Expr::Apply(Builtin::Lines, vec![of])
}

/// A step, and where the text it yields is, if it yields one.
fn made(place: usize, names: &[String], choice: [u8; 4]) -> (Vec<Step>, Option<String>) {
    let id = format!("s{place}");
    let [kind, first, second, third] = choice;
    let (one_of, other) = (one(names, first), one(names, second));
    let effect = |id: &str, text_of: Expr| match third % 3 {
        0 => call(id, "send", &[("to", one(names, third)), ("text", text_of)]),
        1 => call(id, "send", &[("to", text("bob")), ("text", text_of)]),
        _ => call(
            id,
            "keep",
            &[("path", one(names, third)), ("text", text_of)],
        ),
    };
    let inner = format!("e{place}");
    let yields = |step: Step| (vec![step], Some(id.clone()));
    let is_same = Expr::Apply(Builtin::Eq, vec![one_of.clone(), other.clone()]);
    match kind % 11 {
        0 | 1 => {
            let tool = if kind % 11 == 0 { "secret" } else { "open" };
            let about: &[(&str, Expr)] = &[("about", one_of)];
            let with = if second % 2 == 0 { about } else { &[] };
            (vec![call(&id, tool, with)], Some(format!("{id}.text")))
        }
        2 => yields(step(&id, What::Let(Expr::Text(vec![one_of, other])))),
        3 => yields(step(
            &id,
            What::Let(Expr::Apply(
                Builtin::Choose,
                vec![is_same, other, text("no")],
            )),
        )),
        4 => yields(step(&id, What::Confirm(one_of))),
        5 => {
            let (ask, schema) = ("what".to_owned(), user(Kind::Text));
            let from = one_of;
            yields(step(&id, What::Extract { from, ask, schema }))
        }
        6 => {
            let what = What::If {
                test: is_same,
                then: vec![effect(&inner, other.clone())],
                or_else: vec![effect(&format!("o{place}"), other)],
            };
            (vec![step(&id, what)], None)
        }
        7 | 8 => {
            let item = format!("i{place}");
            let each = step(
                &format!("f{place}"),
                What::ForEach {
                    list: lines(one_of),
                    name: item.clone(),
                    at_most: Some(8),
                    steps: vec![effect(&inner, at(&item))],
                    gives: Some(if kind % 11 == 7 { at(&item) } else { other }),
                },
            );
            let joined = Expr::Apply(Builtin::Join, vec![at(&format!("f{place}")), text("\n")]);
            (vec![each, step(&id, What::Let(joined))], Some(id))
        }
        9 => {
            let kept = Expr::Over {
                over: Over::Filter,
                list: Box::new(lines(one_of)),
                name: inner.clone(),
                body: Box::new(Expr::Apply(Builtin::Eq, vec![at(&inner), other])),
            };
            yields(step(
                &id,
                What::Let(Expr::Apply(Builtin::Join, vec![kept, text("\n")])),
            ))
        }
        _ => (vec![effect(&id, one_of)], None),
    }
}

fn answered(machine: &mut Machine, mut seen: impl FnMut(&ToolCall)) {
    loop {
        let reply = match machine.go_on() {
            Next::Done => return,
            Next::Say { .. } => continue,
            Next::Call(call) => {
                seen(&call);
                match call.tool.as_str() {
                    "secret" | "open" => read_reply("ann\nbob"),
                    _ => Reply::Result(Raw::Nothing),
                }
            }
            Next::Extract { .. } => Reply::Result(Raw::Text("ann".into())),
            Next::MakeDirectory(_) | Next::Confirm { .. } => Reply::Result(Raw::Nothing),
            Next::AskUser { .. } | Next::Delegate { .. } => Reply::Failed(Failure::NobodyToAsk),
        };
        machine.supply(reply);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_asked_about_at_a_call_was_told_before(choices in prop::collection::vec(any::<[u8; 4]>(), 1..12)) {
        let (mut steps, mut names) = (Vec::new(), Vec::new());
        for (place, choice) in choices.into_iter().enumerate() {
            let (more, name) = made(place, &names, choice);
            steps.extend(more);
            names.extend(name);
        }
        let draft = PlanDraft { summary: String::new(), steps };
        let plan = check(draft, tools(), FlowRules::STRICT).unwrap();
        let told: BTreeSet<(String, Option<String>, bool)> = plan
            .notices()
            .iter()
            .map(|notice| (notice.step.clone(), notice.argument.clone(), notice.unseen.is_some()))
            .collect();
        let mut asked = BTreeSet::new();
        answered(&mut Machine::new(plan), |call| {
            for concern in &call.concerns {
                asked.insert((call.step.clone(), concern.argument.clone(), concern.reader.is_some()));
            }
        });
        let untold: Vec<_> = asked.difference(&told).collect();
        prop_assert!(untold.is_empty(), "{untold:?}");
    }
}
