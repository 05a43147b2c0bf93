//! Answers, from the agent's own rules, to the questions Hermes' guards answer.
//!
//! What for: the oracle compares decisions, and Hermes decides in functions of
//! its own. Why here: the answer has to come from the monitor, the session and
//! the directory capability that a call meets too, never from a second list of
//! names. It must never have an effect a call would not have, nor know what
//! Hermes says.

pub mod path;
