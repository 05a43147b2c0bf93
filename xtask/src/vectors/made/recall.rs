//! `session_search`: what was said before is listed, read, looked through and searched.
//!
//! The suite `recall` asks about conversations that are the same in every case, `recall-drawn`
//! about others in each. Hermes ranks by a formula over all that was ever said, so a case of
//! the second kind is about figures no other case has.

mod desk;
mod drawn;
mod queries;
mod talk;

use serde_json::{Value, json};

use self::talk::Talk;
use super::draw::Draw;
use super::service;
use crate::vectors::draft::Draft;
use crate::vectors::emit::{Flag, Suite};

const SEED: &str = "recall-1";
const TOOL: &str = "session_search";

/// Flags both suites have.
const DISCOVER: Flag = service("discover", "a search for words");
const BROWSE: Flag = service("browse", "the conversations of late");
const READ: Flag = service("read", "a whole conversation, or its two ends");
const SCROLL: Flag = service("scroll", "the messages around one");

/// The suite `recall`.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for query in all_queries() {
        cases.push(discover(&json!({ "query": query })));
    }
    cases.extend(filtered(&mut draw)?);
    cases.extend(browsed());
    cases.extend(read());
    cases.extend(scrolled());
    cases.extend(followed());
    cases.extend(odd());
    cases.extend(half());
    cases.extend(other_ways());
    cases.extend(of_another());
    let mut defaults = defaults(SEED);
    defaults["world"]["conversations"] = json!(desk::conversations());
    Ok(Suite {
        name: "recall",
        description: "What was said in earlier conversations: listed, read, looked through and searched, by every way of writing a query, with arguments of the wrong type.",
        flags: vec![
            DISCOVER,
            BROWSE,
            READ,
            SCROLL,
            service("followed", "calls that go on from what an earlier one told"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
            service("surrogate", "half of a surrogate pair, which is no letter"),
            service(
                "like-a-list",
                "a text that begins as Hermes marks what is no text in its database",
            ),
            service("other-digits", "a number in the digits of another script"),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("recall", cases),
        left_out: Vec::new(),
    })
}

/// The suite `recall-drawn`.
pub fn drawn() -> anyhow::Result<Suite> {
    let cases = drawn::cases()?;
    Ok(Suite {
        name: "recall-drawn",
        description: "Made-up conversations and what is asked about them: other lengths, times and words in each case.",
        flags: vec![DISCOVER, BROWSE, READ, SCROLL],
        defaults: defaults(drawn::SEED),
        rows: cases.len(),
        cases: super::numbered("recall-drawn", cases),
        left_out: Vec::new(),
    })
}

fn defaults(seed: &str) -> Value {
    let mut defaults = super::defaults(seed);
    defaults["held"] = json!([
        {"id": "ws", "verb": "fs.*", "on": super::WORKSPACE},
        {"id": "talks", "verb": "session.read", "on": "*"},
    ]);
    defaults["expect"] = json!({
        "agent": "either",
        "reason": "what cannot be found or used is told; the relation judges what is told",
    });
    defaults
}

fn call(flag: &str, args: &Value) -> Draft {
    Draft::made().flag(flag).call(TOOL, args)
}

fn discover(args: &Value) -> Draft {
    call("discover", args)
}

fn all_queries() -> impl Iterator<Item = String> {
    let listed = [
        &queries::WORDS[..],
        &queries::ODD,
        &queries::JOINED,
        &queries::LETTERS,
        &queries::TITLES,
    ];
    let long = [
        "docker ".repeat(400),
        format!("docker {}", "x".repeat(2_100)),
        format!("{} docker", "y".repeat(2_041)),
        format!("docker{}", " OR nosuchword".repeat(150)),
        format!("{}docker\"", "\"".repeat(301)),
        "\u{5927}\u{522b}\u{5c71} ".repeat(600),
    ];
    listed
        .into_iter()
        .flatten()
        .map(|query| (*query).to_owned())
        .chain(long)
}

/// Roles, orders and numbers of results beside a query.
fn filtered(draw: &mut Draw) -> anyhow::Result<Vec<Draft>> {
    let query = |draw: &mut Draw| {
        draw.one(&[
            "docker",
            "kingfisher",
            "ostrich",
            "flamingo",
            "deploy*",
            "table",
            "terminal",
            "line OR heading",
            "zebrafish",
            "migrate",
            "\u{6f13}\u{6c5f}\u{8fb9}",
            "\u{5c71}",
            "read_file",
            "limits.yaml",
            "command",
        ])
    };
    let mut cases = Vec::new();
    for role in [
        json!("user"),
        json!("assistant"),
        json!("tool"),
        json!("user,assistant,tool"),
        json!(" user , tool "),
        json!("tool,"),
        json!(",,"),
        json!(","),
        json!(""),
        json!("  "),
        json!("Tool"),
        json!("system"),
        json!("user;tool"),
        json!(null),
        json!(["tool"]),
        json!(5),
        json!(true),
    ] {
        for query in ["flamingo", query(draw)?] {
            cases.push(discover(&json!({"query": query, "role_filter": role})));
        }
    }
    for sort in [
        json!("newest"),
        json!("oldest"),
        json!(" Newest "),
        json!("OLDEST"),
        json!("relevance"),
        json!(""),
        json!(null),
        json!(1),
        json!(["newest"]),
        json!(true),
    ] {
        for query in ["docker", "kingfisher", query(draw)?] {
            cases.push(discover(
                &json!({"query": query, "sort": sort, "limit": 10}),
            ));
        }
    }
    for limit in [
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(10),
        json!(11),
        json!(50),
        json!(-1),
        json!("3"),
        json!(" 4 "),
        json!("x"),
        json!(""),
        json!(2.9),
        json!("2.9"),
        json!(true),
        json!(false),
        json!(null),
        json!([2]),
        json!({}),
        json!(1e300),
        json!("1_0"),
        json!("\u{663}"),
    ] {
        let query = query(draw)?;
        cases.push(discover(&json!({"query": query, "limit": limit})));
    }
    for _ in 0..24 {
        let mut args = json!({"query": query(draw)?});
        args["role_filter"] = draw.one(&[
            json!("tool"),
            json!("user,assistant,tool"),
            json!("assistant"),
        ])?;
        args["sort"] = draw.one(&[json!("newest"), json!("oldest"), json!(null)])?;
        args["limit"] = json!(1 + draw.below(10)?);
        cases.push(discover(&args));
    }
    Ok(cases)
}

fn browsed() -> Vec<Draft> {
    let mut cases = vec![call("browse", &json!({}))];
    for limit in [
        json!(0),
        json!(1),
        json!(5),
        json!(10),
        json!(99),
        json!(-7),
        json!("3"),
        json!("z"),
        json!(true),
        json!(null),
        json!(3.7),
        json!([]),
    ] {
        cases.push(call("browse", &json!({"limit": limit})));
    }
    for query in [
        json!(""),
        json!("   "),
        json!("\n\t"),
        json!(null),
        json!(5),
        json!(0),
        json!(true),
        json!(["docker"]),
        json!({"a": 1}),
        json!("\u{a0}"),
        json!("\u{3000}"),
    ] {
        cases.push(call("browse", &json!({"query": query, "limit": 4})));
    }
    for args in [
        json!({"session_id": ""}),
        json!({"session_id": "  "}),
        json!({"session_id": null, "around_message_id": 3}),
        json!({"session_id": 5}),
        json!({"session_id": ["x"]}),
        json!({"around_message_id": 3}),
        json!({"window": 3, "sort": "oldest", "role_filter": "tool"}),
        json!({"profile": "work"}),
        json!({"profile": "../etc", "limit": 2}),
        json!({"unknown": 1, "limit": 2}),
    ] {
        cases.push(call("browse", &args));
    }
    cases
}

fn read() -> Vec<Draft> {
    let of = |id: &str| call("read", &json!({ "session_id": id }));
    let mut cases: Vec<Draft> = (0..desk::TALKS)
        .map(|number| of(&Talk::id(number)))
        .collect();
    let id = Talk::id(desk::SHORT);
    for spelled in [
        format!(" {id} "),
        format!("\n{id}"),
        id.to_uppercase(),
        id.chars().take(8).collect(),
        format!("{id}0"),
        format!("default/{id}"),
        format!("work/{id}"),
        format!("/{id}"),
        format!("{id}/"),
        format!("a/b/{id}"),
        format!("@session:default/{id}"),
        format!("default/ {id}"),
        "/".to_owned(),
        "nobody".to_owned(),
        "..".to_owned(),
        "../conversations".to_owned(),
        "%".to_owned(),
        "\u{0}".to_owned(),
        "0".repeat(32),
    ] {
        cases.push(of(&spelled));
    }
    for args in [
        json!({"session_id": id, "query": "docker"}),
        json!({"session_id": id, "limit": 1, "window": 1}),
        json!({"session_id": id, "around_message_id": null}),
        json!({"session_id": id, "profile": "work"}),
        json!({"session_id": id, "profile": "default"}),
        json!({"session_id": id, "profile": ""}),
        json!({"session_id": id, "profile": 5}),
        json!({"session_id": format!("work/{id}"), "profile": "default"}),
    ] {
        cases.push(call("read", &args));
    }
    cases
}

/// The first conversation's messages have the same numbers for both, and so have those that
/// are nowhere; what is in another is asked about by what an earlier call told.
fn scrolled() -> Vec<Draft> {
    let first = Talk::id(0);
    let mut cases = Vec::new();
    for around in [
        json!(1),
        json!(2),
        json!(4),
        json!(5),
        json!(0),
        json!(-1),
        json!(99),
        json!("2"),
        json!(" 3 "),
        json!("x"),
        json!(""),
        json!(2.9),
        json!("2.9"),
        json!(true),
        json!(false),
        json!([2]),
        json!({}),
        json!(999_999),
        json!(9_007_199_254_740_993_u64),
        json!("1_0"),
        json!(-0.5),
    ] {
        cases.push(call(
            "scroll",
            &json!({"session_id": first, "around_message_id": around, "window": 1}),
        ));
    }
    for window in [
        json!(0),
        json!(-5),
        json!(1),
        json!(2),
        json!(20),
        json!(21),
        json!(1000),
        json!("2"),
        json!("x"),
        json!(""),
        json!(1.9),
        json!(true),
        json!(false),
        json!(null),
        json!([3]),
    ] {
        cases.push(call(
            "scroll",
            &json!({"session_id": first, "around_message_id": 2, "window": window}),
        ));
    }
    for id in [
        format!(" {first} "),
        format!("default/{first}"),
        format!("work/{first}"),
        "nobody".to_owned(),
        Talk::id(desk::EMPTY),
        first.to_uppercase(),
    ] {
        cases.push(call(
            "scroll",
            &json!({"session_id": id, "around_message_id": 2}),
        ));
    }
    for args in [
        json!({"session_id": first, "around_message_id": 3, "query": "docker"}),
        json!({"session_id": first, "around_message_id": 3, "profile": "work"}),
        json!({"session_id": first, "around_message_id": 3, "limit": 0, "sort": 1}),
    ] {
        cases.push(call("scroll", &args));
    }
    cases
}

/// A place in the result of an earlier step.
fn told(step: usize, at: &str) -> Value {
    json!({"$from": step, "at": at})
}

fn followed() -> Vec<Draft> {
    let mut cases = Vec::new();
    // Around each of some messages of long conversations, as far as the two ends.
    for (number, place, window) in [
        (desk::LONG, 0, 5),
        (desk::LONG, 1, 3),
        (desk::LONG, 10, 20),
        (desk::LONG, 19, 20),
        (desk::LONG, 20, 4),
        (desk::LONG, 24, 1),
        (desk::LONG, 29, 5),
        (desk::LONG, 29, 20),
        (desk::THIRTY, 0, 1),
        (desk::THIRTY, 15, 7),
        (desk::THIRTY, 29, 2),
        (desk::THIRTY_ONE, 19, 9),
        (desk::THIRTY_ONE, 29, 20),
        (desk::TOOLS, 2, 2),
        (desk::TOOLS, 4, 1),
        (desk::TOOLS, 7, 5),
        (desk::SHORT, 0, 5),
    ] {
        let id = Talk::id(number);
        cases.push(call("followed", &json!({ "session_id": id })).call(
            TOOL,
            &json!({"session_id": id, "around_message_id": told(1, &format!("/messages/{place}/id")), "window": window}),
        ));
    }
    // From what was found on, forwards and backwards.
    for query in [
        "albatross",
        "flamingo",
        "docker",
        "ostrich",
        "line 7",
        "\u{6f13}\u{6c5f}\u{8fb9}",
        "Long migration",
        "kingfisher",
    ] {
        let found = told(1, "/results/0/session_id");
        let mut draft = call("followed", &json!({"query": query, "role_filter": "user,assistant,tool", "limit": 2}))
            .call(TOOL, &json!({"session_id": found, "around_message_id": told(1, "/results/0/match_message_id"), "window": 3}));
        for end in ["/messages/0/id", "/messages/3/id"] {
            draft = draft.call(
                TOOL,
                &json!({"session_id": found, "around_message_id": told(2, end), "window": 2}),
            );
        }
        cases.push(draft.call(TOOL, &json!({"session_id": found})));
    }
    cases.push(call("followed", &json!({"limit": 2})).call(
        TOOL,
        &json!({"session_id": told(1, "/results/1/session_id")}),
    ));
    cases
}

fn odd() -> Vec<Draft> {
    let values = [
        json!([]),
        json!({}),
        json!([1, "x"]),
        json!(1.5),
        json!(false),
    ];
    let mut cases = Vec::new();
    for name in [
        "query",
        "role_filter",
        "limit",
        "session_id",
        "around_message_id",
        "window",
        "sort",
        "profile",
    ] {
        for value in &values {
            let mut args = json!({"query": "docker", "limit": 1});
            args[name] = value.clone();
            cases.push(call("odd-argument", &args));
        }
    }
    for args in [
        json!({"query": "docker", "session_id": "", "around_message_id": 2}),
        json!({"query": "docker", "session_id": "  ", "around_message_id": null}),
        json!({"query": "docker", "profile": "work", "limit": 1}),
        json!({"no_such_argument": null}),
    ] {
        cases.push(call("odd-argument", &args));
    }
    cases
}

/// What Hermes makes of a text by the way it keeps it, and of digits by the way Python reads them.
fn other_ways() -> Vec<Draft> {
    let marked = Talk::new(32, "cli", 10_000)
        .user("tell me about pelicans")
        .answer("\u{0}json:[\"pelican\"]")
        .user("thanks")
        .value();
    let id = Talk::id(32);
    let world = json!({"cwd": super::WORKSPACE, "conversations": [marked]});
    let about = |args: Value| call("like-a-list", &args).field("world", world.clone());
    let other = json!({"session_id": Talk::id(0), "around_message_id": "\u{662}", "window": 1});
    vec![
        about(json!({"session_id": id})),
        about(json!({"query": "pelicans"})),
        about(json!({"query": "pelicans", "sort": "newest", "limit": 2})),
        call("other-digits", &other),
    ]
}

/// What was told of one conversation is no message of another.
fn of_another() -> impl Iterator<Item = Draft> {
    let pairs = [
        (0, desk::LONG, 0),
        (0, desk::LONG, 2),
        (desk::LONG, 0, 1),
        (desk::LONG, desk::THIRTY, 29),
        (desk::SHORT, desk::TOOLS, 0),
        (desk::TOOLS, desk::SHORT, 0),
        (desk::EMPTY, 0, 0),
    ];
    pairs.into_iter().map(|(asked, read, place)| {
        let number = told(1, &format!("/messages/{place}/id"));
        call("followed", &json!({"session_id": Talk::id(read)})).call(
            TOOL,
            &json!({"session_id": Talk::id(asked), "around_message_id": number, "window": 1}),
        )
    })
}

/// Only a model's own text can hold half a letter.
fn half() -> Vec<Draft> {
    let first = Talk::id(0);
    let arguments = [
        r#"{"query": "docker \ud800"}"#.to_owned(),
        r#"{"query": "\udcff"}"#.to_owned(),
        r#"{"query": "docker", "role_filter": "user,\ud800", "limit": 1}"#.to_owned(),
        r#"{"query": "docker", "sort": "\ud800", "limit": 1}"#.to_owned(),
        format!(r#"{{"session_id": "{first}\ud800"}}"#),
        format!(r#"{{"session_id": "{first}", "around_message_id": "\ud800"}}"#),
        format!(r#"{{"session_id": "{first}", "around_message_id": 2, "window": "\ud800"}}"#),
    ];
    let script = |arguments: &String| {
        json!({"script": {"parent": [
            {"calls": [{"name": TOOL, "arguments": arguments}]},
            {"text": "well"},
        ]}})
    };
    arguments
        .iter()
        .map(|arguments| {
            Draft::made()
                .flag("surrogate")
                .field("drive", json!("conversation"))
                .field("deadline_ms", json!(180_000))
                .probe("scripted_conversation", &script(arguments))
        })
        .collect()
}
