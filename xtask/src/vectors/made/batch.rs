//! Batches of calls: which of them may run at the same time.

use serde_json::{Value, json};

use super::draw::Draw;
use super::service;
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "batch-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..420 {
        cases.push(case(&mut draw)?);
    }
    let mut defaults = super::defaults(SEED);
    if let Some(defaults) = defaults.as_object_mut() {
        defaults.remove("held");
        defaults.insert("world".into(), json!({"cwd": "/ov"}));
    }
    Ok(Suite {
        name: "batch",
        description: "How a batch of calls is cut into runs that may go at the same time and runs that may not, in a tree with links.",
        flags: vec![service("batch", "a batch of calls to be planned")],
        defaults,
        rows: cases.len(),
        cases: super::numbered("batch", cases),
        left_out: Vec::new(),
    })
}

const PATHS: &[&str] = &[
    "f",
    "./f",
    "/ov/f",
    "lf",
    "up/ov/f",
    "d",
    "d/e",
    "d/e/x",
    "l/e/x",
    "l/x",
    "/ov/d/x",
    "new.txt",
    "d/../f",
    "nonexist/../f",
    "//ov//f",
    "F",
    "/tmp/x",
    "~/x",
    "up",
    ".",
    "d/",
    "a b",
    "\u{e9}",
];

fn call(draw: &mut Draw) -> anyhow::Result<Value> {
    let path = draw.one(PATHS)?;
    let (name, arguments) = match draw.below(14)? {
        0..=3 => ("read_file", json!({"path": path})),
        4..=6 => ("write_file", json!({"path": path, "content": "x"})),
        7 => (
            "patch",
            json!({"path": path, "old_string": "a", "new_string": "b"}),
        ),
        8 => (
            "patch",
            draw.one(&[
                json!({"mode": "replace", "path": path, "old_string": "a", "new_string": "b"}),
                json!({"mode": "patch", "patch": "*** Delete File: f"}),
            ])?,
        ),
        9 => ("search_files", json!({"pattern": "x", "path": path})),
        10 => ("terminal", json!({"command": "ls"})),
        11 => (
            draw.one(&[
                "skill_view",
                "skills_list",
                "web_search",
                "session_search",
                "todo",
                "memory",
                "clarify",
                "process",
            ])?,
            json!({"name": "x"}),
        ),
        12 => (
            "write_file",
            draw.one(&[
                json!({}),
                json!({"path": ""}),
                json!({"path": 5}),
                json!({"path": null}),
                json!([]),
            ])?,
        ),
        _ => (
            draw.one(&["read_file", "unknown_tool", "mcp_x"])?,
            json!({"path": path, "limit": 5}),
        ),
    };
    Ok(if draw.chance(15)? {
        let text = draw.one(&[
            arguments.to_string(),
            "{".to_owned(),
            "null".to_owned(),
            "None".to_owned(),
        ])?;
        json!({"name": name, "arguments": text})
    } else {
        json!({"name": name, "arguments": arguments})
    })
}

fn case(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut calls = Vec::new();
    for _ in 0..2 + draw.below(7)? {
        calls.push(call(draw)?);
    }
    Ok(Draft::made()
        .flag("batch")
        .probe(
            "plan_tool_batch_segments",
            &json!({"calls": calls, "cwd": "/ov"}),
        )
        .expect(Agent::Either, "a value, not a decision"))
}
