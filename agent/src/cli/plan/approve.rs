//! Asking about a plan as a whole, before anything of it is done.
//!
//! Whatever is said here, every effect still passes the monitor.

use hermitcrab_core::plan::Plan;

use super::{
    How,
    person::{About, Person},
};
use crate::{
    actions::Risk,
    cli::Trouble,
    exit,
    runtime::{GrantWords, Runtime},
};

/// What a person said to a plan.
pub(super) struct Approved {
    /// A person said yes to the plan as shown.
    pub by_user: bool,
    /// A person is asked before each step of this risk or more.
    pub each: Option<Risk>,
}

/// Asks about the plan.
pub(super) fn approve(plan: &Plan, highest: Risk, how: &How) -> Result<Approved, Trouble> {
    let cancelled = || ("nothing was done".to_owned(), exit::REFUSED);
    if how.yes_low && highest == Risk::Low && !how.step {
        return Ok(Approved {
            by_user: false,
            each: None,
        });
    }
    let Some(mut person) = Person::open(how) else {
        if how.yes_low && !how.step {
            // Nobody is there: what is not granted will be refused.
            return Ok(Approved {
                by_user: false,
                each: None,
            });
        }
        return Err((
            "there is nobody to approve the plan; nothing was done. With --yes-low what is granted is done all the same"
                .to_owned(),
            exit::REFUSED,
        ));
    };
    if how.yes_low {
        return Ok(Approved {
            by_user: false,
            each: Some(if how.step { Risk::Low } else { Risk::Medium }),
        });
    }
    let steps = plan.steps().len();
    let question = if highest == Risk::High {
        format!("run these {steps} steps? `yes` for all, s for step by step, n [n]: ")
    } else {
        format!("run these {steps} steps? y, s for step by step, n [n]: ")
    };
    match person.line(About::Plan, &question).as_deref() {
        Some("yes") => {}
        Some("y") if highest < Risk::High => {}
        Some("s" | "step") => {
            return Ok(Approved {
                by_user: false,
                each: Some(Risk::Low),
            });
        }
        _ => return Err(cancelled()),
    }
    Ok(Approved {
        by_user: true,
        each: how.step.then_some(Risk::Low),
    })
}

/// New names that the plan itself writes were approved with it. What replaces
/// or removes something is asked about when it is known what.
pub(super) fn grant_written(runtime: &mut Runtime, plan: &Plan) -> Result<(), Trouble> {
    let agent = runtime.first_agent();
    let workspace = runtime.workspace().to_owned();
    for want in plan.wants() {
        let Some(on) = &want.on else { continue };
        if want.verb != hermitcrab_core::authority::Verb::FsCreate {
            continue;
        }
        let on = workspace.join(on).to_string_lossy().into_owned();
        runtime
            .grant(agent, &GrantWords::new(want.verb.as_str(), &on))
            .map_err(|error| (error.to_string(), exit::USAGE))?;
    }
    Ok(())
}
