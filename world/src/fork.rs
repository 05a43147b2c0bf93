//! How a worker forks, given from outside.
//!
//! Forking is unsafe in general and right in two special cases: an interpreter
//! that runs its own fork hooks, and a process that is known to have a single
//! thread. Each worker brings its own way; this package only decides when.
use std::io;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::error::{AtStage, WorldError};

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The process that forked.
    Parent {
        /// The new process, as seen in the forking process' pid namespace.
        child: i32,
    },
    /// The new process.
    Child,
}

/// A way to fork and to leave a forked process.
pub trait Forker {
    /// Forks the calling process, which must have a single thread.
    ///
    /// # Errors
    /// The kernel refuses (process limit, memory).
    fn fork(&self) -> io::Result<Forked>;

    /// Ends a forked process at once, without running the exit handlers of
    /// the program it was copied from.
    fn exit(&self, status: i32) -> !;
}

/// Asks the kernel to kill this process when its parent dies, and makes sure
/// that it has not already.
pub(crate) fn die_with(parent: Pid) -> Result<(), WorldError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).at("set parent death signal")?;
    if nix::unistd::getppid() == parent {
        Ok(())
    } else {
        Err(WorldError::new(
            "set parent death signal",
            "the parent is gone",
        ))
    }
}
