//! What a benchmark takes from its surroundings.
#![expect(
    clippy::disallowed_methods,
    reason = "this file is where ambient authority enters"
)]
#![allow(dead_code, reason = "no benchmark needs all of it")]

use std::path::PathBuf;

/// Whether it is run for its figures, and not only to see that it works.
pub fn wants_figures() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The directory after `--write`, if there is one.
pub fn write_to() -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != "--write");
    arguments.nth(1).map(PathBuf::from)
}

/// The paths after each argument of this name.
pub fn named(argument: &str) -> Vec<PathBuf> {
    let arguments: Vec<_> = std::env::args_os().collect();
    arguments
        .windows(2)
        .filter(|pair| pair[0] == argument)
        .map(|pair| PathBuf::from(&pair[1]))
        .collect()
}

/// The interpreter of the environment that `cargo bisim check` makes.
pub fn hermes_python() -> Result<PathBuf, String> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = absolute("HERMITCRAB_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|cache| cache.join("hermitcrab")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/hermitcrab")))
        .ok_or("no home directory")?
        .join("hermes");
    std::fs::read_dir(&cache)
        .map_err(|error| {
            format!(
                "`{}`: {error}; run `cargo bisim check` first",
                cache.display()
            )
        })?
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("venv/bin/python"))
        .find(|python| python.is_file())
        .ok_or_else(|| "no environment of Hermes; run `cargo bisim check` first".to_owned())
}
