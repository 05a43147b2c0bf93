//! A plan, carried out by the program's own executor with its real actions.
//!
//! The other subject knows no plans; it is given the calls that do what the
//! plan means to do, or none where nothing may happen. So both halves end in
//! effects that can be compared. Nothing is decided here: what is no plan is
//! told by the reader and the check, what fails by the machine.

use std::path::Path;
use std::sync::Arc;

use hermitcrab::actions::{self, Did, Risk, Trouble, risk};
use hermitcrab::executor::{self, Go, Onlooker, Picker};
use hermitcrab::planner::draft;
use hermitcrab::runtime::Runtime;
use hermitcrab_core::plan::interp::{Status, ToolCall};
use hermitcrab_core::plan::{Failure, FlowRules, Plan, Raw, Toolbox, Type, check};
use serde_json::{Value, json};

use super::ProbeError;
use super::input::{field, text};
use crate::subject::agent_world::AgentWorld;

/// The probe that has a plan carried out.
pub const PLAN_PROBE: &str = "plan";

/// Carries out the plan of the input: `plan` as JSON, or `draft` as a text;
/// `picks` are the answers of a model without tools, in turn.
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
    let draft = match input.get("draft") {
        Some(_) => text(input, "draft")?.to_owned(),
        None => field(input, "plan")?.to_string(),
    };
    let toolbox = Arc::new(actions::toolbox());
    let checked =
        draft::read(draft.as_bytes()).and_then(|draft| check(draft, toolbox, FlowRules::STRICT));
    let plan = match checked {
        Ok(plan) => plan,
        Err(errors) => {
            let code = errors
                .first()
                .map_or("not-a-plan", |error| error.kind.as_str());
            return Ok(denied(code));
        }
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
    let machine =
        world.with_runtime(|runtime| executor::run(runtime, plan, &mut Silent, &mut picker))?;
    let failed = machine
        .reports()
        .iter()
        .find_map(|report| match &report.status {
            Status::Failed(failure) => Some(failure.as_str()),
            Status::Done | Status::Already | Status::Skipped(_) => None,
        });
    Ok(match failed {
        Some(code) => denied(code),
        None => json!({"decision": "permit", "value": null}),
    })
}

fn denied(code: &str) -> Value {
    json!({"decision": "deny", "value": null, "code": code})
}

/// Lets every step begin, and agrees to no value and no text.
struct Silent;

impl Onlooker for Silent {
    fn before(&mut self, _: &mut Runtime, _: &ToolCall) -> Go {
        Go::On
    }

    fn after(&mut self, _: &ToolCall, _: Result<&Did, &Trouble>) {}

    fn say(&mut self, _: &str) {}

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
        executor::raw(&said).ok_or_else(|| none(Failure::BadResult))
    }
}
