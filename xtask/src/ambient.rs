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

/// Where a person's programs keep what can be made again.
pub fn cache_dir() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = named("XDG_CACHE_HOME").map(PathBuf::from);
    cache.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")))
}

/// Where cargo keeps the sources of what it builds.
pub fn cargo_home() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = named("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cargo")))
}
