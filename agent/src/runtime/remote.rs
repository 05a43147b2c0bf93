//! Ending things in a session from another thread than the one that works in it.
//!
//! What for: the working thread waits for a command, a model or a person, and
//! somebody else wants to end a grant now. Who holds it is the person or acts
//! for them; it is never given to an agent.

use hermitcrab_core::{
    approval::Proposal,
    grant::{AgentId, GrantId},
    outcome::{Denial, DenialCode},
    session::{Event, Parts, Session},
    time::Instant,
};

use super::machine::Machine;

/// A way into a running session; clones are the same.
#[derive(Clone, Debug)]
pub struct Remote {
    machine: Machine,
}

impl Remote {
    pub(super) const fn new(machine: Machine) -> Self {
        Self { machine }
    }

    /// Ends a grant and everything derived from it; says which grants ended.
    /// When it returns nothing new starts on them, and what ran was killed; it
    /// may still be dying.
    ///
    /// # Errors
    /// The refusal, for a grant this session does not have.
    pub fn revoke(&self, grant: GrantId) -> Result<Vec<GrantId>, Denial> {
        revoked(self.step(Event::Revoke(grant))?)
    }

    /// The same, and waits until nothing runs on them any more.
    ///
    /// # Errors
    /// As for [`Remote::revoke`].
    pub fn revoke_and_drain(&self, grant: GrantId) -> Result<Vec<GrantId>, Denial> {
        let ended = revoked(self.step(Event::RevokeAndDrain(grant))?)?;
        self.machine.drained(grant);
        Ok(ended)
    }

    /// Ends the session: every grant, and everything that runs.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn end(&self) -> Result<(), Denial> {
        self.step(Event::End).map(drop)
    }

    /// Looks at the session as it is now.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Session, Instant) -> R) -> R {
        let now = self.machine.now();
        self.machine.look(|session| look(session, now))
    }

    /// The grant with this number.
    pub(super) fn grant_named(&self, number: u32) -> Result<GrantId, Denial> {
        self.look(|session, _| session.grant_named(number))
            .ok_or_else(|| Denial::new(DenialCode::UnknownGrant, number))
    }

    /// The agent with this number.
    pub(super) fn agent_named(&self, number: u32) -> Result<AgentId, Denial> {
        self.look(|session, _| session.agents().find(|agent| agent.get() == number))
            .ok_or_else(|| Denial::new(DenialCode::UnknownAgent, number))
    }

    /// The proposal with this number, as it is shown.
    pub(super) fn proposal(&self, number: u32) -> Result<Proposal, Denial> {
        let found = self.look(|session, _| {
            let mut open = session.proposals();
            open.find(|proposal| proposal.id().get() == number).cloned()
        });
        found.ok_or_else(|| Denial::new(DenialCode::UnknownProposal, number))
    }

    pub(super) fn step(&self, event: Event) -> Result<Parts<'static>, Denial> {
        self.machine
            .step(event)
            .map_err(|error| Denial::new(DenialCode::LedgerUnwritable, error))
    }
}

fn revoked(parts: Parts<'static>) -> Result<Vec<GrantId>, Denial> {
    match parts.denials.into_iter().next() {
        Some((_, denial)) => Err(denial),
        None => Ok(parts.revoked),
    }
}
