//! What a command prints, on the screen while it runs.

use std::{cell::RefCell, io::Write as _, rc::Rc};

use hermitcrab_core::grant::AgentId;

use crate::{
    model::Cancel,
    ports::ProgressPort,
    screen::{Screen, Sign, visible},
    tools::ansi,
};

/// A line that does not end is shown in parts of about this many bytes.
const LINE_MOST: usize = 4096;
/// As much of what was shown is remembered: more than any result holds.
const KEPT_MOST: usize = 256 * 1024;

/// What the last command has shown already.
#[derive(Clone, Debug, Default)]
pub struct Shown(Rc<RefCell<String>>);

impl Shown {
    /// What of a result is not on the screen yet, and forgets what is. A text
    /// that is not what was shown (secrets are gone from it, or its middle) is
    /// no more than that, unless nothing was shown.
    pub fn rest<'t>(&self, result: &'t str) -> &'t str {
        let shown = self.0.take();
        let shown = shown.trim_end_matches('\n');
        if shown.is_empty() {
            return result;
        }
        result
            .strip_prefix(shown)
            .map_or("", |rest| rest.trim_start_matches('\n'))
    }

    fn add(&self, text: &str) {
        let mut shown = self.0.borrow_mut();
        if shown.len() < KEPT_MOST {
            shown.push_str(text);
        }
    }

    fn forget(&self) {
        self.0.take();
    }
}

/// Shows a command's lines as they come, and until the first a sign that it
/// runs; says when it is no longer wanted.
pub struct Live {
    cancel: Cancel,
    screen: Screen,
    /// Whether somebody watches. Into a file or a program the result goes whole, at its end.
    is_watched: bool,
    shown: Shown,
    sign: Option<Sign>,
    /// A line whose end has not come.
    line: String,
}

impl Live {
    pub fn new(cancel: Cancel, screen: Screen, is_watched: bool, shown: Shown) -> Self {
        Self {
            cancel,
            screen,
            is_watched,
            shown,
            sign: None,
            line: String::new(),
        }
    }

    fn show(&mut self, text: &str) {
        self.sign = None;
        let plain = ansi::strip(text);
        self.shown.add(&plain);
        let mut out = std::io::stdout().lock();
        // A reader that went away is no failure of the command.
        let _ = write!(out, "{}", visible(&plain));
        let _ = out.flush();
    }
}

impl ProgressPort for Live {
    fn began(&mut self, _agent: AgentId) {
        self.shown.forget();
        self.line.clear();
        self.sign = self.is_watched.then(|| self.screen.sign("running"));
    }

    fn output(&mut self, _agent: AgentId, piece: &str) {
        if !self.is_watched {
            return;
        }
        self.line.push_str(piece);
        let whole = match self.line.rfind('\n') {
            Some(end) => end + 1,
            None if self.line.len() >= LINE_MOST => self.line.len(),
            None => return,
        };
        let rest = self.line.split_off(whole);
        let text = std::mem::replace(&mut self.line, rest);
        self.show(&text);
    }

    fn ended(&mut self, _agent: AgentId) {
        self.sign = None;
        if !self.line.is_empty() {
            let text = std::mem::take(&mut self.line);
            self.show(&text);
            // What is said next begins a line of its own.
            println!();
        }
    }

    fn is_wanted(&mut self) -> bool {
        !self.cancel.is_thrown()
    }
}

#[cfg(test)]
mod tests {
    use super::Shown;

    #[test]
    fn a_result_is_shown_but_for_what_is_on_the_screen() {
        let shown = Shown::default();
        assert_eq!(shown.rest("a\nb"), "a\nb");
        shown.add("a\n");
        assert_eq!(shown.rest("a\n\n[stopped after 2s]"), "[stopped after 2s]");
        // Once told, it is forgotten.
        assert_eq!(shown.rest("a"), "a");
        shown.add("key sk-123456\n");
        assert_eq!(shown.rest("key ***"), "");
    }
}
