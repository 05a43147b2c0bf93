//! A text that is to be planned: shown whole, approved, planned, approved.
//!
//! The text is somebody else's. It becomes a request only by its user's yes to
//! exactly this text, which the ledger notes by its digest. What is planned from
//! it is a plan like any other: checked, shown, approved, and of its calls each
//! passes the monitor. It may call only the tools the first plan named for it.

use std::sync::Arc;

use hermitcrab_core::plan::{Plan, Toolbox};

use super::{
    How, Source,
    approve::approve,
    person::{About, Person},
};
use crate::{
    cli::{Setting, Trouble, choice, open, say},
    exit,
    planner::{
        ask::{Planner, REQUEST_BYTES_MAX, approved_text},
        show,
    },
    runtime::Runtime,
};

/// Does the user agree to a value? Then it is their own.
pub(super) fn confirmed(how: &How, value: &str) -> bool {
    let Some(mut person) = Person::open(how) else {
        return false;
    };
    let question = match &person {
        Person::Pipe(_) => value.to_owned(),
        Person::Terminal(_) => format!(
            "\nThe plan goes on with this:\n{}\nis it what you want? yes, n [n]: ",
            show::quoted_lines(value)
        ),
    };
    person.line(About::Confirm, &question).as_deref() == Some("yes")
}

/// What is needed to plan further.
pub(super) struct Further<'f> {
    pub setting: &'f Setting,
    pub source: &'f Source,
    pub how: &'f How,
}

/// The plan that comes of a text, if its user wants one to.
pub(super) fn plan(
    further: &Further<'_>,
    runtime: &mut Runtime,
    text: &str,
    tools: &Toolbox,
) -> Option<Plan> {
    match try_plan(further, runtime, text, tools) {
        Ok(plan) => Some(plan),
        Err((why, _)) => {
            say(&why);
            None
        }
    }
}

fn try_plan(
    further: &Further<'_>,
    runtime: &mut Runtime,
    text: &str,
    tools: &Toolbox,
) -> Result<Plan, Trouble> {
    let refused = |why: &str| (format!("the text is not planned: {why}"), exit::REFUSED);
    if text.len() > REQUEST_BYTES_MAX {
        return Err(refused("it is longer than a request may be"));
    }
    let Some(mut person) = Person::open(further.how) else {
        return Err(refused("there is nobody to approve it"));
    };
    let names: Vec<&str> = tools.all().iter().map(|tool| tool.name.as_str()).collect();
    let question = match &person {
        // A program shows a text as it shows texts.
        Person::Pipe(_) => text.to_owned(),
        Person::Terminal(_) => format!(
            "\nThe plan would have this text planned, with {}:\n{}\nwho wrote it tells what is done. plan it? yes, n [n]: ",
            names.join(", "),
            show::quoted_lines(text)
        ),
    };
    if person.line(About::Text, &question).as_deref() != Some("yes") {
        return Err(refused("you did not approve it"));
    }
    runtime
        .note(approved_text(text, tools))
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    let plan = made(further, runtime, text, tools)?;
    // Whatever the first plan was approved with, this one is new.
    let anew = How {
        yes_low: false,
        ..further.how.clone()
    };
    approve(plan, further.setting, &anew).map(|approved| approved.plan)
}

/// What the planning model makes of it.
fn made(
    further: &Further<'_>,
    runtime: &mut Runtime,
    text: &str,
    tools: &Toolbox,
) -> Result<Plan, Trouble> {
    let ground = open::ground(&further.setting.place)?;
    let choice = &further.source.choice;
    let Some(mut backend) = choice::backend(&ground, choice, &further.how.cancel)? else {
        return Err((choice::NO_MODEL.to_owned(), exit::USAGE));
    };
    choice::let_talk(runtime, &backend)?;
    let by = runtime.first_agent();
    let mut planner = Planner {
        model: &backend.model,
        port: &mut *backend.port,
        toolbox: Arc::new(tools.clone()),
    };
    planner.plan(runtime, by, text).map_err(|why| {
        (
            format!("there is no further plan: {why}"),
            exit::TOOL_FAILED,
        )
    })
}
