//! What would become of what a plan wants, without doing any of it.
//!
//! Where the plan itself says on what, it is told of each place; where data will say so, that
//! it is decided then. Nothing a plan wants is left out.

use hermitcrab_core::{
    authority::Verb,
    plan::{Expr, Kind, Need, Plan, Raw, Step, Want, What},
};
use serde_json::json;

use super::{How, print};
use crate::{
    cli::{Setting, Trouble, as_json::print_json, open},
    runtime::GrantWords,
};

/// Tells it, a line for each place.
pub(super) fn dry_run(setting: &Setting, plan: &Plan, how: &How) -> Result<(), Trouble> {
    let ground = open::ground(&setting.place)?;
    let mut runtime = open::imagine(setting)?;
    let agent = runtime.first_agent();
    let tell = |want: &Want, line: &str| {
        if how.json {
            print_json(&json!({"v": 1, "type": "would", "step": want.step, "what": line}));
        } else {
            print(&format!("{}: {line}", want.step));
        }
    };
    for want in plan.wants() {
        let (named, is_all) = match (&want.on, want.verb) {
            (Some(on), _) => (vec![on.as_str()], true),
            (None, Verb::ProcExec) => (vec!["*"], true),
            (None, verb) if verb.changes_files() || verb.only_looks() => listed(plan, want),
            (None, _) => {
                let line = format!("{} is decided when the tool is called", want.verb);
                tell(want, &line);
                continue;
            }
        };
        let on = named.iter().map(|on| match want.verb {
            Verb::ProcExec => (*on).to_owned(),
            _ => ground.workspace.join(on).to_string_lossy().into_owned(),
        });
        let on: Vec<String> = on.collect();
        for on in on {
            match runtime.explain(agent, &GrantWords::new(want.verb.as_str(), &on)) {
                Ok(lines) => lines.iter().for_each(|line| tell(want, &line.to_string())),
                Err(error) => tell(want, &error.to_string()),
            }
        }
        if !is_all {
            let line = format!(
                "{} of what the steps before it find is decided when it is known",
                want.verb
            );
            tell(want, &line);
        }
        if want.verb == Verb::ProcExec {
            tell(
                want,
                "what the command changes is decided when it has run, on a copy",
            );
        }
    }
    Ok(())
}

/// The paths that a step is given as a list, and whether all of them are written in the plan.
fn listed<'p>(plan: &'p Plan, want: &Want) -> (Vec<&'p str>, bool) {
    let Some(What::Call { tool, with }) = find(plan.steps(), &want.step).map(|step| &step.what)
    else {
        return (Vec::new(), false);
    };
    let Some(signature) = plan.toolbox().get(tool) else {
        return (Vec::new(), false);
    };
    // What one argument names is not what is on the list of another.
    let of_it = |need: &&Need| need.verb == want.verb;
    match signature.wants.iter().find(of_it).map(|need| &need.param) {
        Some(None) => {}
        // Left out, it is where the plan works.
        Some(Some(param)) if !with.iter().any(|(name, _)| name == param) => {
            return (vec!["."], true);
        }
        Some(Some(_)) | None => return (Vec::new(), false),
    }
    let takes_paths = |name: &str| {
        let mut params = signature.params.iter();
        params.any(|param| {
            param.name == name
                && matches!(&param.kind.kind, Kind::List(item) if item.kind == Kind::Path)
        })
    };
    let (mut paths, mut is_all) = (Vec::new(), true);
    for (_, list) in with.iter().filter(|(name, _)| takes_paths(name)) {
        let parts: Vec<Option<&str>> = match list {
            Expr::List(parts) => parts.iter().map(written).collect(),
            Expr::Literal(Raw::List(parts)) => parts.iter().map(text).collect(),
            _ => vec![None],
        };
        is_all &= parts.iter().all(Option::is_some);
        paths.extend(parts.into_iter().flatten());
    }
    (paths, is_all)
}

/// A text that stands in the plan.
fn written(part: &Expr) -> Option<&str> {
    match part {
        Expr::Literal(raw) => text(raw),
        _ => None,
    }
}

fn text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Text(text) => Some(text),
        _ => None,
    }
}

fn find<'s>(steps: &'s [Step], id: &str) -> Option<&'s Step> {
    steps.iter().find_map(|step| match step.id == id {
        true => Some(step),
        false => step.what.blocks().find_map(|block| find(block, id)),
    })
}
