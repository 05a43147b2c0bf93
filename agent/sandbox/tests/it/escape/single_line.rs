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
];

const KEYS: &str = "the kernel asks nobody else; the keys of a command are those of its user namespace and end with it";
