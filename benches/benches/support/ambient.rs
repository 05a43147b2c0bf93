//! What a benchmark takes from its surroundings.
#![expect(
    clippy::disallowed_methods,
    reason = "this file is where ambient authority enters"
)]

use std::path::PathBuf;

/// Whether it is run for its figures, and not only to see that it works.
pub fn wants_figures() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Where installed releases of Hermes lie.
pub fn hermes_root() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(cache.join("hermitcrab/hermes"))
}
