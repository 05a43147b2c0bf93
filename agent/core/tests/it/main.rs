//! What the core decides: one test binary, one file for each subject.

mod aliases;
mod batch;
mod consent;
mod contract;
mod extent;
#[cfg(feature = "planted-faults")]
mod faults;
mod flow;
mod laws;
mod ledger;
mod lifecycle;
mod lifecycle_machine;
mod limits;
mod looks;
mod model;
mod modes;
mod plan;
mod printing;
mod questions;
mod rules;
mod sensitive;
mod sessions;
mod standing;
mod stores;
mod support;
mod vocabulary;
mod wider;
mod withheld;
mod wording;
