//! Instants and spans as numbers the edge feeds in.
//!
//! Why own types: the core has no clock, and a bare `u64` can be a count, a
//! span or a point in time. Instants count milliseconds since boot on a clock
//! that runs on during suspend, so a one-minute grant does not survive a night.

use core::fmt;

/// A point in time: milliseconds since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The instant the machine started.
    pub const BOOT: Instant = Instant(0);

    /// The instant `ms` milliseconds after the machine started.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Instant {
        Instant(ms)
    }

    /// Milliseconds since the machine started.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The instant `span` later; the last representable one if there is none.
    #[must_use]
    pub const fn after(self, span: Millis) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Millis {
    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn new(ms: u64) -> Millis {
        Millis(ms)
    }

    /// A span of `seconds` seconds.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Millis {
        Millis(seconds.saturating_mul(1000))
    }

    /// A span of `minutes` minutes.
    #[must_use]
    pub const fn from_minutes(minutes: u64) -> Millis {
        Millis::from_seconds(minutes.saturating_mul(60))
    }

    /// A span of `hours` hours.
    #[must_use]
    pub const fn from_hours(hours: u64) -> Millis {
        Millis::from_minutes(hours.saturating_mul(60))
    }

    /// The number of milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}
