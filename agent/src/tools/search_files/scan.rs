//! The lines of one file that a search prints, as the file comes block by block.
//!
//! What for: a log of gigabytes is searched in the memory of one block and one line,
//! and what is no text is told from text as the search program tells it: a file is text
//! until the block with the first NUL, and after that nothing of it is printed; a line
//! that is no text by itself is not printed, and the others are.

mod long_line;

use std::{collections::VecDeque, ops::ControlFlow};

use regex::Regex;

use self::long_line::LongLine;
use super::{Mode, lines};
use crate::runtime::Taker;

/// Bytes that are looked at before anything of them is printed.
const BLOCK_BYTES: usize = 96 << 10;
/// Bytes of one line that are in memory at once.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a line that are printed: more than a result shows of one.
const PRINTED_BYTES_MAX: usize = 64 << 10;
/// Bytes of rows of one file.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Bytes of lines that wait to be printed around a match.
const BEFORE_BYTES_MAX: usize = 16 << 20;

/// What is looked for, and how it is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'s> {
    pub path: &'s str,
    pub regex: &'s Regex,
    pub mode: Mode,
    /// Lines around each match.
    pub context: u64,
    /// Rows after which nobody looks at more.
    pub rows: usize,
}

/// One file as far as it was taken.
pub(super) struct Scan<'s> {
    wanted: Wanted<'s>,
    /// The rows so far.
    pub text: String,
    rows: usize,
    /// Lines that match.
    pub count: u64,
    is_binary: bool,
    has_holes: bool,
    is_over: bool,
    /// The line that has no end yet.
    rest: Vec<u8>,
    long: Option<LongLine>,
    /// Lines that were looked at.
    seen: u64,
    /// The number of the line after the last one printed, if any was.
    printed_to: Option<u64>,
    /// Whether a match was met, printed or not.
    is_used: bool,
    /// Rows after the last match that are to be printed.
    pending: u64,
    /// The last lines, none of them printed; `None` for one that is no text.
    before: VecDeque<Option<String>>,
    before_bytes: usize,
}

impl<'s> Scan<'s> {
    pub(super) fn new(wanted: Wanted<'s>) -> Self {
        Self {
            wanted,
            text: String::new(),
            rows: 0,
            count: 0,
            is_binary: false,
            has_holes: false,
            is_over: false,
            rest: Vec::new(),
            long: None,
            seen: 0,
            printed_to: None,
            is_used: false,
            pending: 0,
            before: VecDeque::new(),
            before_bytes: 0,
        }
    }

    /// The last line as well, if nothing ends it.
    pub(super) fn finished(mut self) -> Self {
        if !self.is_over && (!self.rest.is_empty() || self.long.is_some()) {
            let rest = std::mem::take(&mut self.rest);
            self.whole_lines(&rest);
        }
        self
    }

    fn block(&mut self, block: &[u8]) {
        if !self.is_binary && (self.has_holes || memchr::memchr(0, block).is_some()) {
            self.is_binary = true;
        }
        let zapped: Vec<u8>;
        let block = match self.is_binary {
            // In what is no text a line ends at a NUL as well.
            true => {
                let ended = |byte: &u8| if *byte == 0 { b'\n' } else { *byte };
                zapped = block.iter().map(ended).collect();
                &zapped
            }
            false => block,
        };
        match memchr::memrchr(b'\n', block) {
            Some(end) => {
                let (ended, rest) = block.split_at(end);
                let mut lines = std::mem::take(&mut self.rest);
                lines.extend_from_slice(ended);
                self.whole_lines(&lines);
                lines.clear();
                lines.extend_from_slice(rest.get(1..).unwrap_or_default());
                self.rest = lines;
            }
            None => self.rest.extend_from_slice(block),
        }
        if self.rest.len() > LINE_BYTES_MAX {
            self.put_by();
        }
        self.is_over = match self.wanted.mode {
            Mode::Counts => false,
            Mode::Files => self.count > 0,
            Mode::Content => self.is_full() || (self.is_binary && self.pending == 0),
        };
    }

    /// Looks at what there is of a line that has grown too long, and keeps its end.
    fn put_by(&mut self) {
        let part = std::mem::take(&mut self.rest);
        let (long, kept) = LongLine::goes_on(self.long.take(), part, self.wanted.regex);
        self.long = Some(long);
        self.rest = kept;
    }

    /// Looks at lines, of which nothing ends the last one.
    fn whole_lines(&mut self, lines: &[u8]) {
        let Some(long) = self.long.take() else {
            return self.lines(lines);
        };
        let end = lines.iter().position(|byte| *byte == b'\n');
        let (tail, others) = match end {
            Some(end) => (lines.get(..end), lines.get(end + 1..)),
            None => (Some(lines), None),
        };
        let tail = tail.unwrap_or_default();
        let (head, is_hit) = long.ended(tail, self.wanted.regex);
        self.look(&[&head], if is_hit { &[0] } else { &[] });
        if let Some(others) = others {
            self.lines(others);
        }
    }

    fn lines(&mut self, lines: &[u8]) {
        let hits = lines::hits(lines, self.wanted.regex);
        let prints = self.prints();
        if hits.is_empty() && (!prints || (self.pending == 0 && self.wanted.context == 0)) {
            let ends = memchr::memchr_iter(b'\n', lines).count();
            self.seen += ends as u64 + 1;
            return;
        }
        let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
        self.look(&lines, &hits);
    }

    fn is_full(&self) -> bool {
        self.rows >= self.wanted.rows || self.text.len() > ROWS_BYTES_MAX
    }

    /// Whether rows are printed of what comes.
    fn prints(&self) -> bool {
        self.wanted.mode == Mode::Content && (!self.is_binary || self.pending > 0)
    }

    /// Counts lines, some of which match, and prints what there is to print of them.
    fn look(&mut self, lines: &[&[u8]], hits: &[usize]) {
        let from = self.seen;
        self.seen += lines.len() as u64;
        self.count += hits.len() as u64;
        if !self.prints() {
            return;
        }
        let context = self.wanted.context;
        for hit in hits {
            if self.is_binary || self.is_full() {
                break;
            }
            let number = from + *hit as u64;
            self.print_pending(from, lines, number);
            let first = number
                .saturating_sub(context)
                .max(self.printed_to.unwrap_or(0));
            if context > 0 && self.is_used && self.printed_to.is_none_or(|to| first > to) {
                self.push_row("--");
            }
            self.print_before(from, first);
            for at in first.max(from)..number {
                self.print(from, lines, at, '-');
            }
            // What is not printed has nothing after it.
            self.pending = match self.print(from, lines, number, ':') {
                true => context,
                false => 0,
            };
            self.is_used = true;
        }
        self.print_pending(from, lines, self.seen);
        self.keep_last(from, lines);
    }

    /// Prints lines after the last match, before the line `until`.
    fn print_pending(&mut self, from: u64, lines: &[&[u8]], until: u64) {
        while self.pending > 0 {
            let next = self.printed_to.unwrap_or(until);
            if next >= until {
                return;
            }
            self.pending = match self.print(from, lines, next, '-') {
                true => self.pending - 1,
                false => 0,
            };
        }
    }

    /// Prints lines before the first of those that are looked at.
    fn print_before(&mut self, from: u64, first: u64) {
        let before = std::mem::take(&mut self.before);
        self.before_bytes = 0;
        let start = from.saturating_sub(before.len() as u64);
        for (number, line) in (start..).zip(before) {
            if let Some(line) = line.filter(|_| number >= first) {
                self.print_line(number, '-', &line);
            }
        }
    }

    fn print(&mut self, from: u64, lines: &[&[u8]], number: u64, mark: char) -> bool {
        let at = usize::try_from(number.saturating_sub(from)).unwrap_or(usize::MAX);
        match lines.get(at).and_then(|line| printable(line)) {
            Some(line) => {
                self.print_line(number, mark, &line);
                true
            }
            None => false,
        }
    }

    fn print_line(&mut self, number: u64, mark: char, line: &str) {
        let row = format!("{}{mark}{}{mark}{line}", self.wanted.path, number + 1);
        self.push_row(&row);
        self.printed_to = Some(number + 1);
    }

    fn push_row(&mut self, row: &str) {
        self.text.push_str(row);
        self.text.push('\n');
        self.rows += 1;
    }

    /// Keeps the last lines that were not printed, for a match that may follow.
    fn keep_last(&mut self, from: u64, lines: &[&[u8]]) {
        let context = usize::try_from(self.wanted.context).unwrap_or(usize::MAX);
        let printed = self.printed_to.unwrap_or(0).saturating_sub(from);
        let printed = usize::try_from(printed).unwrap_or(usize::MAX);
        if printed > 0 {
            self.before.clear();
            self.before_bytes = 0;
        }
        let first = lines.len().saturating_sub(context).max(printed);
        for line in lines.get(first..).unwrap_or_default() {
            let line = printable(line);
            self.before_bytes += line.as_ref().map_or(0, String::len);
            self.before.push_back(line);
        }
        while self.before.len() > context || self.before_bytes > BEFORE_BYTES_MAX {
            let Some(first) = self.before.pop_front() else {
                return;
            };
            self.before_bytes -= first.map_or(0, |line| line.len());
        }
    }
}

impl Taker for Scan<'_> {
    fn begins(&mut self, has_holes: bool) {
        self.has_holes = has_holes;
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        for block in piece.chunks(BLOCK_BYTES) {
            if self.is_over {
                break;
            }
            self.block(block);
        }
        match self.is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// As much of a line as is printed; `None` if it is no text.
fn printable(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    if text.len() <= PRINTED_BYTES_MAX {
        return Some(text.to_owned());
    }
    let end = text.floor_char_boundary(PRINTED_BYTES_MAX);
    // Blanks at the end of what is cut off are none at the end of the line.
    Some(format!("{}\u{2026}", text.get(..end).unwrap_or_default()))
}

/// What is printed of a file that is in memory, and how many of its lines match.
pub(super) fn printed(wanted: Wanted<'_>, bytes: &[u8]) -> (String, u64) {
    let mut scan = Scan::new(wanted);
    if memchr::memchr(0, bytes).is_some() {
        let _is_over = scan.take(bytes);
        scan = scan.finished();
    } else if !bytes.is_empty() {
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        // Most files hold no match, and nobody has to know where their lines end.
        let hits = lines::hits(body, wanted.regex);
        if !hits.is_empty() {
            let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
            scan.look(&lines, &hits);
        }
    }
    (scan.text, scan.count)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use super::{BLOCK_BYTES, Mode, Scan, Wanted, printed};
    use crate::{runtime::Taker as _, tools::search_files::basic_regex::compile};

    fn print(text: &[u8], pattern: &str, context: u64) -> (String, u64) {
        let regex = &compile(pattern).expect("pattern");
        let wanted = Wanted {
            path: "f",
            regex,
            mode: Mode::Content,
            context,
            rows: usize::MAX,
        };
        printed(wanted, text)
    }

    fn check(text: &[u8], context: u64, rows: &[&str]) {
        let (printed, _) = print(text, "two", context);
        assert_eq!(
            printed.lines().collect::<Vec<_>>(),
            rows,
            "{text:?} {context}"
        );
    }

    #[test]
    fn matching_lines_print_with_path_and_number() {
        let print = |text: &str, pattern| print(text.as_bytes(), pattern, 0);
        assert_eq!(
            print("one\ntwo\none", "one"),
            ("f:1:one\nf:3:one\n".into(), 2)
        );
        for (text, pattern, count) in [
            ("one\n", "x", 0),
            ("one\0\n", "one", 1),
            ("x\0one\n\0one\0", "^one", 2),
            ("one\0", "^", 1),
            ("one\0\n", "^", 2),
            ("", "^", 0),
        ] {
            assert_eq!(print(text, pattern), (String::new(), count), "{text:?}");
        }
    }

    #[test]
    fn context_is_shared_and_gaps_are_marked() {
        let print = |text: &str, pattern, context| print(text.as_bytes(), pattern, context).0;
        assert_eq!(
            print("a\nb\nc\nd\ne\nf\ng\n", "[ag]", 1),
            "f:1:a\nf-2-b\n--\nf-6-f\nf:7:g\n"
        );
        assert_eq!(print("a\nb\na\n", "a", 1), "f:1:a\nf-2-b\nf:3:a\n");
        assert_eq!(print("a\na\nb\n", "a", 2), "f:1:a\nf:2:a\nf-3-b\n");
    }

    /// As GNU grep 3.8 prints them.
    #[test]
    fn a_line_that_is_no_text_is_left_out_and_the_others_are_printed() {
        assert_eq!(
            print(b"two ok\n\xfftwo\nx\ntwo after\n", "two", 0),
            ("f:1:two ok\nf:4:two after\n".into(), 3)
        );
        check(b"one\n\xff\ntwo\n", 0, &["f:3:two"]);
        check(b"x\n\xff\ntwo\nx\n", 1, &["f:3:two", "f-4-x"]);
        check(b"two\n\xff\nx\nx\n", 3, &["f:1:two"]);
        check(b"two\n\xfftwo\nx\nx\n", 2, &["f:1:two"]);
        check(
            b"a\nb\n\xfftwo\nx\ntwo\n",
            2,
            &["f-1-a", "f-2-b", "f-4-x", "f:5:two"],
        );
        check(
            b"a\nb\nc\n\xfftwo\nd\ne\nf\ng\ntwo\n",
            1,
            &["f-3-c", "--", "f-8-g", "f:9:two"],
        );
        check(
            b"two\na\n\xff\nb\ntwo\n",
            2,
            &["f:1:two", "f-2-a", "f-4-b", "f:5:two"],
        );
        check(b"a\n\xff\nb\ntwo\n", 3, &["f-1-a", "f-3-b", "f:4:two"]);
    }

    #[test]
    fn a_file_is_text_until_the_block_with_the_first_nul() {
        let mut text = b"two first\n".to_vec();
        text.extend(b"y\n".repeat(BLOCK_BYTES / 2));
        text.extend(b"two later\n\0two late\ntwo last\n");
        assert_eq!(print(&text, "two", 0), ("f:1:two first\n".into(), 4));
        let regex = &compile("two").unwrap();
        let all = Wanted {
            path: "f",
            regex,
            mode: Mode::Counts,
            context: 0,
            rows: usize::MAX,
        };
        assert_eq!(printed(all, &text), (String::new(), 4));
    }

    fn taken(text: &[u8], piece: usize, wanted: Wanted<'_>) -> (String, u64) {
        let mut scan = Scan::new(wanted);
        for piece in text.chunks(piece) {
            if scan.take(piece) == ControlFlow::Break(()) {
                break;
            }
        }
        let scan = scan.finished();
        (scan.text, scan.count)
    }

    const PARTS: &[&[u8]] = &[
        b"two",
        b"x",
        b"\n",
        b"\n",
        b"\xff",
        b"\xc3\xa9",
        b"t",
        b"wo\r\n",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn a_text_taken_in_pieces_is_printed_as_the_whole(
            text in prop::collection::vec(
                prop::sample::select(PARTS),
                0..60,
            ),
            piece in 1_usize..12,
            context in 0_u64..4,
            pattern in prop::sample::select(&["two", "^", "x$", "\\bwo", "t.*o"][..]),
            mode in prop::sample::select(&[Mode::Content, Mode::Counts][..]),
        ) {
            let (text, regex) = (text.concat(), &compile(pattern).unwrap());
            let wanted = Wanted { path: "f", regex, mode, context, rows: usize::MAX };
            prop_assert_eq!(taken(&text, piece, wanted), printed(wanted, &text));
        }
    }

    #[test]
    fn nothing_is_looked_at_behind_the_rows_that_are_wanted() {
        let regex = &compile("two").unwrap();
        let text = b"two\n".repeat(BLOCK_BYTES);
        for (mode, rows, text_rows) in [(Mode::Content, 3, 3), (Mode::Files, 9, 0)] {
            let wanted = Wanted {
                path: "f",
                regex,
                mode,
                context: 0,
                rows,
            };
            let mut scan = Scan::new(wanted);
            assert_eq!(scan.take(&text), ControlFlow::Break(()));
            assert_eq!(scan.text.lines().count(), text_rows);
            assert!(scan.seen <= BLOCK_BYTES as u64 / 4 + 1, "{}", scan.seen);
        }
    }
}
