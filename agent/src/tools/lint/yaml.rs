//! YAML, by `saphyr-parser`: syntax only, so that streams of documents, unknown
//! tags and names that are defined nowhere pass.
//!
//! The compared agent reads an older YAML: letters that cannot be printed are in
//! none of it, more letters end a line, and a tab separates nothing.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::text::place;

/// What the parser says of a name that is defined nowhere; the form is no worse
/// for it.
const NAMELESS: &str = "while parsing node, found unknown anchor";
/// Such names that are looked past; with more the rest is not read.
const NAMES_MAX: usize = 100;

/// What is wrong with the text, if anything.
pub fn problem(text: &str) -> Option<String> {
    let told = |what: &str, (line, column): (usize, usize)| {
        Some(format!("YAMLError: {what} (line {line}, column {column})"))
    };
    if let Some((at, letter)) = text.char_indices().find(|(_, letter)| !is_printed(*letter)) {
        let what = format!("unacceptable character #x{:04x}", u32::from(letter));
        return told(&what, place(text, at));
    }
    let mut text = with_plain_ends(text);
    for _ in 0..NAMES_MAX {
        match tab(&text) {
            Ok(None) => return None,
            Ok(Some(at)) => {
                let what = "found character '\\t' that cannot start any token";
                return told(what, place(&text, at));
            }
            Err(error) => {
                let marker = error.marker();
                if error.info() == NAMELESS
                    && let Some(defined) = without_name(&text, marker.index())
                {
                    text = Cow::Owned(defined);
                    continue;
                }
                return told(error.info(), (marker.line(), marker.col() + 1));
            }
        }
    }
    None
}

/// The same with a text in quotes where a name stands that is defined nowhere.
fn without_name(text: &str, letter: usize) -> Option<String> {
    let (at, _) = text.char_indices().nth(letter)?;
    let (before, name) = text.split_at_checked(at)?;
    let name = name.strip_prefix('*')?;
    let end = name.find(|letter: char| letter.is_whitespace() || ",[]{}".contains(letter));
    let after = name.get(end.unwrap_or(name.len())..)?;
    Some(format!("{before}''{after}"))
}

fn is_printed(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

fn with_plain_ends(text: &str) -> Cow<'_, str> {
    const ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];
    if text.contains(ENDS) {
        Cow::Owned(text.replace(ENDS, "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The first tab that is neither in quotes, nor in a block of text, nor in a
/// comment, if the text holds one and is well formed.
fn tab(text: &str) -> Result<Option<usize>, ScanError> {
    let is_concerned = text.contains('\t');
    // Places are counted in letters.
    let starts: Vec<usize> = if is_concerned {
        text.char_indices().map(|(at, _)| at).collect()
    } else {
        Vec::new()
    };
    let byte = |letter: usize| starts.get(letter).copied().unwrap_or(text.len());
    let mut found = None;
    let mut end = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event?;
        if !is_concerned || found.is_some() {
            continue;
        }
        let (from, to) = (byte(span.start.index()), byte(span.end.index()));
        found = tab_between(text, end, from);
        if found.is_none() && matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..)) {
            let plain = text.get(from..to).unwrap_or_default();
            found = plain.trim_end().find('\t').map(|at| from + at);
        }
        end = end.max(to);
    }
    if is_concerned && found.is_none() {
        found = tab_between(text, end, text.len());
    }
    Ok(found)
}

/// A tab between two places that is in no comment.
fn tab_between(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    for line in text.get(from..to)?.split_inclusive('\n') {
        let code = line
            .find('#')
            .map_or(line, |hash| line.get(..hash).unwrap_or(line));
        if let Some(tab) = code.find('\t') {
            return Some(at + tab);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn well_formed_streams_pass() {
        for text in [
            "",
            "a: 1\nb: [1, 2]\n",
            "---\na: 1\n---\nb: !Sub x\n",
            "t: |\n  free { text\n",
            "- 'it''s'\n",
            "a: *nowhere\n",
            "- *a\n- [*b, {c: *d}]\n",
            "t: |\n  a\tb\n   \tc\n",
            "a: 'x\ty'\nb: \"\t\"\n",
            "a: b # x\ty\n# \tz\n",
        ] {
            assert_eq!(problem(text), None, "{text:?}");
        }
    }

    #[test]
    fn broken_structure_is_named() {
        for text in [
            "a: [1\nb: 2",
            "a: 'x\n",
            "a: {b: 1\n",
            "a:\n\t- b\n",
            "a: b: c\n",
            "\ta: b\n",
            "a: b\t\n",
            "a:\tb\n",
            "a: b\tc\n",
            "a: [b,\tc]\n",
            "a: \u{7}\n",
            "a: *x y: z\n",
            "a: \u{85}b\n",
        ] {
            assert!(problem(text).is_some(), "{text:?}");
        }
    }
}
