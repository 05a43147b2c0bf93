//! JSON for programs, on a stream that may be a terminal.
//!
//! A name or a title is often somebody else's. JSON keeps apart what is said from how it is
//! written down, so what would draw on a terminal, or stand in it unseen, is written as an escape
//! of JSON's own: programs read the same, and a person sees what is there.

use serde_json::Value;

use crate::screen::is_hidden;

/// Prints a value on a line of its own.
pub(super) fn print_json(value: &Value) {
    println!("{}", line(value));
}

/// A value on one line.
pub(super) fn line(value: &Value) -> String {
    let plain = value.to_string();
    let draws = |letter: char| letter.is_control() || is_hidden(letter);
    if !plain.contains(draws) {
        return plain;
    }
    let mut line = String::with_capacity(plain.len());
    for letter in plain.chars() {
        match draws(letter) {
            // Only texts hold such letters, and in a text the escape means the same.
            true => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    line.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => line.push(letter),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::line;

    #[test]
    fn nothing_in_it_draws_and_programs_read_the_same() {
        for text in [
            "plain",
            "\u{9b}2Jx",
            "\u{1b}]0;title\u{7}",
            "\u{7f}",
            "a\u{202e}b",
            "\u{e0041}\u{200b}",
            "n\nt\t\"\\",
            "ü 日本 😀",
        ] {
            let value = json!({ text: [text] });
            let printed = line(&value);
            assert!(
                !printed.contains(
                    |letter: char| letter.is_control() || crate::screen::is_hidden(letter)
                ),
                "{printed:?}"
            );
            let read: Value = serde_json::from_str(&printed).expect("JSON");
            assert_eq!(read, value);
        }
        assert_eq!(line(&json!("ü")), "\"ü\"");
    }
}
