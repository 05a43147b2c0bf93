//! Commands and plans that change a name: under the agent what a command changes is
//! held back and committed afterwards, and what a plan's step changes is a commit,
//! each kind by a path of its own. A plan may be taken back at once.

use serde_json::{Value, json};

use super::super::paths::{Action, action, planned};

macro_rules! command {
    ($name:literal, $text:literal) => {
        action(
            $name,
            "terminal",
            |path| json!({ "command": format!($text, path = path) }),
        )
    };
}

/// All commands, in a fixed order.
pub(super) const COMMANDS: &[Action] = &[
    command!("command-write", "echo written > {path}"),
    command!("command-append", "echo more >> {path}"),
    command!("command-delete", "rm -rf {path}"),
    command!("command-move-there", "mv pz/plain.txt {path}"),
    command!("command-move-away", "mv {path} pz/moved.txt"),
    command!("command-mode", "chmod 600 {path}"),
    command!("command-link", "ln -sf plain.txt {path}"),
    command!("command-directory", "rm -rf {path}; mkdir -p {path}/new"),
    command!("command-read", "cat {path}"),
    planned("plan-create", |path| {
        let with = json!({ "path": path, "text": "written\n", "replace": true });
        plan("create_file", &with, false)
    }),
    planned("plan-move-there", |path| {
        plan(
            "move_file",
            &json!({ "from": "pz/plain.txt", "to": path }),
            false,
        )
    }),
    planned("plan-move-away", |path| {
        plan(
            "move_file",
            &json!({ "from": path, "to": "pz/moved.txt" }),
            false,
        )
    }),
    planned("plan-directory", |path| {
        plan(
            "create_directory",
            &json!({ "path": format!("{path}/new") }),
            false,
        )
    }),
    planned("plan-delete", |path| {
        plan(
            "delete_files",
            &json!({ "paths": [path], "recursive": true }),
            false,
        )
    }),
    planned("undo-move-there", |path| {
        plan(
            "move_file",
            &json!({ "from": "pz/plain.txt", "to": path }),
            true,
        )
    }),
    planned("undo-move-away", |path| {
        plan(
            "move_file",
            &json!({ "from": path, "to": "pz/moved.txt" }),
            true,
        )
    }),
    planned("undo-directory", |path| {
        plan(
            "create_directory",
            &json!({ "path": format!("{path}/new") }),
            true,
        )
    }),
    planned("undo-delete", |path| {
        plan(
            "delete_files",
            &json!({ "paths": [path], "recursive": true }),
            true,
        )
    }),
];

/// A plan of one step. Whoever has no plans is given nothing to do: what tools and
/// commands come to under a race is told above.
fn plan(action: &str, with: &Value, undo: bool) -> Value {
    json!({
        "plan": { "version": 1, "steps": [{ "id": "one", "call": action, "with": with }] },
        "calls": [],
        "undo": undo,
    })
}
