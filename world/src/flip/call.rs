//! A system call that a traced process is about to make: which paths it names, and whether it
//! changes files.
//!
//! Where its number and its arguments stand, and which calls there are besides those every
//! processor has, is known to the processor's own module.
use std::io::IoSliceMut;

use nix::libc as c;
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("nobody has written down where this processor keeps a system call's arguments");

/// A name longer than the kernel takes is none.
const PATH_BYTES_MAX: usize = 4096;
/// Its number on every processor; the C library's names for ARM lack it.
const FCHMODAT2: i64 = 452;

/// A system call that is about to be made.
pub(super) struct Called {
    number: i64,
    arguments: [u64; 5],
}

/// The system call at whose entry the process stands, if it does.
pub(super) fn at(pid: Pid) -> Option<Called> {
    // Only the kernel knows an entry from an exit: what a call results in tells nothing.
    let stop = ptrace::syscall_info(pid).ok()?;
    if stop.op != c::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    let (number, arguments) = processor::call(&ptrace::getregs(pid).ok()?);
    Some(Called { number, arguments })
}

impl Called {
    /// Whether `name` is in one of its paths.
    pub(super) fn names(&self, pid: Pid, name: &[u8]) -> bool {
        places(self.number)
            .iter()
            .filter_map(|place| self.arguments.get(*place))
            .filter_map(|address| text(pid, *address))
            .any(|text| text.windows(name.len()).any(|part| part == name))
    }

    /// Whether it may change a file: its name, its content or what is known of it.
    /// What is written to a pipe or a socket counts as well, which only makes more
    /// moments of the same state.
    pub(super) fn changes(&self, pid: Pid) -> bool {
        let argument = |place: usize| self.arguments.get(place).copied().unwrap_or(0);
        match self.number {
            c::SYS_openat => opens_for_change(argument(2)),
            // The flags are the first word of a structure.
            c::SYS_openat2 => word(pid, argument(2)).is_none_or(opens_for_change),
            number if processor::OPEN == Some(number) => opens_for_change(argument(1)),
            number => ALWAYS.contains(&number) || processor::ALWAYS.contains(&number),
        }
    }
}

/// Calls of every processor that change files whatever their arguments are.
const ALWAYS: [i64; 29] = [
    c::SYS_truncate,
    c::SYS_ftruncate,
    c::SYS_fallocate,
    c::SYS_mkdirat,
    c::SYS_mknodat,
    c::SYS_unlinkat,
    c::SYS_renameat,
    c::SYS_renameat2,
    c::SYS_linkat,
    c::SYS_symlinkat,
    c::SYS_fchmod,
    c::SYS_fchmodat,
    FCHMODAT2,
    c::SYS_fchown,
    c::SYS_fchownat,
    c::SYS_utimensat,
    c::SYS_setxattr,
    c::SYS_lsetxattr,
    c::SYS_fsetxattr,
    c::SYS_removexattr,
    c::SYS_lremovexattr,
    c::SYS_fremovexattr,
    c::SYS_write,
    c::SYS_writev,
    c::SYS_pwrite64,
    c::SYS_pwritev,
    c::SYS_sendfile,
    c::SYS_copy_file_range,
    c::SYS_splice,
];

/// Whether a file is made, emptied or opened for writing.
fn opens_for_change(flags: u64) -> bool {
    let any = c::O_CREAT | c::O_TRUNC | c::O_WRONLY | c::O_RDWR;
    u64::try_from(any).is_ok_and(|any| flags & any != 0)
}

/// Which arguments of a system call are paths.
const fn places(number: i64) -> &'static [usize] {
    match number {
        c::SYS_execve
        | c::SYS_chdir
        | c::SYS_truncate
        | c::SYS_getxattr
        | c::SYS_lgetxattr
        | c::SYS_setxattr
        | c::SYS_lsetxattr
        | c::SYS_listxattr
        | c::SYS_llistxattr
        | c::SYS_removexattr
        | c::SYS_lremovexattr => &[0],
        c::SYS_openat
        | c::SYS_openat2
        | c::SYS_mkdirat
        | c::SYS_mknodat
        | c::SYS_unlinkat
        | c::SYS_newfstatat
        | c::SYS_statx
        | c::SYS_readlinkat
        | c::SYS_fchmodat
        | FCHMODAT2
        | c::SYS_fchownat
        | c::SYS_faccessat
        | c::SYS_faccessat2
        | c::SYS_utimensat
        | c::SYS_execveat => &[1],
        c::SYS_symlinkat => &[2],
        c::SYS_renameat | c::SYS_renameat2 | c::SYS_linkat => &[1, 3],
        number => processor::places(number),
    }
}

/// The word at an address of a stopped process.
fn word(pid: Pid, address: u64) -> Option<u64> {
    let mut bytes = [0_u8; 8];
    let base = usize::try_from(address).ok()?;
    let remote = [RemoteIoVec { base, len: 8 }];
    let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &remote).ok()?;
    (read == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}

/// The text at an address of a stopped process, read page by page.
fn text(pid: Pid, address: u64) -> Option<Vec<u8>> {
    // No page is smaller; of a larger one a part is read at a time.
    const PAGE: usize = 4096;
    let mut text = Vec::new();
    let mut at = usize::try_from(address).ok()?;
    while text.len() < PATH_BYTES_MAX {
        let mut page = [0_u8; PAGE];
        let len = PAGE - at % PAGE;
        let part = page.get_mut(..len)?;
        let remote = [RemoteIoVec { base: at, len }];
        let read = process_vm_readv(pid, &mut [IoSliceMut::new(part)], &remote).ok()?;
        let part = part.get(..read)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(part.get(..end)?);
            return Some(text);
        }
        text.extend_from_slice(part);
        at = at.checked_add(read)?;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use nix::sys::ptrace::Options;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

    use super::*;

    /// Every call that this program makes, after it is told to go on; `None` where there is no
    /// interpreter.
    fn made_by(program: &str, look: &mut dyn FnMut(Pid, &Called)) -> Option<()> {
        let perl = Command::new("perl")
            .args(["-e", &format!("<STDIN>; {program}")])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut perl) = perl else {
            println!("SKIPPED: no perl");
            return None;
        };
        let pid = Pid::from_raw(i32::try_from(perl.id()).unwrap());
        ptrace::seize(pid, Options::PTRACE_O_TRACESYSGOOD).unwrap();
        ptrace::interrupt(pid).unwrap();
        perl.stdin.take().unwrap().write_all(b"\n").unwrap();
        loop {
            let signal = match waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap() {
                WaitStatus::PtraceSyscall(_) => {
                    if let Some(called) = at(pid) {
                        look(pid, &called);
                    }
                    None
                }
                WaitStatus::Stopped(_, signal) => Some(signal),
                WaitStatus::Exited(_, 0) => return Some(()),
                WaitStatus::PtraceEvent(..) => None,
                other => panic!("{other:?}"),
            };
            ptrace::syscall(pid, signal).unwrap();
        }
    }

    #[test]
    fn a_call_is_seen_once_also_if_the_kernel_knows_none_with_its_number() {
        const NOBODYS: i64 = 9999;
        let mut seen = Vec::new();
        let traced = made_by("syscall(9999, 1, 2, 3, 4, 5)", &mut |_, called| {
            if called.number == NOBODYS {
                seen.push(called.arguments);
            }
        });
        if traced.is_some() {
            assert_eq!(seen, [[1, 2, 3, 4, 5]]);
        }
    }

    #[test]
    fn paths_and_changes_are_told_from_the_arguments() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name).display().to_string();
        std::fs::write(at("read"), "").unwrap();
        let program = format!(
            "open(F, '<', '{0}'); open(F, '>', '{1}'); mkdir '{2}'; rename '{1}', '{3}'; \
             chmod 0600, '{3}'; unlink '{3}'; rmdir '{2}'; stat '{0}'; -l '{0}';",
            at("read"),
            at("written"),
            at("directory"),
            at("renamed"),
        );
        // How many calls that change something name it, of how many that name it at least: perl
        // looks at what it removes where it may remove directories.
        let wanted = [
            ("read", 0, 3),
            ("written", 2, 2),
            ("directory", 2, 2),
            ("renamed", 3, 3),
            ("nobody", 0, 0),
        ];
        let mut seen = wanted.map(|(name, ..)| (name, 0, 0));
        let traced = made_by(&program, &mut |pid, called| {
            for (name, changed, named) in &mut seen {
                let path = at(name);
                if called.names(pid, path.as_bytes()) {
                    *named += 1;
                    *changed += i32::from(called.changes(pid));
                }
            }
        });
        if traced.is_none() {
            return;
        }
        for (seen, wanted) in seen.into_iter().zip(wanted) {
            assert_eq!((seen.0, seen.1), (wanted.0, wanted.1));
            assert!(seen.2 >= wanted.2, "{seen:?}");
        }
        assert_eq!(seen.last(), wanted.last());
    }
}
