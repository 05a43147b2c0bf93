//! Refusals and outcomes: what a call came to.
//!
//! A [`Denial`] is a normal result with a stable code, not an error. Tests,
//! the oracle and other programs compare the codes, never the prose, so a
//! code is never renamed. A denial must never hint at another way to get the
//! same effect.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::authority::{AuthorityError, Cap};
use crate::digest::Digest;
use crate::escape::bounded;
use crate::rule_ref::RuleRef;

pub use crate::denial_code::DenialCode;

/// A refusal: a code, what it is about, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    code: DenialCode,
    because: Option<DenialCode>,
    rule: Option<RuleRef>,
    about: String,
    // Behind a pointer: a refusal is the other side of most results.
    more: Option<Box<More>>,
}

/// What few refusals have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct More {
    cap: Option<Cap>,
    beside: String,
}

impl Denial {
    /// A refusal of `about`, which is escaped and cut to a bounded length.
    #[must_use]
    pub fn new(code: DenialCode, about: impl fmt::Display) -> Denial {
        Denial {
            code,
            because: None,
            rule: None,
            about: bounded(about),
            more: None,
        }
    }

    /// A refusal of one capability. Its place is named by the session's own name until
    /// somebody who knows a better one says it ([`Denial::said_as`]).
    #[must_use]
    pub(crate) fn of(code: DenialCode, cap: &Cap) -> Denial {
        let more = More {
            cap: Some(cap.clone()),
            ..More::default()
        };
        Denial {
            more: Some(Box::new(more)),
            ..Denial::new(code, cap.asked())
        }
    }

    /// The same refusal in words its reader knows; they are escaped and bounded.
    #[must_use]
    pub fn said_as(mut self, about: impl fmt::Display) -> Denial {
        self.about = bounded(about);
        self
    }

    /// The same refusal, with what helps its reader and is no part of what was refused.
    #[must_use]
    pub fn beside(mut self, what: impl fmt::Display) -> Denial {
        self.more.get_or_insert_default().beside = bounded(what);
        self
    }

    /// The one capability it is about, if it is about one.
    #[must_use]
    pub fn cap(&self) -> Option<&Cap> {
        self.more.as_ref()?.cap.as_ref()
    }

    /// The same refusal, saying what had led to the question or check that failed.
    #[must_use]
    pub fn because(mut self, code: DenialCode) -> Denial {
        self.because = Some(code);
        self
    }

    /// The same refusal, naming the rule behind it.
    #[must_use]
    pub fn by_rule(mut self, rule: RuleRef) -> Denial {
        self.rule = Some(rule);
        self
    }

    /// The rule behind it, if it was a rule.
    #[must_use]
    pub const fn rule(&self) -> Option<&RuleRef> {
        self.rule.as_ref()
    }

    /// Why it was refused.
    #[must_use]
    pub const fn code(&self) -> DenialCode {
        self.code
    }

    /// What made it necessary to ask, if the user was asked.
    #[must_use]
    pub const fn cause(&self) -> Option<DenialCode> {
        self.because
    }

    /// What was refused; printable, may be empty.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.wording())?;
        if !self.about.is_empty() {
            write!(f, ": `{}`", self.about)?;
        }
        let beside = self.more.as_ref().map(|more| more.beside.as_str());
        if let Some(beside) = beside.filter(|beside| !beside.is_empty()) {
            write!(f, " ({beside})")?;
        }
        Ok(())
    }
}

impl From<AuthorityError> for Denial {
    fn from(error: AuthorityError) -> Denial {
        Denial::new(error.code(), error)
    }
}

/// What happened when a call's permits were spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, and its effects stand; the digest names the result.
    Done(Digest),
    /// It ran on the view, and its effects were thrown away.
    Discarded(DenialCode),
    /// The edge refused it after the permit was made (containment, kind of file, staleness).
    Refused(DenialCode),
    /// It ran out of time and was killed with everything it started.
    TimedOut,
    /// A revocation, the user or the end of the session stopped it.
    Stopped,
    /// The machinery failed; the effect may or may not have begun.
    Failed,
}

impl Outcome {
    /// The stable spelling of the kind of outcome.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Outcome::Done(_) => "done",
            Outcome::Discarded(_) => "discarded",
            Outcome::Refused(_) => "refused",
            Outcome::TimedOut => "timed-out",
            Outcome::Stopped => "stopped",
            Outcome::Failed => "failed",
        }
    }
}
