//! Putting the new text in place of what was found.

use super::{Span, find};
use crate::text::{difflib, pytext};

fn regions(content: &str, spans: &[Span]) -> String {
    spans
        .iter()
        .filter_map(|(start, end)| content.get(*start..*end))
        .collect()
}

/// A message when quotes in both texts carry a backslash the file has not.
pub fn damaged_quotes(content: &str, spans: &[Span], old: &str, new: &str) -> Option<String> {
    let found = regions(content, spans);
    ["\\'", "\\\""]
        .into_iter()
        .find(|mark| new.contains(mark) && old.contains(mark) && !found.contains(mark))
        .map(|mark| {
            format!(
                "Escape-drift detected: old_string and new_string contain the literal sequence {} but the matched \
                 region of the file does not. This is almost always a tool-call serialization artifact where an \
                 apostrophe or quote got prefixed with a spurious backslash. Re-read the file with read_file and pass \
                 old_string/new_string without backslash-escaping {} characters.",
                pytext::quoted(mark),
                pytext::quoted(mark.get(1..).unwrap_or_default()),
            )
        })
}

/// `\t` and `\r` written as two letters become one where the file has the real one.
pub fn control_letters_restored(content: &str, spans: &[Span], new: &str) -> String {
    let found = regions(content, spans);
    let mut out = new.to_owned();
    for (written, meant) in [("\\t", "\t"), ("\\r", "\r")] {
        if out.contains(written) && found.contains(meant) {
            out = out.replace(written, meant);
        }
    }
    out
}

/// The new text with the file's typographic letters wherever nothing changed.
pub fn letters_kept(content: &str, spans: &[Span], old: &str, new: &str) -> String {
    let found = regions(content, spans);
    let plain_old = find::plain_text(old);
    if plain_old != find::plain_text(&found) {
        return new.to_owned();
    }
    let old_letters: Vec<char> = plain_old.chars().collect();
    let new_letters: Vec<char> = new.chars().collect();
    // Offsets of letters, so that a step over letters names bytes.
    let byte_of: Vec<usize> = plain_old
        .char_indices()
        .map(|(at, _)| at)
        .chain([plain_old.len()])
        .collect();
    let origin = find::plain_origins(&found);
    let mut out = String::new();
    for step in difflib::steps(&old_letters, &new_letters) {
        match step.change {
            difflib::Change::Equal => {
                let start = byte_of.get(step.a.0).copied().unwrap_or_default();
                let end = byte_of.get(step.a.1).copied().unwrap_or_default();
                let first = origin.partition_point(|(plain_at, _)| *plain_at < start);
                let from = origin
                    .get(first)
                    .filter(|(plain_at, _)| *plain_at == start)
                    .map_or(0, |pair| pair.1);
                let last = origin.partition_point(|(plain_at, at)| *plain_at < end || *at < from);
                let to = origin.get(last).map_or(found.len(), |pair| pair.1);
                out.push_str(found.get(from..to).unwrap_or_default());
            }
            difflib::Change::Replace | difflib::Change::Insert => {
                out.extend(new_letters.get(step.b.0..step.b.1).unwrap_or_default());
            }
            difflib::Change::Delete => {}
        }
    }
    out
}

fn indentation(line: &str) -> &str {
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len())
        .unwrap_or_default()
}

fn first_line_with_text(text: &str) -> Option<&str> {
    text.split('\n')
        .find(|line| !pytext::strip(line).is_empty())
}

/// The new text moved from the quotation's indentation to the file's.
fn reindented(region: &str, old: &str, new: &str) -> String {
    let (Some(quoted), Some(there)) = (first_line_with_text(old), first_line_with_text(region))
    else {
        return new.to_owned();
    };
    let (quoted, there) = (indentation(quoted), indentation(there));
    if quoted == there || new.is_empty() {
        return new.to_owned();
    }
    let lines: Vec<String> = new
        .split('\n')
        .map(|line| {
            if pytext::strip(line).is_empty() {
                return line.to_owned();
            }
            match line.strip_prefix(quoted) {
                Some(rest) => format!("{there}{rest}"),
                None => format!("{there}{}", line.trim_start_matches([' ', '\t'])),
            }
        })
        .collect();
    lines.join("\n")
}

/// The text with every span replaced, from the last to the first.
///
/// Vague ways find overlapping places. An earlier one is then taken at its old
/// place in what the later one left.
pub fn apply(
    content: &str,
    mut spans: Vec<Span>,
    new: &str,
    reindent_from: Option<&str>,
) -> String {
    spans.sort_by_key(|span| std::cmp::Reverse(span.0));
    let put = |(start, end): Span| match reindent_from {
        Some(old) => reindented(content.get(start..end).unwrap_or_default(), old, new),
        None => new.to_owned(),
    };
    let overlap = spans
        .windows(2)
        .any(|pair| matches!(pair, [later, earlier] if earlier.1 > later.0));
    if overlap {
        return apply_overlapping(content, &spans, put);
    }
    let mut out = String::with_capacity(content.len());
    let mut at = 0;
    for (start, end) in spans.into_iter().rev() {
        let (Some(kept), Some(_)) = (content.get(at..start), content.get(end..)) else {
            continue;
        };
        out.push_str(kept);
        out.push_str(&put((start, end)));
        at = end;
    }
    out.push_str(content.get(at..).unwrap_or_default());
    out
}

/// The same where places overlap; counted in letters, which always have an end.
///
/// What lies before the place put in last is still as it was, so only what follows is
/// kept, from its end, and a letter is put there and taken away once at most.
fn apply_overlapping(content: &str, spans: &[Span], put: impl Fn(Span) -> String) -> String {
    let letters: Vec<(usize, char)> = content.char_indices().collect();
    let letters_before = |byte: usize| letters.partition_point(|(at, _)| *at < byte);
    let mut follows: Vec<char> = Vec::with_capacity(letters.len());
    let mut untouched = letters.len();
    for span in spans {
        let start = letters_before(span.0).min(untouched);
        let end = letters_before(span.1).max(start);
        let between = letters.get(end..untouched).unwrap_or_default();
        follows.extend(between.iter().rev().map(|(_, letter)| letter));
        let gone = end.saturating_sub(untouched);
        follows.truncate(follows.len().saturating_sub(gone));
        follows.extend(put(*span).chars().rev());
        untouched = start;
    }
    let before = letters.iter().take(untouched).map(|(_, letter)| *letter);
    before.chain(follows.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Span, apply, apply_overlapping};

    /// As it is said: each place is taken in what the later ones left.
    fn one_after_the_other(content: &str, spans: &[Span], new: &str) -> String {
        let letters = |end: usize| content.get(..end).map_or(0, |text| text.chars().count());
        let mut out: Vec<char> = content.chars().collect();
        for span in spans {
            let start = letters(span.0).min(out.len());
            let end = letters(span.1).clamp(start, out.len());
            out.splice(start..end, new.chars());
        }
        out.into_iter().collect()
    }

    proptest! {
        #[test]
        fn places_that_overlap_are_taken_in_what_the_later_ones_left(
            content in "[a\u{e9}\u{1f600}]{0,12}",
            places in prop::collection::vec((0..14_usize, 0..6_usize), 0..6),
            new in "[xy\u{fc}]{0,4}",
        ) {
            let byte = |letter: usize| {
                content.char_indices().nth(letter).map_or(content.len(), |(at, _)| at)
            };
            let mut spans: Vec<Span> = places
                .into_iter()
                .map(|(at, long)| (byte(at), byte(at + long)))
                .collect();
            spans.sort_by_key(|span| std::cmp::Reverse(span.0));
            prop_assert_eq!(
                apply_overlapping(&content, &spans, |_| new.clone()),
                one_after_the_other(&content, &spans, &new)
            );
        }
    }

    #[test]
    fn a_long_text_of_places_that_overlap_is_replaced() {
        const LINES: usize = 200_000;
        let content = "a \n".repeat(LINES);
        // Every two lines are a place: "a \na ".
        let spans: Vec<Span> = (0..LINES - 1)
            .map(|line| (line * 3, line * 3 + 5))
            .collect();
        // Each takes away its line and two letters of what the next one put there.
        let replaced = apply(&content, spans.clone(), "bcd", None);
        assert_eq!(replaced, format!("bcd{}\n", "d".repeat(LINES - 2)));
        assert_eq!(apply(&content, spans, "", None), "");
    }
}
