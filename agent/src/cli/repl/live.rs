//! What a command prints, on the screen while it runs.

use std::{
    cell::Cell,
    io::{self, Write},
    rc::Rc,
};

use hermitcrab_core::grant::AgentId;

use super::fold::Fold;
use crate::{
    cancel::Cancel,
    cli::lines::Lines,
    ports::ProgressPort,
    screen::{Screen, Sign, Tone, visible},
};

/// Shows a command's lines as they come, and until the first a sign that it
/// runs; says when it is no longer wanted. What a model's command prints is
/// folded where it is long.
pub struct Live {
    cancel: Cancel,
    screen: Screen,
    /// Whether somebody watches. Into a file or a program the result goes whole, at its end.
    is_watched: bool,
    /// Whether the command is a model's.
    is_models: Rc<Cell<bool>>,
    sign: Option<Sign>,
    lines: Lines,
    fold: Fold,
}

impl Live {
    pub fn new(
        cancel: Cancel,
        screen: Screen,
        is_watched: bool,
        is_models: Rc<Cell<bool>>,
    ) -> Self {
        Self {
            cancel,
            screen,
            is_watched,
            is_models,
            sign: None,
            lines: Lines::default(),
            fold: Fold::default(),
        }
    }
}

impl ProgressPort for Live {
    fn began(&mut self, _agent: AgentId) {
        self.lines.forget();
        self.fold = Fold::default();
        self.sign = self.is_watched.then(|| self.screen.sign("running"));
    }

    fn output(&mut self, _agent: AgentId, piece: &str) {
        if !self.is_watched {
            return;
        }
        if !self.is_models.get() {
            self.sign = None;
            // A reader that went away is no failure of the command.
            let _shown = self.lines.add(piece, &mut io::stdout().lock());
            return;
        }
        let mut text = Vec::new();
        let _read = self.lines.add(piece, &mut text);
        self.folded(&text);
    }

    fn notice(&mut self, _agent: AgentId, line: &str) {
        if !self.is_watched {
            return;
        }
        self.end_line();
        let is_silent = self.sign.take().is_some();
        let said = self.screen.tone(Tone::Warn, &visible(line));
        let mut out = io::stdout().lock();
        let _shown = writeln!(out, "{said}").and_then(|()| out.flush());
        drop(out);
        self.sign = is_silent.then(|| self.screen.sign(self.going_on()));
    }

    fn ended(&mut self, _agent: AgentId) {
        self.end_line();
        self.sign = None;
        let _shown = self.fold.end(&mut io::stdout().lock());
    }

    fn is_wanted(&mut self) -> bool {
        !self.cancel.is_thrown()
    }
}

impl Live {
    /// Shows what the command has printed of a line it has not ended.
    fn end_line(&mut self) {
        let mut text = Vec::new();
        let _read = self.lines.end(&mut text);
        if self.is_models.get() {
            self.folded(&text);
        } else if !text.is_empty() {
            self.sign = None;
            let _shown = io::stdout().lock().write_all(&text);
        }
    }

    fn going_on(&self) -> &'static str {
        if self.fold.is_folding() {
            "running, and printing more than is shown"
        } else {
            "running"
        }
    }

    fn folded(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let was_folding = self.fold.is_folding();
        if !was_folding {
            self.sign = None;
        }
        let text = String::from_utf8_lossy(text);
        let mut out = io::stdout().lock();
        let _shown = self.fold.take(&text, &mut out);
        let _shown = out.flush();
        drop(out);
        if self.fold.is_folding() && !was_folding {
            self.sign = Some(self.screen.sign(self.going_on()));
        }
    }
}
