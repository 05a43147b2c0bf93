//! The end of a subject and another start: what becomes of what it keeps, and what
//! it was in the middle of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;

/// An end without a word, and another start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// What becomes of what it keeps; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// Whether the person has it put in order before the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
    /// What it was doing at the end; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<Box<Cut>>,
}

/// A call that is cut off: the program is killed in the middle of it. A subject that is
/// not killed makes the whole call, and is started again all the same. Whoever is asked
/// meanwhile says no; afterwards a user has only the last of their words left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// A call or a probe.
    pub step: Step,
    /// Right before this system call that changes files, counted from 1; where there are
    /// fewer, once the call has ended and before anybody is told.
    pub before: u32,
}

impl Restart {
    /// Whether what the user said "always" to still counts afterwards.
    #[must_use]
    pub fn keeps_answers(&self) -> bool {
        match &self.damage {
            None => true,
            // Answers hold by themselves once the person has put the record in order.
            Some(damage) => damage.of == Kept::Ledger && self.repair,
        }
    }
}

/// What became of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// What it befell.
    pub of: Kept,
    /// What befell it.
    pub how: Harm,
}

/// What a subject keeps on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Answers that outlive a session: the agent's store, Hermes' settings.
    Answers,
    /// What was done, and by what right.
    Ledger,
    /// What the agent's store is sealed with.
    Key,
    /// How far the agent's store and ledger were known to reach.
    Anchor,
    /// The machine itself.
    Machine,
}

/// What can befall it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// It is gone.
    Missing,
    /// Nothing is in it.
    Empty,
    /// The second half is gone.
    HalfGone,
    /// The last bytes are gone, as if writing them had been cut off.
    CutOff,
    /// Its last line is gone, whole.
    LastLineGone,
    /// One bit in each stretch of 512 bytes is another.
    BitsFlipped,
    /// Everybody may read and write it.
    OpenToAll,
    /// A symbolic link to it stands in its place.
    Linked,
    /// A directory stands in its place.
    Directory,
    /// The person took the answers back.
    Withdrawn,
    /// The person took the answers back, and an older copy was put in its place.
    RolledBack,
    /// The disk takes nothing more of it from then on.
    Full,
    /// The machine was started again.
    Rebooted,
    /// A month and a day went by.
    MonthLater,
}
