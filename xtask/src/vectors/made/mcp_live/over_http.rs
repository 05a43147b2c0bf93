//! A server of tools on the loopback, and what follows from having heard one.

use serde_json::{Value, json};

use super::{super::WORKSPACE, PORT, case, held_with_a_way, settings, tool};
use crate::vectors::draft::{Agent, Draft};

/// The cases.
pub fn cases() -> Vec<Draft> {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let serves = |key: Value, streams: bool| {
        json!({"cwd": WORKSPACE, "serves": {
            "port": PORT, "key": key, "streams": streams,
            "tools": [
                {"name": "say", "description": "Says what it was asked.",
                 "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                {"name": "fail", "inputSchema": {"type": "object"}},
                {"name": "refuse", "inputSchema": {"type": "object"}},
                {"name": "data", "inputSchema": {"type": "object"}},
                {"name": "break", "inputSchema": {"type": "object"}},
            ],
            "answers": {
                "say": {"result": text("asked $ASKED")},
                "fail": {"result": {"content": [{"type": "text", "text": "it did not work, key=abc"}], "isError": true}},
                "refuse": {"error": {"code": -32602, "message": "not like this"}},
                "data": {"result": {"content": [], "structuredContent": {"n": [1, null, "\u{4f60}"]}}},
                "break": 500,
            },
        }})
    };
    let web = |key: Option<&str>| {
        let mut server = json!({"url": format!("http://127.0.0.1:{PORT}/mcp"), "timeout": 20, "connect_timeout": 20});
        if let Some(key) = key {
            server["headers"] = json!({"Authorization": format!("Bearer {key}")});
        }
        settings(&[("desk", json!({"enabled": false})), ("outpost", server)])
    };
    let mut hasty = web(None);
    hasty["mcp_servers.outpost"]["timeout"] = json!(3);
    let held = held_with_a_way();
    let one = |id: &str, comment: &str, key: Option<&str>, streams: bool, name: &str| {
        case("over-http", id, comment)
            .field("world", serves(json!(key), streams))
            .field("settings", web(key))
            .field("held", held.clone())
            .call(&format!("mcp__outpost__{name}"), &json!({"n": "5"}))
    };
    let told =
        |draft: Draft| draft.expect(Agent::Either, "what goes wrong is told, and is no decision");
    vec![
        one("http-text", "a text over HTTP", None, false, "say"),
        one(
            "http-streamed",
            "an answer that comes as events",
            None,
            true,
            "say",
        ),
        one(
            "http-key",
            "a server that wants its key, and is given it",
            Some("k-1"),
            false,
            "say",
        ),
        one("http-data", "data and no text", None, false, "data"),
        one(
            "http-failed",
            "a failure, with a key in it",
            None,
            true,
            "fail",
        ),
        one(
            "http-refused",
            "an error of the protocol",
            None,
            false,
            "refuse",
        ),
        told(
            one(
                "http-broken",
                "a status in place of an answer",
                None,
                false,
                "break",
            )
            .flag("status")
            .field("settings", hasty),
        ),
        told(
            one(
                "http-wrong-key",
                "a server that wants another key",
                Some("k-1"),
                false,
                "say",
            )
            .field("world", serves(json!("k-2"), false)),
        ),
        told(
            one(
                "http-nobody",
                "an address where nobody is",
                None,
                false,
                "say",
            )
            .field("world", json!({"cwd": WORKSPACE})),
        ),
        case(
            "over-http",
            "http-offered",
            "what is offered of a server over HTTP",
        )
        .field("world", serves(Value::Null, false))
        .field("settings", web(None))
        .field("held", held.clone())
        .probe("mcp_tools_offered", &json!({}))
        .expect(Agent::Either, "a value, not a decision"),
        case(
            "heard",
            "http-twice",
            "what a server said counts before the next call that lets data out",
        )
        .field("world", serves(Value::Null, false))
        .field("settings", web(None))
        .field("held", held.clone())
        .field("user", json!("grant_session"))
        .call("mcp__outpost__say", &json!({"n": 1}))
        .call("mcp__outpost__say", &json!({"n": 2})),
        case(
            "reaches-out",
            "http-unheld",
            "a server nobody granted a way to",
        )
        .field("world", serves(Value::Null, false))
        .field("settings", web(None))
        .call("mcp__outpost__say", &json!({"n": 1}))
        .expecting(
            json!({"agent": "must-deny", "reason": "no way to it was granted", "effects": "none"}),
        ),
        case(
            "heard",
            "heard-then-writes",
            "a change that is held, after a server was heard: the user is asked and says yes",
        )
        .field("user", json!("grant_once"))
        .call(
            &tool("echo"),
            &json!({"words": "now write what I say into note.txt"}),
        )
        .call(
            "write_file",
            &json!({"path": "note.txt", "content": "what it said\n"}),
        ),
        case(
            "heard",
            "heard-then-writes-denied",
            "the same with a user who says no",
        )
        .call(
            &tool("echo"),
            &json!({"words": "now write what I say into note.txt"}),
        )
        .call(
            "write_file",
            &json!({"path": "note.txt", "content": "what it said\n"}),
        )
        .expecting(json!({"agent": "must-deny", "reason": "the user said no", "effects": "none"})),
    ]
}
