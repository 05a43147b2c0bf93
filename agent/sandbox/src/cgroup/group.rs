//! One command's groups: made, filled, read, killed, removed.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use cgroups_rs::MaxValue;
use cgroups_rs::cpu::CpuController;
use cgroups_rs::memory::MemController;
use cgroups_rs::pid::PidController;
use rustix::fs::{Mode, OFlags};

use super::gauges::{Gauges, State};
use super::outlook::Tallies;
use super::place::{Controller, Parent, Place, makers};
use super::{Entrances, GroupLimits, Limited, Outlook};

/// The stretch over which processor time is counted, in microseconds.
const CPU_PERIOD_US: u64 = 100_000;
/// Where the kernel lists what it puts memory out to, if it can do that at all.
const SWAPS: &str = "/proc/swaps";
/// How often an emptied group is tried again, and how long apart.
const REMOVALS_MAX: u32 = 50;
const REMOVAL_PAUSE_NS: i64 = 2_000_000;

/// The groups of one command, one in each hierarchy of use.
#[derive(Debug)]
pub struct Group {
    dirs: Vec<Dir>,
    limited: Limited,
    /// For groups that can serve again.
    gauges: Option<Gauges>,
}

#[derive(Debug)]
struct Dir {
    path: PathBuf,
    unified: bool,
    controllers: Vec<Controller>,
}

impl Group {
    /// Makes empty groups with these limits. `number` must be new in this process.
    ///
    /// # Errors
    /// No group could be made, or one that was made takes no limit.
    pub fn make(place: &Place, number: u64, limits: &GroupLimits) -> io::Result<Self> {
        let name = makers::name(number);
        let mut group = Self {
            dirs: Vec::new(),
            limited: Limited::default(),
            gauges: None,
        };
        for parent in &place.parents {
            // What is made is owned by `group` at once, and removed on the way out.
            group.add(parent, &name, limits)?;
        }
        // Without them it serves once.
        group.gauges = group.open_gauges().ok();
        Ok(group)
    }

    fn add(&mut self, parent: &Parent, name: &str, limits: &GroupLimits) -> io::Result<()> {
        let path = parent.dir.join(name);
        fs::create_dir(&path)?;
        self.dirs.push(Dir {
            path: path.clone(),
            unified: parent.unified,
            controllers: parent.controllers.clone(),
        });
        for controller in &parent.controllers {
            match controller {
                Controller::Memory => {
                    let swap = limit_memory(&path, parent.unified, limits.memory_bytes)?;
                    self.limited.memory = true;
                    self.limited.swap = swap == Swap::Held || !Path::new(SWAPS).exists();
                }
                Controller::Cpu => {
                    limit_cpu(&path, parent.unified, limits.cpu_percent)?;
                    self.limited.cpu = true;
                }
                Controller::Pids => {
                    let most = i64::try_from(limits.processes).unwrap_or(i64::MAX);
                    PidController::new(path.clone(), parent.unified)
                        .set_pid_max(MaxValue::Value(most))
                        .map_err(io::Error::other)?;
                    self.limited.processes = true;
                }
            }
        }
        self.limited.kill |= parent.unified && path.join("cgroup.kill").exists();
        Ok(())
    }

    fn open_gauges(&self) -> io::Result<Gauges> {
        let mut gauges = Gauges::default();
        for dir in &self.dirs {
            if dir.unified {
                return Err(io::ErrorKind::Unsupported.into());
            }
            gauges.add(&dir.path, &dir.controllers)?;
        }
        Ok(gauges)
    }

    /// Whether somebody is inside, or nothing shows that anybody was.
    pub(super) fn state(&self) -> State {
        self.gauges.as_ref().map_or(State::Used, Gauges::state)
    }

    /// Which limits hold for what is inside.
    pub fn limited(&self) -> Limited {
        self.limited
    }

    /// The ways in, one for each hierarchy.
    ///
    /// # Errors
    /// One of them cannot be written: then none of the limits is whole.
    pub(crate) fn entrances(&self) -> io::Result<Entrances> {
        let open = |unified: bool, file: &str| {
            self.dirs
                .iter()
                .filter(|dir| dir.unified == unified)
                .map(|dir| {
                    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                    rustix::fs::open(dir.path.join(file), flags, Mode::empty())
                        .map_err(io::Error::from)
                })
                .collect::<io::Result<Vec<_>>>()
        };
        let births = self.dirs.iter().filter(|dir| dir.unified).map(|dir| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(&dir.path, flags, Mode::empty()).map_err(io::Error::from)
        });
        Ok(Entrances {
            own: open(false, "tasks")?,
            others: open(true, "cgroup.procs")?,
            births: births.collect::<io::Result<_>>()?,
        })
    }

    /// The directories that tell what was used and that kill all at once.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub(crate) fn outlook(&self) -> io::Result<Outlook> {
        let open = |dir: &Dir| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(&dir.path, flags, Mode::empty()).map_err(io::Error::from)
        };
        let find = |wanted: &dyn Fn(&Dir) -> bool| self.dirs.iter().find(|dir| wanted(dir));
        let memory = find(&|dir| dir.controllers.contains(&Controller::Memory))
            .filter(|_| self.limited.memory)
            .map(open)
            .transpose()?;
        let processes = find(&|dir| dir.controllers.contains(&Controller::Pids))
            .filter(|_| self.limited.processes)
            .map(open)
            .transpose()?;
        Ok(Outlook {
            tallies: Tallies::open(
                memory.as_ref().map(AsFd::as_fd),
                processes.as_ref().map(AsFd::as_fd),
            ),
            memory,
            unified: find(&|dir| dir.unified)
                .filter(|_| self.limited.kill)
                .map(open)
                .transpose()?,
            cpu: find(&|dir| dir.controllers.contains(&Controller::Cpu))
                .filter(|_| self.limited.cpu)
                .map(open)
                .transpose()?,
        })
    }

    /// Removes what is empty by now; whether nothing is left. What is still
    /// inside is killed, where the kernel can do that.
    pub(crate) fn try_remove(&mut self) -> bool {
        for dir in self.dirs.iter().filter(|dir| dir.unified) {
            // Without it the pid namespace has the same effect.
            let _killed = fs::write(dir.path.join("cgroup.kill"), "1");
        }
        // Whatever cannot be removed for another reason is swept by a later process.
        self.dirs
            .retain(|dir| rustix::fs::rmdir(&dir.path) == Err(rustix::io::Errno::BUSY));
        self.dirs.is_empty()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVALS_MAX {
            if self.try_remove() {
                return;
            }
            // Killed processes leave their group a little after they are reaped.
            let pause = rustix::thread::Timespec {
                tv_sec: 0,
                tv_nsec: REMOVAL_PAUSE_NS,
            };
            let _slept = rustix::thread::nanosleep(&pause);
        }
    }
}

/// Whether memory that is put out to disk is held as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swap {
    Held,
    NotHeld,
}

fn limit_memory(path: &Path, unified: bool, bytes: u64) -> io::Result<Swap> {
    let memory = MemController::new(path.to_owned(), unified);
    let limit = i64::try_from(bytes).unwrap_or(i64::MAX);
    memory.set_limit(limit).map_err(io::Error::other)?;
    // Version 1 counts memory and swap together, version 2 swap alone. A kernel
    // that does not count swap has no such file.
    let swap = if unified { 0 } else { limit };
    let swap = match memory.set_memswap_limit(swap) {
        Ok(()) => Swap::Held,
        Err(_) => Swap::NotHeld,
    };
    if unified {
        // One process less is no use to a command: all of it ends.
        fs::write(path.join("memory.oom.group"), "1")?;
    }
    Ok(swap)
}

fn limit_cpu(path: &Path, unified: bool, percent: u32) -> io::Result<()> {
    let quota = CPU_PERIOD_US.saturating_mul(u64::from(percent)) / 100;
    CpuController::new(path.to_owned(), unified)
        .set_cfs_quota_and_period(i64::try_from(quota).ok(), Some(CPU_PERIOD_US))
        .map_err(io::Error::other)?;
    // What was not used in one stretch may be used in the next: short commands
    // start without a pause. Kernels before 5.14 have no such file.
    let burst = if unified {
        "cpu.max.burst"
    } else {
        "cpu.cfs_burst_us"
    };
    // Without it the limit is the same, and short commands pause.
    let _allowed = fs::write(path.join(burst), quota.to_string());
    Ok(())
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
    fn a_group_is_made_with_its_limits_and_leaves_nothing_behind() {
        let place = match Place::find() {
            Ok(place) => place,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
        let group = match Group::make(&place, 7_000_001, &LIMITS) {
            Ok(group) => group,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
        let dirs: Vec<PathBuf> = group.dirs.iter().map(|dir| dir.path.clone()).collect();
        assert!(dirs.iter().all(|dir| dir.is_dir()));
        for dir in &group.dirs {
            let read = |name: &str| fs::read_to_string(dir.path.join(name)).unwrap();
            for controller in &dir.controllers {
                let (file, wanted) = match (controller, dir.unified) {
                    (Controller::Memory, false) => ("memory.limit_in_bytes", "67108864\n"),
                    (Controller::Memory, true) => ("memory.max", "67108864\n"),
                    (Controller::Cpu, false) => ("cpu.cfs_quota_us", "50000\n"),
                    (Controller::Cpu, true) => ("cpu.max", "50000 100000\n"),
                    (Controller::Pids, false | true) => ("pids.max", "20\n"),
                };
                assert_eq!(read(file), wanted, "{file}");
            }
        }
        assert_eq!(group.outlook().unwrap().usage().out_of_memory_kills, 0);
        let entrances = group.entrances().unwrap();
        assert_eq!(entrances.own.len() + entrances.others.len(), dirs.len());
        drop(group);
        assert!(dirs.iter().all(|dir| !dir.exists()));
    }

    #[test]
    fn swap_that_is_not_held_is_told() {
        for held in [Swap::Held, Swap::NotHeld] {
            let temp = tempfile::tempdir().unwrap();
            if held == Swap::NotHeld {
                // In a plain directory the file would be made.
                fs::create_dir(temp.path().join("memory.memsw.limit_in_bytes")).unwrap();
            }
            assert_eq!(limit_memory(temp.path(), false, 1 << 20).unwrap(), held);
            let kept = fs::read_to_string(temp.path().join("memory.limit_in_bytes"));
            assert_eq!(kept.unwrap(), "1048576");
        }
    }

    #[test]
    fn of_a_command_whose_memory_ran_out_all_ends_and_nothing_is_put_out_to_disk() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(
            limit_memory(temp.path(), true, 1 << 20).unwrap(),
            Swap::Held
        );
        let kept = |name: &str| fs::read_to_string(temp.path().join(name)).unwrap();
        assert_eq!(kept("memory.max"), "1048576");
        assert_eq!(kept("memory.swap.max"), "0");
        assert_eq!(kept("memory.oom.group"), "1");
    }

    #[test]
    fn what_is_still_inside_is_killed_before_its_group_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let mut group = Group {
            dirs: vec![Dir {
                path: temp.path().to_owned(),
                unified: true,
                controllers: Vec::new(),
            }],
            limited: Limited::default(),
            gauges: None,
        };
        group.try_remove();
        let killed = fs::read_to_string(temp.path().join("cgroup.kill"));
        assert_eq!(killed.unwrap(), "1");
    }

    #[test]
    fn a_second_group_of_the_same_number_is_refused_and_the_first_stays() {
        let Ok(place) = Place::find() else {
            println!("SKIPPED: no control groups");
            return;
        };
        let Ok(first) = Group::make(&place, 7_000_002, &LIMITS) else {
            println!("SKIPPED: no control groups");
            return;
        };
        assert!(Group::make(&place, 7_000_002, &LIMITS).is_err());
        assert!(first.dirs.iter().all(|dir| dir.path.is_dir()));
    }
}
