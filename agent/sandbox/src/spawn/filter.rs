//! The system call filter: a table of what is refused, each with its reason.
//!
//! The table denies what an unprivileged command has no use for and what
//! reaches around the namespaces. It is a second line: nearly every call here
//! already needs a capability the command does not have.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// What happens to a call that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The whole process dies: no honest program tries this.
    Kill,
    /// The call fails with EPERM.
    Refuse,
    /// The call fails with ENOSYS, so that libc falls back to an older one
    /// whose arguments the filter can see.
    Absent,
}

/// When an entry applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Argument `.0` has any of the bits `.1`.
    AnyBit(u8, u64),
    /// The low 32 bits of argument `.0` equal `.1`.
    Equals(u8, u64),
    /// The low 32 bits of argument `.0` are none of these two values.
    Neither(u8, u64, u64),
}

/// One line of the table.
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
            call: libc::$call,
            name: stringify!($call),
            when: $when,
            action: Action::$action,
            reason: $reason,
        }),*]
    };
}

const NAMESPACE_FLAGS: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;
const AF_UNIX: u64 = libc::AF_UNIX as u64;
/// Pushes a character into a terminal's input queue.
const TIOCSTI: u64 = 0x5412;
/// Selection and paste on a virtual console.
const TIOCLINUX: u64 = 0x541C;
/// `personality(0xffffffff)` only asks.
const PERSONALITY_QUERY: u64 = 0xffff_ffff;

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
    SYS_move_mount When::Always, Kill, "new form of mount";
    SYS_mount_setattr When::Always, Kill, "new form of mount";
    SYS_swapon When::Always, Kill, "changes the machine's memory";
    SYS_swapoff When::Always, Kill, "changes the machine's memory";
    SYS_unshare When::AnyBit(0, NAMESPACE_FLAGS), Refuse, "a new user namespace gives back capabilities";
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
    SYS_quotactl When::Always, Refuse, "administers a file system";
    SYS_quotactl_fd When::Always, Refuse, "administers a file system";
    SYS_acct When::Always, Refuse, "writes a host file on every exit";
    SYS_settimeofday When::Always, Refuse, "sets the machine's clock";
    SYS_clock_settime When::Always, Refuse, "sets the machine's clock";
    SYS_clock_adjtime When::Always, Refuse, "sets the machine's clock";
    SYS_adjtimex When::Always, Refuse, "sets the machine's clock";
    SYS_syslog When::Always, Refuse, "reads the kernel's log and addresses";
    SYS_personality When::Neither(0, 0, PERSONALITY_QUERY), Refuse, "weakens address layout and maps page zero";
    SYS_move_pages When::Always, Refuse, "moves memory of other processes";
    SYS_migrate_pages When::Always, Refuse, "moves memory of other processes";
    SYS_memfd_secret When::Always, Refuse, "memory that nothing can account for";
    SYS_vhangup When::Always, Refuse, "hangs up a terminal";
    SYS_lookup_dcookie When::Always, Refuse, "names files outside the root";
    SYS_nfsservctl When::Always, Refuse, "talks to a kernel server";
    SYS_fanotify_init When::Always, Refuse, "watches whole file systems";
    SYS_ioctl When::Equals(1, TIOCSTI), Refuse, "types into a terminal (CVE-2017-5226)";
    SYS_ioctl When::Equals(1, TIOCLINUX), Refuse, "pastes into a console";
};

/// Refused on x86-64 only, where these exist.
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCH: &[Entry] = table! {
    SYS_iopl When::Always, Refuse, "raw access to hardware";
    SYS_ioperm When::Always, Refuse, "raw access to hardware";
    SYS_modify_ldt When::Always, Refuse, "old and rich in kernel faults";
    SYS_uselib When::Always, Refuse, "old and unused";
};
/// Nothing more elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const ARCH: &[Entry] = &[];

/// Refused to a command without a network capability.
pub(crate) const NO_NETWORK: &[Entry] = table! {
    SYS_socket When::Neither(0, AF_UNIX, AF_UNIX), Refuse, "only local sockets; vsock and netlink pass network namespaces";
    SYS_socketpair When::Neither(0, AF_UNIX, AF_UNIX), Refuse, "only local sockets";
};

/// One refused call, for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedCall {
    /// Its name.
    pub name: &'static str,
    /// Its number on this architecture.
    pub number: i64,
    /// `kill`, `refuse` or `absent`.
    pub action: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// Everything the filter refuses, in the order of the table.
pub fn refused_calls() -> impl Iterator<Item = RefusedCall> {
    ALWAYS
        .iter()
        .chain(ARCH)
        .chain(NO_NETWORK)
        .map(|entry| RefusedCall {
            name: entry.name.trim_start_matches("SYS_"),
            number: entry.call,
            action: match entry.action {
                Action::Kill => "kill",
                Action::Refuse => "refuse",
                Action::Absent => "absent",
            },
            reason: entry.reason,
        })
}

/// The compiled filters, to be installed in order.
pub(crate) struct Filter {
    programs: Vec<BpfProgram>,
}

impl Filter {
    /// Compiles the table.
    pub(crate) fn build(network: bool) -> io::Result<Self> {
        let mut programs = vec![foreign_numbers()];
        for action in [Action::Kill, Action::Refuse, Action::Absent] {
            let network_entries: &[Entry] = if network { &[] } else { NO_NETWORK };
            let entries = ALWAYS
                .iter()
                .chain(ARCH)
                .chain(network_entries)
                .filter(|entry| entry.action == action);
            programs.push(compile(entries, action)?);
        }
        Ok(Self { programs })
    }

    /// Installs the filters on the calling process, for good.
    pub(crate) fn install(&self) -> io::Result<()> {
        for program in &self.programs {
            seccompiler::apply_filter(program).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn compile<'a>(entries: impl Iterator<Item = &'a Entry>, action: Action) -> io::Result<BpfProgram> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for entry in entries {
        let for_call = rules.entry(entry.call).or_default();
        match entry.when {
            When::Always => {}
            When::Equals(argument, value) => {
                for_call.push(rule(vec![condition(argument, SeccompCmpOp::Eq, value)?])?)
            }
            When::Neither(argument, first, second) => for_call.push(rule(vec![
                condition(argument, SeccompCmpOp::Ne, first)?,
                condition(argument, SeccompCmpOp::Ne, second)?,
            ])?),
            When::AnyBit(argument, bits) => {
                for bit in (0..32).map(|shift| 1_u64 << shift) {
                    if bits & bit != 0 {
                        for_call.push(rule(vec![condition(
                            argument,
                            SeccompCmpOp::MaskedEq(bit),
                            bit,
                        )?])?);
                    }
                }
            }
        }
    }
    let on_match = match action {
        Action::Kill => SeccompAction::KillProcess,
        Action::Refuse => SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        Action::Absent => SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
    };
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    SeccompFilter::new(rules, SeccompAction::Allow, on_match, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(io::Error::other)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    // All the arguments above are ints for the kernel, which ignores the rest
    // of the register: so must the filter.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .map_err(io::Error::other)
}

/// Kills on call numbers of the x32 ABI, which carry the same architecture
/// mark as x86-64 and would pass every number above.
fn foreign_numbers() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    vec![
        instruction(LOAD_NUMBER, 0, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32_BIT),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_reason_and_no_call_appears_under_two_actions() {
        let mut actions: BTreeMap<i64, Action> = BTreeMap::new();
        for entry in ALWAYS.iter().chain(ARCH).chain(NO_NETWORK) {
            assert!(!entry.reason.is_empty(), "{}", entry.name);
            let known = actions.entry(entry.call).or_insert(entry.action);
            assert_eq!(*known, entry.action, "{}", entry.name);
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

    #[test]
    fn the_table_compiles_with_and_without_network() {
        assert_eq!(
            Filter::build(false)
                .map(|filter| filter.programs.len())
                .ok(),
            Some(4)
        );
        assert!(Filter::build(true).is_ok());
    }
}
