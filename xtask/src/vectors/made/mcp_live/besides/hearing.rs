//! How these are asked for by a model and over HTTP, and what follows from having heard.

use serde_json::{Value, json};

use super::super::{super::WORKSPACE, PORT, case, held_with_a_way, settings};
use super::{GET, LIST_PROMPTS, LIST_RESOURCES, READ, library, told, with};
use crate::vectors::draft::{Agent, Draft};

/// The cases.
pub fn cases() -> Vec<Draft> {
    conversations()
        .into_iter()
        .chain(over_http())
        .chain(afterwards())
        .collect()
}

fn conversations() -> Vec<Draft> {
    let say = |name: &str, args: Value| json!({"name": name, "arguments": args});
    let talk = |id: &str, comment: &str, answers: Value| {
        with(library("well"), "asked-in-a-conversation", id, comment)
            .field("drive", json!("conversation"))
            .probe(
                "scripted_conversation",
                &json!({"script": {"parent": answers}}),
            )
            .expect(Agent::Either, "a value, not a decision")
    };
    vec![
        talk(
            "chat-reads",
            "a model lists, reads and asks for a prompt, each in its frame",
            json!([
            {"calls": [say(LIST_RESOURCES, json!({}))]},
            {"calls": [say(READ, json!({"uri": "lib:frame"}))]},
            {"calls": [say(LIST_PROMPTS, json!({}))]},
            {"calls": [say(GET, json!({"name": "frame"}))]},
            {"calls": [say(READ, json!({}))]},
            {"text": "read"}]),
        ),
        talk(
            "chat-reads-beside",
            "several at once, beside a file",
            json!([
            {"calls": [
                say("read_file", json!({"path": "note.txt"})),
                say(READ, json!({"uri": "lib:notes/1"})),
                say(GET, json!({"name": "plain"})),
            ]},
            {"text": "done"}]),
        ),
        talk(
            "chat-almost",
            "names that are almost these",
            json!([
            {"calls": [say("mcp__library__read_resources", json!({"uri": "lib:notes/1"}))]},
            {"calls": [say("mcp_library_list_prompts", json!({}))]},
            {"text": "well"}]),
        ),
        with(
            library("well"),
            "asked-in-a-conversation",
            "batch-reads",
            "three of them and a file in one answer",
        )
        .field("drive", json!("conversation"))
        .probe(
            "tool_batch",
            &json!({"calls": [
                say(READ, json!({"uri": "lib:notes/1"})),
                say("read_file", json!({"path": "note.txt"})),
                say(LIST_PROMPTS, json!({})),
                say(GET, json!({"name": "plain"})),
            ]}),
        )
        .expect(Agent::Either, "a value, not a decision"),
    ]
}

fn over_http() -> Vec<Draft> {
    let world = |streams: bool| {
        json!({"cwd": WORKSPACE, "serves": {
            "port": PORT, "streams": streams,
            "announces": {"resources": {}, "prompts": {}},
            "methods": {
                "resources/list": {"result": {"resources": [{"uri": "web:1", "name": "one"}]}},
                "resources/read": {"result": {"contents": [{"uri": "web:1", "text": "asked $ASKED"}]}},
                "prompts/list": {"error": {"code": -32603, "message": "not today, key=abc"}},
                "prompts/get": {"result": {"messages": [
                    {"role": "user", "content": {"type": "text", "text": "asked $ASKED"}}]}},
            },
        }})
    };
    let outpost = settings(&[
        ("desk", json!({"enabled": false})),
        (
            "outpost",
            json!({"url": format!("http://127.0.0.1:{PORT}/mcp"), "timeout": 20, "connect_timeout": 20}),
        ),
    ]);
    let one = |id: &str, comment: &str, streams: bool| {
        case("over-http", id, comment)
            .field("world", world(streams))
            .field("settings", outpost.clone())
            .field("held", held_with_a_way())
    };
    vec![
        one(
            "http-stock-offered",
            "a server over HTTP without tools",
            false,
        )
        .probe("mcp_tools_offered", &json!({}))
        .expect(Agent::Either, "a value, not a decision"),
        one("http-resources", "what it has to read", false)
            .call("mcp__outpost__list_resources", &json!({})),
        one("http-read", "one of it, as events", true)
            .call("mcp__outpost__read_resource", &json!({"uri": "web:1"})),
        one("http-prompt", "a prompt", false).call(
            "mcp__outpost__get_prompt",
            &json!({"name": "p", "arguments": {"a": "1"}}),
        ),
        told(
            one("http-prompts-fail", "a failure, with a key in it", true)
                .call("mcp__outpost__list_prompts", &json!({})),
        ),
        one(
            "http-read-unheld",
            "a server nobody granted a way to",
            false,
        )
        .flag("reaches-out")
        .field(
            "held",
            json!([{"id": "ws", "verb": "fs.*", "on": WORKSPACE}]),
        )
        .call("mcp__outpost__read_resource", &json!({"uri": "web:1"}))
        .expecting(
            json!({"agent": "must-deny", "reason": "no way to it was granted", "effects": "none"}),
        ),
        one(
            "http-read-twice",
            "what was read counts before the next call that lets data out",
            false,
        )
        .flag("heard")
        .field("user", json!("grant_session"))
        .call("mcp__outpost__read_resource", &json!({"uri": "web:1"}))
        .call("mcp__outpost__list_resources", &json!({})),
    ]
}

/// What was heard asks before what was granted earlier.
fn afterwards() -> Vec<Draft> {
    let write = json!({"path": "note.txt", "content": "what it said\n"});
    let then_writes = |id: &str, comment: &str, tool: &str, args: Value| {
        with(library("well"), "heard", id, comment)
            .call(tool, &args)
            .call("write_file", &write)
            .expecting(
                json!({"agent": "must-deny", "reason": "the user said no", "effects": "none"}),
            )
    };
    vec![
        then_writes(
            "read-then-writes",
            "a change that is held, after a resource was read: the user says no",
            READ,
            json!({"uri": "lib:notes/1"}),
        ),
        then_writes(
            "listed-then-writes",
            "the same after a list was heard",
            LIST_RESOURCES,
            json!({}),
        ),
        then_writes(
            "prompted-then-writes",
            "the same after a prompt was heard",
            GET,
            json!({"name": "plain"}),
        ),
        with(
            library("well"),
            "heard",
            "read-then-writes-granted",
            "a user who says yes",
        )
        .field("user", json!("grant_once"))
        .call(READ, &json!({"uri": "lib:notes/1"}))
        .call("write_file", &write),
        told(
            with(
                library("well"),
                "resources",
                "asked-nothing-then-writes",
                "where the server was not asked, nothing was heard",
            )
            .call(READ, &json!({}))
            .call("write_file", &write),
        ),
    ]
}
