//! One proposed call: read, made, and told of.
//!
//! What a call brings along is reported before anything else is done with it. It must
//! never be made in another form than it was proposed in.

use hermitcrab_core::{label::Source, tool::Tool};
use serde_json::{Map, Value};

use super::{
    Chat, ChatError, ChatTurn, Made, loops,
    watch::{Ports, Then},
};
use crate::{
    model::ProposedCall,
    runtime::{CallReport, Fate, Runtime, ToolResult},
    tools::clarify,
};

impl Chat {
    /// Runs one proposed call and reports what its result brings along.
    pub(super) fn act(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        call: &ProposedCall,
        turn: &mut ChatTurn,
    ) -> Result<String, ChatError> {
        let arguments = match arguments(&call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => {
                let mut result = crate::runtime::unreadable(&call.tool, &why);
                port.watch.begins(runtime, self.agent, call, &Value::Null);
                // There is no call that could be made again.
                let _then = port.watch.ended(self.agent, call, &mut result);
                self.note(turn, call, result.fate, 0);
                return Ok(result.text);
            }
        };
        port.watch.begins(runtime, self.agent, call, &arguments);
        if let Some(text) = self.loops.refused(&call.tool, &arguments) {
            return Ok(self.not_made(port, call, text, turn));
        }
        let (result, questions) = match Tool::offered(&call.tool) {
            Some(Tool::DelegateTask) => (self.delegate(runtime, port, &arguments, turn)?, 0),
            Some(Tool::Clarify) => (self.clarify(runtime, &arguments), 0),
            _ => {
                let report = runtime.call(self.agent, &call.tool, &arguments);
                let questions = report.questions.len();
                (result_of(report), questions)
            }
        };
        self.ended(runtime, port, call, &arguments, (result, questions), turn)
    }

    /// A call that is not made, and what is told in its place.
    pub(super) fn not_made(
        &self,
        port: &mut Ports<'_>,
        call: &ProposedCall,
        text: String,
        turn: &mut ChatTurn,
    ) -> String {
        let mut result = ToolResult {
            text,
            fate: Fate::ToolError,
        };
        // There is no call that could be made again.
        let _then = port.watch.ended(self.agent, call, &mut result);
        self.note(turn, call, result.fate, 0);
        result.text
    }

    /// What a call that ran brings along, and its words for the model.
    pub(super) fn ended(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        call: &ProposedCall,
        arguments: &Value,
        (mut result, mut questions): (ToolResult, usize),
        turn: &mut ChatTurn,
    ) -> Result<String, ChatError> {
        while port.watch.ended(self.agent, call, &mut result) == Then::Again {
            let report = runtime.call(self.agent, &call.tool, arguments);
            questions += report.questions.len();
            result = result_of(report);
        }
        let brings = Tool::offered(&call.tool).and_then(Tool::brings);
        if let Some(source) = brings.filter(|_| has_data(&result.fate)) {
            runtime.hear(self.agent, source)?;
        }
        // Be it a refusal: it names the place that would have been reached.
        if runtime.take_led(self.agent) {
            runtime.hear(self.agent, Source::File)?;
        }
        if runtime.take_checks_words(self.agent) {
            runtime.hear(self.agent, Source::Command)?;
        }
        let judged = self.judged(runtime, port.model, call, &result.fate)?;
        self.note(turn, call, result.fate, questions);
        let has_failed = loops::is_failure(&call.tool, &result.text);
        let told = self.loops.observe(&call.tool, arguments, &result.text);
        let text = result.text + &told.unwrap_or_default();
        self.unwritten
            .observe(&call.tool, arguments, &text, has_failed);
        self.unproved.observe(&call.tool, arguments, &text);
        Ok(match judged {
            Some(words) => format!("{text}\n{words}"),
            None => text,
        })
    }

    pub(super) fn note(
        &self,
        turn: &mut ChatTurn,
        call: &ProposedCall,
        fate: Fate,
        questions: usize,
    ) {
        turn.made.push(Made {
            agent: self.agent,
            tool: call.tool.clone(),
            fate,
            questions,
        });
    }

    fn clarify(&self, runtime: &mut Runtime, arguments: &Value) -> ToolResult {
        let asking = match clarify::read(arguments) {
            Ok(asking) => asking,
            Err(result) => return result,
        };
        match runtime.clarify(self.agent, &asking) {
            Ok(answer) => clarify::worded(&asking, answer.as_deref()),
            Err(_) => clarify::worded(&asking, None),
        }
    }
}

/// A model's arguments; no text at all is an empty object.
pub(super) fn arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("another kind of value".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn result_of(report: CallReport) -> ToolResult {
    ToolResult {
        text: report.text,
        fate: report.fate,
    }
}

/// Whether a result holds more than the agent's own words about a refusal.
fn has_data(fate: &Fate) -> bool {
    match fate {
        Fate::Ran | Fate::RanDiscarded(_) | Fate::ToolError | Fate::Failed(_) => true,
        Fate::Refused(_) | Fate::AskedRefused(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::arguments;

    #[test]
    fn arguments_are_an_object_or_a_complaint() {
        assert_eq!(arguments(""), Ok(json!({})));
        assert_eq!(arguments(" {\"a\": 1} "), Ok(json!({"a": 1})));
        for text in ["[]", "5", "\"x\"", "{", "null", "{\"a\": NaN}"] {
            assert!(arguments(text).is_err(), "{text}");
        }
    }
}
