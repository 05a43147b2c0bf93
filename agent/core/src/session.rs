//! The session: a machine that takes one event and answers with effects.
//!
//! Every call of a tool passes through [`Session::step`]. The effects borrow
//! the session, so no other event (a revocation, the end) can be taken while
//! a permit made by this one is still unspent.
//!
//! A turn goes: [`Event::Call`] with the actions a tool needs, answered by
//! permits, a question or a refusal. A command's effects are known only after
//! it ran on its view; then [`Event::Effects`] asks for them under the same
//! call. What a search comes upon in a directory it was let look at all of,
//! it looks at by [`Event::LooksFurther`]. [`Event::Finished`] closes a call
//! that had permits.
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
use alloc::vec::Vec;

use crate::approval::{CallId, Memory, Proposal, ProposalId, Question, QuestionId};
use crate::audit::{Chain, Entry, Head, Record};
use crate::authority::{DirId, Verb};
use crate::cap::CapTable;
use crate::digest::HashFn;
use crate::fault::{self, Fault};
use crate::flow::Flow;
use crate::grant::{AgentId, Grant, GrantId, Origin, Revoker};
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;
use crate::rules::{ConfiguredRule, Isolation, Rules};
use crate::time::Instant;

use self::agents::Family;
use self::answers::Keep;
use self::calls::Flight;

pub use self::effects::{Effect, Effects, Parts};
pub use self::event::{Attenuation, Call, Event, GrantSpec};
pub use self::explain::Explanation;
pub use crate::approval::Asking;

mod agents;
mod answers;
mod calls;
mod effects;
mod event;
mod explain;
mod grants;
mod looks;
mod proposals;
mod so_far;

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
    /// What becomes of what nothing held covers.
    pub asking: Asking,
    /// Where the ledger stands.
    pub ledger: Head,
    /// The time now.
    pub opened_at: Instant,
}

/// The machine.
#[derive(Debug)]
pub struct Session {
    now: Instant,
    hash: HashFn,
    asking: Asking,
    table: CapTable,
    rules: Rules,
    flow: Flow,
    ledger: Chain,
    revokers: BTreeMap<GrantId, Revoker>,
    flights: BTreeMap<CallId, Flight>,
    /// What still runs on grants that are to be reported as drained.
    drains: BTreeMap<GrantId, BTreeSet<CallId>>,
    questions: BTreeMap<QuestionId, Question>,
    proposals: BTreeMap<ProposalId, Proposal>,
    memory: Memory,
    family: Family,
    calls_made: u64,
    questions_made: u64,
    proposals_made: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

impl Session {
    /// Opens a session whose first agent may start others and, if there is a
    /// user, ask; it holds nothing else. Returns the first ledger records.
    #[must_use]
    pub fn open(config: SessionConfig) -> (Session, Vec<Record>) {
        let mut session = Session {
            now: config.opened_at,
            hash: config.hash,
            asking: config.asking,
            table: CapTable::new(),
            rules: Rules::new(config.id, config.isolation, config.protected),
            flow: Flow::default(),
            ledger: Chain::new(config.ledger, config.hash),
            revokers: BTreeMap::new(),
            flights: BTreeMap::new(),
            drains: BTreeMap::new(),
            questions: BTreeMap::new(),
            proposals: BTreeMap::new(),
            memory: Memory::default(),
            family: Family::default(),
            calls_made: 0,
            questions_made: 0,
            proposals_made: 0,
            state: State::Open,
        };
        let mut records = alloc::vec![
            session
                .ledger
                .append(session.now, &Entry::Opened { session: config.id })
        ];
        let verbs: &[Verb] = match config.asking {
            Asking::Prompt | Asking::ApproveAll => &[Verb::AgentSpawn, Verb::UserAsk],
            Asking::Refuse => &[Verb::AgentSpawn],
        };
        for verb in verbs {
            records.extend(session.own_right(*verb));
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

    /// What lies at `below` in a directory lies at `at` as well, seen from `/`: what is said of
    /// either name counts for both, the strictest first.
    ///
    /// # Errors
    /// `no-cap` for a directory of another session; `limit-reached`.
    pub fn also_lies(&mut self, dir: DirId, below: RelPath, at: RelPath) -> Result<(), Denial> {
        self.rules.also_lies(dir, below, at)
    }

    /// Makes the user be asked each time about `place` (seen from `/`) and what lies below it.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn guard_place(&mut self, place: RelPath) -> Result<(), Denial> {
        self.rules.guard_place(place)
    }

    /// Adds a rule of a person's: what it refuses or wants asked stands above every grant.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn add_rule(&mut self, rule: ConfiguredRule) -> Result<(), Denial> {
        self.rules.add_rule(rule)
    }

    /// How many calls were made so far; the next one has this number.
    #[must_use]
    pub const fn calls_made(&self) -> u64 {
        self.calls_made
    }

    /// What becomes of what nothing held covers.
    #[must_use]
    pub const fn asking(&self) -> Asking {
        self.asking
    }

    /// The answers the user wants repeated.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
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

    /// Does any call run?
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running() > 0
    }

    /// How many calls run, stopped ones included that are not reported finished.
    #[must_use]
    pub fn running(&self) -> usize {
        self.flights
            .values()
            .filter(|flight| flight.stage != calls::Stage::Starting)
            .count()
    }

    /// The grant with this number, if this session made one.
    #[must_use]
    pub fn grant_named(&self, number: u32) -> Option<GrantId> {
        self.table.get(GrantId(number)).map(Grant::id)
    }

    /// Every agent there ever was, the first one first.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> {
        self.table.agents()
    }

    /// What waits for somebody to accept it, oldest first.
    pub fn proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.proposals.values()
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
            Event::SteeredCall { call, by_data } => self.steered_call(call, &by_data),
            Event::Effects { call, actions } => self.effects(call, actions),
            Event::EffectsSoFar { call, actions } => self.effects_so_far(call, actions),
            Event::LooksFurther { call, actions } => self.looks_further(call, actions),
            Event::Answer(answer) => self.answer(answer, Keep::Forget),
            Event::AnswerAndRemember(answer) => self.answer(answer, Keep::Remember),
            Event::AnswerHolding { answer, wider } => self.answer(answer, Keep::Hold(wider)),
            Event::Forget(which) => self.forget(which),
            Event::SetAsking(asking) => self.set_asking(asking),
            Event::Grant(spec) => {
                let made = self.grant(&spec, Origin::User);
                self.granted(made)
            }
            Event::Lend(tool, spec) => {
                let made = self.grant(&spec, Origin::Loan(tool));
                self.granted(made)
            }
            Event::GrantFrom(upstream, spec) => {
                let made = self.grant(&spec, Origin::Upstream(upstream));
                self.granted(made)
            }
            Event::UpstreamLost(upstream) => self.upstream_lost(upstream),
            Event::Adopt {
                holder,
                standing,
                here,
            } => self.adopt(holder, &standing, &here),
            Event::Propose(spec) => self.propose(spec),
            Event::Accept {
                proposal,
                digest,
                by,
            } => self.accept(proposal, digest, by),
            Event::Decline(proposal) => self.decline(proposal),
            Event::Forward { by, from, holder } => {
                let made = self.forward(by, from, holder);
                self.granted(made)
            }
            Event::Attenuate(attenuation) => {
                let made = self.attenuate(&attenuation);
                self.granted(made)
            }
            Event::Revoke(grant) => self.revoke(grant),
            Event::RevokeAndDrain(grant) => self.revoke_and_drain(grant),
            Event::EndAgent(agent) => self.end_agent(agent),
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
            | Event::SteeredCall { .. }
            | Event::Effects { .. }
            | Event::EffectsSoFar { .. }
            | Event::LooksFurther { .. }
            | Event::Answer(_)
            | Event::AnswerAndRemember(_)
            | Event::AnswerHolding { .. }
            | Event::Forget(_)
            | Event::SetAsking(_)
            | Event::Grant(_)
            | Event::Lend(..)
            | Event::GrantFrom(..)
            | Event::UpstreamLost(_)
            | Event::Adopt { .. }
            | Event::Propose(_)
            | Event::Accept { .. }
            | Event::Decline(_)
            | Event::Attenuate(_)
            | Event::Forward { .. }
            | Event::Revoke(_)
            | Event::RevokeAndDrain(_)
            | Event::EndAgent(_)
            | Event::Spawn { .. } => self.refuse(None, Denial::new(DenialCode::SessionEnded, "")),
        }
    }

    fn tick(&mut self) -> Effects<'static> {
        let mut effects = Effects::none();
        self.close_stale_questions(&mut effects);
        self.close_stale_proposals(&mut effects);
        self.close_deadlines(&mut effects);
        effects
    }

    fn end(&mut self) -> Effects<'static> {
        let mut effects = Effects::none();
        if !fault::is(Fault::SessionEndKeepsGrants) {
            let ended = self.table.revoke_all();
            effects.push(Effect::Record(
                self.ledger
                    .append(self.now, &Entry::Revoked { grants: &ended }),
            ));
            if !fault::is(Fault::ForgetRevocation) {
                self.stop(&mut effects, DenialCode::Revoked, |_| true);
            }
            effects.push(Effect::Revoked(ended));
            self.questions.clear();
            self.proposals.clear();
            self.memory.clear();
            self.state = State::Ended;
        }
        effects.push(Effect::Record(self.ledger.append(self.now, &Entry::Ended)));
        effects
    }
}
