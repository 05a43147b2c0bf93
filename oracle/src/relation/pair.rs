//! A step as both subjects took it.

use bisim_world::protocol::Step;

use crate::observation::StepSeen;

/// What is compared.
pub(super) struct Pair<'a> {
    pub(super) step: &'a Step,
    pub(super) hermes: &'a StepSeen,
    pub(super) agent: &'a StepSeen,
    pub(super) outside_h: &'a [String],
    pub(super) outside_a: &'a [String],
}
