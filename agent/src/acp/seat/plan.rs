//! `/plan WORDS`: from a request to a plan that was carried out, or was not.

use std::{rc::Rc, sync::Arc};

use agent_client_protocol::{
    Error,
    v1::schema::{
        PermissionOption, PermissionOptionKind, PromptResponse, RequestPermissionOutcome,
        RequestPermissionRequest, SessionUpdate, StopReason, ToolCall, ToolCallStatus,
        ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    },
};
use hermitcrab_core::plan::Plan;

use super::{
    super::{
        control::Waited,
        planned::{self, Course, Looker},
        updates,
    },
    Seat,
};
use crate::{
    actions::{self, Risk, risk},
    executor,
    planner::{ask::Planner, pick::ModelPicker, show},
};

const YES: &str = "allow-once";
const NO: &str = "reject-once";

impl Seat {
    pub(super) fn plan(&mut self, words: &str) -> Result<PromptResponse, Error> {
        let ended = |seat: &Self, words: String| {
            if seat.control.is_cancelled() {
                return Ok(PromptResponse::new(StopReason::Cancelled));
            }
            seat.link.say(&words);
            Ok(PromptResponse::new(StopReason::EndTurn))
        };
        let by = self.runtime.first_agent();
        let mut planner = Planner {
            model: &self.backend.model,
            port: &mut *self.backend.port,
            toolbox: Arc::new(actions::toolbox()),
        };
        let plan = match planner.plan(&mut self.runtime, by, words) {
            Ok(plan) => plan,
            Err(why) => {
                let words = format!("There is no plan, and nothing was done: {why}");
                return ended(self, words);
            }
        };
        self.course = Course::of(&plan, &self.ground.cwd);
        self.link.tell(SessionUpdate::Plan(self.course.shown()));
        if risk::worst(plan.steps(), &self.ground.cwd) == Risk::Blocked {
            let words = "The plan names a place outside the workspace, or would delete the workspace itself; \
                         nothing was done.";
            return ended(self, words.to_owned());
        }
        if !self.is_approved(&plan) {
            return ended(
                self,
                "The plan was not approved; nothing was done.".to_owned(),
            );
        }
        let picker = self.picker.as_mut().unwrap_or(&mut self.backend);
        let mut picker = ModelPicker {
            model: &picker.model,
            port: &mut *picker.port,
        };
        let mut looker = Looker {
            link: self.link.clone(),
            control: Arc::clone(&self.control),
            scene: Rc::clone(&self.scene),
            base: &self.ground.cwd,
            course: &mut self.course,
        };
        let machine = executor::run(&mut self.runtime, plan, &mut looker, &mut picker);
        self.scene.borrow_mut().close_question(&self.link);
        self.course.end(&machine);
        self.link.tell(SessionUpdate::Plan(self.course.shown()));
        let mut told = self.runtime.take_told();
        told.push(planned::summed_up(&machine));
        ended(self, told.join("\n"))
    }

    /// Shows the plan whole and asks for it to go ahead. Only the one option
    /// that says so is a yes.
    fn is_approved(&self, plan: &Plan) -> bool {
        let title = "Carry out this plan?";
        let id = self
            .scene
            .borrow_mut()
            .begin(title.to_owned(), ToolKind::Think);
        self.link.tell(SessionUpdate::ToolCall(
            ToolCall::new(id.clone(), title)
                .kind(ToolKind::Think)
                .status(ToolCallStatus::Pending),
        ));
        let words = show::plan(plan, &self.ground.cwd);
        let fields = ToolCallUpdateFields::new()
            .title(title.to_owned())
            .kind(ToolKind::Think)
            .status(ToolCallStatus::Pending)
            .content(vec![updates::text(&words)]);
        let options = vec![
            PermissionOption::new(
                YES,
                "Go ahead; each change is still shown first",
                PermissionOptionKind::AllowOnce,
            ),
            PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(
            self.link.session(),
            ToolCallUpdate::new(id.clone(), fields),
            options,
        );
        let is_yes = match self.link.ask(&self.control, request, self.within) {
            Waited::Got(Ok(answer)) => match answer.outcome {
                RequestPermissionOutcome::Selected(chosen) => chosen.option_id.0.as_ref() == YES,
                // Closed, or an outcome of a later protocol.
                _ => false,
            },
            Waited::Got(Err(_)) | Waited::Cancelled | Waited::TimedOut => false,
        };
        self.scene.borrow_mut().end();
        let status = if is_yes {
            ToolCallStatus::Completed
        } else {
            ToolCallStatus::Failed
        };
        let fields = ToolCallUpdateFields::new().status(status);
        let update = ToolCallUpdate::new(id, fields);
        self.link.tell(SessionUpdate::ToolCallUpdate(update));
        is_yes
    }
}
