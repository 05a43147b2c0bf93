//! Disposable worlds and the worker protocol, shared by both subjects.
//!
//! A world is a throw-away machine: its own mount, pid, network, ipc and uts
//! namespaces over an overlay of a template tree. Both subjects of the oracle
//! run in worlds made by this package, so a difference between them is never
//! a difference between their surroundings.
pub mod protocol;
