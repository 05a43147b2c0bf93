//! How things look on a terminal: colours, diffs, a sign that something goes on.
//!
//! Nothing here is needed to understand what is said: without colours, without
//! a terminal or with a screen reader the same words come line by line. Text
//! from a model, a command or a file passes [`visible`] before it is shown.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hermitcrab_core::letters::{is_like_a_space, is_unseen};

use crate::text::rows;

/// What the surroundings say about the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Colours are wanted and shown.
    pub has_colour: bool,
    /// Lines may be overwritten: a terminal, and nobody who has it read aloud.
    pub is_lively: bool,
    /// How wide the surroundings say a terminal is that does not say it itself.
    pub columns: Option<usize>,
}

/// A way to mark text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// New, done.
    Good,
    /// Gone, refused.
    Bad,
    /// Places, marks.
    Mark,
    /// To be looked at.
    Warn,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Mark => "36",
            Self::Warn => "33",
        }
    }
}

impl Screen {
    /// The text in a tone, where there are colours.
    #[must_use]
    pub fn tone(&self, tone: Tone, text: &str) -> String {
        if self.has_colour {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code())
        } else {
            text.to_owned()
        }
    }

    /// What is to be answered, in rows of a terminal so wide, diffs in colour. The text
    /// must hold no control letters but the ends of its lines and tabs.
    #[must_use]
    pub fn diff(&self, text: &str, columns: Option<usize>) -> String {
        let mut lines = Vec::new();
        let mut hunk = Hunk::default();
        for line in text.split('\n') {
            let tone = hunk.tone(line);
            let rows = match columns {
                Some(columns) => rows::broken(line, columns),
                None => line.to_owned(),
            };
            lines.push(match tone {
                Some(tone) => self.tone(tone, &rows),
                None => rows,
            });
        }
        lines.join("\n")
    }

    /// Shows that something goes on, until the sign is dropped.
    #[must_use]
    pub fn sign(&self, what: &str) -> Sign {
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = self.is_lively.then(|| {
            let (screen, is_over, what) = (*self, is_over.clone(), what.to_owned());
            std::thread::spawn(move || turn(&screen, &is_over, &what))
        });
        Sign { is_over, thread }
    }

    /// How wide a terminal is; nothing for what is none. One that does not say it, as on a
    /// serial line, is as wide as the surroundings say, or as usual: its rows are broken, too.
    #[must_use]
    pub fn columns_of(&self, output: &impl std::os::fd::AsFd) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(output).ok()?;
        Some(match usize::from(size.ws_col) {
            0 => self.columns.unwrap_or(rows::COLUMNS),
            columns => columns,
        })
    }
}

/// How many lines of a part of a difference are still to come, of what was and of what is
/// to be. What a file holds may look like the head of another file's difference.
#[derive(Default)]
struct Hunk {
    old: usize,
    new: usize,
}

impl Hunk {
    fn tone(&mut self, line: &str) -> Option<Tone> {
        let is_within = self.old > 0 || self.new > 0;
        match line.as_bytes().first() {
            Some(b'-') if is_within => {
                self.old = self.old.saturating_sub(1);
                Some(Tone::Bad)
            }
            Some(b'+') if is_within => {
                self.new = self.new.saturating_sub(1);
                Some(Tone::Good)
            }
            Some(b' ') if is_within => {
                self.old = self.old.saturating_sub(1);
                self.new = self.new.saturating_sub(1);
                None
            }
            _ if line.starts_with("+++ ") || line.starts_with("--- ") => Some(Tone::Bold),
            _ if line.starts_with("@@ ") => {
                *self = Self::of(line);
                Some(Tone::Mark)
            }
            _ if line.starts_with("deleted ") => Some(Tone::Warn),
            _ => None,
        }
    }

    /// As its first line says: `@@ -1,3 +1 @@`.
    fn of(head: &str) -> Self {
        let mut sides = head
            .split(' ')
            .skip(1)
            .map(|side| match side.split_once(',') {
                Some((_, lines)) => lines.parse().unwrap_or(0),
                None => 1,
            });
        Self {
            old: sides.next().unwrap_or(0),
            new: sides.next().unwrap_or(0),
        }
    }
}

/// A sign that something goes on.
#[derive(Debug)]
pub struct Sign {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sign {
    /// Takes the sign away; twice does no harm.
    pub fn end(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that only draws has nothing to say about its end.
            let _ = thread.join();
        }
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        self.end();
    }
}

fn turn(screen: &Screen, is_over: &AtomicBool, what: &str) {
    let began = Instant::now();
    let mut drawn = false;
    for place in (0..4_usize).cycle() {
        for _ in 0..4 {
            if is_over.load(Ordering::SeqCst) {
                if drawn {
                    eprint!("\r\u{1b}[K");
                    let _ = std::io::stderr().flush();
                }
                return;
            }
            std::thread::park_timeout(Duration::from_millis(40));
        }
        let seconds = began.elapsed().as_secs();
        let bar = ["|", "/", "-", "\\"].get(place).copied().unwrap_or("|");
        let line = format!("{bar} {what}, {seconds} s (^C calls it off)");
        let columns = screen.columns_of(&std::io::stderr());
        let columns = columns.unwrap_or(rows::COLUMNS);
        eprint!("\r\u{1b}[K{}", fitted(&line, columns));
        let _ = std::io::stderr().flush();
        drawn = true;
    }
}

/// As much of a line as stands on one of the terminal: what goes on in the next cannot
/// be drawn over. The last column stays free, for some terminals go on after it.
fn fitted(line: &str, columns: usize) -> String {
    line.chars().take(columns.saturating_sub(1)).collect()
}

/// Takes a terminal back from what a program drew on it: ends a sequence that is not
/// finished, and what shows letters somewhere else (older modes, a printer, a line of
/// status, a picture that is held back) or has them lead somewhere, goes back to the usual
/// screen, margins, letters, colours and to lines that scroll, and shows the cursor. Where the
/// cursor is, and what is on the screen, stays.
pub const TAKEN_BACK: &str = "\u{18}\u{1b}\\\u{1b}<\u{1b}\u{3}\u{1b}[4i\u{1b}[0$}\u{1b}[?2026l\
    \u{1b}[?47l\u{1b}7\u{1b}[?69l\u{1b}[r\u{1b}8\u{1b}[0m\u{1b}(B\u{f}\u{1b}[4l\
    \u{1b}[?7h\u{1b}[?25h\u{1b}[?5l\u{1b}]8;;\u{1b}\\\u{1b}]104\u{1b}\\\u{1b}]110\u{1b}\\\u{1b}]111\u{1b}\\";

/// Text of somebody else, unable to draw on the terminal.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            '\r' => {}
            letter if letter.is_control() || is_hidden(letter) => {
                out.extend(letter.escape_unicode());
            }
            letter => out.push(letter),
        }
    }
    out
}

/// Whether nobody sees a letter, or sees others elsewhere for it.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    is_unseen(letter) && !joins_pictures(letter)
}

/// The same for what has a line to itself, such as a name: it can neither look like two
/// lines nor like another name.
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_unseen(letter) || is_like_a_space(letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

/// Parts of one picture made of several: alone they neither hide nor turn anything.
const fn joins_pictures(letter: char) -> bool {
    matches!(letter, '\u{200d}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::{Hunk, Screen, Tone, fitted, on_one_line, visible};

    #[test]
    fn without_colours_nothing_is_added() {
        let plain = Screen::default();
        assert_eq!(plain.diff("+a\n-b\n", None), "+a\n-b\n");
        assert_eq!(plain.tone(Tone::Bad, "x"), "x");
        let coloured = Screen {
            has_colour: true,
            ..Screen::default()
        };
        let diff = coloured.diff("--- a\n@@ -0,0 +1 @@\n+b\nc", None);
        assert_eq!(
            diff,
            "\u{1b}[1m--- a\u{1b}[0m\n\u{1b}[36m@@ -0,0 +1 @@\u{1b}[0m\n\u{1b}[32m+b\u{1b}[0m\nc"
        );
    }

    #[test]
    fn what_a_file_holds_is_not_the_head_of_a_difference() {
        let tones = |text: &str| -> Vec<Option<Tone>> {
            let mut hunk = Hunk::default();
            text.lines().map(|line| hunk.tone(line)).collect()
        };
        let of_lines = tones(
            "changed file q\n--- q\n+++ q\n@@ -1,3 +1,2 @@\n--- comment\n-x\n+++ /w/other\n y\n@@ -9 +8,0 @@\n--- z\n\\ no\n--- f",
        );
        use Tone::{Bad, Bold, Good, Mark};
        let expected = [
            None,
            Some(Bold),
            Some(Bold),
            Some(Mark),
            Some(Bad),
            Some(Bad),
            Some(Good),
            None,
            Some(Mark),
            Some(Bad),
            None,
            Some(Bold),
        ];
        assert_eq!(of_lines, expected);
    }

    #[test]
    fn a_line_that_goes_on_is_marked_and_keeps_its_tone() {
        let coloured = Screen {
            has_colour: true,
            ..Screen::default()
        };
        let text = format!("@@ -0,0 +1 @@\n+{}deleted file /w/x", " ".repeat(18));
        let shown = coloured.diff(&text, Some(20));
        let row = "\n       | deleted \n       | file /w/x\u{1b}[0m";
        assert!(shown.ends_with(row), "{shown:?}");
    }

    #[test]
    fn a_sign_stays_on_its_line() {
        assert_eq!(fitted("| running, 3 s", 80), "| running, 3 s");
        assert_eq!(fitted("| running, 3 s", 10), "| running");
        assert_eq!(fitted("| running", 0), "");
    }

    #[test]
    fn what_has_a_line_to_itself_stays_on_it() {
        assert_eq!(
            on_one_line("a b\r\n\tc\u{a0}\u{200d}\u{1b}"),
            "a b\\u{d}\\u{a}\\u{9}c\\u{a0}\\u{200d}\\u{1b}"
        );
    }

    #[test]
    fn nobody_else_draws_on_the_terminal() {
        assert_eq!(
            visible("a\u{1b}[2Jb\r\n\tgr\u{fc}n \u{202e}x"),
            "a\\u{1b}[2Jb\n\tgr\u{fc}n \\u{202e}x"
        );
        assert_eq!(visible("a\u{200b}b\u{e0041}"), "a\\u{200b}b\\u{e0041}");
        assert_eq!(visible("\u{2764}\u{fe0f}"), "\u{2764}\u{fe0f}");
    }
}
