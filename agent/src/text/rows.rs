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
    use super::{broken, count};

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
