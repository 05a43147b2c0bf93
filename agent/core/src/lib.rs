//! Every decision of the agent.
//!
//! What for: one place that says, for values it is given, what may happen.
//! Why: a decision that is a pure function of its input can be tested,
//! replayed and compared; one that reads a file or a clock cannot.
//!
//! It must never do input or output, read a clock, draw randomness or print.
//! Time, digests and facts about the file system are fed in by the edge.
//!
//! What it does not protect against: code linked into the same process that
//! opens a [`session::Session`] of its own and grants itself authority. The
//! edge is trusted; the model, the data and the commands are not.
//!
//! Reading order: [`path`] and [`authority`] name effects, [`grant`] and
//! [`cap`] hold them, [`monitor`] decides, [`approval`] asks, [`session`]
//! puts them in turns, [`audit`] records the turns.
//!
//! To begin with: `examples/grants.rs` is a session whose grants end in each way they can,
//! `examples/plan.rs` a plan of three steps.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod escape;

mod denial_code;

mod rule_ref;

mod isolation;

pub mod path;

pub mod authority;

pub mod time;

pub mod digest;

pub mod store_settings;

pub mod action;

pub mod grant;

pub mod cap;

pub mod rules;

pub mod monitor;

pub mod approval;

pub mod tool;

pub mod session;

pub mod standing;

pub mod letters;

pub mod outcome;

pub mod audit;

pub mod label;

pub mod flow;

pub mod wording;

pub mod limits;

pub mod fault;

pub mod batch;

pub mod edit;

pub mod plan;

pub mod v4a;

pub use monitor::Permit;
