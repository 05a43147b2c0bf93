//! The tool-calling loop: a model proposes calls one by one, each passes the
//! monitor, and what came of it goes back into the conversation.
//!
//! There is no plan here, so whatever the model reads may steer what it does
//! next. That is why everything that enters the conversation is reported to
//! the session: a grant acts without a question only as far as it vouches for
//! what its agent has read. This module must never decide, and never put data
//! into the conversation without reporting it.

mod beginning;
mod calls;
mod delegation;
mod judge;
mod loops;
mod offered;
mod proof;
mod replies;
mod room;
mod several;
mod slips;
mod told;
mod unwritten;
mod watch;

use std::fmt;

use hermitcrab_core::{
    grant::AgentId,
    label::Source,
    outcome::{Denial, DenialCode},
};

use self::delegation::Batch;
use self::loops::Loops;
use self::proof::Unproved;
use self::room::Room;
use self::slips::{Next, Slips};
use self::unwritten::Unwritten;
use self::watch::Ports;
pub use self::{
    offered::offers,
    slips::is_no_answer,
    watch::{Then, Unwatched, Watch},
};
use crate::{
    model::{Message, ModelError, ModelPort, ModelReply, Offer},
    runtime::{Fate, Guard, Reminder, Runtime, Talk, WorkLimits},
    screen::visible,
    tools::delegate::Role,
};

/// Answers of the model one turn may take.
const ROUNDS_MAX: u32 = 90;
/// What is said of an answer that stops at the limit of its length.
pub const CUT_OFF: &str =
    "the answer stops at the limit of its length; `tokens_max` of the model allows more";
/// Calls of one answer that are run; more is no plan but a flood.
const CALLS_PER_ANSWER_MAX: usize = 128;

/// A conversation of one agent with one model.
#[derive(Debug)]
pub struct Chat {
    agent: AgentId,
    model: String,
    messages: Vec<Message>,
    depth: u32,
    rounds_max: u32,
    role: Role,
    limits: WorkLimits,
    delegated: Vec<Batch>,
    batches: u32,
    judge: Option<String>,
    loops: Loops,
    /// Whether what was not written is named; what that is.
    names_unwritten: bool,
    unwritten: Unwritten,
    reminder: Reminder,
    unproved: Unproved,
    /// What of it is sent, where it is longer than the model holds.
    room: Room,
    /// Tools it is not offered.
    withheld: &'static [&'static str],
}

/// What happened to one proposed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Who made it.
    pub agent: AgentId,
    /// The tool as named.
    pub tool: String,
    /// What came of it.
    pub fate: Fate,
    /// Questions it led to.
    pub questions: usize,
}

/// A turn: from the user's words to the model's last ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatTurn {
    /// The model's last words.
    pub text: String,
    /// How it ended.
    pub end: TurnEnd,
    /// Every call on the way, children's included, in order.
    pub made: Vec<Made>,
    /// Calls that were not run because an answer held more than are.
    pub left_out: usize,
    /// How often the model was asked.
    pub rounds: u32,
    /// Tokens read and written.
    pub tokens: (u64, u64),
}

impl ChatTurn {
    /// Whether it wanted something in a place that is not open, about which nobody is asked.
    #[must_use]
    pub fn looked_elsewhere(&self) -> bool {
        let refused = Fate::Refused(DenialCode::NoCap);
        self.made.iter().any(|made| made.fate == refused)
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The model had nothing more to call.
    Answered,
    /// The same, and its last answer stops at the limit of its length.
    CutOff,
    /// It was cut off after too many answers.
    RoundsSpent,
    /// The same, and it ends with an answer that was held back for a check.
    HeldBack,
    /// It went round in circles, and that is not wanted.
    Halted,
    /// What the model answered could not be carried out, again and again.
    GaveUp,
    /// The model answered nothing, again and again.
    Silent,
    /// Whoever watches it stopped it.
    Stopped,
}

/// Why a turn could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatError {
    /// The model.
    Model(ModelError),
    /// The conversation may not go to the model.
    Denied(Denial),
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::Denied(denial) => write!(
                f,
                "the conversation may not go to the model ({}): {denial}; {}",
                denial.code(),
                denial.code().next_step()
            ),
        }
    }
}

impl std::error::Error for ChatError {}

impl From<ModelError> for ChatError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Denial> for ChatError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// What is laid beside a user's words, as a model is told it: with whose text it is.
#[must_use]
pub fn attached(name: &str, text: &str) -> String {
    // What it holds does not end it.
    let text = text.replace("</attached", "&lt;/attached");
    format!(
        "<attached uri=\"{}\">\n{text}\n</attached>",
        visible(name).replace('"', "%22")
    )
}

/// The first agent of a session goes on with a conversation in which something was read:
/// it has read that.
///
/// # Errors
/// The session has ended.
pub fn count_as_read(runtime: &mut Runtime) -> Result<(), Denial> {
    let agent = runtime.first_agent();
    for source in [Source::File, Source::Command, Source::Network] {
        runtime.hear(agent, source)?;
    }
    Ok(())
}

impl Chat {
    /// A new conversation of the session's first agent.
    #[must_use]
    pub fn new(runtime: &Runtime, model: &str) -> Self {
        let agent = runtime.first_agent();
        let Talk {
            guard,
            work,
            names_unwritten,
            reminder,
        } = runtime.talk();
        Self {
            agent,
            model: model.to_owned(),
            messages: vec![Message::System(offered::place_in_words(runtime, agent))],
            depth: 0,
            rounds_max: ROUNDS_MAX,
            role: Role::Orchestrator,
            limits: work,
            delegated: Vec::new(),
            batches: 0,
            judge: None,
            loops: Loops::of(guard),
            names_unwritten,
            unwritten: Unwritten::default(),
            reminder,
            unproved: Unproved::default(),
            room: Room::default(),
            withheld: &[],
        }
    }

    /// The model it is had with.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// With other bounds for agents that start agents.
    #[must_use]
    pub fn with_limits(mut self, limits: WorkLimits) -> Self {
        self.limits = limits;
        self
    }

    /// With other bounds for a model that goes round in circles.
    #[must_use]
    pub fn guarded(mut self, guard: Guard) -> Self {
        self.loops = Loops::of(guard);
        self
    }

    /// Whether files that a turn was to change and did not are named at its end.
    #[must_use]
    pub fn naming_unwritten(mut self, names: bool) -> Self {
        self.names_unwritten = names;
        self
    }

    /// Whether a model that ends without a check of what it changed is reminded.
    #[must_use]
    pub fn reminding(mut self, reminder: Reminder) -> Self {
        self.reminder = reminder;
        self
    }

    /// Without these tools: whoever speaks of them is told that there are none.
    #[must_use]
    pub fn without(mut self, tools: &'static [&'static str]) -> Self {
        self.withheld = tools;
        self
    }

    /// The conversation so far.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The same conversation, as it was had in an earlier session; see [`count_as_read`].
    #[must_use]
    pub fn resumed(mut self, messages: Vec<Message>) -> Self {
        self.messages.extend(messages);
        self
    }

    /// The same conversation, gone on with by somebody else.
    #[must_use]
    pub fn in_place_of(self, other: &Self) -> Self {
        let said = other.messages.get(1..).unwrap_or_default().to_vec();
        let room = other.room.clone();
        Self {
            room,
            ..self.resumed(said)
        }
    }

    /// With another agent of the session, which may hold less.
    #[must_use]
    pub fn of(mut self, agent: AgentId) -> Self {
        self.agent = agent;
        self
    }

    /// Says something to the model and lets it work until it has nothing more
    /// to call. Delegated work is done before the turn ends, and its results
    /// come back as a message.
    ///
    /// # Errors
    /// The model cannot be reached, or may not be.
    pub fn turn(
        &mut self,
        runtime: &mut Runtime,
        port: &mut dyn ModelPort,
        words: &str,
    ) -> Result<ChatTurn, ChatError> {
        self.turn_watched(runtime, port, words, &mut Unwatched)
    }

    /// The same, with somebody who sees each step and may stop the turn
    /// between two of them.
    ///
    /// # Errors
    /// As for [`Chat::turn`].
    pub fn turn_watched(
        &mut self,
        runtime: &mut Runtime,
        port: &mut dyn ModelPort,
        words: &str,
        watch: &mut dyn Watch,
    ) -> Result<ChatTurn, ChatError> {
        let turn = self.run(runtime, &mut Ports { model: port, watch }, words);
        // What a turn handed out and did not come to ends with it: it is not begun by
        // words that may say something else.
        self.drop_delegated(runtime);
        turn
    }

    fn run(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        words: &str,
    ) -> Result<ChatTurn, ChatError> {
        let mut turn = ChatTurn {
            text: String::new(),
            end: TurnEnd::RoundsSpent,
            made: Vec::new(),
            left_out: 0,
            rounds: 0,
            tokens: (0, 0),
        };
        self.loops = self.loops.anew();
        self.unwritten = Unwritten::default();
        self.forget_reminders();
        let mut slips = Slips::default();
        let told = self.after_what_ended(runtime, port)?;
        runtime.hear(self.agent, Source::User)?;
        runtime.begins_turn(self.agent);
        self.begin(runtime);
        self.room.begin(words);
        self.messages.extend(told.map(Message::Told));
        self.messages.push(Message::User(words.to_owned()));
        self.stands(runtime, port);
        loop {
            if !port.watch.goes_on() {
                turn.end = TurnEnd::Stopped;
                break;
            }
            if turn.rounds >= self.rounds_max {
                match self.unproved.held_back() {
                    Some(answer) => {
                        turn.text = answer;
                        turn.end = TurnEnd::HeldBack;
                    }
                    None => self.sum_up(runtime, port, &mut turn)?,
                }
                self.name_unwritten(port, &mut turn);
                break;
            }
            turn.rounds += 1;
            let mut reply = match self.ask(runtime, port, Offered::Tools) {
                // A model that was not waited for is no model that failed.
                Err(ChatError::Model(_)) if !port.watch.goes_on() => continue,
                reply => reply?,
            };
            turn.tokens.0 = turn.tokens.0.saturating_add(reply.tokens.0);
            turn.tokens.1 = turn.tokens.1.saturating_add(reply.tokens.1);
            let known = self.known(runtime, &mut reply.calls);
            let next = if !reply.calls.is_empty() {
                slips.calls(&reply.text, &reply.calls, &known)
            } else if reply.text.trim().is_empty() {
                slips.silence(&self.messages)
            } else {
                Next::Make(Vec::new())
            };
            let end = self.carry_out(runtime, port, reply, next, &mut turn)?;
            let Some(end) = end else { continue };
            self.forget_reminders();
            self.name_unwritten(port, &mut turn);
            if let Some(words) = self.what_ended(runtime, port, &mut turn)? {
                // What follows is a turn of its own to whoever counts.
                self.messages.push(Message::Told(words));
                self.stands(runtime, port);
                self.loops = self.loops.anew();
                slips = Slips::default();
            } else {
                turn.end = end;
                break;
            }
        }
        self.forget_reminders();
        Ok(turn)
    }

    /// Shows how the conversation stands, unless it is a child's.
    fn stands(&self, runtime: &Runtime, port: &mut Ports<'_>) {
        if self.depth == 0 {
            port.watch.stands(runtime, &self.messages);
        }
    }

    /// What work that goes on beside the conversation has to say when the model
    /// has nothing more to call.
    fn what_ended(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        turn: &mut ChatTurn,
    ) -> Result<Option<String>, ChatError> {
        match self.take_delegated() {
            Some(batch) => self.finish(runtime, port, batch, turn).map(Some),
            None => self.endings(runtime),
        }
    }

    fn offers(&self, runtime: &Runtime) -> Vec<Offer> {
        let (depth, delegates) = (self.depth, self.may_delegate());
        let mut offers = offered::offers_at(runtime, self.agent, depth, delegates);
        offers.retain(|offer| !self.withheld.contains(&offer.name.as_ref()));
        offers
    }

    fn ask(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        offered: Offered,
    ) -> Result<ModelReply, ChatError> {
        let offers = match offered {
            Offered::Tools => {
                runtime.hear_offers(self.agent)?;
                self.offers(runtime)
            }
            Offered::Nothing => Vec::new(),
        };
        self.put(runtime, port, &offers)
    }

    /// What commands in the background did that have ended since the last call is decided
    /// before the turn goes on; what is to be told of it, which comes before the user's words.
    fn after_what_ended(
        &self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
    ) -> Result<Option<String>, ChatError> {
        if self.depth > 0 || !port.watch.goes_on() {
            return Ok(None);
        }
        runtime.decide_ended(self.agent);
        self.endings(runtime)
    }

    /// What background commands that ended have to say, if any is to be told.
    fn endings(&self, runtime: &mut Runtime) -> Result<Option<String>, ChatError> {
        let noticed = runtime.take_notices(self.agent);
        let ended = runtime.take_endings(self.agent);
        if noticed.is_empty() && ended.is_empty() {
            return Ok(None);
        }
        runtime.hear(self.agent, Source::Command)?;
        let noticed = noticed
            .iter()
            .map(|(job, notice)| crate::tools::process::notice(job, notice));
        let told = ended.iter().map(crate::tools::process::ending);
        Ok(Some(noticed.chain(told).collect::<Vec<_>>().join("\n\n")))
    }
}

/// What a model is offered beside the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offered {
    Tools,
    Nothing,
}
