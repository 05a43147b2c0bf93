//! What comes from outside: where the report goes, where Hermes is.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where the arguments and the environment enter the report"
)]

use std::path::PathBuf;

/// The argument after this flag.
fn after(flag: &str) -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == flag {
            return arguments.next().map(PathBuf::from);
        }
    }
    None
}

/// The directory after `--write`, if there is one.
pub fn write_to() -> Option<PathBuf> {
    after("--write")
}

/// The interpreter of the environment that `cargo bisim check` makes, or the
/// one after `--hermes`.
pub fn hermes_python() -> Result<PathBuf, String> {
    if let Some(named) = after("--hermes") {
        return Ok(named);
    }
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
        .map_err(|error| format!("{error}; run `cargo bisim check` first"))?
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("venv/bin/python"))
        .find(|python| python.is_file())
        .ok_or_else(|| "no environment of Hermes; run `cargo bisim check` first".to_owned())
}
