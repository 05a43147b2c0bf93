//! Limits for a command as a whole, by control groups.
//!
//! What for: rlimits bound one process; memory and processor time of everything
//! a command starts are bounded here, and here alone the kernel says that
//! memory ran out. Groups are made where this process may make them: below its
//! own group, version 1, version 2 or both side by side.
//!
//! Which file of which version holds a limit is `cgroups-rs`'s knowledge. What
//! it cannot do is written directly: starting a process inside a group,
//! `cgroup.kill`, `memory.oom.group`, the counter of out-of-memory kills.
//!
//! Groups are made and removed by the spawner, which outlives the agent by as
//! long as that takes: an agent that is killed leaves none. Those on which nothing
//! of a command shows serve again. A sandbox's first
//! process moves itself inside where version 1 holds the limits, because moving
//! another one can wait for the whole machine (11 ms after idleness); where
//! version 2 does, it is born inside, or the zygote moves it while it builds its root. No command is
//! started before it is inside.
//!
//! This module must never pretend: a limit that could not be set is missing
//! from [`Limited`], and that is part of what is reported about each command.

mod entrances;
mod gauges;
mod group;
mod keeper;
mod outlook;
mod place;

use std::fmt;

pub(crate) use self::entrances::{Admission, Entrances};
pub use self::group::Group;
pub(crate) use self::keeper::{History, Keeper};
pub(crate) use self::outlook::{Holding, Outlook};
pub use self::place::Place;

/// How much a command may use, with everything it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// Memory and swap together, private and shared, temporary files included.
    pub memory_bytes: u64,
    /// Processor time, in hundredths of one processor.
    pub cpu_percent: u32,
    /// Processes and threads at once.
    pub processes: u64,
}

/// Which limits a command really has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    /// Memory of all its processes.
    pub memory: bool,
    /// Processor time of all its processes.
    pub cpu: bool,
    /// How many processes it has.
    pub processes: bool,
    /// Whether all its processes can be killed at once by the group.
    pub kill: bool,
    /// Whether memory that the kernel puts out to disk is held as well.
    pub swap: bool,
}

impl Limited {
    /// Whether nothing is missing that limits.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.memory && self.cpu && self.processes
    }

    /// What is not held, in words.
    pub(crate) fn missing(self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.is_complete() {
            missing.push(format!("control groups: they hold {self} only"));
        }
        if self.memory && !self.swap {
            let why = "control groups: memory that is put out to disk is not held";
            missing.push(String::from(why));
        }
        missing
    }

    pub(crate) fn bits(self) -> u8 {
        u8::from(self.memory)
            | u8::from(self.cpu) << 1
            | u8::from(self.processes) << 2
            | u8::from(self.kill) << 3
            | u8::from(self.swap) << 4
    }

    pub(crate) fn from_bits(bits: u8) -> Self {
        Self {
            memory: bits & 1 != 0,
            cpu: bits & 2 != 0,
            processes: bits & 4 != 0,
            kill: bits & 8 != 0,
            swap: bits & 16 != 0,
        }
    }
}

impl GroupLimits {
    /// No more than this, whatever is asked: what the file systems can hold.
    pub(crate) const fn is_asked(&self) -> bool {
        self.memory_bytes > 0 && self.cpu_percent > 0 && self.processes > 0
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [
            (self.memory, "memory"),
            (self.cpu, "cpu"),
            (self.processes, "processes"),
            (self.kill, "kill"),
            (self.swap, "swap"),
        ]
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name))
        .collect();
        if parts.is_empty() {
            f.write_str("nothing")
        } else {
            f.write_str(&parts.join(", "))
        }
    }
}

/// What a command used, as far as its groups tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUsage {
    /// Processes the kernel killed because memory ran out.
    pub out_of_memory_kills: u64,
    /// The most memory it held at once, in bytes.
    pub memory_peak_bytes: Option<u64>,
    /// Processes and threads the kernel refused because there were as many as there may be.
    pub refused_forks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_groups_do_not_hold_is_told() {
        let all = Limited {
            memory: true,
            cpu: true,
            processes: true,
            kill: true,
            swap: true,
        };
        let swap = "control groups: memory that is put out to disk is not held";
        let only = |held: &str| format!("control groups: they hold {held} only");
        for (limited, missing) in [
            (all, vec![]),
            // What kills all at once is not missed: everything is killed all the same.
            (Limited { kill: false, ..all }, vec![]),
            (Limited { swap: false, ..all }, vec![swap.to_owned()]),
            (
                Limited {
                    memory: false,
                    ..all
                },
                vec![only("cpu, processes, kill, swap")],
            ),
            (
                Limited {
                    cpu: false,
                    swap: false,
                    ..all
                },
                vec![only("memory, processes, kill"), swap.to_owned()],
            ),
            (
                Limited {
                    processes: false,
                    kill: false,
                    ..all
                },
                vec![only("memory, cpu, swap")],
            ),
            (Limited::default(), vec![only("nothing")]),
        ] {
            assert_eq!(limited.missing(), missing, "{limited}");
        }
    }
}
