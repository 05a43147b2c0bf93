//! A plan, carried out by the program's own executor with its real actions.
//!
//! The other subject knows no plans; it is given the calls that do what the
//! plan means to do, or none where nothing may happen. So both halves end in
//! effects that can be compared. Nothing is decided here: what is no plan is
//! told by the planner, the reader and the check, what fails by the machine.

use std::path::Path;
use std::sync::Arc;

use hermitcrab::actions::{self, Did, Risk, Trouble, risk};
use hermitcrab::executor::{self, Go, Onlooker, Picker};
use hermitcrab::model::scripted::Scripted;
use hermitcrab::planner::ask::{NoPlan, Planner};
use hermitcrab::planner::draft;
use hermitcrab::runtime::Runtime;
use hermitcrab::values;
use hermitcrab_core::plan::interp::{Status, ToolCall};
use hermitcrab_core::plan::{Failure, FlowRules, Plan, PlanError, Raw, Toolbox, Type, check};
use hermitcrab_sandbox::journal::CommitId;
use serde_json::{Value, json};

use super::input::{field, text};
use super::undo;
use crate::subject::agent_world::{AgentWorld, PLAN_PROBE, ProbeError};

/// The model that plans, as a grant names it.
pub const PLANNER: &str = "planner";

/// Carries out the plan of the input: `plan` as JSON, `draft` as a text, or what a
/// planning model answers in turn (`said`); `picks` are the answers of a model
/// without tools. With `undo` what it did is taken back at once.
///
/// # Errors
/// See [`ProbeError`].
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    if name != PLAN_PROBE {
        return Err(ProbeError::Unknown);
    }
    let plan = match proposed(world, input)? {
        Ok(plan) => plan,
        Err(code) => return Ok(denied(code)),
    };
    let cwd = world
        .cwd()
        .ok_or_else(|| ProbeError::BadInput("a plan needs a world".to_owned()))?;
    // What the program refuses before it asks anybody.
    if risk::worst(plan.steps(), Path::new(cwd), plan.toolbox()) == Risk::Blocked {
        return Ok(denied("blocked"));
    }
    let picks = input.get("picks").and_then(Value::as_array);
    let mut picker = Puppet {
        answers: picks.cloned().unwrap_or_default().into_iter(),
    };
    let mut onlooker = Listener::default();
    let old = world.with_runtime(|runtime| undo::kept(runtime))??;
    let machine =
        world.with_runtime(|runtime| executor::run(runtime, plan, &mut onlooker, &mut picker))?;
    let failed = machine
        .reports()
        .iter()
        .find_map(|report| match &report.status {
            Status::Failed(failure) => Some(failure.as_str()),
            Status::Done | Status::Already | Status::Skipped(_) => None,
        });
    let failed = match (failed, input.get("undo").and_then(Value::as_bool)) {
        (None, Some(true)) => world.with_runtime(|runtime| take_back(runtime, &old))??,
        (failed, _) => failed,
    };
    let mut answer = match failed {
        Some(code) => denied(code),
        None => json!({"decision": "permit", "value": null}),
    };
    // What is said is searched for secrets, as everything in an answer is.
    if let (false, Some(answer)) = (onlooker.said.is_empty(), answer.as_object_mut()) {
        answer.insert("said".to_owned(), onlooker.said.into());
    }
    Ok(answer)
}

/// Takes back all that came after these, the newest first; the code of why not.
fn take_back(runtime: &mut Runtime, old: &[CommitId]) -> Result<Option<&'static str>, ProbeError> {
    let kept = undo::kept(runtime)?;
    let mut newest = kept.iter().rev().filter(|id| !old.contains(id));
    Ok(newest.find_map(|id| undo::taken_back(runtime, *id).err()))
}

/// The plan, or the code of why there is none.
fn proposed(
    world: &AgentWorld<'_>,
    input: &Value,
) -> Result<Result<Plan, &'static str>, ProbeError> {
    let toolbox = Arc::new(actions::toolbox());
    if let Some(said) = input.get("said").and_then(Value::as_array) {
        let texts: Vec<&str> = said.iter().filter_map(Value::as_str).collect();
        let mut model = Scripted::saying(texts);
        return world.with_runtime(|runtime| {
            let by = runtime.first_agent();
            let mut planner = Planner {
                model: PLANNER,
                port: &mut model,
                toolbox,
            };
            planner.plan(runtime, by, "do it").map_err(code)
        });
    }
    let draft = match input.get("draft") {
        Some(_) => text(input, "draft")?.to_owned(),
        None => field(input, "plan")?.to_string(),
    };
    let checked =
        draft::read(draft.as_bytes()).and_then(|draft| check(draft, toolbox, FlowRules::STRICT));
    Ok(checked.map_err(|errors| first(&errors)))
}

fn first(errors: &[PlanError]) -> &'static str {
    errors
        .first()
        .map_or("not-a-plan", |error| error.kind.as_str())
}

/// Why the planner has no plan. A script that ends was asked once more than it
/// has plans to give.
fn code(why: NoPlan) -> &'static str {
    match why {
        NoPlan::Wrong(errors) => first(&errors),
        NoPlan::Model(_) | NoPlan::Unfinished => "not-a-plan",
        NoPlan::Request => "no-request",
        NoPlan::Refused(_) => "planner-refused",
    }
}

fn denied(code: &str) -> Value {
    json!({"decision": "deny", "value": null, "code": code})
}

/// Lets every step begin, agrees to no value and no text, and keeps what is said.
#[derive(Default)]
struct Listener {
    said: Vec<String>,
}

impl Onlooker for Listener {
    fn before(&mut self, _: &mut Runtime, _: &ToolCall) -> Go {
        Go::On
    }

    fn after(&mut self, _: &ToolCall, _: Result<&Did, &Trouble>) {}

    fn say(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }

    fn confirm(&mut self, _: &hermitcrab_core::plan::Value) -> bool {
        false
    }

    fn delegate(&mut self, _: &mut Runtime, _: &str, _: &Toolbox) -> Option<Plan> {
        None
    }

    fn unpicked(&mut self, _: &str, _: &Trouble) {}
}

/// A model without tools that says what the case has it say.
struct Puppet {
    answers: std::vec::IntoIter<Value>,
}

impl Picker for Puppet {
    fn pick(&mut self, _: &mut Runtime, _: &str, _: &str, _: &Type) -> Result<Raw, Trouble> {
        let none = |failure| Trouble {
            failure,
            words: String::new(),
        };
        let said = self.answers.next();
        let said = said.ok_or_else(|| none(Failure::NobodyToAsk))?;
        values::raw(&said).ok_or_else(|| none(Failure::BadResult))
    }
}
