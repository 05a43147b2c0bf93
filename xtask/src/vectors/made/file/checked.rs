//! Files that a program of their language checks after a write. The program is
//! a stand-in in the workspace, found through the session's own `PATH`; Python
//! is the real one.

use serde_json::{Value, json};

use crate::vectors::draft::Draft;
use crate::vectors::made::at;

/// Finds fault with `broken`.
const NODE: &str = "#!/bin/sh\n[ \"$1\" = --check ] || exit 3\ngrep -q broken \"$2\" || exit 0\necho \"$2:1\"\necho 'SyntaxError: broken'\nexit 1\n";

/// The same for `npx tsc --noEmit`, which may also lack its compiler.
const NPX: &str = "#!/bin/sh\n[ \"$1 $2\" = 'tsc --noEmit' ] || exit 3\ngrep -q nowhere \"$3\" && echo && echo '   This is not the tsc command you are looking for' && exit 1\ngrep -q broken \"$3\" || exit 0\necho \"$3(1,1): error TS1005: ';' expected.\"\nexit 2\n";

/// Python that does not parse, each for a reason of its own.
const WRONG: [&str; 12] = [
    "def f(:\n    pass\n",
    "if True\n    x = 1\n",
    "x = 1\n  y = 2\n",
    "def f():\nreturn 1\n",
    "print 'a'\n",
    "x = 1 +\n",
    "x = [1, 2\ny = 3\n",
    "x = 'abc\n",
    "class C\n    pass\n",
    "if x:\n\ty = 1\n        z = 2\n",
    "x = 08\n",
    "a, b += 1\n# caf\u{e9}\n",
];

/// The cases, in order.
pub fn cases() -> Vec<Draft> {
    let mut cases = scripts();
    cases.extend(types());
    cases.extend(python());
    cases
}

/// A type checker that finds fault, does not, and is not there.
fn types() -> impl Iterator<Item = Draft> {
    ["let a: number = 1;\n", "broken\n", "nowhere\n"]
        .into_iter()
        .map(|text| {
            let world = json!({"files": [{"path": at("bin/npx"), "text": NPX, "mode": 493}]});
            let path = json!({"command": "export PATH=\"$PWD/bin:$PATH\""});
            let draft = Draft::made().flag("checked").field("world", world);
            let args = json!({"path": "a.ts", "content": text});
            draft.call("terminal", &path).call("write_file", &args)
        })
}

/// Broken from the start, broken by an edit, and broken before.
fn python() -> impl Iterator<Item = Draft> {
    WRONG.into_iter().enumerate().map(|(place, wrong)| {
        let old = match place % 3 {
            0 => None,
            1 => Some("x = 1\n"),
            _ => Some("def f(:\n    pass\n"),
        };
        let mut files = Vec::new();
        if let Some(old) = old {
            files.push(json!({"path": at("m.py"), "text": old}));
        }
        let mended = json!({"mode": "patch", "patch":
            "*** Begin Patch\n*** Delete File: m.py\n*** Add File: n.py\n+def g(:\n*** End Patch"});
        let draft = Draft::made()
            .flag("checked")
            .field("world", json!({ "files": files }));
        draft
            .call("write_file", &json!({"path": "m.py", "content": wrong}))
            .call("patch", &mended)
    })
}

fn scripts() -> Vec<Draft> {
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
