//! How many values a JSON text holds, told before it is taken apart.
//!
//! What for: a value takes a hundred times the memory it is written in where it is as short as
//! `[0]`, so a bound on bytes is none on memory: sixteen megabytes of such are 1.4 GB. Whatever
//! somebody else wrote, be it a model, a server or a script, is counted first.
//!
//! It says nothing of whether the text is JSON at all; who takes it apart does.

/// Values one text may hold; an answer with a table of a hundred thousand cells is within it.
pub const VALUES_MAX: usize = 1 << 19;

/// What one text is where several come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// A line.
    Line,
    /// Lines up to a blank one, as events are sent.
    BlankLine,
}

/// Counts while a text comes.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    ends: Option<Ends>,
    values: usize,
    is_in_string: bool,
    is_escaped: bool,
    is_blank: bool,
}

impl Count {
    /// Of one text after the other.
    #[must_use]
    pub const fn each(ends: Ends) -> Self {
        Self::new(Some(ends))
    }

    const fn new(ends: Option<Ends>) -> Self {
        Self {
            ends,
            values: 0,
            is_in_string: false,
            is_escaped: false,
            is_blank: true,
        }
    }

    /// Takes more bytes in; whether each text in them holds no more than it may.
    pub fn is_within(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.byte(*byte);
            if self.values > VALUES_MAX {
                return false;
            }
        }
        true
    }

    fn byte(&mut self, byte: u8) {
        if byte == b'\n' && self.ends.is_some() {
            // None is in a string, where it would be written in two letters.
            (self.is_in_string, self.is_escaped) = (false, false);
            if self.ends == Some(Ends::Line) || self.is_blank {
                self.values = 0;
            }
            self.is_blank = true;
            return;
        }
        if byte == b'\r' && self.ends.is_some() {
            // Some take it for the end of a line by itself. Nor is it in a string.
            (self.is_in_string, self.is_escaped) = (false, false);
            return;
        }
        self.is_blank = false;
        match (self.is_in_string, byte) {
            (true, _) if self.is_escaped => self.is_escaped = false,
            (true, b'\\') => self.is_escaped = true,
            (_, b'"') => self.is_in_string = !self.is_in_string,
            (false, b'[' | b'{' | b',' | b':') => self.values = self.values.saturating_add(1),
            (true | false, _) => {}
        }
    }
}

/// Whether a text holds more values than one may.
#[must_use]
pub fn is_too_much(text: &[u8]) -> bool {
    !Count::new(None).is_within(text)
}

#[cfg(test)]
mod tests {
    use super::{Count, Ends, VALUES_MAX, is_too_much};

    #[test]
    fn values_count_and_letters_of_a_string_do_not() {
        let many = |piece: &str, count: usize| piece.repeat(count);
        for (text, expected) in [
            (many(",", VALUES_MAX), false),
            (many(",", VALUES_MAX + 1), true),
            (many("[0],", VALUES_MAX / 2 + 1), true),
            (many("{\"a\":\n", VALUES_MAX / 2 + 1), true),
            (format!("\"{}\"", many("[{,:", VALUES_MAX)), false),
            (format!("\"\\\"{}\"", many(",", VALUES_MAX + 1)), false),
            (format!("\"\\\\\"{}", many(",", VALUES_MAX + 1)), true),
        ] {
            assert_eq!(is_too_much(text.as_bytes()), expected);
        }
    }

    #[test]
    fn each_text_counts_by_itself_however_it_is_cut() {
        let half = ",".repeat(VALUES_MAX / 2 + 1);
        let is_within = |ends: Ends, text: &str, chunk: usize| {
            let mut count = Count::each(ends);
            text.as_bytes()
                .chunks(chunk)
                .all(|bytes| count.is_within(bytes))
        };
        for chunk in [7, 4096, usize::MAX] {
            let lines = format!("{half}\n\"{half}\n{half}\n");
            assert!(is_within(Ends::Line, &lines, chunk));
            // The lines of one event are one text.
            let event = format!("data: {half}\ndata: {half}\n");
            assert!(!is_within(Ends::BlankLine, &event, chunk));
            // For some a line ends with this, too, and a string with its line.
            let hidden = format!("data: \"\r\rdata: {half}{half}");
            assert!(!is_within(Ends::BlankLine, &hidden, chunk));
            for blank in ["\n", "\r\n"] {
                let events = format!("data: {half}\n{blank}data: {half}\n");
                assert!(is_within(Ends::BlankLine, &events, chunk));
            }
        }
    }
}
