//! A grant: authority in somebody's hands, for a while.
//!
//! Why not hand out the authority itself: a grant can end. Each one has a
//! deadline, may have a number of uses, knows what it was derived from, and
//! its granter keeps a [`Revoker`]. A grant never has more authority or a
//! later deadline than the one it comes from.

use core::fmt;

use crate::authority::Authority;
use crate::denial_code::DenialCode;
use crate::fault::{self, Fault};
use crate::limits::{GRANT_LIFETIME_MAX, SESSION_GRANT_LIFETIME};
use crate::time::{Instant, Millis};
use crate::tool::Tool;

pub use self::scope::Scope;

mod scope;

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
            Lifetime::For(span) if fault::is(Fault::GrantsLastForEver) => span,
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

/// How a grant came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The session's own: the right to ask and to start other agents.
    Session,
    /// The user gave it, on a command line, in a configuration or in a dialog.
    User,
    /// What the user does themselves needs it for as long as that takes, and ends it. It is
    /// for calls of this tool, whatever else runs meanwhile.
    Loan(Tool),
    /// The user said yes to a question, for this long.
    Answer(Scope),
    /// The user said yes earlier, and the same thing was asked again.
    Remembered,
    /// The session's mode allows it without asking.
    Mode,
    /// An agent made it, narrower, from one it holds.
    Agent(AgentId),
    /// An agent passed one it holds on, undiminished.
    Forwarded(AgentId),
    /// A standing grant, confirmed for this session.
    Standing(StandingId),
    /// Another program, which may go away before its grants end.
    Upstream(UpstreamId),
    /// A judge proposed it and somebody entitled to accepted.
    Proposed,
}

impl Origin {
    /// The word for it in a ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Session => "session",
            Origin::User => "user",
            Origin::Loan(_) => "loan",
            Origin::Answer(scope) => scope.as_str(),
            Origin::Remembered => "remembered",
            Origin::Mode => "mode",
            Origin::Agent(_) | Origin::Forwarded(_) => "agent",
            Origin::Standing(_) => "standing",
            Origin::Upstream(_) => "upstream",
            Origin::Proposed => "proposed",
        }
    }
}

/// A kept grant, by its number in one store. It names a record and allows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StandingId(u64);

impl StandingId {
    /// The record with this number.
    #[must_use]
    pub const fn new(number: u64) -> StandingId {
        StandingId(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for StandingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standing{}", self.0)
    }
}

/// Another program that grants, by a number the edge gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamId(pub u32);

impl fmt::Display for UpstreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upstream{}", self.0)
    }
}

/// What a list of grants says about one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It can be used.
    Live,
    /// It can be used, but whoever gave it is gone; it ends at its deadline.
    Orphaned,
    /// Its granter, or one above, ended it.
    Revoked,
    /// Its deadline has passed.
    Expired,
    /// Its uses are spent.
    Exhausted,
}

impl State {
    /// Every state.
    pub const ALL: [State; 5] = [
        State::Live,
        State::Orphaned,
        State::Revoked,
        State::Expired,
        State::Exhausted,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Orphaned => "orphaned",
            State::Revoked => "revoked",
            State::Expired => "expired",
            State::Exhausted => "exhausted",
        }
    }
}

/// Authority held by an agent, with what limits it.
#[derive(Debug)]
pub struct Grant {
    pub(crate) id: GrantId,
    pub(crate) holder: AgentId,
    pub(crate) origin: Origin,
    pub(crate) parent: Option<GrantId>,
    // INVARIANT: every grant made from this one is on the list that starts here.
    pub(crate) first_child: Option<GrantId>,
    pub(crate) next_sibling: Option<GrantId>,
    pub(crate) depth: u32,
    pub(crate) authority: Authority,
    pub(crate) limits: Limits,
    pub(crate) used: u64,
    pub(crate) life: Life,
}

/// Whether a grant was ended by its granter, and whether there still is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Stands,
    Orphaned,
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

    /// How it came to be.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
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

    /// Is its end a reason for anybody? Nobody was given what was lent.
    pub(crate) fn is_told_of(&self) -> bool {
        !matches!(self.origin, Origin::Loan(_))
    }

    /// Why this grant, seen alone, cannot be used; the strongest reason.
    pub(crate) fn refusal(&self, now: Instant) -> Option<DenialCode> {
        if self.life == Life::Revoked && !fault::is(Fault::ForgetRevocation) {
            return Some(DenialCode::Revoked);
        }
        if now > self.limits.expires_at && !fault::is(Fault::ForgetExpiry) {
            return Some(DenialCode::Expired);
        }
        match self.limits.uses {
            Uses::AtMost(limit) if self.used >= limit && !fault::is(Fault::ForgetUses) => {
                Some(DenialCode::Exhausted)
            }
            Uses::AtMost(_) | Uses::Uncounted => None,
        }
    }
}
