//! Questions to the user, and what the answers are worth.
//!
//! A question carries a digest of everything shown: who asks, with which
//! tool, for which effects with which contents. An answer repeats it; an
//! answer to anything else is void. Only the words offered count as yes.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use crate::action::Action;
use crate::digest::{Digest, HashFn};
use crate::fault::{self, Fault};
use crate::grant::AgentId;
use crate::outcome::DenialCode;
use crate::time::Instant;
use crate::tool::Tool;

pub use self::memory::{Memory, Remembered, RememberedId, Said};
pub use self::mode::{Asking, Stance};
pub use self::proposal::{Acceptor, Proposal, ProposalId, ProposalSpec};
pub use crate::grant::Scope;

mod memory;
mod mode;
mod proposal;

/// A tool call, by its number in one session. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

impl CallId {
    /// The number, for a ledger or a display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call{}", self.0)
    }
}

/// A question, by its number in one session. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub(crate) u64);

impl QuestionId {
    /// The number, for a ledger or a display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "question{}", self.0)
    }
}

/// What is put to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub(crate) id: QuestionId,
    pub(crate) call: CallId,
    pub(crate) by: AgentId,
    pub(crate) tool: Tool,
    pub(crate) because: DenialCode,
    pub(crate) actions: Vec<Action>,
    pub(crate) uncovered: Vec<usize>,
    pub(crate) widest: Scope,
    pub(crate) is_after_reading: bool,
    pub(crate) digest: Digest,
    pub(crate) open_until: Instant,
}

impl Question {
    /// Its id, which an answer repeats.
    #[must_use]
    pub const fn id(&self) -> QuestionId {
        self.id
    }

    /// The call that waits for it.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// The agent that asks.
    #[must_use]
    pub const fn by(&self) -> AgentId {
        self.by
    }

    /// The tool it asks for.
    #[must_use]
    pub const fn tool(&self) -> Tool {
        self.tool
    }

    /// Why it has to ask.
    #[must_use]
    pub const fn because(&self) -> DenialCode {
        self.because
    }

    /// Everything the call would do.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The part of it that nothing held covers.
    pub fn uncovered(&self) -> impl Iterator<Item = &Action> {
        self.uncovered
            .iter()
            .filter_map(|place| self.actions.get(*place))
    }

    /// The longest scope a yes can have here.
    #[must_use]
    pub const fn widest(&self) -> Scope {
        self.widest
    }

    /// Whether a part of it is granted, and is asked about for what has been read since:
    /// nobody who answered before it was read answered that.
    #[must_use]
    pub const fn is_after_reading(&self) -> bool {
        self.is_after_reading
    }

    /// The digest of what is shown, which an answer repeats.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of what this question shows; equal for equal questions only.
    pub(crate) fn digest_of(hash: HashFn, question: &Question) -> Digest {
        let mut text = String::new();
        // Writing to a string cannot fail. One item a line; items never hold a line end.
        let _ = writeln!(
            text,
            "{} {} {} {}",
            question.id, question.call, question.by, question.tool
        );
        let _ = writeln!(text, "{} {}", question.because, question.widest.as_str());
        for (place, action) in question.actions.iter().enumerate() {
            let mark = if question.uncovered.binary_search(&place).is_ok() {
                "asked"
            } else {
                "held"
            };
            let _ = writeln!(text, "{mark} {action}");
        }
        if fault::is(Fault::QuestionsShareADigest) {
            text.clear();
        }
        hash(text.as_bytes())
    }
}

/// What came back from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Yes.
    Yes(Scope),
    /// No.
    No,
    /// Words that were not offered.
    Unknown(String),
    /// Nothing, in time.
    Silence,
    /// The dialog was closed.
    Cancelled,
    /// The dialog broke.
    Failed,
}

impl Reply {
    /// Reads one of the words offered: `once`, `session`, `always`, `deny`. Exact spelling only.
    #[must_use]
    pub fn parse(text: &str) -> Reply {
        match text {
            "once" => Reply::Yes(Scope::Once),
            "session" => Reply::Yes(Scope::Session),
            "always" => Reply::Yes(Scope::Always),
            "deny" => Reply::No,
            _ => Reply::Unknown(String::from(text)),
        }
    }

    /// The scope of a yes, or the code of the refusal.
    ///
    /// # Errors
    /// `rejected-by-user`, `unknown-answer`, `no-answer`.
    pub fn verdict(&self) -> Result<Scope, DenialCode> {
        match self {
            Reply::Yes(scope) => Ok(*scope),
            Reply::No if fault::is(Fault::NoIsYes) => Ok(Scope::Once),
            Reply::Silence if fault::is(Fault::SilenceIsYes) => Ok(Scope::Once),
            Reply::Cancelled if fault::is(Fault::CancelIsYes) => Ok(Scope::Once),
            Reply::Failed if fault::is(Fault::FailureIsYes) => Ok(Scope::Once),
            Reply::No => Err(DenialCode::RejectedByUser),
            Reply::Unknown(_) if fault::is(Fault::UnknownAnswerIsYes) => Ok(Scope::Once),
            Reply::Unknown(_) => Err(DenialCode::UnknownAnswer),
            Reply::Silence | Reply::Cancelled | Reply::Failed => Err(DenialCode::NoAnswer),
        }
    }

    /// The word for it in a ledger.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Reply::Yes(scope) => scope.as_str(),
            Reply::No => "deny",
            Reply::Unknown(_) => "unknown",
            Reply::Silence => "silence",
            Reply::Cancelled => "cancelled",
            Reply::Failed => "failed",
        }
    }
}

/// An answer, bound to what was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which question.
    pub question: QuestionId,
    /// The digest of what the user saw.
    pub digest: Digest,
    /// What they said.
    pub reply: Reply,
}
