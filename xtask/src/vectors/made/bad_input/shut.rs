//! Files and directories closed to reading or writing, and texts with a NUL.
//!
//! Each of these is named, not drawn: it is one way in which a call cannot be
//! done, and what the model is told has to have the shape Hermes gives it.

use serde_json::{Value, json};

use super::{drafted_in, strange};
use crate::vectors::draft::Draft;
use crate::vectors::made::at;

/// One call.
type Call = (&'static str, Value);

/// The cases, in order.
pub fn cases() -> Vec<Draft> {
    let mut world = strange();
    if let Some(Value::Array(files)) = world.get_mut("files") {
        files.extend([
            json!({"path": at("shut.txt"), "text": "shut\n", "mode": 0}),
            json!({"path": at("p.py"), "text": "x = 1\n", "mode": 292}),
            json!({"path": at("ro"), "dir": true, "mode": 365}),
            json!({"path": at("ro/in.txt"), "text": "in\n"}),
        ]);
    }
    let mut cases = Vec::new();
    for (flag, scripts) in [
        ("shut", unwritable()),
        ("shut", unreadable()),
        ("nul", with_nul()),
        ("half", vec![half()]),
    ] {
        for script in scripts {
            let draft = drafted_in(flag, &world);
            cases.push(
                script
                    .iter()
                    .fold(draft, |draft, (tool, args)| draft.call(tool, args)),
            );
        }
    }
    cases
}

fn unwritable() -> Vec<Vec<Call>> {
    vec![
        vec![write("kept.txt"), read("kept.txt")],
        vec![replace("kept.txt", "kept"), read("kept.txt")],
        vec![update("kept.txt", "kept"), read("kept.txt")],
        vec![patch("*** Delete File: kept.txt")],
        vec![patch("*** Move File: kept.txt -> k2.txt")],
        vec![write("p.py")],
        vec![write("ro/new.txt")],
        vec![write("ro/in.txt")],
        vec![replace("ro/in.txt", "in")],
        vec![update("ro/in.txt", "in")],
        vec![write("ro/d/new.txt")],
        vec![patch("*** Delete File: ro/in.txt")],
        vec![patch("*** Move File: ro/in.txt -> out.txt")],
        vec![patch("*** Move File: t.txt -> ro/t.txt")],
        vec![patch("*** Add File: ro/new.txt\n+x")],
        vec![("write_file", json!({"path": "ro/x.json", "content": "{"}))],
        vec![write("t.txt/x")],
        vec![write("t.txt/x/y")],
        vec![patch("*** Add File: t.txt/x\n+x")],
        vec![replace("t.txt/x", "a")],
        vec![read("ro")],
    ]
}

fn unreadable() -> Vec<Vec<Call>> {
    let search = |args: Value| vec![("search_files", args)];
    vec![
        vec![read("shut.txt")],
        vec![write("shut.txt")],
        vec![replace("shut.txt", "shut")],
        vec![update("shut.txt", "shut")],
        vec![patch("*** Add File: shut.txt\n+x")],
        vec![patch("*** Delete File: shut.txt")],
        search(json!({"pattern": "shut", "path": at(""), "output_mode": "files_only"})),
        search(json!({"pattern": "shut", "path": "shut.txt"})),
        search(json!({"pattern": "shut", "path": at("")})),
        search(json!({"pattern": "s.*t", "path": at(""), "output_mode": "count"})),
    ]
}

fn with_nul() -> Vec<Vec<Call>> {
    let search = |args: Value| vec![("search_files", args)];
    vec![
        vec![write("a\0b")],
        vec![read("a\0b")],
        vec![replace("a\0b", "kept")],
        vec![update("a\0b", "one")],
        search(json!({"pattern": "o\0ne"})),
        search(json!({"pattern": "one", "path": "a\0b"})),
        search(json!({"pattern": "one", "file_glob": "a\0b"})),
        search(json!({"pattern": "o\0ne", "target": "files"})),
        vec![("terminal", json!({"command": "echo a\0b"}))],
        vec![
            ("write_file", json!({"path": "n.txt", "content": "a\0b\n"})),
            read("n.txt"),
        ],
        vec![
            (
                "patch",
                json!({"mode": "replace", "path": "t.txt", "old_string": "one", "new_string": "o\0ne"}),
            ),
            read("t.txt"),
        ],
        vec![patch("*** Update File: t.txt\n-one\n+o\0ne"), read("t.txt")],
    ]
}

/// A patch whose second file cannot be written.
fn half() -> Vec<Call> {
    vec![
        patch("*** Update File: t.txt\n-one\n+uno\n*** Update File: kept.txt\n-kept\n+new"),
        read("t.txt"),
    ]
}

fn write(path: &str) -> Call {
    ("write_file", json!({"path": path, "content": "new\n"}))
}

fn read(path: &str) -> Call {
    ("read_file", json!({"path": path}))
}

fn replace(path: &str, old: &str) -> Call {
    (
        "patch",
        json!({"mode": "replace", "path": path, "old_string": old, "new_string": "new"}),
    )
}

fn update(path: &str, old: &str) -> Call {
    patch(&format!("*** Update File: {path}\n-{old}\n+new"))
}

fn patch(body: &str) -> Call {
    let patch = format!("*** Begin Patch\n{body}\n*** End Patch");
    ("patch", json!({"mode": "patch", "patch": patch}))
}
