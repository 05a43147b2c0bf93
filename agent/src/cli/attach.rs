//! What somebody lays beside their words: files, and what a program says.

use std::{fs::File, io::Read, path::Path, path::PathBuf};

use super::Trouble;
use crate::{chat, exit, screen::visible};

/// What stands for the standard input.
pub const INPUT: &str = "-";

/// The most that is taken in one message.
const BYTES_MAX: u64 = 4 << 20;

/// All of the standard input.
pub fn input() -> Result<String, Trouble> {
    text(std::io::stdin().lock(), BYTES_MAX, "the standard input")
}

/// What is attached, as it stands in a message.
pub fn attached(files: &[PathBuf]) -> Result<Vec<String>, Trouble> {
    let mut left = BYTES_MAX;
    let mut all = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        let shown = format!("`{}`", visible(&name));
        let found = match name == INPUT {
            true => text(std::io::stdin().lock(), left, "the standard input")?,
            false => text(opened(file, &shown)?, left, &shown)?,
        };
        left = left.saturating_sub(u64::try_from(found.len()).unwrap_or(left));
        all.push(chat::attached(&name, &found));
    }
    Ok(all)
}

fn opened(file: &Path, shown: &str) -> Result<File, Trouble> {
    let cannot = |why: &str| {
        let why = format!("{shown} cannot be attached: {why}");
        (why, exit::USAGE)
    };
    // A pipe that nobody writes to is not waited for before it is known what it is.
    let is_dir = std::fs::metadata(file).map_err(|error| cannot(&error.to_string()))?;
    if is_dir.is_dir() {
        return Err(cannot(
            "it is a directory; the model can look into it by itself",
        ));
    }
    File::open(file).map_err(|error| cannot(&error.to_string()))
}

fn text(from: impl Read, most: u64, what: &str) -> Result<String, Trouble> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| (format!("cannot read {what}: {error}"), exit::USAGE))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        let most = BYTES_MAX >> 20;
        let why = format!(
            "{what} is longer than the {most} MiB a message may have; have the model read it from a file"
        );
        return Err((why, exit::USAGE));
    }
    String::from_utf8(bytes).map_err(|_| {
        let why = format!("{what} is not UTF-8, and what is said to a model is text");
        (why, exit::USAGE)
    })
}
