//! TOML, by the `toml` crate; the message is worded here.

use crate::text::place;

/// What is wrong with the text, if anything.
pub fn problem(text: &str) -> Option<String> {
    if text.starts_with('\u{feff}') {
        return Some("TOMLDecodeError: Invalid statement (at line 1, column 1)".to_owned());
    }
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

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn a_mark_at_the_beginning_is_no_statement() {
        assert_eq!(problem("a = 1\n"), None);
        assert!(problem("\u{feff}a = 1\n").is_some());
        assert!(problem("a = \n").is_some());
    }
}
