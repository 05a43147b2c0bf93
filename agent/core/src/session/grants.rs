//! Grants made, passed on and ended.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::calls::Stage;
use super::{Attenuation, Effect, Effects, GrantSpec, Session};
use crate::approval::CallId;
use crate::audit::{Entry, Record};
use crate::authority::{Authority, Cap, Object};
use crate::fault::{self, Fault};
use crate::grant::{AgentId, GrantId, Lifetime, Limits, Origin, Revoker, UpstreamId};
use crate::outcome::{Denial, DenialCode};
use crate::standing::{PortableAuthority, PortableObject, Standing, Surroundings};
use crate::time::Instant;

/// Did somebody look at what the holder had read by then? A kept grant, a mode
/// and a remembered answer come from before.
const fn vouches(origin: Origin) -> bool {
    match origin {
        Origin::Session
        | Origin::User
        | Origin::Loan(_)
        | Origin::Answer(_)
        | Origin::Remembered
        | Origin::Upstream(_)
        | Origin::Proposed => true,
        Origin::Mode | Origin::Agent(_) | Origin::Forwarded(_) | Origin::Standing(_) => false,
    }
}

impl Session {
    pub(super) fn grant(
        &mut self,
        spec: &GrantSpec,
        origin: Origin,
    ) -> Result<(GrantId, Record), Denial> {
        self.is_there(spec.holder)?;
        let limits = Limits::starting(self.now, spec.uses, spec.lifetime);
        let revoker = self
            .table
            .grant_from(origin, spec.holder, spec.authority.clone(), limits)?;
        if vouches(origin) {
            self.flow.made(revoker.grant(), spec.holder);
        }
        Ok(self.keep(revoker))
    }

    pub(super) fn attenuate(&mut self, wanted: &Attenuation) -> Result<(GrantId, Record), Denial> {
        self.is_there(wanted.holder)?;
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
        Ok(self.keep(revoker))
    }

    pub(super) fn forward(
        &mut self,
        by: AgentId,
        from: GrantId,
        holder: AgentId,
    ) -> Result<(GrantId, Record), Denial> {
        self.is_there(holder)?;
        let revoker = self.table.forward(by, from, holder, self.now)?;
        Ok(self.keep(revoker))
    }

    /// Nothing is put into the hands of an agent that has ended.
    fn is_there(&self, holder: AgentId) -> Result<(), Denial> {
        if self.family.has_ended(holder) {
            Err(Denial::new(DenialCode::UnknownAgent, holder))
        } else {
            Ok(())
        }
    }

    pub(super) fn keep(&mut self, revoker: Revoker) -> (GrantId, Record) {
        let id = revoker.grant();
        self.revokers.insert(id, revoker);
        let record = match self.table.get(id) {
            Some(grant) => self.ledger.append(self.now, &Entry::Granted { grant }),
            None => self.ledger.append(
                self.now,
                &Entry::Note {
                    text: "a grant was lost",
                },
            ),
        };
        (id, record)
    }

    pub(super) fn granted(&mut self, made: Result<(GrantId, Record), Denial>) -> Effects<'static> {
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

    /// A kept grant comes to count here, if it does, for as long as it does.
    pub(super) fn adopt(
        &mut self,
        holder: AgentId,
        standing: &Standing,
        here: &Surroundings,
    ) -> Effects<'static> {
        let made = standing
            .check(here)
            .map_err(|due| Denial::new(due.code(), standing.id))
            .and_then(|left| {
                let spec = GrantSpec {
                    holder,
                    authority: self.here(&standing.authority)?,
                    uses: standing.uses_left,
                    lifetime: Lifetime::For(left),
                };
                self.grant(&spec, Origin::Standing(standing.id))
            });
        self.granted(made)
    }

    /// Portable authority in this session's handles. The edge opens the directories first.
    fn here(&self, authority: &PortableAuthority) -> Result<Authority, Denial> {
        let mut caps = Vec::with_capacity(authority.caps().len());
        for cap in authority.caps() {
            let object = match cap.object().clone() {
                PortableObject::Place { at, extent } => {
                    let (dir, below) = self
                        .rules
                        .place(&at)
                        .ok_or_else(|| Denial::new(DenialCode::NoCap, cap))?;
                    Object::Dir { dir, below, extent }
                }
                PortableObject::Program(program) => Object::Program(program),
                PortableObject::Host(host) => Object::Host(host),
                PortableObject::Secret(name) => Object::Secret(name),
                PortableObject::Model(name) => Object::Model(name),
                PortableObject::Session => Object::Session,
                PortableObject::Extension(extension) => Object::Extension(extension),
            };
            caps.push(
                Cap::new(cap.verb(), object).map_err(|_| Denial::new(DenialCode::NoCap, cap))?,
            );
        }
        Ok(Authority::from_caps(caps)?)
    }

    /// What a grant allows, in words that mean the same in any session, to be
    /// kept as a standing one; `None` if a part of it has no such words.
    #[must_use]
    pub fn portable(&self, grant: GrantId) -> Option<PortableAuthority> {
        let caps: Option<Vec<_>> = self
            .table
            .get(grant)?
            .authority()
            .caps()
            .iter()
            .map(|cap| {
                let action = crate::action::Action::new(
                    cap.verb(),
                    cap.object().clone(),
                    crate::digest::Digest::NONE,
                );
                self.rules.portable(&action.ok()?)
            })
            .collect();
        PortableAuthority::from_caps(caps?).ok()
    }

    pub(super) fn revoke(&mut self, grant: GrantId) -> Effects<'static> {
        let Some(revoker) = self.revokers.get(&grant) else {
            return self.refuse(None, Denial::new(DenialCode::UnknownGrant, grant));
        };
        if fault::is(Fault::YesOutlivesItsGround) && !self.questions.is_empty() {
            return Effects::none();
        }
        let ended = self.table.revoke(revoker);
        self.ended(ended)
    }

    /// Records the end of these grants and stops what runs on them.
    pub(super) fn ended(&mut self, ended: Vec<GrantId>) -> Effects<'static> {
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger
                .append(self.now, &Entry::Revoked { grants: &ended }),
        ));
        if !fault::is(Fault::ForgetRevocation) {
            self.stop(&mut effects, DenialCode::Revoked, |flight| {
                flight
                    .grants
                    .iter()
                    .any(|grant| ended.binary_search(grant).is_ok())
            });
        }
        effects.push(Effect::Revoked(ended));
        effects
    }

    pub(super) fn revoke_and_drain(&mut self, grant: GrantId) -> Effects<'static> {
        let mut effects = self.revoke(grant);
        if effects.denial().is_some() {
            return effects;
        }
        let running: BTreeSet<CallId> = self.running_on(grant).collect();
        if running.is_empty() || fault::is(Fault::DrainedTooEarly) {
            self.report_drained(grant, &mut effects);
        } else {
            self.drains.insert(grant, running);
        }
        effects
    }

    /// The calls that still run on a grant or on one derived from it, those
    /// included that were told to stop and are not reported finished.
    pub fn running_on(&self, grant: GrantId) -> impl Iterator<Item = CallId> {
        self.flights
            .iter()
            .filter(|(_, flight)| flight.stage != Stage::Starting)
            .filter(move |(_, flight)| {
                flight
                    .grants
                    .iter()
                    .any(|used| self.table.descends(*used, grant))
            })
            .map(|(call, _)| *call)
    }

    /// Why a running call was told to stop, if it was: its effects may not stand.
    #[must_use]
    pub fn why_stopped(&self, call: CallId) -> Option<DenialCode> {
        match self.flights.get(&call)?.stage {
            Stage::Stopped(code) => Some(code),
            Stage::Starting | Stage::Running => None,
        }
    }

    /// Is a grant ended, and does nothing run on it or below it any more?
    #[must_use]
    pub fn is_drained(&self, grant: GrantId) -> bool {
        self.table.usable(grant, self.now) == Err(DenialCode::Revoked)
            && self.running_on(grant).next().is_none()
    }

    /// A call is over: does that complete the end of a grant?
    pub(super) fn drained_by(&mut self, call: CallId, effects: &mut Effects<'_>) {
        for running in self.drains.values_mut() {
            running.remove(&call);
        }
        let done: Vec<GrantId> = self
            .drains
            .extract_if(.., |_, running| running.is_empty())
            .map(|(grant, _)| grant)
            .collect();
        for grant in done {
            self.report_drained(grant, effects);
        }
    }

    fn report_drained(&mut self, grant: GrantId, effects: &mut Effects<'_>) {
        effects.push(Effect::Record(
            self.ledger.append(self.now, &Entry::Drained { grant }),
        ));
        effects.push(Effect::Drained(grant));
    }

    pub(super) fn upstream_lost(&mut self, upstream: UpstreamId) -> Effects<'static> {
        let grants = self.table.orphan(Origin::Upstream(upstream));
        let mut effects = Effects::none();
        effects.push(Effect::Record(self.ledger.append(
            self.now,
            &Entry::Orphaned {
                upstream,
                grants: &grants,
            },
        )));
        effects.push(Effect::Orphaned(grants));
        effects
    }

    /// Ends what outlived its deadline: grants at once, and calls that began
    /// before it after the grace.
    pub(super) fn close_deadlines(&mut self, effects: &mut Effects<'_>) {
        let expired = self.table.expire(self.now);
        if !expired.is_empty() {
            effects.push(Effect::Record(
                self.ledger
                    .append(self.now, &Entry::Expired { grants: &expired }),
            ));
            effects.push(Effect::Expired(expired));
        }
        if !fault::is(Fault::ForgetExpiry) {
            let now = self.now;
            self.stop(effects, DenialCode::Expired, |flight| {
                flight.runs_until.is_some_and(|until| now > until)
            });
        }
    }

    /// The last instant at which there is nothing for a tick to do; `None` if
    /// there will be nothing until something else happens.
    #[must_use]
    pub fn quiet_until(&self) -> Option<Instant> {
        let questions = self.questions.values().map(|question| question.open_until);
        let proposals = self.proposals.values().map(|proposal| proposal.open_until);
        let flights = self
            .flights
            .values()
            .filter(|flight| flight.stage == Stage::Running)
            .filter_map(|flight| flight.runs_until);
        questions
            .chain(proposals)
            .chain(flights)
            .chain(self.table.next_deadline())
            .min()
    }
}
