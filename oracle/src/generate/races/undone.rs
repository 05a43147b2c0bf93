//! Changes that are taken back while a name changes places: of file tools, and of
//! commands, whose changes are committed.
//!
//! The call itself is made in peace. What is raced is the step that takes it back,
//! which has to find the places it put something at by what it holds, not by name.

use serde_json::json;

use super::super::paths::{Action, undone, v4a};

macro_rules! command {
    ($name:literal, $text:literal) => {
        undone(
            $name,
            "terminal",
            |path| json!({ "command": format!($text, path = path) }),
        )
    };
}

/// All of them, in a fixed order.
pub(super) const UNDONE: &[Action] = &[
    undone(
        "undo-write",
        "write_file",
        |path| json!({ "path": path, "content": "written\n" }),
    ),
    undone(
        "undo-replace",
        "patch",
        |path| json!({ "mode": "replace", "path": path, "old_string": "inside", "new_string": "new" }),
    ),
    undone("undo-patch-update", "patch", |path| {
        v4a(&format!("*** Update File: {path}\n-inside\n+new"))
    }),
    undone("undo-patch-many", "patch", |path| {
        v4a(&format!(
            "*** Update File: {path}\n-inside\n+new\n*** Update File: pz/plain.txt\n-inside\n+new"
        ))
    }),
    undone("undo-patch-delete", "patch", |path| {
        v4a(&format!("*** Delete File: {path}"))
    }),
    undone("undo-patch-move-away", "patch", |path| {
        v4a(&format!("*** Move File: {path} -> pz/moved.txt"))
    }),
    command!("undo-command-write", "echo written > {path}"),
    command!("undo-command-append", "echo more >> {path}"),
    command!("undo-command-delete", "rm -rf {path}"),
    command!("undo-command-move-there", "mv pz/plain.txt {path}"),
    command!("undo-command-move-away", "mv {path} pz/moved.txt"),
    command!("undo-command-mode", "chmod 600 {path}"),
    command!("undo-command-link", "ln -sf plain.txt {path}"),
    command!(
        "undo-command-directory",
        "rm -rf {path}; mkdir -p {path}/new"
    ),
    command!(
        "undo-command-tree",
        "mkdir -p {path}.d/a; echo x > {path}.d/a/b; rm -rf {path}"
    ),
];
