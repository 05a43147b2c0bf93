//! `/plan`: a plan is made, shown whole, locked, approved, and carried out while
//! the client sees each step ticked off.
//!
//! A yes to the plan is a yes to its going ahead and to nothing else: every
//! change one of its steps makes is shown and asked about like any other.

use std::{cell::RefCell, path::Path, rc::Rc, sync::Arc};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Plan as Shown, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, ToolCall as CallShown, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use hermitcrab_core::plan::{
    Machine, Plan, Step, Toolbox, Value,
    interp::{Status, ToolCall},
};

use super::{control::Control, link::Link, scene::Scene, updates};
use crate::{
    actions::{Did, Risk, Trouble, risk},
    executor::{self, Go, Onlooker},
    planner::show,
    runtime::Runtime,
};

/// A locked plan, and how far it has come.
#[derive(Clone, Debug, Default)]
pub struct Course {
    steps: Vec<(String, PlanEntry)>,
}

impl Course {
    /// Of a plan that was just locked.
    #[must_use]
    pub fn of(plan: &Plan, workspace: &Path) -> Self {
        let mut steps = Vec::new();
        add(plan.steps(), workspace, 0, &mut steps);
        Self { steps }
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
        let place = self.steps.iter().position(|(id, _)| id == step);
        for (number, (_, entry)) in self.steps.iter_mut().enumerate() {
            if place == Some(number) {
                entry.status = PlanEntryStatus::InProgress;
            } else if entry.status == PlanEntryStatus::InProgress {
                entry.status = PlanEntryStatus::Completed;
            }
        }
    }

    /// What really became of every step.
    pub fn end(&mut self, machine: &Machine) {
        for (id, entry) in &mut self.steps {
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

fn add(steps: &[Step], workspace: &Path, depth: usize, into: &mut Vec<(String, PlanEntry)>) {
    for step in steps {
        let priority = match risk::of(step, workspace) {
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
            add(block, workspace, depth + 1, into);
        }
    }
}

/// What a plan that has ended came to, in a line.
pub fn summed_up(machine: &Machine) -> String {
    let count = |of: fn(&Status) -> bool| {
        let reports = machine.reports().iter();
        reports.filter(|report| of(&report.status)).count()
    };
    format!(
        "{} done, {} failed, {} skipped",
        count(|status| matches!(status, Status::Done | Status::Already)),
        count(|status| matches!(status, Status::Failed(_))),
        count(|status| matches!(status, Status::Skipped(_))),
    )
}

/// Shows the client how a plan goes on.
pub struct Looker<'s> {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
    pub(super) base: &'s Path,
    pub(super) course: &'s mut Course,
}

impl Looker<'_> {
    fn show(&self) {
        self.link.tell(SessionUpdate::Plan(self.course.shown()));
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

impl Onlooker for Looker<'_> {
    fn before(&mut self, call: &ToolCall) -> Go {
        if self.control.is_cancelled() || self.scene.borrow().stop {
            return Go::Stop;
        }
        self.course.at(&call.step);
        self.show();
        let title = format!("{}: {}", call.step, executor::call_line(call));
        let kind = kind(&call.tool);
        let id = self.scene.borrow_mut().begin(title.clone(), kind);
        let input = call
            .args
            .iter()
            .map(|(name, value)| (name.clone(), executor::json(&value.raw())));
        let path = call
            .args
            .iter()
            .find(|(name, _)| *name == "path")
            .and_then(|(_, value)| value.as_text());
        self.link.tell(SessionUpdate::ToolCall(
            CallShown::new(id, title)
                .kind(kind)
                .status(ToolCallStatus::InProgress)
                .locations(
                    path.map(|path| ToolCallLocation::new(self.base.join(path)))
                        .into_iter()
                        .collect::<Vec<_>>(),
                )
                .raw_input(serde_json::Value::Object(input.collect())),
        ));
        Go::On
    }

    fn after(&mut self, _call: &ToolCall, result: Result<&Did, &Trouble>) {
        let Some(current) = self.scene.borrow_mut().end() else {
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
        self.link.tell(SessionUpdate::ToolCallUpdate(update));
    }

    fn say(&mut self, text: &str) {
        let chunk = ContentChunk::new(ContentBlock::from(text.to_owned()));
        self.link.tell(SessionUpdate::AgentMessageChunk(chunk));
    }

    /// There is no way to show a client a value and have a yes to it.
    fn confirm(&mut self, _: &Value) -> bool {
        false
    }

    /// A text becomes a plan only through its user, who can ask for it.
    fn delegate(&mut self, _: &mut Runtime, _text: &str, _tools: &Toolbox) -> Option<Plan> {
        None
    }
}
