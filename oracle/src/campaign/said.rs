//! What a guard says of a command.

use serde::{Deserialize, Serialize};

/// Before it runs, and without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// It may run, and nobody is asked.
    Permit,
    /// Its user is asked.
    Ask,
    /// It is refused, whoever there is to ask.
    Deny,
}

impl Said {
    /// Its word in counts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    pub(in crate::campaign) const fn of_letter(letter: char) -> Option<Self> {
        match letter {
            'p' => Some(Self::Permit),
            'a' => Some(Self::Ask),
            'd' => Some(Self::Deny),
            _ => None,
        }
    }
}
