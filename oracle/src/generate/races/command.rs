//! Commands that change a name: under the agent their changes are held back and
//! committed afterwards, each kind by a path of its own.

use serde_json::json;

use super::super::paths::{Action, action};

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
];
