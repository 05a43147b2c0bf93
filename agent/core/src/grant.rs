//! A grant: authority in somebody's hands, for a while.
//!
//! Why not hand out the authority itself: a grant can end. Each one has a
//! deadline, may have a number of uses, knows what it was derived from, and
//! its granter keeps a [`Revoker`]. A grant never has more authority or a
//! later deadline than the one it comes from.

use core::fmt;

use crate::authority::Authority;
use crate::limits::{GRANT_LIFETIME_MAX, SESSION_GRANT_LIFETIME};
use crate::outcome::DenialCode;
use crate::time::{Instant, Millis};

/// A grant, by its number in one session. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantId(pub(crate) u32);

impl GrantId {
    /// The number, for a ledger or a display.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant{}", self.0)
    }
}

/// An agent, by its number in one session. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub(crate) u32);

impl AgentId {
    /// The session's first agent.
    pub const FIRST: AgentId = AgentId(0);

    /// The number, for a ledger or a display.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent{}", self.0)
    }
}

/// How often a grant may be used. One permit is one use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uses {
    /// At most this often.
    AtMost(u64),
    /// Not limited by count; the deadline still ends it.
    Uncounted,
}

/// How long a grant lives from the moment it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// The default of a session.
    Session,
    /// This long, but never longer than [`GRANT_LIFETIME_MAX`].
    For(Millis),
}

/// When a grant ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How often it may be used.
    pub uses: Uses,
    /// The last instant at which it is valid.
    pub expires_at: Instant,
}

impl Limits {
    /// The limits of a grant made at `now`.
    #[must_use]
    pub fn starting(now: Instant, uses: Uses, lifetime: Lifetime) -> Limits {
        let span = match lifetime {
            Lifetime::Session => SESSION_GRANT_LIFETIME,
            Lifetime::For(span) => span.min(GRANT_LIFETIME_MAX),
        };
        Limits {
            uses,
            expires_at: now.after(span),
        }
    }
}

/// The right to end a grant, kept by whoever gave it.
///
/// It is neither `Clone` nor `Copy`: the granter hands it on or keeps it.
#[derive(Debug, PartialEq, Eq)]
pub struct Revoker {
    pub(crate) grant: GrantId,
}

impl Revoker {
    /// The grant it ends.
    #[must_use]
    pub const fn grant(&self) -> GrantId {
        self.grant
    }
}

/// Authority held by an agent, with what limits it.
#[derive(Debug)]
pub struct Grant {
    pub(crate) id: GrantId,
    pub(crate) holder: AgentId,
    pub(crate) parent: Option<GrantId>,
    pub(crate) depth: u32,
    pub(crate) authority: Authority,
    pub(crate) limits: Limits,
    pub(crate) used: u64,
    pub(crate) standing: Standing,
}

/// Whether a grant was ended by its granter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Stands,
    Revoked,
}

impl Grant {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> GrantId {
        self.id
    }

    /// Who may use it.
    #[must_use]
    pub const fn holder(&self) -> AgentId {
        self.holder
    }

    /// The grant it was derived from; `None` if the session's user gave it.
    #[must_use]
    pub const fn parent(&self) -> Option<GrantId> {
        self.parent
    }

    /// What it allows.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// When it ends by itself.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// How often it was used, uses through grants derived from it included.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Is it this grant, seen alone, that refuses with `code`?
    pub(crate) fn refuses_with(&self, code: DenialCode, now: Instant) -> bool {
        use crate::fault::{self, Fault};
        match code {
            DenialCode::Revoked => {
                self.standing == Standing::Revoked && !fault::is(Fault::ForgetRevocation)
            }
            DenialCode::Expired => now > self.limits.expires_at && !fault::is(Fault::ForgetExpiry),
            DenialCode::Exhausted => match self.limits.uses {
                Uses::AtMost(limit) => self.used >= limit && !fault::is(Fault::ForgetUses),
                Uses::Uncounted => false,
            },
            _ => false,
        }
    }
}
