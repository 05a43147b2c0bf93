//! The lines a search prints, and reading them back into matches.
//!
//! Results are defined by the printed form (`path:12:text`), including what
//! reading it back loses: rows that look like diagnostics, names with blanks.

use std::{cell::OnceCell, sync::LazyLock};

use regex::Regex;

use super::basic_regex;
use crate::text::pytext;

/// Letters of a line that a match shows.
const CONTENT_LETTERS_MAX: usize = 500;

/// Bytes of rows that are held.
const BYTES_MAX: usize = 64 << 20;

/// One row of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<'r> {
    /// As printed.
    pub path: &'r str,
    /// From 1.
    pub line: u64,
    /// The line, cut.
    pub content: &'r str,
}

/// What a search has printed so far, of which a number of rows is wanted.
#[derive(Debug)]
pub struct Output {
    text: String,
    rows: usize,
    wanted: usize,
}

impl Output {
    /// Nothing printed yet.
    #[must_use]
    pub fn new(wanted: usize) -> Self {
        Self {
            text: String::new(),
            rows: 0,
            wanted,
        }
    }

    /// Adds whole rows.
    pub fn push(&mut self, rows: &str) {
        self.rows += rows.bytes().filter(|byte| *byte == b'\n').count();
        self.text.push_str(rows);
    }

    /// How many rows were printed.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many of the rows that are wanted are not there.
    #[must_use]
    pub fn lacking(&self) -> usize {
        self.wanted.saturating_sub(self.rows)
    }

    /// Whether nothing was printed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether there is all that is wanted, or all that may be held of it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows >= self.wanted || self.is_cut()
    }

    /// Whether more was printed than may be held.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.text.len() > BYTES_MAX
    }

    /// The rows that are wanted, as printed.
    #[must_use]
    pub fn first_rows(&self) -> &str {
        let mut ends = self.text.match_indices('\n').map(|(at, _)| at);
        match ends.nth(self.wanted.saturating_sub(1)) {
            Some(end) => self.text.get(..end).unwrap_or_default(),
            None => &self.text,
        }
    }
}

static ROW: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[^\s:].*?[:-]\d|^[^\s:]\S*$").ok());
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-(\d+)-").ok());

/// Whether a line is a row: a name, then a number, or one word.
fn is_row(line: &str) -> bool {
    // Nearly every row is a plain one, and that is seen without an expression.
    let plain = line.as_bytes().split_first().is_some_and(|(first, rest)| {
        first.is_ascii_graphic()
            && *first != b':'
            && rest
                .windows(2)
                .any(|two| matches!(two, [b':' | b'-', b'0'..=b'9']))
    });
    plain || ROW.as_ref().is_some_and(|row| row.is_match(line))
}

/// The rows of a search's output that are results, in order.
#[must_use]
pub fn rows(printed: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = printed
        .split('\n')
        .filter(|line| *line == "--" || is_row(line))
        .filter(|line| {
            let words = pytext::strip_start(line);
            !words.is_empty() && !words.starts_with("grep: ")
        })
        .collect();
    // The output as a whole is trimmed, and no row consists of blanks.
    if let Some(first) = rows.first_mut() {
        *first = pytext::strip_start(first);
    }
    if let Some(last) = rows.last_mut() {
        *last = pytext::strip_end(last);
    }
    rows
}

/// Reads rows as matches; with context, rows of surrounding lines too.
#[must_use]
pub fn matches<'r>(rows: &[&'r str], context: u64) -> Vec<Match<'r>> {
    rows.iter()
        .filter(|row| **row != "--")
        .filter_map(|row| found(row).or_else(|| if context > 0 { surrounding(row) } else { None }))
        .collect()
}

fn cut(content: &str) -> &str {
    pytext::head(content, CONTENT_LETTERS_MAX)
}

fn found(row: &str) -> Option<Match<'_>> {
    let mut from = 0;
    loop {
        let colon = from + row.get(from..)?.find(':')?;
        let rest = row.get(colon + 1..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && rest.as_bytes().get(digits) == Some(&b':') {
            return Some(Match {
                path: row.get(..colon)?,
                line: rest.get(..digits)?.parse().ok()?,
                content: cut(rest.get(digits + 1..)?),
            });
        }
        from = colon + 1;
    }
}

fn surrounding(row: &str) -> Option<Match<'_>> {
    let last = NUMBER.as_ref()?.captures_iter(row).last()?;
    let (whole, number) = (last.get(0)?, last.get(1)?);
    let path = row.get(..whole.start())?;
    (!path.is_empty()).then_some(())?;
    Some(Match {
        path,
        line: number.as_str().parse().ok()?,
        content: cut(row.get(whole.end()..)?),
    })
}

/// The numbers, from 0, of the lines that match, of which nothing ends the last one. The
/// pattern is one of [`super::basic_regex`]: what it finds lies in one line.
#[must_use]
pub fn hits(lines: &[u8], regex: &Regex) -> Vec<usize> {
    match std::str::from_utf8(lines) {
        // Where a word ends is quickly told among ASCII letters alone: only the lines
        // that hold others are to cost more.
        Ok(text) if text.is_ascii() || !basic_regex::asks_for_words(regex) => {
            hits_in_text(text, regex)
        }
        Ok(_) | Err(_) => hits_in_lines(lines, regex),
    }
}

/// The same for a text. Most files hold no match, and nobody has to know where their
/// lines end.
fn hits_in_text(text: &str, regex: &Regex) -> Vec<usize> {
    let ends = |from: usize, to: usize| {
        let between = text.as_bytes().get(from..to).unwrap_or_default();
        between.iter().filter(|byte| **byte == b'\n').count()
    };
    let mut hits = Vec::new();
    // Where the line begins that is looked at next, and its number.
    let (mut from, mut number) = (0, 0);
    while from <= text.len() {
        let Some(end) = regex.shortest_match_at(text, from) else {
            break;
        };
        number += ends(from, end);
        hits.push(number);
        let Some(line_end) = text.get(end..).and_then(|rest| rest.find('\n')) else {
            break;
        };
        from = end + line_end + 1;
        number += 1;
    }
    hits
}

/// And for what is not all text: each line is read by itself, and nothing in a pattern
/// stands for a byte that is no letter.
fn hits_in_lines(body: &[u8], regex: &Regex) -> Vec<usize> {
    let of_one_line = OnceCell::new();
    let is_hit = |line: &[u8]| match std::str::from_utf8(line) {
        Ok(text) => regex.is_match(text),
        Err(_) => {
            regex.is_match(&String::from_utf8_lossy(line))
                && of_one_line
                    .get_or_init(|| Regex::new(regex.as_str()).ok())
                    .as_ref()
                    .is_none_or(|of_one_line| of_one_line.is_match(&with_holes(line)))
        }
    };
    body.split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| is_hit(line))
        .map(|(at, _)| at)
        .collect()
}

/// A line with an end of line, which no pattern matches, for each byte that is no letter.
/// An anchor must not be asked for there: the pattern is read as that of one line.
fn with_holes(line: &[u8]) -> String {
    let mut out = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Match, hits, hits_in_lines, hits_in_text, matches, rows};
    use crate::tools::search_files::basic_regex::compile;

    #[test]
    fn rows_are_read_back_as_matches() {
        let printed = "./a b.txt:12:x:3: y  \n--\n./c-4-d-5-e\ngrep: z: no\n";
        let rows = rows(printed);
        assert_eq!(
            matches(&rows, 1),
            [
                Match {
                    path: "./a b.txt",
                    line: 12,
                    content: "x:3: y  "
                },
                Match {
                    path: "./c-4-d",
                    line: 5,
                    content: "e"
                },
            ]
        );
    }

    #[test]
    fn nothing_in_a_pattern_stands_for_a_byte_that_is_no_letter() {
        for (pattern, text, expected) in [
            ("b.d", &b"bad \xff\nb\xffd"[..], &[0][..]),
            ("caf.", b"caf\xe9\ncaf\xc3\xa9 \xff", &[1]),
            ("a.*y", b"ax\xffay", &[0]),
            ("a[^x]", b"a\xff", &[]),
            ("a\\W", b"a\xff", &[]),
            ("a\\S", b"a\xff", &[]),
            ("a\\s", b"a\xff", &[]),
            ("bad$", b"bad\xff\nbad", &[1]),
            ("^x", b"\xffx\nx\xff", &[1]),
            ("^$", b"\xff\n\n\xff\xff", &[1]),
            ("", b"\xff", &[0]),
        ] {
            let found = hits(text, &compile(pattern).unwrap());
            assert_eq!(found, expected, "{pattern} {text:?}");
        }
    }

    /// What patterns are made of: letters, anchors, classes that may hold the end of a
    /// line, and what looks at its neighbours.
    const PARTS: &[&str] = &[
        "a",
        "b",
        "\u{e9}",
        " ",
        "^",
        "$",
        ".",
        "*",
        "\\+",
        "\\?",
        "\\|",
        "\\(",
        "\\)",
        "\\{1,2\\}",
        "[^a]",
        "[^[:space:]]",
        "[[:space:]]",
        "[[:cntrl:]a]",
        "\\w",
        "\\W",
        "\\s",
        "\\S",
        "\\b",
        "\\B",
        "\\<",
        "\\>",
        "\\`",
        "\\'",
        "\n",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]
        #[test]
        fn a_text_is_searched_as_each_of_its_lines_by_itself(
            parts in prop::collection::vec(prop::sample::select(PARTS), 1..6),
            text in prop::collection::vec(
                prop::sample::select(&["a", "b", "\u{e9}", " ", "\n", "\n", "\r\n", "\t", "\0", "_"][..]),
                0..24,
            ),
        ) {
            let (pattern, text) = (parts.concat(), text.concat());
            if let Ok(regex) = compile(&pattern) {
                let alone = hits_in_lines(text.as_bytes(), &regex);
                prop_assert_eq!(hits_in_text(&text, &regex), alone, "{:?} {:?}", pattern, text);
            }
        }
    }
}
