//! What the agent keeps of a command's groups: reading, killing, letting go.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::{GroupUsage, Limited};

/// The longest file read from a group, in bytes.
const FILE_BYTES_MAX: u64 = 4096;
/// What those files have, usually: read at once.
const FILE_BYTES_ROOM: usize = 1024;

/// The directories of a command's groups that tell or kill.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    /// Where memory is counted.
    pub memory: Option<OwnedFd>,
    /// Where everything can be killed at once.
    pub unified: Option<OwnedFd>,
}

impl Outlook {
    /// What was used so far.
    pub(crate) fn usage(&self) -> GroupUsage {
        let Some(dir) = &self.memory else {
            return GroupUsage::default();
        };
        // The counter of kills, not of failed charges: those also count what
        // was reclaimed and never missed.
        // Version 1 has the second of each.
        let kills = ["memory.events", "memory.oom_control"];
        let peak = ["memory.peak", "memory.max_usage_in_bytes"];
        let in_order = |mut files: [&'static str; 2]| {
            if self.unified.is_none() {
                files.reverse();
            }
            files
        };
        let kills = in_order(kills)
            .into_iter()
            .find_map(|file| field(&read(dir.as_fd(), file).ok()?, "oom_kill"));
        let peak = in_order(peak)
            .into_iter()
            .find_map(|file| read(dir.as_fd(), file).ok()?.trim().parse().ok());
        GroupUsage {
            out_of_memory_kills: kills.unwrap_or(0),
            memory_peak_bytes: peak,
        }
    }

    /// Kills everything inside at once, where the kernel can do that.
    pub(crate) fn kill(&self) {
        if let Some(dir) = &self.unified {
            // Without it the end of the pid namespace has the same effect.
            let _killed = open(dir.as_fd(), "cgroup.kill", OFlags::WRONLY)
                .and_then(|file| Ok(rustix::io::write(&file, b"1")?));
        }
    }

    /// To be sent: in this order, where they are there.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.memory, &self.unified]
            .into_iter()
            .flatten()
            .map(AsFd::as_fd)
    }
}

/// The agent's hold on a command's groups. They are removed once it is dropped.
#[derive(Debug)]
pub(crate) struct Holding {
    /// Which limits the groups have.
    pub limited: Limited,
    /// What can be read of them.
    pub outlook: Outlook,
    /// Closed when the groups are not needed any more.
    _hold: OwnedFd,
}

impl Holding {
    /// From a message: which limits hold, and the descriptors beside it.
    pub(crate) fn from_parts(limited: Limited, descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let hold = descriptors.next()?;
        let mut next = |is_there: bool| {
            if is_there {
                descriptors.next().map(Some)
            } else {
                Some(None)
            }
        };
        let outlook = Outlook {
            memory: next(limited.memory)?,
            unified: next(limited.kill)?,
        };
        Some(Self {
            limited,
            outlook,
            _hold: hold,
        })
    }
}

fn open(dir: BorrowedFd<'_>, name: &str, access: OFlags) -> io::Result<OwnedFd> {
    rustix::fs::openat(dir, name, access | OFlags::CLOEXEC, Mode::empty()).map_err(Into::into)
}

fn read(dir: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = open(dir, name, OFlags::RDONLY)?;
    let mut text = String::with_capacity(FILE_BYTES_ROOM);
    std::fs::File::from(file)
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (field, value) = line.split_once(' ')?;
        (field == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(files: &[(&str, &str)]) -> (tempfile::TempDir, Outlook) {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(temp.path().join(name), text).unwrap();
        }
        let memory = std::fs::File::open(temp.path()).unwrap().into();
        let outlook = Outlook {
            memory: Some(memory),
            unified: None,
        };
        (temp, outlook)
    }

    #[test]
    fn kills_and_peaks_are_read_from_either_version() {
        let usage = GroupUsage {
            out_of_memory_kills: 3,
            memory_peak_bytes: Some(4096),
        };
        for files in [
            [
                (
                    "memory.oom_control",
                    "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
                ),
                ("memory.max_usage_in_bytes", "4096\n"),
            ],
            [
                ("memory.events", "low 0\nhigh 9\nmax 7\noom 5\noom_kill 3\n"),
                ("memory.peak", "4096\n"),
            ],
        ] {
            let (_temp, outlook) = outlook(&files);
            assert_eq!(outlook.usage(), usage);
        }
    }

    #[test]
    fn a_group_that_tells_nothing_claims_nothing() {
        let (_temp, outlook) = outlook(&[]);
        assert_eq!(outlook.usage(), GroupUsage::default());
        outlook.kill();
    }

    #[test]
    fn a_message_with_too_few_descriptors_is_no_hold() {
        let limited = Limited {
            memory: true,
            ..Limited::default()
        };
        let file = || OwnedFd::from(std::fs::File::open("/").unwrap());
        assert!(Holding::from_parts(limited, vec![file()]).is_none());
        let held = Holding::from_parts(limited, vec![file(), file()]).unwrap();
        assert!(held.outlook.memory.is_some() && held.outlook.unified.is_none());
    }
}
