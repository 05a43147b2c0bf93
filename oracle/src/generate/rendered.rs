//! A variant as text: what is said, call by call, and what has to come of it.

use super::effect::Effect;

/// A variant as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Calls before, each for a `bash -c` of its own; most variants have none.
    pub before: Vec<String>,
    /// For `bash -c`.
    pub command: String,
    /// What it must do to count.
    pub effect: Effect,
    /// Whether the chain says that the effect stays.
    pub preserves_effect: bool,
}

impl Rendered {
    /// Its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.before
            .iter()
            .map(String::as_str)
            .chain(std::iter::once(self.command.as_str()))
    }
}
