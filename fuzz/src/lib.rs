//! What the engine is told of the comparisons a law makes, and what a target tells at its end.
//!
//! At each comparison the code under test can tell the engine of both values, and the engine
//! puts such values into later inputs: so it finds words nobody wrote into a dictionary. It costs
//! a third of a target's time. A law that makes its values out of choices compares nothing that
//! came from an input, and tells nothing; a law that reads text tells in one input of
//! [`EVERY`]: the engine keeps what it was told last until it is told something else.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many inputs there are to one whose comparisons are told.
const EVERY: u64 = 8;

/// Nothing is told while this is nought. Name and form are the compiler's
/// (`-sanitizer-coverage-gated-trace-callbacks`); without that option all comparisons of numbers
/// are told. It stands in the section the compiler puts it in: the address sanitizer lets a
/// variable with such a section be, and would else guard the bytes behind another module's copy,
/// which are the engine's counters.
#[unsafe(no_mangle)]
#[unsafe(link_section = "__sancov_gate")]
static __sancov_should_track: AtomicU64 = AtomicU64::new(0);

/// For targets whose law reads text, before each input.
pub fn tell_now_and_then() {
    static INPUTS: AtomicU64 = AtomicU64::new(0);
    let input = INPUTS.fetch_add(1, Ordering::Relaxed);
    let is_told = input.is_multiple_of(EVERY);
    __sancov_should_track.store(u64::from(is_told), Ordering::Relaxed);
}

/// For targets whose law counts steps: at the end of the process, how many there were.
pub fn tell_steps() {
    extern "C" fn tell() {
        eprintln!("{}{}", bisim::law::STEPS_TOLD, bisim::law::steps());
    }
    // SAFETY: the function takes nothing and lives as long as the program.
    if unsafe { atexit(tell) } != 0 {
        eprintln!("the steps will not be told: no room for another function at the end");
    }
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;

    /// The engine's own, by the name the linker gives it (`build.rs`).
    fn __real___sanitizer_weak_hook_memcmp(
        caller: *mut c_void,
        one: *const c_void,
        other: *const c_void,
        bytes: usize,
        result: c_int,
    );
    fn __real___sanitizer_cov_trace_pc_indir(callee: usize);
}

/// What the engine's `memcmp` and `bcmp` call after each comparison of memory, which the
/// compiler's gate does not stand before.
#[unsafe(no_mangle)]
extern "C" fn __wrap___sanitizer_weak_hook_memcmp(
    caller: *mut c_void,
    one: *const c_void,
    other: *const c_void,
    bytes: usize,
    result: c_int,
) {
    if __sancov_should_track.load(Ordering::Relaxed) != 0 {
        // SAFETY: what this was called with is what that takes; the linker put one in the place
        // of the other.
        unsafe { __real___sanitizer_weak_hook_memcmp(caller, one, other, bytes, result) }
    }
}

/// What code calls before it calls a function it found in a value, which the compiler's gate does
/// not stand before either. The engine uses what it is told only where it is run with
/// `-use_value_profile=1`, and then may take this for the caller.
#[unsafe(no_mangle)]
extern "C" fn __wrap___sanitizer_cov_trace_pc_indir(callee: usize) {
    if __sancov_should_track.load(Ordering::Relaxed) != 0 {
        // SAFETY: as above.
        unsafe { __real___sanitizer_cov_trace_pc_indir(callee) }
    }
}
