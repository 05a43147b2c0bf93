//! What holds a command whose layer lies on disk to its bound.
//!
//! A disk has no size for a directory. So while the command runs its layer is looked
//! at, again and again: what the file system says of its free space costs nothing,
//! and only where that fell, or now and then, is the layer itself counted. What
//! can be written between two looks is the slack of the bound.
//!
//! Files that were removed and are held open show in no count, nor does what lies
//! below directories the agent cannot enter. Below the floor, where the disk would
//! be full soon, that counts against the command.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::fstatvfs;

use super::tree::{self, Counted};

/// How long after a look comes the next one.
const LOOK: Duration = Duration::from_millis(50);
/// How long after a count comes the next one at the latest.
const COUNT: Duration = Duration::from_secs(5);
/// How many times as long as a count took nothing is counted.
const REST: u32 = 8;
/// What is left of the disk for others: a twentieth of it, between these.
const FLOOR_BYTES: std::ops::RangeInclusive<u64> = 256 << 20..=2 << 30;
const FLOOR_PART: u64 = 20;
/// What of the fall of free space below the floor is laid at a command's door.
const SHARE_BYTES: u64 = 64 << 20;

/// What a layer may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub bytes: u64,
    pub names: u64,
}

/// What a file system has left.
#[derive(Clone, Copy, Debug)]
struct Free {
    bytes: u64,
    /// Nothing where it has as many names as it has room.
    names: Option<u64>,
    floor: u64,
}

/// A layer that is looked at.
#[derive(Debug)]
pub(crate) struct Watch {
    dir: OwnedFd,
    bound: Bound,
    /// Before the command wrote anything.
    began: Free,
    /// At the last count, and what was left of the bound then.
    counted: Free,
    left: Bound,
    look_at: Instant,
    count_not_before: Instant,
    count_at_latest: Instant,
}

impl Bound {
    /// Whether there is room for a command to begin, or why not.
    pub(super) fn has_room(dir: BorrowedFd<'_>) -> Result<(), String> {
        let free = Free::of(dir).map_err(|error| error.to_string())?;
        if free.bytes > free.floor.saturating_add(SHARE_BYTES) {
            Ok(())
        } else {
            Err(format!(
                "its disk has {} MiB left, of which {} are not for commands",
                free.bytes >> 20,
                free.floor >> 20
            ))
        }
    }
}

impl Bound {
    /// Whether a layer holds more, or may: free space fell by `fell` meanwhile.
    fn is_passed(self, held: Counted, fell: u64) -> bool {
        let unseen = if held.is_less { fell } else { 0 };
        held.bytes.max(unseen) > self.bytes || held.names > self.names
    }
}

impl Free {
    /// Whether the disk would soon be full and this layer is, or may be, why. What
    /// others wrote meanwhile cannot be told from what it hides: that counts where it
    /// is more than it may hold, and in the end whatever it is.
    fn is_used_up_by(&self, held: Counted, fell: u64, bound: Bound) -> bool {
        let may_hide = if self.bytes < self.floor / 2 {
            SHARE_BYTES
        } else {
            bound.bytes
        };
        self.bytes < self.floor && (held.bytes > SHARE_BYTES || fell > may_hide)
    }

    fn of(dir: BorrowedFd<'_>) -> io::Result<Self> {
        let found = fstatvfs(dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let part = bytes(found.f_blocks).checked_div(FLOOR_PART).unwrap_or(0);
        Ok(Self {
            bytes: bytes(found.f_bavail),
            names: (found.f_files > 0).then_some(found.f_favail),
            floor: part.clamp(*FLOOR_BYTES.start(), *FLOOR_BYTES.end()),
        })
    }

    /// By how much it fell since then.
    fn fell_since(&self, then: &Self) -> Bound {
        let names = then.names.zip(self.names);
        Bound {
            bytes: then.bytes.saturating_sub(self.bytes),
            names: names.map_or(0, |(then, now)| then.saturating_sub(now)),
        }
    }
}

impl Watch {
    pub(super) fn begin(dir: OwnedFd, bound: Bound) -> io::Result<Self> {
        let free = Free::of(dir.as_fd())?;
        let now = Instant::now();
        Ok(Self {
            dir,
            bound,
            began: free,
            counted: free,
            left: bound,
            look_at: now,
            count_not_before: now,
            count_at_latest: later(now, COUNT),
        })
    }

    /// When it is to be looked at next.
    pub(crate) fn next(&self) -> Instant {
        self.look_at
    }

    /// Looks, if it is time, and says whether the command has to end. A file system
    /// that does not answer bounds nothing, and ends it as well.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        if now < self.look_at {
            return false;
        }
        let over = self.look(now, false);
        self.look_at = later(Instant::now(), LOOK);
        over
    }

    /// The last look: the command has ended.
    pub(crate) fn ended_over(&mut self) -> bool {
        self.look(Instant::now(), true)
    }

    fn look(&mut self, now: Instant, is_last: bool) -> bool {
        let Ok(free) = Free::of(self.dir.as_fd()) else {
            return true;
        };
        let fell = free.fell_since(&self.counted);
        let is_low = free.bytes < free.floor;
        let is_over = fell.bytes > self.left.bytes || fell.names > self.left.names;
        let may_count = now >= self.count_not_before;
        // At last in any case: others may have freed what it took.
        if !(is_last || may_count && (is_low || is_over) || now >= self.count_at_latest) {
            return false;
        }
        let Ok(held) = tree::count(self.dir.as_fd(), self.bound.bytes, self.bound.names) else {
            return true;
        };
        let ended = Instant::now();
        let took = ended.saturating_duration_since(now);
        self.count_not_before = later(ended, took.saturating_mul(REST));
        self.count_at_latest = later(ended, COUNT.max(took.saturating_mul(REST)));
        self.counted = free;
        self.left = Bound {
            bytes: self.bound.bytes.saturating_sub(held.bytes),
            names: self.bound.names.saturating_sub(held.names),
        };
        let fell = free.fell_since(&self.began).bytes;
        self.bound.is_passed(held, fell) || (!is_last && free.is_used_up_by(held, fell, self.bound))
    }
}

fn later(now: Instant, by: Duration) -> Instant {
    now.checked_add(by).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(at: &std::path::Path, bytes: u64, names: u64) -> Watch {
        let dir = std::fs::File::open(at).unwrap();
        Watch::begin(dir.into(), Bound { bytes, names }).unwrap()
    }

    #[test]
    fn a_layer_within_its_bound_goes_on_and_one_beyond_it_ends() {
        let temp = tempfile::tempdir().unwrap();
        let mut watch = watch(temp.path(), 4 << 20, 10);
        assert!(!watch.ended_over());
        std::fs::write(temp.path().join("f"), vec![1; 2 << 20]).unwrap();
        rustix::fs::sync();
        watch.left.bytes = 0;
        assert!(!watch.ended_over(), "{watch:?}");
        std::fs::write(temp.path().join("g"), vec![1; 3 << 20]).unwrap();
        rustix::fs::sync();
        // Whatever others free meanwhile: it is counted now and then.
        watch.count_at_latest = Instant::now();
        assert!(watch.ended_over(), "{watch:?}");
    }

    #[test]
    fn names_are_bounded_as_well() {
        let temp = tempfile::tempdir().unwrap();
        let mut watch = watch(temp.path(), 1 << 30, 10);
        for name in 0..11 {
            std::fs::write(temp.path().join(name.to_string()), "").unwrap();
        }
        watch.count_at_latest = Instant::now();
        assert!(watch.ended_over());
    }

    #[test]
    fn below_the_floor_what_does_not_show_counts_too() {
        let gib = 1_u64 << 30;
        let bound = Bound {
            bytes: 8 * gib,
            names: 100,
        };
        let check = |left: u64, held: u64, fell: u64, expected: bool| {
            let free = Free {
                bytes: left,
                names: None,
                floor: 2 * gib,
            };
            let held = Counted {
                bytes: held,
                ..Counted::default()
            };
            let got = free.is_used_up_by(held, fell, bound);
            assert_eq!(got, expected, "{left} left, {held:?} held, {fell} fell");
        };
        check(3 * gib, 7 * gib, 20 * gib, false);
        check(2 * gib - 1, gib, gib, true);
        check(2 * gib - 1, 0, 7 * gib, false);
        check(2 * gib - 1, 0, 9 * gib, true);
        check(gib - 1, 0, gib, true);
        check(gib - 1, 0, 0, false);
    }

    #[test]
    fn what_cannot_be_entered_is_laid_at_the_commands_door() {
        let bound = Bound {
            bytes: 100,
            names: 3,
        };
        let held = |is_less| Counted {
            bytes: 50,
            names: 3,
            is_less,
        };
        assert!(!bound.is_passed(held(false), 200));
        assert!(!bound.is_passed(held(true), 100));
        assert!(bound.is_passed(held(true), 101));
    }
}
