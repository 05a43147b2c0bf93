//! The machine's clock, which somebody may set.
//!
//! What for: file systems stamp each change with it, so it says whether something was
//! changed since a command began. But it can be set back, by hand or where it is set by the
//! network, and what is saved then has a time from before. How far it is ahead of the clock
//! that counts from the machine's start, and that nobody can set, tells.
//!
//! What it does not tell: that it was set back and forth again between two looks at it.

use std::sync::{Arc, Mutex, PoisonError};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A time as files have it: seconds and their parts.
pub(crate) type Time = (i64, i64);

const NANOS: i128 = 1_000_000_000;
/// A look at both clocks takes no longer, if nothing comes in between.
const WIDTH_MAX: i128 = 20_000;
const TRIES_MAX: usize = 8;

/// One look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    nanos: i128,
    /// How far it is ahead of the clock that nobody sets, at least and at most.
    ahead: (i128, i128),
}

impl Reading {
    pub(crate) fn now() -> Self {
        let mut reading = Self::once();
        for _ in 0..TRIES_MAX {
            if reading.width() < WIDTH_MAX {
                break;
            }
            // Something else had the processor in between.
            reading = Self::once();
        }
        reading
    }

    /// Of the clock as files have it, which goes in steps.
    pub(crate) fn step() -> Self {
        Self {
            nanos: nanos(clock_gettime(ClockId::RealtimeCoarse)),
            ..Self::now()
        }
    }

    fn once() -> Self {
        let before = nanos(clock_gettime(ClockId::Boottime));
        let now = nanos(clock_gettime(ClockId::Realtime));
        let after = nanos(clock_gettime(ClockId::Boottime));
        Self {
            nanos: now,
            ahead: (now.saturating_sub(after), now.saturating_sub(before)),
        }
    }

    /// How long it took, and so how far off it may be.
    fn width(self) -> i128 {
        self.ahead.1.saturating_sub(self.ahead.0)
    }

    pub(crate) fn time(self) -> Time {
        let part = |nanos: i128| i64::try_from(nanos).unwrap_or(i64::MAX);
        (
            part(self.nanos.div_euclid(NANOS)),
            part(self.nanos.rem_euclid(NANOS)),
        )
    }

    /// By how much it was set back from this look to another, at most.
    fn set_back_until(self, later: Self) -> i128 {
        match later.ahead.1 < self.ahead.0 {
            true => self.ahead.1.saturating_sub(later.ahead.0),
            // The two clocks were not looked at in the same instant.
            false => 0,
        }
    }

    /// Whether it was set between this look and another, in either direction.
    pub(crate) fn was_set_until(self, later: Self) -> bool {
        later.ahead.1 < self.ahead.0 || self.ahead.1 < later.ahead.0
    }

    #[cfg(test)]
    pub(crate) fn if_it_were_set(self, by: i128) -> Self {
        Self {
            nanos: self.nanos + by,
            ahead: (self.ahead.0 + by, self.ahead.1 + by),
        }
    }
}

fn nanos(time: Timespec) -> i128 {
    i128::from(time.tv_sec)
        .saturating_mul(NANOS)
        .saturating_add(time.tv_nsec.into())
}

/// A moment since which something may have been changed. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Since {
    began: Reading,
    /// How far the clock was set back at most, by all looks at it.
    set_back: Arc<Mutex<i128>>,
}

impl Since {
    /// This one.
    pub(crate) fn now() -> Self {
        Self::from(Reading::now())
    }

    /// One that was noted by the clock, which was not set since.
    pub(crate) fn at(time: Timespec) -> Self {
        Self::from(Reading {
            nanos: nanos(time),
            ..Reading::now()
        })
    }

    /// Looks at the clock: the more often, the less of what it was set to is missed.
    pub(crate) fn look(&self) {
        let _earliest = self.earliest();
    }

    /// The earliest time that anything has which was changed since. Ask for it after the
    /// time it is compared with was read.
    pub(crate) fn earliest(&self) -> Time {
        self.earliest_by(Reading::now())
    }

    fn earliest_by(&self, now: Reading) -> Time {
        // A number is never half written.
        let mut set_back = self.set_back.lock().unwrap_or_else(PoisonError::into_inner);
        *set_back = self.began.set_back_until(now).max(*set_back);
        let earliest = Reading {
            nanos: self.began.nanos.saturating_sub(*set_back),
            ..self.began
        };
        earliest.time()
    }
}

impl From<Reading> for Since {
    fn from(began: Reading) -> Self {
        Self {
            began,
            set_back: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i128 = 3600 * NANOS;

    #[test]
    fn a_clock_that_runs_was_never_set() {
        let began = Reading::now();
        for _ in 0..10_000 {
            let now = Reading::now();
            assert!(!began.was_set_until(now), "{began:?} {now:?}");
            assert_eq!(began.set_back_until(now), 0, "{began:?} {now:?}");
        }
    }

    #[test]
    fn what_is_changed_after_the_clock_was_set_back_was_changed_since() {
        let now = Reading::now();
        let since = Since::from(now.if_it_were_set(HOUR));
        // It was an hour later by the clock when it began.
        let saved = now.if_it_were_set(NANOS).time();
        assert!(saved < since.began.time());
        assert!(since.earliest() < saved);
        // And what was not touched for longer than that was not.
        assert!(since.earliest() > now.if_it_were_set(-NANOS).time());
    }

    #[test]
    fn a_clock_that_was_set_forward_again_is_not_forgotten() {
        let now = Reading::now();
        let since = Since::from(now);
        let saved = now.if_it_were_set(-HOUR / 2).time();
        assert!(since.earliest() > saved);
        let _earliest = since.earliest_by(now.if_it_were_set(-HOUR));
        assert!(since.clone().earliest() < saved);
        // Forward alone makes nothing late that is not.
        let since = Since::from(now.if_it_were_set(-HOUR));
        assert_eq!(since.earliest(), since.began.time());
    }

    #[test]
    fn times_before_1970_are_read_as_files_have_them() {
        let reading = Reading::now();
        let reading = Reading {
            nanos: -1,
            ..reading
        };
        assert_eq!(reading.time(), (-1, 999_999_999));
    }
}
