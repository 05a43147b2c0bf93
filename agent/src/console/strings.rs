//! Sequences that carry a string, cut where they are too long.
//!
//! What for: a terminal keeps such a string until its end comes (ECMA-48, OSC), and a program
//! that never ends one would have it keep all it writes, in the memory of the agent, which
//! no limit of the program's covers.

/// Letters of a string that are kept. A title is shorter, and longer ones lead nowhere here.
const LETTERS_MAX: usize = 4096;

/// Follows what is written as far as it takes to know what is part of a string.
#[derive(Debug, Default)]
pub(super) struct Strings {
    /// An escape was the last that counts.
    is_escaped: bool,
    /// How long the string is by now, within one.
    length: Option<usize>,
}

impl Strings {
    /// Whether this letter is passed on.
    pub(super) fn passes(&mut self, letter: char) -> bool {
        match letter {
            '\u{1b}' => {
                self.is_escaped = true;
                self.length = None;
            }
            // These end whatever has begun.
            '\u{18}' | '\u{1a}' => *self = Self::default(),
            '\u{7}' if self.length.is_some() => self.length = None,
            _ => {
                if let Some(length) = &mut self.length {
                    *length = length.saturating_add(1);
                    return *length <= LETTERS_MAX;
                }
                // Controls are carried out within a sequence, which goes on.
                if self.is_escaped && !letter.is_control() {
                    self.is_escaped = false;
                    self.length = (letter == ']').then_some(0);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str) -> String {
        let mut strings = Strings::default();
        text.chars()
            .filter(|letter| strings.passes(*letter))
            .collect()
    }

    #[test]
    fn a_string_without_an_end_is_cut_and_all_else_is_passed_on() {
        let long = "x".repeat(3 * LETTERS_MAX);
        for end in ["\u{7}", "\u{1b}\\", "\u{18}", "\u{1a}"] {
            for begin in ["\u{1b}]", "\u{1b}\u{0}]", "\u{1b}[31\u{1b}]"] {
                let kept = "x".repeat(LETTERS_MAX);
                let (text, meant) = (
                    format!("a{begin}{long}{end}{long}"),
                    format!("a{begin}{kept}{end}{long}"),
                );
                assert_eq!(passed(&text), meant);
            }
        }
        for whole in [
            format!("]{long}"),
            format!("\u{1b}[31m]{long}"),
            format!("\u{1b}(]{long}"),
            "\u{1b}]0;title\u{7}\u{1b}[6n".to_owned(),
        ] {
            assert_eq!(passed(&whole), whole);
        }
    }
}
