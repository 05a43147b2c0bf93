//! Asking a command to end, step by step, until it is killed.

use std::time::Instant;

use super::Running;
use crate::spawn::spec::Wish;
use crate::spawn::{Ending, Grace};

/// The command was asked to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) why: Ending,
    grace: Grace,
    /// What is asked next, and when.
    step: usize,
    at: Option<Instant>,
}

impl Asking {
    /// When there is something to do next.
    pub(super) const fn next(self) -> Option<Instant> {
        self.at
    }
}

impl Running {
    /// Asks it to end, if it was not asked before.
    pub(super) fn ask_for(&mut self, why: Ending, grace: Grace) {
        if self.stop.is_some() || self.asked.is_some() {
            return;
        }
        let now = Instant::now();
        self.asked = Some(Asking {
            why,
            grace,
            step: 0,
            at: Some(now),
        });
        self.go_on_asking(now);
    }

    /// Its time is over, or what it was asked last was of no use.
    pub(super) fn go_on_asking(&mut self, now: Instant) {
        let Some(mut asking) = self.asked else {
            return self.ask_for(Ending::TimedOut, self.grace);
        };
        // One that is not there yet has nothing to put away.
        let next = asking
            .grace
            .step(asking.step)
            .filter(|_| self.main.is_some());
        match next {
            Some((wish, patience)) if self.wish(wish) => {
                asking.step = asking.step.saturating_add(1);
                asking.at = now.checked_add(patience);
                self.asked = Some(asking);
            }
            Some(_) | None => self.stop_for(asking.why),
        }
    }

    /// Tells the first process; whether it can still hear.
    pub(super) fn wish(&self, wish: Wish) -> bool {
        self.control.send(&wish.encode(), &[]).is_ok()
    }
}
