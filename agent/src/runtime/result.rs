//! What comes of a call: the text for the model, what became of it, what was asked.

use std::time::Duration;

use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use crate::text::pyjson;

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ran and what it did stands.
    Ran,
    /// It ran on a copy, and what it did there was thrown away, or some of it.
    RanDiscarded(DenialCode),
    /// It was refused without asking anybody.
    Refused(DenialCode),
    /// The user was asked, and it was refused.
    AskedRefused(DenialCode),
    /// The tool ran and reports a failure of its own.
    ToolError,
    /// The machinery failed; the text is for a person.
    Failed(String),
}

impl Fate {
    /// Why it was refused or thrown away, if it was.
    #[must_use]
    pub const fn code(&self) -> Option<DenialCode> {
        match self {
            Self::RanDiscarded(code) | Self::Refused(code) | Self::AskedRefused(code) => {
                Some(*code)
            }
            Self::Ran | Self::ToolError | Self::Failed(_) => None,
        }
    }
}

/// One question that was put to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What was shown.
    pub shown: String,
    /// The word that came back.
    pub answer: String,
}

/// How much a command changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeSummary {
    /// New names.
    pub created: usize,
    /// Changed content or mode.
    pub modified: usize,
    /// Names gone.
    pub deleted: usize,
    /// What lay in caches and was left out, without a question.
    pub left_out: usize,
}

/// Everything about a finished call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// The exact text the model is given.
    pub text: String,
    /// What became of the call.
    pub fate: Fate,
    /// What the user was asked.
    pub questions: Vec<Asked>,
    /// What a command did to its copy, whether it stands or not.
    pub changes: ChangeSummary,
    /// How long it took.
    pub elapsed: Duration,
}

/// What a tool hands back: the text, and whether it reports a failure itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// For the model.
    pub text: String,
    /// What became of the call.
    pub fate: Fate,
}

impl ToolResult {
    /// The tool did its work.
    #[must_use]
    pub fn ran(value: &Value) -> Self {
        Self {
            text: pyjson::text(value),
            fate: Fate::Ran,
        }
    }

    /// The tool reports a failure of its own.
    #[must_use]
    pub fn failed(value: &Value) -> Self {
        Self {
            text: pyjson::text(value),
            fate: Fate::ToolError,
        }
    }

    /// A bare error message.
    #[must_use]
    pub fn error(message: &str) -> Self {
        Self::failed(&json!({ "error": message }))
    }
}
