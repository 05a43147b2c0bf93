//! Standing grants and remembered answers in a session: taken in at its start,
//! kept when the user says so, let go of when they are ended elsewhere.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use hermitcrab_core::{
    approval::{CallId, Question, Scope},
    grant::{Grant, GrantId, Origin},
    outcome::{Denial, DenialCode},
    session::{Event, Session},
    standing::{
        PortableAuthority, PortableCap, PortableObject, Standing, StandingId, Surroundings,
    },
};

use super::{
    Runtime, RuntimeError,
    machine::Machine,
    warden::{Adopted, Then},
    words::nearest_directory,
};
use crate::{
    approvals::{SharedDesk, Wish},
    audit::LedgerError,
    store::keeper::Keeper,
};

/// What of the kept grants a session took in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenIn {
    /// Those that count, with the grants they became.
    pub adopted: Vec<(StandingId, GrantId)>,
    /// Those that do not, and why, for a person.
    pub refused: Vec<(StandingId, String)>,
}

/// The parts of a question nothing held covers, in words that outlive the session.
pub(super) fn portable(session: &Session, question: &Question) -> Vec<Option<PortableCap>> {
    question
        .uncovered()
        .map(|action| session.rules().portable(action))
        .collect()
}

/// What is kept, as a turn sees it.
pub(super) struct StoredGrants<'r> {
    adopted: &'r Adopted,
    desk: Option<&'r SharedDesk>,
    store: Option<&'r mut Keeper>,
}

impl<'r> StoredGrants<'r> {
    pub(super) const fn of(
        adopted: &'r Adopted,
        desk: Option<&'r SharedDesk>,
        store: Option<&'r mut Keeper>,
    ) -> Self {
        Self {
            adopted,
            desk,
            store,
        }
    }

    /// Ends what was ended in the store since the last look; which calls are to stop.
    ///
    /// # Errors
    /// The ledger cannot be written. It has ended all the same.
    pub(super) fn end_what_was_revoked(
        &mut self,
        machine: &Machine,
    ) -> Result<Vec<CallId>, LedgerError> {
        let look = |adopted: &Adopted, keeper: &mut Keeper| {
            keeper.time_is(machine.now());
            // Whoever looked before may still be at it, so this is done whatever
            // the look says, and before anything that can fail.
            adopted.end_gone(machine, keeper, |keeper| (keeper.refresh(), Then::End))
        };
        let (looked, ended) = match (self.desk, &mut self.store) {
            (Some(desk), _) => look(self.adopted, &mut desk.borrow_mut().keeper),
            (None, Some(keeper)) => look(self.adopted, keeper),
            (None, None) => return Ok(Vec::new()),
        };
        if let Err(error) = looked {
            let note = format!("the store is not trusted any more: {error}");
            machine.step(Event::Note(note))?;
        }
        ended
    }
}

impl Runtime {
    /// Puts the desk into the session: what is kept and counts is held by the
    /// first agent from here on.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn attach(&mut self, desk: SharedDesk) -> Result<TakenIn, RuntimeError> {
        let (here, live) = {
            let keeper = &mut desk.borrow_mut().keeper;
            keeper.time_is(self.clock.now());
            let live: Vec<Standing> = keeper.live().map(|(kept, _)| kept.clone()).collect();
            (keeper.here().clone(), live)
        };
        self.desk = Some(desk);
        let mut taken_in = TakenIn::default();
        for standing in live {
            match self.adopt(&standing, &here)? {
                Ok(grant) => taken_in.adopted.push((standing.id, grant)),
                Err(denial) => taken_in.refused.push((standing.id, denial.to_string())),
            }
        }
        Ok(taken_in)
    }

    /// A kept grant comes to count in this session for its first agent, for as
    /// long as its last confirmation lasts.
    ///
    /// # Errors
    /// The ledger cannot be written; the refusal inside.
    pub fn adopt(
        &mut self,
        standing: &Standing,
        here: &Surroundings,
    ) -> Result<Result<GrantId, Denial>, RuntimeError> {
        if let Err(denial) = self.open_places(standing) {
            return Ok(Err(denial));
        }
        let event = Event::Adopt {
            holder: self.first_agent(),
            standing: standing.clone(),
            here: here.clone(),
        };
        let parts = self.machine.step(event)?;
        let grant = match (parts.granted, parts.denials.into_iter().next()) {
            (Some(grant), _) => grant,
            (None, Some((_, denial))) => return Ok(Err(denial)),
            (None, None) => return Ok(Err(Denial::new(DenialCode::NoCap, standing.id))),
        };
        self.adopted.push(standing.id, grant);
        Ok(Ok(grant))
    }

    /// Ends what was ended in the store since the last look. If the store
    /// cannot be trusted any more, everything that came from it ends.
    pub(super) fn heed(&mut self) -> Result<(), RuntimeError> {
        let stopped = self.end_what_was_revoked()?;
        self.stop_jobs(|call| stopped.contains(&call))
            .map_err(RuntimeError::Limit)
    }

    /// The same, and nobody waits until what ran on it has come to its end: it is killed.
    /// Which calls those are.
    pub(super) fn end_what_was_revoked(&mut self) -> Result<Vec<CallId>, RuntimeError> {
        let mut kept = StoredGrants::of(&self.adopted, self.desk.as_ref(), self.store.as_mut());
        Ok(kept.end_what_was_revoked(&self.machine)?)
    }

    /// Keeps what the user wanted kept, now that the session took their answers.
    pub(super) fn settle_wishes(&mut self) -> Result<(), RuntimeError> {
        let Some(desk) = self.desk.clone() else {
            return Ok(());
        };
        let (wishes, repeated) = {
            let mut desk = desk.borrow_mut();
            (
                std::mem::take(&mut desk.wishes),
                std::mem::take(&mut desk.repeated),
            )
        };
        for line in repeated {
            self.note(line)?;
        }
        for (_, wish) in wishes {
            let done = match &wish {
                Wish::Always(authority) => {
                    self.note_for_sure(format!("to be kept: always {authority}"))?;
                    let given = self.given_for_good(authority);
                    let kept = self
                        .adopted
                        .keep(given, || desk.borrow_mut().keeper.keep(authority));
                    kept.map(|id| format!("kept as {id}"))
                }
                Wish::Repeat(what, said) => {
                    let caps: Vec<String> = what
                        .iter()
                        .map(|(cap, _)| cap.asked().to_string())
                        .collect();
                    let line = format!("{} to exactly {}", said.as_str(), caps.join(", "));
                    self.note_for_sure(format!("to be remembered: {line}"))?;
                    let kept = desk.borrow_mut().keeper.remember(what, *said);
                    kept.map(|()| format!("remembered: {line}"))
                }
            };
            match done {
                Ok(line) => self.note_for_sure(line)?,
                Err(error) => {
                    self.note(format!("not kept: {error}"))?;
                    self.told
                        .push(format!("your answer counts in this session only: {error}"));
                }
            }
        }
        Ok(())
    }

    /// The grants of this session that a yes for good made, of what is kept so.
    fn given_for_good(&self, authority: &PortableAuthority) -> Vec<GrantId> {
        let kept = authority.caps();
        self.machine.look(|session| {
            let is_of_it = |grant: &&Grant| {
                grant.origin() == Origin::Answer(Scope::Always)
                    && session
                        .portable(grant.id())
                        .is_some_and(|given| given.caps().iter().all(|cap| kept.contains(cap)))
            };
            let agents = session.agents();
            agents
                .flat_map(|agent| session.held_by(agent))
                .filter(is_of_it)
                .map(Grant::id)
                .collect()
        })
    }

    /// What the person should be told and was not part of any result.
    pub fn take_told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// Opens the directories a kept grant names places in.
    fn open_places(&mut self, standing: &Standing) -> Result<(), Denial> {
        for cap in standing.authority.caps() {
            let PortableObject::Place { at: place, .. } = cap.object() else {
                continue;
            };
            let path = Path::new("/").join(OsStr::from_bytes(place.as_bytes()));
            // The place was resolved when it was kept. If a link stands in it
            // by now, it is another place, which nobody said yes to.
            if super::real(&path) != path {
                return Err(Denial::new(DenialCode::SymlinkRefused, cap));
            }
            if self.mounts.locate(&path).is_none() {
                self.mounts
                    .open(&self.machine, nearest_directory(&path))
                    .map_err(|_| Denial::new(DenialCode::NoCap, cap))?;
            }
        }
        Ok(())
    }
}
