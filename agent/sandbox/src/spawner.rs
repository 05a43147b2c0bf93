//! The hidden mode of a program that starts confined commands.
//!
//! Building a sandbox takes forks and namespaces that a threaded, possibly
//! large program cannot afford. So the program starts itself again, in a mode
//! that does nothing else. Every binary that uses [`crate::spawn`] calls
//! [`maybe_run_as_child`] first in `main`.

use crate::ambient;
use crate::spawn::supervisor::{self, Leaving};

/// Runs as a spawner and exits, if that is what this process was started for;
/// otherwise returns at once.
///
/// Call it before anything else: the spawner must have a single thread.
pub fn maybe_run_as_child() {
    if let Some(control) = ambient::control_socket() {
        std::process::exit(supervisor::run(control, Leaving::Nothing));
    }
}

/// As [`maybe_run_as_child`], for the tests of this package alone: a spawner
/// that leaves a mechanism out when it is told to, so that a second one can be
/// seen to hold. The spawner inside an agent's own program never does.
#[doc(hidden)]
pub fn maybe_run_as_weakened_child() {
    if let Some(control) = ambient::control_socket() {
        std::process::exit(supervisor::run(control, Leaving::WhatIsAsked));
    }
}
