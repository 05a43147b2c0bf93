//! Secrets in what a model is told: whatever tool it comes out of, and by whatever way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::Fate;
use hermitcrab_core::tool::Tool;
use serde_json::{Value, json};

use crate::support::Bench;

/// Nothing anybody has, in the form of a key that the tools know.
fn secret() -> String {
    format!("ghp_{}", "a1B2".repeat(9))
}

/// The calls by which what a file holds, or a command says, comes before a model.
fn ways(tool: Tool, job: &str) -> Vec<Value> {
    let of_job = |action: &str| json!({"action": action, "session_id": job, "timeout": 60});
    match tool {
        Tool::Terminal => vec![
            json!({"command": "cat key.txt"}),
            json!({"command": "cat key.txt >&2; false"}),
        ],
        Tool::ReadFile => vec![json!({"path": "key.txt"})],
        Tool::SearchFiles => vec![
            json!({"pattern": "ghp_"}),
            json!({"pattern": "below", "context": 1}),
        ],
        Tool::ExecuteCode => vec![
            json!({"code": "print(open('key.txt').read())"}),
            json!({"code": "import sys; sys.stderr.write(open('key.txt').read()); sys.exit(1)"}),
        ],
        Tool::Process => vec![
            of_job("wait"),
            of_job("poll"),
            of_job("log"),
            json!({"action": "list"}),
        ],
        // They tell what the model itself said, or what was kept in its own words.
        Tool::WriteFile
        | Tool::Patch
        | Tool::DelegateTask
        | Tool::Clarify
        | Tool::Todo
        | Tool::Memory
        | Tool::SessionSearch
        | Tool::SkillsList
        | Tool::SkillView
        | Tool::SkillManage
        | Tool::Cronjob
        // Of a server its own keys are struck out.
        | Tool::External
        // No model is offered these.
        | Tool::Converse
        | Tool::Directory
        | Tool::Undo => Vec::new(),
    }
}

#[test]
fn no_tool_shows_a_key_whole() {
    let mut bench = Bench::new();
    bench.put("key.txt", &format!("{}\nbelow\n", secret()));
    let command = json!({"command": "cat key.txt", "background": true});
    let started = bench.call("terminal", command);
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let job = started["session_id"].as_str().unwrap().to_owned();
    for tool in Tool::ALL {
        for args in ways(tool, &job) {
            let report = bench.call(tool.as_str(), args.clone());
            let (text, fate) = (&report.text, &report.fate);
            assert!(
                matches!(fate, Fate::Ran | Fate::ToolError),
                "{fate:?}: {text}"
            );
            assert!(!text.contains(&secret()), "{tool:?} {args}: {text}");
            // That there is one is told, so the test looks at what it means to.
            let is_told = text.contains("ghp_") || text.contains("redacted");
            assert!(is_told, "{tool:?} {args}: {text}");
        }
    }
}
