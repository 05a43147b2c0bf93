//! Conversations as a world's `conversations` has them.

use serde_json::{Value, json};

/// When the first conversation of a world begins, in milliseconds: a day of February 2026.
pub const BEGUN: u64 = 1_772_000_000_000;
/// How far apart two messages are said, unless a conversation says otherwise: no whole second.
const STEP: u64 = 30_250;

/// A conversation that is being written.
pub struct Talk {
    number: u64,
    source: &'static str,
    title: Option<String>,
    model: Option<&'static str>,
    started: u64,
    step: u64,
    calls: usize,
    messages: Vec<Value>,
}

impl Talk {
    /// The conversation of this number, begun so many minutes after the first.
    pub fn new(number: u64, source: &'static str, minutes: u64) -> Self {
        Self {
            number,
            source,
            title: None,
            model: Some("gpt-5"),
            started: BEGUN + minutes * 60_000,
            step: STEP,
            calls: 0,
            messages: Vec::new(),
        }
    }

    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.to_owned());
        self
    }

    pub fn model(mut self, model: Option<&'static str>) -> Self {
        self.model = model;
        self
    }

    /// How far apart its messages are, from here on.
    pub fn step(mut self, step: u64) -> Self {
        self.step = step;
        self
    }

    fn say(mut self, mut message: Value) -> Self {
        let said = u64::try_from(self.messages.len()).unwrap_or(u64::MAX);
        message["at"] = json!(self.started + said.saturating_mul(self.step));
        self.messages.push(message);
        self
    }

    pub fn user(self, text: &str) -> Self {
        self.say(json!({"user": text}))
    }

    pub fn answer(self, text: &str) -> Self {
        self.say(json!({"assistant": text}))
    }

    /// The model calls a tool, and the tool answers.
    pub fn used(mut self, words: &str, tool: &str, arguments: &Value, result: &str) -> Self {
        self.calls += 1;
        let call = format!("call_{}_{}", self.number, self.calls);
        let calls = json!([[call, tool, arguments.to_string()]]);
        self.say(json!({"assistant": words, "calls": calls}))
            .say(json!({"tool": tool, "call": call, "text": result}))
    }

    /// What it is called by.
    pub fn id(number: u64) -> String {
        format!("{number:02x}{:030x}", 0x00c0_ffee_u64 * (number + 1))
    }

    pub fn value(self) -> Value {
        let mut value =
            json!({"id": Self::id(self.number), "source": self.source, "started": self.started});
        if let Some(title) = self.title {
            value["title"] = json!(title);
        }
        if let Some(model) = self.model {
            value["model"] = json!(model);
        }
        value["messages"] = json!(self.messages);
        value
    }
}
