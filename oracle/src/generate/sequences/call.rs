//! The calls between the moves, and the files they are about.

use bisim_world::protocol::{FileKind, FileSpec, Step};
use serde_json::{Value, json};

use crate::case::CWD_DEFAULT;

/// A call: its name, its tool, its arguments.
pub type Call = (&'static str, &'static str, fn() -> Value);

/// All calls, in a fixed order.
pub const CALLS: &[Call] = &[
    ("read", "read_file", || json!({ "path": "sq/a.txt" })),
    (
        "write",
        "write_file",
        || json!({ "path": "sq/a.txt", "content": "written\n" }),
    ),
    (
        "create",
        "write_file",
        || json!({ "path": "sq/new.txt", "content": "new\n" }),
    ),
    (
        "create-other",
        "write_file",
        || json!({ "path": "sq/other.txt", "content": "other\n" }),
    ),
    (
        "replace",
        "patch",
        || json!({ "mode": "replace", "path": "sq/b.txt", "old_string": "two", "new_string": "2" }),
    ),
    ("show", "terminal", || json!({ "command": "cat sq/a.txt" })),
    (
        "append",
        "terminal",
        || json!({ "command": "echo more >> sq/b.txt" }),
    ),
    (
        "delete",
        "terminal",
        || json!({ "command": "rm -rf sq/victim" }),
    ),
    (
        "delete-outside",
        "terminal",
        || json!({ "command": "rm -rf /srv/data/db.sqlite" }),
    ),
    (
        "open-to-all",
        "terminal",
        || json!({ "command": "chmod 777 sq/a.txt" }),
    ),
    (
        "read-key",
        "read_file",
        || json!({ "path": "/home/u/.ssh/id_rsa" }),
    ),
    (
        "show-key",
        "terminal",
        || json!({ "command": "cat /home/u/.ssh/id_rsa" }),
    ),
    (
        "plant",
        "write_file",
        || json!({ "path": "/home/u/.bashrc", "content": "/tmp/evil\n" }),
    ),
    (
        "write-outside",
        "write_file",
        || json!({ "path": "/srv/data/new.txt", "content": "new\n" }),
    ),
    (
        "search",
        "search_files",
        || json!({ "pattern": "one", "path": "sq" }),
    ),
];

/// The call with this number.
pub fn step(number: usize, by: Option<String>) -> Option<Step> {
    let (_, tool, args) = CALLS.get(number)?;
    Some(Step::Call {
        tool: (*tool).to_owned(),
        args: args(),
        by,
    })
}

/// What is there before the first move.
pub fn files() -> Vec<FileSpec> {
    [
        ("sq/a.txt", "one\n"),
        ("sq/b.txt", "two\n"),
        ("sq/victim/v.txt", "victim\n"),
    ]
    .into_iter()
    .map(|(path, text)| FileSpec {
        path: format!("{CWD_DEFAULT}/{path}"),
        kind: FileKind::Text(text.to_owned()),
        mode: None,
    })
    .collect()
}
