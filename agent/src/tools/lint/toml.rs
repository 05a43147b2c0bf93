//! TOML, by the `toml` crate; the message is worded here.

use super::place;

/// What is wrong with the text, if anything.
pub fn problem(text: &str) -> Option<String> {
    let error = toml::from_str::<toml::Table>(text).err()?;
    let (line, column) = place(text, error.span().map_or(text.len(), |span| span.start));
    let what = error
        .message()
        .lines()
        .next()
        .unwrap_or("invalid")
        .to_owned();
    Some(format!(
        "TOMLDecodeError: {what} (at line {line}, column {column})"
    ))
}
