//! The probes that only one mechanism stops on some kernel, which, and why there is no
//! second.
//!
//! What a kernel does not offer at all is stopped once more there. The reasons become
//! a table of docs/escape-matrix.md; what they say of the harm behind a probe has a
//! test in `behind`.

use hermitcrab_sandbox::profile::Mechanism;

const PROC: &str = "shown with processes alone (`subset=pid`), /proc lacks what honest programs read of memory, processors and settings; Landlock allows whole trees, and in this one processes come and go";
const ADDRESSES: &str = "as the others of /proc; addresses are zeros in it to whoever has no capability, unless the machine is set to show them";
const NOTHING_ELSE: &str =
    "the kernel asks nobody else: no limit, no namespace, no right of Landlock's";
const OF_THE_MACHINE: &str = "besides the filter there is one setting for the whole machine";

/// By name: the mechanism, and the reason.
pub const SINGLE_LINE: &[(&str, Mechanism, &str)] = &[
    ("/proc/cmdline", Mechanism::MaskedProc, PROC),
    ("/proc/config.gz", Mechanism::MaskedProc, PROC),
    ("/proc/interrupts", Mechanism::MaskedProc, PROC),
    ("/proc/kallsyms", Mechanism::MaskedProc, ADDRESSES),
    ("/proc/kcore", Mechanism::MaskedProc, PROC),
    ("/proc/key-users", Mechanism::MaskedProc, PROC),
    ("/proc/keys", Mechanism::MaskedProc, PROC),
    ("/proc/timer_list", Mechanism::MaskedProc, PROC),
    (
        "mask race: a masked file by another way",
        Mechanism::MaskedProc,
        ADDRESSES,
    ),
    (
        "a capability by a file",
        Mechanism::NoCapabilities,
        "the name of an attribute lies behind a pointer, which no filter follows, and Landlock has no right for attributes; the file's mount is `nosuid`, so it lends nothing, and no change set carries such an attribute out",
    ),
    ("32-bit entry", Mechanism::SystemCallFilter, OF_THE_MACHINE),
    (
        "a lease on a file",
        Mechanism::SystemCallFilter,
        "besides the filter there is one setting for the whole machine; a lease on a file of a view holds up nobody outside it, and files of the system have other owners, who alone may take one",
    ),
    (
        "a mark on a shared file",
        Mechanism::SystemCallFilter,
        "older kernels ask nobody else, newer ones for the owner, who is the command, because an ordinary user has no other id to give the files of its root; they lie in memory, where the mark changes nothing",
    ),
    (
        "a watch on a directory",
        Mechanism::SystemCallFilter,
        "besides the filter there is one setting for the whole machine; of a view's directory it tells nothing that happens outside, of the system's what the allowed inotify tells as well",
    ),
    ("add a key", Mechanism::SystemCallFilter, KEYS),
    (
        "asynchronous requests",
        Mechanism::SystemCallFilter,
        OF_THE_MACHINE,
    ),
    ("bpf", Mechanism::SystemCallFilter, OF_THE_MACHINE),
    (
        "io_uring",
        Mechanism::SystemCallFilter,
        "besides the filter there is one setting for the whole machine; what is asked for through it is done with the rights of the command, which all other mechanisms hold",
    ),
    (
        "kernel crypto sockets",
        Mechanism::SystemCallFilter,
        NOTHING_ELSE,
    ),
    ("modify_ldt", Mechanism::SystemCallFilter, NOTHING_ELSE),
    (
        "name to handle",
        Mechanism::SystemCallFilter,
        "the kernel asks nobody else; what it tells is of use to `open by handle` alone, which is held twice",
    ),
    (
        "netlink",
        Mechanism::SystemCallFilter,
        "the socket itself is refused by nothing else; behind it is the network of the command, which is empty",
    ),
    ("perf events", Mechanism::SystemCallFilter, OF_THE_MACHINE),
    ("session keyring", Mechanism::SystemCallFilter, KEYS),
    (
        "switch off address randomisation",
        Mechanism::SystemCallFilter,
        "the kernel asks nobody else; it weakens the command's own programs alone",
    ),
    (
        "userfaultfd of its own faults",
        Mechanism::SystemCallFilter,
        "the kernel asks nobody else; in this form it stops no code of the kernel's",
    ),
    (
        "vsock",
        Mechanism::SystemCallFilter,
        "network namespaces do not hold it, it needs no device, and Landlock has no right for it",
    ),
    (
        "a file outside that all may read",
        Mechanism::PrivateRoot,
        NOT_THERE,
    ),
    ("raw disks and machines", Mechanism::PrivateRoot, NOT_THERE),
    ("run directories", Mechanism::PrivateRoot, NOT_THERE),
    (
        "an inherited descriptor",
        Mechanism::ClosedDescriptors,
        "the kernel asks nobody whether a descriptor may be kept; what is opened by way of it Landlock refuses",
    ),
    (
        "where the machine keeps its groups",
        Mechanism::CgroupNamespace,
        "the kernel asks nobody else; it tells the name of a directory that is not there",
    ),
    (
        "begin as no first victim of memory",
        Mechanism::FirstVictim,
        ITS_OWN_PREFERENCE,
    ),
    (
        "be no first victim of memory any more",
        Mechanism::Landlock,
        ITS_OWN_PREFERENCE,
    ),
];

const NOT_THERE: &str = "in the machine's root its modes alone would hold it: Landlock lets all below the root be read, because it has no right to list one directory and not what is below, and programs list the root";
const ITS_OWN_PREFERENCE: &str = "the file is each process' own, and besides Landlock the kernel asks nobody who sets it to what the agent has; it decides who is ended first when the machine has no memory left, of which the command's groups let it have a part";

const KEYS: &str = "the kernel asks nobody else; the keys of a command are those of its user namespace and end with it";

/// What holds a probe that got nowhere, whatever of the matrix was left out.
pub fn held_by_what_stays(probe: &str) -> Option<&'static str> {
    STAYS
        .iter()
        .find(|(_, probes)| probes.contains(&probe))
        .map(|(why, _)| *why)
}

/// The reason, and the probes.
const STAYS: &[(&str, &[&str])] = &[
    (
        "asks for a capability over the machine itself, which nobody has in a user namespace below it; where the command's own is left out, that of the zygotes is still around it",
        &[
            "bpf",
            "kexec",
            "load a module",
            "load a module from a file",
            "make a block device",
            "make a block device by the old call",
            "make a character device",
            "open by handle",
            "packet sockets",
            "perf events",
            "process accounting",
            "raw internet sockets",
            "raw ports",
            "read the kernel's log",
            "reboot",
            "rename the machine",
            "set the clock",
            "swap",
            "unload a module",
            "userfaultfd",
        ],
    ),
    (
        "the ids: the process is another user's, or has rights that the command lacks, or has closed itself to others (not dumpable)",
        &[
            "compare with the first process",
            "enter the first process' namespaces",
            "list the first process' descriptors",
            "move another process' memory",
            "overwrite the first process' program",
            "process_vm_readv of the first process",
            "read the first process' memory",
            "read the memory of a process outside",
            "seize the first process",
            "signal a process outside",
            "take a descriptor of the first process",
            "the first process' root",
            "trace a process outside",
            "trace the first process",
            "write the first process' memory",
        ],
    ),
    (
        "the ids: the file is the machine's root's, and its mode lets nobody else",
        &[
            "/proc/kcore",
            "/proc/timer_list",
            "a setting of memory",
            "a setting of the network",
            "core_pattern",
            "leave its groups",
            "make a file in the system",
            "overwrite the running program",
            "sysrq",
            "the shadow file",
            "write a program of the system",
        ],
    ),
    (
        "a directory for temporary files of its own lies over the machine's, also where the rest of the machine's root is shown",
        &["a file of the user outside", "the same through a link"],
    ),
    (
        "the user namespace does not know the program's owner; and `no_new_privs`, which is set for the watch on renames as well",
        &["become another by a set-id program"],
    ),
    (
        "the kernel knows nothing above the root of a process",
        &["above the root"],
    ),
    (
        "there is no terminal in this table; those of the table of terminals are live",
        &[
            "a controlling terminal",
            "change a line discipline",
            "type into a terminal",
        ],
    ),
    (
        "not offered by the kernel this page was made on",
        &["kernel crypto sockets", "x32 call numbers"],
    ),
];
