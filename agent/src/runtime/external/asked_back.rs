//! A server that asks a person something in the midst of a call (`elicitation/create`).
//!
//! What for: a server that books, pays or deletes wants its user's word before it does, and
//! only its client can put the question. Whoever called the tool must be one who may ask
//! (`user.ask`), and the person is told whose words they read. What they answer goes to that
//! server alone: it is no yes to any effect here, and no model is told.
//!
//! It must never answer for a person, and never wait for one without an end. Only forms are
//! put; an address to be visited is declined, as Hermes 0.19.0 declines it.

use std::{sync::mpsc as threads, time::Duration};

use hermitcrab_core::grant::AgentId;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, ElicitationSchema, FormElicitationCapability,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{ExternalServer, web::struck_from};
use crate::{
    cancel::Cancel,
    mcp::asked::{self, Form},
    runtime::{Inquiry, Runtime},
};

/// How much longer a call may take because a person is asked, all of its questions together.
pub(super) const ASKING_MAX: Duration = Duration::from_mins(10);
/// Questions one call may put.
const QUESTIONS_MAX: u32 = 8;
/// How often one field is asked for until it is right.
const TRIES_MAX: u32 = 3;
/// What a person picks at first.
const GOES_ON: &str = "go on";
const DECLINES: &str = "decline";

/// What a server asks.
#[derive(Debug)]
pub(super) struct AskedBack {
    message: String,
    schema: ElicitationSchema,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Back {
    /// All of it is filled in.
    Filled(Value),
    /// They said no, or nobody may be asked that.
    Declined,
    /// Nobody answered.
    Left,
}

/// A question and where its answer goes.
pub(super) type Put = (AskedBack, oneshot::Sender<Back>);

/// What looks after a call while it is under way.
pub(super) trait Attendant {
    /// Whether its answer is still wanted.
    fn is_wanted(&mut self) -> bool;

    /// Whether somebody is there whom its server may ask.
    fn hears(&self) -> bool {
        false
    }

    /// Puts what its server asks.
    fn asked(&mut self, _asked: AskedBack) -> Back {
        Back::Declined
    }
}

/// One that only looks whether the answer is wanted.
impl<F: FnMut() -> bool> Attendant for F {
    fn is_wanted(&mut self) -> bool {
        self()
    }
}

/// Our side of a connection; without a way to ask it says that there is none.
#[derive(Debug, Default)]
pub(super) struct Ears(Option<mpsc::Sender<Put>>);

impl Ears {
    /// With a way to ask, and where the questions come out.
    pub fn that_hear(hears: bool) -> (Self, mpsc::Receiver<Put>) {
        let (put, questions) = mpsc::channel(1);
        (Self(hears.then_some(put)), questions)
    }

    pub fn hear(&self) -> bool {
        self.0.is_some()
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut told = ClientConfig::default();
        if self.hear() {
            let forms =
                ElicitationCapability::new().with_form(FormElicitationCapability::default());
            let mut can = ClientCapabilities::default();
            can.elicitation = Some(forms);
            told.capabilities = can;
        }
        told
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema: schema,
            ..
        } = request
        else {
            return Ok(declined());
        };
        let Some(put) = &self.0 else {
            return Ok(declined());
        };
        let (reply, answer) = oneshot::channel();
        let sent = put.send((AskedBack { message, schema }, reply)).await;
        // Who is gone answers nothing.
        let back = match sent {
            Ok(()) => answer.await.unwrap_or(Back::Left),
            Err(_) => Back::Left,
        };
        Ok(match back {
            Back::Filled(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Back::Declined => declined(),
            Back::Left => ElicitResult::new(ElicitationAction::Cancel),
        })
    }
}

/// For a call over HTTP, which the thread of the runtime waits for itself.
pub(super) struct Attending<'r> {
    pub runtime: &'r mut Runtime,
    pub over: &'r Cancel,
    pub by: AgentId,
    pub server: &'r ExternalServer,
    pub asked: u32,
}

impl Attendant for Attending<'_> {
    fn is_wanted(&mut self) -> bool {
        !self.over.is_thrown() && self.runtime.is_waited_for()
    }

    fn hears(&self) -> bool {
        self.runtime.user.hears_words()
    }

    fn asked(&mut self, asked: AskedBack) -> Back {
        let over = self.over;
        let is_over = || over.is_thrown();
        let who = (self.by, self.server);
        self.runtime
            .asked_back(who, &asked, &mut self.asked, is_over)
    }
}

/// For a call of a started program, which a thread of its own speaks with.
pub(super) struct Afar {
    hears: bool,
    put: threads::Sender<(AskedBack, threads::Sender<Back>)>,
}

/// Where its questions come out.
pub(super) type FromAfar = threads::Receiver<(AskedBack, threads::Sender<Back>)>;

impl Afar {
    pub fn new(hears: bool) -> (Self, FromAfar) {
        let (put, questions) = threads::channel();
        (Self { hears, put }, questions)
    }
}

impl Attendant for Afar {
    /// What is not wanted any more is ended, and this with it.
    fn is_wanted(&mut self) -> bool {
        true
    }

    fn hears(&self) -> bool {
        self.hears
    }

    fn asked(&mut self, asked: AskedBack) -> Back {
        let (reply, answer) = threads::channel();
        match self.put.send((asked, reply)) {
            Ok(()) => answer.recv().unwrap_or(Back::Left),
            Err(_) => Back::Left,
        }
    }
}

impl Runtime {
    /// Puts what a server asks to the person: first whether they want to answer at all, then
    /// each field. `asked` counts the questions of the call.
    pub(super) fn asked_back(
        &mut self,
        (by, server): (AgentId, &ExternalServer),
        asked: &AskedBack,
        count: &mut u32,
        is_over: impl Fn() -> bool,
    ) -> Back {
        *count = count.saturating_add(1);
        if *count > QUESTIONS_MAX {
            // Said once: it can go on without an end, and the ledger is not its to fill.
            if *count > QUESTIONS_MAX.saturating_add(1) {
                return Back::Declined;
            }
            let why = format!("it asked more than {QUESTIONS_MAX} times in one call");
            return self.not_asked(server, &why);
        }
        let form = match asked.form() {
            Ok(form) => form,
            Err(why) => return self.not_asked(server, &why),
        };
        let keys = server.keys();
        let name = server.name.as_str();
        let mut put = |question: String, choices: Option<Vec<String>>| {
            let inquiry = Inquiry {
                question: struck_from(&keys, question),
                choices,
            };
            let answer = self.clarify(by, &inquiry);
            // What it was to go on with was taken back while they thought about it.
            if is_over() { Ok(None) } else { answer }
        };
        let first = Some(vec![GOES_ON.to_owned(), DECLINES.to_owned()]);
        match put(form.opening(name), first) {
            Ok(Some(word)) if word.trim().eq_ignore_ascii_case(GOES_ON) => {}
            Ok(None) => return Back::Left,
            Ok(Some(_)) | Err(_) => return Back::Declined,
        }
        let mut filled = Vec::new();
        for field in &form.fields {
            let mut wrong = String::new();
            let mut tries = 0;
            let value = loop {
                tries += 1;
                let question = format!("{wrong}{}", field.question(name));
                let typed = match put(question, field.choices()) {
                    Ok(Some(typed)) => typed,
                    Ok(None) => return Back::Left,
                    Err(_) => return Back::Declined,
                };
                match field.answered(&typed) {
                    Ok(value) => break value,
                    Err(_) if tries >= TRIES_MAX => return Back::Left,
                    Err(why) => wrong = format!("that is {why}; "),
                }
            };
            filled.extend(value.map(|value| (field.name().to_owned(), value)));
        }
        Back::Filled(asked::content(filled))
    }

    /// Says in the ledger why nobody was asked.
    fn not_asked(&mut self, server: &ExternalServer, why: &str) -> Back {
        let note = format!(
            "the server `{}` wanted to ask something, and nobody was: {why}",
            server.name
        );
        if let Err(error) = self.note(note) {
            self.told.push(error.to_string());
        }
        Back::Declined
    }
}

impl AskedBack {
    fn form(&self) -> Result<Form, String> {
        let unread = |error: serde_json::Error| format!("its form cannot be read: {error}");
        let mut properties = Vec::new();
        let sorted = || self.schema.properties.keys().cloned().collect();
        let order: Vec<String> = self.schema.property_order.clone().unwrap_or_else(sorted);
        for name in order {
            if let Some(schema) = self.schema.properties.get(&name) {
                properties.push((name, serde_json::to_value(schema).map_err(unread)?));
            }
        }
        let named = properties.iter().map(|(name, schema)| (&**name, schema));
        let required = self.schema.required.as_deref().unwrap_or_default();
        Form::read(&self.message, named, required)
    }
}
