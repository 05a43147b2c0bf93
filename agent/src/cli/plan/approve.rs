//! Asking about a plan as a whole, before anything of it is done.
//!
//! Whatever is said here, every effect still passes the monitor.

use std::path::Path;

use hermitcrab_core::{
    authority::Verb,
    grant::GrantId,
    plan::{Plan, Want},
    tool::Tool,
};

use super::{
    How, dry_run, edit,
    person::{About, Person},
    print_plan,
};
use crate::{
    actions::{Risk, risk},
    cli::{Setting, Trouble, open},
    exit,
    planner::show,
    runtime::{GrantWords, Runtime},
};

/// What each answer to a plan means.
const EXPLAINED: &str = "\
what is answered here:
  YES  carry out all of it: what it writes to places it names is granted with that;
        what else is not granted, and what commands make, is asked about as it comes
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
        let these = match show::count(plan.steps()) {
            1 => "this step".to_owned(),
            steps => format!("these {steps} steps"),
        };
        let yes = if highest == Risk::High { "`yes`" } else { "y" };
        let question =
            format!("run {these}? {yes}, s (step by step), e (edit), d (dry run), n, ? [n]: ");
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
            Some("y") => {
                let why = "nothing was done: where something is replaced, removed or unknown, `y` is not enough, and `yes` is";
                return Err((why.to_owned(), exit::REFUSED));
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

/// Lends what a plan itself writes to places it names: new names there were approved with it.
/// What replaces or removes something is asked about when it is known what.
///
/// A loan to the plan's own actions, and so to no program, be it one of the plan, one that a model
/// left running or a server outside. What those will make nobody knows who reads the plan, and
/// below a directory that the plan makes there is room for anything.
pub(super) fn lend(plan: &Plan, runtime: &mut Runtime) -> Result<Vec<GrantId>, Trouble> {
    let agent = runtime.first_agent();
    let creates = |want: &&Want| want.verb == Verb::FsCreate;
    let wants = plan.wants().iter().filter(creates);
    let places: Vec<_> = wants.filter_map(|want| want.on.as_ref()).collect();
    let mut lent = Vec::new();
    for on in places {
        let place = runtime.workspace().join(on).to_string_lossy().into_owned();
        let words = GrantWords::new(Verb::FsCreate.as_str(), &place);
        match runtime.lend(agent, Tool::Directory, &words) {
            Ok(loan) => lent.push(loan),
            Err(error) => {
                give_back(runtime, &lent)?;
                return Err((error.to_string(), exit::USAGE));
            }
        }
    }
    Ok(lent)
}

/// The plan is over: nothing that it was lent is anybody's any more. That the end of one cannot
/// be recorded keeps none of the others.
pub(super) fn give_back(runtime: &mut Runtime, lent: &[GrantId]) -> Result<(), Trouble> {
    let mut given_back = Ok(());
    for loan in lent {
        if let Err(denial) = runtime.revoke(*loan) {
            given_back = Err((denial.to_string(), exit::INTERNAL));
        }
    }
    given_back
}
