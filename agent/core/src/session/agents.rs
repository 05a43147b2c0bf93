//! Agents that start agents, and end with them.
//!
//! A child holds what was forwarded to it by name and nothing else. How deep
//! and how many is bounded. When an agent ends, everything it held ends, and
//! so does every agent it started, with everything they held.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Effect, Effects, Session};
use crate::audit::{Entry, Record};
use crate::authority::{Cap, Object, Verb};
use crate::fault::{self, Fault};
use crate::grant::{AgentId, Grant, GrantId};
use crate::limits::{CHILDREN_PER_AGENT_MAX, DELEGATION_DEPTH_MAX};
use crate::outcome::{Denial, DenialCode};

/// Who started whom.
#[derive(Debug, Default)]
pub(super) struct Family {
    // Every agent but the first, with who started it and how deep it is.
    members: BTreeMap<AgentId, Member>,
    first_ended: bool,
}

#[derive(Debug)]
struct Member {
    parent: AgentId,
    depth: u32,
    ended: bool,
}

impl Family {
    fn depth(&self, agent: AgentId) -> u32 {
        self.members.get(&agent).map_or(0, |member| member.depth)
    }

    pub(super) fn has_ended(&self, agent: AgentId) -> bool {
        if fault::is(Fault::EndedAgentsAct) {
            return false;
        }
        match self.members.get(&agent) {
            Some(member) => member.ended,
            None => agent == AgentId::FIRST && self.first_ended,
        }
    }

    /// May this agent start one more?
    fn admits(&self, parent: AgentId) -> Result<(), Denial> {
        if self.depth(parent) >= DELEGATION_DEPTH_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                format_args!(
                    "agents that start agents, {DELEGATION_DEPTH_MAX} deep; let one further up start it"
                ),
            ));
        }
        if self.children(parent).count() >= CHILDREN_PER_AGENT_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                format_args!(
                    "{CHILDREN_PER_AGENT_MAX} agents that one agent has started; end one of them"
                ),
            ));
        }
        Ok(())
    }

    fn add(&mut self, parent: AgentId, child: AgentId) {
        let depth = self.depth(parent).saturating_add(1);
        let member = Member {
            parent,
            depth,
            ended: false,
        };
        self.members.insert(child, member);
    }

    /// Who started it; nobody the first.
    fn parent(&self, agent: AgentId) -> Option<AgentId> {
        self.members.get(&agent).map(|member| member.parent)
    }

    /// The agents it started that have not ended.
    fn children(&self, parent: AgentId) -> impl Iterator<Item = AgentId> {
        self.members
            .iter()
            .filter(move |(_, member)| member.parent == parent && !member.ended)
            .map(|(agent, _)| *agent)
    }

    /// Ends an agent and all below it; says which ones that were.
    fn end(&mut self, agent: AgentId) -> Vec<AgentId> {
        let mut ended = Vec::new();
        let mut open = alloc::vec![agent];
        while let Some(agent) = open.pop() {
            open.extend(self.children(agent));
            match self.members.get_mut(&agent) {
                Some(member) => member.ended = true,
                None => self.first_ended = true,
            }
            ended.push(agent);
        }
        ended.sort_unstable();
        ended
    }
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

impl Session {
    pub(super) fn spawn(&mut self, parent: AgentId, forward: &[GrantId]) -> Effects<'static> {
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
        if !self.table.knows(parent) || self.family.has_ended(parent) {
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
        self.family.admits(parent)?;
        let child = self.table.add_agent()?;
        self.family.add(parent, child);
        self.flow.inherit(parent, child);
        self.table.charge(by_right_of);
        let mut grants = Vec::with_capacity(forward.len());
        let mut records = Vec::with_capacity(forward.len());
        for grant in forward {
            // It can still fail: the right to spawn may have been the last use
            // of what is forwarded, or a limit is reached.
            match self.table.forward(parent, grant, child, self.now) {
                Ok(revoker) => {
                    let (id, record) = self.keep(revoker);
                    grants.push(id);
                    records.push(record);
                }
                Err(denial) => {
                    records.extend(self.take_back(&grants));
                    self.family.end(child);
                    return Err(Failed { records, denial });
                }
            }
        }
        Ok((child, grants, records))
    }

    /// Ends grants that were made for nothing.
    pub(super) fn take_back(&mut self, grants: &[GrantId]) -> Option<Record> {
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

    /// Ends an agent, what it held, and every agent it started.
    pub(super) fn end_agent(&mut self, agent: AgentId) -> Effects<'static> {
        if !self.table.knows(agent) || self.family.has_ended(agent) {
            return self.refuse(None, Denial::new(DenialCode::UnknownAgent, agent));
        }
        let agents = self.family.end(agent);
        let mut ended: Vec<GrantId> = Vec::new();
        for agent in &agents {
            ended.extend(self.table.revoke_all_of(*agent));
        }
        ended.sort_unstable();
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger
                .append(self.now, &Entry::AgentsEnded { agents: &agents }),
        ));
        effects.append(self.ended(ended));
        // A call that waits for an answer has nobody left to run it.
        let waiting: Vec<_> = self
            .questions
            .extract_if(.., |_, question| agents.contains(&question.by))
            .map(|(_, question)| question)
            .collect();
        for question in waiting {
            let denial =
                Denial::new(DenialCode::UnknownAgent, question.by).because(question.because);
            effects.append(self.refuse(Some(question.call), denial));
        }
        effects.push(Effect::Ended(agents));
        effects
    }

    /// The agent that started this one; the first was started by nobody.
    #[must_use]
    pub fn parent(&self, agent: AgentId) -> Option<AgentId> {
        self.family.parent(agent)
    }

    /// The agents an agent has started that have not ended.
    pub fn children(&self, agent: AgentId) -> impl Iterator<Item = AgentId> {
        self.family.children(agent)
    }

    /// Has this agent ended before the session did?
    #[must_use]
    pub fn agent_has_ended(&self, agent: AgentId) -> bool {
        self.family.has_ended(agent)
    }
}
