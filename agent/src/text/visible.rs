//! What somebody else wrote, made visible for the person who is asked about it: it must
//! not draw on their terminal, nor look like more than it is.

use hermitcrab_core::letters::{is_like_a_space, is_unseen};
use unicode_width::UnicodeWidthChar as _;

/// Control letters made visible: a file must not be able to draw on the
/// terminal that asks about it. Nor on what stands before it: an accent on the sign of a
/// line that goes would make it one that comes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = '\n';
    for letter in text.chars() {
        let stands_on_a_sign = before.is_ascii() && !before.is_ascii_alphanumeric();
        let is_plain = match letter {
            '\n' | '\t' => true,
            _ if letter.is_control() || is_unseen(letter) => false,
            _ => !stands_on_a_sign || letter.width() != Some(0),
        };
        if is_plain {
            out.push(letter);
            before = letter;
        } else {
            out.extend(letter.escape_unicode());
            before = '}';
        }
    }
    out
}

/// The same for what has a line to itself, most often a name: it must not look like
/// two, nor like another.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in escaped(text).chars() {
        if matches!(letter, '\n' | '\t') || is_like_a_space(letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

/// A name of a file in a line that says more than the name: where it could be taken
/// for more of that line, it stands in quotation marks, and holds none itself.
#[must_use]
pub fn named(path: &str) -> String {
    let path = one_line(path);
    if path.contains([' ', ',', '"']) {
        format!("\"{}\"", path.replace('"', "\\u{22}"))
    } else {
        path
    }
}

/// A command of several lines, the later ones marked: it must not be able to
/// write lines that look like the list of its changes.
#[must_use]
pub fn marked(command: &str) -> String {
    escaped(command).replace('\n', "\n       | ")
}

#[cfg(test)]
mod tests {
    use super::{escaped, named};

    #[test]
    fn an_accent_stands_on_a_letter_and_not_on_a_sign_before_it() {
        for kept in [
            "e\u{301}",
            "+e\u{301}a",
            "\u{5e9}\u{5b8}",
            "4\u{30a}",
            "\u{915}\u{947}",
        ] {
            assert_eq!(escaped(kept), kept);
        }
        assert_eq!(escaped("-\u{20d2}gone"), "-\\u{20d2}gone");
        assert_eq!(escaped(" x\n\u{335}y"), " x\n\\u{335}y");
        assert_eq!(escaped("/\u{308}\u{308}"), "/\\u{308}\\u{308}");
        assert_eq!(named("/w/\u{338}a"), "/w/\\u{338}a");
    }

    #[test]
    fn a_name_that_reads_like_more_of_its_line_stands_in_quotation_marks() {
        for (name, shown) in [
            ("/w/notes.txt", "/w/notes.txt"),
            ("/w/a, 4 bytes, mode 600", "\"/w/a, 4 bytes, mode 600\""),
            ("/w/a to b", "\"/w/a to b\""),
            ("/w/a\" to \"b", "\"/w/a\\u{22} to \\u{22}b\""),
            ("/w/a\nb", "/w/a\\u{a}b"),
        ] {
            assert_eq!(named(name), shown);
        }
    }
}
