//! One earlier conversation, in the words of who looks at it.

use serde_json::{Map, Value, json};

use crate::{
    conversation::{Conversation, Shelf},
    digest::sha256,
    model::{Message, ProposedCall, as_models_have},
    text::pyjson,
};

/// How far apart the numbers of messages of two conversations lie at least.
const APART: u64 = 1_000_000;
/// So many conversations are told apart by their messages' numbers.
const TOLD_APART: u64 = 1 << 24;

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
            Message::User(text) | Message::Told(text) => Some(plain(Role::User, text)),
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

    /// As it is told, by its number.
    pub(super) fn told(&self, number: u64, anchor: Option<u64>) -> Value {
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
    /// What its messages are counted from.
    counted_from: u64,
}

/// A moment for people, in milliseconds since 1970.
pub(super) fn millis(told: &str) -> Option<u64> {
    let told = told.parse::<jiff::Timestamp>().ok()?;
    u64::try_from(told.as_millisecond()).ok()
}

/// What the messages of a conversation are counted from: what a model was told of one
/// conversation is then no message of another, and no number says how many there are.
fn counted_from(id: &str) -> u64 {
    let digest = sha256(id.as_bytes());
    let drawn = digest
        .as_bytes()
        .iter()
        .take(3)
        .fold(0, |drawn, byte| drawn << 8 | u64::from(*byte));
    (drawn % TOLD_APART + 1) * APART
}

impl Earlier {
    /// One that was kept.
    #[must_use]
    pub fn of(shelf: Shelf, id: String, kept: Conversation) -> Self {
        let updated = millis(&kept.updated);
        let first = kept.times.iter().flatten().next().copied();
        let times = kept.times.into_iter().chain(std::iter::repeat(None));
        Self {
            counted_from: counted_from(&id),
            id,
            shelf,
            title: kept.title.filter(|title| !title.is_empty()),
            model: kept.model,
            started: kept.started.or(first).or(updated).unwrap_or_default(),
            said: as_models_have(kept.messages.into_iter().zip(times))
                .into_iter()
                .filter_map(|(message, at)| Said::of(message, at))
                .collect(),
        }
    }

    /// The number of a message by its place.
    #[must_use]
    pub fn number(&self, place: usize) -> u64 {
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        self.counted_from.saturating_add(place).saturating_add(1)
    }

    /// The place of the message that has a number. A small one is its place, counted from
    /// one: no number that was told is as small.
    #[must_use]
    pub fn place(&self, number: i128) -> Option<usize> {
        let from = match number < i128::from(APART) {
            true => 0,
            false => i128::from(self.counted_from),
        };
        let place = usize::try_from(number.checked_sub(from)?.checked_sub(1)?).ok()?;
        (place < self.said.len()).then_some(place)
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
