//! The one argument: where the report goes.

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
