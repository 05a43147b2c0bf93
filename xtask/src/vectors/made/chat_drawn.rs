//! `chat-drawn`: whole conversations of ordinary work, drawn answer by answer.
//!
//! Other suites give a tool one call after the other. Here a model gives several in one
//! answer, goes on after what it was told, and says its last words: what runs beside what,
//! what is told of a repeated call and what is told of a file already read all depend on
//! the answers before. A case may look, write and run over the same few files, which it
//! names in several ways.

use bisim::generate::conversations::{ordinary, speaker::Speaker};
use serde_json::{Value, json};

use super::draw::Draw;
use super::service;
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "chat-drawn-1";
const CASES: usize = 120;

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..CASES {
        cases.push(case(&mut draw)?);
    }
    let mut defaults = super::defaults(SEED);
    defaults["user"] = json!("grant_once");
    defaults["drive"] = json!("conversation");
    defaults["deadline_ms"] = json!(180_000);
    defaults["world"] = world()?;
    Ok(Suite {
        name: "chat-drawn",
        description: "Drawn conversations of ordinary work: several calls in one answer, several answers, the same few files by several names.",
        flags: vec![
            service("files", "files are written and read"),
            service("commands", "commands are run beside work on files"),
            service(
                "all",
                "files, commands, searches, lists of work and scripts",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("chat-drawn", cases),
        left_out: Vec::new(),
    })
}

/// The few files such conversations are about.
pub(super) fn world() -> anyhow::Result<Value> {
    let files = serde_json::to_value(ordinary::files())?;
    Ok(json!({"cwd": super::WORKSPACE, "files": files}))
}

fn case(draw: &mut Draw) -> anyhow::Result<Draft> {
    let kind = draw.one(&["files", "commands", "all"])?;
    let mut speaker = Speaker::default();
    let mut last: Option<ordinary::Call> = None;
    for _ in 0..2 + draw.below(4)? {
        let mut answer: Vec<ordinary::Call> = Vec::new();
        for _ in 0..1 + draw.below(4)? {
            // A model often does once more what it has just done.
            let next = match last.take() {
                Some(same) if draw.chance(15)? => same,
                _ => ordinary::call(draw, kind)?,
            };
            last = Some(next.clone());
            answer.push(next);
        }
        speaker.answer(&ordinary::steady(answer));
    }
    speaker.says("that is all");
    Ok(Draft::made().flag(kind).probe(
        "scripted_conversation",
        &json!({"script": {"parent": speaker.answers()}}),
    ))
}
