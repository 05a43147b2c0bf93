//! A turn as its client sees it, step by step.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use hermitcrab_core::{grant::AgentId, outcome::DenialCode, session::Asking, tool::Tool};
use serde_json::Value;

use super::{
    control::Control,
    history::Story,
    link::Link,
    modes::InForce,
    scene::{Current, Scene},
    updates,
};
use crate::{
    chat::{Then, Watch},
    conversation::When,
    model::{Message, ProposedCall},
    runtime::{Fate, Runtime, ToolResult},
    text::pyjson,
};

/// How often an edit whose file changed meanwhile is shown anew.
const SHOWN_ANEW_MAX: u32 = 3;

/// What stands in the place of a result where a question was left open too long.
const UNANSWERED: &str = "nobody answered in time, so it was not done";

/// What stands over what a dry run would have changed.
const DRY: &str = "a dry run: this is what would be changed, and nothing of it is kept";

/// Tells the client, and knows when to stop.
pub struct Watcher<'s> {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
    pub(super) story: Rc<RefCell<Story>>,
    pub(super) in_force: &'s mut InForce,
    pub(super) floor: Asking,
    pub(super) tries: u32,
}

/// What a call that ended is shown as; `None`: as it is shown already. What comes with its end
/// takes the place of what was shown before, so what a dry run would have changed stands in it.
fn content_of(call: &Current, result: &ToolResult, is_dry: bool) -> Option<Vec<ToolCallContent>> {
    let stands = result.fate == Fate::Ran;
    if is_dry && !stands && !call.showed.is_empty() {
        let words = updates::text(DRY);
        return Some(
            std::iter::once(words)
                .chain(call.showed.iter().cloned())
                .collect(),
        );
    }
    let is_edit = stands && call.kind == ToolKind::Edit;
    if is_edit && !call.showed.is_empty() {
        return None;
    }
    let written = updates::written(&call.written.files, call.written.more);
    if is_edit && !written.is_empty() {
        return Some(written);
    }
    // What a command printed, and under it what was agreed to.
    let agreed = stands.then_some(call.showed.iter().cloned());
    // The model is told of it in the compared agent's words; who was away rejected nothing.
    let words = match result.fate {
        Fate::AskedRefused(DenialCode::NoAnswer) => updates::text(UNANSWERED),
        _ => updates::text(&updates::readable(&result.text)),
    };
    let changed = agreed.into_iter().flatten().chain(written);
    let unsaved = (!call.unsaved.is_empty()).then(|| updates::text(&call.unsaved.join("\n")));
    Some(
        std::iter::once(words)
            .chain(changed)
            .chain(unsaved)
            .collect(),
    )
}

impl Watch for Watcher<'_> {
    fn wants_words(&self) -> bool {
        true
    }

    fn heard(&mut self, agent: AgentId, text: &str) {
        if text.is_empty() {
            return;
        }
        let chunk = ContentChunk::new(ContentBlock::from(text.to_owned()));
        self.link
            .tell(if agent == AgentId::FIRST || self.scene.borrow().is_dry {
                SessionUpdate::AgentMessageChunk(chunk)
            } else {
                SessionUpdate::AgentThoughtChunk(chunk)
            });
    }

    fn said(&mut self, _agent: AgentId, _text: &str) {
        self.scene.borrow_mut().close_question(&self.link);
    }

    fn begins(
        &mut self,
        runtime: &mut Runtime,
        agent: AgentId,
        call: &ProposedCall,
        arguments: &Value,
    ) {
        // What the user chose meanwhile holds from this call on.
        let wanted = self.control.choice();
        if !self.scene.borrow().is_dry
            && let Err(why) = self.in_force.follow(runtime, wanted, self.floor)
        {
            self.link
                .say(&format!("The mode could not be changed: {why}"));
        }
        let mut described = updates::described(&call.tool, arguments, &runtime.cwd_of(agent));
        if agent != AgentId::FIRST {
            described.title = format!("{agent}: {}", described.title);
        }
        let id = self
            .scene
            .borrow_mut()
            .begin(agent, described.title.clone(), described.kind);
        let raw = if arguments.is_null() {
            Value::String(call.arguments.clone())
        } else {
            arguments.clone()
        };
        self.link.tell(SessionUpdate::ToolCall(
            ToolCall::new(id, described.title)
                .kind(described.kind)
                .status(ToolCallStatus::InProgress)
                .locations(described.locations)
                .raw_input(raw),
        ));
    }

    fn ended(&mut self, agent: AgentId, call: &ProposedCall, result: &mut ToolResult) -> Then {
        let is_edit = matches!(
            Tool::offered(&call.tool),
            Some(Tool::WriteFile | Tool::Patch)
        );
        if is_edit
            && result.fate == Fate::Refused(DenialCode::ChangedSinceShown)
            && self.tries < SHOWN_ANEW_MAX
            && !self.control.is_cancelled()
        {
            self.tries += 1;
            return Then::Again;
        }
        self.tries = 0;
        if let Some(worded) = updates::rejected(&call.tool, &result.fate) {
            result.text = pyjson::text(&worded);
        }
        let Some(current) = self.scene.borrow_mut().end(agent) else {
            return Then::Done;
        };
        let status = match result.fate {
            Fate::Ran => ToolCallStatus::Completed,
            Fate::RanDiscarded(_)
            | Fate::Refused(_)
            | Fate::AskedRefused(_)
            | Fate::ToolError
            | Fate::Failed(_) => ToolCallStatus::Failed,
        };
        let mut fields = ToolCallUpdateFields::new()
            .status(status)
            .raw_output(updates::raw(&result.text));
        let is_dry = self.scene.borrow().is_dry && agent != AgentId::FIRST;
        if let Some(content) = content_of(&current, result, is_dry) {
            fields = fields.content(content);
        }
        self.link
            .tell(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
                current.id, fields,
            )));
        if call.tool == Tool::Todo.as_str()
            && let Some(plan) = updates::plan_of_list(&result.text)
        {
            self.link.tell(SessionUpdate::Plan(plan));
        }
        Then::Done
    }

    fn stands(&mut self, runtime: &Runtime, messages: &[Message]) {
        let kept = self
            .story
            .borrow_mut()
            .go_on(messages, runtime, When::Within);
        if let Err(error) = kept {
            eprintln!("hermitcrab: the conversation cannot be kept: {error}");
        }
    }

    fn noted(&mut self, _agent: AgentId, words: &str) {
        let chunk = ContentChunk::new(ContentBlock::from(words.to_owned()));
        self.link.tell(SessionUpdate::AgentThoughtChunk(chunk));
    }

    fn goes_on(&mut self) -> bool {
        !self.control.is_cancelled() && !self.scene.borrow().stop
    }
}
