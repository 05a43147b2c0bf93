//! Long output of a model's command, folded: its first lines as they come, its last
//! ones at its end, and between them how many were left out. The model gets more
//! of it than the person wants to scroll through.

use std::{
    collections::VecDeque,
    io::{self, Write},
};

/// Lines that are shown as they come.
const FIRST: usize = 20;
/// Lines that are shown at the end.
const LAST: usize = 10;

/// What was shown of one command, and what is kept for its end.
#[derive(Debug, Default)]
pub struct Fold {
    shown: usize,
    /// Parts that were left out, and lines that ended in them.
    left_out: (usize, usize),
    last: VecDeque<String>,
    /// Whether what is shown as it came ends within a line.
    is_begun: bool,
}

impl Fold {
    /// Takes text in whole lines, but for its last, of which more may come. As many
    /// parts of one are shown as lines would be, for a line can be as long as a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take(&mut self, text: &str, to: &mut impl Write) -> io::Result<()> {
        for line in text.split_inclusive('\n') {
            if self.shown < FIRST {
                self.shown += 1;
                self.is_begun = !line.ends_with('\n');
                write!(to, "{line}")?;
                continue;
            }
            self.last.push_back(line.to_owned());
            if self.last.len() > LAST
                && let Some(gone) = self.last.pop_front()
            {
                self.left_out.0 += 1;
                self.left_out.1 += usize::from(gone.ends_with('\n'));
            }
        }
        to.flush()
    }

    /// Whether lines are held back, so that the screen stands still.
    pub fn is_folding(&self) -> bool {
        !self.last.is_empty()
    }

    /// Shows the end, and is ready for the next command.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self, to: &mut impl Write) -> io::Result<()> {
        let Self {
            left_out,
            last,
            is_begun,
            ..
        } = std::mem::take(self);
        if is_begun && left_out.0 > 0 {
            writeln!(to)?;
        }
        match left_out {
            (0, _) => {}
            (_, 0) => writeln!(to, "[more of this line]")?,
            (_, 1) => writeln!(to, "[one more line]")?,
            (_, lines) => writeln!(to, "[{lines} more lines]")?,
        }
        for line in last {
            write!(to, "{line}")?;
        }
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::Fold;

    fn folded(lines: usize) -> String {
        let (mut fold, mut out) = (Fold::default(), Vec::new());
        for line in 1..=lines {
            fold.take(&format!("{line}\n"), &mut out).unwrap();
        }
        fold.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_long_output_keeps_its_first_and_its_last_lines_and_counts_the_rest() {
        let all = |lines: usize| {
            (1..=lines)
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        for short in [0, 1, 20, 30] {
            assert_eq!(folded(short), all(short));
        }
        assert!(folded(31).contains("\n20\n[one more line]\n22\n"));
        assert!(folded(5000).contains("\n20\n[4970 more lines]\n4991\n"));
        assert!(folded(5000).ends_with("\n5000\n"));
    }

    #[test]
    fn what_is_said_of_the_rest_of_a_long_line_stands_on_one_of_its_own() {
        let folded = |parts: &[&str]| {
            let (mut fold, mut out) = (Fold::default(), Vec::new());
            for part in parts {
                fold.take(part, &mut out).unwrap();
            }
            fold.end(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        // One line without end, and one that ended where nothing is shown.
        let one = ["x"; 40];
        let expected = format!(
            "{}\n[more of this line]\n{}",
            "x".repeat(20),
            "x".repeat(10)
        );
        assert_eq!(folded(&one), expected);
        let mut ended = one;
        ended[24] = "x\n";
        let expected = expected.replace("more of this line", "one more line");
        assert_eq!(folded(&ended), expected);
        // Nothing is left out, and nothing is said.
        assert_eq!(folded(&one[..30]), "x".repeat(30));
    }
}
