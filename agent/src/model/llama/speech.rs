//! A conversation as a model without tools of its own has it.
//!
//! The templates in model files write system, user and assistant, and few of
//! them more. So tools are described in words, and the answer is held to a form
//! by a grammar: what is to be said, or the calls proposed. A grammar is always
//! ours: strings of printable ASCII with escapes, so that whatever comes out is
//! text. What comes is read strictly all the same.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::talk::Turn;
use crate::model::{Finish, Message, ModelError, ModelReply, ModelRequest, Offer, ProposedCall};

/// Calls one answer may propose.
const CALLS_MAX: usize = 4;
/// How deep the arguments of a call may be.
const DEPTH_MAX: usize = 4;
/// Fields of one object, and items of one list.
const ITEMS_MAX: usize = 16;

/// What was said so far, as a template writes it.
pub fn turns(request: &ModelRequest<'_>) -> Vec<Turn> {
    let turn = |role: &str, text: String| Turn {
        role: role.to_owned(),
        text,
    };
    let mut tools = (!request.offers.is_empty()).then(|| described(request.offers));
    let mut turns = Vec::new();
    for message in request.messages {
        turns.push(match message {
            Message::System(text) => match tools.take() {
                Some(tools) => turn("system", format!("{text}\n\n{tools}")),
                None => turn("system", text.clone()),
            },
            Message::User(text) | Message::Told(text) => turn("user", text.clone()),
            Message::Assistant { text, calls } if request.offers.is_empty() && calls.is_empty() => {
                turn("assistant", text.clone())
            }
            Message::Assistant { text, calls } if calls.is_empty() => {
                turn("assistant", json!({ "say": text }).to_string())
            }
            Message::Assistant { calls, .. } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| json!({"tool": call.tool, "arguments": arguments(&call.arguments)}))
                    .collect();
                turn("assistant", json!({ "calls": calls }).to_string())
            }
            Message::Tool { tool, text, .. } => turn(
                "user",
                json!({"result_of": tool, "result": text}).to_string(),
            ),
        });
    }
    if let Some(tools) = tools {
        turns.insert(0, turn("system", tools));
    }
    turns
}

fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn described(offers: &[Offer]) -> String {
    let mut out = String::from(
        "You can use tools. Answer with one JSON object and nothing else: {\"say\": \"words for the user\"}, or \
         {\"calls\": [{\"tool\": NAME, \"arguments\": {...}}]}; what they give comes as the next message.\nTools:\n",
    );
    for offer in offers {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "- {}: {} {}",
            offer.name, offer.description, offer.parameters
        );
    }
    out
}

/// What an answer has to be like, if it has to be like anything.
pub fn grammar(request: &ModelRequest<'_>) -> Option<String> {
    if let Some(schema) = request.schema {
        return Some(match &schema.grammar {
            Some(grammar) => grammar.clone(),
            // Any object is the next best; the form is checked by who asked.
            None => format!("root ::= object{DEPTH_MAX}\n{}", values()),
        });
    }
    if request.offers.is_empty() {
        return None;
    }
    let names: Vec<String> = request
        .offers
        .iter()
        .map(|offer| format!("\"\\\"{}\\\"\"", offer.name))
        .collect();
    Some(format!(
        "root ::= \"{{\\\"say\\\":\" string \"}}\" | \"{{\\\"calls\\\":[\" call (\",\" call){{0,{}}} \"]}}\"\n\
         call ::= \"{{\\\"tool\\\":\" ({}) \",\\\"arguments\\\":\" object{DEPTH_MAX} \"}}\"\n{}",
        CALLS_MAX - 1,
        names.join(" | "),
        values(),
    ))
}

/// JSON of bounded depth, without blanks to get lost in.
fn values() -> String {
    let mut out = String::from(
        "string ::= \"\\\"\" letter* \"\\\"\"\n\
         letter ::= [ !#-\\[\\]-~] | \"\\\\\" ([\"\\\\/bnrt] | \"u00\" [0-7] [0-9a-f])\n\
         number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,14}) (\".\" [0-9]{1,9})?\n\
         value0 ::= string | number | \"true\" | \"false\" | \"null\"\n",
    );
    let more = ITEMS_MAX - 1;
    for depth in 1..=DEPTH_MAX {
        let below = depth - 1;
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "field{depth} ::= string \":\" value{below}\n\
             object{depth} ::= \"{{\" (field{depth} (\",\" field{depth}){{0,{more}}})? \"}}\"\n\
             list{depth} ::= \"[\" (value{below} (\",\" value{below}){{0,{more}}})? \"]\"\n\
             value{depth} ::= value0 | object{depth} | list{depth}\n"
        );
    }
    out
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    say: Option<String>,
    #[serde(default)]
    calls: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

/// The answer, read as what it was to be.
pub fn reply(
    request: &ModelRequest<'_>,
    text: String,
    tokens: (u64, u64),
    finish: Finish,
) -> Result<ModelReply, ModelError> {
    let mut reply = ModelReply {
        text,
        calls: Vec::new(),
        tokens,
        finish,
    };
    if request.offers.is_empty() || request.schema.is_some() {
        return Ok(reply);
    }
    if finish == Finish::CutOff {
        return Err(ModelError::CutOff);
    }
    let answer: Answer = Some(reply.text.trim())
        // A list would be read as the fields in their order.
        .filter(|text| text.starts_with('{'))
        .ok_or_else(|| ModelError::Unreadable("the answer is no object".to_owned()))
        .and_then(|text| {
            serde_json::from_str(text).map_err(|error| ModelError::Unreadable(error.to_string()))
        })?;
    reply.text = answer.say.unwrap_or_default();
    let calls = answer.calls.into_iter().enumerate();
    reply.calls = calls
        .map(|(place, call)| ProposedCall {
            id: format!("call_{place}"),
            tool: call.tool,
            arguments: Value::Object(call.arguments).to_string(),
        })
        .collect();
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Finish, Message, ModelError, ModelRequest, Offer, grammar, reply, turns};

    fn offers() -> Vec<Offer> {
        vec![Offer {
            name: "read_file".into(),
            description: "reads".into(),
            parameters: json!({"type": "object"}),
        }]
    }

    #[test]
    fn tools_are_told_in_words_and_calls_are_read_back() {
        let offers = offers();
        let messages = [Message::System("s".into()), Message::User("u".into())];
        let request = ModelRequest::new("m", &messages).offering(&offers);
        let said = turns(&request);
        assert_eq!((said.len(), said[0].role.as_str()), (2, "system"));
        assert!(said[0].text.contains("read_file"), "{}", said[0].text);
        assert!(grammar(&request).is_some_and(|rules| rules.contains("read_file")));
        let read = |text: &str| reply(&request, text.to_owned(), (1, 2), Finish::Ended);
        let got = read(r#"{"calls":[{"tool":"read_file","arguments":{"path":"a"}}]}"#).unwrap();
        assert_eq!(got.calls[0].arguments, r#"{"path":"a"}"#);
        assert_eq!(read(r#"{"say":"hi"}"#).unwrap().text, "hi");
        for bad in [
            "",
            "hi",
            "[]",
            r#"{"calls":[{"tool":"x"}]}"#,
            r#"{"says":"hi"}"#,
        ] {
            assert!(matches!(read(bad), Err(ModelError::Unreadable(_))), "{bad}");
        }
    }

    #[test]
    fn without_tools_and_form_an_answer_is_its_words() {
        let request = ModelRequest::new("m", &[]);
        assert_eq!(grammar(&request), None);
        let got = reply(&request, "{\"say\":1}".to_owned(), (1, 2), Finish::CutOff).unwrap();
        assert_eq!(
            (got.text.as_str(), got.finish),
            ("{\"say\":1}", Finish::CutOff)
        );
    }
}
