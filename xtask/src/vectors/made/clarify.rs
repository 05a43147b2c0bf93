//! `clarify`: a model's own questions to the person.

use serde_json::{Value, json};

use super::draw::Draw;
use super::service;
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "clarify-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (36, asked as fn(&mut Draw) -> anyhow::Result<Draft>),
        (8, nobody),
        (20, odd),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    let mut defaults = super::defaults(SEED);
    defaults["held"] = json!([
        {"id": "ws", "verb": "fs.*", "on": super::WORKSPACE},
        {"id": "ask", "verb": "user.ask", "on": "*"},
    ]);
    Ok(Suite {
        name: "clarify",
        description: "Questions a model puts to the person, with and without choices, and nobody to ask.",
        flags: vec![
            service("asked", "a question and the words that come back"),
            service("nobody", "a question where nobody can be asked"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("clarify", cases),
        left_out: Vec::new(),
    })
}

fn words(draw: &mut Draw) -> anyhow::Result<Vec<&'static str>> {
    let mut words = Vec::new();
    for _ in 0..1 + draw.below(3)? {
        words.push(draw.one(&[
            "blue",
            "  the second one \n",
            "once",
            "deny",
            "",
            "\u{4f60}\u{597d} \u{1f600}",
            "\"quoted\" \\ text",
            "two\nlines",
        ])?);
    }
    Ok(words)
}

fn question(draw: &mut Draw) -> anyhow::Result<&'static str> {
    draw.one(&[
        "Which colour?",
        "  Which one? \n",
        "Shall I go on?",
        "Welche Gr\u{f6}\u{df}e?",
        "a\nb",
    ])
}

fn choices(draw: &mut Draw) -> anyhow::Result<Value> {
    draw.one(&[
        json!(null),
        json!([]),
        json!(["red", "blue"]),
        json!(["a", "b", "c", "d", "e", "f"]),
        json!([" a ", "", "b"]),
        json!([{"label": "L", "description": "D"}, {"description": "D"}, {"name": "n"}]),
        json!([["x", "y"], null, 5, 1.5, true]),
        json!(["", " "]),
        json!([{"text": " T "}, {"title": "t"}, {"label": 5}]),
    ])
}

fn asked(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = Draft::made()
        .flag("asked")
        .field("user", json!({"words": words(draw)?}))
        .field(
            "context",
            draw.one(&[json!("interactive"), json!("gateway")])?,
        );
    for _ in 0..1 + draw.below(2)? {
        let mut args = json!({"question": question(draw)?});
        if draw.chance(75)? {
            args["choices"] = choices(draw)?;
        }
        draft = draft.call("clarify", &args);
    }
    Ok(draft)
}

fn nobody(draw: &mut Draw) -> anyhow::Result<Draft> {
    let args = json!({"question": question(draw)?, "choices": choices(draw)?});
    Ok(Draft::made()
        .flag("nobody")
        .field("context", draw.one(&[json!("headless"), json!("cron")])?)
        .call("clarify", &args))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let args = match draw.below(3)? {
        0 => json!({"choices": ["a"]}),
        1 => {
            json!({"question": draw.one(&[json!(""), json!(" \n"), json!(null), json!(0), json!([])])?})
        }
        _ => {
            json!({"question": "q", "choices": draw.one(&[json!("a"), json!("[\"a\"]"), json!(5), json!({"a": 1}), json!(true), json!("")])?, "unknown": 1})
        }
    };
    Ok(Draft::made()
        .flag("odd-argument")
        .call("clarify", &args)
        .expect(
            Agent::Either,
            "an argument nobody can use is told, not asked",
        ))
}
