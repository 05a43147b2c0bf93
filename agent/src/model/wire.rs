//! The chat completions form, both ways.
//!
//! Reading is strict where it matters: an answer without a choice, or with a
//! call that has no name, is no answer.

use serde_json::{Map, Value, json};

use super::{Finish, Message, ModelError, ModelReply, ModelRequest, ProposedCall, Structured};
use crate::text::bulk::{self, VALUES_MAX};

/// The body of a request.
pub fn request(request: &ModelRequest<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), request.model.into());
    body.insert(
        "messages".into(),
        request.messages.iter().map(message).collect(),
    );
    if !request.offers.is_empty() {
        let tools: Vec<Value> = request
            .offers
            .iter()
            .map(|offer| {
                json!({"type": "function", "function": {
                    "name": offer.name,
                    "description": offer.description,
                    "parameters": offer.parameters,
                }})
            })
            .collect();
        body.insert("tools".into(), tools.into());
    }
    Value::Object(body)
}

/// The body as one backend is sent it: the conversation, and how to answer.
pub fn body(
    asked: &ModelRequest<'_>,
    structured: Structured,
    extra: &Map<String, Value>,
    is_streamed: bool,
) -> Value {
    let mut body = match request(asked) {
        Value::Object(body) => body,
        other => return other,
    };
    body.insert("stream".into(), is_streamed.into());
    if let Some(tokens) = asked.limits.tokens_max {
        body.insert("max_tokens".into(), tokens.into());
    }
    if let Some(schema) = asked.schema {
        let field = match (structured, &schema.grammar) {
            (Structured::JsonSchema, _) => Some((
                "response_format",
                json!({"type": "json_schema", "json_schema": {
                    "name": schema.name, "strict": true, "schema": schema.json}}),
            )),
            (Structured::Gbnf, Some(grammar)) => Some(("grammar", grammar.as_str().into())),
            // Without a grammar, any JSON is the next best.
            (Structured::JsonObject, _) | (Structured::Gbnf, None) => {
                Some(("response_format", json!({"type": "json_object"})))
            }
            (Structured::None, _) => None,
        };
        if let Some((name, value)) = field {
            body.insert(name.into(), value);
        }
    }
    // What is configured for the backend never replaces what is said.
    for (name, value) in extra {
        if !body.contains_key(name) {
            body.insert(name.clone(), value.clone());
        }
    }
    Value::Object(body)
}

/// What a backend calls the end of an answer.
pub fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("length") => Finish::CutOff,
        Some("content_filter") => Finish::Withheld,
        _ => Finish::Ended,
    }
}

/// The name of a proposed call, if the backend gave none.
pub fn call_id(given: Option<&str>, place: usize) -> String {
    match given {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => format!("call_{place}"),
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::System(text) => json!({"role": "system", "content": text}),
        Message::User(text) | Message::Told(text) => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    json!({"id": call.id, "type": "function", "function": {
                        "name": call.tool,
                        "arguments": call.arguments,
                    }})
                })
                .collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
        Message::Tool { call, tool, text } => {
            json!({"role": "tool", "tool_call_id": call, "name": tool, "content": text})
        }
    }
}

/// The answer, or this part of it, holds more values than are taken apart.
pub fn too_much(what: &str) -> ModelError {
    ModelError::Unreadable(format!("{what} holds more than {VALUES_MAX} values"))
}

/// Arguments are a text within an answer, and are taken apart in turn.
///
/// # Errors
/// They hold too many values.
pub fn check_arguments(arguments: &str) -> Result<(), ModelError> {
    match bulk::is_too_much(arguments.as_bytes()) {
        true => Err(too_much("the arguments of a call in it")),
        false => Ok(()),
    }
}

/// The answer in a body.
pub fn reply(body: &str) -> Result<ModelReply, ModelError> {
    let unreadable = |why: &str| ModelError::Unreadable(why.to_owned());
    if bulk::is_too_much(body.as_bytes()) {
        return Err(too_much("it"));
    }
    let body: Value = serde_json::from_str(body)
        .map_err(|error| ModelError::Unreadable(no_json(body, &error)))?;
    let message = body
        .pointer("/choices/0/message")
        .ok_or_else(|| unreadable("it holds no choice"))?;
    if let Some(words) = message.get("refusal").and_then(Value::as_str) {
        return Err(ModelError::Declined(one_line(words)));
    }
    let text = match message.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        // Some backends send the words in parts.
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        Some(_) => return Err(unreadable("its content is not text")),
    };
    let mut calls = Vec::new();
    let proposed = message.get("tool_calls").and_then(Value::as_array);
    for (place, call) in proposed.into_iter().flatten().enumerate() {
        let tool = call
            .pointer("/function/name")
            .and_then(Value::as_str)
            .ok_or_else(|| unreadable("it proposes a call without a name"))?;
        let arguments = match call.pointer("/function/arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(arguments)) => arguments.clone(),
            Some(other) => other.to_string(),
        };
        check_arguments(&arguments)?;
        calls.push(ProposedCall {
            id: call_id(call.get("id").and_then(Value::as_str), place),
            tool: tool.to_owned(),
            arguments,
        });
    }
    let count = |name: &str| {
        body.pointer(name)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    Ok(ModelReply {
        text,
        calls,
        tokens: (
            count("/usage/prompt_tokens"),
            count("/usage/completion_tokens"),
        ),
        finish: finish(
            body.pointer("/choices/0/finish_reason")
                .and_then(Value::as_str),
        ),
    })
}

/// What a backend says about a refusal, on one line.
pub fn complaint(body: &str) -> String {
    let words = serde_json::from_str::<Value>(body)
        .ok()
        .and_then(|body| {
            body.pointer("/error/message")
                .or_else(|| body.get("error").filter(|error| error.is_string()))
                // As vLLM says it, and the framework it is made with.
                .or_else(|| body.get("message"))
                .or_else(|| body.get("detail"))
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
        .unwrap_or_else(|| body.to_owned());
    one_line(&words)
}

/// Words of a backend on one short line that cannot draw on a terminal.
pub fn one_line(words: &str) -> String {
    let line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars()
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .take(300)
        .collect()
}

/// How it is told of an answer that never was one of a model's.
pub const NO_JSON: &str = "it is no JSON";

/// What is wrong with a text that is no JSON; of one that never was any, how it begins, so
/// that a page of another server's is known for what it is.
fn no_json(body: &str, error: &serde_json::Error) -> String {
    let body = body.trim_start();
    if body.starts_with('{') {
        return error.to_string();
    }
    let beginning: String = body.chars().take(40).collect();
    match beginning.is_empty() {
        true => "it is empty".to_owned(),
        false => format!("{NO_JSON} and begins with `{}`", one_line(&beginning)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        Message, ModelError, ModelRequest, ProposedCall, Structured, body, complaint, reply,
        request,
    };
    use crate::model::{ReplyLimits, Schema};

    #[test]
    fn a_form_is_asked_for_in_the_backends_way_and_extras_replace_nothing() {
        let schema = Schema {
            name: "plan".into(),
            json: json!({"type": "object"}),
            grammar: Some("root ::= \"{}\"".into()),
        };
        let limits = ReplyLimits {
            tokens_max: Some(9),
            ..ReplyLimits::default()
        };
        let request = ModelRequest::new("m", &[]).shaped(&schema).within(limits);
        let extra = json!({"seed": 1, "model": "other"});
        let extra = extra.as_object().expect("an object");
        let check = |structured, field: &str, value: serde_json::Value| {
            let body = body(&request, structured, extra, true);
            assert_eq!(body.pointer(field), Some(&value), "{body}");
            assert_eq!(body["model"], "m");
            assert_eq!((&body["seed"], &body["max_tokens"]), (&json!(1), &json!(9)));
        };
        check(
            Structured::JsonSchema,
            "/response_format/json_schema/schema",
            json!({"type": "object"}),
        );
        check(
            Structured::JsonObject,
            "/response_format/type",
            json!("json_object"),
        );
        check(Structured::Gbnf, "/grammar", json!("root ::= \"{}\""));
        check(Structured::None, "/stream", json!(true));
    }

    #[test]
    fn a_conversation_is_written_in_the_order_it_was_had() {
        let messages = [
            Message::System("s".into()),
            Message::User("u".into()),
            Message::Assistant {
                text: String::new(),
                calls: vec![ProposedCall {
                    id: "c1".into(),
                    tool: "terminal".into(),
                    arguments: "{}".into(),
                }],
            },
            Message::Tool {
                call: "c1".into(),
                tool: "terminal".into(),
                text: "{}".into(),
            },
        ];
        let body = request(&ModelRequest::new("m", &messages));
        assert_eq!(
            body,
            json!({"model": "m", "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c1", "name": "terminal", "content": "{}"},
            ]})
        );
    }

    #[test]
    fn an_answer_is_read_with_words_in_parts_and_arguments_in_any_form() {
        let body = json!({
            "choices": [{"message": {
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                "tool_calls": [
                    {"function": {"name": "terminal", "arguments": {"command": "ls"}}},
                    {"id": "x", "function": {"name": "todo"}},
                ],
            }}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        });
        let got = reply(&body.to_string()).expect("read");
        assert_eq!((got.text.as_str(), got.tokens), ("ab", (3, 4)));
        assert_eq!(got.calls[0].id, "call_0");
        assert_eq!(got.calls[0].arguments, r#"{"command":"ls"}"#);
        assert_eq!(
            (got.calls[1].id.as_str(), got.calls[1].arguments.as_str()),
            ("x", "")
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for body in [
            "",
            "nonsense",
            "{}",
            r#"{"choices": []}"#,
            r#"{"choices": [{"message": {"content": 5}}]}"#,
            r#"{"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}"#,
        ] {
            assert!(
                matches!(reply(body), Err(ModelError::Unreadable(_))),
                "{body}"
            );
        }
    }

    #[test]
    fn complaints_are_one_short_line() {
        assert_eq!(
            complaint(r#"{"error": {"message": "no\n such  model"}}"#),
            "no such model"
        );
        assert_eq!(
            complaint(r#"{"object": "error", "message": "too long", "code": 400}"#),
            "too long"
        );
        assert_eq!(complaint(r#"{"detail": "Not Found"}"#), "Not Found");
        assert_eq!(complaint("<html>\nx"), "<html> x");
        assert_eq!(complaint(&"x".repeat(1000)).len(), 300);
    }
}
