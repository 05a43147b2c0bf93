//! Conversations of drawn words, lengths and times, and queries drawn with them.

use serde_json::{Value, json};

use super::super::draw::Draw;
use super::talk::Talk;
use super::{TOOL, told};
use crate::vectors::draft::Draft;

pub const SEED: &str = "recall-drawn-1";

const WORDS: [&str; 22] = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "omega",
    "red",
    "green",
    "blue",
    "parse",
    "merge",
    "queue",
    "token",
    "re-queue",
    "beta.2",
    "to_ken",
    "Gr\u{fc}n",
    "\u{9879}\u{76ee}",
    "\u{5927}\u{522b}\u{5c71}\u{9879}\u{76ee}",
    "x1",
    "don't",
    "OR",
    "NOT",
];

/// The cases.
pub fn cases() -> anyhow::Result<Vec<Draft>> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (120, discovered as fn(&mut Draw) -> anyhow::Result<Draft>),
        (24, browsed),
        (20, read),
        (24, scrolled),
        (6, many),
        (4, nothing),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    Ok(cases)
}

fn word(draw: &mut Draw) -> anyhow::Result<&'static str> {
    // The first ones are more frequent, as in any language.
    let most = 1 + draw.below(WORDS.len())?;
    let at = draw.below(most)?;
    Ok(WORDS.get(at).copied().unwrap_or("alpha"))
}

fn text(draw: &mut Draw, most: usize) -> anyhow::Result<String> {
    let mut words = Vec::new();
    for _ in 0..1 + draw.below(most)? {
        words.push(word(draw)?);
    }
    Ok(words.join(draw.one(&[" ", " ", " ", ", ", "\n", ". "])?))
}

/// One conversation; `turns` at most.
fn talk(draw: &mut Draw, number: u64, minutes: u64, turns: usize) -> anyhow::Result<Value> {
    let source = draw.one(&["cli", "acp"])?;
    let model = draw.one(&[Some("gpt-5"), Some("local/m"), None])?;
    let step = draw.one(&[0, 1, 999, 61_000, 400_000])?;
    let mut talk = Talk::new(number, source, minutes).model(model).step(step);
    if draw.chance(60)? {
        talk = talk.title(&format!("{} {number}", text(draw, 3)?.replace('\n', " ")));
    }
    for _ in 0..1 + draw.below(turns)? {
        talk = talk.user(&text(draw, 40)?);
        for _ in 0..draw.below(3)? {
            let (tool, said) = (
                draw.one(&["terminal", "read_file", "todo"])?,
                draw.one(&["", "well"])?,
            );
            let arguments = json!({"command": text(draw, 4)?, "n": draw.below(9)?});
            talk = talk.used(said, tool, &arguments, &text(draw, 60)?);
        }
        talk = talk.answer(&text(draw, 25)?);
    }
    Ok(talk.value())
}

fn talks(draw: &mut Draw, count: usize, turns: usize) -> anyhow::Result<Value> {
    let mut minutes = 0;
    let mut all = Vec::new();
    for number in 0..u64::try_from(count)? {
        all.push(talk(draw, number, minutes, turns)?);
        minutes += draw.one(&[0, 1, 30, 2_000])?;
    }
    Ok(json!({ "conversations": all }))
}

fn query(draw: &mut Draw) -> anyhow::Result<String> {
    let (a, b, c) = (word(draw)?, word(draw)?, word(draw)?);
    Ok(match draw.below(10)? {
        0..=2 => a.to_owned(),
        3 => format!("{a} {b}"),
        4 => format!("{a} OR {b}"),
        5 => format!("{a} NOT {b}"),
        6 => format!("\"{a} {b}\""),
        7 => format!("{}*", a.chars().take(2).collect::<String>()),
        8 => format!("{a} {b} OR {c}"),
        _ => format!("{a} OR {b} AND {c}"),
    })
}

fn discovered(draw: &mut Draw) -> anyhow::Result<Draft> {
    let count = 2 + draw.below(4)?;
    let world = talks(draw, count, 5)?;
    let mut args = json!({"query": query(draw)?});
    if draw.chance(50)? {
        args["limit"] = json!(draw.one(&[1, 2, 5, 10])?);
    }
    if draw.chance(30)? {
        args["sort"] = json!(draw.one(&["newest", "oldest"])?);
    }
    if draw.chance(30)? {
        args["role_filter"] =
            json!(draw.one(&["tool", "user", "user,assistant,tool", "assistant , tool"])?);
    }
    Ok(Draft::made()
        .flag("discover")
        .field("world", world)
        .call(TOOL, &args))
}

fn browsed(draw: &mut Draw) -> anyhow::Result<Draft> {
    let count = 1 + draw.below(13)?;
    let world = talks(draw, count, 1)?;
    let args = match draw.below(3)? {
        0 => json!({}),
        _ => json!({"limit": 1 + draw.below(12)?}),
    };
    Ok(Draft::made()
        .flag("browse")
        .field("world", world)
        .call(TOOL, &args))
}

fn read(draw: &mut Draw) -> anyhow::Result<Draft> {
    let world = talks(draw, 2, 9)?;
    let id = Talk::id(u64::try_from(draw.below(2)?)?);
    let args = json!({ "session_id": id });
    Ok(Draft::made()
        .flag("read")
        .field("world", world)
        .call(TOOL, &args))
}

fn scrolled(draw: &mut Draw) -> anyhow::Result<Draft> {
    let world = talks(draw, 2, 7)?;
    let id = Talk::id(u64::try_from(draw.below(2)?)?);
    let at = format!("/messages/{}/id", draw.below(12)?);
    let window = draw.below(8)?;
    Ok(Draft::made()
        .flag("scroll")
        .field("world", world)
        .call(TOOL, &json!({ "session_id": id }))
        .call(
            TOOL,
            &json!({"session_id": id, "around_message_id": told(1, &at), "window": window}),
        ))
}

/// More hits than are looked at, and all as good as each other.
fn many(draw: &mut Draw) -> anyhow::Result<Draft> {
    let turns = draw.one(&[10, 40])?;
    let mut all = Vec::new();
    for number in 0..4 {
        let mut talk =
            Talk::new(number, "cli", number * draw.one(&[0, 7])?).step(draw.one(&[0, 500])?);
        for _ in 0..turns {
            talk = talk.user("alpha beta").answer("alpha beta");
        }
        all.push(talk.value());
    }
    all.sort_by_key(|one| one["started"].as_u64());
    let mut args = json!({"query": draw.one(&["alpha", "alpha OR beta", "\"alpha beta\"", "al*"])?, "limit": 5});
    args["sort"] = draw.one(&[json!(null), json!("newest"), json!("oldest")])?;
    let world = json!({ "conversations": all });
    Ok(Draft::made()
        .flag("discover")
        .field("world", world)
        .call(TOOL, &args))
}

/// Nothing was ever said.
fn nothing(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (flag, args) = draw.one(&[
        ("browse", json!({})),
        ("discover", json!({"query": "alpha"})),
        ("read", json!({"session_id": "0".repeat(32)})),
        (
            "scroll",
            json!({"session_id": "0".repeat(32), "around_message_id": 1}),
        ),
    ])?;
    Ok(Draft::made().flag(flag).call(TOOL, &args))
}
