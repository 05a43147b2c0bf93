//! What was recorded: sessions, and calls with what came of them.

use bisim_world::protocol::Context;
use serde_json::Value;

/// A conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Its id, or the place of a conversation in a file.
    pub id: String,
    /// `cli`, `telegram`, `cron`, ...
    pub source: String,
    /// Where it worked, if that was recorded.
    pub cwd: Option<String>,
    /// When it began, in seconds since 1970; 0 if that is not known.
    pub started: f64,
}

impl Session {
    /// The surroundings that Hermes' approval gate would distinguish.
    #[must_use]
    pub fn context(&self) -> Context {
        match self.source.as_str() {
            "cli" | "tui" | "" => Context::Interactive,
            "cron" => Context::Cron,
            "acp" => Context::Acp,
            "batch" | "library" | "trajectory" => Context::Headless,
            _ => Context::Gateway,
        }
    }
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The model's name for it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// What the model was told; absent if nothing was recorded.
    pub result: Option<String>,
    /// Whether the result is longer than what was kept.
    pub cut: bool,
}

/// How much was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Counts {
    /// Conversations that hold calls.
    pub sessions: u64,
    /// Calls.
    pub calls: u64,
    /// Calls that a conversation file repeats from the database.
    pub repeated: u64,
    /// Calls whose recording makes no sense.
    pub broken: u64,
}

/// Takes what is read, call by call, in the order of a session.
pub trait Sink {
    /// A session begins; the calls that follow are its.
    fn session(&mut self, session: &Session);
    /// A call with its result. Says whether more is wanted.
    fn call(&mut self, call: Call) -> bool;
}

/// One element of an assistant's `tool_calls`; `None` if it makes no sense.
#[must_use]
pub fn parse(element: &Value) -> Option<Call> {
    let function = element.get("function")?;
    let tool = function.get("name")?.as_str()?;
    let args = match function.get("arguments")? {
        Value::String(text) if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    let id = ["id", "call_id"]
        .into_iter()
        .find_map(|name| element.get(name).and_then(Value::as_str))?;
    (args.is_object() && !tool.is_empty()).then(|| Call {
        id: id.to_owned(),
        tool: tool.to_owned(),
        args,
        result: None,
        cut: false,
    })
}
