//! The agent's edge: tools, runtime, ledger, terminal.
//!
//! Everything that decides lives in `hermitcrab-core`; everything that confines
//! lives in `hermitcrab-sandbox`. This package joins them: it reads a model's
//! call, asks the core, spends the permit, writes the ledger and words the
//! result. It must never cause an effect without a permit.

// First, since its macros count for what follows.
#[macro_use]
pub mod printing;

pub mod acp;
pub mod actions;
pub mod ambient;
mod answers;
pub mod approvals;
pub mod audit;
pub mod cancel;
pub mod chat;
pub mod cli;
pub mod config;
pub mod console;
pub mod control;
pub mod conversation;
pub mod digest;
pub mod executor;
pub mod exit;
pub mod given_file;
pub mod handles;
pub mod jobs;
pub mod live;
pub mod mcp;
pub mod model;
pub mod parity;
pub mod person;
pub mod planner;
pub mod ports;
mod probe_place;
mod pty;
pub mod recall;
pub mod runtime;
pub mod screen;
mod slash;
pub mod state_dir;
pub mod store;
pub mod text;
pub mod tools;
pub mod values;

/// The locks of [`live`]; the model checker puts its own in their place.
mod sync {
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
}
