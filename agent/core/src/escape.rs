//! How names that may hold anything are written where a person reads them.

use alloc::string::String;
use core::fmt::{self, Write as _};

use crate::letters::{is_like_a_space, is_unseen};
use crate::limits::TEXT_BYTES_MAX;

/// Writes bytes so that nothing in them can act on a terminal or end a line.
pub(crate) fn write_escaped(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    // Nearly every name is its own printable form, and a record holds many names.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if bytes.iter().all(is_plain)
        && let Ok(text) = core::str::from_utf8(bytes)
    {
        return out.write_str(text);
    }
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            write_escaped_char(out, character)?;
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

fn write_escaped_char(out: &mut impl fmt::Write, character: char) -> fmt::Result {
    if character == '\\' {
        out.write_str("\\\\")
    } else if character.is_control() || is_unseen(character) || is_like_a_space(character) {
        write!(out, "\\u{{{:x}}}", u32::from(character))
    } else {
        out.write_char(character)
    }
}

/// Formats `value`, escaped, keeping at most [`TEXT_BYTES_MAX`] bytes.
pub(crate) fn bounded(value: impl fmt::Display) -> String {
    struct Bounded(String);
    impl fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            // Nearly every piece is its own printable form, and is kept whole.
            let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
            let room = TEXT_BYTES_MAX.saturating_sub(self.0.len());
            if text.len() <= room && text.bytes().all(is_plain) {
                self.0.push_str(text);
                return Ok(());
            }
            for character in text.chars() {
                if self.0.len() >= TEXT_BYTES_MAX {
                    return Ok(());
                }
                // A backslash stays single: parts may already be escaped.
                if character == '\\' {
                    self.0.push(character);
                } else {
                    write_escaped_char(&mut self.0, character)?;
                }
            }
            Ok(())
        }
    }
    let mut out = Bounded(String::new());
    // Writing to a string cannot fail; a failing `Display` leaves what it wrote.
    let _ = write!(out, "{value}");
    out.0
}
