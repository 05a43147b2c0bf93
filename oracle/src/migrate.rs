//! `bisim migrate`: what changes for one user of Hermes, shown on their own history.
//!
//! A home is copied, its configuration translated into proposals, its recorded
//! calls replayed on both subjects under these, and what they needed is turned
//! into the least set of grants. It must never write into the home, never grant,
//! and never let a secret of the home into an output.

pub mod command;
pub mod config;
pub mod database;
mod env;
pub mod history;
pub mod home;
pub mod journal;
pub mod note;
pub mod opinion;
pub mod parallel;
mod recorded;
pub mod redact;
pub mod replay;
pub mod report;
pub mod settings;
pub mod shadow;
pub mod source;
pub mod suggest;
pub mod trajectory;
pub mod translate;
pub mod yaml;

pub use command::command;

#[cfg(test)]
mod tests;
