//! Exchanges right before the n-th system call that names one of the two, and ends the
//! world's first process right before the n-th that changes files.
//!
//! The world's first process is traced (with all it starts, where asked), which
//! stops it at the entry of every system call; a guard has no way to tell.
//! Between two system calls nothing of the tree is looked at or changed, so trying
//! every n tries every moment between a check and a use, and every state a kill can
//! leave behind.
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::note::Notes;
use super::{Flipper, Subject};
use crate::error::{AtStage, WorldError};

/// What is to happen at which system call.
pub(super) struct Orders<'f> {
    /// Names change places before the call with this number that names them, and back
    /// before the next if so wished.
    pub(super) flip: Option<(&'f Flipper, u32, bool)>,
    /// The end, before the call with this number that changes files.
    pub(super) cut: Option<u32>,
}

/// Follows the world's first process until it is killed or nobody is left to follow.
pub(super) fn run(
    Subject { interior, follow }: Subject,
    orders: &Orders<'_>,
    mut notes: Notes,
) -> Result<(), WorldError> {
    let stage = "trace the world";
    let mut options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    if follow {
        options |= Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
    }
    ptrace::seize(interior, options).at(stage)?;
    ptrace::interrupt(interior).at(stage)?;
    let (mut named, mut changes) = (0_u32, 0_u32);
    let mut is_ready = false;
    loop {
        let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
            Ok(status) => status,
            Err(Errno::EINTR) => continue,
            Err(Errno::ECHILD) => return Ok(()),
            Err(errno) => return Err(WorldError::new(stage, errno)),
        };
        let (pid, signal) = match status {
            WaitStatus::PtraceSyscall(pid) => {
                let called = call::at(pid);
                if let (Some(called), Some((flipper, number, back))) = (&called, orders.flip)
                    && called.names(pid, flipper.one.name.as_bytes())
                {
                    named = named.saturating_add(1);
                    notes.window();
                    let now = named == number || (back && named == number.saturating_add(1));
                    if now && flipper.exchange() {
                        notes.flipped();
                    }
                }
                if let (Some(called), Some(number)) = (&called, orders.cut)
                    && called.changes(pid)
                {
                    changes = changes.saturating_add(1);
                    if changes == number {
                        notes.cut();
                        // The call it is about to make is not made.
                        kill(interior, Signal::SIGKILL).at(stage)?;
                    } else {
                        notes.change();
                    }
                }
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, ..) => (pid, None),
            WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
            WaitStatus::Exited(..)
            | WaitStatus::Signaled(..)
            | WaitStatus::Continued(_)
            | WaitStatus::StillAlive => continue,
        };
        // A process that was killed meanwhile is waited for next.
        let _ = ptrace::syscall(pid, signal);
        if !is_ready {
            is_ready = true;
            notes.ready()?;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod call {
    use std::io::IoSliceMut;

    use nix::libc as c;
    use nix::sys::ptrace;
    use nix::sys::uio::{RemoteIoVec, process_vm_readv};
    use nix::unistd::Pid;

    /// A name longer than the kernel takes is none.
    const PATH_BYTES_MAX: usize = 4096;

    /// A system call that is about to be made.
    pub(super) struct Called {
        number: i64,
        arguments: [u64; 5],
    }

    /// The system call at whose entry the process stands, if it does.
    pub(super) fn at(pid: Pid) -> Option<Called> {
        let registers = ptrace::getregs(pid).ok()?;
        // At the entry the kernel has put this into the result's place.
        (registers.rax == (-i64::from(c::ENOSYS)).cast_unsigned()).then_some(Called {
            number: registers.orig_rax.cast_signed(),
            arguments: [
                registers.rdi,
                registers.rsi,
                registers.rdx,
                registers.r10,
                registers.r8,
            ],
        })
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
                c::SYS_open => opens_for_change(argument(1)),
                c::SYS_openat => opens_for_change(argument(2)),
                // The flags are the first word of a structure.
                c::SYS_openat2 => word(pid, argument(2)).is_none_or(opens_for_change),
                number => ALWAYS.contains(&number),
            }
        }
    }

    /// Calls that change files whatever their arguments are.
    const ALWAYS: [i64; 42] = [
        c::SYS_creat,
        c::SYS_truncate,
        c::SYS_ftruncate,
        c::SYS_fallocate,
        c::SYS_mkdir,
        c::SYS_mkdirat,
        c::SYS_mknod,
        c::SYS_mknodat,
        c::SYS_rmdir,
        c::SYS_unlink,
        c::SYS_unlinkat,
        c::SYS_rename,
        c::SYS_renameat,
        c::SYS_renameat2,
        c::SYS_link,
        c::SYS_linkat,
        c::SYS_symlink,
        c::SYS_symlinkat,
        c::SYS_chmod,
        c::SYS_fchmod,
        c::SYS_fchmodat,
        c::SYS_fchmodat2,
        c::SYS_chown,
        c::SYS_lchown,
        c::SYS_fchown,
        c::SYS_fchownat,
        c::SYS_utimes,
        c::SYS_futimesat,
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

    /// The word at an address of a stopped process.
    fn word(pid: Pid, address: u64) -> Option<u64> {
        let mut bytes = [0_u8; 8];
        let base = usize::try_from(address).ok()?;
        let remote = [RemoteIoVec { base, len: 8 }];
        let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &remote).ok()?;
        (read == bytes.len()).then(|| u64::from_ne_bytes(bytes))
    }

    /// Which arguments of a system call are paths.
    const fn places(number: i64) -> &'static [usize] {
        match number {
            c::SYS_open
            | c::SYS_creat
            | c::SYS_stat
            | c::SYS_lstat
            | c::SYS_access
            | c::SYS_execve
            | c::SYS_chdir
            | c::SYS_truncate
            | c::SYS_mkdir
            | c::SYS_rmdir
            | c::SYS_unlink
            | c::SYS_readlink
            | c::SYS_chmod
            | c::SYS_chown
            | c::SYS_lchown
            | c::SYS_mknod
            | c::SYS_utime
            | c::SYS_utimes
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
            | c::SYS_fchmodat2
            | c::SYS_fchownat
            | c::SYS_faccessat
            | c::SYS_faccessat2
            | c::SYS_futimesat
            | c::SYS_utimensat
            | c::SYS_execveat => &[1],
            c::SYS_rename | c::SYS_link => &[0, 1],
            c::SYS_symlink => &[1],
            c::SYS_symlinkat => &[2],
            c::SYS_renameat | c::SYS_renameat2 | c::SYS_linkat => &[1, 3],
            _ => &[],
        }
    }

    /// The text at an address of a stopped process, read page by page.
    fn text(pid: Pid, address: u64) -> Option<Vec<u8>> {
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
}

#[cfg(not(target_arch = "x86_64"))]
mod call {
    use nix::unistd::Pid;

    /// A system call that cannot be read.
    pub(super) enum Called {}

    /// Where calls cannot be read nothing is exchanged and nothing cut off, which the
    /// counts show.
    pub(super) fn at(_pid: Pid) -> Option<Called> {
        None
    }

    impl Called {
        pub(super) fn names(&self, _pid: Pid, _name: &[u8]) -> bool {
            match *self {}
        }

        pub(super) fn changes(&self, _pid: Pid) -> bool {
            match *self {}
        }
    }
}
