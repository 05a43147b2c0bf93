//! The lane that only asks, and the benign generator, as finders of faults.
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

    /// Plants the fault in this process and has it decide about work nobody should be asked
    /// about.
    #[cfg(feature = "planted-faults")]
    pub(super) fn by_alarm(&self, fault: Fault, tried: usize) -> Option<Found> {
        use std::sync::PoisonError;
        // A planted fault is one for the whole process.
        let _alone = self.planting.lock().unwrap_or_else(PoisonError::into_inner);
        planted::first_alarm(fault).map(|(alarm, decided)| Found {
            case: super::finders::BENIGN.to_owned(),
            by: super::By::Alarm,
            verdict: alarm,
            tried: tried + decided,
        })
    }

    #[cfg(not(feature = "planted-faults"))]
    pub(super) fn by_alarm(&self, _fault: Fault, _tried: usize) -> Option<Found> {
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

    /// Jobs that are decided about.
    const JOBS: u64 = 2000;

    /// The first job about which the core asks with the fault, and how many there were up to
    /// it; none where it asks without the fault as well.
    pub(super) fn first_alarm(fault: Fault) -> Option<(String, usize)> {
        use crate::campaign::benign::first_alarm;
        if first_alarm(SEED, JOBS).is_some() {
            return None;
        }
        plant(Some(fault));
        let alarm = first_alarm(SEED, JOBS);
        plant(None);
        let (index, alarm) = alarm?;
        Some((alarm, usize::try_from(index).unwrap_or(usize::MAX)))
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
            let (alarm, _) = first_alarm(Fault::HiddenNamesAreSensitive).unwrap();
            assert!(alarm.contains("asked"), "{alarm}");
            assert_eq!(first_alarm(Fault::ReadTruncates), None);
        }
    }
}
