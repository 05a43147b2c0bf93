//! What became of the steps.

use alloc::{string::String, vec::Vec};

use crate::plan::rule::Failure;

/// What became of one step, in one turn of the loops around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub step: String,
    /// The turns of the loops around it, outermost first, from nought.
    pub at: Vec<usize>,
    /// What became of it.
    pub status: Status,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was done.
    Done,
    /// It was so already, and nothing was done.
    Already,
    /// It failed.
    Failed(Failure),
    /// It was not tried, because this step before it came to nothing.
    Skipped(String),
}

impl Status {
    /// The word for it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::Already => "already so",
            Status::Failed(Failure::Refused) => "refused",
            Status::Failed(_) => "failed",
            Status::Skipped(_) => "skipped",
        }
    }
}
