//! How far a screening is, for whoever waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::campaign::tally::Tally;
use crate::figures::{counted, grouped};
use crate::progress::time;

/// Told by one thread and counted by others.
pub(super) struct SoFar {
    /// How many places there are, and where the round began that is asked about.
    places: u64,
    from: AtomicU64,
    /// Commands that were answered about in this run.
    asked: AtomicU64,
    /// What worlds have shown, in words.
    shown: Mutex<String>,
    until: Option<Instant>,
}

impl SoFar {
    pub(super) fn new(places: u64, until: Option<Instant>) -> Self {
        Self {
            places,
            from: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            shown: Mutex::default(),
            until,
        }
    }

    /// A round begins here.
    pub(super) fn asks_from(&self, from: u64) {
        self.from.store(from, Ordering::Relaxed);
    }

    /// So many commands were answered about.
    pub(super) fn asked(&self, commands: u64) {
        self.asked.fetch_add(commands, Ordering::Relaxed);
    }

    /// What worlds have shown so far, and of how many places they have still to show something.
    pub(super) fn shows(&self, things: usize, open: usize, tally: &Tally) {
        let mut words = format!(
            "{}, {}",
            counted(things as u64, "thing shown", "things shown"),
            tally.line()
        );
        if open > 0 {
            words.push_str(&format!(", {} to come", grouped(open as u64)));
        }
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// One line of progress.
    pub(super) fn line(&self) -> String {
        let mut said = format!(
            "{} of {} screened, {} asked about",
            grouped(self.from.load(Ordering::Relaxed)),
            counted(self.places, "place", "places"),
            counted(self.asked.load(Ordering::Relaxed), "command", "commands"),
        );
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if !shown.is_empty() {
            said.push_str(&format!("; in worlds {shown}"));
        }
        if let Some(until) = self.until {
            let left = until.saturating_duration_since(Instant::now());
            said.push_str(&format!("; {} left", time(left)));
        }
        said
    }

    /// What is said where the time was up in the round of these places.
    pub(super) fn cut(&self, from: u64, to: u64) -> String {
        format!(
            "the time was up before the next {} were screened, at {} of {}; --resume goes on from there, \
             and --time gives it more",
            counted(to.saturating_sub(from), "place", "places"),
            grouped(from),
            grouped(self.places),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Target;

    #[test]
    fn a_line_has_what_was_asked_from_the_first_answer_on_and_what_worlds_showed() {
        let so_far = SoFar::new(200_000, None);
        assert_eq!(
            so_far.line(),
            "0 of 200,000 places screened, 0 commands asked about"
        );
        so_far.asked(1);
        so_far.asks_from(16_384);
        so_far.shows(1, 12, &Tally::of(Target::Commands));
        assert_eq!(
            so_far.line(),
            "16,384 of 200,000 places screened, 1 command asked about; in worlds 1 thing shown, \
             0 variants: 0 with an effect, 0 of them unasked under Hermes, 0 under the agent, 12 to come"
        );
        let cut = so_far.cut(16_384, 32_768);
        let said =
            "the time was up before the next 16,384 places were screened, at 16,384 of 200,000; ";
        assert!(cut.starts_with(said), "{cut}");
    }
}
