//! Prompts that are listed and filled in.

use serde_json::{Value, json};

use super::{GET, LIST_PROMPTS, library, told, with};
use crate::vectors::draft::{Agent, Draft};

/// The cases.
pub fn cases() -> Vec<Draft> {
    let one = |id: &str, comment: &str, args: Value| {
        with(library("well"), "prompts", &format!("prompt-{id}"), comment).call(GET, &args)
    };
    let named = |id: &str, comment: &str, name: &str| one(id, comment, json!({ "name": name }));
    let parts = |draft: Draft| {
        draft
            .flag("parts-of-a-prompt")
            .expect(Agent::Either, "what is no text is told in words")
    };
    vec![
        with(
            library("well"),
            "prompts",
            "prompts-listed",
            "what there is, with what each takes",
        )
        .call(LIST_PROMPTS, &json!({})),
        named("plain", "one that takes nothing", "plain"),
        one(
            "filled-in",
            "one with all its arguments",
            json!({"name": "greet", "arguments": {"who": "the \u{1f980}", "tone": "warm"}}),
        ),
        one(
            "some-arguments",
            "one with what it needs",
            json!({"name": "greet", "arguments": {"who": ""}}),
        ),
        told(one(
            "missing-argument",
            "one without what it needs",
            json!({"name": "greet", "arguments": {"tone": "warm"}}),
        )),
        told(named(
            "no-arguments",
            "one that needs something, and nothing is given",
            "greet",
        )),
        named("asked", "what the server is asked", "asked"),
        one(
            "asked-with-arguments",
            "what it is asked where arguments are given",
            json!({"name": "asked", "arguments": {"a": "1", "b": " "}}),
        ),
        one(
            "asked-with-text",
            "arguments that stand in a text",
            json!({"name": "asked", "arguments": "{\"a\": \"1\"}"}),
        ),
        one(
            "asked-with-null",
            "nothing for arguments",
            json!({"name": "asked", "arguments": null}),
        ),
        one(
            "asked-with-more",
            "arguments nobody asked for",
            json!({"name": "asked", "uri": "x", "arguments": {}}),
        ),
        named(
            "talk",
            "messages of both sides, from one whose name has odd letters",
            "talk \u{1f980}",
        ),
        named("nobody", "no message at all", "nobody"),
        named("empty", "a message without a letter", "empty"),
        named(
            "too-long",
            "messages of a hundred and eighty thousand letters",
            "long",
        )
        .flag("too-long"),
        parts(named("picture", "a text and a picture", "picture")),
        parts(named("sound", "a sound", "sound")),
        parts(named("page", "a resource with text", "page")),
        parts(named("document", "a document", "blob")),
        parts(named("link", "a link", "link")),
        told(named("unknown", "one that is not there", "no-such")),
        told(named("key", "a failure, with a key in it", "key")),
        told(one(
            "no-name",
            "no name",
            json!({"arguments": {"who": "x"}}),
        )),
        told(one(
            "empty-name",
            "a name without a letter",
            json!({"name": ""}),
        )),
        told(one("number-name", "a number for a name", json!({"name": 5})).flag("not-as-spelt")),
        told(
            one(
                "numbers",
                "numbers where texts are wanted",
                json!({"name": "greet", "arguments": {"who": 5}}),
            )
            .flag("not-as-spelt"),
        ),
        told(
            one(
                "arguments-list",
                "a list for arguments",
                json!({"name": "greet", "arguments": ["x"]}),
            )
            .flag("not-as-spelt"),
        ),
        told(
            one(
                "arguments-text",
                "arguments in a text that is cut off",
                json!({"name": "greet", "arguments": "{\"who"}),
            )
            .flag("not-as-spelt"),
        ),
    ]
}
