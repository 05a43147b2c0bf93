//! A process that gives everything up but reading a few files.
//!
//! What for: some of the program's own work is done by code that reads what
//! nobody vouches for, such as a model file, and that code may have faults. It
//! is done in a process of its own, which closes itself in here before it looks
//! at the first byte. What is left to it: the descriptors it was started with,
//! memory up to a bound, threads, and the files named. It can start no program,
//! make no socket, write no file, signal nobody and get nothing back.
//!
//! Why a list of what is permitted, and not of refusals as for commands: here
//! the program is known, and what it needs is short.
//!
//! This module must never close in by half: a step that fails is an error, and
//! the caller ends. It protects against faults of the code inside, not against
//! faults of the kernel.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::process::DumpableBehavior;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::sys;

/// The newest version of Landlock whose rights this was reviewed for.
const REVIEWED: ABI = ABI::V9;
/// Descriptors such a process may have open at once.
const OPEN_FILES_MAX: u64 = 64;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Bounds the calling process for good, and closes what it was started with
/// besides the standard streams. For the first thread, before there is another.
///
/// # Errors
/// A step failed; the process must not go on.
pub fn bound_process(memory_bytes_max: u64) -> io::Result<()> {
    sys::close_all_but(&[])?;
    lower(Resource::RLIMIT_CORE, 0)?;
    lower(Resource::RLIMIT_FSIZE, 0)?;
    lower(Resource::RLIMIT_NOFILE, OPEN_FILES_MAX)?;
    lower(Resource::RLIMIT_DATA, memory_bytes_max)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let held = rustix::thread::capabilities(None)?;
    if !(held.effective | held.permitted).is_empty() {
        crate::spawn::init::drop_capabilities()
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(())
}

/// Lowers a limit; what is lower already stays.
fn lower(resource: Resource, value: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let value = value.min(hard);
    setrlimit(resource, value, value)?;
    Ok(())
}

/// Walls that are ready and not yet closed.
pub struct Seclusion {
    files: RulesetCreated,
    calls: BpfProgram,
}

impl std::fmt::Debug for Seclusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seclusion").finish_non_exhaustive()
    }
}

impl Seclusion {
    /// Walls that let these files be read.
    ///
    /// # Errors
    /// The kernel has no Landlock, or refuses a rule.
    pub fn build<'f>(files: impl IntoIterator<Item = BorrowedFd<'f>>) -> io::Result<Self> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(REVIEWED))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(REVIEWED)))
            .and_then(|rules| rules.scope(Scope::from_all(REVIEWED)))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        for file in files {
            rules = rules
                .add_rule(PathBeneath::new(file, AccessFs::ReadFile))
                .map_err(io::Error::other)?;
        }
        Ok(Self {
            files: rules,
            calls: filter()?,
        })
    }

    /// Closes them around the calling thread and every one it starts, for good.
    ///
    /// # Errors
    /// The kernel has no Landlock, or a wall does not stand; the process must
    /// not go on.
    pub fn close(self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        let status = self.files.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(io::Error::other(
                "this kernel has no Landlock, so a process cannot be kept from other files",
            ));
        }
        seccompiler::apply_filter(&self.calls).map_err(io::Error::other)
    }
}

/// What is left of the system calls; everything else is absent.
fn filter() -> io::Result<BpfProgram> {
    // To whom a call is made always, and to whom with these arguments only.
    let always = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_lseek,
        libc::SYS_fadvise64,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_getcpu,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_restart_syscall,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_getrandom,
        libc::SYS_sysinfo,
        libc::SYS_uname,
        libc::SYS_ppoll,
    ];
    let own = u64::from(
        rustix::process::getpid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs(),
    );
    let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let write = u64::from(
        (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND)
            .unsigned_abs(),
    );
    let sometimes = [
        (libc::SYS_mmap, masked(2, executable, 0)?),
        (libc::SYS_mprotect, masked(2, executable, 0)?),
        (libc::SYS_openat, masked(2, write, 0)?),
        (libc::SYS_clone, masked(0, thread, thread)?),
        (libc::SYS_tgkill, equal(0, own)?),
        (
            libc::SYS_prctl,
            equal(0, u64::from(libc::PR_SET_NAME.unsigned_abs()))?,
        ),
        // Reading a limit, not setting one.
        (libc::SYS_prlimit64, nothing(2)?),
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.into_iter().map(|call| (call, Vec::new())).collect();
    rules.extend(sometimes.map(|(call, rule)| (call, vec![rule])));
    let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    SeccompFilter::new(rules, absent, SeccompAction::Allow, ARCHITECTURE)
        .and_then(BpfProgram::try_from)
        .map_err(io::Error::other)
}

fn rule(
    argument: u8,
    length: SeccompCmpArgLen,
    how: SeccompCmpOp,
    value: u64,
) -> io::Result<SeccompRule> {
    SeccompCondition::new(argument, length, how, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(io::Error::other)
}

fn masked(argument: u8, mask: u64, value: u64) -> io::Result<SeccompRule> {
    rule(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(mask),
        value,
    )
}

fn equal(argument: u8, value: u64) -> io::Result<SeccompRule> {
    rule(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn nothing(argument: u8) -> io::Result<SeccompRule> {
    rule(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsFd as _;
    use std::process::Command;

    use super::Seclusion;

    /// What was possible in a thread that had closed itself in.
    #[derive(Debug, PartialEq, Eq)]
    struct Possible {
        named: bool,
        other: bool,
        write: bool,
        tcp: bool,
        udp: bool,
        program: bool,
        thread: bool,
        memory: bool,
    }

    #[test]
    fn what_is_left_is_reading_the_files_named_threads_and_memory() {
        if crate::sys::landlock_version() == 0 {
            println!("SKIPPED: this kernel has no Landlock");
            return;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let (named, other) = (dir.path().join("named"), dir.path().join("other"));
        std::fs::write(&named, "content").expect("written");
        std::fs::write(&other, "content").expect("written");
        let new = dir.path().join("new");
        let tried = move || {
            let file = File::open(&named)?;
            let walls = Seclusion::build([file.as_fd()])?;
            drop(file);
            walls.close()?;
            Ok::<_, std::io::Error>(Possible {
                named: std::fs::read(&named).is_ok_and(|content| content == b"content"),
                other: File::open(&other).is_ok(),
                write: File::create(&new).is_ok()
                    || File::options().append(true).open(&named).is_ok(),
                tcp: TcpListener::bind("127.0.0.1:0").is_ok(),
                udp: UdpSocket::bind("127.0.0.1:0").is_ok(),
                program: Command::new("/bin/true").status().is_ok(),
                thread: std::thread::spawn(|| 7)
                    .join()
                    .is_ok_and(|number| number == 7),
                memory: vec![1_u8; 64 << 20].iter().all(|byte| *byte == 1),
            })
        };
        let possible = std::thread::spawn(tried)
            .join()
            .expect("the thread came to its end")
            .expect("the walls stand");
        assert_eq!(
            possible,
            Possible {
                named: true,
                other: false,
                write: false,
                tcp: false,
                udp: false,
                program: false,
                thread: true,
                memory: true,
            }
        );
        // Nobody else is closed in.
        assert!(UdpSocket::bind("127.0.0.1:0").is_ok());
    }
}
