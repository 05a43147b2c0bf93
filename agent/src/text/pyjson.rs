//! JSON text spelled the way the compared agent spells it.
//!
//! What the model sees is text, so the blank after `,` and `:` and the order
//! of keys are part of a tool's result. This module only spells values; it
//! must never decide what is in them.

use std::io;

use serde::Serialize;
use serde_json::{Value, ser::Formatter};

/// Writes `", "` and `": "`, everything else as `serde_json` does.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The value as one line of JSON, letters beyond ASCII left as they are.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // Writing a `Value` into memory has no failing case; an empty text would
    // be visible at once as "no result".
    if value.serialize(&mut serializer).is_err() {
        return String::new();
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// The value over several lines, two blanks to a level.
#[must_use]
pub fn indented(value: &Value) -> String {
    // As above: a `Value` has no failing case.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Like [`text`], with everything beyond ASCII written as `\uXXXX`.
#[must_use]
pub fn ascii_text(value: &Value) -> String {
    ascii(&text(value))
}

/// JSON text with everything beyond ASCII written as `\uXXXX`.
#[must_use]
pub fn ascii(plain: &str) -> String {
    if plain.is_ascii() {
        return plain.to_owned();
    }
    let mut out = String::with_capacity(plain.len() + 16);
    for letter in plain.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            let mut units = [0_u16; 2];
            for unit in letter.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ascii_text, indented, text};

    #[test]
    fn several_lines_are_indented_by_two() {
        assert_eq!(
            indented(&json!({"a": [1], "b": {}, "c": []})),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": {},\n  \"c\": []\n}"
        );
    }

    #[test]
    fn separators_carry_a_blank_and_keys_keep_their_order() {
        assert_eq!(
            text(&json!({"b": [1, 2, {"x": null}], "a": "t\u{1}\n\"é"})),
            "{\"b\": [1, 2, {\"x\": null}], \"a\": \"t\\u0001\\n\\\"é\"}"
        );
        assert_eq!(text(&json!({"e": {}, "l": []})), "{\"e\": {}, \"l\": []}");
    }

    #[test]
    fn ascii_form_escapes_in_utf16_units() {
        assert_eq!(ascii_text(&json!("é😀")), "\"\\u00e9\\ud83d\\ude00\"");
    }
}
