//! Ledger records: what was asked, allowed, refused and done, as a chain.
//!
//! The session makes a record before an effect (the intent) and after it (the
//! outcome). Each carries the digest of the one before, so that a change, a
//! gap or an exchange anywhere shows in everything after it. A tail cut off
//! does not show in the chain alone: the edge publishes the head elsewhere.
//!
//! A record never holds contents, only digests of them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use crate::action::Action;
use crate::approval::{Acceptor, Asking, CallId, ProposalId, QuestionId, RememberedId, Said};
use crate::authority::{Authority, Name};
use crate::digest::{Digest, HashFn};
use crate::fault::{self, Fault};
use crate::grant::{AgentId, Grant, GrantId, Origin, UpstreamId, Uses};
use crate::limits::{ITEMS_PER_RECORD_MAX, RECORD_BYTES_USUAL};
use crate::outcome::{DenialCode, Outcome};
use crate::rules::RuleRef;
use crate::time::Instant;
use crate::tool::Tool;

/// The end of a chain: what the next record has to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the next record.
    pub next: u64,
    /// The digest of the last record; [`Digest::NONE`] before the first.
    pub digest: Digest,
}

impl Head {
    /// The head of an empty ledger.
    pub const EMPTY: Head = Head {
        next: 0,
        digest: Digest::NONE,
    };
}

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number, without gaps.
    pub seq: u64,
    /// When, on the session's clock.
    pub at: Instant,
    /// The digest of the record before.
    pub prev: Digest,
    /// What kind of entry, such as `intent`.
    pub kind: String,
    /// The entry, in one printable line.
    pub text: String,
    /// The digest of all of the above.
    pub digest: Digest,
}

impl Record {
    /// What the digest has to be.
    #[must_use]
    pub fn expected_digest(&self, hash: HashFn) -> Digest {
        let mut bytes = Vec::with_capacity(self.text.len() + self.kind.len() + 64);
        bytes.extend_from_slice(self.prev.as_bytes());
        bytes.extend_from_slice(&self.seq.to_le_bytes());
        bytes.extend_from_slice(&self.at.as_millis().to_le_bytes());
        // Lengths keep two fields from being read as one another.
        for field in [&self.kind, &self.text] {
            bytes.extend_from_slice(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
            bytes.extend_from_slice(field.as_bytes());
        }
        hash(&bytes)
    }
}

/// Why a ledger is not a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// A record is missing, repeated or out of order; the number that was due.
    Sequence(u64),
    /// The record with this number does not continue the one before.
    Broken(u64),
    /// The record with this number was changed.
    Changed(u64),
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Sequence(seq) => write!(f, "the ledger lacks record {seq} at its place"),
            ChainError::Broken(seq) => write!(
                f,
                "record {seq} of the ledger does not continue the one before"
            ),
            ChainError::Changed(seq) => write!(f, "record {seq} of the ledger was changed"),
        }
    }
}

impl core::error::Error for ChainError {}

/// Checks one record after another.
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    head: Head,
    hash: HashFn,
}

impl Verifier {
    /// Starts at the beginning of a ledger.
    #[must_use]
    pub const fn new(hash: HashFn) -> Verifier {
        Verifier {
            head: Head::EMPTY,
            hash,
        }
    }

    /// Starts behind records the caller vouches for.
    #[must_use]
    pub const fn resuming(head: Head, hash: HashFn) -> Verifier {
        Verifier { head, hash }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// It does not continue the chain; the verifier stays where it was.
    pub fn check(&mut self, record: &Record) -> Result<(), ChainError> {
        if record.seq != self.head.next {
            return Err(ChainError::Sequence(self.head.next));
        }
        if record.prev != self.head.digest {
            return Err(ChainError::Broken(record.seq));
        }
        if record.expected_digest(self.hash) != record.digest {
            return Err(ChainError::Changed(record.seq));
        }
        self.head = Head {
            next: record.seq.saturating_add(1),
            digest: record.digest,
        };
        Ok(())
    }

    /// Where the chain stands; a session can be opened with it.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }
}

/// Appends entries to a chain.
#[derive(Debug)]
pub(crate) struct Chain {
    head: Head,
    hash: HashFn,
}

impl Chain {
    pub(crate) const fn new(head: Head, hash: HashFn) -> Chain {
        Chain { head, hash }
    }

    pub(crate) const fn head(&self) -> Head {
        self.head
    }

    pub(crate) fn append(&mut self, at: Instant, entry: &Entry<'_>) -> Record {
        let line = Line {
            entry,
            hash: self.hash,
        };
        let mut text = String::with_capacity(RECORD_BYTES_USUAL);
        // Writing to a string cannot fail.
        let _written = write!(text, "{line}");
        let mut record = Record {
            seq: self.head.next,
            at,
            prev: self.head.digest,
            kind: String::from(entry.kind()),
            text,
            digest: Digest::NONE,
        };
        if fault::is(Fault::LedgerForgetsPrevious) {
            record.prev = Digest::NONE;
        }
        if !fault::is(Fault::LedgerSealsNothing) {
            record.digest = record.expected_digest(self.hash);
        }
        self.head = Head {
            next: record
                .seq
                .saturating_add(u64::from(!fault::is(Fault::LedgerCountsWrong))),
            digest: record.digest,
        };
        record
    }
}

/// What a record can say.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    Opened {
        session: u64,
    },
    Granted {
        grant: &'a Grant,
    },
    Revoked {
        grants: &'a [GrantId],
    },
    Expired {
        grants: &'a [GrantId],
    },
    Orphaned {
        upstream: UpstreamId,
        grants: &'a [GrantId],
    },
    Drained {
        grant: GrantId,
    },
    AgentsEnded {
        agents: &'a [AgentId],
    },
    Proposed {
        proposal: ProposalId,
        judge: &'a Name,
        holder: AgentId,
        authority: &'a Authority,
        digest: Digest,
    },
    /// Accepted by somebody, or (`None`) turned down.
    Settled {
        proposal: ProposalId,
        by: Option<Acceptor>,
        digest: Digest,
    },
    Remembered {
        remembered: RememberedId,
        said: Said,
        question: QuestionId,
    },
    Forgot {
        count: usize,
    },
    Asking {
        asking: Asking,
    },
    Spawned {
        parent: AgentId,
        child: AgentId,
        grants: &'a [GrantId],
    },
    Intent {
        call: CallId,
        by: AgentId,
        tool: Tool,
        actions: &'a [Action],
        grants: &'a [GrantId],
    },
    Asked {
        question: QuestionId,
        call: CallId,
        by: AgentId,
        because: DenialCode,
        digest: Digest,
    },
    Answered {
        question: QuestionId,
        reply: &'a str,
        digest: Digest,
    },
    Refused {
        call: Option<CallId>,
        code: DenialCode,
        because: Option<DenialCode>,
        rule: Option<&'a RuleRef>,
        about: &'a str,
    },
    Outcome {
        call: CallId,
        outcome: &'a Outcome,
    },
    Stopped {
        call: CallId,
    },
    Note {
        text: &'a str,
    },
    Ended,
}

impl Entry<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Entry::Opened { .. } => "opened",
            Entry::Granted { grant } => match grant.origin() {
                Origin::Agent(_) => "attenuated",
                Origin::Forwarded(_) => "forwarded",
                Origin::Session
                | Origin::User
                | Origin::Loan(_)
                | Origin::Answer(_)
                | Origin::Remembered
                | Origin::Mode
                | Origin::Standing(_)
                | Origin::Upstream(_)
                | Origin::Proposed => "granted",
            },
            Entry::Revoked { .. } => "revoked",
            Entry::Expired { .. } => "expired",
            Entry::Orphaned { .. } => "orphaned",
            Entry::Drained { .. } => "drained",
            Entry::AgentsEnded { .. } => "agents-ended",
            Entry::Proposed { .. } => "proposed",
            Entry::Settled { by: Some(_), .. } => "accepted",
            Entry::Settled { by: None, .. } => "declined",
            Entry::Remembered { .. } => "remembered",
            Entry::Forgot { .. } => "forgot",
            Entry::Asking { .. } => "asking",
            Entry::Spawned { .. } => "spawned",
            Entry::Intent { .. } => "intent",
            Entry::Asked { .. } => "asked",
            Entry::Answered { .. } => "answered",
            Entry::Refused { .. } => "refused",
            Entry::Outcome { .. } => "outcome",
            Entry::Stopped { .. } => "stopped",
            Entry::Note { .. } => "note",
            Entry::Ended => "ended",
        }
    }
}

/// An entry as text. Lists too long to spell out end in a digest of the whole list.
struct Line<'a> {
    entry: &'a Entry<'a>,
    hash: HashFn,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry {
            Entry::Opened { session } => write!(f, "session={session}"),
            Entry::Granted { grant } => {
                let (id, holder) = (grant.id(), grant.holder());
                write!(f, "{id} to {holder} by {}", grant.origin().as_str())?;
                match grant.origin() {
                    Origin::Standing(standing) => write!(f, " {standing}")?,
                    Origin::Upstream(upstream) => write!(f, " {upstream}")?,
                    Origin::Loan(tool) => write!(f, " for {tool}")?,
                    Origin::Session
                    | Origin::User
                    | Origin::Answer(_)
                    | Origin::Remembered
                    | Origin::Mode
                    | Origin::Agent(_)
                    | Origin::Forwarded(_)
                    | Origin::Proposed => {}
                }
                if let Some(from) = grant.parent() {
                    write!(f, " from {from}")?;
                }
                match grant.limits().uses {
                    Uses::AtMost(uses) => write!(f, " uses {uses}")?,
                    Uses::Uncounted => f.write_str(" uses uncounted")?,
                }
                write!(f, " until {}: ", grant.limits().expires_at)?;
                self.list(f, grant.authority().caps())
            }
            Entry::Revoked { grants } | Entry::Expired { grants } => self.list(f, grants),
            Entry::Orphaned { upstream, grants } => {
                write!(f, "{upstream}: ")?;
                self.list(f, grants)
            }
            Entry::Drained { grant } => write!(f, "{grant}"),
            Entry::AgentsEnded { agents } => self.list(f, agents),
            Entry::Proposed {
                proposal,
                judge,
                holder,
                authority,
                digest,
            } => {
                write!(f, "{proposal} by {judge} for {holder} shown {digest}: ")?;
                self.list(f, authority.caps())
            }
            Entry::Settled {
                proposal,
                by,
                digest,
            } => {
                match by {
                    Some(Acceptor::User) => write!(f, "{proposal} by user")?,
                    Some(Acceptor::Holder { agent, from }) => {
                        write!(f, "{proposal} by {agent} from {from}")?;
                    }
                    None => write!(f, "{proposal}")?,
                }
                write!(f, " shown {digest}")
            }
            Entry::Remembered {
                remembered,
                said,
                question,
            } => write!(f, "{remembered} {} to {question}", said.as_str()),
            Entry::Forgot { count } => write!(f, "{count}"),
            Entry::Asking { asking } => write!(f, "{asking}"),
            Entry::Spawned {
                parent,
                child,
                grants,
            } => {
                write!(f, "{child} by {parent} with ")?;
                self.list(f, grants)
            }
            Entry::Intent {
                call,
                by,
                tool,
                actions,
                grants,
            } => {
                write!(f, "{call} by {by} {tool} from ")?;
                self.list(f, grants)?;
                f.write_str(": ")?;
                self.list(f, actions)
            }
            Entry::Asked {
                question,
                call,
                by,
                because,
                digest,
            } => {
                write!(
                    f,
                    "{question} for {call} by {by} because {because} shown {digest}"
                )
            }
            Entry::Answered {
                question,
                reply,
                digest,
            } => write!(f, "{question} {reply} shown {digest}"),
            Entry::Refused {
                call,
                code,
                because,
                rule,
                about,
            } => {
                match call {
                    Some(call) => write!(f, "{call} {code}")?,
                    None => write!(f, "{code}")?,
                }
                if let Some(because) = because {
                    write!(f, " because {because}")?;
                }
                if let Some(rule) = rule {
                    write!(f, " by {rule}")?;
                }
                write!(f, ": {about}")
            }
            Entry::Outcome { call, outcome } => match outcome {
                Outcome::Done(digest) => write!(f, "{call} done {digest}"),
                Outcome::Discarded(code) => write!(f, "{call} discarded {code}"),
                Outcome::Refused(code) => write!(f, "{call} refused {code}"),
                Outcome::TimedOut | Outcome::Stopped | Outcome::Failed => {
                    write!(f, "{call} {}", outcome.as_str())
                }
            },
            Entry::Stopped { call } => write!(f, "{call}"),
            Entry::Note { text } => f.write_str(text),
            Entry::Ended => Ok(()),
        }
    }
}

impl Line<'_> {
    fn list<T: fmt::Display>(&self, f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
        for (place, item) in items.iter().take(ITEMS_PER_RECORD_MAX).enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        let more = items.len().saturating_sub(ITEMS_PER_RECORD_MAX);
        if more > 0 {
            let mut all = String::new();
            for item in items {
                writeln!(all, "{item}")?;
            }
            write!(f, " and {more} more, all {}", (self.hash)(all.as_bytes()))?;
        }
        Ok(())
    }
}
