//! The contract of grants, calls, questions and delegation, case by case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod commands;
mod delegation;
mod ending;
mod grants;
mod questions;
mod rules;
