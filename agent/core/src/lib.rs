//! Every decision of the agent.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
pub mod batch;
pub mod edit;
pub mod v4a;
