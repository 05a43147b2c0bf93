//! When the user is asked: the mode of a session beside the proof of its isolation.
//!
//! A mode says what becomes of an effect that nothing held covers. It never
//! reaches past a refusal that stands above every grant, and never past a rule
//! that says "ask": approving everything means everything nobody objected to.

use core::fmt;

use crate::authority::Reversibility;
use crate::isolation::Isolation;

/// What becomes of an effect that nothing held covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asking {
    /// It is allowed where that is safe, and asked about elsewhere.
    ApproveAll,
    /// Somebody is there: it is asked about.
    Prompt,
    /// Nobody is there, or nobody wants to be asked: it is refused.
    Refuse,
}

impl Asking {
    /// Every mode.
    pub const ALL: [Asking; 3] = [Asking::ApproveAll, Asking::Prompt, Asking::Refuse];

    /// The word for it in configuration and on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Asking::ApproveAll => "approve_all",
            Asking::Prompt => "prompt",
            Asking::Refuse => "reject_all",
        }
    }

    /// The mode with this word; exact spelling only.
    #[must_use]
    pub fn parse(text: &str) -> Option<Asking> {
        Asking::ALL.into_iter().find(|mode| mode.as_str() == text)
    }

    /// One line for a person.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Asking::ApproveAll => {
                "what is not held is allowed in the workspace where isolation is proved and a \
                 way back is left, until the agent has read something; it is asked about otherwise"
            }
            Asking::Prompt => "what is not held is asked about",
            Asking::Refuse => "what is not held is refused",
        }
    }

    /// The stance of this mode towards an effect of this class that nothing
    /// held covers, with this much proved about the sandbox.
    #[must_use]
    pub const fn stance(self, isolation: Isolation, class: Reversibility) -> Stance {
        match (self, isolation, class) {
            (Asking::Refuse, _, _) => Stance::Deny,
            (
                Asking::ApproveAll,
                Isolation::Isolated,
                Reversibility::Harmless | Reversibility::Undoable | Reversibility::Lossy,
            ) => Stance::Allow,
            (Asking::ApproveAll, Isolation::Isolated, Reversibility::Irrevocable)
            | (Asking::ApproveAll, Isolation::Unisolated | Isolation::Unknown, _)
            | (Asking::Prompt, _, _) => Stance::Ask,
        }
    }
}

impl fmt::Display for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is to happen, from mildest to strictest. Where several apply, the
/// strictest wins, however narrow or wide each of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stance {
    /// Go ahead.
    Allow,
    /// Ask the user.
    Ask,
    /// Refuse.
    Deny,
}

impl Stance {
    /// Every stance, mildest first.
    pub const ALL: [Stance; 3] = [Stance::Allow, Stance::Ask, Stance::Deny];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Stance::Allow => "allow",
            Stance::Ask => "ask",
            Stance::Deny => "deny",
        }
    }

    /// The stance with this word; exact spelling only.
    #[must_use]
    pub fn parse(text: &str) -> Option<Stance> {
        Stance::ALL
            .into_iter()
            .find(|stance| stance.as_str() == text)
    }
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
