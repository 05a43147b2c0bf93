//! What is typed: the wish to hang up, and where a terminal says its cursor is.

use std::time::{Duration, Instant};

/// What hangs up, in words.
pub const HANG_UP: &str = "^] three times";
/// The letter of that, as for other programs that lend a terminal.
const LETTER: u8 = 0x1d;
/// So often, within this time.
const TIMES: usize = 3;
const WITHIN: Duration = Duration::from_secs(1);

/// Looks for the wish to hang up in what is typed.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// When the letter was typed, one time right after the other.
    typed: Vec<Instant>,
}

impl Keys {
    /// Whether it is typed with these bytes.
    pub(super) fn hang_up(&mut self, bytes: &[u8], now: Instant) -> bool {
        for byte in bytes {
            if *byte != LETTER {
                self.typed.clear();
                continue;
            }
            self.typed
                .retain(|then| now.saturating_duration_since(*then) < WITHIN);
            self.typed.push(now);
            if self.typed.len() >= TIMES {
                return true;
            }
        }
        false
    }
}

/// Takes a terminal's answer to where its cursor is out of what was typed: row and column,
/// from 0 (ECMA-48, CPR).
pub(super) fn cursor(typed: &mut Vec<u8>) -> Option<(u16, u16)> {
    let begins = typed.windows(2).position(|two| two == b"\x1b[")?;
    let rest = typed.get(begins + 2..)?;
    let length = rest
        .iter()
        .position(|byte| !(byte.is_ascii_digit() || *byte == b';'))?;
    if rest.get(length) != Some(&b'R') {
        return None;
    }
    let (row, column) = std::str::from_utf8(rest.get(..length)?)
        .ok()?
        .split_once(';')?;
    let place = (
        row.parse::<u16>().ok()?.checked_sub(1)?,
        column.parse::<u16>().ok()?.checked_sub(1)?,
    );
    typed.drain(begins..begins + 2 + length + 1);
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_within_a_second_hangs_up_and_nothing_else_does() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut keys = Keys::default();
        assert!(!keys.hang_up(b"a\x1d\x1d", at(0)));
        assert!(keys.hang_up(b"\x1d", at(900)));

        let mut late = Keys::default();
        assert!(!late.hang_up(b"\x1d\x1d", at(0)));
        assert!(!late.hang_up(b"\x1d", at(1000)), "the first are forgotten");
        assert!(!late.hang_up(b"\x1d", at(1100)));
        assert!(late.hang_up(b"\x1d", at(1200)));

        let mut between = Keys::default();
        assert!(!between.hang_up(b"\x1d\x1dx\x1d", at(0)));
    }

    #[test]
    fn an_answer_is_taken_out_of_what_was_typed_before_and_after_it() {
        let mut typed = b"ls\r\x1b[12;7Rq".to_vec();
        assert_eq!(cursor(&mut typed), Some((11, 6)));
        assert_eq!(typed, b"ls\rq");
        for none in [
            &b""[..],
            b"\x1b[",
            b"\x1b[12;7",
            b"\x1b[A",
            b"\x1b[0;1R",
            b"\x1b[70000;1R",
            b"\x1b[;R",
        ] {
            let mut typed = none.to_vec();
            assert_eq!(cursor(&mut typed), None, "{none:?}");
            assert_eq!(typed, none);
        }
    }
}
