//! What somebody else wrote, made visible for the person who is asked about it: it must
//! not draw on their terminal, nor look like more than it is.

use hermitcrab_core::letters::{is_like_a_space, is_unseen};

/// Control letters made visible: a file must not be able to draw on the
/// terminal that asks about it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() || is_unseen(letter) => {
                out.push_str(&letter.escape_unicode().to_string())
            }
            letter => out.push(letter),
        }
    }
    out
}

/// The same for what has a line to itself, most often a name: it must not look like
/// two, nor like another.
pub(super) fn one_line(text: &str) -> String {
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
pub(super) fn named(path: &str) -> String {
    let path = one_line(path);
    if path.contains([' ', ',', '"']) {
        format!("\"{}\"", path.replace('"', "\\u{22}"))
    } else {
        path
    }
}

/// A command of several lines, the later ones marked: it must not be able to
/// write lines that look like the list of its changes.
pub(super) fn marked(command: &str) -> String {
    escaped(command).replace('\n', "\n       | ")
}

#[cfg(test)]
mod tests {
    use super::named;

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
