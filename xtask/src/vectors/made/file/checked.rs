//! Files that a program of their language checks after a write. The program is
//! a stand-in in the workspace, found through the session's own `PATH`.

use serde_json::{Value, json};

use crate::vectors::draft::Draft;
use crate::vectors::made::at;

/// Finds fault with `broken`.
const NODE: &str = "#!/bin/sh\n[ \"$1\" = --check ] || exit 3\ngrep -q broken \"$2\" || exit 0\necho \"$2:1\"\necho 'SyntaxError: broken'\nexit 1\n";

/// The cases, in order.
pub fn cases() -> Vec<Draft> {
    let write = |path: &str, text: &str| ("write_file", json!({"path": path, "content": text}));
    let replace = |new: &str| {
        let args =
            json!({"mode": "replace", "path": "b.js", "old_string": "broken", "new_string": new});
        ("patch", args)
    };
    let patch = |body: &str| {
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch");
        ("patch", json!({"mode": "patch", "patch": patch}))
    };
    let calls: Vec<(&str, Value)> = vec![
        write("a.js", "let a = 1;\n"),
        write("a.js", "broken\n"),
        write("it's.js", "broken\n"),
        write("b.js", "broken still\n"),
        write("b.js", "mended\n"),
        replace("broken more"),
        replace("mended"),
        patch("*** Update File: b.js\n-broken\n+broken now\n*** Add File: c.js\n+fine"),
        patch("*** Move File: b.js -> d.js"),
        patch("*** Delete File: b.js"),
    ];
    calls
        .into_iter()
        .map(|(tool, args)| {
            let world = json!({"files": [
                {"path": at("bin/node"), "text": NODE, "mode": 493},
                {"path": at("b.js"), "text": "broken\n"},
            ]});
            let path = json!({"command": "export PATH=\"$PWD/bin:$PATH\""});
            let draft = Draft::made().flag("checked").field("world", world);
            draft.call("terminal", &path).call(tool, &args)
        })
        .collect()
}
