//! The rows a text takes on a terminal.
//!
//! What for: a line that is longer than the terminal goes on in its next row, and there it
//! could read like a line of its own: another file, the end of what is asked about, a
//! question. So it is said of each row that it goes on a line, and how much there is to
//! read is counted in rows.

use unicode_width::UnicodeWidthChar as _;

/// What a row begins with that goes on a line.
pub const GOES_ON: &str = "       | ";
/// How wide a terminal is of which nobody knows.
pub const COLUMNS: usize = 80;
/// A narrower one has no room for marks.
pub const COLUMNS_MIN: usize = 20;
const TAB: usize = 8;

/// How far a letter goes from this column. Where terminals differ, as far as on any.
fn width(letter: char, at: usize) -> usize {
    match letter {
        '\t' => TAB - at % TAB,
        _ => letter.width_cjk().unwrap_or(0),
    }
}

/// One line, broken where it is too long for the terminal, after a space if one is in the second
/// half of the row, and marked there. No letter is left out: what was broken can be told. The last
/// column stays free, for some terminals go on after it.
#[must_use]
pub fn broken(line: &str, columns: usize) -> String {
    let mut out = String::with_capacity(line.len());
    if columns < COLUMNS_MIN {
        return line.to_owned();
    }
    let mut row = String::new();
    let mut at = 0;
    // Behind the last space of the row: how many bytes that is, and where.
    let mut space: Option<(usize, usize)> = None;
    for letter in line.chars() {
        if at + width(letter, at) >= columns && width(letter, at) > 0 {
            let rest = match space.filter(|(_, after)| after * 2 > columns) {
                Some((bytes, _)) => row.split_off(bytes),
                None => String::new(),
            };
            out.push_str(&row);
            out.push('\n');
            out.push_str(GOES_ON);
            at = rest
                .chars()
                .fold(GOES_ON.len(), |at, letter| at + width(letter, at));
            row = rest;
            space = None;
        }
        row.push(letter);
        at += width(letter, at);
        if letter == ' ' {
            space = Some((row.len(), at));
        }
    }
    out.push_str(&row);
    out
}

/// A text in rows that end between words. Those after the first are moved in by so many columns,
/// and the first begins behind as many. Where there is no terminal it stays one row.
#[must_use]
pub fn folded(text: &str, columns: Option<usize>, indent: usize) -> String {
    match columns {
        Some(columns) => fold(text, columns, (indent, indent)),
        None => text.to_owned(),
    }
}

/// What is told in lines, each of them folded; what goes on is moved in a little further than its
/// line begins.
#[must_use]
pub fn told(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns.filter(|columns| *columns >= COLUMNS_MIN) else {
        return text.to_owned();
    };
    let fold = |line: &str| {
        let body = line.trim_start_matches(' ');
        let begin = line.len() - body.len();
        format!("{:begin$}{}", "", fold(body, columns, (begin, begin + 2)))
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// The first row begins behind so many columns, and the others are moved in by so many.
fn fold(text: &str, columns: usize, (first, indent): (usize, usize)) -> String {
    let mut rows = String::new();
    // The last column stays free: what is written there may end the row twice.
    let (mut at, mut is_empty) = (first, true);
    for word in words(text, columns.saturating_sub(indent)) {
        let length = length(word);
        let after = at.saturating_add(length);
        if !is_empty && after.saturating_add(1) >= columns {
            rows.push_str(&format!("\n{:indent$}", ""));
            at = indent;
        } else if !rows.is_empty() || !is_empty {
            rows.push(' ');
            at = at.saturating_add(1);
        }
        rows.push_str(word);
        at = at.saturating_add(length);
        is_empty = false;
    }
    rows
}

/// How many columns a word takes. A tone of this program's own takes none; text of somebody else's
/// holds none by the time it is told.
fn length(word: &str) -> usize {
    let mut is_tone = false;
    let mut columns: usize = 0;
    for letter in word.chars() {
        match letter {
            '\u{1b}' => is_tone = true,
            'm' if is_tone => is_tone = false,
            _ if is_tone => {}
            letter => columns = columns.saturating_add(width(letter, 0)),
        }
    }
    columns
}

/// The words of a text. What stands between backticks is to be typed or is a name, and one word
/// where a row has room for it: who copies it gets no end of a row along.
fn words(text: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(' ').unwrap_or(rest.len());
        let whole =
            quoted(rest, end).filter(|whole| length(rest.get(..*whole).unwrap_or_default()) < room);
        let (word, after) = rest.split_at(whole.unwrap_or(end));
        words.push(word);
        match after.strip_prefix(' ') {
            Some(after) => rest = after,
            None => return words,
        }
    }
}

/// Where a word ends of which the part up to `end` leaves backticks open.
fn quoted(text: &str, end: usize) -> Option<usize> {
    let mut end = end;
    while text.get(..end)?.matches('`').count() % 2 == 1 {
        let close = end + text.get(end..)?.find('`')?;
        let after = text.get(close..)?;
        end = close + after.find(' ').unwrap_or(after.len());
    }
    Some(end)
}

/// How many rows a text takes on a usual terminal.
#[must_use]
pub fn count(text: &str) -> usize {
    let rows = |line: &str| {
        let columns = line.chars().fold(0, |at, letter| at + width(letter, at));
        columns.div_ceil(COLUMNS).max(1)
    };
    text.lines().map(rows).sum()
}

#[cfg(test)]
mod tests {
    use super::{broken, count, folded, told};

    #[test]
    fn a_text_is_folded_between_words_only() {
        assert_eq!(folded("one two three", Some(9), 1), "one two\n three");
        assert_eq!(folded("one two three", None, 1), "one two three");
        assert_eq!(folded("a-long-word b", Some(5), 0), "a-long-word\nb");
        assert_eq!(folded("", Some(5), 0), "");
        assert_eq!(folded("a  b", Some(9), 0), "a  b");
        assert_eq!(
            folded("\u{4f60}\u{597d} b c", Some(8), 0),
            "\u{4f60}\u{597d} b\nc"
        );
    }

    #[test]
    fn what_is_to_be_typed_stays_on_one_row_where_it_has_room() {
        let text = "it is off; `config set mode prompt`, or `x y`";
        assert_eq!(
            folded(text, Some(30), 2),
            "it is off;\n  `config set mode prompt`,\n  or `x y`"
        );
        // Longer than a row it is broken as words are, and one that nobody closes is a letter.
        assert_eq!(folded("`aa bb cc dd`", Some(9), 0), "`aa bb\ncc dd`");
        assert_eq!(folded("a ` b c d e f", Some(9), 0), "a ` b c\nd e f");
    }

    #[test]
    fn a_tone_takes_no_room() {
        let tone = |text: &str| format!("\u{1b}[36m{text}\u{1b}[0m");
        let text = format!("{} two {}", tone("one"), tone("three"));
        assert_eq!(told(&text, Some(20)), text);
        let long = format!("{} {}", tone("one two three four"), tone("`five six`"));
        assert_eq!(
            told(&long, Some(20)),
            "\u{1b}[36mone two three four\u{1b}[0m\n  \u{1b}[36m`five six`\u{1b}[0m"
        );
    }

    #[test]
    fn each_line_that_is_told_goes_on_behind_where_it_begins() {
        let text = "held: one two three four five\n    for a directory, and no more";
        assert_eq!(
            told(text, Some(20)),
            "held: one two three\n  four five\n    for a\n      directory,\n      and no more"
        );
        assert_eq!(told(text, Some(200)), text);
        for narrow in [None, Some(5)] {
            assert_eq!(told(text, narrow), text);
        }
    }

    #[test]
    fn a_row_that_goes_on_a_line_says_so_and_what_fits_stays_as_it_is() {
        assert_eq!(broken("short\tline", 20), "short\tline");
        assert_eq!(broken(&"x".repeat(19), 20), "x".repeat(19));
        let long = format!("+{}deleted file /w/x", " ".repeat(19));
        assert_eq!(
            broken(&long, 20),
            format!(
                "+{}\n       |  deleted \n       | file /w/x",
                " ".repeat(18)
            )
        );
        assert_eq!(
            broken("this is what may be what asks for it", 30),
            "this is what may be what \n       | asks for it"
        );
        assert_eq!(
            broken("a b sha256:0123456789abcdef0123456789", 30),
            "a b sha256:0123456789abcdef01\n       | 23456789"
        );
        // No row is longer, whatever it is made of.
        for letter in ["x", "\t", "\u{4f60}", "e\u{301}", "\u{2460}"] {
            let out = broken(&letter.repeat(100), 30);
            for row in out.split('\n') {
                let width = row
                    .chars()
                    .fold(0, |at, letter| at + super::width(letter, at));
                assert!(width < 30, "{row:?}");
            }
            assert_eq!(out.replace("\n       | ", ""), letter.repeat(100));
        }
        // Without room for a mark there is none.
        assert_eq!(broken("0123456789", 5), "0123456789");
    }

    #[test]
    fn a_long_line_counts_as_the_rows_it_takes() {
        assert_eq!(count(""), 0);
        assert_eq!(count("a\n\nb\n"), 3);
        assert_eq!(count(&"x".repeat(80)), 1);
        assert_eq!(count(&format!("a\n{}\n", "x".repeat(81))), 3);
        assert_eq!(count(&"\t".repeat(20)), 2);
    }
}
