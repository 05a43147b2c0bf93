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

use super::call;
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
