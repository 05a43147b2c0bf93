//! A model whose words are shown as they come.

use std::{cell::Cell, io::Write as _};

use crate::{
    cancel::Cancel,
    model::{ModelError, ModelPort, ModelReply, ModelRequest},
    screen::{Screen, visible},
};

/// The model behind it, and where its words go.
pub struct Spoken<'m> {
    pub model: &'m mut dyn ModelPort,
    pub screen: Screen,
    pub cancel: Cancel,
    /// Whether the last answer was shown.
    pub has_spoken: Cell<bool>,
}

impl ModelPort for Spoken<'_> {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        if self.cancel.is_thrown() {
            return Err(ModelError::Cancelled);
        }
        let mut sign = self.screen.sign("waiting for the model");
        let mut spoken = String::new();
        let done = self.model.stream(request, &mut |words| {
            sign.end();
            let mut out = std::io::stdout().lock();
            // A reader that went away is no failure of the answer.
            let _ = write!(out, "{}", visible(words));
            let _ = out.flush();
            spoken.push_str(words);
        });
        sign.end();
        if !spoken.is_empty() && !spoken.ends_with('\n') {
            println!();
        }
        self.has_spoken.set(!spoken.trim().is_empty());
        done
    }

    fn aside(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        if self.cancel.is_thrown() {
            return Err(ModelError::Cancelled);
        }
        let _sign = self.screen.sign("waiting for the model");
        self.model.aside(request)
    }

    fn holds(&self) -> Option<u64> {
        self.model.holds()
    }
}
