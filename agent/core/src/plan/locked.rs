//! The plan after the check: locked.
//!
//! Its fields are private and nothing changes them. Only [`super::check()`]
//! makes one.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};

use super::{
    draft::Step,
    level::Level,
    signature::{FlowRules, Toolbox},
};
use crate::authority::{Name, Verb};

/// A checked plan.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) summary: String,
    pub(super) steps: Arc<[Step]>,
    pub(super) numbers: BTreeMap<String, u8>,
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) rules: FlowRules,
    pub(super) calls_at_most: u64,
    pub(super) wants: Vec<Want>,
    pub(super) fed: Vec<Notice>,
    pub(super) notices: Vec<Notice>,
}

/// What a step needs to be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The step.
    pub step: String,
    /// The verb.
    pub verb: Verb,
    /// On what, where the plan itself says; `None` where data will.
    pub on: Option<String>,
}

/// What a person should know before approving: data will decide this, or be
/// seen by somebody for whom it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The step.
    pub step: String,
    /// Its argument; `None` for whether the step happens at all.
    pub argument: Option<String>,
    /// How far what decides can be trusted at worst.
    pub level: Level,
    /// The steps it comes from directly.
    pub from: Vec<String>,
    /// Who would see the data and may not; `None` where it would decide.
    pub unseen: Option<Unseen>,
}

/// Data would come before the eyes of somebody for whom it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// Whose.
    pub seer: Seer,
    /// For whom it is.
    pub only_for: BTreeSet<Name>,
}

/// Who would see something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seer {
    /// This reader.
    Reader(String),
    /// Whoever this argument will name once there is data.
    NamedBy(String),
}

impl Plan {
    /// What it is for, in the planner's words.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The steps, to show them.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What may be called.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// A step's number, counted from nought through all blocks.
    #[must_use]
    pub fn number(&self, step: &str) -> Option<u8> {
        self.numbers.get(step).copied()
    }

    /// The step with a number.
    #[must_use]
    pub fn named(&self, number: u8) -> Option<&str> {
        self.numbers
            .iter()
            .find(|(_, known)| **known == number)
            .map(|(name, _)| name.as_str())
    }

    /// No run of it makes more calls.
    #[must_use]
    pub const fn calls_at_most(&self) -> u64 {
        self.calls_at_most
    }

    /// What has to be held for all of it.
    #[must_use]
    pub fn wants(&self) -> &[Want] {
        &self.wants
    }

    /// Each argument of a call that changes something which the plan does not
    /// write itself: how far it can be trusted at worst, and where it is from.
    /// Most of it is asked about by nobody.
    #[must_use]
    pub fn fed(&self) -> &[Notice] {
        &self.fed
    }

    /// What data will decide.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// What counts as data steering a call.
    #[must_use]
    pub const fn rules(&self) -> FlowRules {
        self.rules
    }
}
