//! A server of tools on a world's loopback: the Model Context Protocol over HTTP.
//!
//! It is nobody's program: it says what the case has it say, to whoever asks, and
//! has no state but the sessions it gave out. Both subjects meet the same one. This
//! module must never do anything for a call but answer it.

use std::io::{self, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use crate::error::{AtStage, WorldError};
use crate::http::{self, Request};
use crate::protocol::{Job, Serves};

/// What is said in place of a method that there is none of.
const NO_METHOD: i64 = -32601;
/// The name of the session it gives out.
const SESSION: &str = "session-of-the-case";

/// Starts the server of a job, if it has one; it ends with the process.
///
/// # Errors
/// It cannot listen.
pub fn start(job: &Job) -> Result<(), WorldError> {
    let Some(serves) = job.world.as_ref().and_then(|world| world.serves.clone()) else {
        return Ok(());
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, serves.port))
        .at("start the server of tools on the loopback")?;
    let serves = Arc::new(serves);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serves = Arc::clone(&serves);
            // A subject that hangs up has no use for an answer.
            thread::spawn(move || {
                let _ = attend(stream, &serves);
            });
        }
    });
    Ok(())
}

fn attend(stream: TcpStream, serves: &Serves) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = http::request(&mut reader)? {
        let told = told(&request, serves);
        let stream = reader.get_mut();
        let session = ("mcp-session-id", SESSION);
        match told {
            Told::Status(status) => http::respond(stream, status, &[], "")?,
            Told::Message(message) if serves.streams => {
                let text = format!("event: message\ndata: {message}\n\n");
                http::respond(stream, "200 OK", &[http::EVENTS, session], &text)?;
            }
            Told::Message(message) => {
                let text = message.to_string();
                http::respond(stream, "200 OK", &[http::JSON, session], &text)?;
            }
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Told {
    Status(&'static str),
    Message(Value),
}

fn told(request: &Request, serves: &Serves) -> Told {
    let is_known = serves.key.as_ref().is_none_or(|key| {
        request.header("authorization") == Some(format!("Bearer {key}").as_str())
    });
    if !is_known {
        return Told::Status("401 Unauthorized");
    }
    if request.method != "POST" {
        return Told::Status(if request.method == "DELETE" {
            "200 OK"
        } else {
            "405 Method Not Allowed"
        });
    }
    let message: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let method = message.get("method").and_then(Value::as_str);
    let (Some(id), Some(method)) = (message.get("id"), method) else {
        return Told::Status("202 Accepted");
    };
    let part = |pointer: &str| message.pointer(pointer).cloned().unwrap_or(Value::Null);
    let answer = match method {
        "initialize" => json!({"result": {
            "protocolVersion": part("/params/protocolVersion"),
            "capabilities": serves.announces.clone().unwrap_or_else(|| json!({"tools": {}})),
            "serverInfo": {"name": "loopback", "version": "1"},
        }}),
        "ping" => json!({"result": {}}),
        "tools/list" => json!({"result": {"tools": serves.tools}}),
        "tools/call" => called(serves, &part("/params/name"), &part("/params/arguments")),
        other => match serves.methods.get(other) {
            Some(answer) => with(answer, &without_meta(part("/params")).to_string()),
            None => json!({"error": {"code": NO_METHOD, "message": format!("no method {other}")}}),
        },
    };
    if let Value::Number(status) = answer {
        return Told::Status(if status == 404.into() {
            "404 Not Found"
        } else {
            "500 Internal Server Error"
        });
    }
    let mut message = json!({"jsonrpc": "2.0", "id": id});
    if let (Value::Object(message), Value::Object(answer)) = (&mut message, answer) {
        message.extend(answer);
    }
    Told::Message(message)
}

fn called(serves: &Serves, tool: &Value, arguments: &Value) -> Value {
    let name = tool.as_str().unwrap_or_default();
    match serves.answers.get(name) {
        Some(answer) => with(answer, &arguments.to_string()),
        None => json!({"error": {"code": NO_METHOD, "message": format!("Unknown tool: {name}")}}),
    }
}

/// Parameters without what a client says of itself.
fn without_meta(mut params: Value) -> Value {
    if let Some(params) = params.as_object_mut() {
        params.shift_remove("_meta");
    }
    params
}

/// An answer with what was asked in its place.
fn with(answer: &Value, asked: &str) -> Value {
    match answer {
        Value::String(text) => text.replace("$ASKED", asked).into(),
        Value::Array(parts) => parts.iter().map(|part| with(part, asked)).collect(),
        Value::Object(parts) => parts
            .iter()
            .map(|(name, part)| (name.clone(), with(part, asked)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => answer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Serves, Told, told};
    use crate::http::Request;

    fn serves(key: Option<&str>) -> Serves {
        let said = json!({"port": 1, "key": key, "tools": [{"name": "echo"}], "answers": {
            "echo": {"result": {"content": [{"type": "text", "text": "asked $ASKED"}]}},
            "broken": 500,
        }, "announces": {"resources": {}}, "methods": {
            "resources/read": {"result": {"contents": [{"uri": "a:b", "text": "$ASKED"}]}},
            "prompts/list": 404,
        }});
        serde_json::from_value(said).unwrap()
    }

    fn asked(method: &str, params: Value) -> Request {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        Request {
            method: "POST".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer k".to_owned())],
            body: message.to_string().into_bytes(),
        }
    }

    fn message(method: &str, params: Value) -> Value {
        match told(&asked(method, params), &serves(Some("k"))) {
            Told::Message(message) => message,
            Told::Status(status) => panic!("{method}: {status}"),
        }
    }

    #[test]
    fn a_call_gives_what_the_case_says() {
        let call = |name: &str| json!({"name": name, "arguments": {"a": 1}});
        assert_eq!(
            message("tools/call", call("echo")),
            json!({"jsonrpc": "2.0", "id": 7,
                   "result": {"content": [{"type": "text", "text": "asked {\"a\":1}"}]}})
        );
        assert_eq!(message("tools/call", call("x"))["error"]["code"], -32601);
        assert_eq!(message("nothing", json!({}))["error"]["code"], -32601);
        assert_eq!(
            message("tools/list", json!({}))["result"],
            json!({"tools": [{"name": "echo"}]})
        );
        let broken = told(&asked("tools/call", call("broken")), &serves(Some("k")));
        assert_eq!(broken, Told::Status("500 Internal Server Error"));
    }

    #[test]
    fn another_method_gives_what_the_case_says_and_only_what_is_there_is_announced() {
        let announced = message("initialize", json!({}));
        assert_eq!(
            announced["result"]["capabilities"],
            json!({"resources": {}})
        );
        assert_eq!(
            message("resources/read", json!({"uri": "a:b", "_meta": {"x": 1}}))["result"]["contents"]
                [0]["text"],
            r#"{"uri":"a:b"}"#
        );
        let missing = told(&asked("prompts/list", json!({})), &serves(Some("k")));
        assert_eq!(missing, Told::Status("404 Not Found"));
        let tools_only: Serves = serde_json::from_value(json!({"port": 1})).unwrap();
        let Told::Message(message) = told(&asked("initialize", json!({})), &tools_only) else {
            panic!("a message");
        };
        assert_eq!(message["result"]["capabilities"], json!({"tools": {}}));
    }

    #[test]
    fn whoever_has_not_the_key_is_turned_away() {
        let request = asked("ping", json!({}));
        let refused = Told::Status("401 Unauthorized");
        assert_eq!(told(&request, &serves(Some("other"))), refused);
        assert_ne!(told(&request, &serves(None)), refused);
        assert_ne!(told(&request, &serves(Some("k"))), refused);
    }

    #[test]
    fn what_is_no_request_of_the_protocol_is_no_message() {
        let notice = Request {
            body: b"{\"method\": \"notifications/initialized\"}".to_vec(),
            ..asked("x", json!({}))
        };
        assert_eq!(told(&notice, &serves(None)), Told::Status("202 Accepted"));
        let look = Request {
            method: "GET".to_owned(),
            ..notice
        };
        let refused = Told::Status("405 Method Not Allowed");
        assert_eq!(told(&look, &serves(None)), refused);
    }
}
