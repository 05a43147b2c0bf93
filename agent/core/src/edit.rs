//! Edits as a client sees them: what one would do, whether it may go ahead,
//! and what the client's answer means.
//!
//! An editor that drives the agent is shown each edit before it lands. This
//! module prepares what is shown ([`proposal`]), turns the answer into a
//! result ([`settle`]), and says what the editor's modes and answers mean
//! ([`EditMode`], [`Choice`]).
//!
//! It must never permit anything. A mode is a wish for standing grants, and an
//! answer is a wish for one; whether an edit is covered is for the monitor to
//! say, from grants, file by file. And it must never guess: an edit that
//! cannot be shown is refused, not shown in part.
mod choice;
mod gate;
mod mode;
mod proposal;

pub use choice::{Choice, Granted, JudgeVerdict, Permanence, offered, understood};
pub use gate::{Consent, Gate, GateDenial, settle};
pub use mode::{EditMode, Reach};
pub use proposal::{
    EditCall, FileFact, Files, Occurrences, Proposal, ProposalError, Replacer, proposal,
};
