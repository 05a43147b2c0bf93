//! The ways of finding, from exact to vague.

use super::Span;
use crate::tools::{difflib, pytext};

/// One way of finding a quotation in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Letter by letter.
    Exact,
    /// Each line trimmed at both ends.
    TrimmedLines,
    /// Runs of blanks count as one.
    OneBlank,
    /// Each line trimmed at its start.
    NoIndentation,
    /// `\n`, `\t`, `\r` in the quotation mean the control letters.
    Unescaped,
    /// First and last line trimmed.
    TrimmedEnds,
    /// Typographic letters count as their plain spelling.
    PlainLetters,
    /// Same first and last line, similar middle.
    Anchored,
    /// Half of the lines are similar.
    Similar,
}

impl Way {
    /// All ways, in the order they are tried.
    pub const ALL: [Self; 9] = [
        Self::Exact,
        Self::TrimmedLines,
        Self::OneBlank,
        Self::NoIndentation,
        Self::Unescaped,
        Self::TrimmedEnds,
        Self::PlainLetters,
        Self::Anchored,
        Self::Similar,
    ];

    /// Where the quotation is, as this way sees it.
    pub fn find(self, content: &str, quotation: &str) -> Vec<Span> {
        match self {
            Self::Exact => exact(content, quotation),
            Self::TrimmedLines => by_lines(content, quotation, pytext::strip),
            Self::OneBlank => one_blank(content, quotation),
            Self::NoIndentation => by_lines(content, quotation, pytext::strip_start),
            Self::Unescaped => {
                let meant = quotation
                    .replace("\\n", "\n")
                    .replace("\\t", "\t")
                    .replace("\\r", "\r");
                if meant == quotation {
                    Vec::new()
                } else {
                    exact(content, &meant)
                }
            }
            Self::TrimmedEnds => trimmed_ends(content, quotation),
            Self::PlainLetters => plain_letters(content, quotation),
            Self::Anchored => anchored(content, quotation),
            Self::Similar => similar(content, quotation),
        }
    }
}

/// The plain spelling of a typographic letter.
fn plain(letter: char) -> Option<&'static str> {
    match letter {
        '\u{201c}' | '\u{201d}' => Some("\""),
        '\u{2018}' | '\u{2019}' => Some("'"),
        '\u{2014}' => Some("--"),
        '\u{2013}' => Some("-"),
        '\u{2026}' => Some("..."),
        '\u{a0}' => Some(" "),
        _ => None,
    }
}

/// The text with typographic letters spelled plainly.
pub fn plain_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match plain(letter) {
            Some(spelling) => out.push_str(spelling),
            None => out.push(letter),
        }
    }
    out
}

fn exact(content: &str, quotation: &str) -> Vec<Span> {
    if quotation.is_empty() {
        return Vec::new();
    }
    content
        .match_indices(quotation)
        .map(|(at, found)| (at, at + found.len()))
        .collect()
}

/// The byte range of lines `start..end`, the last line's end excluded.
fn line_span(content: &str, lines: &[&str], start: usize, end: usize) -> Span {
    let length = |count: usize| {
        lines
            .iter()
            .take(count)
            .map(|line| line.len() + 1)
            .sum::<usize>()
    };
    (
        length(start),
        content.len().min(length(end).saturating_sub(1)),
    )
}

/// Every block of as many lines as the quotation has, judged by `same`.
fn blocks(content: &str, count: usize, mut same: impl FnMut(&[&str]) -> bool) -> Vec<Span> {
    let lines: Vec<&str> = content.split('\n').collect();
    lines
        .windows(count.max(1))
        .enumerate()
        .filter(|(_, block)| same(block))
        .map(|(at, _)| line_span(content, &lines, at, at + count))
        .collect()
}

fn by_lines(content: &str, quotation: &str, trim: fn(&str) -> &str) -> Vec<Span> {
    let wanted: Vec<&str> = quotation.split('\n').map(trim).collect();
    blocks(content, wanted.len(), |block| {
        block
            .iter()
            .zip(&wanted)
            .all(|(line, wanted)| trim(line) == *wanted)
    })
}

fn trimmed_ends(content: &str, quotation: &str) -> Vec<Span> {
    fn ends_trimmed<'t>(lines: &[&'t str]) -> Vec<&'t str> {
        let last = lines.len().saturating_sub(1);
        lines
            .iter()
            .enumerate()
            .map(|(at, line)| {
                if at == 0 || at == last {
                    pytext::strip(line)
                } else {
                    line
                }
            })
            .collect()
    }
    let quotation: Vec<&str> = quotation.split('\n').collect();
    let wanted = ends_trimmed(&quotation);
    blocks(content, wanted.len(), |block| ends_trimmed(block) == wanted)
}

/// The text with runs of blanks as one, and where each byte of it came from.
fn blanks_joined(text: &str) -> (String, Vec<usize>) {
    let mut joined = String::with_capacity(text.len());
    let mut origin = Vec::with_capacity(text.len() + 1);
    let mut after_blank = false;
    for (at, letter) in text.char_indices() {
        let blank = letter == ' ' || letter == '\t';
        if blank && after_blank {
            continue;
        }
        after_blank = blank;
        let letter = if blank { ' ' } else { letter };
        origin.extend((0..letter.len_utf8()).map(|byte| at + byte));
        joined.push(letter);
    }
    origin.push(text.len());
    (joined, origin)
}

fn one_blank(content: &str, quotation: &str) -> Vec<Span> {
    let (joined, origin) = blanks_joined(content);
    let (wanted, _) = blanks_joined(quotation);
    exact(&joined, &wanted)
        .into_iter()
        .filter_map(|(start, end)| {
            let from = *origin.get(start)?;
            let to = *origin.get(end)?;
            // A run of blanks that the match ends with belongs to the match as
            // a whole; one that follows it stays outside.
            let last = *origin.get(end.checked_sub(1)?)?;
            let ends_blank = joined.as_bytes().get(end - 1) == Some(&b' ');
            let to = if ends_blank {
                to
            } else {
                (last + 1).max(from).min(to)
            };
            content.get(from..to).map(|_| (from, to))
        })
        .collect()
}

fn plain_letters(content: &str, quotation: &str) -> Vec<Span> {
    let wanted = plain_text(quotation);
    let text = plain_text(content);
    if text == content && wanted == quotation {
        return Vec::new();
    }
    let mut spans = exact(&text, &wanted);
    if spans.is_empty() {
        spans = by_lines(&text, &wanted, pytext::strip);
    }
    let origin = plain_origins(content);
    spans
        .into_iter()
        .filter_map(|(start, end)| {
            // A match that begins inside one letter's plain spelling has no
            // place in the original.
            let from = origin.iter().find(|(plain_at, _)| *plain_at == start)?.1;
            let to = origin
                .iter()
                .find(|(plain_at, at)| *plain_at >= end && *at >= from)?
                .1;
            Some((from, to))
        })
        .collect()
}

/// Pairs of (offset in the plain spelling, offset in the original), ends included.
pub fn plain_origins(text: &str) -> Vec<Span> {
    let mut plain_at = 0;
    let mut origin = Vec::with_capacity(text.len() + 1);
    for (at, letter) in text.char_indices() {
        origin.push((plain_at, at));
        plain_at += plain(letter).map_or(letter.len_utf8(), str::len);
    }
    origin.push((plain_at, text.len()));
    origin
}

fn anchored(content: &str, quotation: &str) -> Vec<Span> {
    let wanted_text = plain_text(quotation);
    let wanted: Vec<&str> = wanted_text.split('\n').collect();
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        return Vec::new();
    };
    if wanted.len() < 2 {
        return Vec::new();
    }
    let text = plain_text(content);
    let lines: Vec<&str> = text.split('\n').collect();
    let original: Vec<&str> = content.split('\n').collect();
    let candidates: Vec<(usize, &[&str])> = lines
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, block)| {
            block.first().map(|line| pytext::strip(line)) == Some(pytext::strip(first))
                && block.last().map(|line| pytext::strip(line)) == Some(pytext::strip(last))
        })
        .collect();
    let enough = if candidates.len() == 1 { 0.50 } else { 0.70 };
    let middle = |block: &[&str]| {
        block
            .get(1..block.len().saturating_sub(1))
            .unwrap_or_default()
            .join("\n")
    };
    candidates
        .into_iter()
        .filter(|(_, block)| {
            wanted.len() <= 2 || difflib::ratio(&middle(block), &middle(&wanted)) >= enough
        })
        .map(|(at, _)| line_span(content, &original, at, at + wanted.len()))
        .collect()
}

fn similar(content: &str, quotation: &str) -> Vec<Span> {
    let wanted: Vec<&str> = quotation.split('\n').collect();
    blocks(content, wanted.len(), |block| {
        let alike = block
            .iter()
            .zip(&wanted)
            .filter(|(line, wanted)| {
                difflib::ratio(pytext::strip(wanted), pytext::strip(line)) >= 0.80
            })
            .count();
        alike * 2 >= wanted.len()
    })
}
