//! A plan of three steps, checked before anything is done and carried out call by call.
//!
//! ```console
//! $ cargo run -p hermitcrab-core --example plan
//! ```
//!
//! Files are read here from a list, so that nothing of yours is touched. What a file says fills a
//! slot; the place to write to, and that it is written, were fixed before.

use std::{collections::BTreeMap, error::Error, sync::Arc};

use hermitcrab_core::{
    authority::Verb,
    label::Source,
    plan::{
        Expr, Failure, FlowRules, Hop, Kind, Level, Machine, Need, Param, PlanDraft, Raw, Role,
        Signature, Step, Toolbox, What, check,
        interp::{Next, Reply, ToolCall},
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    // 1. read notes.txt  2. read more.txt  3. write both into all.txt
    let draft = PlanDraft {
        summary: "put two notes together".to_owned(),
        steps: vec![
            call("notes", "read", &[("path", Expr::text("notes.txt"))]),
            call("more", "read", &[("path", Expr::text("more.txt"))]),
            call(
                "all",
                "write",
                &[
                    ("path", Expr::text("all.txt")),
                    ("text", Expr::Text(vec![text_of("notes"), text_of("more")])),
                ],
            ),
        ],
    };
    let plan = check(draft, Arc::new(tools()), FlowRules::STRICT).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        all.join("; ")
    })?;
    for notice in plan.notices() {
        println!("before it runs: {notice:?}");
    }

    // A plan whose place to write comes out of a file is told of before it runs, too.
    let draft = PlanDraft {
        summary: String::new(),
        steps: vec![
            call("notes", "read", &[("path", Expr::text("notes.txt"))]),
            call(
                "all",
                "write",
                &[("path", text_of("notes")), ("text", Expr::text("hello"))],
            ),
        ],
    };
    let steered = check(draft, Arc::new(tools()), FlowRules::STRICT)
        .map_err(|errors| format!("{errors:?}"))?;
    for notice in steered.notices() {
        println!("of the other plan: {notice:?}");
    }

    let mut files: BTreeMap<String, String> = BTreeMap::new();
    files.insert("notes.txt".to_owned(), "buy milk\n".to_owned());
    files.insert("more.txt".to_owned(), "$notes; rm -r /\n".to_owned());
    let mut machine = Machine::new(plan);
    loop {
        let reply = match machine.go_on() {
            Next::Done => break,
            // Here a real program asks its session for a permit, and spends it.
            Next::Call(call) => carried_out(&call, &mut files),
            Next::Say { .. } => continue,
            Next::MakeDirectory(_)
            | Next::Extract { .. }
            | Next::AskUser { .. }
            | Next::Confirm { .. }
            | Next::Delegate { .. } => Reply::Failed(Failure::NobodyToAsk),
        };
        machine.supply(reply);
    }
    for report in machine.reports() {
        println!("{}: {:?}", report.step, report.status);
    }
    println!("all.txt: {:?}", files.get("all.txt"));
    Ok(())
}

fn carried_out(call: &ToolCall, files: &mut BTreeMap<String, String>) -> Reply {
    let text = |name: &str| call.arg(name).and_then(|value| value.as_text());
    println!("{}: {} {:?}", call.step, call.tool, text("path"));
    let Some(path) = text("path") else {
        return Reply::Failed(Failure::BadResult);
    };
    match (call.tool.as_str(), text("text")) {
        ("read", _) => match files.get(path) {
            Some(found) => {
                Reply::Result(Raw::Record(vec![("text".into(), Raw::Text(found.clone()))]))
            }
            None => Reply::Failed(Failure::Missing),
        },
        ("write", Some(text)) => {
            files.insert(path.to_owned(), text.to_owned());
            Reply::Result(Raw::Nothing)
        }
        _ => Reply::Failed(Failure::BadResult),
    }
}

/// What a plan may call: a file's content comes from nobody in particular, so it is untrusted.
fn tools() -> Toolbox {
    let param = |name: &str, kind: Kind, role| Param {
        name: name.to_owned(),
        kind: kind.at(Level::User),
        required: true,
        role,
    };
    let needs = |verb| {
        vec![Need {
            verb,
            param: Some("path".to_owned()),
        }]
    };
    let text = Kind::record(&[("text", Kind::Text.at(Level::Untrusted))]);
    let read = Signature {
        name: "read".to_owned(),
        params: vec![param("path", Kind::Path, Role::Target)],
        result: text.at(Level::Service),
        source: Source::File,
        changes: false,
        wants: needs(Verb::FsRead),
        readers: None,
        reaches: Vec::new(),
        risk: None,
    };
    let write = Signature {
        name: "write".to_owned(),
        params: vec![
            param("path", Kind::Path, Role::Target),
            param("text", Kind::Text, Role::Content),
        ],
        result: Kind::Nothing.at(Level::User),
        changes: true,
        wants: needs(Verb::FsCreate),
        ..read.clone()
    };
    Toolbox::new(vec![read, write])
}

fn call(id: &str, tool: &str, with: &[(&str, Expr)]) -> Step {
    let with = with
        .iter()
        .map(|(name, expr)| ((*name).to_owned(), expr.clone()))
        .collect();
    Step {
        id: id.to_owned(),
        after: Vec::new(),
        what: What::Call {
            tool: tool.to_owned(),
            with,
        },
    }
}

/// What a step has read.
fn text_of(step: &str) -> Expr {
    Expr::Ref {
        name: step.to_owned(),
        path: vec![Hop::Field("text".to_owned())],
    }
}
