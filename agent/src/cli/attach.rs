//! What somebody lays beside their words: files, and what a program says.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use super::Trouble;
use crate::{
    chat, exit,
    given_file::{self, Pipes},
    screen::visible,
};

/// What stands for the standard input.
pub const INPUT: &str = "-";
/// What it is called.
const THE_INPUT: &str = "the standard input";

/// The most that is taken in one message.
const BYTES_MAX: u64 = 4 << 20;

/// All of the standard input.
pub fn input() -> Result<String, Trouble> {
    text(all_of_the_input(BYTES_MAX)?, BYTES_MAX, THE_INPUT)
}

/// What is attached, as it stands in a message.
pub fn attached(files: &[PathBuf]) -> Result<Vec<String>, Trouble> {
    let mut left = BYTES_MAX;
    let mut all = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        let shown = format!("`{}`", visible(&name));
        let found = match name == INPUT {
            true => text(all_of_the_input(left)?, left, THE_INPUT)?,
            false => text(given(file, left, &shown)?, left, &shown)?,
        };
        left = left.saturating_sub(u64::try_from(found.len()).unwrap_or(left));
        all.push(chat::attached(&name, &found));
    }
    Ok(all)
}

fn given(file: &Path, left: u64, shown: &str) -> Result<Vec<u8>, Trouble> {
    given_file::beginning(file, left.saturating_add(1), Pipes::Read).map_err(|error| {
        let why = format!("{shown} cannot be attached: {error}");
        (why, exit::USAGE)
    })
}

fn all_of_the_input(left: u64) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(left.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| (format!("cannot read {THE_INPUT}: {error}"), exit::USAGE))?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>, most: u64, what: &str) -> Result<String, Trouble> {
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
