//! The lines a search prints, and reading them back into matches.
//!
//! Results are defined by the printed form (`path:12:text`), including what
//! reading it back loses: rows that look like diagnostics, names with blanks.

use std::{fmt::Write as _, sync::LazyLock};

use regex::Regex;

use super::basic_regex;
use crate::text::pytext;

/// Letters of a line that a match shows.
const CONTENT_LETTERS_MAX: usize = 500;

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

    /// Whether there is all that is wanted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows >= self.wanted
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

/// What a file's lines print for the lines that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printed {
    /// Nothing matches.
    Nothing,
    /// These lines, and how many matches they hold.
    Lines(String, u64),
    /// It matches but is not text; this many matches.
    Binary(u64),
}

/// Prints the matching lines of one file, `context` lines around each. The pattern
/// is one of [`super::basic_regex`]: what it finds lies in one line.
#[must_use]
pub fn printed(path: &str, bytes: &[u8], regex: &Regex, context: u64) -> Printed {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Printed::Nothing;
    }
    if bytes.contains(&0) {
        // In what is no text a line ends at a NUL as well.
        let ended = |byte: &u8| if *byte == 0 { b'\n' } else { *byte };
        let lines: Vec<u8> = bytes.iter().map(ended).collect();
        let lines = lines.strip_suffix(b"\n").unwrap_or(&lines);
        return match hits_in_lines(lines, regex).len() {
            0 => Printed::Nothing,
            count => Printed::Binary(count as u64),
        };
    }
    let hits = match std::str::from_utf8(body) {
        // Where a word ends is quickly told among ASCII letters alone: only the lines
        // that hold others are to cost more.
        Ok(text) if text.is_ascii() || !basic_regex::asks_for_words(regex) => {
            hits_in_text(text, regex)
        }
        Ok(_) | Err(_) => hits_in_lines(body, regex),
    };
    if hits.is_empty() {
        return Printed::Nothing;
    }
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    let count = hits.len() as u64;
    let undecodable = hits.iter().any(|at| {
        lines
            .get(*at)
            .is_some_and(|line| std::str::from_utf8(line).is_err())
    });
    if undecodable {
        return Printed::Binary(count);
    }
    let around = usize::try_from(context).unwrap_or(usize::MAX);
    let mut out = String::new();
    let mut printed_to: Option<usize> = None;
    for (position, hit) in hits.iter().enumerate() {
        let from = hit
            .saturating_sub(around)
            .max(printed_to.map_or(0, |last| last + 1));
        let next = hits.get(position + 1).copied().unwrap_or(lines.len());
        let to = hit
            .saturating_add(around)
            .min(lines.len().saturating_sub(1))
            .min(next.saturating_sub(1).max(*hit));
        if around > 0 && printed_to.is_some_and(|last| from > last + 1) {
            out.push_str("--\n");
        }
        for at in from..=to {
            let mark = if at == *hit { ':' } else { '-' };
            let line = String::from_utf8_lossy(lines.get(at).copied().unwrap_or_default());
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{path}{mark}{}{mark}{line}", at + 1);
        }
        printed_to = Some(to);
    }
    Printed::Lines(out, count)
}

/// The numbers, from 0, of the lines of a text that match. Most files hold no match,
/// and nobody has to know where their lines end.
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

/// The same for what is not all text: each line is read by itself, as well as can be.
fn hits_in_lines(body: &[u8], regex: &Regex) -> Vec<usize> {
    body.split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| regex.is_match(&String::from_utf8_lossy(line)))
        .map(|(at, _)| at)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Match, Printed, hits_in_lines, hits_in_text, matches, printed, rows};
    use crate::tools::search_files::basic_regex::compile;

    fn print(text: &str, pattern: &str, context: u64) -> String {
        match printed(
            "f",
            text.as_bytes(),
            &compile(pattern).expect("pattern"),
            context,
        ) {
            Printed::Lines(lines, _) => lines,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn matching_lines_print_with_path_and_number() {
        assert_eq!(print("one\ntwo\none", "one", 0), "f:1:one\nf:3:one\n");
        assert_eq!(print("one\n", "x", 0), "Nothing");
        assert_eq!(print("one\0\n", "one", 0), "Binary(1)");
        assert_eq!(print("x\0one\n\0one\0", "^one", 0), "Binary(2)");
        assert_eq!(print("one\0", "^", 0), "Binary(1)");
        assert_eq!(print("one\0\n", "^", 0), "Binary(2)");
        assert_eq!(print("", "^", 0), "Nothing");
    }

    #[test]
    fn context_is_shared_and_gaps_are_marked() {
        assert_eq!(
            print("a\nb\nc\nd\ne\nf\ng\n", "[ag]", 1),
            "f:1:a\nf-2-b\n--\nf-6-f\nf:7:g\n"
        );
        assert_eq!(print("a\nb\na\n", "a", 1), "f:1:a\nf-2-b\nf:3:a\n");
        assert_eq!(print("a\na\nb\n", "a", 2), "f:1:a\nf:2:a\nf-3-b\n");
    }

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

    #[test]
    fn a_line_that_is_no_text_does_not_keep_the_others_from_being_read() {
        let regex = compile("two").unwrap();
        let bytes = b"one\n\xff\ntwo\n";
        assert_eq!(
            printed("f", bytes, &regex, 0),
            Printed::Lines("f:3:two\n".into(), 1)
        );
        let bytes = b"one\n\xfftwo\ntwo\n";
        assert_eq!(printed("f", bytes, &regex, 0), Printed::Binary(2));
    }
}
