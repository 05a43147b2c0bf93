//! What a plan asks its user for as a whole, behind an editor: whether it goes
//! ahead, whether a value is theirs, whether a text is to be planned.
//!
//! Each is shown whole, as a permission of the protocol. Only the one option
//! that says so is a yes; an answer that is none, a closed question and a
//! client that went away are a no.

use std::{cell::RefCell, path::PathBuf, rc::Rc, sync::Arc, time::Duration};

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use hermitcrab_core::{
    grant::AgentId,
    plan::{Plan, Toolbox},
};

use super::{
    control::{Control, Waited},
    link::Link,
    scene::Scene,
    updates,
};
use crate::planner::show;

const YES: &str = "allow-once";
const NO: &str = "reject-once";

/// The user, as a plan asks them.
pub struct Person {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
    pub(super) within: Duration,
    pub(super) base: PathBuf,
}

impl Person {
    /// Shows a plan whole and asks for it to go ahead.
    pub fn plan(&self, plan: &Plan) -> bool {
        self.agrees(
            "Carry out this plan?",
            &show::plan(plan, &self.base),
            "Go ahead; each change is still shown first",
        )
    }

    /// Shows a value; with a yes it is the user's own.
    pub fn value(&self, value: &str) -> bool {
        self.agrees(
            "The plan goes on with this. Is it what you want?",
            &show::quoted_lines(value),
            "It is; what uses it is not asked about again",
        )
    }

    /// Shows a text that is somebody else's; with a yes it is planned.
    pub fn text(&self, text: &str, tools: &Toolbox) -> bool {
        let names: Vec<&str> = tools.all().iter().map(|tool| tool.name.as_str()).collect();
        let words = format!(
            "The plan would have this text planned, with {}:\n{}\nWho wrote it tells what is done.\n",
            names.join(", "),
            show::quoted_lines(text)
        );
        self.agrees(
            "Plan this text?",
            &words,
            "Plan it; the plan is shown before anything is done",
        )
    }

    fn agrees(&self, title: &str, words: &str, yes: &str) -> bool {
        let id = self
            .scene
            .borrow_mut()
            .begin(AgentId::FIRST, title.to_owned(), ToolKind::Think);
        self.link.tell(SessionUpdate::ToolCall(
            ToolCall::new(id.clone(), title)
                .kind(ToolKind::Think)
                .status(ToolCallStatus::Pending),
        ));
        let fields = ToolCallUpdateFields::new()
            .title(title.to_owned())
            .kind(ToolKind::Think)
            .status(ToolCallStatus::Pending)
            .content(vec![updates::verbatim(words)]);
        let options = vec![
            PermissionOption::new(YES, yes.to_owned(), PermissionOptionKind::AllowOnce),
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
        self.scene.borrow_mut().end(AgentId::FIRST);
        self.link.tell(updates::answered(id, is_yes));
        is_yes
    }
}
