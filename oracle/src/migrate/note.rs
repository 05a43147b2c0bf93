//! What a reader of the report must know about what was read.

use serde::{Deserialize, Serialize};

/// A remark about one thing that was read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Note {
    /// The file, or the part of it.
    pub about: String,
    /// What is the matter, what it means for the report, what can be done.
    pub text: String,
    /// Whether something is missing from the report because of it.
    pub partial: bool,
}

impl Note {
    /// Something is missing from the report.
    #[must_use]
    pub fn partial(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            text: text.into(),
            partial: true,
        }
    }

    /// Everything was read, and yet.
    #[must_use]
    pub fn remark(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            partial: false,
            ..Self::partial(about, text)
        }
    }
}
