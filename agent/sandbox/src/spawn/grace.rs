//! Asking a command to end before it is killed.
//!
//! What for: a program that is asked can put away what it made: flush a log, remove the
//! file with its number, write down where it was. What it does then is decided as
//! all else it did. It must never hold up an end that somebody else wants at once: a
//! kill at any time comes as soon as without.

use std::time::Duration;

use super::spec::Wish;

/// How a command is asked to end, and how long it may take, before everything it
/// started is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grace {
    /// Not at all.
    #[default]
    None,
    /// Everything it started is sent SIGTERM, and has so long.
    Terminate(Duration),
    /// Its own process is sent what a terminal sends that goes away, SIGHUP, then
    /// SIGCONT and SIGINT, and has so long after each.
    HangUp(Duration),
}

impl Grace {
    /// What is wished for at this step, and how long that is waited for.
    pub(super) fn step(self, step: usize) -> Option<(Wish, Duration)> {
        let (wishes, patience): (&[Wish], _) = match self {
            Self::None => (&[], Duration::ZERO),
            Self::Terminate(patience) => (&[Wish::Terminate], patience),
            Self::HangUp(patience) => (&[Wish::HangUp, Wish::GoOn, Wish::Interrupt], patience),
        };
        wishes.get(step).map(|wish| (*wish, patience))
    }
}
