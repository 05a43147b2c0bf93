//! Conversations that were had before a case begins, as the case says them.
//!
//! Each subject finds them where it keeps its own. A moment is in milliseconds since 1970.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One that was had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// What it is called by: 32 hexadecimal digits.
    pub id: String,
    /// Where it was had.
    pub source: ConversationSource,
    /// What it was about; no two have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it began.
    pub started: u64,
    /// What was said, in order.
    #[serde(default)]
    pub messages: Vec<Said>,
}

/// Where a conversation was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConversationSource {
    /// At a terminal.
    Cli,
    /// In an editor.
    Acp,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a message is {\"user\", \"at\"}, {\"assistant\", \"at\"} with or without \"calls\", or {\"tool\", \"call\", \"text\", \"at\"}"
)]
pub enum Said {
    /// By the person.
    User {
        /// Their words.
        user: String,
        /// When.
        at: u64,
    },
    /// By the model.
    Assistant {
        /// Its words.
        assistant: String,
        /// What it called: id, tool and the text of the arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<[String; 3]>,
        /// When.
        at: u64,
    },
    /// By a tool.
    Tool {
        /// Which.
        tool: String,
        /// The id of the call it answers.
        call: String,
        /// What it told.
        text: String,
        /// When.
        at: u64,
    },
}

impl Said {
    /// When it was said.
    #[must_use]
    pub const fn at(&self) -> u64 {
        match self {
            Self::User { at, .. } | Self::Assistant { at, .. } | Self::Tool { at, .. } => *at,
        }
    }
}
