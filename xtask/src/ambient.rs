//! What the chores take from their surroundings, and nothing else.
#![expect(
    clippy::disallowed_methods,
    reason = "the one file of this package that reads the environment"
)]

use std::path::PathBuf;

/// The cargo that started this program, so that a pinned toolchain stays pinned.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
