//! Ending a command from another thread than the one that waits for it.
//!
//! What for: whoever revokes what a command runs on does not wait until the
//! waiting thread looks up. Why a descriptor: the number of a process can be
//! another one's by now, its descriptor cannot. It must never wait.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use rustix::process::{Signal, pidfd_send_signal};

use crate::cgroup::Holding;

/// Kills one command; clones kill the same one.
#[derive(Clone, Debug, Default)]
pub struct Killer(Arc<Target>);

#[derive(Debug, Default)]
struct Target {
    asked: AtomicBool,
    /// The sandbox's first process, once there is one, and its groups. Those
    /// may be another command's once this one has ended: they are not kept.
    first: OnceLock<(OwnedFd, Weak<Holding>)>,
}

impl Killer {
    /// Kills the command and everything it started; one that is not there yet
    /// is killed as soon as it is.
    pub fn kill(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        if let Some((first, groups)) = self.0.first.get() {
            // What uses up its time would hold up the end of the first process.
            if let Some(held) = groups.upgrade() {
                held.outlook.lift_cpu_limit();
                held.outlook.kill();
            }
            // It can only fail for a process that is gone.
            let _killed = pidfd_send_signal(first, Signal::KILL);
        }
    }

    /// The first process came to be.
    pub(super) fn reach(&self, first: Option<&OwnedFd>, groups: Weak<Holding>) {
        // Without a descriptor of its own it is the waiting thread that kills.
        if let Some(first) = first.and_then(|first| first.try_clone().ok()) {
            let _set = self.0.first.set((first, groups));
        }
        if self.was_asked() {
            self.kill();
        }
    }

    /// Is it to be killed?
    pub(super) fn was_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }
}
