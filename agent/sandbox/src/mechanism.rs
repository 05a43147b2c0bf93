//! The parts of the isolation, by name, and sets of them.
//!
//! What for: the probe's table, the report attached to each command, and the
//! tests that leave one part out all speak of the same closed list.

use std::fmt;

/// One part of the isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// Ids of its own, none of them the machine's root.
    UserNamespace,
    /// Mounts of its own.
    MountNamespace,
    /// Processes of its own, killed together.
    PidNamespace,
    /// A network of its own with nothing in it.
    NetworkNamespace,
    /// Shared memory and message queues of its own.
    IpcNamespace,
    /// A host name of its own.
    UtsNamespace,
    /// A view of control groups of its own.
    CgroupNamespace,
    /// A root with only the system directories, read-only.
    PrivateRoot,
    /// A /proc without what tells about the machine or acts on it.
    MaskedProc,
    /// A view of the workspace whose changes can be dropped.
    CopyOnWrite,
    /// No capability, and no way to get one.
    NoCapabilities,
    /// The filter of system calls.
    SystemCallFilter,
    /// The limits of one process.
    ResourceLimits,
    /// No descriptor but the three standard ones.
    ClosedDescriptors,
    /// Containment of paths by the kernel.
    ContainedPaths,
    /// Limits of memory and processor time for the whole command.
    ControlGroups,
    /// The kernel's second line for files, sockets and signals.
    Landlock,
    /// Files of a view belong to the command's own user, by an id map on the
    /// mount where that is needed. Where there can be none, files of a copy do.
    IdMaps,
    /// A session of its own, without a controlling terminal.
    OwnSession,
    /// No user namespace below its own, whatever the filter lets through.
    NoNesting,
    /// A part of the watches on files that the machine allows its user.
    SharedWatches,
    /// It is what the kernel takes first when the machine's memory runs out.
    FirstVictim,
}

impl Mechanism {
    /// Every mechanism, in the order of the table.
    pub const ALL: [Self; 22] = [
        Self::UserNamespace,
        Self::MountNamespace,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::PrivateRoot,
        Self::MaskedProc,
        Self::CopyOnWrite,
        Self::NoCapabilities,
        Self::SystemCallFilter,
        Self::ResourceLimits,
        Self::ClosedDescriptors,
        Self::ContainedPaths,
        Self::ControlGroups,
        Self::Landlock,
        Self::IdMaps,
        Self::OwnSession,
        Self::NoNesting,
        Self::SharedWatches,
        Self::FirstVictim,
    ];

    /// Its name in a table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserNamespace => "user namespace",
            Self::MountNamespace => "mount namespace",
            Self::PidNamespace => "pid namespace",
            Self::NetworkNamespace => "network namespace",
            Self::IpcNamespace => "ipc namespace",
            Self::UtsNamespace => "uts namespace",
            Self::CgroupNamespace => "cgroup namespace",
            Self::PrivateRoot => "private root",
            Self::MaskedProc => "masked /proc",
            Self::CopyOnWrite => "copy-on-write view",
            Self::NoCapabilities => "no capabilities",
            Self::SystemCallFilter => "system call filter",
            Self::ResourceLimits => "resource limits",
            Self::ClosedDescriptors => "closed descriptors",
            Self::ContainedPaths => "contained paths (openat2)",
            Self::ControlGroups => "control groups",
            Self::Landlock => "landlock",
            Self::IdMaps => "id maps on views",
            Self::OwnSession => "no controlling terminal",
            Self::NoNesting => "no nested namespaces",
            Self::SharedWatches => "shares of file watches",
            Self::FirstVictim => "first victim of memory",
        }
    }

    /// What is lost without it.
    #[must_use]
    pub const fn lost_without(self) -> &'static str {
        match self {
            Self::UserNamespace => "commands run with the ids of the agent, or not at all",
            Self::MountNamespace | Self::PrivateRoot => "commands see and change the whole machine",
            Self::PidNamespace => {
                "commands see and signal other processes, and survive their timeout"
            }
            Self::NetworkNamespace => "commands reach the network",
            Self::IpcNamespace => "commands share memory segments with other programs",
            Self::UtsNamespace => "nothing a command without capabilities could use",
            Self::CgroupNamespace => "commands read where the machine keeps their limits",
            Self::CopyOnWrite => "effects cannot be shown before they happen",
            Self::NoCapabilities => "commands can undo the rest of the isolation",
            Self::SystemCallFilter => {
                "faults of rarely used system calls are within reach, and vsock and netlink are open"
            }
            Self::ResourceLimits => "a fork bomb or a huge file stops the machine",
            Self::MaskedProc => "commands read kernel addresses, keys and the boot command line",
            Self::ClosedDescriptors => "commands use whatever the agent has open",
            Self::ContainedPaths => "no file can be opened at all: there is no weaker way",
            Self::ControlGroups => {
                "a command can use all memory and processor time until its timeout"
            }
            Self::Landlock => "a second line against faults of the private root",
            Self::IdMaps => {
                "what a command of root's may write is copied for it; in what it may only read, and beyond the ceilings of a copy, it has a stranger's rights"
            }
            Self::OwnSession => "commands type into the terminal the agent runs in",
            Self::NoNesting => {
                "a second line, behind the filter, against commands that want powers in namespaces of their own"
            }
            Self::SharedWatches => {
                "a command can take every file watch of its user, and other programs find none left"
            }
            Self::FirstVictim => {
                "when the machine's memory runs out, another program may be ended before the command"
            }
        }
    }

    /// Whether commands are refused without it.
    #[must_use]
    pub const fn is_mandatory(self) -> bool {
        match self {
            Self::UserNamespace
            | Self::MountNamespace
            | Self::PidNamespace
            | Self::NetworkNamespace
            | Self::IpcNamespace
            | Self::PrivateRoot
            | Self::MaskedProc
            | Self::CopyOnWrite
            | Self::NoCapabilities
            | Self::SystemCallFilter
            | Self::ResourceLimits
            | Self::ClosedDescriptors
            | Self::ContainedPaths
            | Self::OwnSession => true,
            Self::UtsNamespace
            | Self::CgroupNamespace
            | Self::ControlGroups
            | Self::Landlock
            | Self::IdMaps
            | Self::NoNesting
            | Self::SharedWatches
            | Self::FirstVictim => false,
        }
    }
}

/// A set of mechanisms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MechanismSet(u32);

impl MechanismSet {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set of these.
    #[must_use]
    pub fn of(mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        let mut set = Self::NONE;
        for mechanism in mechanisms {
            set.insert(mechanism);
        }
        set
    }

    /// Adds one.
    pub fn insert(&mut self, mechanism: Mechanism) {
        self.0 |= 1 << mechanism as u32;
    }

    /// Whether it is in the set.
    #[must_use]
    pub const fn contains(self, mechanism: Mechanism) -> bool {
        self.0 & (1 << mechanism as u32) != 0
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = Mechanism> {
        Mechanism::ALL
            .into_iter()
            .filter(move |mechanism| self.contains(*mechanism))
    }

    /// For the wire.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// From the wire; `None` if it names what does not exist.
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        let all = Self::of(Mechanism::ALL);
        (bits & !all.0 == 0).then_some(Self(bits))
    }
}

impl fmt::Display for MechanismSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Mechanism::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for mechanism in Mechanism::ALL {
            let set = MechanismSet::of([mechanism]);
            assert_eq!(set.iter().collect::<Vec<_>>(), [mechanism]);
            assert_eq!(MechanismSet::from_bits(set.bits()), Some(set));
        }
        assert_eq!(MechanismSet::of(Mechanism::ALL).iter().count(), 22);
        assert_eq!(MechanismSet::from_bits(1 << 31), None);
    }
}
