//! Linux confinement and the directory capability.
//!
//! What for: the two ways in which the agent acts. Files are reached through a
//! [`dircap::DirCap`], commands run through a [`spawn::Sandbox`]; both take a
//! permit by value, and what a command did is a [`changeset::ChangeSet`] until
//! it is committed through the [`journal::Journal`], which can take it back.
//!
//! This package must never decide whether something is allowed: it enforces
//! what was decided, and fails when it cannot.
//!
//! What it does not protect against: faults of the kernel, and programs that
//! run outside of it.
//!
//! To begin with: a program that runs commands starts itself again to build their
//! sandboxes, so its `main` begins with [`maybe_run_as_child`]. Two such programs are in
//! `examples/`: `confined` runs a command on a copy of a directory and keeps what it did, or
//! not; `watched` shows the output of one as it comes, lets it reach one host, and ends it.
//! Where permits come from is shown by `grants`, among those of `hermitcrab-core`.

#[cfg(not(target_os = "linux"))]
compile_error!("hermitcrab confines commands with Linux namespaces and runs on Linux only");

pub mod dircap;

pub mod changeset;

pub mod journal;

pub mod layers;

pub mod spawn;

pub mod spawner;

pub mod profile;

pub mod cgroup;

pub mod landlock;

pub mod net;

pub mod open_files;

pub mod privileges;

pub mod starting_limits;

pub mod seclusion;

pub mod digest;

pub mod sys;

mod ambient;
mod confined;
mod identity;
mod mechanism;
mod patience;
mod program;
mod step;
mod whose;
mod wire;

pub use changeset::ChangeSet;
pub use digest::sha256;
pub use dircap::{DirCap, FsError};
pub use journal::Journal;
pub use layers::LayerStore;
pub use program::SpawnerProgram;
pub use spawn::{Sandbox, SpawnError};
pub use spawner::maybe_run_as_child;
