//! The user of a case: what they say to each question, and what they do elsewhere while one
//! waits for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the user of a case answers every question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserModel {
    /// Says no to everything.
    DenyAll,
    /// Says yes, this once, to everything.
    GrantOnce,
    /// Says yes, for this session, to everything.
    GrantSession,
    /// Answers with this literal word (for answers a subject does not know).
    Literal(String),
    /// Answers with these words in turn; the last one goes on. The word
    /// [`SILENCE`] stands for no answer at all.
    Words(Vec<Word>),
}

/// The word for a user who never answers: the question waits until its
/// subject gives up. Hermes waits for `approvals.timeout` seconds.
pub const SILENCE: &str = "(silence)";

/// One answer of a user, as a case writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an answer is a word, or {\"answer\": word, \"first\": [what happens before it]}"
)]
pub enum Word {
    /// The word alone.
    Said(String),
    /// The word, and what happens while the question waits for it.
    After(Answer),
}

/// An answer, and what happens between the question and it. A question of a model's own
/// (`clarify`) takes the word, and nothing happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The word.
    pub answer: String,
    /// What the person does elsewhere before they say it, in order, once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Meanwhile>,
}

/// What can happen while a question waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Meanwhile {
    /// A grant is revoked by name, from elsewhere.
    Revoke {
        /// The [`super::Held::id`].
        grant: String,
    },
    /// The injected clock moves on.
    Advance {
        /// How far.
        seconds: u64,
    },
    /// The session is ended from elsewhere; another begins before the next step.
    EndSession {},
    /// The session's mode is set from elsewhere.
    Mode {
        /// To what.
        to: Mode,
    },
    /// Every answer that outlives a session is taken back, from elsewhere.
    Withdraw {},
    /// An agent is ended from elsewhere, with all it holds.
    EndAgent {
        /// The name it was started by.
        child: String,
    },
    /// The other calls of the same answer of a model, which begin to be decided when the question
    /// is open, come to their end.
    Others {},
}

/// What becomes, in a session of the agent, of what nothing held covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is allowed unasked where it can be undone.
    ApproveAll,
    /// The user is asked.
    Prompt,
    /// It is refused.
    RejectAll,
}

impl Mode {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ApproveAll => "approve_all",
            Self::Prompt => "prompt",
            Self::RejectAll => "reject_all",
        }
    }
}

/// One thing that was to happen while a question waited, as a subject saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Happened {
    /// What.
    pub what: Meanwhile,
    /// Why it did not, a stable code; empty: it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lacks: String,
}

impl From<&str> for Word {
    fn from(word: &str) -> Self {
        Self::Said(word.to_owned())
    }
}

impl UserModel {
    /// The answers in turn; the last one goes on.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let said = |word: &str| Answer {
            answer: word.to_owned(),
            first: Vec::new(),
        };
        match self {
            Self::DenyAll => vec![said("deny")],
            Self::GrantOnce => vec![said("once")],
            Self::GrantSession => vec![said("session")],
            Self::Literal(word) => vec![said(word)],
            Self::Words(words) => words
                .iter()
                .map(|word| match word {
                    Word::Said(word) => said(word),
                    Word::After(answer) => answer.clone(),
                })
                .collect(),
        }
    }

    /// What the user does elsewhere while a question waits for them.
    pub fn doings(&self) -> impl Iterator<Item = &Meanwhile> {
        let words: &[Word] = match self {
            Self::Words(words) => words,
            Self::DenyAll | Self::GrantOnce | Self::GrantSession | Self::Literal(_) => &[],
        };
        words.iter().flat_map(|word| match word {
            Word::Said(_) => &[],
            Word::After(answer) => answer.first.as_slice(),
        })
    }
}
