//! What this package takes from its surroundings without being handed it:
//! the clock, and which process this is.

use hermitcrab_core::time::Instant;

/// Milliseconds since the machine started, suspend included.
pub(crate) fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let millis = u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000;
    Instant::from_millis(seconds.saturating_mul(1000).saturating_add(millis))
}

/// This process.
pub(crate) fn process() -> u32 {
    std::process::id()
}
