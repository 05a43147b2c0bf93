//! What a program draws on its terminal, drawn again on the person's.
//!
//! Nothing of it goes through. The program's terminal is kept here, letters, colours, cursor and
//! all, and so is the person's, as everything that was sent there left it; what is sent makes
//! the one like the other. So only letters and sequences of this program's own reach the
//! person's terminal: nothing that asks it something, sets its title, its clipboard or its keys,
//! or has it show letters where they are not (xterm, "Control Sequences").
//!
//! Rows that leave the upper edge of the usual screen leave it there, too, so that they can
//! be scrolled back to; a program that takes the other screen gives it back.

use std::num::NonZeroU16;

use vt100::{Callbacks, Parser, Screen, capture::RowContents};

use super::strings::Strings;
use crate::{screen::is_hidden, text::letters::Letters};

/// What is sent in one go is shown in one go, where a terminal knows how.
const TOGETHER: [&str; 2] = ["\u{1b}[?2026h", "\u{1b}[?2026l"];
/// Has a terminal show the usual screen, the cursor where it was there; and the other, empty.
const USUAL_SCREEN: &str = "\u{1b}[?1049l";
const OTHER_SCREEN: &str = "\u{1b}[?1049h";
/// Rows and columns of a terminal that does not say how many it has.
const USUAL: (u16, u16) = (24, 80);
/// Rows and columns at most: each is kept.
const MOST: (u16, u16) = (500, 1000);

/// Stands, in what is kept of both terminals, where something of the person's stood before the
/// program began: what that is nobody knows here. No program can write it, and none is sent it.
const BEFORE: char = '\u{10fffd}';

/// A program's terminal and the person's.
pub(super) struct Drawn {
    theirs: Parser<Heard>,
    ours: Parser,
    letters: Letters,
    strings: Strings,
    /// The person's usual screen was given another size while the other was shown: nobody
    /// knows what it made of that.
    is_in_doubt: bool,
}

/// What a program's terminal was told that is not on its screen.
#[derive(Default)]
struct Heard {
    /// Rows that left the usual screen.
    gone: Vec<String>,
    /// What the terminal answers.
    answers: Vec<u8>,
    rings: bool,
}

impl Callbacks for Heard {
    fn audible_bell(&mut self, _screen: &mut Screen) {
        self.rings = true;
    }

    /// Questions about the cursor, the terminal's health and its kind (ECMA-48, DSR and DA). A
    /// program that asks for more waits in vain, as on other terminals.
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        letter: char,
    ) {
        let number = params.first().and_then(|param| param.first()).copied();
        let answer = match (first, second, number.unwrap_or(0), letter) {
            (None, None, 5, 'n') => "\u{1b}[0n".to_owned(),
            (None, None, 6, 'n') => {
                let (row, column) = screen.cursor_position();
                let (row, column) = (row.saturating_add(1), column.saturating_add(1));
                format!("\u{1b}[{row};{column}R")
            }
            (None, None, 0, 'c') => "\u{1b}[?1;2c".to_owned(),
            (Some(b'>'), None, 0, 'c') => "\u{1b}[>0;0;0c".to_owned(),
            _ => return,
        };
        self.answers.extend_from_slice(answer.as_bytes());
    }

    fn on_scroll(&mut self, row: RowContents<'_>, is_other: bool) {
        if !is_other {
            let mut text = String::new();
            // Writing to a String cannot fail.
            let _written = row.write_formatted_basic(&mut text, &mut Default::default());
            self.gone.push(text);
        }
    }
}

impl Drawn {
    /// On a terminal of so many rows and columns, whose cursor is here.
    pub(super) fn new(size: (u16, u16), (row, column): (u16, u16)) -> Self {
        let (rows, columns) = size_of(size);
        let mut drawn = Self {
            theirs: Parser::new_with_callbacks(rows, columns, 0, Heard::default()),
            ours: Parser::new(rows, columns, 0),
            letters: Letters::default(),
            strings: Strings::default(),
            is_in_doubt: false,
        };
        let above = BEFORE.to_string().repeat(usize::from(columns.get()));
        let mut found = String::new();
        for row in 1..=row {
            found += &format!("\u{1b}[{row};1H{above}");
        }
        let (row, column) = (row.saturating_add(1), column.saturating_add(1));
        found += &format!("\u{1b}[{row};{column}H");
        drawn.theirs.process(found.as_bytes());
        drawn.ours.process(found.as_bytes());
        drawn
    }

    /// The program wrote this: what is sent to the person's terminal, and what the program's
    /// own answers it.
    pub(super) fn take(&mut self, piece: &[u8]) -> (String, Vec<u8>) {
        let text = self.letters.take(piece);
        let letters = text.chars().filter_map(drawn_as);
        let text: String = letters
            .filter(|letter| self.strings.passes(*letter))
            .collect();
        self.theirs.process(text.as_bytes());
        let sent = self.brought_up();
        let answers = std::mem::take(&mut self.theirs.callbacks_mut().answers);
        (sent, answers)
    }

    /// The person's terminal has another size: all of it is drawn.
    pub(super) fn resize(&mut self, size: (u16, u16)) -> String {
        let (rows, columns) = size_of(size);
        self.theirs.set_size(rows, columns);
        self.ours.set_size(rows, columns);
        // The person's terminal has put its own rows away.
        self.theirs.callbacks_mut().gone.clear();
        self.is_in_doubt = true;
        self.redraw()
    }

    /// All of it is drawn, whatever stands there.
    pub(super) fn redraw(&mut self) -> String {
        let mut out = String::new();
        self.on_screen(self.theirs.screen().alternate_screen(), &mut out);
        self.cleared(&mut out);
        out + &self.brought_up()
    }

    /// The last of it, after which the person's terminal is as a program found it, the cursor
    /// in an empty row below what was drawn.
    pub(super) fn end(&mut self) -> String {
        let text = self.letters.rest();
        self.theirs.process(text.as_bytes());
        if self.theirs.screen().alternate_screen() {
            // What stands on the usual one may never have been drawn.
            self.theirs.process(USUAL_SCREEN.as_bytes());
        }
        let mut out = self.brought_up();
        let screen = self.ours.screen();
        let (rows, columns) = screen.size();
        let fresh = Parser::new(rows, columns, 0);
        let modes = fresh.screen().input_mode_diff(screen);
        let (row, column) = screen.cursor_position();
        let drawn = screen.rows(0, columns.get());
        let last = drawn
            .enumerate()
            .filter(|(_, text)| !text.trim_end().is_empty())
            .last()
            .map_or(0, |(row, _)| u16::try_from(row).unwrap_or(u16::MAX));
        out += &modes;
        out += "\u{1b}[m\u{1b}[?25h";
        if last > row {
            out += &format!("\u{1b}[{};1H\r\n", last.saturating_add(1));
        } else if column > 0 {
            out += "\r\n";
        }
        out
    }

    /// What makes the person's terminal like the program's.
    fn brought_up(&mut self) -> String {
        let mut out = String::new();
        let heard = self.theirs.callbacks_mut();
        let gone = std::mem::take(&mut heard.gone);
        let rings = std::mem::take(&mut heard.rings);
        if !gone.is_empty() {
            self.on_screen(false, &mut out);
            self.scrolled(&gone, &mut out);
        }
        self.on_screen(self.theirs.screen().alternate_screen(), &mut out);
        self.alike(&mut out);
        if !out.is_empty() {
            out = TOGETHER.join(&out);
        }
        if rings {
            out.push('\u{7}');
        }
        out
    }

    /// Makes the person's screen like the program's; where a difference does not tell all, as
    /// of rows that went on in the next, it is drawn anew.
    fn alike(&mut self, out: &mut String) {
        for is_anew in [false, true] {
            let difference = self.theirs.screen().state_diff(self.ours.screen());
            if difference.is_empty() {
                return;
            }
            if is_anew {
                self.cleared(out);
            }
            let difference = self.theirs.screen().state_diff(self.ours.screen());
            self.send(&difference, out);
        }
    }

    /// Each row stands at the upper edge once before it is gone: several of one piece were
    /// never drawn.
    fn scrolled(&mut self, gone: &[String], out: &mut String) {
        let (rows, _) = self.ours.screen().size();
        for row in gone {
            let row = row.trim_end_matches('\n');
            if !row.contains(BEFORE) {
                self.send(&format!("\u{1b}[m\u{1b}[H\u{1b}[2K{row}"), out);
            }
            self.send(&format!("\u{1b}[m\u{1b}[{rows};1H\n"), out);
        }
    }

    /// Shows the usual screen or the other.
    fn on_screen(&mut self, is_other: bool, out: &mut String) {
        if self.ours.screen().alternate_screen() == is_other {
            return;
        }
        let screen = if is_other { OTHER_SCREEN } else { USUAL_SCREEN };
        self.send(screen, out);
        if !is_other && std::mem::take(&mut self.is_in_doubt) {
            self.cleared(out);
        }
    }

    fn cleared(&mut self, out: &mut String) {
        if !self.ours.screen().alternate_screen() {
            self.is_in_doubt = false;
        }
        self.send("\u{1b}[m\u{1b}[H\u{1b}[2J", out);
    }

    /// Sends it, and knows what that makes of the person's terminal.
    fn send(&mut self, text: &str, out: &mut String) {
        self.ours.process(text.as_bytes());
        out.extend(text.chars().map(|letter| match letter {
            BEFORE => ' ',
            letter => letter,
        }));
    }
}

/// A letter as it is drawn: not at all what a terminal would take for a control, or would show
/// nowhere or elsewhere; and what is no text by a mark that has a place of its own.
fn drawn_as(letter: char) -> Option<char> {
    match letter {
        '\u{80}'..='\u{9f}' | BEFORE => None,
        char::REPLACEMENT_CHARACTER => Some('?'),
        letter => (!is_hidden(letter)).then_some(letter),
    }
}

fn size_of((rows, columns): (u16, u16)) -> (NonZeroU16, NonZeroU16) {
    let some = |number: u16, usual: u16, most: u16| {
        NonZeroU16::new(number.min(most))
            .or(NonZeroU16::new(usual))
            .unwrap_or(NonZeroU16::MIN)
    };
    (some(rows, USUAL.0, MOST.0), some(columns, USUAL.1, MOST.1))
}

#[cfg(test)]
mod tests;
