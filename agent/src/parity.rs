//! Answers, from the agent's own rules, to the questions Hermes' guards answer.
//!
//! What for: the oracle compares decisions, and Hermes decides in functions of
//! its own; an editor's session asks some of them before tools run. Why here:
//! the answer has to come from the monitor, the session and the directory
//! capability that a call meets too, never from a second list of names. It
//! must never have an effect a call would not have, nor know what Hermes says,
//! and no answer given here is a permit: the call is decided anew when it runs.

pub mod batch;
pub mod command;
pub mod edit;
pub mod path;
