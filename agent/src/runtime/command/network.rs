//! What of the network a command gets: what its agent holds when it starts.
//!
//! The peers of `net.connect` are reached through the proxy and nothing else
//! is; `net.listen` on the loopback gives a loopback that is shared by those commands of one
//! agent that reach the same peers, and by nobody else.
//! What a rule refuses, and what would have to be asked about while nobody can
//! be asked, is left out: the command runs without it. So does one that a person typed: what
//! it runs may have been written by somebody else since the peer was granted.

use hermitcrab_core::{
    action::Action,
    approval::Stance,
    authority::{Object, Verb},
    digest::Digest,
    grant::{AgentId, Uses},
    session::{Asking, Session},
    time::Instant,
    tool::Tool,
};

use super::{
    super::{Runtime, hands::Hands},
    reached::Had,
};

impl Hands<'_> {
    /// One action for each peer, bound to what is run.
    pub(in crate::runtime) fn network(&self, tool: Tool, digest: Digest) -> Vec<Action> {
        let now = self.runtime.clock.now();
        // What data decides to be done needs a yes of its own.
        let steered = self.runtime.steering.is_some();
        self.runtime
            .machine
            .look(|session| held(session, (self.by, tool), now, steered, digest))
            .gets
    }
}

impl Hands<'_> {
    /// What of the network a command of this agent has.
    pub(super) fn had(&self) -> Had {
        let (now, tool) = (self.runtime.clock.now(), Tool::Terminal);
        let steered = self.runtime.steering.is_some();
        let held = |session: &Session| held(session, (self.by, tool), now, steered, Digest::NONE);
        let held = self.runtime.machine.look(held);
        let any = |verb: Verb| held.gets.iter().any(|action| action.verb() == verb);
        Had {
            peers: any(Verb::NetConnect),
            loopback: any(Verb::NetListen),
            unasked: held
                .unasked
                .iter()
                .map(|action| action.object().to_string())
                .collect(),
        }
    }
}

impl Runtime {
    /// The peers a command of this agent reaches, as they were granted.
    #[must_use]
    pub fn peers(&self, by: AgentId) -> Vec<String> {
        let (now, tool) = (self.clock.now(), Tool::Terminal);
        let held = |session: &Session| held(session, (by, tool), now, false, Digest::NONE);
        let held = self.machine.look(held);
        let peers = held
            .gets
            .iter()
            .filter(|action| action.verb() == Verb::NetConnect);
        peers.map(|action| action.object().to_string()).collect()
    }
}

/// What somebody holds of the network.
#[derive(Debug, Default)]
struct Held {
    /// What a command gets of it.
    gets: Vec<Action>,
    /// Peers of grants that are older than what was read since, so that somebody would have
    /// to be asked, and nobody can be.
    unasked: Vec<Action>,
}

/// What `by` holds of the network and may use for this call.
fn held(
    session: &Session,
    (by, tool): (AgentId, Tool),
    now: Instant,
    steered: bool,
    digest: Digest,
) -> Held {
    let mut held = Held::default();
    for grant in session.held_by(by) {
        let stands = session.table().usable(grant.id(), now).is_ok();
        if !stands || grant.limits().uses != Uses::Uncounted {
            continue;
        }
        for cap in grant.authority().caps() {
            let (Verb::NetConnect | Verb::NetListen, Object::Host(host)) =
                (cap.verb(), cap.object())
            else {
                continue;
            };
            let Ok(action) = Action::new(cap.verb(), Object::Host(host.clone()), digest) else {
                continue;
            };
            let flow = session.flow();
            let tainted = steered || !flow.vouches_so_far(session.table(), by, grant.id(), &action);
            let is_asked = session.asking() != Asking::Refuse;
            let into = match session.explain(by, tool, &action).stance {
                Stance::Allow if !tainted || is_asked => &mut held.gets,
                Stance::Ask if is_asked => &mut held.gets,
                Stance::Allow if action.verb() == Verb::NetConnect => &mut held.unasked,
                Stance::Allow | Stance::Ask | Stance::Deny => continue,
            };
            if !into.contains(&action) {
                into.push(action);
            }
        }
    }
    // Granted anew since, it is had.
    let Held { gets, unasked } = &mut held;
    unasked.retain(|action| !gets.contains(action));
    held
}

/// The peers in words, for whoever is asked.
pub(super) fn in_words(actions: &[Action]) -> String {
    let peers: Vec<String> = actions
        .iter()
        .map(|action| match action.verb() {
            Verb::NetListen => "a loopback of this agent's commands".to_owned(),
            _ => action.object().to_string(),
        })
        .collect();
    if peers.is_empty() {
        String::new()
    } else {
        format!("\nwith the network: {}", peers.join(", "))
    }
}
