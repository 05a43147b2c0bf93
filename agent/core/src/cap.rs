//! The table of everything held: who has which grant, derived from which.
//!
//! The derivation tree has one owner, so revoking a grant and everything
//! that came from it is one operation on one value. A new agent's list is
//! empty; the only ways to fill it are a grant by the session's user and a
//! forward, by name, of a grant its parent holds.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::authority::{Authority, Cap};
use crate::grant::{AgentId, Grant, GrantId, Limits, Revoker, Standing};
use crate::limits::{AGENTS_MAX, DERIVATION_DEPTH_MAX, GRANTS_MAX};
use crate::outcome::{Denial, DenialCode};
use crate::time::Instant;

/// Everything held in one session.
#[derive(Debug)]
pub struct CapTable {
    // INVARIANT: a grant's id is its index, and its parent's id is smaller.
    grants: Vec<Grant>,
    // INVARIANT: one entry per agent; lists grants held, oldest first.
    holdings: BTreeMap<AgentId, Vec<GrantId>>,
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
                "agents in one session",
            ));
        }
        let number = u32::try_from(self.holdings.len())
            .map_err(|_| Denial::new(DenialCode::LimitReached, "agents"))?;
        let agent = AgentId(number);
        self.holdings.insert(agent, Vec::new());
        Ok(agent)
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
        self.insert(holder, None, 0, authority, limits)
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
        let from = self.find(parent)?;
        if from.holder != by {
            return Err(Denial::new(DenialCode::NoCap, parent));
        }
        self.usable(parent, now)
            .map_err(|code| Denial::new(code, parent))?;
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
            expires_at: limits.expires_at.min(from.limits.expires_at),
        };
        self.insert(holder, Some(parent), depth, authority, limits)
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
        self.attenuate(by, parent, holder, authority, limits, now)
    }

    /// Ends a grant and all that were derived from it, at once and for good.
    ///
    /// Returns the ids of all grants that this call ended. Calling it again is
    /// harmless and ends nothing.
    pub fn revoke(&mut self, revoker: &Revoker) -> Vec<GrantId> {
        let mut ended: Vec<GrantId> = Vec::new();
        // A parent's id is smaller than its children's, so one pass reaches them all.
        for grant in self.grants.iter_mut().skip(usize_of(revoker.grant)) {
            let reached = grant.id == revoker.grant
                || grant
                    .parent
                    .is_some_and(|parent| ended.binary_search(&parent).is_ok());
            if reached && grant.standing == Standing::Stands {
                grant.standing = Standing::Revoked;
                ended.push(grant.id);
            }
        }
        ended
    }

    /// Ends every grant there is. Returns those that this call ended.
    pub fn revoke_all(&mut self) -> Vec<GrantId> {
        let standing = self
            .grants
            .iter_mut()
            .filter(|grant| grant.standing == Standing::Stands);
        standing
            .map(|grant| {
                grant.standing = Standing::Revoked;
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
        for code in [
            DenialCode::Revoked,
            DenialCode::Expired,
            DenialCode::Exhausted,
        ] {
            if self.lineage(id).any(|grant| grant.refuses_with(code, now)) {
                return Err(code);
            }
        }
        Ok(())
    }

    /// The grant with which `by` may do `cap` now.
    ///
    /// A grant that is not counted is preferred to one that is; among equals
    /// the oldest wins, so that the choice does not depend on anything else.
    ///
    /// # Errors
    /// `no-cap` if none ever covered it; otherwise why the newest that covers it is dead.
    pub fn choose(&self, by: AgentId, cap: &Cap, now: Instant) -> Result<GrantId, DenialCode> {
        let mut counted = None;
        let mut dead = DenialCode::NoCap;
        for grant in self
            .held_by(by)
            .filter(|grant| grant.authority.covers_cap(cap))
        {
            match self.usable(grant.id, now) {
                Ok(()) if !self.is_counted(grant.id) => return Ok(grant.id),
                Ok(()) => counted = counted.or(Some(grant.id)),
                Err(code) => dead = code,
            }
        }
        counted.ok_or(dead)
    }

    /// Charges one use to a grant and all it comes from.
    pub(crate) fn charge(&mut self, id: GrantId) {
        self.each_in_lineage(id, |grant| grant.used = grant.used.saturating_add(1));
    }

    /// Takes a charge back. Only for charges for which no permit was made.
    pub(crate) fn uncharge(&mut self, id: GrantId) {
        self.each_in_lineage(id, |grant| grant.used = grant.used.saturating_sub(1));
    }

    /// Does `id` come from `ancestor`, or is it the same?
    #[must_use]
    pub fn descends(&self, id: GrantId, ancestor: GrantId) -> bool {
        self.lineage(id).any(|grant| grant.id == ancestor)
    }

    fn is_counted(&self, id: GrantId) -> bool {
        self.lineage(id).any(|grant| match grant.limits.uses {
            crate::grant::Uses::AtMost(_) => true,
            crate::grant::Uses::Uncounted => false,
        })
    }

    fn find(&self, id: GrantId) -> Result<&Grant, Denial> {
        self.get(id)
            .ok_or_else(|| Denial::new(DenialCode::UnknownGrant, id))
    }

    fn lineage(&self, id: GrantId) -> impl Iterator<Item = &Grant> {
        core::iter::successors(self.get(id), |grant| {
            grant.parent.and_then(|parent| self.get(parent))
        })
    }

    fn each_in_lineage(&mut self, id: GrantId, change: impl Fn(&mut Grant)) {
        let mut next = Some(id);
        while let Some(grant) = next.and_then(|id| self.grants.get_mut(usize_of(id))) {
            change(grant);
            next = grant.parent;
        }
    }

    fn insert(
        &mut self,
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
        self.grants.push(Grant {
            id,
            holder,
            parent,
            depth,
            authority,
            limits,
            used: 0,
            standing: Standing::Stands,
        });
        Ok(Revoker { grant: id })
    }
}

/// An id as an index; ids are made from indices, so the widening is exact.
const fn usize_of(id: GrantId) -> usize {
    id.0 as usize
}
