//! The table of everything held: who has which grant, derived from which.
//!
//! The derivation tree has one owner, so revoking a grant and everything
//! that came from it is one operation on one value, and costs what that part
//! of the tree costs, however many grants there are beside it. A new agent's
//! list is empty; the only ways to fill it are a grant by the session's user
//! and a forward, by name, of a grant its parent holds.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::authority::{Authority, Cap};
use crate::fault::{self, Fault};
use crate::grant::{AgentId, Grant, GrantId, Life, Limits, Origin, Revoker, State, Uses};
use crate::limits::{AGENTS_MAX, DERIVATION_DEPTH_MAX, GRANTS_MAX};
use crate::outcome::{Denial, DenialCode};
use crate::time::Instant;

use self::index::Index;

mod index;
#[cfg(test)]
mod tests;

/// Everything held in one session.
#[derive(Debug)]
pub struct CapTable {
    // INVARIANT: a grant's id is its index, and its parent's id is smaller.
    grants: Vec<Grant>,
    // INVARIANT: one entry per agent; lists grants held, oldest first.
    holdings: BTreeMap<AgentId, Vec<GrantId>>,
    index: Index,
    // Deadlines not yet reported as passed, the next one on top.
    deadlines: BinaryHeap<Reverse<(Instant, GrantId)>>,
}

impl Default for CapTable {
    fn default() -> Self {
        CapTable::new()
    }
}

impl CapTable {
    /// A table with one agent that holds nothing.
    #[must_use]
    pub fn new() -> CapTable {
        let mut holdings = BTreeMap::new();
        holdings.insert(AgentId::FIRST, Vec::new());
        CapTable {
            grants: Vec::new(),
            holdings,
            index: Index::default(),
            deadlines: BinaryHeap::new(),
        }
    }

    /// Adds an agent that holds nothing.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn add_agent(&mut self) -> Result<AgentId, Denial> {
        if self.holdings.len() >= AGENTS_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                format_args!("{AGENTS_MAX} agents in one session"),
            ));
        }
        let number = u32::try_from(self.holdings.len())
            .map_err(|_| Denial::new(DenialCode::LimitReached, "agents"))?;
        let agent = AgentId(number);
        self.holdings.insert(agent, Vec::new());
        Ok(agent)
    }

    /// Every agent there ever was, the first one first.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> {
        self.holdings.keys().copied()
    }

    /// Is there such an agent?
    #[must_use]
    pub fn knows(&self, agent: AgentId) -> bool {
        self.holdings.contains_key(&agent)
    }

    /// Puts authority into an agent's hands. Only the session's user does this.
    ///
    /// # Errors
    /// `unknown-agent`, `limit-reached`.
    pub fn grant(
        &mut self,
        holder: AgentId,
        authority: Authority,
        limits: Limits,
    ) -> Result<Revoker, Denial> {
        self.grant_from(Origin::User, holder, authority, limits)
    }

    /// The same, saying where it comes from.
    ///
    /// # Errors
    /// As for [`CapTable::grant`].
    pub(crate) fn grant_from(
        &mut self,
        origin: Origin,
        holder: AgentId,
        authority: Authority,
        limits: Limits,
    ) -> Result<Revoker, Denial> {
        self.insert(origin, holder, None, 0, authority, limits)
    }

    /// Makes a weaker grant from one that `by` holds, for `holder`.
    ///
    /// The deadline is cut to the parent's. A use of the new grant is a use of
    /// every grant it comes from.
    ///
    /// # Errors
    /// `unknown-grant`; `no-cap` if `by` does not hold it; the reason why the
    /// parent cannot be used itself; `amplifies`; `limit-reached`.
    pub fn attenuate(
        &mut self,
        by: AgentId,
        parent: GrantId,
        holder: AgentId,
        authority: Authority,
        limits: Limits,
        now: Instant,
    ) -> Result<Revoker, Denial> {
        self.derive(
            Origin::Agent(by),
            by,
            parent,
            holder,
            authority,
            limits,
            now,
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "everything a derived grant consists of"
    )]
    fn derive(
        &mut self,
        origin: Origin,
        by: AgentId,
        parent: GrantId,
        holder: AgentId,
        authority: Authority,
        limits: Limits,
        now: Instant,
    ) -> Result<Revoker, Denial> {
        let from = self.find(parent)?;
        if from.holder != by && !fault::is(Fault::DerivedByAnybody) {
            return Err(Denial::new(DenialCode::NoCap, parent));
        }
        if !fault::is(Fault::DerivedFromDead) {
            self.usable(parent, now)
                .map_err(|code| Denial::new(code, parent))?;
        }
        let authority = from.authority.attenuate(authority)?;
        let depth = from.depth + 1;
        if depth > DERIVATION_DEPTH_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                "depth of derived grants",
            ));
        }
        let limits = Limits {
            uses: limits.uses,
            expires_at: if fault::is(Fault::DerivedOutlivesParent) {
                limits.expires_at
            } else {
                limits.expires_at.min(from.limits.expires_at)
            },
        };
        self.insert(origin, holder, Some(parent), depth, authority, limits)
    }

    /// Passes a grant that `by` holds on to `holder`, undiminished.
    ///
    /// # Errors
    /// As for [`CapTable::attenuate`].
    pub fn forward(
        &mut self,
        by: AgentId,
        parent: GrantId,
        holder: AgentId,
        now: Instant,
    ) -> Result<Revoker, Denial> {
        let from = self.find(parent)?;
        let (authority, limits) = (from.authority.clone(), from.limits);
        let origin = Origin::Forwarded(by);
        self.derive(origin, by, parent, holder, authority, limits, now)
    }

    /// Ends a grant and all that were derived from it, at once and for good.
    ///
    /// Returns the ids of all grants that this call ended. Calling it again is
    /// harmless and ends nothing.
    pub fn revoke(&mut self, revoker: &Revoker) -> Vec<GrantId> {
        let mut ended: Vec<GrantId> = Vec::new();
        let mut open = alloc::vec![revoker.grant];
        while let Some(id) = open.pop() {
            let Some(grant) = self.grants.get_mut(usize_of(id)) else {
                continue;
            };
            // What is below a revoked grant was revoked with it, and nothing is added there.
            if grant.life == Life::Revoked {
                continue;
            }
            grant.life = Life::Revoked;
            self.index.bury(grant);
            ended.push(id);
            let mut child = grant
                .first_child
                .filter(|_| !fault::is(Fault::RevocationSparesDerived));
            while let Some(id) = child {
                open.push(id);
                child = self.get(id).and_then(|grant| grant.next_sibling);
            }
        }
        ended.sort_unstable();
        ended
    }

    /// Ends everything an agent holds and everything derived from that. Returns
    /// the ids of all grants that this call ended.
    pub fn revoke_all_of(&mut self, agent: AgentId) -> Vec<GrantId> {
        if fault::is(Fault::AgentEndSparesGrants) {
            return Vec::new();
        }
        let held = self.holdings.get(&agent).cloned().unwrap_or_default();
        let mut ended = Vec::new();
        for grant in held {
            ended.extend(self.revoke(&Revoker { grant }));
        }
        ended.sort_unstable();
        ended
    }

    /// Ends every grant there is. Returns those that this call ended.
    pub fn revoke_all(&mut self) -> Vec<GrantId> {
        let standing = self
            .grants
            .iter_mut()
            .filter(|grant| grant.life != Life::Revoked);
        standing
            .map(|grant| {
                grant.life = Life::Revoked;
                grant.id
            })
            .collect()
    }

    /// A grant by id.
    #[must_use]
    pub fn get(&self, id: GrantId) -> Option<&Grant> {
        self.grants.get(usize_of(id))
    }

    /// The grants an agent holds, oldest first, dead ones included.
    pub fn held_by(&self, agent: AgentId) -> impl DoubleEndedIterator<Item = &Grant> {
        self.holdings
            .get(&agent)
            .into_iter()
            .flatten()
            .filter_map(|id| self.get(*id))
    }

    /// Can this grant be used now? Says why not in the fixed order revoked,
    /// expired, exhausted, looking at each grant it comes from.
    ///
    /// # Errors
    /// `revoked`, `expired` or `exhausted`; `unknown-grant`.
    pub fn usable(&self, id: GrantId, now: Instant) -> Result<(), DenialCode> {
        if self.get(id).is_none() {
            return Err(DenialCode::UnknownGrant);
        }
        let refusals = self.lineage(id).filter_map(|grant| grant.refusal(now));
        // The strongest reason anywhere on the way up counts.
        match refusals.min_by_key(|code| order(*code)) {
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    /// Is it, and all it comes from, neither revoked nor past its deadline? Its uses may
    /// be over.
    pub(crate) fn stands(&self, id: GrantId, now: Instant) -> bool {
        matches!(self.usable(id, now), Ok(()) | Err(DenialCode::Exhausted))
    }

    /// What a list of grants says about one.
    #[must_use]
    pub fn state(&self, id: GrantId, now: Instant) -> Option<State> {
        let orphaned = self.lineage(id).any(|grant| grant.life == Life::Orphaned);
        match self.usable(id, now) {
            Ok(()) if orphaned => Some(State::Orphaned),
            Ok(()) => Some(State::Live),
            Err(DenialCode::Revoked) => Some(State::Revoked),
            Err(DenialCode::Expired) => Some(State::Expired),
            Err(DenialCode::Exhausted) => Some(State::Exhausted),
            Err(_) => None,
        }
    }

    /// The grant with which `by` may do `cap` now.
    ///
    /// A grant that is not counted is preferred to one that is; among equals
    /// the oldest wins, so that the choice does not depend on anything else.
    ///
    /// # Errors
    /// `no-cap` if none ever covered it but a loan; otherwise why the newest that covers it
    /// is dead.
    pub fn choose(&self, by: AgentId, cap: &Cap, now: Instant) -> Result<GrantId, DenialCode> {
        let mut uncounted: Option<GrantId> = None;
        let mut counted: Option<GrantId> = None;
        let mut dead: Option<(GrantId, DenialCode)> = None;
        let covers = |id: GrantId| {
            self.get(id)
                .is_some_and(|grant| grant.holder == by && grant.authority.covers_cap(cap))
        };
        self.index.living(by, cap, |id| {
            if uncounted.is_some_and(|best| best < id) || !covers(id) {
                return;
            }
            match self.usable(id, now) {
                Ok(()) if !self.is_counted(id) => uncounted = Some(id),
                Ok(()) => counted = Some(counted.map_or(id, |best| best.min(id))),
                Err(code) if self.is_told_of(id) => dead = dead.max(Some((id, code))),
                Err(_) => {}
            }
        });
        if let Some(grant) = uncounted.or(counted) {
            return Ok(grant);
        }
        self.index.buried(by, cap, |id| {
            if covers(id)
                && let Err(code) = self.usable(id, now)
            {
                dead = dead.max(Some((id, code)));
            }
        });
        Err(dead.map_or(DenialCode::NoCap, |(_, code)| code))
    }

    /// The oldest grant with which `by` may do `cap` now and that `fits`.
    pub(crate) fn choose_where(
        &self,
        by: AgentId,
        cap: &Cap,
        now: Instant,
        fits: impl Fn(GrantId) -> bool,
    ) -> Option<GrantId> {
        let mut found: Option<GrantId> = None;
        self.index.living(by, cap, |id| {
            let covers = self
                .get(id)
                .is_some_and(|grant| grant.holder == by && grant.authority.covers_cap(cap));
            if covers && fits(id) && self.usable(id, now).is_ok() {
                found = Some(found.map_or(id, |best| best.min(id)));
            }
        });
        found
    }

    /// One use of a grant its holder names: checked and charged at once, to it
    /// and to all it comes from. A use is not given back if what follows fails.
    ///
    /// This is what passing through a chain of forwarders costs; it makes no
    /// permit, so nothing can be done with it alone.
    ///
    /// # Errors
    /// `no-cap` if `by` does not hold it, `unknown-grant`, or why it cannot be used;
    /// then nothing is charged.
    pub fn invoke(&mut self, by: AgentId, id: GrantId, now: Instant) -> Result<(), DenialCode> {
        match self.get(id) {
            None => return Err(DenialCode::UnknownGrant),
            Some(grant) if grant.holder != by => return Err(DenialCode::NoCap),
            Some(_) => self.usable(id, now)?,
        }
        self.charge(id);
        Ok(())
    }

    /// Makes a weaker grant for one place below a directory that `from` allows:
    /// what a revocable directory gives out is revocable with it.
    ///
    /// # Errors
    /// As for [`CapTable::attenuate`]; `no-cap` if `from` allows nothing there.
    pub fn subdir(
        &mut self,
        by: AgentId,
        from: GrantId,
        place: &crate::authority::Object,
        now: Instant,
    ) -> Result<Revoker, Denial> {
        let grant = self.find(from)?;
        let caps = grant
            .authority
            .caps()
            .iter()
            .filter_map(|cap| cap.meet(&Cap::new(cap.verb(), place.clone()).ok()?));
        let authority = Authority::from_caps(caps.collect::<Vec<Cap>>())?;
        if authority.is_none() {
            return Err(Denial::new(DenialCode::NoCap, place));
        }
        let limits = grant.limits;
        self.attenuate(by, from, by, authority, limits, now)
    }

    /// Charges one use to a grant and all it comes from.
    pub(crate) fn charge(&mut self, id: GrantId) {
        self.each_in_lineage(id, |grant| grant.used = grant.used.saturating_add(1));
    }

    /// Takes a charge back. Only for charges for which no permit was made.
    pub(crate) fn uncharge(&mut self, id: GrantId) {
        self.each_in_lineage(id, |grant| grant.used = grant.used.saturating_sub(1));
    }

    /// These charges are final: what has no use left is no longer searched.
    pub(crate) fn settle(&mut self, charged: &[GrantId]) {
        // Each once; there are a few at most, nearly always one, and as many charges as
        // effects.
        let mut settled: Vec<GrantId> = Vec::new();
        for id in charged.iter().copied() {
            if settled.contains(&id) {
                continue;
            }
            settled.push(id);
            let mut next = Some(id);
            while let Some(grant) = next.and_then(|id| self.grants.get(usize_of(id))) {
                if matches!(grant.limits.uses, Uses::AtMost(limit) if grant.used >= limit) {
                    self.index.bury(grant);
                }
                next = grant.parent;
            }
        }
    }

    /// The grants whose deadline has passed since this was last asked, oldest
    /// deadline first; those that were revoked before are left out.
    pub fn expire(&mut self, now: Instant) -> Vec<GrantId> {
        let mut expired = Vec::new();
        while let Some(Reverse((at, id))) = self.deadlines.peek().copied()
            && now > at
        {
            self.deadlines.pop();
            let Some(grant) = self.grants.get(usize_of(id)) else {
                continue;
            };
            self.index.bury(grant);
            if grant.life != Life::Revoked {
                expired.push(id);
            }
        }
        expired
    }

    /// The next deadline nobody was told of yet.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    /// Marks what `origin` gave as having nobody left who could end it early;
    /// its deadline still does. Returns the grants marked.
    pub(crate) fn orphan(&mut self, origin: Origin) -> Vec<GrantId> {
        self.grants
            .iter_mut()
            .filter(|grant| grant.origin == origin && grant.life == Life::Stands)
            .map(|grant| {
                grant.life = Life::Orphaned;
                grant.id
            })
            .collect()
    }

    /// How many grants were ever made here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.grants.len()
    }

    /// Was none ever made?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    /// Does `id` come from `ancestor`, or is it the same?
    #[must_use]
    pub fn descends(&self, id: GrantId, ancestor: GrantId) -> bool {
        self.lineage(id).any(|grant| grant.id == ancestor)
    }

    /// Is it, or anything it comes from, for a number of uses only?
    #[must_use]
    pub fn is_counted(&self, id: GrantId) -> bool {
        self.lineage(id).any(|grant| match grant.limits.uses {
            Uses::AtMost(_) => true,
            Uses::Uncounted => false,
        })
    }

    fn is_told_of(&self, id: GrantId) -> bool {
        self.get(id).is_some_and(Grant::is_told_of)
    }

    fn find(&self, id: GrantId) -> Result<&Grant, Denial> {
        self.get(id)
            .ok_or_else(|| Denial::new(DenialCode::UnknownGrant, id))
    }

    fn lineage(&self, id: GrantId) -> impl Iterator<Item = &Grant> {
        core::iter::successors(self.get(id), |grant| {
            grant
                .parent
                .filter(|_| !fault::is(Fault::LineageNotLookedAt))
                .and_then(|parent| self.get(parent))
        })
    }

    fn each_in_lineage(&mut self, id: GrantId, change: impl Fn(&mut Grant)) {
        let mut next = Some(id);
        while let Some(grant) = next.and_then(|id| self.grants.get_mut(usize_of(id))) {
            change(grant);
            next = grant.parent.filter(|_| !fault::is(Fault::UsesNotShared));
        }
    }

    fn insert(
        &mut self,
        origin: Origin,
        holder: AgentId,
        parent: Option<GrantId>,
        depth: u32,
        authority: Authority,
        limits: Limits,
    ) -> Result<Revoker, Denial> {
        let held = self
            .holdings
            .get_mut(&holder)
            .ok_or_else(|| Denial::new(DenialCode::UnknownAgent, holder))?;
        let number = u32::try_from(self.grants.len())
            .ok()
            .filter(|_| self.grants.len() < GRANTS_MAX);
        let id = GrantId(
            number.ok_or_else(|| Denial::new(DenialCode::LimitReached, "grants in one session"))?,
        );
        held.push(id);
        self.index.file(holder, &authority, id);
        self.deadlines.push(Reverse((limits.expires_at, id)));
        let mut next_sibling = None;
        if let Some(parent) = parent.and_then(|id| self.grants.get_mut(usize_of(id))) {
            next_sibling = parent.first_child.replace(id);
        }
        self.grants.push(Grant {
            id,
            holder,
            origin,
            parent,
            first_child: None,
            next_sibling,
            depth,
            authority,
            limits,
            used: 0,
            life: Life::Stands,
        });
        Ok(Revoker { grant: id })
    }
}

/// The fixed order of reasons.
const fn order(code: DenialCode) -> u8 {
    match code {
        DenialCode::Revoked => 0,
        DenialCode::Expired => 1,
        _ => 2,
    }
}

/// An id as an index; ids are made from indices, so the widening is exact.
const fn usize_of(id: GrantId) -> usize {
    id.0 as usize
}
