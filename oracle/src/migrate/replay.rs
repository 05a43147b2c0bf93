//! The recorded calls once more, through Hermes and the agent, in equal worlds.
//!
//! Calls of a session are run in the order they were made, a few at a time, in a
//! world that holds what is known of the workspace. Where the two states have
//! come apart, the rest is run in a fresh world, so that one refusal is not
//! counted once for every call after it. A call whose replay by Hermes itself
//! does not come out as it was recorded says nothing, and is counted apart.

mod asked;
mod fate;
mod files;
mod gather;
mod place;
mod run;
mod tally;
mod terms;
mod unit;

pub use asked::{Asked, Proof, reason};
pub use fate::{Class, Need, Outcome, Unreplayable, shared};
pub use files::{Workspace, Workspaces};
pub use gather::{Gather, Handed};
pub use place::{HOME, Places, WORK, told};
pub use run::Replayer;
pub use tally::{Added, Replayed, Row, Share, Tally, Wanted};
pub use terms::Terms;
pub use unit::{Unit, never};
