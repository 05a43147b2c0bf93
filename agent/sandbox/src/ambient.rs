//! What this package takes from its surroundings without being handed it: the
//! first argument and the inherited control socket of a spawner process, and
//! the date that people see in the journal.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// Whether this program looked if it was started as a spawner. One that does not would begin
/// anew in each spawner it starts, and start another.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// The hidden mode's only argument.
pub(crate) const CHILD_ARGUMENT: &str = "__hermitcrab-sandbox-child";

/// The control socket, if this process was started as a spawner.
///
/// It arrives as standard input, which is replaced by /dev/null.
pub(crate) fn control_socket() -> Option<OwnedFd> {
    LOOKED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != CHILD_ARGUMENT || arguments.next().is_some() {
        return None;
    }
    let stdin = sys::adopt_descriptor(0)?;
    let control = rustix::io::fcntl_dupfd_cloexec(&stdin, 3).ok();
    // The number 0 stays open until it is replaced: no other open may get it.
    std::mem::forget(stdin);
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .ok()?;
    rustix::stdio::dup2_stdin(&null).ok()?;
    control
}

/// Whether this program, started again, would be a spawner.
pub(crate) fn is_own_spawner() -> bool {
    LOOKED.load(Ordering::Relaxed)
}

/// Seconds since 1970.
pub(crate) fn seconds_since_1970() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap_or(0)
}
