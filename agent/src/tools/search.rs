//! The parts of searching that need no files: patterns and their output.

pub mod basic_regex;
pub mod glob;
pub mod lines;
pub mod options;
