//! What a command prints, on a terminal: line by line, and nothing in it draws.

use std::io::{self, Write};

use crate::{screen::visible, text::ansi};

/// A line that does not end is shown in parts of about this many bytes.
const LINE_MOST: usize = 4096;

/// Lines as they come, the last of which may not have ended.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: String,
}

impl Lines {
    /// Shows the lines that end with this piece.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn add(&mut self, piece: &str, to: &mut impl Write) -> io::Result<()> {
        self.begun.push_str(piece);
        let whole = match self.begun.rfind('\n') {
            Some(end) => end + 1,
            None if self.begun.len() >= LINE_MOST => self.begun.len(),
            None => return Ok(()),
        };
        let rest = self.begun.split_off(whole);
        let text = std::mem::replace(&mut self.begun, rest);
        show(&text, to)
    }

    /// Shows what is left, and ends it: what is said next begins a line of its own.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn end(&mut self, to: &mut impl Write) -> io::Result<()> {
        if self.begun.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.begun) + "\n";
        show(&text, to)
    }

    /// Forgets what was begun.
    pub(super) fn forget(&mut self) {
        self.begun.clear();
    }
}

fn show(text: &str, to: &mut impl Write) -> io::Result<()> {
    write!(to, "{}", visible(&ansi::strip(text)))?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn whole_lines_are_shown_and_what_would_draw_is_not() {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        lines.add("a\nb\u{1b}[3", &mut out).unwrap();
        assert_eq!(out, b"a\n");
        lines.add("1mc\u{7}", &mut out).unwrap();
        lines.end(&mut out).unwrap();
        lines.end(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\nbc\\u{7}\n");
    }

    #[test]
    fn a_line_that_does_not_end_is_shown_all_the_same() {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        lines.add(&"x".repeat(5000), &mut out).unwrap();
        assert_eq!(out.len(), 5000);
    }
}
