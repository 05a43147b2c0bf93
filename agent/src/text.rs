//! Texts and a model's values, read and written as the compared agent does it.
//!
//! Pure: text in, text out. Nothing here knows a tool, a session or a file, so that
//! whatever makes words for a model can use it, the runtime as well as the tools.

pub mod ansi;
pub mod args;
pub mod difflib;
pub mod fence;
pub mod fuzzy;
pub mod gitconfig;
pub mod gitindex;
pub mod glob;
pub mod json;
pub mod output;
pub mod pyjson;
pub mod pytext;
pub mod redact;
pub mod rows;
pub mod visible;
pub mod whole_diff;

/// Line and column, both from 1, of a byte offset.
#[must_use]
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (line, column)
}
