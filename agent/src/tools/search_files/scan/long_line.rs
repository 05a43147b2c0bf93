//! A line that is too long to be in memory, searched in parts that share their ends.
//!
//! A match is found wherever it lies, if it is no longer than what two parts share.

use regex::Regex;

use super::PRINTED_BYTES_MAX;

/// What two parts share.
const SHARED_BYTES: usize = 64 << 10;

/// What was seen of such a line.
pub(super) struct LongLine {
    head: Vec<u8>,
    is_hit: bool,
    is_text: bool,
}

impl LongLine {
    /// Looks at one more part; what of it is to be looked at once more with the next.
    pub(super) fn goes_on(
        before: Option<Self>,
        mut part: Vec<u8>,
        regex: &Regex,
    ) -> (Self, Vec<u8>) {
        let was_hit = before.as_ref().is_some_and(|before| before.is_hit);
        let is_hit = was_hit || matches_before_end(&part, before.is_none(), regex);
        // A letter that is cut in two at the end is one all the same.
        let is_text = match std::str::from_utf8(&part) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none(),
        };
        let mut kept = part.split_off(part.len().saturating_sub(SHARED_BYTES));
        // What is kept begins with a letter.
        let middle = kept
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count();
        kept.drain(..middle);
        let long = match before {
            Some(before) => Self {
                is_hit,
                is_text: before.is_text && is_text,
                ..before
            },
            None => {
                part.truncate(PRINTED_BYTES_MAX + 1);
                Self {
                    head: part,
                    is_hit,
                    is_text,
                }
            }
        };
        (long, kept)
    }

    /// How it begins, which is no text if any of it is none, and whether it matches; with
    /// its last part.
    pub(super) fn ended(self, last: &[u8], regex: &Regex) -> (Vec<u8>, bool) {
        let is_hit = self.is_hit || {
            // Where the part begins no line does.
            let last = String::from_utf8_lossy(last);
            let first = last.chars().next().map_or(0, char::len_utf8);
            regex.is_match_at(&last, first)
        };
        let mut head = self.head;
        // Nor does the cut through a letter make the line no text.
        if let Err(error) = std::str::from_utf8(&head) {
            head.truncate(error.valid_up_to());
        }
        if !self.is_text || std::str::from_utf8(last).is_err() {
            head.push(0xff);
        }
        (head, is_hit)
    }
}

/// Whether a part of a line matches, in whatever way the line goes on. A match that
/// ends where the part does may be one of the end, and is found in the next part.
fn matches_before_end(part: &[u8], is_first: bool, regex: &Regex) -> bool {
    let text = String::from_utf8_lossy(part);
    let start = match is_first {
        true => 0,
        false => text.chars().next().map_or(0, char::len_utf8),
    };
    let end = regex.shortest_match_at(&text, start);
    end.is_some_and(|end| end < text.len())
}

#[cfg(test)]
mod tests {
    use crate::{
        runtime::Taker as _,
        tools::search_files::{
            Mode,
            basic_regex::compile,
            scan::{BLOCK_BYTES, LINE_BYTES_MAX, Scan, Wanted},
        },
    };

    use super::SHARED_BYTES;

    /// How many lines match, and how the rows begin.
    fn found(text: &str, pattern: &str) -> (u64, Vec<String>) {
        let regex = &compile(pattern).unwrap();
        let mut scan = Scan::new(Wanted {
            path: "f",
            regex,
            mode: Mode::Content,
            context: 0,
            rows: 9,
        });
        for piece in text.as_bytes().chunks(1 << 20) {
            assert!(scan.take(piece).is_continue());
        }
        let scan = scan.finished();
        assert!(scan.text.len() < 1 << 20, "{}", scan.text.len());
        let begins = |row: &str| row.get(..4).unwrap().to_owned();
        (scan.count, scan.text.lines().map(begins).collect())
    }

    #[test]
    fn a_line_too_long_for_memory_is_searched_in_parts_that_share_their_ends() {
        let line = |needle: &str, at: usize| {
            let mut line = "z".repeat(LINE_BYTES_MAX * 2 + 100);
            line.replace_range(at..at + needle.len(), needle);
            format!("first\n{line}\nlast needle\n")
        };
        let both = (2, vec!["f:2:".to_owned(), "f:3:".to_owned()]);
        for at in [
            0,
            10,
            LINE_BYTES_MAX - 3,
            LINE_BYTES_MAX,
            LINE_BYTES_MAX + SHARED_BYTES / 2,
            LINE_BYTES_MAX + BLOCK_BYTES - 3,
            LINE_BYTES_MAX * 2 + 94,
        ] {
            assert_eq!(found(&line("needle", at), "needle"), both, "{at}");
        }
        // The end of a part is no end of a line, and its beginning no beginning.
        let text = line("", 0);
        assert_eq!(found(&text, "z$").0, 1);
        assert_eq!(found(&text, "^z").0, 1);
        assert_eq!(found(&text, "needle$"), (1, vec!["f:3:".to_owned()]));
        assert_eq!(found(&text, "\\bz\\b").0, 0);
        // A letter of several bytes at each of its ends.
        let text = format!("{}\nlast\n", "\u{20ac}".repeat(LINE_BYTES_MAX / 2));
        assert_eq!(
            found(&text, "\u{20ac}\u{20ac}$"),
            (1, vec!["f:1:".to_owned()])
        );
    }
}
