//! What would become of what a plan wants, without doing any of it.
//!
//! Where the plan itself says on what, it is told of each place; where data will say so, that
//! it is decided then. Nothing a plan wants is left out.

use hermitcrab_core::{
    authority::Verb,
    plan::{Expr, Kind, Plan, Raw, Step, Want, What},
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
        let named = match (&want.on, want.verb) {
            (Some(on), _) => vec![on.as_str()],
            (None, Verb::ProcExec) => Vec::new(),
            (None, _) => listed(plan, want),
        };
        let on: Vec<String> = match want.verb {
            Verb::ProcExec => vec!["*".to_owned()],
            _ => named
                .iter()
                .map(|on| ground.workspace.join(on).to_string_lossy().into_owned())
                .collect(),
        };
        if on.is_empty() {
            let verb = want.verb;
            tell(
                want,
                &format!("{verb} of what the steps before it find is decided when it is known"),
            );
        }
        for on in on {
            match runtime.explain(agent, &GrantWords::new(want.verb.as_str(), &on)) {
                Ok(lines) => lines.iter().for_each(|line| tell(want, &line.to_string())),
                Err(error) => tell(want, &error.to_string()),
            }
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

/// The paths that a step is given as a list written in the plan.
fn listed<'p>(plan: &'p Plan, want: &Want) -> Vec<&'p str> {
    let Some(What::Call { tool, with }) = find(plan.steps(), &want.step).map(|step| &step.what)
    else {
        return Vec::new();
    };
    let takes_paths = |name: &str| {
        let signature = plan.toolbox().get(tool);
        signature.is_some_and(|signature| {
            let mut params = signature.params.iter();
            params.any(|param| {
                param.name == name
                    && matches!(&param.kind.kind, Kind::List(item) if item.kind == Kind::Path)
            })
        })
    };
    let lists = with.iter().filter(|(name, _)| takes_paths(name));
    lists.flat_map(|(_, list)| written(list)).collect()
}

/// The texts of a list, if all of it stands in the plan.
fn written(list: &Expr) -> Vec<&str> {
    let texts: Option<Vec<&str>> = match list {
        Expr::List(parts) => parts
            .iter()
            .map(|part| match part {
                Expr::Literal(Raw::Text(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        Expr::Literal(Raw::List(parts)) => parts
            .iter()
            .map(|part| match part {
                Raw::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    texts.unwrap_or_default()
}

fn find<'s>(steps: &'s [Step], id: &str) -> Option<&'s Step> {
    steps.iter().find_map(|step| match step.id == id {
        true => Some(step),
        false => step.what.blocks().find_map(|block| find(block, id)),
    })
}
