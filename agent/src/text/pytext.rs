//! The string habits of the compared agent's language.
//!
//! Line splitting, trimming and quoting differ between languages in corners
//! (form feeds, file separators, quotes) that show in results. Pure functions
//! only.

use std::sync::LazyLock;

use regex::Regex;

/// White space as `strip()` sees it: Unicode white space and the four
/// information separators.
#[must_use]
pub fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// Both ends trimmed.
#[must_use]
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The start trimmed.
#[must_use]
pub fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// The end trimmed.
#[must_use]
pub fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// Lines with their ends kept, broken at every Unicode line boundary.
#[must_use]
pub fn lines_kept(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let mut end = at + letter.len_utf8();
        match letter {
            '\r' => {
                if let Some((_, '\n')) = letters.peek() {
                    letters.next();
                    end += 1;
                }
            }
            '\n' | '\u{b}' | '\u{c}' | '\u{1c}' | '\u{1d}' | '\u{1e}' | '\u{85}' | '\u{2028}'
            | '\u{2029}' => {}
            _ => continue,
        }
        lines.push(text.get(start..end).unwrap_or_default());
        start = end;
    }
    if start < text.len() {
        lines.push(text.get(start..).unwrap_or_default());
    }
    lines
}

/// Lines without their ends.
#[must_use]
pub fn lines(text: &str) -> Vec<&str> {
    lines_kept(text)
        .into_iter()
        .map(|line| {
            line.strip_suffix("\r\n").unwrap_or_else(|| {
                line.strip_suffix([
                    '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}',
                    '\u{2028}', '\u{2029}',
                ])
                .unwrap_or(line)
            })
        })
        .collect()
}

/// The text in quotes, as an error message shows a value.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == mark => {
                out.push('\\');
                out.push(letter);
            }
            letter if is_shown(letter) => out.push(letter),
            letter => out.push_str(&match letter as u32 {
                number @ ..=0xff => format!("\\x{number:02x}"),
                number @ ..=0xffff => format!("\\u{number:04x}"),
                number => format!("\\U{number:08x}"),
            }),
        }
    }
    out.push(mark);
    out
}

/// Whether a letter stands for itself there: neither a control letter, nor one that
/// steers others, nor a blank but the plain one.
fn is_shown(letter: char) -> bool {
    if letter.is_ascii() {
        return !letter.is_ascii_control();
    }
    let mut bytes = [0; 4];
    let text: &str = letter.encode_utf8(&mut bytes);
    !HIDDEN.as_ref().is_some_and(|hidden| hidden.is_match(text))
}

static HIDDEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]").ok());

/// The first `count` letters.
#[must_use]
pub fn head(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((at, _)) => text.get(..at).unwrap_or(text),
        None => text,
    }
}

/// The last `count` letters.
#[must_use]
pub fn tail(text: &str, count: usize) -> &str {
    let total = text.chars().count();
    if total <= count {
        return text;
    }
    match text.char_indices().nth(total - count) {
        Some((at, _)) => text.get(at..).unwrap_or(text),
        None => "",
    }
}

/// A number with `,` between thousands.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with a fraction, as the language writes it: with an exponent where
/// it is far from one, and never without a point or an exponent.
#[must_use]
pub fn float(number: f64) -> String {
    let written = format!("{number:e}");
    let Some((digits, Ok(exponent))) = written
        .split_once('e')
        .map(|(digits, exponent)| (digits, exponent.parse::<i32>()))
    else {
        return number.to_string();
    };
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    let plain = number.to_string();
    if plain.contains('.') {
        plain
    } else {
        format!("{plain}.0")
    }
}

/// Splits a file name at its last dot; leading dots belong to the stem.
#[must_use]
pub fn split_extension(path: &str) -> (&str, &str) {
    let name_start = path.rfind('/').map_or(0, |slash| slash + 1);
    let name = path.get(name_start..).unwrap_or(path);
    let stem_start = name.len() - name.trim_start_matches('.').len();
    match name.get(stem_start..).unwrap_or_default().rfind('.') {
        Some(dot) => path.split_at(name_start + stem_start + dot),
        None => (path, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::{float, head, lines, lines_kept, quoted, split_extension, strip, tail, thousands};

    #[test]
    fn lines_end_at_every_unicode_boundary() {
        assert_eq!(
            lines_kept("a\r\nb\u{c}c\u{2028}d"),
            ["a\r\n", "b\u{c}", "c\u{2028}", "d"]
        );
        assert_eq!(lines("a\r\nb\rc\n"), ["a", "b", "c"]);
        assert!(lines("").is_empty());
    }

    #[test]
    fn trimming_covers_the_information_separators() {
        assert_eq!(strip("\u{1c} a \u{a0}\n"), "a");
    }

    #[test]
    fn quoting_prefers_single_marks() {
        assert_eq!(quoted("a'b"), "\"a'b\"");
        assert_eq!(quoted("a'\"\n\u{1}"), "'a\\'\"\\n\\x01'");
        let hidden = "\u{ad}\u{a0}\u{200b}\u{202e}\u{2028}\u{e000}\u{f0000}";
        let told = "'\\xad\\xa0\\u200b\\u202e\\u2028\\ue000\\U000f0000'";
        assert_eq!(quoted(hidden), told);
        assert_eq!(quoted("é ü \u{1f980} 한"), "'é ü \u{1f980} 한'");
    }

    #[test]
    fn ends_are_cut_by_letters() {
        assert_eq!((head("aéz", 2), tail("aéz", 2)), ("aé", "éz"));
        assert_eq!((head("a", 5), tail("a", 5)), ("a", "a"));
    }

    #[test]
    fn numbers_far_from_one_get_an_exponent() {
        assert_eq!(
            [1.5, 2.0, 1e300, 1e15, 1e16, -0.0001, 0.000_012, 1.25e-7].map(float),
            [
                "1.5",
                "2.0",
                "1e+300",
                "1000000000000000.0",
                "1e+16",
                "-0.0001",
                "1.2e-05",
                "1.25e-07"
            ]
        );
    }

    #[test]
    fn numbers_get_commas() {
        assert_eq!(
            [thousands(7), thousands(1234), thousands(1_234_567)],
            ["7", "1,234", "1,234,567"]
        );
    }

    #[test]
    fn extensions_start_at_the_last_dot_of_the_name() {
        assert_eq!(split_extension("/a.b/c.tar.gz"), ("/a.b/c.tar", ".gz"));
        assert_eq!(split_extension("/a.b/c"), ("/a.b/c", ""));
        assert_eq!(split_extension("/a/.env"), ("/a/.env", ""));
        assert_eq!(split_extension("..x.y"), ("..x", ".y"));
    }
}
