//! Ending things in a session from another thread than the one that works in it.
//!
//! What for: the working thread waits for a command, a model or a person, and
//! somebody else wants to end a grant now. It can only take away: nothing here
//! makes, widens or keeps a grant.

use hermitcrab_core::{
    grant::GrantId,
    outcome::{Denial, DenialCode},
    session::{Event, Parts},
};

use super::machine::Machine;

/// A way into a running session that can only end things; clones are the same.
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

    fn step(&self, event: Event) -> Result<Parts<'static>, Denial> {
        self.machine.step(event).map_err(|error| {
            Denial::new(
                DenialCode::SessionEnded,
                format_args!("the ledger cannot be written: {error}"),
            )
        })
    }
}

fn revoked(parts: Parts<'static>) -> Result<Vec<GrantId>, Denial> {
    match parts.denials.into_iter().next() {
        Some((_, denial)) => Err(denial),
        None => Ok(parts.revoked),
    }
}
