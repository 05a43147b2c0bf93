//! How much laws have looked at: one input of many is a whole sequence.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a fuzz target says before their number, at its end.
pub const STEPS_TOLD: &str = "law::steps: ";

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Adds what one input came to.
pub(super) fn add(steps: u64) {
    STEPS.fetch_add(steps, Ordering::Relaxed);
}

/// What all inputs of this process came to, as far as their laws count it ([`super::Law::step`]).
#[must_use]
pub fn steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}
