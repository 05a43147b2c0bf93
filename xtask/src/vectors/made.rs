//! Made-up cases: ordinary work, drawn from strategies with a fixed seed.
//!
//! The same seed gives the same bytes, so a case can be named, discussed and
//! run again; a better strategy is a change here and a new seed is a new set.
//! What Hermes does with a case is not written down: it is asked every time.

mod approval_matrix;
mod bad_input;
mod batch;
mod chat_drawn;
mod chat_turns;
mod clarify;
mod code;
mod cronjob;
mod document;
mod draw;
mod file;
mod mcp_live;
mod own_ways;
mod patch;
mod process;
mod recall;
mod search;
mod skills;
mod terminal;
mod v4a;
mod withheld;

use serde_json::{Value, json};

use super::draft::Draft;
use super::emit::{Flag, Suite};

/// The standard workspace.
const WORKSPACE: &str = "/home/u/proj";

/// All made-up suites.
pub fn suites() -> anyhow::Result<Vec<Suite>> {
    Ok(vec![
        file::suite()?,
        patch::suite()?,
        search::suite()?,
        search::here()?,
        batch::suite()?,
        chat_drawn::suite()?,
        chat_turns::suite()?,
        skills::suite()?,
        terminal::suite()?,
        process::suite()?,
        code::suite()?,
        clarify::suite()?,
        bad_input::suite()?,
        cronjob::suite()?,
        withheld::suite()?,
        approval_matrix::suite(),
        own_ways::suite(),
        mcp_live::suite(),
        recall::suite()?,
        recall::drawn()?,
    ])
}

/// What cases of ordinary work have in common: the workspace is held.
fn defaults(seed: &str) -> Value {
    json!({
        "context": "interactive",
        "user": "deny_all",
        "world": {"cwd": WORKSPACE},
        "settings": {"approvals.mode": "manual", "lsp.enabled": false},
        "deadline_ms": 30000,
        "held": [{"id": "ws", "verb": "fs.*", "on": WORKSPACE}],
        "expect": {"agent": "must-permit"},
        "source": {"from": "generated", "note": format!("cargo xtask vectors make, seed {seed}")},
    })
}

const fn service(name: &'static str, description: &'static str) -> Flag {
    Flag {
        name,
        kind: "service",
        description,
        effect: "the model is told something else than under Hermes, or the work is not done",
    }
}

/// A file in the workspace.
fn at(name: &str) -> String {
    format!("{WORKSPACE}/{name}")
}

/// The files a case adds to the standard tree.
fn world(files: &[(String, String)]) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|(name, text)| json!({"path": at(name), "text": text}))
        .collect();
    json!({"files": files})
}

/// Numbers the cases of a suite, in order.
fn numbered(suite: &str, cases: Vec<Draft>) -> Vec<Draft> {
    cases
        .into_iter()
        .enumerate()
        .map(|(index, case)| case.id(format!("{suite}-{:04}", index + 1)))
        .collect()
}
