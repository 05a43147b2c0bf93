//! How far the kernel's times tell that something was changed again.
//!
//! They come in steps of some milliseconds, and what is changed twice within one has the
//! same time twice. Finer ones, from Linux 6.13 on, are given out for some changes and not
//! for others: a file system in memory gives a directory in which one name takes the place
//! of another the time of something else. What holds for all of them is that no change has
//! an earlier time than that of the step it falls into. So a time that was over before
//! anybody looked tells of every later change, and any other may not.

use std::time::Duration;

use rustix::time::{ClockId, clock_getres};

use crate::changeset::clock::Reading;
use crate::changeset::copied::Seen;

/// A moment, as files have it: the beginning of a step of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(Reading);

impl Moment {
    /// The one that lasts.
    pub(crate) fn now() -> Self {
        Self(Reading::step())
    }

    /// Whether something looked at no earlier than this moment may be changed once more
    /// and have the time it had then. What has a time that is still to come, as the clock
    /// was set back before, gets another one with any change; and which of two is the
    /// earlier one nobody can tell where it was set since.
    pub(crate) fn may_hide_a_change_of(self, seen: &Seen) -> bool {
        let now = Reading::now();
        let lasts = self.0.time()..=now.time();
        self.0.was_set_until(now) || lasts.contains(&seen.changed)
    }

    /// How long it takes until the next one has begun, and a little longer.
    pub(crate) fn step() -> Duration {
        let step = clock_getres(ClockId::RealtimeCoarse);
        let nanos = u64::try_from(step.tv_nsec).unwrap_or(0).min(STEP_MAX);
        Duration::from_nanos(nanos.saturating_add(500_000))
    }
}

/// No kernel has longer steps.
const STEP_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use hermitcrab_core::path::RelPath;

    use super::*;
    use crate::changeset::scan::{Meanwhile, SoFar};
    use crate::changeset::settled::Settled;

    #[test]
    fn a_name_that_takes_anothers_place_meanwhile_is_never_overlooked() {
        let memory = std::path::Path::new("/dev/shm");
        let places = [std::env::temp_dir(), memory.to_owned()];
        for place in places.iter().filter(|place| place.is_dir()) {
            let temp = tempfile::tempdir_in(place).unwrap();
            let at = |name: &str| temp.path().join(name);
            for dir in ["one", "other"] {
                std::fs::create_dir(at(dir)).unwrap();
            }
            let upper = std::fs::File::open(temp.path()).unwrap();
            for _ in 0..200 {
                for name in ["one/f", "other/f"] {
                    std::fs::write(at(name), "").unwrap();
                }
                let mut look = SoFar::of(Some(&Meanwhile::default()), &Settled::default());
                let seen = Seen::of(&rustix::fs::stat(at("one")).unwrap());
                look.note_dir_seen(&RelPath::parse(b"one").unwrap(), seen);
                std::fs::rename(at("other/f"), at("one/f")).unwrap();
                assert!(look.is_blurred() || !look.names_stand(upper.as_fd()));
            }
        }
    }

    #[test]
    fn times_tell_a_step_later_and_where_the_clock_was_set_back() {
        let temp = tempfile::tempdir().unwrap();
        let mut seen = Seen::of(&rustix::fs::stat(temp.path()).unwrap());
        // A step lasts longer than it should where the machine itself is made to wait.
        let past = (0..1000).any(|_| {
            std::thread::sleep(Moment::step());
            Moment::now().0.time() > seen.changed
        });
        assert!(past, "the clock of steps stands still");
        assert!(!Moment::now().may_hide_a_change_of(&seen));
        let moment = Moment::now();
        seen.changed = moment.0.time();
        assert!(moment.may_hide_a_change_of(&seen));
        let (seconds, nanos) = seen.changed;
        seen.changed = (seconds + 3600, nanos);
        assert!(!Moment::now().may_hide_a_change_of(&seen));
        // Whatever it was set to meanwhile.
        for by in [3_600_000_000_000, -3_600_000_000_000, 5_000_000] {
            let moment = Moment(Reading::step().if_it_were_set(by));
            assert!(moment.may_hide_a_change_of(&seen), "{by}");
        }
    }
}
