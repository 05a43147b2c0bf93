//! Whether groups that served one command can serve the next.
//!
//! What for: making groups and taking them away costs a third of a sandbox, and
//! the kernel goes on with the second part long after. Groups of version 1 can
//! be seen to be as they were made: nobody inside, nearly no memory left on
//! their account, no kill and no throttling counted, the limit of processor
//! time where it was, and the peak set back.
//! Version 2 lets nobody set back its peak, so its groups serve once.
//!
//! It must never call groups new of which that could not be seen.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::outlook::field;
use super::place::Controller;

/// What may be left on the account of memory: what the kernel holds back for
/// each processor, and lets go of late.
const LEFT_BYTES_MAX: u64 = 1 << 20;

/// What the gauges say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Somebody is inside.
    Busy,
    /// Nobody is inside, and nothing shows that anybody was.
    AsNew,
    /// Nobody is inside, and what was there shows.
    Used,
}

/// The files that tell, open since the groups were made.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    /// A number, where it is counted: the lists cost more.
    count: Option<OwnedFd>,
    /// How many were refused for want of room.
    refused: Option<OwnedFd>,
    /// Where the lists of processes are.
    dirs: Vec<OwnedFd>,
    memory: Vec<Memory>,
    throttling: Vec<Throttling>,
}

#[derive(Debug)]
struct Memory {
    usage: OwnedFd,
    kills: OwnedFd,
    peak: OwnedFd,
}

#[derive(Debug)]
struct Throttling {
    counts: OwnedFd,
    quota: OwnedFd,
    /// What the second said when the groups were made.
    made_with: String,
}

impl Gauges {
    /// Opens those of one more group of version 1.
    ///
    /// # Errors
    /// One of them is not there.
    pub(super) fn add(&mut self, dir: &Path, controllers: &[Controller]) -> io::Result<()> {
        let open = |file: &str, flags: OFlags| {
            rustix::fs::open(dir.join(file), flags | OFlags::CLOEXEC, Mode::empty())
                .map_err(io::Error::from)
        };
        self.dirs.push(open(".", OFlags::PATH | OFlags::DIRECTORY)?);
        for controller in controllers {
            match controller {
                Controller::Memory => self.memory.push(Memory {
                    usage: open("memory.usage_in_bytes", OFlags::RDONLY)?,
                    kills: open("memory.oom_control", OFlags::RDONLY)?,
                    peak: open("memory.max_usage_in_bytes", OFlags::WRONLY)?,
                }),
                Controller::Cpu => {
                    let quota = open("cpu.cfs_quota_us", OFlags::RDONLY)?;
                    self.throttling.push(Throttling {
                        counts: open("cpu.stat", OFlags::RDONLY)?,
                        made_with: read(&quota)?,
                        quota,
                    });
                }
                Controller::Pids => {
                    self.count = Some(open("pids.current", OFlags::RDONLY)?);
                    self.refused = Some(open("pids.events", OFlags::RDONLY)?);
                }
            }
        }
        Ok(())
    }

    /// Looks, and sets back the peak of what is as new. What cannot be read
    /// counts as used.
    pub(super) fn state(&self) -> State {
        self.look().unwrap_or(State::Used)
    }

    fn look(&self) -> io::Result<State> {
        if let Some(count) = &self.count
            && read(count)?.trim() != "0"
        {
            return Ok(State::Busy);
        }
        for dir in &self.dirs {
            // Opened each time: the kernel repeats to whoever has one open what
            // it listed first, until nobody has asked for a second.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let processes = rustix::fs::openat(dir, "cgroup.procs", flags, Mode::empty())?;
            if !read(&processes)?.is_empty() {
                return Ok(State::Busy);
            }
        }
        if let Some(refused) = &self.refused
            && field(&read(refused)?, "max") != Some(0)
        {
            return Ok(State::Used);
        }
        for memory in &self.memory {
            let left: Option<u64> = read(&memory.usage)?.trim().parse().ok();
            if left.is_none_or(|left| left > LEFT_BYTES_MAX)
                || field(&read(&memory.kills)?, "oom_kill") != Some(0)
            {
                return Ok(State::Used);
            }
            rustix::io::pwrite(&memory.peak, b"0", 0)?;
        }
        for throttling in &self.throttling {
            // The limit is lifted for what is killed.
            if field(&read(&throttling.counts)?, "nr_throttled") != Some(0)
                || read(&throttling.quota)? != throttling.made_with
            {
                return Ok(State::Used);
            }
        }
        // Without any, nothing was seen.
        Ok(if self.dirs.is_empty() {
            State::Used
        } else {
            State::AsNew
        })
    }
}

/// The beginning of a file, which is all of the short ones read here.
fn read(file: &OwnedFd) -> io::Result<String> {
    let mut bytes = [0_u8; 256];
    let count = rustix::io::pread(file, &mut bytes, 0)?;
    let text = std::str::from_utf8(bytes.get(..count).unwrap_or_default());
    text.map(str::to_owned).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: [(&str, &str); 8] = [
        ("pids.current", "0\n"),
        ("pids.events", "max 0\n"),
        ("cgroup.procs", ""),
        ("memory.usage_in_bytes", "4096\n"),
        (
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
        ),
        ("memory.max_usage_in_bytes", "262144\n"),
        (
            "cpu.stat",
            "nr_periods 3\nnr_throttled 0\nthrottled_time 0\n",
        ),
        ("cpu.cfs_quota_us", "50000\n"),
    ];

    fn state(changed: &[(&str, &str)]) -> (State, String) {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in NEW.iter().chain(changed) {
            std::fs::write(temp.path().join(name), text).unwrap();
        }
        let mut gauges = Gauges::default();
        gauges.add(temp.path(), &Controller::ALL).unwrap();
        let state = gauges.state();
        let peak = std::fs::read_to_string(temp.path().join("memory.max_usage_in_bytes"));
        (state, peak.unwrap())
    }

    #[test]
    fn only_groups_on_which_nothing_shows_are_as_new_and_their_peak_is_set_back() {
        assert_eq!(state(&[]), (State::AsNew, "062144\n".to_owned()));
        assert_eq!(state(&[("cgroup.procs", "17\n")]).0, State::Busy);
        assert_eq!(state(&[("pids.current", "1\n")]).0, State::Busy);
        for trace in [
            ("memory.usage_in_bytes", "1048577\n"),
            ("memory.usage_in_bytes", "garbled"),
            ("memory.oom_control", "oom_kill 1\n"),
            ("memory.oom_control", "under_oom 0\n"),
            ("cpu.stat", "nr_periods 3\nnr_throttled 1\n"),
            ("cpu.stat", ""),
            ("pids.events", "max 2\n"),
            ("pids.events", ""),
        ] {
            assert_eq!(state(&[trace]).0, State::Used, "{trace:?}");
        }
    }

    #[test]
    fn groups_whose_limit_was_lifted_are_used() {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in NEW {
            std::fs::write(temp.path().join(name), text).unwrap();
        }
        let mut gauges = Gauges::default();
        gauges.add(temp.path(), &Controller::ALL).unwrap();
        assert_eq!(gauges.state(), State::AsNew);
        std::fs::write(temp.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        assert_eq!(gauges.state(), State::Used);
    }

    #[test]
    fn without_anything_to_look_at_nothing_is_as_new() {
        assert_eq!(Gauges::default().state(), State::Used);
        let temp = tempfile::tempdir().unwrap();
        let mut gauges = Gauges::default();
        gauges.add(temp.path(), &[]).unwrap();
        assert_eq!(gauges.state(), State::Used, "without a list");
        assert!(gauges.add(&temp.path().join("gone"), &[]).is_err());
    }
}
