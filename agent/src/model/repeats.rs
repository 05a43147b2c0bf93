//! Noticing an answer that goes round in a circle.

/// How much of the end is looked at.
const TAIL_BYTES: usize = 8 << 10;
/// The longest circle that is noticed.
const PERIOD_BYTES_MAX: usize = 128;
/// How many new bytes there must be between two looks.
const STEP_BYTES: usize = 1 << 10;

/// Looks at a growing text from time to time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeats {
    looked_at: usize,
}

impl Repeats {
    /// Whether the text ends in the same few bytes again and again. Blanks
    /// alone count, too: they are what a stuck grammar writes.
    pub fn notices(&mut self, text: &str) -> bool {
        let bytes = text.as_bytes();
        if bytes.len() < TAIL_BYTES || bytes.len() < self.looked_at.saturating_add(STEP_BYTES) {
            return false;
        }
        self.looked_at = bytes.len();
        let tail = bytes.split_at(bytes.len() - TAIL_BYTES).1;
        (1..=PERIOD_BYTES_MAX).any(|period| {
            tail.iter()
                .zip(tail.iter().skip(period))
                .all(|(one, later)| one == later)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Repeats;

    #[test]
    fn a_circle_is_noticed_and_prose_is_not() {
        let check = |text: &str, circle: bool| {
            assert_eq!(Repeats::default().notices(text), circle);
        };
        check(&" ".repeat(9000), true);
        check(&"and so on, ".repeat(1000), true);
        check(&"ab".repeat(100), false);
        let numbers: String = (0..3000).map(|n| format!("{n}, ")).collect();
        check(&numbers, false);
    }
}
