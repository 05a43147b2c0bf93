//! The spawner's groups: made before they are needed, removed when let go.
//!
//! Each command's groups are its own, so that nothing one command used counts
//! for the next. They stand as long as the agent holds the other end of a
//! pipe, so an agent that goes away in any manner leaves none behind.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::group::Group;
use super::place::Place;
use super::{Entrances, GroupLimits, Limited, Outlook};

/// How often groups that could not be removed yet are tried again.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_millis(5);

/// Makes, hands out and removes groups.
#[derive(Default)]
pub(crate) struct Keeper {
    /// Where groups are made, or why none can be; looked for once.
    place: Option<Result<Place, String>>,
    /// Groups made so far.
    number: u64,
    spare: Option<(GroupLimits, Group)>,
    held: Vec<Held>,
    /// Not empty when they were last tried.
    leaving: Vec<Group>,
}

struct Held {
    group: Group,
    /// Tells when the agent has closed its end.
    by: OwnedFd,
}

/// One command's groups, as they are handed out.
pub(crate) struct Handed {
    /// Which limits they have.
    pub limited: Limited,
    /// The ways in for its first process.
    pub entrances: Entrances,
    /// What the agent may look at.
    pub outlook: Outlook,
    /// Keeps them, as long as the agent has it.
    pub hold: OwnedFd,
}

impl Keeper {
    /// Groups with these limits, or why there are none.
    pub(crate) fn hand_out(&mut self, limits: &GroupLimits) -> Result<Handed, String> {
        let group = match self.spare.take() {
            Some((same, group)) if same == *limits => group,
            other => {
                self.leaving.extend(other.map(|(_, group)| group));
                self.make(limits)?
            }
        };
        let handed = (|| {
            let (hold, by) = pipe_with(PipeFlags::CLOEXEC)?;
            let handed = Handed {
                limited: group.limited(),
                entrances: group.entrances()?,
                outlook: group.outlook()?,
                // Nothing is ever written: closing it is what it is for.
                hold,
            };
            io::Result::Ok((handed, by))
        })();
        match handed {
            Ok((handed, by)) => {
                self.held.push(Held { group, by });
                Ok(handed)
            }
            Err(error) => {
                self.leaving.push(group);
                Err(format!("the group cannot be used: {error}"))
            }
        }
    }

    /// Has groups like these ready for the next command.
    pub(crate) fn prepare(&mut self, limits: &GroupLimits) {
        if self.spare.is_none() {
            // What fails here fails again when it is needed, and is told then.
            self.spare = self.make(limits).ok().map(|group| (*limits, group));
        }
    }

    fn make(&mut self, limits: &GroupLimits) -> Result<Group, String> {
        let place = self
            .place
            .get_or_insert_with(|| Place::find().map_err(|error| error.to_string()));
        let place = place.as_ref().map_err(Clone::clone)?;
        self.number = self.number.saturating_add(1);
        Group::make(place, self.number, limits)
            .map_err(|error| format!("no group can be made: {error}"))
    }

    /// What to wait on, besides requests: its event is an error.
    pub(crate) fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.held
            .iter()
            .map(|held| PollFd::new(&held.by, PollFlags::empty()))
    }

    /// When to come back although nothing happened.
    pub(crate) fn patience(&self) -> Option<Duration> {
        (!self.leaving.is_empty()).then_some(AGAIN_AFTER)
    }

    /// Removes what was let go and is empty.
    pub(crate) fn tidy(&mut self) {
        let (gone, held): (Vec<Held>, Vec<Held>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| let_go(&held.by));
        self.held = held;
        self.leaving.extend(gone.into_iter().map(|held| held.group));
        self.leaving.retain_mut(|group| !group.try_remove());
    }

    /// Removes all, once everything inside was killed; gives up after `patience`.
    pub(crate) fn finish(mut self, patience: Duration) {
        self.leaving
            .extend(self.spare.take().map(|(_, group)| group));
        let held = std::mem::take(&mut self.held);
        self.leaving.extend(held.into_iter().map(|held| held.group));
        let since = Instant::now();
        while !self.leaving.is_empty() && since.elapsed() < patience {
            self.leaving.retain_mut(|group| !group.try_remove());
            if !self.leaving.is_empty() {
                std::thread::sleep(AGAIN_AFTER);
            }
        }
    }
}

fn let_go(by: &OwnedFd) -> bool {
    let mut wanted = [PollFd::new(by, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&now)).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: GroupLimits = GroupLimits {
        memory_bytes: 64 << 20,
        cpu_percent: 50,
        processes: 20,
    };

    #[test]
    fn groups_stand_as_long_as_they_are_held() {
        let mut keeper = Keeper {
            number: 8_000_000,
            ..Keeper::default()
        };
        keeper.prepare(&LIMITS);
        let handed = match keeper.hand_out(&LIMITS) {
            Ok(handed) => handed,
            Err(why) => {
                println!("SKIPPED: {why}");
                return;
            }
        };
        assert!(
            handed.limited.memory || handed.limited.kill,
            "{}",
            handed.limited
        );
        keeper.tidy();
        assert_eq!((keeper.held.len(), keeper.leaving.len()), (1, 0));
        drop(handed);
        keeper.tidy();
        assert_eq!((keeper.held.len(), keeper.leaving.len()), (0, 0));
        keeper.finish(Duration::from_secs(5));
    }

    #[test]
    fn where_no_group_can_be_made_the_reason_is_told_each_time() {
        let mut keeper = Keeper {
            place: Some(Err("read-only".to_owned())),
            ..Keeper::default()
        };
        keeper.prepare(&LIMITS);
        for _ in 0..2 {
            assert_eq!(keeper.hand_out(&LIMITS).err().as_deref(), Some("read-only"));
        }
    }
}
