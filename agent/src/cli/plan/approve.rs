//! Asking about a plan as a whole, before anything of it is done.
//!
//! Whatever is said here, every effect still passes the monitor.

use std::path::Path;

use hermitcrab_core::{grant::GrantId, plan::Plan};

use super::{
    How, dry_run, edit,
    person::{About, Person},
    print_plan,
};
use crate::{
    actions::{Risk, risk},
    cli::{Setting, Trouble, open},
    exit,
    runtime::{GrantWords, Runtime},
};

/// What each answer to a plan means.
const EXPLAINED: &str = "\
what is answered here:
  YES  carry out all of it: what it writes to places it names is granted with that;
        what else is not granted is asked about as it comes
  s     ask before each step
  e     change the plan first
  d     show what would become of each step, and do nothing
  n     do nothing; any other word is a no, too";

/// What a person said to a plan.
pub(super) struct Approved {
    /// The plan they said it to.
    pub plan: Plan,
    /// A person said yes to the plan as shown.
    pub by_user: bool,
    /// A person is asked before each step of this risk or more.
    pub each: Option<Risk>,
}

/// Shows the plan and asks about it; a person may change it first.
pub(super) fn approve(mut plan: Plan, setting: &Setting, how: &How) -> Result<Approved, Trouble> {
    let ground = open::ground(&setting.place)?;
    loop {
        let highest = shown(&plan, &ground.workspace, how)?;
        let unasked = |plan, each| Approved {
            plan,
            by_user: false,
            each,
        };
        if how.yes_low && highest == Risk::Low && !how.step {
            return Ok(unasked(plan, None));
        }
        let Some(mut person) = Person::open(how) else {
            if how.yes_low && !how.step {
                // Nobody is there: what is not granted will be refused.
                return Ok(unasked(plan, None));
            }
            return Err((
                "there is nobody to approve the plan; nothing was done. With --yes-low what is granted is done all the same"
                    .to_owned(),
                exit::REFUSED,
            ));
        };
        if how.yes_low {
            let each = if how.step { Risk::Low } else { Risk::Medium };
            return Ok(unasked(plan, Some(each)));
        }
        let by_user = |plan| Approved {
            plan,
            by_user: true,
            each: how.step.then_some(Risk::Low),
        };
        let these = match plan.steps().len() {
            1 => "this step".to_owned(),
            steps => format!("these {steps} steps"),
        };
        let yes = if highest == Risk::High {
            "`yes` for all"
        } else {
            "y"
        };
        let question = format!(
            "run {these}? {yes}, s for step by step, e to edit, d for what would become of them, n [n]: "
        );
        match person.line(About::Plan, &question).as_deref() {
            Some("yes") => return Ok(by_user(plan)),
            Some("y") if highest < Risk::High => return Ok(by_user(plan)),
            Some("s" | "step") => return Ok(unasked(plan, Some(Risk::Low))),
            Some("e" | "edit") if matches!(person, Person::Terminal(_)) => {
                plan = edit::edited(plan, &ground.state_dir, &mut person)?;
            }
            Some("d" | "dry-run") => dry_run(setting, &plan, how)?,
            Some("?") if matches!(person, Person::Terminal(_)) => {
                let yes = if highest == Risk::High { "yes" } else { "y" };
                eprintln!("{}", EXPLAINED.replace("YES", &format!("{yes:<4}")));
            }
            _ => return Err(("nothing was done".to_owned(), exit::REFUSED)),
        }
    }
}

/// Prints a plan; its risk. One that leaves the workspace is not asked about.
fn shown(plan: &Plan, workspace: &Path, how: &How) -> Result<Risk, Trouble> {
    let highest = risk::worst(plan.steps(), workspace, plan.toolbox());
    print_plan(plan, workspace, how.json && highest != Risk::Blocked);
    if highest == Risk::Blocked {
        return Err((
            "the plan names a place outside the workspace, or would delete the workspace itself; nothing was done".to_owned(),
            exit::REFUSED,
        ));
    }
    Ok(highest)
}

/// New names that the plan itself writes were approved with it. What replaces
/// or removes something is asked about when it is known what. Whoever carries the plan out ends
/// what was granted so when it is over.
pub(super) fn grant_written(
    runtime: &mut Runtime,
    plan: &Plan,
    granted: &mut Vec<GrantId>,
) -> Result<(), Trouble> {
    let agent = runtime.first_agent();
    let workspace = runtime.workspace().to_owned();
    for want in plan.wants() {
        let Some(on) = &want.on else { continue };
        if want.verb != hermitcrab_core::authority::Verb::FsCreate {
            continue;
        }
        let on = workspace.join(on).to_string_lossy().into_owned();
        let grant = runtime
            .grant(agent, &GrantWords::new(want.verb.as_str(), &on))
            .map_err(|error| (error.to_string(), exit::USAGE))?;
        granted.push(grant);
    }
    Ok(())
}
