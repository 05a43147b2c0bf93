//! Exchanges right before the n-th system call that names one of the two.
//!
//! The world's first process is traced (with all it starts, where asked), which
//! stops it at the entry of every system call; a guard has no way to tell.
//! Between two system calls nothing of the tree is looked at, so trying every
//! n tries every moment between a check and a use.
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::Flipper;
use super::note::Notes;
use crate::error::{AtStage, WorldError};

/// Follows `interior` until it is killed or nobody is left to follow; exchanges
/// before the call with this number and, if so wished, back before the next.
pub(super) fn run(
    flipper: &Flipper,
    interior: Pid,
    follow: bool,
    (number, back): (u32, bool),
    mut notes: Notes,
) -> Result<(), WorldError> {
    let stage = "trace the world";
    let mut options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    if follow {
        options |= Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
    }
    ptrace::seize(interior, options).at(stage)?;
    ptrace::interrupt(interior).at(stage)?;
    let mut named = 0_u32;
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
                if call::names(pid, flipper.one.name.as_bytes()) {
                    named = named.saturating_add(1);
                    notes.window();
                    let now = named == number || (back && named == number.saturating_add(1));
                    if now && flipper.exchange() {
                        notes.flipped();
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

    /// Whether the stopped process is at the entry of a system call with `name`
    /// in one of its paths.
    pub(super) fn names(pid: Pid, name: &[u8]) -> bool {
        let Ok(registers) = ptrace::getregs(pid) else {
            return false;
        };
        // At the entry the kernel has put this into the result's place.
        if registers.rax != (-i64::from(c::ENOSYS)).cast_unsigned() {
            return false;
        }
        let arguments = [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
        ];
        places(registers.orig_rax.cast_signed())
            .iter()
            .filter_map(|place| arguments.get(*place))
            .filter_map(|address| text(pid, *address))
            .any(|text| text.windows(name.len()).any(|part| part == name))
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

    /// Where calls cannot be read nothing is exchanged, which the count of windows shows.
    pub(super) fn names(_pid: Pid, _name: &[u8]) -> bool {
        false
    }
}
