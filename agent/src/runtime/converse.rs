//! What a conversation with a model needs of the runtime: to let data leave
//! for the model, to remember what reached an agent, and to put a question of
//! the model's own to the user.

use std::os::fd::AsFd;

use hermitcrab_core::{
    action::Action,
    authority::{Cap, Name, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, GrantId},
    label::{Label, Readers, Source},
    outcome::{Denial, DenialCode, Outcome},
    session::{Call, Event, Session},
    tool::Tool,
};

use super::{
    Hands, Runtime, planned,
    result::Asked,
    standing::StoredGrants,
    turn::{Stop, Turn},
    words::{held_in_words, in_bytes},
};
use crate::{cancel::Cancel, digest::sha256, screen::on_one_line};

/// A question for the user that wants words, not a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inquiry {
    /// The question.
    pub question: String,
    /// What may be picked; `None` for an open question.
    pub choices: Option<Vec<String>>,
}

impl Runtime {
    /// Data from a source reached an agent's context. From now on its grants
    /// act alone only as far as they vouch for it.
    ///
    /// # Errors
    /// There is no such agent, or the ledger cannot be written.
    pub fn hear(&mut self, agent: AgentId, source: Source) -> Result<(), Denial> {
        let label = Label::new(source, Readers::Anyone);
        self.hear_label(agent, label)
    }

    /// What one agent knows reached another: what a child reports is no
    /// cleaner than what it has read.
    ///
    /// # Errors
    /// As for [`Runtime::hear`].
    pub fn hear_from(&mut self, agent: AgentId, from: AgentId) -> Result<(), Denial> {
        match self
            .machine
            .look(|session| session.flow().label(from).cloned())
        {
            Some(label) => self.hear_label(agent, label),
            None => Ok(()),
        }
    }

    /// Remembers that data from outside reaches an agent, and says whether it is on record: for
    /// whoever is about to have it come, on whichever thread.
    pub(super) fn heard_from_outside(
        &self,
        agent: AgentId,
    ) -> impl Fn() -> bool + Send + Sync + 'static {
        let machine = self.machine.clone();
        move || machine.hears_of_the_network(agent)
    }

    /// Whether an agent has read what neither its user nor its own model wrote.
    #[must_use]
    pub fn has_read(&self, agent: AgentId) -> bool {
        self.machine.look(|session| {
            let label = session.flow().label(agent);
            label.is_some_and(|label| {
                let mut sources = label.sources();
                sources.any(|source| !matches!(source, Source::User | Source::Model))
            })
        })
    }

    /// The session's number in its ledger, and how many calls it has made.
    #[must_use]
    pub fn calls_made(&self) -> (u64, u64) {
        let calls = self.machine.look(Session::calls_made);
        (self.config.session, calls)
    }

    pub(super) fn hear_label(&mut self, agent: AgentId, label: Label) -> Result<(), Denial> {
        let parts = self.step(Event::Heard { agent, label })?;
        match parts.denials.into_iter().next() {
            Some((_, denial)) => Err(denial),
            None => Ok(()),
        }
    }

    /// Lets `send` carry the conversation to a model, if the agent may.
    /// What it is handed is thrown when what the agent goes on ends meanwhile: what comes
    /// then counts for nothing, so `send` need not wait for it.
    ///
    /// # Errors
    /// The refusal.
    pub fn converse<R>(
        &mut self,
        by: AgentId,
        model: &str,
        sent: &[u8],
        send: impl FnOnce(&Cancel) -> R,
    ) -> Result<R, Denial> {
        let name = Name::parse(model)
            .map_err(|error| Denial::new(DenialCode::BadArguments, format_args!("{error}")))?;
        let object = Object::Model(name);
        let shown = format!(
            "send the conversation ({}) to the model `{model}`",
            in_bytes(sent.len())
        );
        self.guarded(
            by,
            Tool::Converse,
            (Verb::ModelSend, object, sha256(sent)),
            shown,
            &mut Vec::new(),
            |_, over| send(over),
        )
    }

    /// Puts a model's question to the user; `None` if nobody can be asked.
    ///
    /// # Errors
    /// The refusal, such as for an agent that may not ask.
    pub fn clarify(&mut self, by: AgentId, asking: &Inquiry) -> Result<Option<String>, Denial> {
        let action = (
            Verb::UserAsk,
            Object::Session,
            sha256(asking.question.as_bytes()),
        );
        let shown = asking.question.clone();
        self.guarded(
            by,
            Tool::Clarify,
            action,
            shown,
            &mut Vec::new(),
            |runtime, _| {
                runtime
                    .user
                    .clarify(&asking.question, asking.choices.as_deref())
            },
        )
    }

    /// The directory the session works in.
    #[must_use]
    pub fn workspace(&self) -> &std::path::Path {
        &self.config.workspace
    }

    /// Whether that is the very directory that is open as `dir`.
    #[must_use]
    pub fn works_in(&self, dir: impl AsFd) -> bool {
        let found = self.mounts.locate(&self.config.workspace);
        let mount = found.and_then(|(id, _)| self.mounts.get(id));
        mount.is_some_and(|mount| mount.cap.is(dir).unwrap_or(false))
    }

    /// The time on the runtime's own clock.
    #[must_use]
    pub fn now(&self) -> hermitcrab_core::time::Instant {
        self.clock.now()
    }

    /// The grants that let an agent start others.
    #[must_use]
    pub fn spawning_grants(&self, agent: AgentId) -> Vec<GrantId> {
        self.grants_only(agent, |cap| cap.verb() == Verb::AgentSpawn)
    }

    /// The grants that let an agent put questions to the user.
    #[must_use]
    pub fn asking_grants(&self, agent: AgentId) -> Vec<GrantId> {
        self.grants_only(agent, |cap| cap.verb() == Verb::UserAsk)
    }

    /// The grants an agent can use now, in words a model can name them by.
    #[must_use]
    pub fn grants_in_words(&self, agent: AgentId) -> Vec<(GrantId, String)> {
        let now = self.clock.now();
        let named = |cap: &Cap| {
            let on = match cap.object() {
                Object::Dir { dir, below, extent } => {
                    let place = self.mounts.absolute(*dir, below).unwrap_or_default();
                    // A name may hold lines of its own, and is one of many here.
                    let place = on_one_line(&place.display().to_string());
                    format!("{}{place}", extent.held_as())
                }
                object => object.to_string(),
            };
            (cap.verb(), on)
        };
        self.machine.look(|session| {
            session
                .held_by(agent)
                .filter(|grant| session.table().usable(grant.id(), now).is_ok())
                .map(|grant| {
                    let caps: Vec<(Verb, String)> =
                        grant.authority().caps().iter().map(named).collect();
                    (grant.id(), held_in_words(&caps, " on ").join(", "))
                })
                .collect()
        })
    }

    /// The grants that let an agent look, read, run on a copy and talk to its
    /// model, and nothing else.
    #[must_use]
    pub fn harmless_grants(&self, agent: AgentId) -> Vec<GrantId> {
        self.grants_only(agent, is_harmless)
    }

    /// The grants that hold, of which every capability is of this kind.
    fn grants_only(&self, agent: AgentId, is_meant: impl Fn(&Cap) -> bool) -> Vec<GrantId> {
        let now = self.clock.now();
        self.machine.look(|session| {
            session
                .held_by(agent)
                .filter(|grant| session.table().usable(grant.id(), now).is_ok())
                .filter(|grant| grant.authority().caps().iter().all(&is_meant))
                .map(hermitcrab_core::grant::Grant::id)
                .collect()
        })
    }

    /// One action of the program's own, from the decision to the outcome.
    pub(super) fn guarded<R>(
        &mut self,
        by: AgentId,
        tool: Tool,
        (verb, object, digest): (Verb, Object, Digest),
        shown: String,
        questions: &mut Vec<Asked>,
        act: impl FnOnce(&mut Self, &Cancel) -> R,
    ) -> Result<R, Denial> {
        let action = Action::new(verb, object, digest)
            .map_err(|error| Denial::new(DenialCode::BadArguments, format_args!("{error}")))?;
        let call = Call {
            by,
            tool,
            actions: vec![action],
        };
        let event = planned::told(self.steering.as_ref(), call);
        let (call, ()) = self
            .own_turn(questions)
            .begin(
                event,
                |_| shown,
                |permits| {
                    for permit in permits {
                        let _spent = permit.spend();
                    }
                },
            )
            .map_err(refusal)?;
        // Thrown when what it goes on was ended.
        let over = Cancel::default();
        let kill = over.clone();
        // Whoever was stopped by now finds it said.
        let _stopped = self.machine.runs(call, Box::new(move || kill.throw()));
        self.look_after_what_runs();
        let done = act(self, &over);
        // What came of it counts for nothing if what it went on was ended meanwhile.
        let (outcome, done) = match self.machine.why_stopped(call) {
            None => (Outcome::Done(Digest::NONE), Ok(done)),
            // All grants end with the session, and that is what is to be told then.
            Some(_) if self.machine.look(Session::has_ended) => {
                let ended = Denial::new(DenialCode::SessionEnded, call);
                (Outcome::Stopped, Err(ended))
            }
            Some(code) => (Outcome::Stopped, Err(Denial::new(code, call))),
        };
        self.own_turn(questions)
            .finish(call, outcome)
            .map_err(refusal)?;
        done
    }

    fn own_turn<'t>(&'t mut self, questions: &'t mut Vec<Asked>) -> Turn<'t> {
        Turn {
            machine: &self.machine,
            afoot: &self.afoot,
            kept: StoredGrants::of(&self.adopted, self.desk.as_ref(), self.store.as_mut()),
            note: self
                .steering
                .as_ref()
                .map(|steering| steering.note.as_str()),
            user: &mut *self.user,
            questions,
        }
    }
}

impl Hands<'_> {
    /// Puts a question to the user; `None` if nobody can be asked.
    ///
    /// # Errors
    /// As for [`Runtime::clarify`].
    pub fn clarify(&mut self, inquiry: &Inquiry) -> Result<Option<String>, Denial> {
        self.runtime.clarify(self.by, inquiry)
    }
}

/// Does it let an agent look, read, run on a copy or talk to its model, and no more?
fn is_harmless(cap: &Cap) -> bool {
    match cap.verb() {
        Verb::FsList | Verb::FsRead | Verb::ModelSend => true,
        Verb::ProcExec => matches!(
            cap.object(),
            Object::Program(Program::AnyInView | Program::InView(_))
        ),
        Verb::FsCreate
        | Verb::FsModify
        | Verb::FsDelete
        | Verb::FsMount
        | Verb::NetConnect
        | Verb::NetListen
        | Verb::SecretUse
        // What was said elsewhere is more than a child's task tells it.
        | Verb::SessionRead
        | Verb::UserAsk
        | Verb::AgentSpawn
        | Verb::ConfigChange
        | Verb::Extension => false,
    }
}

fn refusal(stop: Stop) -> Denial {
    match stop {
        Stop::Refused { denial, .. } => denial,
        Stop::Missing => Denial::new(DenialCode::UnknownCall, ""),
        Stop::Io(why) | Stop::System(_, why) | Stop::Broken(why) => {
            Denial::new(DenialCode::LedgerUnwritable, why)
        }
    }
}
