//! The hidden mode of a program that starts confined commands.
//!
//! Building a sandbox takes forks and namespaces that a threaded, possibly
//! large program cannot afford. So the program starts itself again, in a mode
//! that does nothing else. Every binary that uses [`crate::spawn`] calls
//! [`maybe_run_as_child`] first in `main`.

use std::path::PathBuf;

use crate::ambient;
use crate::spawn::supervisor::{self, Leaving};

/// Which program to start as the spawner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnerProgram {
    /// The running program itself.
    Own,
    /// Another one that calls [`maybe_run_as_child`], such as
    /// `hermitcrab-sandbox-child` beside a test binary.
    At(PathBuf),
}

impl SpawnerProgram {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Own => PathBuf::from("/proc/self/exe"),
            Self::At(path) => path.clone(),
        }
    }
}

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
