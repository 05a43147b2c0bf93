//! A model, as the chat loop sees it: a conversation in, words and proposed
//! calls out.
//!
//! What comes back is a proposal. Nothing in it has authority; every call in
//! it passes the monitor like any other. This module must never act on a
//! reply, only carry it.

pub mod http;
mod wire;

use std::fmt;

use serde_json::Value;

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the model is told about its place.
    System(String),
    /// What the user said, or what the program says in the user's place.
    User(String),
    /// What the model said and proposed.
    Assistant {
        /// Its words, possibly none.
        text: String,
        /// The calls it proposed.
        calls: Vec<ProposedCall>,
    },
    /// What a call came to.
    Tool {
        /// Which call.
        call: String,
        /// Which tool.
        tool: String,
        /// The result as the model is given it.
        text: String,
    },
}

/// A call a model proposes; the arguments are text and may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedCall {
    /// The model's own name for it.
    pub id: String,
    /// The tool it names.
    pub tool: String,
    /// The arguments, meant to be a JSON object.
    pub arguments: String,
}

/// A tool a model is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// What it is for, for the model.
    pub description: &'static str,
    /// Its parameters, as a JSON schema.
    pub parameters: Value,
}

/// What is put to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'r> {
    /// Which model.
    pub model: &'r str,
    /// The conversation so far.
    pub messages: &'r [Message],
    /// What it may propose.
    pub offers: &'r [Offer],
}

impl ModelRequest<'_> {
    /// All of it as it is sent, so that what is decided about is what leaves.
    #[must_use]
    pub fn text(&self) -> String {
        wire::request(self).to_string()
    }
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelReply {
    /// Its words.
    pub text: String,
    /// What it proposes.
    pub calls: Vec<ProposedCall>,
    /// Tokens read and written, as the backend counts them.
    pub tokens: (u64, u64),
}

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The address is not one this build can use.
    Address(String),
    /// Nobody answered there.
    Unreachable(String),
    /// The backend refused, with its status and words.
    Refused(u16, String),
    /// The answer makes no sense.
    Unreadable(String),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(f, "cannot use the model's address: {why}"),
            Self::Unreachable(why) => write!(f, "the model cannot be reached: {why}"),
            Self::Refused(status, words) => {
                write!(
                    f,
                    "the model's backend refused with status {status}: {words}"
                )
            }
            Self::Unreadable(why) => write!(f, "the model's answer cannot be read: {why}"),
        }
    }
}

impl std::error::Error for ModelError {}

/// Carries a conversation to a model and brings its answer back.
pub trait ModelPort {
    /// Asks for the next turn.
    ///
    /// # Errors
    /// There is no usable answer.
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError>;
}
