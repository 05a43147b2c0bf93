//! One earlier conversation, in the words of who looks at it.

use serde_json::{Map, Value, json};

use crate::{
    conversation::{Conversation, Shelf},
    model::{Message, ProposedCall},
    text::pyjson,
};

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user's.
    User,
    /// The model's.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// The word a model knows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A message.
#[derive(Clone, Debug)]
pub struct Said {
    /// Whose it is.
    pub role: Role,
    /// Its text.
    pub text: String,
    /// The tool whose result it is.
    pub tool: Option<String>,
    /// The call whose result it is.
    call: Option<String>,
    calls: Vec<ProposedCall>,
    /// When it was said, in milliseconds since 1970.
    at: Option<u64>,
}

impl Said {
    fn of(message: Message, at: Option<u64>) -> Option<Self> {
        let plain = |role, text| Self {
            role,
            text,
            tool: None,
            call: None,
            calls: Vec::new(),
            at,
        };
        match message {
            Message::System(_) => None,
            Message::User(text) => Some(plain(Role::User, text)),
            Message::Assistant { text, calls } => Some(Self {
                calls,
                ..plain(Role::Assistant, text)
            }),
            Message::Tool { call, tool, text } => Some(Self {
                tool: Some(tool),
                call: Some(call),
                ..plain(Role::Tool, text)
            }),
        }
    }

    fn calls(&self) -> Option<Value> {
        if self.calls.is_empty() {
            return None;
        }
        let calls = self.calls.iter().map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.tool, "arguments": call.arguments},
            })
        });
        Some(calls.collect())
    }

    /// The calls it proposes, as text.
    #[must_use]
    pub fn calls_as_text(&self) -> Option<String> {
        self.calls().map(|calls| pyjson::ascii_text(&calls))
    }

    /// When it was said, in seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.at.map(seconds)
    }

    /// Whether there is anything to read; a text ends at a NUL for whoever counts its letters
    /// in SQLite, where Hermes does.
    #[must_use]
    pub fn has_text(&self) -> bool {
        !self.text.is_empty() && !self.text.starts_with('\0')
    }

    /// As it is told, by its number in its conversation.
    #[must_use]
    pub fn told(&self, number: usize, anchor: Option<usize>) -> Value {
        let mut told = Map::new();
        told.insert("id".to_owned(), json!(number));
        told.insert("role".to_owned(), json!(self.role.as_str()));
        told.insert("content".to_owned(), json!(self.text));
        let more = [
            ("timestamp", self.seconds().map(Value::from)),
            ("tool_name", some(self.tool.as_deref())),
            ("tool_calls", self.calls()),
            ("tool_call_id", some(self.call.as_deref())),
            ("anchor", (anchor == Some(number)).then_some(json!(true))),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                told.insert(name.to_owned(), value);
            }
        }
        Value::Object(told)
    }
}

fn some(text: Option<&str>) -> Option<Value> {
    text.filter(|text| !text.is_empty()).map(Value::from)
}

#[expect(clippy::cast_precision_loss, reason = "a moment needs 41 of 52 bits")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// An earlier conversation.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its id.
    pub id: String,
    /// Where it was had.
    pub shelf: Shelf,
    /// Its title.
    pub title: Option<String>,
    /// The model it was had with.
    pub model: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// What was said.
    pub said: Vec<Said>,
}

impl Earlier {
    /// One that was kept.
    #[must_use]
    pub fn of(shelf: Shelf, id: String, kept: Conversation) -> Self {
        let told = kept.updated.parse::<jiff::Timestamp>().ok();
        let updated = told.and_then(|told| u64::try_from(told.as_millisecond()).ok());
        let first = kept.times.iter().flatten().next().copied();
        let times = kept.times.into_iter().chain(std::iter::repeat(None));
        Self {
            id,
            shelf,
            title: kept.title.filter(|title| !title.is_empty()),
            model: kept.model,
            started: kept.started.or(first).or(updated).unwrap_or_default(),
            said: kept
                .messages
                .into_iter()
                .zip(times)
                .filter_map(|(message, at)| Said::of(message, at))
                .collect(),
        }
    }

    /// Where it was had, in the word a model knows.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        match self.shelf {
            Shelf::Terminal => "cli",
            Shelf::Editor => "acp",
        }
    }

    /// When it began, in seconds since 1970.
    #[must_use]
    pub fn started_seconds(&self) -> f64 {
        seconds(self.started)
    }

    /// When something was said in it last, in milliseconds since 1970.
    #[must_use]
    pub fn last_active(&self) -> u64 {
        let times = self.said.iter().filter_map(|one| one.at);
        times.max().unwrap_or(self.started)
    }

    /// The same in seconds.
    #[must_use]
    pub fn last_active_seconds(&self) -> f64 {
        seconds(self.last_active())
    }
}
