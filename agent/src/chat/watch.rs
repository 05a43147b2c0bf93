//! Somebody who sees a turn go by: each answer, each call, each result.
//!
//! A front end shows them and may stop the turn between two steps. It must
//! never make a call itself, and what it is told comes after the decision or
//! before it, never instead of it.

use hermitcrab_core::grant::AgentId;
use serde_json::Value;

use crate::{
    model::{Message, ModelPort, ProposedCall},
    runtime::{Runtime, ToolResult},
};

/// What is to become of a call that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Its result goes to the model.
    Done,
    /// It is made once more, and decided once more.
    Again,
}

/// Sees a turn go by.
pub trait Watch {
    /// Whether the model's words are wanted as they come.
    fn wants_words(&self) -> bool {
        false
    }

    /// Some of the model's words, as they come.
    fn heard(&mut self, _agent: AgentId, _words: &str) {}

    /// The model said something to its user, or nothing.
    fn said(&mut self, _agent: AgentId, _text: &str) {}

    /// A call is about to be decided about; the arguments are `null` if they
    /// cannot be read. Calls that are made at the same time all begin before the
    /// first of them ends; they end in the order in which they began.
    fn begins(
        &mut self,
        _runtime: &mut Runtime,
        _agent: AgentId,
        _call: &ProposedCall,
        _arguments: &Value,
    ) {
    }

    /// A call ended. The words of its result may be changed, what became of it
    /// cannot.
    fn ended(&mut self, _agent: AgentId, _call: &ProposedCall, _result: &mut ToolResult) -> Then {
        Then::Done
    }

    /// The conversation as it stands, after each step of a turn from which it could be gone
    /// on with: what the user said, calls that are about to be made, results. Of the
    /// conversations that are had for it nothing is told.
    fn stands(&mut self, _runtime: &Runtime, _messages: &[Message]) {}

    /// What whoever watches is to know and the conversation does not say: that what is sent
    /// to the model was shortened, or why its answers are good for nothing.
    fn noted(&mut self, _agent: AgentId, _words: &str) {}

    /// Whether the turn goes on. Once it said no it says no until the turn ended.
    fn goes_on(&mut self) -> bool {
        true
    }
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// What a turn needs from outside.
pub(super) struct Ports<'p> {
    pub(super) model: &'p mut dyn ModelPort,
    pub(super) watch: &'p mut dyn Watch,
}
