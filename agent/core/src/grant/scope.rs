//! How long a yes counts, and what that makes of the grant behind it.

use super::{Lifetime, Uses};
use crate::fault::{self, Fault};
use crate::limits::{GRANT_LIFETIME_MAX, QUESTION_LIFETIME};

/// How long a yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// For what was shown, this one time.
    Once,
    /// For the same effects until the session ends: the same verbs on the names that were
    /// shown, and on nothing below them unless all of a place was shown.
    Session,
    /// For the same effects until it is confirmed again, at the latest after [`GRANT_LIFETIME_MAX`].
    Always,
}

impl Scope {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Once => "once",
            Scope::Session => "session",
            Scope::Always => "always",
        }
    }

    /// The limits of the grant a yes makes for `effects` effects.
    pub(crate) fn limits(self, effects: usize) -> (Uses, Lifetime) {
        match self {
            Scope::Once if !fault::is(Fault::OnceLasts) => (
                Uses::AtMost(u64::try_from(effects).unwrap_or(u64::MAX)),
                Lifetime::For(QUESTION_LIFETIME),
            ),
            Scope::Once | Scope::Session => (Uses::Uncounted, Lifetime::Session),
            Scope::Always => (Uses::Uncounted, Lifetime::For(GRANT_LIFETIME_MAX)),
        }
    }
}
