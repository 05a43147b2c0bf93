//! Words a model wants to hear of while a command runs.
//!
//! A command that prints such a word all the time must not fill a
//! conversation: one notice in fifteen seconds, and after three spells in a
//! row with more than that, none until its end. This never judges a command.

use std::time::Duration;

/// The least time between two notices of one command.
const SPACING: Duration = Duration::from_secs(15);
/// Spells with dropped notices, in a row, after which nothing is watched.
const STRIKES_MAX: u32 = 3;
/// Lines of one notice.
const LINES_MAX: usize = 20;
/// Letters of one notice.
const LETTERS_MAX: usize = 2000;

/// Something a model is told of a command that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Lines with a word came.
    Seen {
        /// The first word that matched.
        word: String,
        /// The lines.
        lines: String,
        /// Lines of earlier notices that were dropped.
        dropped: usize,
    },
    /// They come too often; the end is told instead.
    GivenUp,
}

/// What is watched for in one command's output.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    words: Vec<String>,
    quiet_until: Option<Duration>,
    dropped: usize,
    struck: bool,
    strikes: u32,
    seen: bool,
    given_up: bool,
}

impl Watch {
    pub(super) fn new(words: Vec<String>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// The words, unless they are watched for no more; and whether one came.
    pub(super) fn shown(&self) -> (Vec<String>, bool) {
        if self.given_up {
            (Vec::new(), self.seen)
        } else {
            (self.words.clone(), self.seen)
        }
    }

    /// Whether the end is told because too much came.
    pub(super) fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// A piece of output came, so long after the command began.
    pub(super) fn look(&mut self, text: &str, now: Duration) -> Option<Notice> {
        if self.words.is_empty() || self.given_up {
            return None;
        }
        let mut word = None;
        let mut lines = Vec::new();
        for line in crate::text::pytext::lines(text) {
            if let Some(found) = self.words.iter().find(|word| line.contains(word.as_str())) {
                word.get_or_insert_with(|| found.clone());
                lines.push(line.trim_end());
            }
        }
        let word = word?;
        if self.quiet_until.is_some_and(|until| now < until) {
            self.dropped += lines.len();
            if self.struck {
                return None;
            }
            self.struck = true;
            self.strikes += 1;
            if self.strikes < STRIKES_MAX {
                return None;
            }
            self.given_up = true;
            return Some(Notice::GivenUp);
        }
        if self.quiet_until.is_some() && !self.struck {
            self.strikes = 0;
        }
        self.struck = false;
        self.quiet_until = Some(now + SPACING);
        self.seen = true;
        lines.truncate(LINES_MAX);
        let mut lines = lines.join("\n");
        let head = crate::text::pytext::head(&lines, LETTERS_MAX).len();
        if head < lines.len() {
            lines.truncate(head);
            lines.push_str("\n...(truncated)");
        }
        Some(Notice::Seen {
            word,
            lines,
            dropped: std::mem::take(&mut self.dropped),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Notice, Watch};
    use std::time::Duration;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn watch() -> Watch {
        Watch::new(vec!["ready".to_owned(), "err".to_owned()])
    }

    #[test]
    fn a_word_is_told_with_its_lines_and_then_not_for_a_while() {
        let mut watch = watch();
        assert_eq!(watch.look("starting\n", at(0)), None);
        assert!(!watch.shown().1);
        assert_eq!(
            watch.look("x\nall ready  \nerr 1\n", at(1)),
            Some(Notice::Seen {
                word: "ready".into(),
                lines: "all ready\nerr 1".into(),
                dropped: 0
            })
        );
        assert_eq!(watch.look("ready\nready\n", at(2)), None);
        assert_eq!(
            watch.look("ready\n", at(17)),
            Some(Notice::Seen {
                word: "ready".into(),
                lines: "ready".into(),
                dropped: 2
            })
        );
        assert_eq!(watch.shown(), (vec!["ready".into(), "err".into()], true));
    }

    #[test]
    fn a_flood_is_given_up_after_three_spells_in_a_row_and_a_calm_one_forgives() {
        let mut flood = watch();
        let mut told = Vec::new();
        for second in 0..80 {
            told.extend(flood.look("err\n", at(second)));
        }
        assert_eq!(told.len(), 4);
        assert_eq!(told.last(), Some(&Notice::GivenUp));
        assert_eq!(flood.shown().0, Vec::<String>::new());
        assert!(flood.has_given_up());

        let mut calm = watch();
        for spell in 0..9 {
            assert!(calm.look("err\n", at(spell * 20)).is_some());
            if spell % 2 == 0 {
                assert_eq!(calm.look("err\n", at(spell * 20 + 1)), None);
            }
        }
        assert!(!calm.has_given_up());
    }

    #[test]
    fn long_notices_are_cut() {
        let mut watch = watch();
        let text = format!("err {}\n", "x".repeat(5000));
        let Some(Notice::Seen { lines, .. }) = watch.look(&text, at(0)) else {
            panic!("nothing seen");
        };
        assert_eq!(lines.len(), 2000 + "\n...(truncated)".len());
    }
}
