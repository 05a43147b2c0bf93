//! `/plan`: a plan is made, shown whole, locked, approved, and carried out while
//! the client sees each step ticked off.
//!
//! A yes to the plan is a yes to its going ahead and to nothing else: every
//! change one of its steps makes is shown and asked about like any other.

use std::{cell::RefCell, path::Path, sync::Arc};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Plan as Shown, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, ToolCall as CallShown, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use hermitcrab_core::grant::AgentId;
use hermitcrab_core::plan::{
    Failure, Machine, Plan, Raw, Step, Toolbox, Type, Value,
    interp::{Status, ToolCall},
};
use hermitcrab_core::session::Asking;

use super::{modes::InForce, person::Person, updates};
use crate::{
    actions::{Did, Risk, Trouble, risk},
    executor::{self, Go, Onlooker, Picker, pick::ModelPicker},
    model::Backend,
    planner::{
        ask::{self, Planner},
        show,
    },
    runtime::Runtime,
    values,
};

/// A locked plan, and how far it has come.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The steps by name. Those of a plan within it that is over have none.
    steps: Vec<(String, PlanEntry)>,
    /// Where the plan begins that is carried out now.
    from: usize,
}

impl Course {
    /// Of a plan that was just locked.
    #[must_use]
    pub fn of(plan: &Plan, workspace: &Path) -> Self {
        let mut steps = Vec::new();
        add(plan, plan.steps(), workspace, 0, &mut steps);
        Self { steps, from: 0 }
    }

    /// A plan made of an approved text is carried out now.
    fn further(&mut self, plan: &Plan, workspace: &Path) {
        self.from = self.steps.len();
        add(plan, plan.steps(), workspace, 1, &mut self.steps);
    }

    /// It is over.
    fn further_ended(&mut self, machine: &Machine) {
        self.end(machine);
        for (id, _) in self.steps.iter_mut().skip(self.from) {
            id.clear();
        }
        self.from = 0;
    }

    /// For the client.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown::new(self.steps.iter().map(|(_, entry)| entry.clone()).collect())
    }

    /// For a person to read; `None` if there never was a plan.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let lines = self.steps.iter().map(|(_, entry)| {
            let mark = match entry.status {
                PlanEntryStatus::Completed => "x",
                PlanEntryStatus::InProgress => ">",
                _ => " ",
            };
            format!("- [{mark}] {}\n", entry.content)
        });
        (!self.steps.is_empty()).then(|| lines.collect())
    }

    /// A call of this step is made now, so what came before it is over.
    fn at(&mut self, step: &str) {
        let mut now = self.steps.iter().skip(self.from);
        let place = now.position(|(id, _)| id == step);
        let place = place.map(|place| place.saturating_add(self.from));
        for (number, (_, entry)) in self.steps.iter_mut().enumerate() {
            if place == Some(number) {
                entry.status = PlanEntryStatus::InProgress;
            } else if entry.status == PlanEntryStatus::InProgress {
                entry.status = PlanEntryStatus::Completed;
            }
        }
    }

    /// This step waits for its user, so what came before it is over.
    fn waits(&mut self) {
        for (_, entry) in &mut self.steps {
            if entry.status == PlanEntryStatus::InProgress {
                entry.status = PlanEntryStatus::Completed;
            }
        }
    }

    /// What really became of every step.
    pub fn end(&mut self, machine: &Machine) {
        let named = |(id, _): &&mut (String, PlanEntry)| !id.is_empty();
        for (id, entry) in self.steps.iter_mut().skip(self.from).filter(named) {
            let mut of_step = machine.reports().iter().filter(|report| report.step == *id);
            let Some(first) = of_step.next() else {
                entry.status = PlanEntryStatus::Pending;
                continue;
            };
            // In a loop a step has a report for each turn.
            let worst = of_step
                .chain([first])
                .find(|report| !matches!(report.status, Status::Done | Status::Already));
            entry.status = match worst {
                None => PlanEntryStatus::Completed,
                Some(_) => PlanEntryStatus::Pending,
            };
            match worst.map(|report| &report.status) {
                Some(Status::Failed(failure)) => {
                    entry.content.push_str(&format!(" (failed: {failure})"));
                }
                Some(Status::Skipped(because)) => entry
                    .content
                    .push_str(&format!(" (skipped, because {because} came to nothing)")),
                Some(Status::Done | Status::Already) | None => {}
            }
        }
    }
}

fn add(
    plan: &Plan,
    steps: &[Step],
    workspace: &Path,
    depth: usize,
    into: &mut Vec<(String, PlanEntry)>,
) {
    for step in steps {
        let priority = match risk::of(step, workspace, plan.toolbox()) {
            Risk::Low => PlanEntryPriority::Low,
            Risk::Medium => PlanEntryPriority::Medium,
            Risk::High | Risk::Blocked => PlanEntryPriority::High,
        };
        let words = format!("{}{}: {}", "  ".repeat(depth), step.id, show::what(step));
        into.push((
            step.id.clone(),
            PlanEntry::new(words, priority, PlanEntryStatus::Pending),
        ));
        for block in step.what.blocks() {
            add(plan, block, workspace, depth + 1, into);
        }
    }
}

/// Whether somebody, or a rule, said no.
const fn is_refusal(why: Failure) -> bool {
    matches!(why, Failure::Refused | Failure::Cancelled)
}

/// What a plan that has ended came to, in a line.
pub fn summed_up(machine: &Machine) -> String {
    let count = |of: fn(&Status) -> bool| {
        let reports = machine.reports().iter();
        reports.filter(|report| of(&report.status)).count()
    };
    format!(
        "{} done, {} failed, {} refused, {} skipped",
        count(|status| matches!(status, Status::Done | Status::Already)),
        count(|status| matches!(status, Status::Failed(why) if !is_refusal(*why))),
        count(|status| matches!(status, Status::Failed(why) if is_refusal(*why))),
        count(|status| matches!(status, Status::Skipped(_))),
    )
}

/// Shows the client how a plan goes on.
pub struct Looker<'s, 'm> {
    pub(super) person: Person,
    /// The model that plans a text the user approved.
    pub(super) planner: &'s RefCell<&'m mut Backend>,
    pub(super) course: &'s mut Course,
    pub(super) in_force: &'s mut InForce,
    pub(super) floor: Asking,
}

impl Looker<'_, '_> {
    fn show(&self) {
        self.person
            .link
            .tell(SessionUpdate::Plan(self.course.shown()));
    }

    /// The plan that comes of a text, or why none does.
    fn planned_further(
        &mut self,
        runtime: &mut Runtime,
        text: &str,
        tools: &Toolbox,
    ) -> Result<Plan, String> {
        if text.len() > ask::REQUEST_BYTES_MAX {
            return Err("it is longer than a request may be".to_owned());
        }
        if !self.person.text(text, tools) {
            return Err("it was not approved".to_owned());
        }
        runtime
            .note(ask::approved_text(text, tools))
            .map_err(|error| error.to_string())?;
        let by = runtime.first_agent();
        let plan = {
            let mut backend = self
                .planner
                .try_borrow_mut()
                .map_err(|_| "the model is in use".to_owned())?;
            let backend = &mut **backend;
            let mut planner = Planner {
                model: &backend.model,
                port: &mut *backend.port,
                toolbox: Arc::new(tools.clone()),
            };
            planner
                .plan(runtime, by, text)
                .map_err(|why| why.to_string())?
        };
        let base = &self.person.base;
        if risk::worst(plan.steps(), base, plan.toolbox()) == Risk::Blocked {
            return Err("its plan names a place outside the workspace".to_owned());
        }
        if !self.person.plan(&plan) {
            return Err("its plan was not approved".to_owned());
        }
        Ok(plan)
    }
}

/// A model that reads for a plan, and may be the one that plans.
pub struct Reader<'b, 'm>(pub(super) &'b RefCell<&'m mut Backend>);

impl Picker for Reader<'_, '_> {
    fn pick(
        &mut self,
        runtime: &mut Runtime,
        text: &str,
        ask: &str,
        schema: &Type,
    ) -> Result<Raw, Trouble> {
        let mut backend = self
            .0
            .try_borrow_mut()
            .map_err(|_| Trouble::new(Failure::Broken, "the model is in use"))?;
        let backend = &mut **backend;
        let mut picker = ModelPicker {
            model: &backend.model,
            port: &mut *backend.port,
        };
        picker.pick(runtime, text, ask, schema)
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool.split_once('_').map_or(tool, |(verb, _)| verb) {
        "read" | "list" => ToolKind::Read,
        "find" => ToolKind::Search,
        "run" => ToolKind::Execute,
        _ => ToolKind::Edit,
    }
}

impl Onlooker for Looker<'_, '_> {
    fn before(&mut self, runtime: &mut Runtime, call: &ToolCall) -> Go {
        if self.is_over() {
            return Go::Stop;
        }
        // What the user chose meanwhile holds from this call on.
        let wanted = self.person.control.choice();
        if let Err(why) = self.in_force.follow(runtime, wanted, self.floor) {
            self.person
                .link
                .say(&format!("The mode could not be changed: {why}"));
            return Go::Stop;
        }
        self.course.at(&call.step);
        self.show();
        let title = format!("{}: {}", call.step, executor::call_line(call));
        let kind = kind(&call.tool);
        let id = self
            .person
            .scene
            .borrow_mut()
            .begin(AgentId::FIRST, title.clone(), kind);
        let input = call
            .args
            .iter()
            .map(|(name, value)| (name.clone(), values::json(&value.raw())));
        let path = call
            .args
            .iter()
            .find(|(name, _)| *name == "path")
            .and_then(|(_, value)| value.as_text());
        self.person.link.tell(SessionUpdate::ToolCall(
            CallShown::new(id, title)
                .kind(kind)
                .status(ToolCallStatus::InProgress)
                .locations(
                    path.map(|path| ToolCallLocation::new(self.person.base.join(path)))
                        .into_iter()
                        .collect::<Vec<_>>(),
                )
                .raw_input(serde_json::Value::Object(input.collect())),
        ));
        Go::On
    }

    fn asks(&mut self, _step: &str) {
        self.course.waits();
        self.show();
    }

    fn is_over(&mut self) -> bool {
        self.person.control.is_cancelled() || self.person.scene.borrow().stop
    }

    fn after(&mut self, _call: &ToolCall, result: Result<&Did, &Trouble>) {
        let Some(current) = self.person.scene.borrow_mut().end(AgentId::FIRST) else {
            return;
        };
        let (status, words) = match result {
            Ok(did) => (ToolCallStatus::Completed, &did.told),
            Err(trouble) => (ToolCallStatus::Failed, &trouble.words),
        };
        let mut fields = ToolCallUpdateFields::new()
            .status(status)
            .raw_output(serde_json::Value::from(words.as_str()));
        let keeps_its_diff = current.kind == ToolKind::Edit && result.is_ok();
        if !keeps_its_diff {
            fields = fields.content(vec![updates::text(words)]);
        }
        let update = ToolCallUpdate::new(current.id, fields);
        self.person.link.tell(SessionUpdate::ToolCallUpdate(update));
    }

    fn say(&mut self, text: &str) {
        let chunk = ContentChunk::new(ContentBlock::from(text.to_owned()));
        self.person
            .link
            .tell(SessionUpdate::AgentMessageChunk(chunk));
    }

    fn confirm(&mut self, value: &Value) -> bool {
        self.person.value(&values::whole_text(value))
    }

    fn delegate(&mut self, runtime: &mut Runtime, text: &str, tools: &Toolbox) -> Option<Plan> {
        match self.planned_further(runtime, text, tools) {
            Ok(plan) => {
                self.course.further(&plan, &self.person.base);
                self.show();
                Some(plan)
            }
            Err(why) => {
                self.person
                    .link
                    .say(&format!("The text is not planned: {why}\n"));
                None
            }
        }
    }

    fn unpicked(&mut self, step: &str, trouble: &Trouble) {
        let words = format!("{step}: {} ({})\n", trouble.words, trouble.failure);
        self.person.link.say(&words);
    }

    fn further_ended(&mut self, machine: &Machine) {
        self.course.further_ended(machine);
        self.show();
    }
}
