//! Which calls of a batch may run at the same time.

use anyhow::bail;
use serde_json::{Value, json};

use super::approval::answer;
use super::draft::{Agent, Draft};
use super::emit::{Flag, Suite};
use super::row::{REPO, Row, TMP};

const FLAGS: &[Flag] = &[
    Flag {
        name: "overlap",
        kind: "function",
        description: "do two paths name the same file or one inside the other",
        effect: "two calls change one file at the same time",
    },
    Flag {
        name: "scope",
        kind: "function",
        description: "which path a call is about, after links",
        effect: "a link hides that two calls are about one file",
    },
    Flag {
        name: "segments",
        kind: "function",
        description: "how a batch is cut into parallel and sequential runs",
        effect: "a later call sees or overtakes an earlier one",
    },
];

/// The suite.
pub fn suite(rows: &[Row]) -> anyhow::Result<Suite> {
    let cases = rows.iter().map(case).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Suite {
        name: "paths-overlap",
        description: "Scope paths of calls, their overlap, and how a batch is cut.",
        flags: FLAGS.to_vec(),
        defaults: json!({
            "context": "interactive",
            "user": "deny_all",
            "world": {"cwd": REPO},
            "settings": {"approvals.mode": "manual"},
            "deadline_ms": 20000,
        }),
        rows: rows.len(),
        cases,
        left_out: Vec::new(),
    })
}

fn case(row: &Row) -> anyhow::Result<Draft> {
    let flag = match row.kind() {
        "paths_overlap" => "overlap",
        "scope_and_overlap" | "extract_parallel_scope_path" | "canonical_path" => "scope",
        "plan_tool_batch_segments" => "segments",
        other => bail!("{}: unknown kind `{other}`", row.id),
    };
    let input = row.input()?;
    let actual = if row.leans_on_its_test() {
        // The context it leans on is the working directory, which the case does set.
        super::row::placed(&row.body["expect"])
    } else {
        row.actual()?
    };
    let cwd = input["cwd"].as_str().unwrap_or(REPO);
    let mut files = Vec::new();
    if cwd.starts_with(TMP) {
        files.push(json!({"path": cwd, "dir": true}));
    }
    if row.kind() == "canonical_path" && mentions(&input, "config.json") {
        files.push(json!({"path": format!("{TMP}/real/config.json"), "text": "{}\n"}));
        files.push(json!({"path": format!("{TMP}/alias"), "symlink": format!("{TMP}/real")}));
    }
    if mentions(&input["kwargs"], "/sub") {
        files.push(json!({"path": format!("{TMP}/sub"), "dir": true}));
    }
    let world = if files.is_empty() {
        json!({"cwd": cwd})
    } else {
        json!({"cwd": cwd, "files": files})
    };
    Ok(Draft::new(row, row.note()?)
        .flag(flag)
        .field("world", world)
        .probe(row.kind(), &input)
        .expect(Agent::Either, "a value, not a decision")
        .recorded(answer("none", &actual)))
}

fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(fields) => fields.values().any(|item| mentions(item, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
