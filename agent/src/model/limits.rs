//! How much of an answer is waited for, and how a backend is held to a form.

use std::time::Duration;

/// Bounds on one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// How long it may take, from the question to the last byte.
    pub time_max: Duration,
    /// How long the body of an answer may be, in bytes; of one that comes in events, what
    /// they say.
    pub bytes_max: u64,
    /// How many tokens the model may write; `None` leaves it to the backend.
    pub tokens_max: Option<u32>,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            time_max: Duration::from_secs(600),
            bytes_max: 16 << 20,
            tokens_max: None,
        }
    }
}

impl ReplyLimits {
    /// The narrower of both, bound by bound.
    #[must_use]
    pub fn narrowed(self, other: Self) -> Self {
        Self {
            time_max: self.time_max.min(other.time_max),
            bytes_max: self.bytes_max.min(other.bytes_max),
            tokens_max: match (self.tokens_max, other.tokens_max) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
        }
    }
}

/// How a backend is told the form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Structured {
    /// The schema itself (`response_format` of type `json_schema`).
    #[default]
    JsonSchema,
    /// Any JSON (`response_format` of type `json_object`).
    JsonObject,
    /// A grammar, in the field `grammar` that llama.cpp's server reads.
    Gbnf,
    /// Not at all; the words of the request have to do.
    None,
}

impl Structured {
    /// As written in a configuration.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "json_schema" => Some(Self::JsonSchema),
            "json_object" => Some(Self::JsonObject),
            "gbnf" => Some(Self::Gbnf),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}
