//! The session: a machine that takes one event and answers with effects.
//!
//! Every call of a tool passes through [`Session::step`]. The effects borrow
//! the session, so no other event (a revocation, the end) can be taken while
//! a permit made by this one is still unspent.
//!
//! A turn goes: [`Event::Call`] with the actions a tool needs, answered by
//! permits, a question or a refusal. A command's effects are known only after
//! it ran on its view; then [`Event::Effects`] asks for them under the same
//! call. [`Event::Finished`] closes a call that had permits.
//!
//! A child that is stepped while a permit lives does not compile:
//! ```compile_fail
//! # use hermitcrab_core::{session::{Event, Session}, time::Instant};
//! fn slip_in(session: &mut Session) {
//!     let effects = session.step(Instant::BOOT, Event::Tick);
//!     session.step(Instant::BOOT, Event::End);
//!     drop(effects);
//! }
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::action::Action;
use crate::approval::{Answer, CallId, Question, QuestionId, Scope};
use crate::audit::{Chain, Entry, Head, Record};
use crate::authority::{Authority, Cap, DirId, Object, Verb};
use crate::cap::CapTable;
use crate::digest::{Digest, HashFn};
use crate::fault::{self, Fault};
use crate::flow::Flow;
use crate::grant::{AgentId, Grant, GrantId, Lifetime, Limits, Revoker, Uses};
use crate::label::Label;
use crate::limits::{CALLS_IN_FLIGHT_MAX, GRANT_LIFETIME_MAX, QUESTION_LIFETIME};
use crate::monitor::{self, Decision, Gap, Request};
use crate::outcome::{Denial, DenialCode, Outcome, bounded};
use crate::path::RelPath;
use crate::rules::{Isolation, Rules, Sensitivity};
use crate::time::Instant;
use crate::tool::Tool;

pub use self::effects::{Effect, Effects, Parts};

mod effects;

/// Whether the session's first agent may ask its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asking {
    /// Somebody is there: what is not held may be asked for.
    Prompt,
    /// Nobody is there: what is not held is refused.
    Refuse,
}

/// What a session starts with.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// A number no other session has; handles of another session name nothing here.
    pub id: u64,
    /// SHA-256.
    pub hash: HashFn,
    /// What the probe of the sandbox proved.
    pub isolation: Isolation,
    /// The agent's own configuration, ledger and store, seen from `/`.
    pub protected: Vec<RelPath>,
    /// Whether there is a user to ask.
    pub asking: Asking,
    /// Where the ledger stands.
    pub ledger: Head,
    /// The time now.
    pub opened_at: Instant,
}

/// Something that happened outside, told to the session.
#[derive(Debug)]
pub enum Event {
    /// An agent calls a tool.
    Call(Call),
    /// A running call's command did this to its view: may it stand?
    Effects {
        /// The call.
        call: CallId,
        /// The change set, one action for each change.
        actions: Vec<Action>,
    },
    /// The user answered.
    Answer(Answer),
    /// The user grants something.
    Grant(GrantSpec),
    /// An agent makes a weaker grant from one it holds.
    Attenuate(Attenuation),
    /// The granter ends a grant, and with it everything derived from it.
    Revoke(GrantId),
    /// An agent starts another, passing on these grants and nothing else.
    Spawn {
        /// Who starts it.
        parent: AgentId,
        /// What it gets, by name.
        forward: Vec<GrantId>,
    },
    /// A call that had permits is over.
    Finished {
        /// The call.
        call: CallId,
        /// What came of it.
        outcome: Outcome,
    },
    /// Data reached an agent's context: what a tool gave its model.
    Heard {
        /// The agent.
        agent: AgentId,
        /// Where the data is from and who may see it.
        label: Label,
    },
    /// The edge puts a line of its own into the ledger.
    Note(String),
    /// Time passed; questions may have gone stale.
    Tick,
    /// The session ends, and with it every grant.
    End,
}

/// One tool call.
#[derive(Debug)]
pub struct Call {
    /// Who calls.
    pub by: AgentId,
    /// Which tool.
    pub tool: Tool,
    /// Every effect it needs before it can run.
    pub actions: Vec<Action>,
}

/// What the user grants.
#[derive(Clone, Debug)]
pub struct GrantSpec {
    /// To whom.
    pub holder: AgentId,
    /// What.
    pub authority: Authority,
    /// How often.
    pub uses: Uses,
    /// How long.
    pub lifetime: Lifetime,
}

/// What an agent passes on.
#[derive(Clone, Debug)]
pub struct Attenuation {
    /// Who passes it on.
    pub by: AgentId,
    /// Which of its grants it comes from.
    pub from: GrantId,
    /// To whom; an agent may narrow a grant for itself.
    pub holder: AgentId,
    /// What, at most what `from` allows.
    pub authority: Authority,
    /// How often.
    pub uses: Uses,
    /// How long, at most as long as `from`.
    pub lifetime: Lifetime,
}

/// The machine.
#[derive(Debug)]
pub struct Session {
    now: Instant,
    hash: HashFn,
    table: CapTable,
    rules: Rules,
    flow: Flow,
    ledger: Chain,
    revokers: BTreeMap<GrantId, Revoker>,
    flights: BTreeMap<CallId, Flight>,
    questions: BTreeMap<QuestionId, Question>,
    calls_made: u64,
    questions_made: u64,
    state: State,
}

/// Why a turn of several steps failed, and what it had put into the ledger by then.
#[derive(Debug)]
struct Failed {
    records: Vec<Record>,
    denial: Denial,
}

impl From<Denial> for Failed {
    fn from(denial: Denial) -> Failed {
        Failed {
            records: Vec::new(),
            denial,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

/// A call between its start and its end.
#[derive(Debug)]
struct Flight {
    by: AgentId,
    tool: Tool,
    /// The grants its permits came from.
    grants: BTreeSet<GrantId>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Asked for, no permit made yet.
    Starting,
    /// Permits were made.
    Running,
    /// A grant it ran on was revoked; its effects may not stand.
    Stopped,
}

impl Session {
    /// Opens a session whose first agent may start others and, if there is a
    /// user, ask; it holds nothing else. Returns the first ledger records.
    #[must_use]
    pub fn open(config: SessionConfig) -> (Session, Vec<Record>) {
        let mut session = Session {
            now: config.opened_at,
            hash: config.hash,
            table: CapTable::new(),
            rules: Rules::new(config.id, config.isolation, config.protected),
            flow: Flow::default(),
            ledger: Chain::new(config.ledger, config.hash),
            revokers: BTreeMap::new(),
            flights: BTreeMap::new(),
            questions: BTreeMap::new(),
            calls_made: 0,
            questions_made: 0,
            state: State::Open,
        };
        let mut records = alloc::vec![
            session
                .ledger
                .append(session.now, &Entry::Opened { session: config.id })
        ];
        let verbs: &[Verb] = match config.asking {
            Asking::Prompt => &[Verb::AgentSpawn, Verb::UserAsk],
            Asking::Refuse => &[Verb::AgentSpawn],
        };
        for verb in verbs {
            // If one cannot be made, the agent simply does not hold it.
            let made = Cap::new(*verb, Object::Session).ok().map(|cap| {
                session.grant(
                    &GrantSpec {
                        holder: AgentId::FIRST,
                        authority: Authority::of(cap),
                        uses: Uses::Uncounted,
                        lifetime: Lifetime::For(GRANT_LIFETIME_MAX),
                    },
                    "session",
                )
            });
            if let Some(Ok((_, record))) = made {
                records.push(record);
            }
        }
        (session, records)
    }

    /// Makes a directory known that the edge holds open, at `location` seen from `/`.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn add_dir(&mut self, location: RelPath) -> Result<DirId, Denial> {
        self.rules.add_dir(location)
    }

    /// Makes the user be asked each time about `place` (seen from `/`) and what lies below it.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn guard_place(&mut self, place: RelPath) -> Result<(), Denial> {
        self.rules.guard_place(place)
    }

    /// The rules above every grant.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Everything held.
    #[must_use]
    pub const fn table(&self) -> &CapTable {
        &self.table
    }

    /// What reached its agents, and what their grants vouch for.
    #[must_use]
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The grants an agent holds, oldest first, dead ones included.
    pub fn held_by(&self, agent: AgentId) -> impl DoubleEndedIterator<Item = &Grant> {
        self.table.held_by(agent)
    }

    /// Where the ledger stands.
    #[must_use]
    pub const fn ledger(&self) -> Head {
        self.ledger.head()
    }

    /// The latest time it was told.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Is it over?
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Takes one event at time `at` and says what is to happen.
    ///
    /// Time never runs backwards here: an earlier `at` counts as the latest.
    pub fn step(&mut self, at: Instant, event: Event) -> Effects<'_> {
        self.now = self.now.max(at);
        if self.state == State::Ended {
            return self.step_after_end(event);
        }
        match event {
            Event::Call(call) => self.call(call),
            Event::Effects { call, actions } => self.effects(call, actions),
            Event::Answer(answer) => self.answer(answer),
            Event::Grant(spec) => {
                let made = self.grant(&spec, "user");
                self.granted(made)
            }
            Event::Attenuate(attenuation) => {
                let made = self.attenuate(&attenuation);
                self.granted(made)
            }
            Event::Revoke(grant) => self.revoke(grant),
            Event::Spawn { parent, forward } => self.spawn(parent, &forward),
            Event::Finished { call, outcome } => self.finished(call, &outcome),
            Event::Heard { agent, label } => self.heard(agent, &label),
            Event::Note(text) => self.note(&text),
            Event::Tick => self.tick(),
            Event::End => self.end(),
        }
    }

    /// After the end only what reports the past is taken.
    fn step_after_end(&mut self, event: Event) -> Effects<'_> {
        match event {
            Event::Finished { call, outcome } => self.finished(call, &outcome),
            Event::Note(text) => self.note(&text),
            Event::Heard { .. } | Event::Tick | Event::End => Effects::none(),
            Event::Call(_)
            | Event::Effects { .. }
            | Event::Answer(_)
            | Event::Grant(_)
            | Event::Attenuate(_)
            | Event::Revoke(_)
            | Event::Spawn { .. } => self.refuse(None, Denial::new(DenialCode::SessionEnded, "")),
        }
    }

    fn call(&mut self, call: Call) -> Effects<'_> {
        if self.flights.len() >= CALLS_IN_FLIGHT_MAX {
            return self.refuse(
                None,
                Denial::new(DenialCode::LimitReached, "calls at one time"),
            );
        }
        let id = CallId(self.calls_made);
        self.calls_made = self.calls_made.saturating_add(1);
        self.flights.insert(
            id,
            Flight {
                by: call.by,
                tool: call.tool,
                grants: BTreeSet::new(),
                stage: Stage::Starting,
            },
        );
        self.decide(id, call.actions, call.tool.verbs(), None)
    }

    fn effects(&mut self, call: CallId, actions: Vec<Action>) -> Effects<'_> {
        match self
            .flights
            .get(&call)
            .map(|flight| (flight.stage, flight.tool))
        {
            Some((Stage::Running, tool)) => self.decide(call, actions, tool.effect_verbs(), None),
            Some((Stage::Stopped, _)) => {
                self.refuse(Some(call), Denial::new(DenialCode::Revoked, call))
            }
            Some((Stage::Starting, _)) | None => {
                self.refuse(None, Denial::new(DenialCode::UnknownCall, call))
            }
        }
    }

    /// The one way from actions to permits.
    fn decide(
        &mut self,
        id: CallId,
        actions: Vec<Action>,
        verbs: &[Verb],
        consent: Option<GrantId>,
    ) -> Effects<'_> {
        let Some(flight) = self.flights.get(&id) else {
            return self.refuse(None, Denial::new(DenialCode::UnknownCall, id));
        };
        let (by, tool) = (flight.by, flight.tool);
        if let Some(action) = actions
            .iter()
            .find(|action| !verbs.contains(&action.verb()))
        {
            let denial = Denial::new(
                DenialCode::EffectNotCovered,
                format_args!("{tool}: {}", action.cap()),
            );
            return self.refuse(Some(id), denial);
        }
        let Session {
            now,
            hash,
            table,
            rules,
            flow,
            ledger,
            flights,
            questions,
            questions_made,
            ..
        } = self;
        let request = Request::new(id, by, tool, &actions).within(flow);
        let request = consent.map_or(request, |grant| request.after_consent(grant));
        match monitor::authorize(table, rules, &request, *now) {
            Decision::Permit(permits) => {
                let mut grants: Vec<GrantId> = permits.iter().map(monitor::Permit::grant).collect();
                grants.sort_unstable();
                grants.dedup();
                let record = ledger.append(
                    *now,
                    &Entry::Intent {
                        call: id,
                        by,
                        tool,
                        actions: &actions,
                        grants: &grants,
                    },
                );
                if let Some(flight) = flights.get_mut(&id) {
                    flight.stage = Stage::Running;
                    flight.grants.extend(grants);
                }
                let mut effects = Effects::for_call(id);
                effects.push(Effect::Record(record));
                effects.extend(permits.into_iter().map(Effect::Execute));
                effects
            }
            Decision::Ask(gap) => {
                let question_id = QuestionId(*questions_made);
                *questions_made = questions_made.saturating_add(1);
                let question = new_question(
                    question_id,
                    *hash,
                    rules,
                    &request,
                    gap,
                    actions.clone(),
                    *now,
                );
                let record = ledger.append(
                    *now,
                    &Entry::Asked {
                        question: question_id,
                        call: id,
                        by,
                        because: question.because,
                        digest: question.digest,
                    },
                );
                questions.insert(question_id, question.clone());
                let mut effects = Effects::for_call(id);
                effects.push(Effect::Record(record));
                effects.push(Effect::Ask(question));
                effects
            }
            Decision::Deny(denial) => refusal(ledger, flights, *now, Some(id), denial),
        }
    }

    fn answer(&mut self, answer: Answer) -> Effects<'_> {
        let Some(question) = self.questions.remove(&answer.question) else {
            return self.refuse(
                None,
                Denial::new(DenialCode::UnknownAnswer, answer.question),
            );
        };
        let call = question.call;
        let record = self.ledger.append(
            self.now,
            &Entry::Answered {
                question: question.id,
                reply: answer.reply.as_str(),
            },
        );
        let refuse = |code: DenialCode| Denial::new(code, question.id).because(question.because);
        let verdict = if self.now > question.open_until {
            Err(refuse(DenialCode::NoAnswer))
        } else if answer.digest != question.digest && !fault::is(Fault::AnswerNotBoundToDigest) {
            Err(refuse(DenialCode::ChangedSinceShown))
        } else {
            answer.reply.verdict().map_err(refuse)
        };
        let scope = match verdict {
            Ok(scope) => scope.min(question.widest),
            Err(denial) => return self.refuse(Some(call), denial).after(record),
        };
        let (grant, granted) = match self.grant_for(&question, scope) {
            Ok(made) => made,
            Err(denial) => return self.refuse(Some(call), denial).after(record),
        };
        let verbs = self
            .flights
            .get(&call)
            .map_or(&[][..], |flight| match flight.stage {
                Stage::Starting => flight.tool.verbs(),
                Stage::Running => flight.tool.effect_verbs(),
                Stage::Stopped => &[],
            });
        let stopped = self
            .flights
            .get(&call)
            .is_some_and(|flight| flight.stage == Stage::Stopped);
        let effects = if stopped {
            self.refuse(Some(call), Denial::new(DenialCode::Revoked, call))
        } else {
            self.decide(call, question.actions, verbs, Some(grant))
        };
        effects.after(granted).after(record)
    }

    /// The grant a yes makes: the uncovered effects as shown, and no more.
    fn grant_for(
        &mut self,
        question: &Question,
        scope: Scope,
    ) -> Result<(GrantId, Record), Denial> {
        let count = question.uncovered.len();
        let caps = question.uncovered().map(|action| match action.object() {
            Object::Dir { dir, .. }
                if fault::is(Fault::ApproveWholeClass) && scope != Scope::Once =>
            {
                let object = Object::Dir {
                    dir: *dir,
                    below: RelPath::root(),
                };
                Cap::new(action.verb(), object).unwrap_or_else(|_| action.cap().clone())
            }
            _ => action.cap().clone(),
        });
        let authority = Authority::from_caps(caps)?;
        let (uses, lifetime) = scope.limits(count);
        self.grant(
            &GrantSpec {
                holder: question.by,
                authority,
                uses,
                lifetime,
            },
            scope.as_str(),
        )
    }

    fn grant(&mut self, spec: &GrantSpec, origin: &str) -> Result<(GrantId, Record), Denial> {
        let limits = Limits::starting(self.now, spec.uses, spec.lifetime);
        let revoker = self
            .table
            .grant(spec.holder, spec.authority.clone(), limits)?;
        self.flow.made(revoker.grant(), spec.holder);
        Ok(self.keep(revoker, origin))
    }

    fn attenuate(&mut self, wanted: &Attenuation) -> Result<(GrantId, Record), Denial> {
        let limits = Limits::starting(self.now, wanted.uses, wanted.lifetime);
        let authority = wanted.authority.clone();
        let revoker = self.table.attenuate(
            wanted.by,
            wanted.from,
            wanted.holder,
            authority,
            limits,
            self.now,
        )?;
        Ok(self.keep(revoker, "agent"))
    }

    fn keep(&mut self, revoker: Revoker, origin: &str) -> (GrantId, Record) {
        let id = revoker.grant();
        self.revokers.insert(id, revoker);
        let record = match self.table.get(id) {
            Some(grant) => self.ledger.append(
                self.now,
                &Entry::Granted {
                    grant: id,
                    from: grant.parent(),
                    holder: grant.holder(),
                    authority: grant.authority(),
                    limits: grant.limits(),
                    origin,
                },
            ),
            None => self.ledger.append(
                self.now,
                &Entry::Note {
                    text: "a grant was lost",
                },
            ),
        };
        (id, record)
    }

    fn granted(&mut self, made: Result<(GrantId, Record), Denial>) -> Effects<'_> {
        match made {
            Ok((grant, record)) => {
                let mut effects = Effects::none();
                effects.push(Effect::Record(record));
                effects.push(Effect::Granted(grant));
                effects
            }
            Err(denial) => self.refuse(None, denial),
        }
    }

    fn revoke(&mut self, grant: GrantId) -> Effects<'_> {
        let Some(revoker) = self.revokers.get(&grant) else {
            return self.refuse(None, Denial::new(DenialCode::UnknownGrant, grant));
        };
        let ended = self.table.revoke(revoker);
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger
                .append(self.now, &Entry::Revoked { grants: &ended }),
        ));
        self.stop(&mut effects, |flight| {
            ended.iter().any(|id| flight.grants.contains(id))
        });
        effects.push(Effect::Revoked(ended));
        effects
    }

    /// Stops the running calls that `reached` picks out.
    fn stop(&mut self, effects: &mut Effects<'_>, reached: impl Fn(&Flight) -> bool) {
        if fault::is(Fault::ForgetRevocation) {
            return;
        }
        for (call, flight) in &mut self.flights {
            if flight.stage == Stage::Running && reached(flight) {
                flight.stage = Stage::Stopped;
                effects.push(Effect::Record(
                    self.ledger
                        .append(self.now, &Entry::Stopped { call: *call }),
                ));
                effects.push(Effect::Stop(*call));
            }
        }
    }

    fn spawn(&mut self, parent: AgentId, forward: &[GrantId]) -> Effects<'_> {
        match self.try_spawn(parent, forward) {
            Ok((child, grants, records)) => {
                let mut effects = Effects::none();
                effects.extend(records.into_iter().map(Effect::Record));
                let spawned = Entry::Spawned {
                    parent,
                    child,
                    grants: &grants,
                };
                effects.push(Effect::Record(self.ledger.append(self.now, &spawned)));
                effects.push(Effect::Spawned { child, grants });
                effects
            }
            Err(Failed { records, denial }) => {
                let mut effects = Effects::none();
                effects.extend(records.into_iter().map(Effect::Record));
                effects.append(self.refuse(None, denial));
                effects
            }
        }
    }

    fn try_spawn(
        &mut self,
        parent: AgentId,
        forward: &[GrantId],
    ) -> Result<(AgentId, Vec<GrantId>, Vec<Record>), Failed> {
        if !self.table.knows(parent) {
            return Err(Denial::new(DenialCode::UnknownAgent, parent).into());
        }
        let mut forward: Vec<GrantId> = forward.to_vec();
        if fault::is(Fault::LeakGrantsToChild) {
            let usable = self
                .table
                .held_by(parent)
                .map(Grant::id)
                .filter(|id| self.table.usable(*id, self.now).is_ok());
            forward.extend(usable.collect::<Vec<GrantId>>());
        }
        forward.sort_unstable();
        forward.dedup();
        // Everything is checked before the child exists, so that a refusal leaves nothing behind.
        for grant in &forward {
            match self.table.get(*grant) {
                None => return Err(Denial::new(DenialCode::UnknownGrant, grant).into()),
                Some(held) if held.holder() != parent => {
                    return Err(Denial::new(DenialCode::NoCap, grant).into());
                }
                Some(_) => self
                    .table
                    .usable(*grant, self.now)
                    .map_err(|code| Denial::new(code, grant))?,
            }
        }
        let cap = Cap::new(Verb::AgentSpawn, Object::Session)
            .map_err(|_| Denial::new(DenialCode::NoCap, parent))?;
        let by_right_of = self
            .table
            .choose(parent, &cap, self.now)
            .map_err(|code| Denial::new(code, &cap))?;
        let child = self.table.add_agent()?;
        self.flow.inherit(parent, child);
        self.table.charge(by_right_of);
        let mut grants = Vec::with_capacity(forward.len());
        let mut records = Vec::with_capacity(forward.len());
        for grant in forward {
            // It can still fail: the right to spawn may have been the last use
            // of what is forwarded, or a limit is reached.
            match self.table.forward(parent, grant, child, self.now) {
                Ok(revoker) => {
                    let (id, record) = self.keep(revoker, "agent");
                    grants.push(id);
                    records.push(record);
                }
                Err(denial) => {
                    records.extend(self.take_back(&grants));
                    return Err(Failed { records, denial });
                }
            }
        }
        Ok((child, grants, records))
    }

    /// Ends grants that were made for nothing.
    fn take_back(&mut self, grants: &[GrantId]) -> Option<Record> {
        let mut ended = Vec::new();
        for grant in grants {
            if let Some(revoker) = self.revokers.get(grant) {
                ended.extend(self.table.revoke(revoker));
            }
        }
        (!ended.is_empty()).then(|| {
            self.ledger
                .append(self.now, &Entry::Revoked { grants: &ended })
        })
    }

    fn finished(&mut self, call: CallId, outcome: &Outcome) -> Effects<'_> {
        match self.flights.remove(&call) {
            Some(_) => {
                self.questions.retain(|_, question| question.call != call);
                let record = self
                    .ledger
                    .append(self.now, &Entry::Outcome { call, outcome });
                let mut effects = Effects::for_call(call);
                effects.push(Effect::Record(record));
                effects
            }
            None => self.refuse(None, Denial::new(DenialCode::UnknownCall, call)),
        }
    }

    fn heard(&mut self, agent: AgentId, label: &Label) -> Effects<'_> {
        if !self.table.knows(agent) {
            return self.refuse(None, Denial::new(DenialCode::UnknownAgent, agent));
        }
        if !self.flow.hear(agent, label) {
            return Effects::none();
        }
        let mut text = String::from("heard by ");
        let _ = write!(text, "{agent}:");
        for source in label.sources() {
            let _ = write!(text, " {}", source.as_str());
        }
        self.note(&text)
    }

    fn note(&mut self, text: &str) -> Effects<'_> {
        let text = bounded(text);
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger.append(self.now, &Entry::Note { text: &text }),
        ));
        effects
    }

    /// Silence is an answer, too.
    fn tick(&mut self) -> Effects<'_> {
        let now = self.now;
        let stale: Vec<Question> = self
            .questions
            .extract_if(.., |_, question| now > question.open_until)
            .map(|(_, question)| question)
            .collect();
        let mut effects = Effects::none();
        for question in stale {
            let denial = Denial::new(DenialCode::NoAnswer, question.id).because(question.because);
            effects.append(self.refuse(Some(question.call), denial));
        }
        effects
    }

    fn end(&mut self) -> Effects<'_> {
        let mut effects = Effects::none();
        if !fault::is(Fault::SessionEndKeepsGrants) {
            let ended = self.table.revoke_all();
            effects.push(Effect::Record(
                self.ledger
                    .append(self.now, &Entry::Revoked { grants: &ended }),
            ));
            self.stop(&mut effects, |_| true);
            effects.push(Effect::Revoked(ended));
            self.questions.clear();
            self.state = State::Ended;
        }
        effects.push(Effect::Record(self.ledger.append(self.now, &Entry::Ended)));
        effects
    }

    fn refuse(&mut self, call: Option<CallId>, denial: Denial) -> Effects<'_> {
        refusal(&mut self.ledger, &mut self.flights, self.now, call, denial)
    }
}

/// Records a refusal. A call that never ran is over with it; one that ran is
/// still to be reported as finished.
fn refusal<'turn>(
    ledger: &mut Chain,
    flights: &mut BTreeMap<CallId, Flight>,
    now: Instant,
    call: Option<CallId>,
    denial: Denial,
) -> Effects<'turn> {
    let record = ledger.append(
        now,
        &Entry::Refused {
            call,
            code: denial.code(),
            because: denial.cause(),
            about: denial.about(),
        },
    );
    let mut effects = match call {
        Some(call) => {
            if flights
                .get(&call)
                .is_some_and(|flight| flight.stage == Stage::Starting)
            {
                flights.remove(&call);
            }
            Effects::for_call(call)
        }
        None => Effects::none(),
    };
    effects.push(Effect::Record(record));
    effects.push(Effect::Refuse { call, denial });
    effects
}

fn new_question(
    id: QuestionId,
    hash: HashFn,
    rules: &Rules,
    request: &Request<'_>,
    gap: Gap,
    actions: Vec<Action>,
    now: Instant,
) -> Question {
    let sensitive =
        |action: &Action| rules.sensitivity(request.tool(), action) != Sensitivity::Plain;
    let mut question = Question {
        id,
        call: request.call(),
        by: request.by(),
        tool: request.tool(),
        because: gap.because,
        widest: if actions.iter().any(sensitive) {
            Scope::Once
        } else {
            Scope::Always
        },
        actions,
        uncovered: gap.uncovered,
        digest: Digest::NONE,
        open_until: now.after(QUESTION_LIFETIME),
    };
    question.digest = Question::digest_of(hash, &question);
    question
}
