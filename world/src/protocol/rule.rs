//! Rules of a case's user, in the words of the agent's configuration file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One rule. It stands above every grant of its case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// What it says; `deny` beats `ask` beats `allow`.
    pub decision: Decision,
    /// `fs.read`, `fs.*` for all file verbs, ...
    pub verbs: Vec<String>,
    /// A place, absolute in the world, and what lies below it; `*` for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Files and directories of this name anywhere; `*` stands for any letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
    /// A network peer, as `name:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// No, whatever is held.
    Deny,
    /// The user is asked each time, whatever is held.
    Ask,
    /// A grant of every session, unless another rule is stricter.
    Allow,
}

impl Decision {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}
