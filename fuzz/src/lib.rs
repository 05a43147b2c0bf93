//! What the engine is told of the comparisons a law makes.
//!
//! At each comparison the code under test can tell the engine of both values, and the engine
//! puts such values into later inputs: so it finds words nobody wrote into a dictionary. It costs
//! a third of a target's time. A law that makes its values out of choices compares nothing that
//! came from an input, and tells nothing; a law that reads text tells in one input of
//! [`EVERY`]: the engine keeps what it was told last until it is told something else.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many inputs there are to one whose comparisons are told.
const EVERY: u64 = 8;

/// Nothing is told while this is nought. Name and form are the compiler's
/// (`-sanitizer-coverage-gated-trace-callbacks`); without that option all is told, and nobody
/// reads this.
#[unsafe(no_mangle)]
static __sancov_should_track: AtomicU64 = AtomicU64::new(0);

/// For targets whose law reads text, before each input.
pub fn tell_now_and_then() {
    static INPUTS: AtomicU64 = AtomicU64::new(0);
    let input = INPUTS.fetch_add(1, Ordering::Relaxed);
    let is_told = input.is_multiple_of(EVERY);
    __sancov_should_track.store(u64::from(is_told), Ordering::Relaxed);
}
