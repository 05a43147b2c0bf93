//! The oracle.
pub mod hermes_env;
pub mod report;
