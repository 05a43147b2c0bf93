//! What a command prints, on the screen while it runs.

use hermitcrab_core::grant::AgentId;

use crate::{
    cli::lines::Lines,
    model::Cancel,
    ports::ProgressPort,
    screen::{Screen, Sign},
};

/// Shows a command's lines as they come, and until the first a sign that it
/// runs; says when it is no longer wanted.
pub struct Live {
    cancel: Cancel,
    screen: Screen,
    /// Whether somebody watches. Into a file or a program the result goes whole, at its end.
    is_watched: bool,
    sign: Option<Sign>,
    lines: Lines,
}

impl Live {
    pub fn new(cancel: Cancel, screen: Screen, is_watched: bool) -> Self {
        Self {
            cancel,
            screen,
            is_watched,
            sign: None,
            lines: Lines::default(),
        }
    }
}

impl ProgressPort for Live {
    fn began(&mut self, _agent: AgentId) {
        self.lines.forget();
        self.sign = self.is_watched.then(|| self.screen.sign("running"));
    }

    fn output(&mut self, _agent: AgentId, piece: &str) {
        if self.is_watched {
            self.sign = None;
            // A reader that went away is no failure of the command.
            let _shown = self.lines.add(piece, &mut std::io::stdout().lock());
        }
    }

    fn ended(&mut self, _agent: AgentId) {
        self.sign = None;
        let _shown = self.lines.end(&mut std::io::stdout().lock());
    }

    fn is_wanted(&mut self) -> bool {
        !self.cancel.is_thrown()
    }
}
