//! A model, as the rest of the program sees it: a conversation in, words and
//! proposed calls out.
//!
//! What comes back is a proposal. Nothing in it has authority; every call in
//! it passes the monitor like any other, and a reply that was to have a form
//! is checked by whoever asked, whatever the backend promised. This module must
//! never act on a reply, only carry it, and never let one be without bounds.

mod failure;
mod full;
pub mod gguf;
pub mod http;
pub mod key;
mod keyring;
mod limits;
pub mod llama;
mod repeats;
pub mod scripted;
mod stream;
mod wire;

use std::borrow::Cow;

use serde_json::Value;

use crate::cancel::Cancel;

pub use self::{
    failure::ModelError,
    http::tls::config as trusted,
    limits::{ReplyLimits, Structured},
};

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the model is told about its place.
    System(String),
    /// What the user said.
    User(String),
    /// What the program says in the user's place: a backend is sent it as the user's, and a
    /// person is never shown it as such.
    Told(String),
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

/// Messages as a model has them: what the program tells stands with the user's words that
/// follow it, for some models take no two messages of one side after each other. What belongs
/// to each goes along.
pub fn as_models_have<T>(messages: impl IntoIterator<Item = (Message, T)>) -> Vec<(Message, T)> {
    let mut all = Vec::new();
    let mut told: Option<(String, T)> = None;
    let alone = |(words, of)| (Message::User(words), of);
    for (message, of) in messages {
        match (message, told.take()) {
            (Message::Told(words), before) => {
                all.extend(before.map(alone));
                told = Some((words, of));
            }
            (Message::User(words), Some((before, _))) => {
                all.push((Message::User(format!("{before}\n\n{words}")), of));
            }
            (other, before) => {
                all.extend(before.map(alone));
                all.push((other, of));
            }
        }
    }
    all.extend(told.map(alone));
    all
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
    pub name: Cow<'static, str>,
    /// What it is for, for the model.
    pub description: Cow<'static, str>,
    /// Its parameters, as a JSON schema.
    pub parameters: Value,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// A short name, letters and underscores.
    pub name: String,
    /// The form as a JSON schema.
    pub json: Value,
    /// The same as a GBNF grammar, for backends that take one.
    pub grammar: Option<String>,
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
    /// The form the answer is to have. A backend does what it can about it;
    /// the answer has to be checked all the same.
    pub schema: Option<&'r Schema>,
    /// How much of an answer is waited for.
    pub limits: ReplyLimits,
    /// Thrown when the answer may not be used any more: then it is waited for no longer.
    pub over: Option<&'r Cancel>,
}

impl<'r> ModelRequest<'r> {
    /// A request for words, with the usual limits.
    #[must_use]
    pub fn new(model: &'r str, messages: &'r [Message]) -> Self {
        Self {
            model,
            messages,
            offers: &[],
            schema: None,
            limits: ReplyLimits::default(),
            over: None,
        }
    }

    /// The same, with tools to call.
    #[must_use]
    pub fn offering(mut self, offers: &'r [Offer]) -> Self {
        self.offers = offers;
        self
    }

    /// The same, for an answer of this form.
    #[must_use]
    pub fn shaped(mut self, schema: &'r Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The same, within other limits.
    #[must_use]
    pub fn within(mut self, limits: ReplyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same, given up when this is thrown.
    #[must_use]
    pub fn until(mut self, over: &'r Cancel) -> Self {
        self.over = Some(over);
        self
    }

    /// The conversation as it is sent, so that what is decided about is what
    /// leaves. What a backend adds says only how it is to answer.
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
    /// Why it ended.
    pub finish: Finish,
}

/// Why an answer ended, as the backend says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model had nothing more to say, or the backend does not tell.
    #[default]
    Ended,
    /// The limit on its length was reached: the rest is missing.
    CutOff,
    /// The backend withheld it.
    Withheld,
}

/// Carries a conversation to a model and brings its answer back.
pub trait ModelPort {
    /// Asks for the next turn.
    ///
    /// # Errors
    /// There is no usable answer.
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError>;

    /// The same, for an answer that is for the program and shown to nobody.
    ///
    /// # Errors
    /// As for [`ModelPort::complete`].
    fn aside(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.complete(request)
    }

    /// How many tokens a conversation and the answer to it may have, where that is known.
    fn holds(&self) -> Option<u64> {
        None
    }

    /// The same, and shows the words as they come. They are the model's and may
    /// hold control letters.
    ///
    /// # Errors
    /// As for [`ModelPort::complete`].
    fn stream(
        &mut self,
        request: ModelRequest<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ModelError> {
        let reply = self.complete(request)?;
        heard(&reply.text);
        Ok(reply)
    }
}

/// A model that is ready to be asked, and its name as a grant names it.
pub struct Backend {
    /// The name, for `model.send` and for the request.
    pub model: String,
    /// Where it is, for a person.
    pub place: String,
    /// The way to it.
    pub port: Box<dyn ModelPort>,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backend")
            .field("model", &self.model)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
