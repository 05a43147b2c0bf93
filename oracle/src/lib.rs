//! The oracle: drives Hermes and the agent through the same cases in equal
//! worlds and judges the difference.
//!
//! It must never decide for a subject, and never let a subject's own word
//! stand in for what kernel and file system show.

// First, since its macros count for what follows.
#[macro_use]
pub mod printing;

pub mod case;
pub mod suite;

pub mod canon;
pub mod holdings;
pub mod noise;
pub mod observation;

pub mod known;
pub mod relation;
pub mod verdict;

pub mod law;

pub mod generate;

pub mod hermes_env;
pub mod report;
pub mod result;

pub mod subject;

pub mod campaign;
pub mod check;
pub mod doctor;
pub mod leaks;
pub mod migrate;
pub mod retold;
pub mod selftest;
pub mod speed;

pub mod ambient;
pub mod cli;
pub mod commit;
pub mod environment;
pub mod exit;
mod figures;
mod glob;
pub mod interrupt;
pub mod lineage;
pub mod nested_cargo;
mod planting;
pub mod processes;
pub mod progress;
pub mod pulse;
