//! The spawner's groups: made before they are needed, removed when let go.
//!
//! While it runs, a command's groups are its own. They are handed out once more
//! only when it was seen that nothing of it counts for the next, see
//! [`super::gauges`]. They stand as long as the agent holds the other end of a
//! pipe, so an agent that goes away in any manner leaves none behind.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::gauges::State;
use super::group::Group;
use super::place::Place;
use super::{Entrances, GroupLimits, Limited, Outlook};

/// How soon groups that could not be removed yet are tried again.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_millis(5);
/// And how late, if nobody leaves them: whoever waits for a file system that does not
/// answer stays until it does.
const AGAIN_MAX: Duration = Duration::from_secs(1);

/// Groups kept for commands to come.
const SPARES_MAX: usize = 8;

/// Makes, hands out and removes groups.
#[derive(Default)]
pub(crate) struct Keeper {
    /// Where groups are made, or why none can be; looked for once.
    place: Option<Result<Place, String>>,
    /// Groups made so far.
    number: u64,
    /// Nobody is inside; the last used are the last.
    spares: Vec<Ours>,
    held: Vec<Held>,
    /// Not empty when they were last tried.
    leaving: Vec<Ours>,
    /// When those are tried again: the last process of a command takes its
    /// sandbox apart before it leaves, and asking meanwhile costs.
    again_at: Option<Instant>,
    /// How often it was in vain since something changed.
    in_vain: u32,
}

/// Groups, with what is always handed out of them.
struct Ours {
    limits: GroupLimits,
    group: Group,
    entrances: Entrances,
    outlook: Outlook,
    history: History,
}

impl Ours {
    fn serves(&self, limits: &GroupLimits, wanted: History) -> bool {
        self.limits == *limits && (wanted == History::AsNew || self.history == wanted)
    }
}

/// Whether groups have served a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    /// Never.
    New,
    /// They have, and are as new.
    AsNew,
}

struct Held {
    ours: Ours,
    /// Tells when the agent has closed its end.
    by: OwnedFd,
}

/// One command's groups, as they are handed out.
pub(crate) struct Handed<'a> {
    /// Which limits they have.
    pub limited: Limited,
    /// The ways in for its first process.
    pub entrances: &'a Entrances,
    /// What the agent may look at.
    pub outlook: &'a Outlook,
    /// Keeps them, as long as the agent has it.
    pub hold: OwnedFd,
}

impl Keeper {
    /// Groups with these limits, or why there are none; `wanted` says whether
    /// they may have served before.
    pub(crate) fn hand_out(
        &mut self,
        limits: &GroupLimits,
        wanted: History,
    ) -> Result<Handed<'_>, String> {
        let mut ours = match self.spare(limits, wanted) {
            Some(place) => self.spares.remove(place),
            None => self.make(limits)?,
        };
        ours.history = History::AsNew;
        let (hold, by) = match pipe_with(PipeFlags::CLOEXEC) {
            Ok(pipe) => pipe,
            Err(errno) => {
                self.leaving.push(ours);
                return Err(format!("the group cannot be used: {errno}"));
            }
        };
        let Held { ours, .. } = self.held.push_mut(Held { ours, by });
        Ok(Handed {
            limited: ours.group.limited(),
            entrances: &ours.entrances,
            outlook: &ours.outlook,
            // Nothing is ever written: closing it is what it is for.
            hold,
        })
    }

    fn spare(&self, limits: &GroupLimits, wanted: History) -> Option<usize> {
        self.spares
            .iter()
            .rposition(|spare| spare.serves(limits, wanted))
    }

    /// How many groups like these are ready.
    pub(crate) fn spares(&self, limits: &GroupLimits, wanted: History) -> usize {
        let fit = |spare: &&Ours| spare.serves(limits, wanted);
        self.spares.iter().filter(fit).count()
    }

    /// Has groups like these ready for the next command.
    pub(crate) fn prepare(&mut self, limits: &GroupLimits, wanted: History) {
        if self.spare(limits, wanted).is_none()
            // What fails here fails again when it is needed, and is told then.
            && let Ok(ours) = self.make(limits)
        {
            self.keep(ours);
        }
    }

    /// Keeps groups nobody is in; the oldest give way.
    fn keep(&mut self, ours: Ours) {
        if self.spares.len() >= SPARES_MAX {
            self.leaving.push(self.spares.remove(0));
        }
        self.spares.push(ours);
    }

    fn make(&mut self, limits: &GroupLimits) -> Result<Ours, String> {
        let place = match self.place.take() {
            Some(Ok(place)) => place,
            Some(Err(why)) => {
                self.place = Some(Err(why.clone()));
                return Err(why);
            }
            None => self.find()?,
        };
        let made = match self.make_at(&place, limits) {
            Ok(ours) => {
                self.place = Some(Ok(place));
                return Ok(ours);
            }
            // The place may be another by now: whoever looks after the groups above may
            // have moved this program, or let go of a limit that was handed down.
            Err(_) => self.find().map(|place| {
                let made = self.make_at(&place, limits);
                self.place = Some(Ok(place));
                made
            })?,
        };
        made.map_err(|error| format!("no group can be made: {error}"))
    }

    /// Looks for the place; where there is none, that is kept.
    fn find(&mut self) -> Result<Place, String> {
        Place::find().map_err(|error| {
            let why = error.to_string();
            self.place = Some(Err(why.clone()));
            why
        })
    }

    fn make_at(&mut self, place: &Place, limits: &GroupLimits) -> io::Result<Ours> {
        self.number = self.number.saturating_add(1);
        let group = Group::make(place, self.number, limits)?;
        Ok(Ours {
            limits: *limits,
            entrances: group.entrances()?,
            outlook: group.outlook()?,
            group,
            history: History::New,
        })
    }

    /// What to wait on, besides requests: its event is an error.
    pub(crate) fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.held
            .iter()
            .map(|held| PollFd::new(&held.by, PollFlags::empty()))
    }

    /// When to come back although nothing happened.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let at = self.again_at?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Keeps or removes what was let go and is empty.
    pub(crate) fn tidy(&mut self) {
        let let_go = self.let_go();
        let mut place = 0_usize;
        let gone = self.held.extract_if(.., |_| {
            let is_gone = let_go.get(place).is_some_and(|gone| *gone);
            place = place.saturating_add(1);
            is_gone
        });
        let were = self.leaving.len();
        self.leaving.extend(gone.map(|held| held.ours));
        let now = Instant::now();
        if self.leaving.len() > were && self.in_vain > 0 {
            self.in_vain = 0;
            self.again_at = now.checked_add(AGAIN_AFTER);
        }
        match self.again_at {
            Some(at) if now < at => return,
            None if self.leaving.is_empty() => return,
            Some(_) | None => {}
        }
        self.again_at = None;
        let tried = self.leaving.len();
        for mut ours in std::mem::take(&mut self.leaving) {
            let room = self.spares.len() < SPARES_MAX;
            match ours.group.state() {
                State::AsNew if room => self.keep(ours),
                State::Busy => self.leaving.push(ours),
                State::AsNew | State::Used => {
                    if !ours.group.try_remove() {
                        self.leaving.push(ours);
                    }
                }
            }
        }
        if self.leaving.len() < tried {
            self.in_vain = 0;
        }
        if !self.leaving.is_empty() {
            self.again_at = now.checked_add(self.pause());
            self.in_vain = self.in_vain.saturating_add(1);
        }
    }

    /// How long until it is tried again: soon at first, then twice as long every eighth time.
    fn pause(&self) -> Duration {
        let doublings = 2_u32.saturating_pow(self.in_vain / 8);
        AGAIN_AFTER.saturating_mul(doublings).min(AGAIN_MAX)
    }

    /// Of which of those that are held the agent has closed its end.
    fn let_go(&self) -> Vec<bool> {
        let mut wanted: Vec<PollFd<'_>> = self.sources().collect();
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match poll(&mut wanted, Some(&now)) {
            Ok(1..) => wanted.iter().map(|fd| !fd.revents().is_empty()).collect(),
            // Nobody, or nobody knows: it is asked again.
            Ok(0) | Err(_) => Vec::new(),
        }
    }

    /// Removes all, once everything inside was killed; gives up after `patience`.
    pub(crate) fn finish(mut self, patience: Duration) {
        self.leaving.append(&mut self.spares);
        let held = std::mem::take(&mut self.held);
        self.leaving.extend(held.into_iter().map(|held| held.ours));
        let since = Instant::now();
        while !self.leaving.is_empty() && since.elapsed() < patience {
            self.leaving.retain_mut(|ours| !ours.group.try_remove());
            if !self.leaving.is_empty() {
                std::thread::sleep(AGAIN_AFTER);
            }
        }
    }
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
    fn groups_stand_as_long_as_they_are_held_and_serve_again_only_if_nothing_shows() {
        let mut keeper = Keeper {
            number: 8_000_000,
            ..Keeper::default()
        };
        keeper.prepare(&LIMITS, History::New);
        let handed = match keeper.hand_out(&LIMITS, History::New) {
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
        let serves_again = handed.outlook.unified.is_none();
        let hold = handed.hold;
        keeper.tidy();
        assert_eq!((keeper.held.len(), keeper.leaving.len()), (1, 0));
        drop(hold);
        keeper.tidy();
        assert_eq!((keeper.held.len(), keeper.leaving.len()), (0, 0));
        assert_eq!(keeper.spares.len(), usize::from(serves_again));
        let other = GroupLimits {
            processes: 21,
            ..LIMITS
        };
        // Neither other limits nor the wish for new ones is answered with them.
        assert_eq!(keeper.spare(&other, History::AsNew), None);
        assert_eq!(keeper.spare(&LIMITS, History::New), None);
        assert_eq!(
            keeper.spare(&LIMITS, History::AsNew),
            serves_again.then_some(0)
        );
        keeper.finish(Duration::from_secs(5));
    }

    #[test]
    fn groups_that_nobody_leaves_are_looked_at_less_and_less_and_go_when_they_are_empty() {
        let mut keeper = Keeper {
            number: 8_100_000,
            ..Keeper::default()
        };
        let (own, others, hold) = match keeper.hand_out(&LIMITS, History::New) {
            Ok(handed) => {
                let ways = |list: &[OwnedFd]| {
                    let all = list.iter().map(|fd| fd.try_clone().unwrap());
                    all.collect::<Vec<_>>()
                };
                let entrances = handed.entrances;
                (ways(&entrances.own), ways(&entrances.others), handed.hold)
            }
            Err(why) => {
                println!("SKIPPED: {why}");
                return;
            }
        };
        let mut stays = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        for way in own.iter().chain(&others) {
            rustix::io::write(way, stays.id().to_string().as_bytes()).unwrap();
        }
        drop(hold);
        let mut pauses = Vec::new();
        for _ in 0..100 {
            keeper.again_at = None;
            keeper.tidy();
            if keeper.leaving.is_empty() {
                // Version 2 has its own way to end whoever stays.
                break;
            }
            pauses.push(keeper.pause());
        }
        assert!(pauses.is_sorted());
        if !own.is_empty() {
            assert_eq!(pauses.first(), Some(&AGAIN_AFTER));
            assert_eq!(pauses.last(), Some(&AGAIN_MAX));
        }
        stays.kill().unwrap();
        stays.wait().unwrap();
        let since = Instant::now();
        while !keeper.leaving.is_empty() {
            assert!(since.elapsed() < Duration::from_secs(30));
            keeper.again_at = None;
            keeper.tidy();
        }
        assert_eq!(keeper.patience(), None);
        keeper.finish(Duration::from_secs(5));
    }

    #[test]
    fn where_no_group_can_be_made_the_reason_is_told_each_time() {
        let mut keeper = Keeper {
            place: Some(Err("read-only".to_owned())),
            ..Keeper::default()
        };
        keeper.prepare(&LIMITS, History::AsNew);
        for _ in 0..2 {
            let handed = keeper.hand_out(&LIMITS, History::AsNew);
            assert_eq!(handed.err().as_deref(), Some("read-only"));
        }
    }
}
