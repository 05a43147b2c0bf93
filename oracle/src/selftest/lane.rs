//! The lane that only asks, as a finder of faults.
//!
//! What for: a session of the lane decides a thousand times, where one of a suite decides
//! ten times and one of a law at most fifty. Some faults show only then.

use hermitcrab_core::fault::Fault;

use super::{Found, Hunt};

impl Hunt<'_> {
    /// Plants the fault in this process and asks about commands by the thousand.
    #[cfg(feature = "planted-faults")]
    pub(super) fn by_lane(&self, fault: Fault, tried: usize) -> Option<Found> {
        use std::sync::PoisonError;
        // A planted fault is one for the whole process.
        let _alone = self.planting.lock().unwrap_or_else(PoisonError::into_inner);
        planted::first_other(fault).map(|(command, asked)| Found {
            case: super::finders::LANE.to_owned(),
            by: super::By::Lane,
            verdict: command,
            tried: tried + asked,
        })
    }

    #[cfg(not(feature = "planted-faults"))]
    pub(super) fn by_lane(&self, _fault: Fault, _tried: usize) -> Option<Found> {
        None
    }
}

#[cfg(feature = "planted-faults")]
mod planted {
    use hermitcrab_core::fault::{Fault, plant};

    use crate::campaign::screen::{NoGuard, screen};

    /// Which commands the core is asked about.
    const SEED: u64 = 1;
    const PLACES: u64 = 4096;

    /// The first command about which the core decides otherwise with the fault, and how
    /// many there were up to it.
    pub(super) fn first_other(fault: Fault) -> Option<(String, usize)> {
        let said = || screen(SEED, 0..PLACES, None, &mut NoGuard).map(|piece| piece.screened);
        let sound = said().ok()?;
        plant(Some(fault));
        let faulty = said();
        plant(None);
        let faulty = faulty.ok()?;
        let mut pairs = sound.iter().zip(&faulty);
        let place = pairs.position(|(sound, faulty)| sound.agent != faulty.agent)?;
        let variant = crate::campaign::variant(SEED, sound.get(place)?.index)?;
        Some((variant.to_string(), place + 1))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_fault_of_long_sessions_is_seen_and_one_of_other_things_is_not() {
            let (command, asked) = first_other(Fault::GivesInAtLength).unwrap();
            assert!(crate::generate::Variant::named(&command).is_some());
            assert!(asked > 200, "{asked}");
            assert_eq!(first_other(Fault::ReadTruncates), None);
        }
    }
}
