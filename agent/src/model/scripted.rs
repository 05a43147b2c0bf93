//! A model that says what a script says: for runs that have to be the same
//! each time, and for trying things out without a model.
//!
//! A script holds one answer a line, as JSON: `{"text": "…", "calls": [{"tool":
//! "…", "arguments": {…}}]}`; both may be left out.

use std::{collections::VecDeque, path::Path};

use serde::Deserialize;
use serde_json::Value;

use super::{Finish, ModelError, ModelPort, ModelReply, ModelRequest, ProposedCall};
use crate::given_file::{self, Pipes};

/// The longest script that is read.
const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// The backend.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    answers: VecDeque<ModelReply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<LineCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineCall {
    tool: String,
    #[serde(default)]
    arguments: Value,
}

impl Scripted {
    /// One that gives these answers, in this order.
    #[must_use]
    pub fn of(answers: impl IntoIterator<Item = ModelReply>) -> Self {
        Self {
            answers: answers.into_iter().collect(),
        }
    }

    /// One that says these words, one text an answer.
    #[must_use]
    pub fn saying<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::of(texts.into_iter().map(|text| ModelReply {
            text: text.into(),
            ..ModelReply::default()
        }))
    }

    /// Reads a script.
    ///
    /// # Errors
    /// It cannot be read; the text names the line.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let wrong =
            |why: String| ModelError::Address(format!("the script `{}`: {why}", path.display()));
        let text = given_file::text(path, SCRIPT_BYTES_MAX, Pipes::Read)
            .map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut answers = VecDeque::new();
        for (place, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_str(line)
                .map_err(|error| format!("line {}: {error}", place.saturating_add(1)))?;
            let calls = line.calls.into_iter().enumerate();
            answers.push_back(ModelReply {
                text: line.text,
                calls: calls
                    .map(|(place, call)| ProposedCall {
                        id: format!("call_{place}"),
                        tool: call.tool,
                        arguments: match call.arguments {
                            Value::Null => String::new(),
                            Value::String(text) => text,
                            other => other.to_string(),
                        },
                    })
                    .collect(),
                tokens: (0, 0),
                finish: Finish::Ended,
            });
        }
        Ok(Self { answers })
    }
}

impl ModelPort for Scripted {
    fn complete(&mut self, _request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.answers.pop_front().ok_or(ModelError::ScriptEnded)
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelError, ModelPort as _, ModelRequest, Scripted};

    #[test]
    fn a_script_is_said_line_by_line_and_then_ends() {
        let script = "{\"text\": \"one\"}\n\n{\"calls\": [{\"tool\": \"todo\", \"arguments\": {\"a\": 1}}]}\n";
        let mut model = Scripted::parse(script).expect("a script");
        let mut ask = || model.complete(ModelRequest::new("m", &[]));
        assert_eq!(ask().expect("one").text, "one");
        let second = ask().expect("two");
        assert_eq!(second.calls[0].arguments, "{\"a\":1}");
        assert_eq!(ask(), Err(ModelError::ScriptEnded));
        assert!(Scripted::parse("{}\n{\"says\": 1}").is_err_and(|why| why.contains("line 2")));
    }
}
