//! A part of a text that is too long to be in memory, taken piece by piece.

use std::ops::ControlFlow;

use super::{SAMPLE_BYTES, looks_binary, paged, span};
use crate::{runtime::Taker, text::fence};

/// Bytes of one line that are looked at: of what follows nothing is shown.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The lines of a part, as far as any of them is shown, and what is told of the whole.
pub(super) struct Part {
    /// Lines before it that were not counted yet, and lines of it that are to come.
    before: usize,
    left: usize,
    /// The beginning of the line that is being read.
    line: Vec<u8>,
    /// The whole lines so far, without what a terminal keeps for itself.
    pub(super) text: String,
    /// Letters of them that are shown.
    letters: usize,
    /// Ends of lines, and bytes.
    pub(super) lines: usize,
    pub(super) bytes: u64,
    /// How it begins.
    pub(super) sample: Vec<u8>,
}

impl Part {
    pub(super) fn new(offset: i128, limit: i64) -> Self {
        let (before, _) = span(offset, limit);
        Self {
            before,
            left: usize::try_from(limit).unwrap_or(0),
            line: Vec::new(),
            text: String::new(),
            letters: 0,
            lines: 0,
            bytes: 0,
            sample: Vec::new(),
        }
    }

    /// The lines as they are, the last one included if nothing ends it.
    pub(super) fn finished(mut self) -> Self {
        if !self.line.is_empty() {
            self.end_line();
        }
        self
    }

    /// Adds to the line that is being read, and ends it.
    fn add(&mut self, mut part: &[u8]) {
        while self.left > 0 && !part.is_empty() {
            let end = memchr::memchr(b'\n', part);
            let (line, rest) = match end {
                Some(end) => part.split_at(end + 1),
                None => (part, &b""[..]),
            };
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            let kept = line.get(..room).unwrap_or(line);
            self.line.extend_from_slice(kept);
            part = rest;
            if end.is_some() {
                if self.line.last() != Some(&b'\n') {
                    self.line.push(b'\n');
                }
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let plain = fence::stripped(&line);
        self.letters += plain.chars().count().min(paged::LINE_LETTERS_MAX);
        self.text.push_str(&plain);
        // More lines than are told at once are not told, whatever they are.
        self.left = match self.letters > paged::RESULT_LETTERS_MAX {
            true => 0,
            false => self.left.saturating_sub(1),
        };
    }
}

impl Taker for Part {
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.bytes += piece.len() as u64;
        let lacking = SAMPLE_BYTES.saturating_sub(self.sample.len());
        if lacking > 0 {
            let sample = piece.get(..lacking).unwrap_or(piece);
            self.sample.extend_from_slice(sample);
            // Of what is no text nothing is told but that.
            if self.sample.len() == SAMPLE_BYTES && looks_binary(&self.sample) {
                return ControlFlow::Break(());
            }
        }
        let ends = memchr::memchr_iter(b'\n', piece).count();
        self.lines += ends;
        if ends < self.before {
            self.before -= ends;
        } else if self.before > 0 {
            let mut ends = memchr::memchr_iter(b'\n', piece);
            let first = ends.nth(self.before - 1).map_or(0, |at| at + 1);
            self.before = 0;
            self.add(piece.get(first..).unwrap_or_default());
        } else {
            self.add(piece);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Part;
    use crate::{
        runtime::Taker as _,
        tools::read_file::{shown, told},
    };

    fn taken(text: &[u8], piece: usize, offset: i128, limit: i64) -> Part {
        let mut part = Part::new(offset, limit);
        for piece in text.chunks(piece) {
            assert!(part.take(piece).is_continue());
        }
        part.finished()
    }

    proptest! {
        #[test]
        fn a_part_taken_in_pieces_is_told_as_of_the_whole(
            text in prop::collection::vec(
                prop::sample::select(&[
                    "a", "b\n", "\n", "\r\n", "\u{e9}", "\u{feff}", "\u{7}", "\u{1b}]0;t\u{7}", "\u{2028}",
                    "'\u{7}__HERMES_FENCE_ab1__\u{7}'", "long ",
                ][..]),
                0..60,
            ),
            piece in 1_usize..20,
            offset in 1_i128..12,
            limit in 1_i64..12,
        ) {
            let text = text.concat();
            let bytes = text.len() as u64;
            let part = taken(text.as_bytes(), piece, offset, limit);
            prop_assert_eq!(part.bytes, bytes);
            prop_assert_eq!(
                told(&part.text, part.lines, bytes, offset, limit),
                shown(&text, bytes, offset, limit)
            );
        }
    }

    #[test]
    fn what_is_kept_of_a_page_is_bounded_and_told_as_of_the_whole() {
        let lines = [3000, 200_000, 10, 70_000, 2000].map(|length| "x".repeat(length) + "\n");
        let text = lines.concat().repeat(50);
        for (offset, limit) in [(1, 2000), (2, 3), (7, 500), (249, 2), (300, 9)] {
            let part = taken(text.as_bytes(), 1000, offset, limit);
            assert!(part.text.len() < 4 << 20, "{}", part.text.len());
            let bytes = text.len() as u64;
            assert_eq!(
                told(&part.text, part.lines, bytes, offset, limit),
                shown(&text, bytes, offset, limit)
            );
        }
        let endless = "y".repeat(1 << 20);
        let part = taken(endless.as_bytes(), 4096, 1, 500);
        assert_eq!(part.text.len(), super::LINE_BYTES_MAX);
        assert_eq!(
            told(&part.text, 0, 1 << 20, 1, 500),
            shown(&endless, 1 << 20, 1, 500)
        );
    }
}
