//! The ways of finding, from exact to vague.

use super::Span;
use crate::text::{
    difflib::{self, Effort},
    pytext,
};

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

    /// Where the quotation is, as this way sees it. Where the effort is spent, that is not all.
    pub fn find(self, content: &str, quotation: &str, effort: &mut Effort) -> Vec<Span> {
        match self {
            Self::Exact => exact(content, quotation),
            Self::TrimmedLines => by_lines(content, quotation, pytext::strip, effort),
            Self::OneBlank => one_blank(content, quotation),
            Self::NoIndentation => by_lines(content, quotation, pytext::strip_start, effort),
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
            Self::TrimmedEnds => trimmed_ends(content, quotation, effort),
            Self::PlainLetters => plain_letters(content, quotation, effort),
            Self::Anchored => anchored(content, quotation, effort),
            Self::Similar => similar(content, quotation, effort),
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

/// Where each of these lines begins, and where one behind them would.
fn line_starts(lines: &[&str]) -> Vec<usize> {
    let mut at = 0;
    let mut starts = vec![at];
    for line in lines {
        at += line.len() + 1;
        starts.push(at);
    }
    starts
}

/// The byte range of lines `start..end`, the last line's end excluded.
fn line_span(content: &str, starts: &[usize], start: usize, end: usize) -> Span {
    let behind = starts.last().copied().unwrap_or(0);
    let length = |count: usize| starts.get(count).copied().unwrap_or(behind);
    (
        length(start),
        content.len().min(length(end).saturating_sub(1)),
    )
}

/// Every block of as many lines as the quotation has, judged by `same`, until the effort is
/// spent.
fn blocks(
    content: &str,
    count: usize,
    effort: &mut Effort,
    mut same: impl FnMut(&[&str], &mut Effort) -> bool,
) -> Vec<Span> {
    let lines: Vec<&str> = content.split('\n').collect();
    let starts = line_starts(&lines);
    lines
        .windows(count.max(1))
        .enumerate()
        .filter(|(_, block)| !effort.is_spent() && same(block, effort))
        .map(|(at, _)| line_span(content, &starts, at, at + count))
        .collect()
}

/// What it costs to hold a line against another.
const fn cost(line: &str) -> usize {
    4 + line.len() / 8
}

fn by_lines(
    content: &str,
    quotation: &str,
    trim: fn(&str) -> &str,
    effort: &mut Effort,
) -> Vec<Span> {
    let wanted: Vec<&str> = quotation.split('\n').map(trim).collect();
    blocks(content, wanted.len(), effort, |block, effort| {
        block.iter().zip(&wanted).all(|(line, wanted)| {
            effort.spend(cost(line));
            trim(line) == *wanted
        })
    })
}

fn trimmed_ends(content: &str, quotation: &str, effort: &mut Effort) -> Vec<Span> {
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
    blocks(content, wanted.len(), effort, |block, effort| {
        effort.spend(block.iter().map(|line| cost(line)).sum());
        ends_trimmed(block) == wanted
    })
}

/// A text with runs of blanks as one, and what each byte of it stands for, told one by one:
/// where that begins, and where it ends.
///
/// A run of blanks is one blank, which stands for the run up to its first space. What
/// follows that belongs to the letter behind it.
fn blanks_joined(text: &str, mut stands_for: impl FnMut(Span)) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    let mut at = 0_usize;
    // Where the blanks begin that belong to the next letter.
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let run = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let long = if run == 0 { letter.len_utf8() } else { run };
        if run == 0 {
            joined.push(letter);
            for byte in at..at + long {
                let begins = before.take().unwrap_or(byte);
                stands_for((begins, byte + 1));
            }
        } else {
            let blanks = rest.get(..run).unwrap_or_default();
            let ends = at + blanks.find(' ').map_or(run, |space| space + 1);
            joined.push(' ');
            stands_for((at, ends));
            before = (ends < at + run).then_some(ends);
        }
        at += long;
        rest = rest.get(long..).unwrap_or_default();
    }
    joined
}

fn one_blank(content: &str, quotation: &str) -> Vec<Span> {
    let joined = blanks_joined(content, |_| {});
    let found = exact(&joined, &blanks_joined(quotation, |_| {}));
    let mut origins: Vec<Span> = Vec::new();
    // What each byte stands for takes sixteen times the text's room.
    if !found.is_empty() {
        blanks_joined(content, |origin| origins.push(origin));
    }
    found
        .into_iter()
        .filter_map(|(start, end)| {
            let (from, _) = *origins.get(start)?;
            let (_, to) = *origins.get(end.checked_sub(1)?)?;
            // Blanks that the match ends with belong to it as a whole where something
            // follows them; at the end of the text only the first does.
            let ends_blank = joined.as_bytes().get(end - 1) == Some(&b' ');
            let more = match content.get(to..) {
                Some(rest) if ends_blank && end < joined.len() => {
                    rest.len() - rest.trim_start_matches([' ', '\t']).len()
                }
                _ => 0,
            };
            content.get(from..to + more).map(|_| (from, to + more))
        })
        .collect()
}

fn plain_letters(content: &str, quotation: &str, effort: &mut Effort) -> Vec<Span> {
    let wanted = plain_text(quotation);
    let text = plain_text(content);
    if text == content && wanted == quotation {
        return Vec::new();
    }
    let mut spans = exact(&text, &wanted);
    if spans.is_empty() {
        spans = by_lines(&text, &wanted, pytext::strip, effort);
    }
    let origin = plain_origins(content);
    spans
        .into_iter()
        .filter_map(|(start, end)| {
            // A match that begins inside one letter's plain spelling has no
            // place in the original.
            let first = origin.partition_point(|(plain_at, _)| *plain_at < start);
            let (plain_at, from) = *origin.get(first)?;
            let last = origin.partition_point(|(plain_at, at)| *plain_at < end || *at < from);
            let (_, to) = *origin.get(last)?;
            (plain_at == start).then_some((from, to))
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

fn anchored(content: &str, quotation: &str, effort: &mut Effort) -> Vec<Span> {
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
    let original = line_starts(&content.split('\n').collect::<Vec<_>>());
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
            if effort.is_spent() {
                return false;
            }
            let mut is_alike = |one: &str, other: &str| {
                difflib::alike_within(one, other, |ratio| ratio >= enough, effort).is_some()
            };
            wanted.len() <= 2 || is_alike(&middle(block), &middle(&wanted))
        })
        .map(|(at, _)| line_span(content, &original, at, at + wanted.len()))
        .collect()
}

fn similar(content: &str, quotation: &str, effort: &mut Effort) -> Vec<Span> {
    let wanted: Vec<&str> = quotation.split('\n').collect();
    blocks(content, wanted.len(), effort, |block, effort| {
        let alike = block
            .iter()
            .zip(&wanted)
            .filter(|(line, wanted)| {
                let (wanted, line) = (pytext::strip(wanted), pytext::strip(line));
                difflib::alike_within(wanted, line, |ratio| ratio >= 0.80, effort).is_some()
            })
            .count();
        alike * 2 >= wanted.len()
    })
}
