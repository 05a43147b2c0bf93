//! Grants that somebody without authority proposes.
//!
//! A judge (a model that looks at what another one wants) may say what grant
//! would be fitting. That is text until a person, or a holder who passes on
//! part of what it holds, accepts exactly what was shown. There is no way to
//! name the judge as the one who accepts.

use alloc::string::String;
use core::fmt::{self, Write as _};

use crate::authority::{Authority, Name};
use crate::digest::{Digest, HashFn};
use crate::grant::{AgentId, GrantId, Lifetime, Uses};
use crate::time::Instant;

/// A proposal, by its number in one session. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposalId(pub(crate) u32);

impl ProposalId {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proposal{}", self.0)
    }
}

/// What is proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposalSpec {
    /// Who proposes it.
    pub judge: Name,
    /// Who would hold it.
    pub holder: AgentId,
    /// What it would allow.
    pub authority: Authority,
    /// How often.
    pub uses: Uses,
    /// How long.
    pub lifetime: Lifetime,
}

/// A proposal as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub(crate) id: ProposalId,
    pub(crate) spec: ProposalSpec,
    pub(crate) digest: Digest,
    pub(crate) open_until: Instant,
}

impl Proposal {
    /// Its id, which an acceptance repeats.
    #[must_use]
    pub const fn id(&self) -> ProposalId {
        self.id
    }

    /// What is proposed.
    #[must_use]
    pub const fn spec(&self) -> &ProposalSpec {
        &self.spec
    }

    /// The digest of what is shown, which an acceptance repeats.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn digest_of(hash: HashFn, id: ProposalId, spec: &ProposalSpec) -> Digest {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{id} {} for {}", spec.judge, spec.holder);
        let _ = writeln!(text, "{:?} {:?}", spec.uses, spec.lifetime);
        for cap in spec.authority.caps() {
            let _ = writeln!(text, "{cap}");
        }
        hash(text.as_bytes())
    }
}

/// Who accepts a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acceptor {
    /// The session's user, to whom it was shown.
    User,
    /// A holder, who passes on part of this grant.
    Holder {
        /// Who.
        agent: AgentId,
        /// Which of its grants.
        from: GrantId,
    },
}
