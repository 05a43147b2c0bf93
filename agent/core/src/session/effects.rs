//! What a turn of the session asks the edge to do.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::Session;
use crate::approval::{CallId, Proposal, Question};
use crate::audit::Record;
use crate::grant::{AgentId, GrantId};
use crate::monitor::Permit;
use crate::outcome::Denial;

/// One thing for the edge to do. Records come before what they announce.
#[derive(Debug)]
pub enum Effect<'turn> {
    /// Write this to the ledger before anything that follows it here.
    Record(Record),
    /// Have this effect; permits come in the order of the actions asked for.
    Execute(Permit<'turn>),
    /// Put this to the user and come back with an answer.
    Ask(Question),
    /// Report this refusal; nothing of the request may happen.
    Refuse {
        /// The call refused, if there was one.
        call: Option<CallId>,
        /// Why.
        denial: Denial,
    },
    /// A grant was made.
    Granted(GrantId),
    /// These grants were ended.
    Revoked(Vec<GrantId>),
    /// An agent was made, holding these grants.
    Spawned {
        /// The new agent.
        child: AgentId,
        /// All it holds, in the order of the grants they came from.
        grants: Vec<GrantId>,
    },
    /// These grants have outlived their deadline.
    Expired(Vec<GrantId>),
    /// Nobody is left who could end these before their deadline.
    Orphaned(Vec<GrantId>),
    /// Nothing runs on this grant or on one derived from it any more.
    Drained(GrantId),
    /// These agents ended.
    Ended(Vec<AgentId>),
    /// Show this to somebody who may accept it.
    Propose(Proposal),
    /// Kill what this call runs and throw its changes away.
    Stop(CallId),
}

/// All effects of a turn, in order. Borrows the session until they are done.
#[derive(Debug)]
#[must_use = "effects hold permits, questions and records that must be acted on"]
pub struct Effects<'turn> {
    call: Option<CallId>,
    list: Vec<Effect<'turn>>,
    session: PhantomData<&'turn mut Session>,
}

/// The effects of a turn, sorted by kind.
#[derive(Debug, Default)]
pub struct Parts<'turn> {
    /// The call this is about.
    pub call: Option<CallId>,
    /// To be written to the ledger first, in order.
    pub records: Vec<Record>,
    /// To be spent, in the order of the actions.
    pub permits: Vec<Permit<'turn>>,
    /// To be put to the user.
    pub question: Option<Question>,
    /// To be reported. A tick can refuse several calls.
    pub denials: Vec<(Option<CallId>, Denial)>,
    /// A grant that was made.
    pub granted: Option<GrantId>,
    /// Grants that were ended.
    pub revoked: Vec<GrantId>,
    /// An agent that was made, with its grants.
    pub spawned: Option<(AgentId, Vec<GrantId>)>,
    /// Grants that outlived their deadline.
    pub expired: Vec<GrantId>,
    /// Grants nobody is left to end early.
    pub orphaned: Vec<GrantId>,
    /// Grants on which nothing runs any more.
    pub drained: Vec<GrantId>,
    /// Agents that ended.
    pub ended: Vec<AgentId>,
    /// To be shown to somebody who may accept it.
    pub proposal: Option<Proposal>,
    /// Calls to be killed.
    pub stopped: Vec<CallId>,
}

impl Parts<'_> {
    /// The same, its permits given up unspent, so that it outlives the turn.
    #[must_use]
    pub fn without_permits(self) -> Parts<'static> {
        Parts {
            call: self.call,
            records: self.records,
            permits: Vec::new(),
            question: self.question,
            denials: self.denials,
            granted: self.granted,
            revoked: self.revoked,
            spawned: self.spawned,
            expired: self.expired,
            orphaned: self.orphaned,
            drained: self.drained,
            ended: self.ended,
            proposal: self.proposal,
            stopped: self.stopped,
        }
    }
}

impl<'turn> Effects<'turn> {
    pub(super) fn none() -> Effects<'turn> {
        Effects {
            call: None,
            list: Vec::new(),
            session: PhantomData,
        }
    }

    pub(super) fn for_call(call: CallId) -> Effects<'turn> {
        Effects {
            call: Some(call),
            ..Effects::none()
        }
    }

    pub(super) fn push(&mut self, effect: Effect<'turn>) {
        self.list.push(effect);
    }

    pub(super) fn extend(&mut self, effects: impl Iterator<Item = Effect<'turn>>) {
        self.list.extend(effects);
    }

    pub(super) fn append(&mut self, later: Effects<'turn>) {
        self.list.extend(later.list);
    }

    /// The same with this record in front.
    pub(super) fn after(mut self, record: Record) -> Effects<'turn> {
        self.list.insert(0, Effect::Record(record));
        self
    }

    /// The same with these records in front.
    pub(super) fn after_all(mut self, records: Vec<Record>) -> Effects<'turn> {
        let rest = core::mem::take(&mut self.list);
        self.list.extend(records.into_iter().map(Effect::Record));
        self.list.extend(rest);
        self
    }

    /// The call this is about, if it is about one.
    #[must_use]
    pub const fn call(&self) -> Option<CallId> {
        self.call
    }

    /// The refusal, if it is one.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        self.list.iter().find_map(|effect| match effect {
            Effect::Refuse { denial, .. } => Some(denial),
            Effect::Record(_)
            | Effect::Execute(_)
            | Effect::Ask(_)
            | Effect::Granted(_)
            | Effect::Revoked(_)
            | Effect::Spawned { .. }
            | Effect::Expired(_)
            | Effect::Orphaned(_)
            | Effect::Drained(_)
            | Effect::Ended(_)
            | Effect::Propose(_)
            | Effect::Stop(_) => None,
        })
    }

    /// Sorts them by kind.
    #[must_use]
    pub fn into_parts(self) -> Parts<'turn> {
        let mut parts = Parts {
            call: self.call,
            ..Parts::default()
        };
        for effect in self.list {
            match effect {
                Effect::Record(record) => parts.records.push(record),
                Effect::Execute(permit) => parts.permits.push(permit),
                Effect::Ask(question) => parts.question = Some(question),
                Effect::Refuse { call, denial } => parts.denials.push((call, denial)),
                Effect::Granted(grant) => parts.granted = Some(grant),
                Effect::Revoked(grants) => parts.revoked.extend(grants),
                Effect::Spawned { child, grants } => parts.spawned = Some((child, grants)),
                Effect::Expired(grants) => parts.expired.extend(grants),
                Effect::Orphaned(grants) => parts.orphaned.extend(grants),
                Effect::Drained(grant) => parts.drained.push(grant),
                Effect::Ended(agents) => parts.ended.extend(agents),
                Effect::Propose(proposal) => parts.proposal = Some(proposal),
                Effect::Stop(call) => parts.stopped.push(call),
            }
        }
        parts
    }
}

impl<'turn> IntoIterator for Effects<'turn> {
    type Item = Effect<'turn>;
    type IntoIter = alloc::vec::IntoIter<Effect<'turn>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
