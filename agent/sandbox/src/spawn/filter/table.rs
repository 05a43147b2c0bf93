//! The table itself: one row per refused call, each with its reason.
//!
//! What for: a list a reviewer can read and a test can walk. Why a list of
//! refusals and not of permissions: commands are arbitrary programs, and the
//! namespaces are the first line. Numbers nobody has reviewed are absent,
//! so a newer kernel opens nothing by itself.
//!
//! It must never hold a row without a reason, nor one call under two actions.

use nix::libc;

/// What happens to a call that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// The whole process dies: no honest program tries this.
    Kill,
    /// The call fails with EPERM.
    Refuse,
    /// The call fails with ENOSYS, so that libc falls back to an older one
    /// whose arguments the filter can see.
    Absent,
}

/// When a row applies. Only the low 32 bits of an argument count: every
/// argument named here is an `int` (or a flag word of that size) to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// To every call.
    Always,
    /// Argument `.0` has any of the bits `.1`.
    AnyBit(u8, u32),
    /// Argument `.0`, masked by `.1`, equals `.2`.
    MaskedEquals(u8, u32, u32),
    /// Argument `.0` equals `.1`.
    Equals(u8, u32),
    /// Argument `.0` is none of these.
    NoneOf(u8, &'static [u32]),
    /// Argument `.0` is an id of this kind, and not the command's own.
    NotOwn(u8, Own),
}

/// Kinds of ids a command has one of its own of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Its user.
    User,
    /// Its group.
    Group,
}

/// A command's own ids. They are filled in when the program is made; all else of the
/// table is the same for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    /// Its user.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

impl Ids {
    /// The values a call may name of this kind; the second one leaves an id as it is.
    pub(super) const fn of(self, own: Own) -> [u32; 2] {
        match own {
            Own::User => [self.user, UNCHANGED],
            Own::Group => [self.group, UNCHANGED],
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub call: libc::c_long,
    pub name: &'static str,
    pub when: When,
    pub action: Action,
    pub reason: &'static str,
}

macro_rules! table {
    ($($call:ident $when:expr, $action:ident, $reason:literal;)*) => {
        &[$(Entry {
            call: numbers::$call,
            name: stringify!($call),
            when: $when,
            action: Action::$action,
            reason: $reason,
        }),*]
    };
}

/// The numbers of this architecture, with those the libc crate does not name.
mod numbers {
    pub(super) use nix::libc::*;
    /// See open_tree_attr(2), Linux 6.15; the number is the same everywhere.
    #[expect(non_upper_case_globals, reason = "spelled as its neighbours in libc")]
    pub(super) const SYS_open_tree_attr: c_long = 467;
}

const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP)
    .cast_unsigned();
/// clone(2) keeps the exit signal in these bits, so only unshare(2) takes it.
const NEW_TIME: u32 = 0x80;
const AF_UNIX: u32 = libc::AF_UNIX.cast_unsigned();
const AF_INET: u32 = libc::AF_INET.cast_unsigned();
const AF_INET6: u32 = libc::AF_INET6.cast_unsigned();
const FILE_TYPE: u32 = libc::S_IFMT;
/// Pushes a character into a terminal's input queue.
const TIOCSTI: u32 = 0x5412;
/// Selection and paste on a virtual console.
const TIOCLINUX: u32 = 0x541C;
/// Takes over the machine's console output.
const TIOCCONS: u32 = 0x541D;
/// Changes the line discipline of a terminal.
const TIOCSETD: u32 = 0x5423;
/// Has whoever opens a file next wait for its holder.
const F_SETLEASE: u32 = 1024;
const F_SET_RW_HINT: u32 = 1036;
const F_SET_FILE_RW_HINT: u32 = 1038;
/// Has the kernel tell of changes in a directory by a signal.
const F_NOTIFY: u32 = 1026;
/// `personality(0xffffffff)` only asks.
const PERSONALITY_QUERY: u32 = 0xffff_ffff;
const PR_SET_MM: u32 = libc::PR_SET_MM.cast_unsigned();
const PR_SET_IO_FLUSHER: u32 = 57;
const PR_MCE_KILL: u32 = libc::PR_MCE_KILL.cast_unsigned();
/// `setresuid(-1, -1, -1)` changes nothing.
const UNCHANGED: u32 = u32::MAX;

/// Refused to every command.
pub(crate) const ALWAYS: &[Entry] = table! {
    SYS_reboot When::Always, Kill, "stops the machine";
    SYS_mount When::Always, Kill, "changes what the command can see";
    SYS_umount2 When::Always, Kill, "uncovers what a mount hides";
    SYS_pivot_root When::Always, Kill, "changes the root";
    SYS_chroot When::Always, Kill, "changes the root";
    SYS_ptrace When::Always, Kill, "controls other processes, the sandbox's first one among them";
    SYS_kexec_load When::Always, Kill, "replaces the kernel";
    SYS_kexec_file_load When::Always, Kill, "replaces the kernel";
    SYS_init_module When::Always, Kill, "loads code into the kernel";
    SYS_finit_module When::Always, Kill, "loads code into the kernel";
    SYS_delete_module When::Always, Kill, "removes code from the kernel";
    SYS_fsopen When::Always, Kill, "new form of mount";
    SYS_fsconfig When::Always, Kill, "new form of mount";
    SYS_fsmount When::Always, Kill, "new form of mount";
    SYS_fspick When::Always, Kill, "new form of mount";
    SYS_open_tree When::Always, Kill, "new form of mount";
    SYS_open_tree_attr When::Always, Kill, "new form of mount";
    SYS_move_mount When::Always, Kill, "new form of mount";
    SYS_mount_setattr When::Always, Kill, "new form of mount";
    SYS_swapon When::Always, Kill, "changes the machine's memory";
    SYS_swapoff When::Always, Kill, "changes the machine's memory";
    SYS_unshare When::AnyBit(0, NAMESPACE_FLAGS | NEW_TIME), Refuse, "a new user namespace gives back capabilities";
    SYS_setns When::Always, Refuse, "enters another namespace";
    SYS_clone When::AnyBit(0, NAMESPACE_FLAGS), Refuse, "a new user namespace gives back capabilities";
    SYS_clone3 When::Always, Absent, "its flags lie behind a pointer; libc falls back to clone";
    SYS_process_vm_readv When::Always, Refuse, "reads another process' memory";
    SYS_process_vm_writev When::Always, Refuse, "writes another process' memory";
    SYS_process_madvise When::Always, Refuse, "acts on another process' memory";
    SYS_pidfd_getfd When::Always, Refuse, "takes a descriptor out of another process";
    SYS_kcmp When::Always, Refuse, "compares kernel objects of other processes";
    SYS_bpf When::Always, Refuse, "runs programs in the kernel";
    SYS_perf_event_open When::Always, Refuse, "observes the kernel and other processes";
    SYS_userfaultfd When::Always, Refuse, "stops kernel code at chosen moments";
    SYS_io_uring_setup When::Always, Refuse, "does I/O that this filter cannot see";
    SYS_io_uring_enter When::Always, Refuse, "does I/O that this filter cannot see";
    SYS_io_uring_register When::Always, Refuse, "does I/O that this filter cannot see";
    SYS_keyctl When::Always, Refuse, "keyrings outlive the sandbox";
    SYS_add_key When::Always, Refuse, "keyrings outlive the sandbox";
    SYS_request_key When::Always, Refuse, "runs a helper outside the sandbox";
    SYS_open_by_handle_at When::Always, Refuse, "opens files outside the root by number";
    SYS_name_to_handle_at When::Always, Refuse, "gives the number for the call above";
    SYS_mknodat When::MaskedEquals(2, FILE_TYPE, libc::S_IFCHR), Refuse, "makes a device";
    SYS_mknodat When::MaskedEquals(2, FILE_TYPE, libc::S_IFBLK), Refuse, "makes a device";
    SYS_quotactl When::Always, Refuse, "administers a file system";
    SYS_quotactl_fd When::Always, Refuse, "administers a file system";
    SYS_acct When::Always, Refuse, "writes a host file on every exit";
    SYS_sethostname When::Always, Refuse, "renames the machine";
    SYS_setdomainname When::Always, Refuse, "renames the machine";
    SYS_settimeofday When::Always, Refuse, "sets the machine's clock";
    SYS_clock_settime When::Always, Refuse, "sets the machine's clock";
    SYS_clock_adjtime When::Always, Refuse, "sets the machine's clock";
    SYS_adjtimex When::Always, Refuse, "sets the machine's clock";
    SYS_syslog When::Always, Refuse, "reads the kernel's log and addresses";
    SYS_personality When::NoneOf(0, &[0, PERSONALITY_QUERY]), Refuse, "weakens address layout and maps page zero";
    SYS_prctl When::Equals(0, PR_SET_MM), Refuse, "rewrites what /proc says of a process";
    SYS_prctl When::Equals(0, PR_SET_IO_FLUSHER), Refuse, "takes memory meant for writing back";
    SYS_prctl When::Equals(0, PR_MCE_KILL), Refuse, "chooses what a memory fault kills";
    SYS_move_pages When::Always, Refuse, "moves memory of other processes";
    SYS_migrate_pages When::Always, Refuse, "moves memory of other processes";
    SYS_set_mempolicy When::Always, Refuse, "places memory against the machine's plan";
    SYS_mbind When::Always, Refuse, "places memory against the machine's plan";
    SYS_memfd_secret When::Always, Refuse, "memory that nothing can account for";
    SYS_vhangup When::Always, Refuse, "hangs up a terminal";
    SYS_lookup_dcookie When::Always, Refuse, "names files outside the root";
    SYS_nfsservctl When::Always, Refuse, "talks to a kernel server";
    SYS_fanotify_init When::Always, Refuse, "watches whole file systems";
    SYS_fanotify_mark When::Always, Refuse, "watches whole file systems";
    SYS_ioctl When::Equals(1, TIOCSTI), Refuse, "types into a terminal (CVE-2017-5226)";
    SYS_ioctl When::Equals(1, TIOCLINUX), Refuse, "pastes into a console";
    SYS_ioctl When::Equals(1, TIOCCONS), Refuse, "diverts the machine's console";
    SYS_ioctl When::Equals(1, TIOCSETD), Refuse, "loads line disciplines, rich in kernel faults";
    SYS_fcntl When::Equals(1, F_SETLEASE), Refuse, "holds up whoever opens the file outside, which a read-only view does not hinder";
    SYS_fcntl When::Equals(1, F_NOTIFY), Refuse, "watches directories of the machine, old and unused";
    SYS_fcntl When::Equals(1, F_SET_RW_HINT), Refuse, "leaves a mark on a file of the shared root for the next command";
    SYS_fcntl When::Equals(1, F_SET_FILE_RW_HINT), Refuse, "old form of the same";
    SYS_io_setup When::Always, Refuse, "takes of a number the whole machine shares";
    SYS_setuid When::NotOwn(0, Own::User), Refuse, "becomes another user of the sandbox";
    SYS_setreuid When::NotOwn(0, Own::User), Refuse, "becomes another user of the sandbox";
    SYS_setreuid When::NotOwn(1, Own::User), Refuse, "becomes another user of the sandbox";
    SYS_setresuid When::NotOwn(0, Own::User), Refuse, "becomes another user of the sandbox";
    SYS_setresuid When::NotOwn(1, Own::User), Refuse, "becomes another user of the sandbox";
    SYS_setresuid When::NotOwn(2, Own::User), Refuse, "becomes another user of the sandbox";
    SYS_setfsuid When::NotOwn(0, Own::User), Refuse, "opens files as another user of the sandbox";
    SYS_setgid When::NotOwn(0, Own::Group), Refuse, "enters another group of the sandbox";
    SYS_setregid When::NotOwn(0, Own::Group), Refuse, "enters another group of the sandbox";
    SYS_setregid When::NotOwn(1, Own::Group), Refuse, "enters another group of the sandbox";
    SYS_setresgid When::NotOwn(0, Own::Group), Refuse, "enters another group of the sandbox";
    SYS_setresgid When::NotOwn(1, Own::Group), Refuse, "enters another group of the sandbox";
    SYS_setresgid When::NotOwn(2, Own::Group), Refuse, "enters another group of the sandbox";
    SYS_setfsgid When::NotOwn(0, Own::Group), Refuse, "opens files as another group of the sandbox";
    SYS_setgroups When::Always, Refuse, "enters other groups of the sandbox";
};

/// Refused on x86-64 only, where these exist.
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCH: &[Entry] = table! {
    SYS_iopl When::Always, Refuse, "raw access to hardware";
    SYS_ioperm When::Always, Refuse, "raw access to hardware";
    SYS_modify_ldt When::Always, Refuse, "old and rich in kernel faults";
    SYS_uselib When::Always, Refuse, "old and unused";
    SYS_mknod When::MaskedEquals(1, FILE_TYPE, libc::S_IFCHR), Refuse, "makes a device";
    SYS_mknod When::MaskedEquals(1, FILE_TYPE, libc::S_IFBLK), Refuse, "makes a device";
};
/// Nothing more elsewhere: younger architectures were never given the old calls.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const ARCH: &[Entry] = &[];

/// Refused to a command without a network capability.
pub(crate) const LOCAL_SOCKETS: &[Entry] = table! {
    SYS_socket When::NoneOf(0, &[AF_UNIX]), Refuse, "only local sockets; vsock and netlink pass network namespaces";
    SYS_socketpair When::NoneOf(0, &[AF_UNIX]), Refuse, "only local sockets";
};

/// Refused to a command with one.
pub(crate) const INTERNET_SOCKETS: &[Entry] = table! {
    SYS_socket When::NoneOf(0, &[AF_UNIX, AF_INET, AF_INET6]), Refuse, "only local and internet sockets; vsock and netlink pass network namespaces";
    SYS_socket When::NoneOf(2, &[0, 1, 6, 17]), Refuse, "only the usual protocols; the others load kernel modules";
    SYS_socketpair When::NoneOf(0, &[AF_UNIX]), Refuse, "only local sockets";
};

/// The numbers that were reviewed for this table; others are absent.
#[cfg(target_arch = "x86_64")]
pub(crate) const REVIEWED: &[(u32, u32)] = &[(0, 334), (424, 469)];
/// The numbers that were reviewed for this table; others are absent.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const REVIEWED: &[(u32, u32)] = &[(0, 294), (424, 469)];

/// Which sockets a command may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Those that end inside the sandbox.
    Local,
    /// Also those of the internet, in the sandbox's own network.
    Internet,
}

/// All rows that apply to a command with these sockets.
pub(crate) fn rows(sockets: Sockets) -> impl Iterator<Item = &'static Entry> {
    let network = match sockets {
        Sockets::Local => LOCAL_SOCKETS,
        Sockets::Internet => INTERNET_SOCKETS,
    };
    ALWAYS.iter().chain(ARCH).chain(network)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_entry_has_a_reason_and_no_call_appears_under_two_actions() {
        for sockets in [Sockets::Local, Sockets::Internet] {
            let mut actions: BTreeMap<i64, Action> = BTreeMap::new();
            for entry in rows(sockets) {
                assert!(!entry.reason.is_empty(), "{}", entry.name);
                let known = actions.entry(entry.call).or_insert(entry.action);
                assert_eq!(*known, entry.action, "{}", entry.name);
            }
        }
    }

    #[test]
    fn every_row_is_about_a_reviewed_number() {
        for entry in rows(Sockets::Internet).chain(rows(Sockets::Local)) {
            let number = u32::try_from(entry.call).unwrap();
            assert!(
                REVIEWED
                    .iter()
                    .any(|(first, last)| (*first..=*last).contains(&number)),
                "{}",
                entry.name
            );
        }
    }

    #[test]
    fn the_promised_floor_kills() {
        for call in [
            libc::SYS_reboot,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_ptrace,
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
        ] {
            let entry = ALWAYS.iter().find(|entry| entry.call == call);
            assert_eq!(
                entry.map(|entry| (entry.when, entry.action)),
                Some((When::Always, Action::Kill))
            );
        }
    }
}
