//! The arguments: where the report goes, or what else this process is there for.

use std::path::PathBuf;

/// The directory after `--write`, if there is one.
pub fn write_to() -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--write" {
            return arguments.next().map(PathBuf::from);
        }
    }
    None
}

/// Whether the first argument is this one.
pub fn first_is(word: &str) -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == word)
}

/// The arguments after the first.
pub fn further() -> Vec<std::ffi::OsString> {
    std::env::args_os().skip(2).collect()
}

/// This very program.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into())
}
