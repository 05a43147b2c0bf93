//! What a session is doing at this moment, as its client sees it.

use std::{cell::RefCell, rc::Rc, sync::Arc, time};

use agent_client_protocol::v1::schema::{
    SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use hermitcrab_core::grant::AgentId;

use super::{control::Control, link::Link, updates};
use crate::ports::{BufferPort, FileDiff, ProgressPort, Side};

/// How often output that grows is shown.
const SHOW_EVERY: time::Duration = time::Duration::from_millis(100);

/// How much of what a call wrote is shown, in bytes of both texts of each file.
const WRITTEN_BYTES_MAX: usize = 4 << 20;

/// The call that is being made.
#[derive(Clone, Debug)]
pub struct Current {
    /// Whose it is.
    agent: AgentId,
    /// Its id on the wire.
    pub id: String,
    /// What it is called there.
    pub title: String,
    /// Its kind there.
    pub kind: ToolKind,
    /// What its command has printed so far.
    pub output: String,
    shown: Option<time::Instant>,
    /// What its user was shown of its changes, with the last question about them.
    pub showed: Vec<ToolCallContent>,
    /// What it put in place, as the editor is to show it.
    pub written: WrittenFiles,
    /// Which files it changed that are not saved, a line for each.
    pub unsaved: Vec<String>,
}

/// What a call put in place: each file once, and no more than is shown.
#[derive(Clone, Debug, Default)]
pub struct WrittenFiles {
    /// The files, in the order in which they were first written.
    pub files: Vec<FileDiff>,
    /// How many more there are.
    pub more: usize,
    bytes: usize,
}

impl WrittenFiles {
    fn take(&mut self, file: FileDiff) {
        let side = |side: &Side| side.text().map_or(0, str::len);
        let known = self.files.iter_mut().find(|known| known.path == file.path);
        if let Some(known) = known {
            // What was there before the first write is what the call replaced.
            self.bytes = self.bytes.saturating_sub(side(&known.after));
            self.bytes = self.bytes.saturating_add(side(&file.after));
            known.after = file.after;
            return;
        }
        let bytes = side(&file.before).saturating_add(side(&file.after));
        let bytes = self.bytes.saturating_add(bytes);
        if bytes > WRITTEN_BYTES_MAX {
            self.more = self.more.saturating_add(1);
        } else {
            self.bytes = bytes;
            self.files.push(file);
        }
    }
}

/// What is going on.
#[derive(Debug, Default)]
pub struct Scene {
    /// The calls that are being made, in their order. While one goes on that handed out work,
    /// those of whoever has it now begin and end.
    calls: Vec<Current>,
    /// Which of an agent's own its questions belong to.
    asking: usize,
    calls_made: u64,
    asked_alone: Option<String>,
    /// Questions are about this command, which an earlier call left running.
    earlier: Option<String>,
    /// The user rejected and wants the turn to end.
    pub stop: bool,
    /// Nothing is to be changed: what would be asked is shown and refused.
    pub is_dry: bool,
}

impl Scene {
    /// The call that this agent is making; of several, the one that asks.
    pub fn call_of(&self, by: AgentId) -> Option<&Current> {
        let mut own = self.calls.iter().filter(|call| call.agent == by);
        own.nth(self.asking)
    }

    fn call_of_mut(&mut self, by: AgentId) -> Option<&mut Current> {
        let mut own = self.calls.iter_mut().filter(|call| call.agent == by);
        own.nth(self.asking)
    }

    /// Questions belong to this one of several calls from here on.
    pub fn about(&mut self, call: usize) {
        self.asking = call;
    }

    /// Questions are about this command of an earlier call; with `None`, about what is
    /// being made.
    pub fn about_earlier(&mut self, command: Option<&str>) {
        self.earlier = command.map(updates::in_the_background);
    }

    /// Where questions are about a command of an earlier call: a card of their own, so
    /// that nothing of it stands under the name of the call that is being made.
    pub fn asking_of_earlier(&mut self, link: &Link) -> Option<(String, String)> {
        let title = self.earlier.clone()?;
        let id = self.next_id();
        link.tell(SessionUpdate::ToolCall(
            ToolCall::new(id.clone(), title.clone()).status(ToolCallStatus::Pending),
        ));
        Some((id, title))
    }

    /// Nothing is being made.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.asking = 0;
    }

    fn next_id(&mut self) -> String {
        self.calls_made += 1;
        format!("call-{}", self.calls_made)
    }

    /// A call of this agent begins, beside those that have begun.
    pub fn begin(&mut self, agent: AgentId, title: String, kind: ToolKind) -> String {
        let id = self.next_id();
        self.calls.push(Current {
            agent,
            id: id.clone(),
            title,
            kind,
            output: String::new(),
            shown: None,
            showed: Vec::new(),
            written: WrittenFiles::default(),
            unsaved: Vec::new(),
        });
        id
    }

    /// The first of this agent's calls ended.
    pub fn end(&mut self, agent: AgentId) -> Option<Current> {
        self.asking = 0;
        let first = self.calls.iter().position(|call| call.agent == agent)?;
        Some(self.calls.remove(first))
    }

    /// The call a question of this agent's belongs to; one that belongs to none gets its own.
    pub fn asking(&mut self, by: AgentId, link: &Link) -> String {
        let id = self.call_of(by).map(|call| call.id.clone());
        id.unwrap_or_else(|| self.asking_alone(link))
    }

    /// The same of a question for words: nothing is made beside the call that puts it.
    pub fn asking_for_words(&mut self, link: &Link) -> String {
        let id = self.calls.last().map(|call| call.id.clone());
        id.unwrap_or_else(|| self.asking_alone(link))
    }

    fn asking_alone(&mut self, link: &Link) -> String {
        let id = self.next_id();
        link.tell(SessionUpdate::ToolCall(
            ToolCall::new(id.clone(), "A question").status(ToolCallStatus::Pending),
        ));
        self.asked_alone = Some(id.clone());
        id
    }

    /// Closes a question that belonged to no call.
    pub fn close_question(&mut self, link: &Link) {
        if let Some(id) = self.asked_alone.take() {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
            link.tell(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
                id, fields,
            )));
        }
    }

    /// A question about changes is put for the call that this agent is making, and shows this.
    pub fn shows(&mut self, by: AgentId, content: &[ToolCallContent]) {
        if let Some(call) = self.call_of_mut(by) {
            content.clone_into(&mut call.showed);
        }
    }

    /// What is said of a command that goes on. It may print nothing for long, so nothing
    /// that comes later is waited for.
    fn noticed(&mut self, by: AgentId, link: &Link, line: &str) {
        if let Some(call) = self.call_of_mut(by) {
            call.shown = None;
            let begins = call.output.is_empty() || call.output.ends_with('\n');
            let before = if begins { "" } else { "\n" };
            self.printed(by, link, &format!("{before}[{line}]\n"));
        }
    }

    /// More of what a command prints.
    fn printed(&mut self, by: AgentId, link: &Link, piece: &str) {
        let Some(call) = self.call_of_mut(by) else {
            return;
        };
        call.output.push_str(piece);
        updates::keep_the_end(&mut call.output);
        if call.shown.is_some_and(|shown| shown.elapsed() < SHOW_EVERY) {
            return;
        }
        call.shown = Some(time::Instant::now());
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![updates::text(&call.output)]);
        link.tell(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
            call.id.clone(),
            fields,
        )));
    }
}

/// Shows what commands print, and knows when they are not wanted any more.
pub struct Output {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
}

impl ProgressPort for Output {
    fn output(&mut self, agent: AgentId, piece: &str) {
        self.scene.borrow_mut().printed(agent, &self.link, piece);
    }

    fn notice(&mut self, agent: AgentId, line: &str) {
        self.scene.borrow_mut().noticed(agent, &self.link, line);
    }

    fn is_wanted(&mut self) -> bool {
        !self.control.is_cancelled()
    }
}

/// The texts the client's editor holds.
pub struct Buffers {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
}

impl BufferPort for Buffers {
    fn text(&mut self, path: &str) -> Option<String> {
        self.link.text(&self.control, path)
    }

    fn wrote(&mut self, by: AgentId, file: FileDiff) {
        if let Some(call) = self.scene.borrow_mut().call_of_mut(by) {
            call.written.take(file);
        }
    }
    fn unsaved(&mut self, by: AgentId, words: String) {
        if let Some(call) = self.scene.borrow_mut().call_of_mut(by) {
            call.unsaved.push(words);
        }
    }
}
