//! Flow rules: when data that a model has read makes a held grant a question.
//!
//! A model that reads a file may do what the file says. So what was read is
//! remembered, as a [`Label`], for each agent; and a grant vouches only for the
//! kinds of data that had already reached its holder when the user made it. An
//! effect that changes something, or lets data out, needs a grant that vouches
//! for everything its agent has read; without one the user is asked, and a yes
//! makes a grant that does. Looking, reading and running on a copy change
//! nothing and stay free.
//!
//! This module must never make anything allowed: it only turns what a grant
//! would allow into a question. A label only grows; nothing an agent does
//! cleans it.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::action::Action;
use crate::approval::CallId;
use crate::authority::{Host, HostPattern, Object, Program, Verb};
use crate::cap::CapTable;
use crate::grant::{AgentId, GrantId};
use crate::label::{Label, Source};

/// What reached each agent of a session, and what its grants vouch for.
#[derive(Debug, Default)]
pub struct Flow {
    heard: BTreeMap<AgentId, Label>,
    /// What steers a call beside what its agent has read.
    carried: BTreeMap<CallId, BTreeSet<Source>>,
    // INVARIANT: only grants the user made; what is derived from one shares it.
    vouching: BTreeMap<GrantId, BTreeSet<Source>>,
}

impl Flow {
    /// Remembers that data reached an agent. Says whether that is news.
    pub(crate) fn hear(&mut self, agent: AgentId, label: &Label) -> bool {
        match self.heard.get_mut(&agent) {
            None => {
                self.heard.insert(agent, label.clone());
                true
            }
            Some(known) => {
                let joined = known.join(label);
                let news = joined != *known;
                *known = joined;
                news
            }
        }
    }

    /// Data steers this call, whatever its agent has read.
    pub(crate) fn carry(&mut self, call: CallId, label: &Label) {
        self.carried.insert(
            call,
            label
                .sources()
                .filter(|source| is_foreign(*source))
                .collect(),
        );
    }

    /// The call is over.
    pub(crate) fn drop_call(&mut self, call: CallId) {
        self.carried.remove(&call);
    }

    /// A new agent is told what to do by its parent, whose words are no cleaner
    /// than what the parent has read.
    pub(crate) fn inherit(&mut self, parent: AgentId, child: AgentId) {
        if let Some(label) = self.heard.get(&parent).cloned() {
            self.heard.insert(child, label);
        }
    }

    /// The user made a grant for `holder`, knowing what it had read by then.
    pub(crate) fn made(&mut self, grant: GrantId, holder: AgentId) {
        let foreign = self.foreign(holder);
        if !foreign.is_empty() {
            self.vouching.insert(grant, foreign);
        }
    }

    /// What reached this agent; `None` before anything did.
    #[must_use]
    pub fn label(&self, agent: AgentId) -> Option<&Label> {
        self.heard.get(&agent)
    }

    /// Does this grant cover the action with what its agent has read?
    #[must_use]
    pub fn vouches(
        &self,
        table: &CapTable,
        (by, call): (AgentId, CallId),
        grant: GrantId,
        action: &Action,
    ) -> bool {
        self.vouches_for(&self.foreign_to(by, call), table, grant, action)
    }

    /// The same before there is a call, by what its agent has read alone.
    #[must_use]
    pub fn vouches_so_far(
        &self,
        table: &CapTable,
        by: AgentId,
        grant: GrantId,
        action: &Action,
    ) -> bool {
        self.vouches_for(&self.foreign(by), table, grant, action)
    }

    fn vouches_for(
        &self,
        foreign: &BTreeSet<Source>,
        table: &CapTable,
        grant: GrantId,
        action: &Action,
    ) -> bool {
        !is_consequential(action)
            || foreign.is_empty()
            || self
                .vouching
                .iter()
                .any(|(known, kinds)| foreign.is_subset(kinds) && table.descends(grant, *known))
    }

    /// May what an agent has read be behind this action?
    #[must_use]
    pub fn taints(&self, by: AgentId, call: CallId, action: &Action) -> bool {
        is_consequential(action) && !self.foreign_to(by, call).is_empty()
    }

    fn foreign_to(&self, agent: AgentId, call: CallId) -> BTreeSet<Source> {
        let mut foreign = self.foreign(agent);
        foreign.extend(self.carried.get(&call).into_iter().flatten());
        foreign
    }

    /// The kinds of data that reached an agent and that neither its user nor
    /// its own model wrote.
    fn foreign(&self, agent: AgentId) -> BTreeSet<Source> {
        self.heard
            .get(&agent)
            .into_iter()
            .flat_map(Label::sources)
            .filter(|source| is_foreign(*source))
            .collect()
    }
}

/// Neither the user's nor the agent's own model's.
pub(crate) const fn is_foreign(source: Source) -> bool {
    match source {
        Source::User | Source::Model => false,
        Source::File | Source::Command | Source::Network | Source::Secret => true,
    }
}

/// Whether it is the loopback, by the one name under which it is granted.
fn is_localhost(object: &Object) -> bool {
    matches!(object, Object::Host(Host { name: HostPattern::Exact(name), .. }) if name.as_str() == "localhost")
}

/// Whether it changes something or lets data out. The conversation itself has
/// its own rule: who may read a label.
fn is_consequential(action: &Action) -> bool {
    match action.verb() {
        Verb::FsList
        | Verb::FsRead
        | Verb::SessionRead
        | Verb::UserAsk
        | Verb::AgentSpawn
        | Verb::ModelSend => false,
        Verb::ProcExec => matches!(action.object(), Object::Program(Program::OnHost(_))),
        // Nobody is there but what the same agent runs.
        Verb::NetListen => !is_localhost(action.object()),
        Verb::FsCreate
        | Verb::FsModify
        | Verb::FsDelete
        | Verb::FsMount
        | Verb::NetConnect
        | Verb::SecretUse
        | Verb::ConfigChange
        | Verb::Extension => true,
    }
}
