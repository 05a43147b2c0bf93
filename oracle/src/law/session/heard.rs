//! What reached whom, in the book's own words: which kinds of data each agent has read,
//! which steer a call, and which the user knew of who made a grant.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::approval::CallId;
use hermitcrab_core::authority::{Cap, Host, HostPattern, Object, Program, Verb};
use hermitcrab_core::grant::{AgentId, Grant, GrantId, Origin};
use hermitcrab_core::label::Source;

type Sources = BTreeSet<Source>;

#[derive(Default)]
pub(super) struct Heard {
    read: BTreeMap<AgentId, Sources>,
    steering: BTreeMap<CallId, Sources>,
    /// For each grant that a user made: what its holder had read by then.
    known: BTreeMap<GrantId, Sources>,
}

impl Heard {
    /// Data from there reaches an agent. Says whether a user would want to know. Secrets
    /// never reach a model, and nothing else that comes with one.
    pub(super) fn hears(&mut self, agent: AgentId, sources: &[Source]) -> bool {
        if sources.contains(&Source::Secret) {
            return false;
        }
        let read = self.read.entry(agent).or_default();
        let before = read.len();
        read.extend(from_elsewhere(sources));
        read.len() > before
    }

    pub(super) fn steers(&mut self, call: CallId, sources: &[Source]) {
        self.steering
            .insert(call, from_elsewhere(sources).collect());
    }

    pub(super) fn ends(&mut self, call: CallId) {
        self.steering.remove(&call);
    }

    /// What a parent tells a child may be what it has read.
    pub(super) fn starts(&mut self, parent: AgentId, child: AgentId) {
        let read = self.read.get(&parent).cloned().unwrap_or_default();
        self.read.insert(child, read);
    }

    /// A grant that was not there before this turn.
    pub(super) fn given(&mut self, grant: &Grant) {
        let is_a_persons = !matches!(grant.origin(), Origin::Mode | Origin::Standing(_));
        if grant.parent().is_none() && is_a_persons {
            let read = self.read.get(&grant.holder()).cloned();
            self.known.insert(grant.id(), read.unwrap_or_default());
        }
    }

    /// Did whoever made this grant know of all that may be behind this call?
    pub(super) fn is_known_to(&self, grant: GrantId, by: AgentId, call: CallId) -> bool {
        let none = Sources::new();
        let read = self.read.get(&by).unwrap_or(&none);
        let steering = self.steering.get(&call).unwrap_or(&none);
        match self.known.get(&grant) {
            Some(known) => read.is_subset(known) && steering.is_subset(known),
            None => read.is_empty() && steering.is_empty(),
        }
    }
}

/// Without what the user or the agent's own model wrote.
fn from_elsewhere(sources: &[Source]) -> impl Iterator<Item = Source> {
    let is_own = |source: &Source| matches!(source, Source::User | Source::Model);
    sources.iter().copied().filter(move |one| !is_own(one))
}

/// Whether something is different afterwards, or somebody else may have learnt something.
pub(super) fn has_consequences(cap: &Cap) -> bool {
    let is_own_loopback = |host: &Host| matches!(&host.name, HostPattern::Exact(name) if name.as_str() == "localhost");
    match (cap.verb(), cap.object()) {
        // In a sandbox, on a view of its own.
        (Verb::ProcExec, Object::Program(program)) => matches!(program, Program::OnHost(_)),
        (Verb::NetListen, Object::Host(host)) => !is_own_loopback(host),
        // Who may hear what a model is sent or a user is asked has rules of its own.
        (verb, _) => !matches!(
            verb,
            Verb::FsList
                | Verb::FsRead
                | Verb::SessionRead
                | Verb::UserAsk
                | Verb::AgentSpawn
                | Verb::ModelSend
        ),
    }
}
