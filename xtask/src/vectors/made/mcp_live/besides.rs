//! What servers have besides their tools: resources and prompts, through the four
//! tools that stand for them, and what tools say of resources.

mod hearing;
mod prompting;
mod reading;

use serde_json::{Value, json};

use super::{case, settings, with_haste};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Flag;

/// The program.
pub const LIBRARY: &str = include_str!("library.py");
/// Where it lies.
pub const PROGRAM: &str = "/home/u/proj/library.py";
const LIST_RESOURCES: &str = "mcp__library__list_resources";
const READ: &str = "mcp__library__read_resource";
const LIST_PROMPTS: &str = "mcp__library__list_prompts";
const GET: &str = "mcp__library__get_prompt";
/// Why a result that differs decides nothing.
const TOLD: &str = "what goes wrong is told, and is no decision";

/// What these cases are about.
pub fn flags() -> Vec<Flag> {
    let about = super::service;
    vec![
        about("resources", "what a server has to read: listed and read"),
        about(
            "prompts",
            "what a server has to say to a model: listed and filled in",
        ),
        about(
            "stock-offered",
            "the tools that stand for resources and prompts",
        ),
        about("parts-of-a-prompt", "messages of a prompt that are no text"),
        about("not-as-spelt", "arguments the protocol has no room for"),
        about("no-answer", "an answer that is none of the protocol's"),
        about(
            "odd-uri",
            "a name of a resource that is written in a way of its own",
        ),
    ]
}

/// The cases.
pub fn cases() -> Vec<Draft> {
    offered()
        .into_iter()
        .chain(reading::cases())
        .chain(prompting::cases())
        .chain(lists())
        .chain(troubles())
        .chain(links())
        .chain(hearing::cases())
        .collect()
}

/// The program as a server of Hermes' settings, behaving like this.
fn library(manner: &str) -> Value {
    json!({
        "command": "python3",
        "args": [PROGRAM, manner],
        "timeout": 20,
        "connect_timeout": 20,
    })
}

/// Only this one is there.
fn only(server: Value) -> Value {
    settings(&[("desk", json!({"enabled": false})), ("library", server)])
}

fn with(server: Value, flag: &str, id: &str, comment: &str) -> Draft {
    case(flag, id, comment).field("settings", only(server))
}

fn told(draft: Draft) -> Draft {
    draft.expect(Agent::Either, TOLD)
}

fn offered() -> Vec<Draft> {
    let probed = |id: &str, comment: &str, server: Value| {
        with(server, "stock-offered", id, comment)
            .probe("mcp_tools_offered", &json!({}))
            .expect(Agent::Either, "a value, not a decision")
    };
    let switched = |tools: Value| {
        let mut server = library("well");
        server["tools"] = tools;
        server
    };
    vec![
        probed(
            "stock-offered",
            "all four, among the server's tools, in their order",
            library("well"),
        ),
        probed(
            "stock-offered-resources",
            "a server that has resources and no prompts",
            library("resources"),
        ),
        probed(
            "stock-offered-prompts",
            "a server that has prompts and no resources",
            library("prompts"),
        ),
        probed(
            "stock-offered-none",
            "a server that says it has neither, and would answer all the same",
            library("neither"),
        ),
        probed(
            "stock-offered-null",
            "a server that says of both that there is nothing",
            library("nothing-null"),
        ),
        probed(
            "stock-offered-alone",
            "a server without a single tool",
            library("no-tools"),
        ),
        probed(
            "stock-offered-same-names",
            "tools of the server's own that are called like two of the four",
            library("same-names"),
        ),
        probed(
            "stock-offered-own-names",
            "the same where it has nothing besides",
            library("neither-same-names"),
        ),
        probed(
            "stock-off",
            "both switched off",
            switched(json!({"resources": false, "prompts": false})),
        ),
        probed(
            "stock-resources-off",
            "resources switched off, in a word",
            switched(json!({"resources": "Off"})),
        ),
        probed(
            "stock-prompts-off",
            "prompts switched off, in another word",
            switched(json!({"prompts": "no"})),
        ),
        probed(
            "stock-odd-switch",
            "a switch that is none",
            switched(json!({"resources": "perhaps", "prompts": 0})),
        ),
        probed(
            "stock-with-some-tools",
            "the tools that are taken say nothing about these",
            switched(json!({"include": ["link"]})),
        ),
        with(
            switched(json!({"resources": false})),
            "stock-offered",
            "stock-off-and-called",
            "what was switched off is called",
        )
        .call(READ, &json!({"uri": "lib:notes/1"}))
        .call(LIST_PROMPTS, &json!({}))
        .expect(Agent::Either, "there is nothing to call"),
        with(
            library("prompts"),
            "stock-offered",
            "stock-missing-and-called",
            "what the server has not is called",
        )
        .call(LIST_RESOURCES, &json!({}))
        .call(GET, &json!({"name": "plain"}))
        .expect(Agent::Either, "there is nothing to call"),
        told(
            with(
                library("deaf"),
                "stock-offered",
                "stock-said-and-not-there",
                "a server that says it has them, and has none",
            )
            .call(LIST_RESOURCES, &json!({}))
            .call(READ, &json!({"uri": "lib:notes/1"}))
            .call(LIST_PROMPTS, &json!({}))
            .call(GET, &json!({"name": "plain"})),
        ),
        with(
            library("same-names"),
            "stock-offered",
            "stock-same-names-called",
            "the name of one of the four is not the tool's",
        )
        .call(READ, &json!({"uri": "lib:notes/1"}))
        .call(GET, &json!({"name": "plain"})),
        with(
            library("neither-same-names"),
            "stock-offered",
            "stock-own-names-called",
            "where it has nothing besides, it is the tool's",
        )
        .call(READ, &json!({"uri": "lib:notes/1"})),
        with(
            library("no-tools"),
            "stock-offered",
            "stock-alone-called",
            "a server without a single tool is asked",
        )
        .call(LIST_RESOURCES, &json!({}))
        .call(GET, &json!({"name": "plain"})),
    ]
}

fn lists() -> Vec<Draft> {
    let both = |manner: &str, comment: &str| {
        with(
            library(manner),
            "resources",
            &format!("lists-{manner}"),
            comment,
        )
        .flag("prompts")
        .call(LIST_RESOURCES, &json!({}))
        .call(LIST_PROMPTS, &json!({}))
    };
    vec![
        both("pages", "lists that come in parts"),
        both("empty", "lists with nothing in them"),
        both(
            "no-end-word",
            "an end that is said with a word of no letters",
        ),
        both("circle", "lists that go round in circles"),
        both("endless", "lists without an end"),
        told(both("breaks-off", "lists that fail at their second part")),
        both("many", "lists of more letters than are told").flag("too-long"),
        told(both("no-list", "answers without a list").flag("no-answer")),
        told(both("bad-uri", "a resource whose name is no URI").flag("odd-uri")),
    ]
}

fn troubles() -> Vec<Draft> {
    let no_answer = |id: &str, comment: &str, uri: &str| {
        told(
            with(library("well"), "resources", &format!("read-{id}"), comment)
                .flag("no-answer")
                .call(READ, &json!({ "uri": uri })),
        )
    };
    let no_prompt = |id: &str, comment: &str, name: &str| {
        told(
            with(library("well"), "prompts", &format!("prompt-{id}"), comment)
                .flag("no-answer")
                .call(GET, &json!({ "name": name })),
        )
    };
    let late = |id: &str, comment: &str| with(with_haste(library("well")), "trouble", id, comment);
    vec![
        no_answer(
            "neither",
            "a part that is neither text nor document",
            "lib:neither",
        ),
        no_answer("wrong", "a text in place of the parts", "lib:wrong"),
        no_answer(
            "no-contents",
            "no parts and no list of them",
            "lib:no-contents",
        ),
        no_prompt("system", "a message of somebody who has no say", "system"),
        no_prompt("later", "a part of a kind that is not known", "later"),
        no_prompt("wrong", "no list of messages", "wrong"),
        told(
            late("read-half", "half of a letter in an answer")
                .call(READ, &json!({"uri": "lib:half"})),
        ),
        told(
            late("read-hangs", "a resource that never comes")
                .call(READ, &json!({"uri": "lib:hangs"})),
        ),
        told(
            late("prompt-hangs", "a prompt that never comes").call(GET, &json!({"name": "hangs"})),
        ),
        told(
            with(
                library("well"),
                "trouble",
                "read-dies",
                "a server that ends in the middle, and is asked again",
            )
            .flag("remembers")
            .call(READ, &json!({"uri": "lib:dies"}))
            .call(READ, &json!({"uri": "lib:notes/1"})),
        ),
        told(
            with(
                library("well"),
                "trouble",
                "prompt-dies",
                "the same with a prompt",
            )
            .flag("remembers")
            .call(GET, &json!({"name": "dies"}))
            .call(GET, &json!({"name": "plain"})),
        ),
    ]
}

fn links() -> Vec<Draft> {
    let one = |id: &str, comment: &str, name: &str| {
        with(library("well"), "answered", id, comment)
            .call(&format!("mcp__library__{name}"), &json!({}))
    };
    vec![
        one(
            "link-with-more",
            "a link, with all that is said of it",
            "link",
        ),
        one(
            "links-among-texts",
            "links and a resource among texts",
            "links",
        ),
        told(one(
            "link-in-a-failure",
            "a failure with a link and a resource in it",
            "failed_link",
        )),
        with(
            library("neither"),
            "answered",
            "link-to-nowhere",
            "a link of a server that has no resources",
        )
        .call("mcp__library__link", &json!({})),
        with(
            library("well"),
            "answered",
            "link-followed",
            "a link, and what it leads to",
        )
        .call("mcp__library__link", &json!({}))
        .call(READ, &json!({"uri": "lib:notes/1"})),
    ]
}
