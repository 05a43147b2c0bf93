//! Resources that are read, and lists of them that are asked for.

use serde_json::{Value, json};

use super::super::{super::at, with_leave};
use super::{LIST_RESOURCES, READ, library, told, with};
use crate::vectors::draft::{Agent, Draft};

/// The cases.
pub fn cases() -> Vec<Draft> {
    let one = |id: &str, comment: &str, args: Value| {
        with(library("well"), "resources", &format!("read-{id}"), comment).call(READ, &args)
    };
    let read = |id: &str, comment: &str, uri: &str| one(id, comment, json!({ "uri": uri }));
    let kept = |draft: Draft| {
        draft.flag("kept-for-later").expect(
            Agent::Either,
            "what is no text is named where it is not kept",
        )
    };
    let held =
        |id: &str, comment: &str, uri: &str| with_leave(read(id, comment, uri).flag("heard"));
    vec![
        with(
            library("well"),
            "resources",
            "resources-listed",
            "what there is, with all that is said of it",
        )
        .call(LIST_RESOURCES, &json!({})),
        with(
            library("well"),
            "resources",
            "resources-listed-with-more",
            "arguments nobody asked for",
        )
        .call(LIST_RESOURCES, &json!({"cursor": "1", "x": null})),
        read("text", "a text in letters of all kinds", "lib:notes/1"),
        read("asked", "what the server is asked", "lib:asked"),
        one(
            "asked-with-more",
            "what it is asked where there is more",
            json!({"uri": "lib:asked", "cursor": 1, "name": "x"}),
        ),
        read(
            "parts",
            "several texts, one of them empty, one a blank",
            "lib:parts",
        ),
        read("empty", "a text without a letter", "lib:empty"),
        read("nothing", "no part at all", "lib:nothing"),
        read("nul", "letters nobody sees", "lib:nul"),
        read("long", "fifty thousand letters", "lib:long/5000"),
        read(
            "too-long",
            "a hundred and twenty thousand letters",
            "lib:long/12000",
        )
        .flag("too-long"),
        kept(read("picture", "a picture", "lib:picture")),
        kept(read("document", "a document", "lib:document")),
        kept(read(
            "mixed",
            "a document without a kind, between texts",
            "lib:mixed",
        )),
        kept(read(
            "big-document",
            "a document of a hundred and fifty thousand bytes",
            "lib:big-blob",
        )),
        held("picture-held", "a picture, kept with leave", "lib:picture"),
        held(
            "document-held",
            "a document, kept with leave",
            "lib:document",
        ),
        held(
            "mixed-held",
            "a document without a kind, kept with leave",
            "lib:mixed",
        ),
        held(
            "big-document-held",
            "a long document, kept with leave",
            "lib:big-blob",
        ),
        held(
            "odd-document-held",
            "a document with a name of many kinds of letters",
            "lib:odd-blob",
        ),
        told(read(
            "bad-document",
            "a document that is not spelt as one",
            "lib:bad-blob",
        )),
        told(read(
            "unknown",
            "a resource that is not there",
            "lib:no-such",
        )),
        told(read("key", "a failure, with a key in it", "lib:key")),
        told(one("no-uri", "no name", json!({}))),
        told(one(
            "empty-uri",
            "a name without a letter",
            json!({"uri": ""}),
        )),
        told(one("null-uri", "nothing for a name", json!({"uri": null}))),
        told(one("false-uri", "a no for a name", json!({"uri": false}))),
        told(one("number-uri", "a number for a name", json!({"uri": 5})).flag("not-as-spelt")),
        told(
            one(
                "list-uri",
                "a list for a name",
                json!({"uri": ["lib:notes/1"]}),
            )
            .flag("not-as-spelt"),
        ),
        told(read("no-scheme", "a name that is no URI", "notes/1").flag("odd-uri")),
        told(
            read(
                "blanks",
                "a name with blanks around it, and in it",
                " lib:a sked ",
            )
            .flag("odd-uri"),
        ),
        told(read("capitals", "a host in capitals", "HTTPS://Shelf.Example/P").flag("odd-uri")),
        told(
            with(
                library("well"),
                "resources",
                "read-fails-again-and-again",
                "failures of these are not counted",
            )
            .call(READ, &json!({"uri": "lib:no-such"}))
            .call(READ, &json!({"uri": "lib:no-such"}))
            .call(READ, &json!({"uri": "lib:no-such"}))
            .call(READ, &json!({"uri": "lib:notes/1"}))
            .call("mcp__library__link", &json!({})),
        ),
        told(
            with(
                library("well"),
                "resources",
                "read-while-it-rests",
                "a server whose tools are left alone for a while is read all the same",
            )
            .call("mcp__library__failed_link", &json!({}))
            .call("mcp__library__failed_link", &json!({}))
            .call("mcp__library__failed_link", &json!({}))
            .call("mcp__library__link", &json!({}))
            .call(READ, &json!({"uri": "lib:notes/1"})),
        ),
        with(
            library("well"),
            "remembers",
            "read-remembers",
            "a server that counts what was read",
        )
        .call(READ, &json!({"uri": "lib:count"}))
        .call(READ, &json!({"uri": "lib:count"}))
        .expect(
            Agent::Either,
            "a server that is a program lives for one call",
        ),
        with(
            library("well"),
            "changes",
            "read-writes",
            "reading a resource changes a file where that is held",
        )
        .call(READ, &json!({"uri": "lib:write/new.txt"}))
        .expecting(json!({"agent": "must-permit", "effects": [at("new.txt")]})),
        with(
            library("well"),
            "reaches-out",
            "read-writes-unheld",
            "the same where nobody granted that",
        )
        .field("held", json!([]))
        .call(READ, &json!({"uri": "lib:write/new.txt"}))
        .expecting(
            json!({"agent": "must-deny", "reason": "nothing was granted", "effects": "none"}),
        ),
    ]
}
