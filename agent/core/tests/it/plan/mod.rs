//! The plan language: what is accepted, what is refused and why, and that data
//! only ever fills slots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use hermitcrab_core::{
    authority::Verb,
    label::Source,
    plan::{
        Datum, ErrorKind, Expr, Failure, FlowRules, Hop, Kind, Level, Machine, Need, Param, Plan,
        PlanDraft, Raw, Role, Signature, Step, Toolbox, Type, What,
        builtin::{Builtin, Over},
        check,
        interp::{Next, Reply, Status, ToolCall},
    },
};

mod bounds;
mod builtins;
mod data;
mod drafts;
mod foretold;
mod kinds;
mod options;
mod readers;
mod running;
mod times;
mod values;

fn user(kind: Kind) -> Type {
    kind.at(Level::User)
}

fn param(name: &str, kind: Kind, role: Role) -> Param {
    Param {
        name: name.into(),
        kind: user(kind),
        required: true,
        role,
    }
}

fn tool(name: &str, params: Vec<Param>, result: Type, verb: Option<Verb>) -> Signature {
    Signature {
        name: name.into(),
        params,
        result,
        source: Source::File,
        changes: verb.is_some(),
        wants: verb
            .map(|verb| Need {
                verb,
                param: Some("path".into()),
            })
            .into_iter()
            .collect(),
        readers: None,
        reaches: Vec::new(),
        risk: None,
    }
}

fn toolbox() -> Arc<Toolbox> {
    let entry = Kind::record(&[
        ("path", Kind::Path.at(Level::Service)),
        ("note", Kind::Text.at(Level::Untrusted)),
        ("size", Kind::Whole.at(Level::Service)),
    ])
    .at(Level::Service);
    Arc::new(Toolbox::new(vec![
        tool(
            "read",
            vec![param("path", Kind::Path, Role::Target)],
            Kind::record(&[("text", Kind::Text.at(Level::Untrusted))]).at(Level::Service),
            None,
        ),
        tool(
            "list",
            vec![],
            Kind::record(&[("entries", Kind::list(entry).at(Level::Service))]).at(Level::Service),
            None,
        ),
        tool(
            "write",
            vec![
                param("path", Kind::Path, Role::Target),
                param("text", Kind::Text, Role::Content),
            ],
            user(Kind::Nothing),
            Some(Verb::FsCreate),
        ),
        tool(
            "delete",
            vec![param("path", Kind::Path, Role::Target)],
            user(Kind::Nothing),
            Some(Verb::FsDelete),
        ),
    ]))
}

fn at(path: &str) -> Expr {
    let mut parts = path.split('.');
    let name = parts.next().unwrap().to_owned();
    let path = parts
        .map(|part| match part.parse() {
            Ok(place) => Hop::At(place),
            Err(_) => Hop::Field(part.to_owned()),
        })
        .collect();
    Expr::Ref { name, path }
}

fn text(text: &str) -> Expr {
    Expr::text(text)
}

fn step(id: &str, what: What) -> Step {
    Step {
        id: id.into(),
        after: Vec::new(),
        what,
    }
}

fn call(id: &str, tool: &str, with: &[(&str, Expr)]) -> Step {
    let with = with
        .iter()
        .map(|(name, expr)| ((*name).to_owned(), expr.clone()))
        .collect();
    let tool = tool.to_owned();
    step(id, What::Call { tool, with })
}

fn checked(steps: Vec<Step>) -> Result<Plan, Vec<(Option<String>, ErrorKind)>> {
    let summary = String::new();
    check(PlanDraft { summary, steps }, toolbox(), FlowRules::STRICT).map_err(|errors| {
        errors
            .into_iter()
            .map(|error| (error.step, error.kind))
            .collect()
    })
}

fn refused(steps: Vec<Step>, id: &str, kind: ErrorKind) {
    assert_eq!(
        checked(steps).unwrap_err(),
        vec![(Some(id.to_owned()), kind)]
    );
}

/// What the calls came to: `step tool path`.
fn run(plan: Plan, mut world: impl FnMut(&ToolCall) -> Reply) -> (Vec<ToolCall>, Machine) {
    let mut machine = Machine::new(plan);
    let mut calls = Vec::new();
    loop {
        match machine.go_on() {
            Next::Done => return (calls, machine),
            Next::Call(call) => {
                let reply = world(&call);
                calls.push(call);
                machine.supply(reply);
            }
            Next::MakeDirectory(_) => machine.supply(Reply::Result(Raw::Nothing)),
            Next::Extract { .. }
            | Next::AskUser { .. }
            | Next::Confirm { .. }
            | Next::Delegate { .. } => {
                machine.supply(Reply::Failed(Failure::NobodyToAsk));
            }
            Next::Say { .. } => {}
        }
    }
}

fn read_reply(content: &str) -> Reply {
    Reply::Result(Raw::Record(vec![(
        "text".into(),
        Raw::Text(content.into()),
    )]))
}

fn entries(of: &[(&str, &str, i64)]) -> Reply {
    let list = of
        .iter()
        .map(|(path, note, size)| {
            Raw::Record(vec![
                ("path".into(), Raw::Text((*path).into())),
                ("note".into(), Raw::Text((*note).into())),
                ("size".into(), Raw::Whole(*size)),
            ])
        })
        .collect();
    Reply::Result(Raw::Record(vec![("entries".into(), Raw::List(list))]))
}

fn paths(calls: &[ToolCall]) -> Vec<String> {
    calls
        .iter()
        .map(|call| {
            let path = call.arg("path").and_then(|value| value.as_text());
            format!("{} {} {}", call.step, call.tool, path.unwrap_or("-"))
        })
        .collect()
}

/// Deletes what is large, in order of size, and writes down the notes.
fn sweeping() -> Vec<Step> {
    let large = Expr::Over {
        over: Over::Filter,
        list: Box::new(at("l.entries")),
        name: "e".into(),
        body: Box::new(Expr::Apply(
            Builtin::Gt,
            vec![at("e.size"), Expr::Literal(Raw::Whole(10))],
        )),
    };
    vec![
        call("l", "list", &[]),
        step("large", What::Let(large)),
        step(
            "each",
            What::ForEach {
                list: at("large"),
                name: "item".into(),
                at_most: Some(5),
                steps: vec![call("d", "delete", &[("path", at("item.path"))])],
                gives: Some(at("item.note")),
            },
        ),
        call(
            "w",
            "write",
            &[
                ("path", text("notes")),
                (
                    "text",
                    Expr::Apply(Builtin::Join, vec![at("each"), text(";")]),
                ),
            ],
        ),
    ]
}
