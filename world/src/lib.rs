//! Disposable worlds and the worker protocol, shared by both subjects.
//!
//! A world is a throw-away machine: its own mount, pid, network, ipc and uts
//! namespaces over an overlay of a template tree. Both subjects of the oracle
//! run in worlds made by this package, so a difference between them is never
//! a difference between their surroundings.
//!
//! Who is who, from the outside in:
//!
//! * the *oracle* starts one worker per subject ([`launch`]);
//! * the worker [`enter`]s its own namespaces and the template tree, and
//!   becomes the *zygote*: warm, single-threaded, never running a case itself;
//! * the *stem*, a small process planted before the subject was loaded, forks an
//!   *observer* (owns the upper layer, the sink and the deadline of one world after
//!   the other), and for every case the zygote forks the *interior*, pid 1 of the
//!   world, in which the subject's [`driver::Driver`] runs the script.
//!
//! This package must never map a world to host uid 0, never write to the
//! host's disk, and never leave a process or a mount behind: everything lives
//! in namespaces that die with their first process.
pub mod damage;
pub mod driver;
pub mod enter;
pub mod environment;
pub mod error;
pub mod flip;
pub mod fork;
pub mod launch;
pub mod protocol;
pub mod script;
pub mod serves;
pub mod template;
pub mod wire;
pub mod zygote;

mod case_tree;
mod effects;
mod http;
mod interior;
mod loopback;
mod mounts;
mod observer;
mod order;
mod rights;
mod sink;
mod stem;
mod usage;
mod world;

pub use error::WorldError;
pub use fork::{Forked, Forker};
pub use interior::FILES_MAX;
