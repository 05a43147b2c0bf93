//! What the agent keeps of a command's groups: reading, killing, letting go.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{GroupUsage, Limited};

/// As much as is read of a file that tells a few numbers, in bytes.
const FILE_BYTES_MAX: usize = 1024;
/// The longest list of processes read, in bytes.
const LIST_BYTES_MAX: u64 = 64 * 1024;
/// Processes killed one by one: each takes a descriptor meanwhile.
const KILLED_AT_ONCE_MAX: usize = 256;
/// What such a list has, usually: read at once.
const LIST_BYTES_ROOM: usize = 1024;

/// The directories of a command's groups that tell or kill.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    /// Where memory is counted.
    pub memory: Option<OwnedFd>,
    /// Where everything can be killed at once.
    pub unified: Option<OwnedFd>,
    /// Where processor time is limited.
    pub cpu: Option<OwnedFd>,
    /// What tells how much was used, open since the groups were made.
    pub tallies: Tallies,
}

/// The files that count memory, and processes that were not to be; what the kernel does
/// not count is not there.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    kills: Option<OwnedFd>,
    peak: Option<OwnedFd>,
    forks: Option<OwnedFd>,
}

/// The counter of kills, not of failed charges: those also count what was reclaimed
/// and never missed. The first is version 2's, of both.
const KILLS: [&str; 2] = ["memory.events", "memory.oom_control"];
const PEAK: [&str; 2] = ["memory.peak", "memory.max_usage_in_bytes"];
/// What counts the processes and threads that were refused for want of room, of both.
const FORKS: &str = "pids.events";

impl Tallies {
    /// Those of groups in whose directories memory and processes are counted.
    pub(super) fn open(memory: Option<BorrowedFd<'_>>, processes: Option<BorrowedFd<'_>>) -> Self {
        let first = |names: [&str; 2]| {
            let mut found = names.into_iter();
            found.find_map(|name| open(memory?, name, OFlags::RDONLY).ok())
        };
        Self {
            kills: first(KILLS),
            peak: first(PEAK),
            forks: processes.and_then(|dir| open(dir, FORKS, OFlags::RDONLY).ok()),
        }
    }

    /// Which of them there are, for the message that they are sent with.
    pub(crate) fn bits(&self) -> u8 {
        u8::from(self.kills.is_some())
            | u8::from(self.peak.is_some()) << 1
            | u8::from(self.forks.is_some()) << 2
    }
}

impl Outlook {
    /// What was used so far.
    pub(crate) fn usage(&self) -> GroupUsage {
        let read = |file: &Option<OwnedFd>| again(file.as_ref()?).ok();
        let kills = read(&self.tallies.kills).and_then(|text| field(&text, "oom_kill"));
        let forks = read(&self.tallies.forks).and_then(|text| field(&text, "max"));
        let peak = read(&self.tallies.peak).and_then(|text| text.trim().parse().ok());
        GroupUsage {
            out_of_memory_kills: kills.unwrap_or(0),
            memory_peak_bytes: peak,
            refused_forks: forks.unwrap_or(0),
        }
    }

    /// Kills everything inside, and needs nobody inside to run for it: a crowd
    /// that never rests does not hold it up. What is started meanwhile, and
    /// what cannot be listed, ends with the pid namespace all the same.
    pub(crate) fn kill(&self) {
        self.kill_but(None);
    }

    /// As [`Outlook::kill`], but not the process `spared`, where it is not the
    /// kernel that kills all at once.
    pub(crate) fn kill_but(&self, spared: Option<u32>) {
        if let Some(dir) = &self.unified {
            let _killed = open(dir.as_fd(), "cgroup.kill", OFlags::WRONLY)
                .and_then(|file| Ok(rustix::io::write(&file, b"1")?));
        } else if let Some(dir) = &self.memory {
            let _killed = kill_each_but(dir.as_fd(), spared);
        }
    }

    /// Lets everything inside have as much processor time as there is. For what
    /// is being killed: a process ends only when it runs, and a hundred that
    /// have used up their share for now would take turns for a second.
    pub(crate) fn lift_cpu_limit(&self) {
        let Some(dir) = &self.cpu else {
            return;
        };
        // Of the versions one has the first and the other the second. Where
        // neither can be written the end comes late, as the limit wants it.
        for (file, none) in [("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")] {
            if let Ok(file) = open(dir.as_fd(), file, OFlags::WRONLY) {
                let _lifted = rustix::io::write(&file, none.as_bytes());
                return;
            }
        }
    }

    /// To be sent: in this order, where they are there.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let Tallies { kills, peak, forks } = &self.tallies;
        [&self.memory, &self.unified, &self.cpu, kills, peak, forks]
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
    /// From a message: which limits hold, which tallies there are, and the
    /// descriptors beside it.
    pub(crate) fn from_parts(
        limited: Limited,
        tallies: u8,
        descriptors: Vec<OwnedFd>,
    ) -> Option<Self> {
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
            cpu: next(limited.cpu)?,
            tallies: Tallies {
                kills: next(tallies & 1 != 0)?,
                peak: next(tallies & 2 != 0)?,
                forks: next(tallies & 4 != 0)?,
            },
        };
        Some(Self {
            limited,
            outlook,
            _hold: hold,
        })
    }
}

fn kill_each_but(dir: BorrowedFd<'_>, spared: Option<u32>) -> io::Result<()> {
    let listed = || -> io::Result<Vec<Pid>> {
        let text = read_up_to(dir, "cgroup.procs", LIST_BYTES_MAX)?;
        let numbers = text.lines().filter_map(|line| line.parse().ok());
        Ok(numbers.filter_map(Pid::from_raw).collect())
    };
    let spared = spared
        .and_then(|number| i32::try_from(number).ok())
        .and_then(Pid::from_raw);
    let mut found = Vec::new();
    for number in listed()?.into_iter().take(KILLED_AT_ONCE_MAX) {
        if Some(number) != spared
            && let Ok(process) = pidfd_open(number, PidfdFlags::empty())
        {
            found.push((number, process));
        }
    }
    // A number can be another's since it was listed. One that is listed now is
    // that of the process the descriptor was opened for, or that one is gone.
    let inside = listed()?;
    for (number, process) in found {
        if inside.contains(&number) {
            // It can only fail for a process that is gone.
            let _killed = pidfd_send_signal(process, Signal::KILL);
        }
    }
    Ok(())
}

fn open(dir: BorrowedFd<'_>, name: &str, access: OFlags) -> io::Result<OwnedFd> {
    rustix::fs::openat(dir, name, access | OFlags::CLOEXEC, Mode::empty()).map_err(Into::into)
}

/// What an open file says now: from its beginning, the kernel makes it anew.
fn again(file: &OwnedFd) -> io::Result<String> {
    let mut bytes = [0_u8; FILE_BYTES_MAX];
    let count = rustix::io::pread(file, &mut bytes, 0)?;
    let text = std::str::from_utf8(bytes.get(..count).unwrap_or_default());
    text.map(str::to_owned).map_err(io::Error::other)
}

fn read_up_to(dir: BorrowedFd<'_>, name: &str, most: u64) -> io::Result<String> {
    let file = open(dir, name, OFlags::RDONLY)?;
    let mut text = String::with_capacity(LIST_BYTES_ROOM);
    std::fs::File::from(file)
        .take(most)
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
        let memory = OwnedFd::from(std::fs::File::open(temp.path()).unwrap());
        let outlook = Outlook {
            tallies: Tallies::open(Some(memory.as_fd()), Some(memory.as_fd())),
            memory: Some(memory),
            ..Outlook::default()
        };
        (temp, outlook)
    }

    #[test]
    fn kills_and_peaks_are_read_from_either_version() {
        let usage = GroupUsage {
            out_of_memory_kills: 3,
            memory_peak_bytes: Some(4096),
            refused_forks: 5,
        };
        for files in [
            [
                (
                    "memory.oom_control",
                    "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
                ),
                ("memory.max_usage_in_bytes", "4096\n"),
                ("pids.events", "max 5\n"),
            ],
            [
                ("memory.events", "low 0\nhigh 9\nmax 7\noom 5\noom_kill 3\n"),
                ("memory.peak", "4096\n"),
                ("pids.events", "max 5\n"),
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
        outlook.lift_cpu_limit();
    }

    #[test]
    fn what_is_listed_is_killed_and_what_is_spared_is_not() {
        use std::os::unix::process::ExitStatusExt as _;

        let mut processes: Vec<_> = (0..3)
            .map(|_| {
                let mut sleep = std::process::Command::new("sleep");
                sleep.arg("1000").spawn().unwrap()
            })
            .collect();
        let numbers: Vec<_> = processes.iter().map(std::process::Child::id).collect();
        // Neither a number of nobody nor a word stops it.
        let listed = format!(
            "{}\n999999999\nx\n{}\n{}\n",
            numbers[0], numbers[1], numbers[2]
        );
        let (_temp, outlook) = outlook(&[("cgroup.procs", &listed)]);
        outlook.kill_but(Some(numbers[1]));
        for (at, process) in processes.iter_mut().enumerate() {
            if at != 1 {
                assert_eq!(process.wait().unwrap().signal(), Some(9), "{at}");
            }
        }
        assert_eq!(processes[1].try_wait().unwrap(), None);
        outlook.kill();
        assert_eq!(processes[1].wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_number_that_is_another_processs_by_now_is_not_killed() {
        let mut other = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let (temp, outlook) = outlook(&[]);
        let list = temp.path().join("cgroup.procs");
        let pipe = |path: &std::path::Path| {
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        };
        pipe(&list);
        let number = other.id();
        let tells = std::thread::spawn(move || {
            let open = || std::fs::File::options().write(true).open(&list).unwrap();
            let tell = |mut told: std::fs::File, text: String| {
                std::io::Write::write_all(&mut told, text.as_bytes()).unwrap();
            };
            let first = open();
            // Whoever looks again after the first list finds the second one.
            let next = list.with_extension("next");
            pipe(&next);
            std::fs::rename(&next, &list).unwrap();
            tell(first, format!("{number}\n"));
            tell(open(), "999999999\n".to_owned());
        });
        outlook.kill();
        tells.join().unwrap();
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn the_limit_of_processor_time_is_lifted_in_either_version() {
        for (file, limit, none) in [
            ("cpu.cfs_quota_us", "50000", "-1000"),
            ("cpu.max", "50000 100000", "max00 100000"),
        ] {
            let (temp, mut outlook) = outlook(&[(file, limit)]);
            outlook.lift_cpu_limit();
            let read = || std::fs::read_to_string(temp.path().join(file)).unwrap();
            assert_eq!(read(), limit, "without that group there is nothing to lift");
            outlook.cpu = outlook.memory.take();
            outlook.lift_cpu_limit();
            // A plain file keeps what was behind.
            assert_eq!(read(), none);
        }
    }

    #[test]
    fn a_message_with_too_few_descriptors_is_no_hold() {
        let limited = Limited {
            memory: true,
            ..Limited::default()
        };
        let file = || OwnedFd::from(std::fs::File::open("/").unwrap());
        assert!(Holding::from_parts(limited, 0, vec![file()]).is_none());
        let held = Holding::from_parts(limited, 0, vec![file(), file()]).unwrap();
        assert!(held.outlook.memory.is_some() && held.outlook.unified.is_none());
        assert_eq!(held.outlook.tallies.bits(), 0);
        assert!(Holding::from_parts(limited, 2, vec![file(), file()]).is_none());
        let held = Holding::from_parts(limited, 2, vec![file(), file(), file()]).unwrap();
        assert_eq!(held.outlook.tallies.bits(), 2);
    }
}
