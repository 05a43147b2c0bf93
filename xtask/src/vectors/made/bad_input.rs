//! `bad-input`: file tools pointed at things that are no ordinary files, and
//! every tool given what nobody would write by hand.

mod kinds;
mod shut;

use serde_json::{Value, json};

use super::draw::Draw;
use super::{at, service};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "bad-input-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (34, places as fn(&mut Draw) -> anyhow::Result<Draft>),
        (16, names),
        (14, contents),
        (10, huge),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    cases.extend(shut::cases());
    cases.extend(kinds::cases());
    let mut defaults = super::defaults(SEED);
    defaults["context"] = json!("headless");
    Ok(Suite {
        name: "bad-input",
        description: "Directories where files are meant, closed and unwritable files, links that lead nowhere or round in a circle, names and contents nobody would write by hand, huge arguments, and every argument of every tool as what it is not.",
        flags: vec![
            service("place", "a place that is no ordinary file"),
            service("name", "a name with odd letters, or too long a one"),
            service("content", "a content with odd letters"),
            service("huge", "a huge argument"),
            service("shut", "a file or directory closed to reading or writing"),
            service("nul", "a text with a NUL"),
            service("half", "a patch of which only a part can be done"),
            service("kind", "an argument of another kind than declared"),
            service("stranger", "arguments nobody declared, or none at all"),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("bad-input", cases),
        left_out: Vec::new(),
    })
}

fn strange() -> Value {
    json!({"files": [
        {"path": at("t.txt"), "text": "one\ntwo\nthree\n"},
        {"path": at("dir/in.txt"), "text": "in\n"},
        {"path": at("empty.txt"), "text": ""},
        {"path": at("hollow"), "dir": true},
        {"path": at("nothing"), "symlink": "nowhere"},
        {"path": at("round"), "symlink": "circle"},
        {"path": at("circle"), "symlink": "round"},
        {"path": at("alias.txt"), "symlink": "t.txt"},
        {"path": at("way"), "symlink": "dir"},
        {"path": at("zero.bin"), "base64": "AAECAwQFBgcA/w=="},
        {"path": at("latin.txt"), "base64": "Y2Fm6SBhdSBsYWl0Cg=="},
        {"path": at("run.sh"), "text": "#!/bin/sh\necho x\n", "mode": 493},
        {"path": at("kept.txt"), "text": "kept\n", "mode": 292},
    ]})
}

fn drafted(flag: &str) -> Draft {
    drafted_in(flag, &strange())
}

fn drafted_in(flag: &str, world: &Value) -> Draft {
    Draft::made()
        .flag(flag)
        .field("world", world.clone())
        .expect(
            Agent::Either,
            "what cannot be done is told in the tool's own shape",
        )
}

fn call(draw: &mut Draw, draft: Draft, path: &Value) -> anyhow::Result<Draft> {
    Ok(match draw.below(6)? {
        0 | 1 => draft.call("read_file", &json!({"path": path})),
        2 => draft.call("write_file", &json!({"path": path, "content": "new\n"})),
        3 => draft.call(
            "patch",
            &json!({"mode": "replace", "path": path, "old_string": "one", "new_string": "uno"}),
        ),
        // From a start with a dot is the suite `search-here`.
        4 if path == "./" => draft.call("search_files", &json!({"pattern": "one", "path": at("")})),
        4 => draft.call("search_files", &json!({"pattern": "one", "path": path})),
        _ => {
            let path = path.as_str().unwrap_or("t.txt");
            let patch =
                format!("*** Begin Patch\n*** Update File: {path}\n-one\n+uno\n*** End Patch");
            draft.call("patch", &json!({"mode": "patch", "patch": patch}))
        }
    })
}

fn places(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = drafted("place");
    for _ in 0..1 + draw.below(2)? {
        let path = draw.one(&[
            "dir",
            "dir/",
            "hollow",
            ".",
            "./",
            "dir/nosuch.txt",
            "dir/../t.txt",
            "./empty.txt",
            "nosuch.txt",
            "zero.bin",
            "latin.txt",
            "empty.txt",
            "run.sh",
            "kept.txt",
            "dir//in.txt",
            "./dir/./in.txt",
        ])?;
        draft = call(draw, draft, &json!(path))?;
    }
    if draw.chance(40)? {
        draft = draft.call("read_file", &json!({"path": "t.txt"}));
    }
    Ok(draft)
}

fn names(draw: &mut Draw) -> anyhow::Result<Draft> {
    let draft = drafted("name");
    let path = draw.one(&[
        json!("a\nb.txt"),
        json!("tab\there.txt"),
        json!(" lead.txt"),
        json!("trail.txt "),
        json!("\u{202e}txt.exe"),
        json!("caf\u{e9}.txt"),
        json!("cafe\u{301}.txt"),
        json!("-rf"),
        json!("*.txt"),
        json!("$HOME.txt"),
        json!("`id`.txt"),
        json!("it's \"quoted\".txt"),
        json!("%2e%2e/t.txt"),
        json!("\\t.txt"),
    ])?;
    let draft = call(draw, draft, &path)?;
    Ok(draft.call("read_file", &json!({"path": path})))
}

fn contents(draw: &mut Draw) -> anyhow::Result<Draft> {
    let content = draw.one(&[
        "bell\u{7} and \u{1b}[31mred",
        "\u{feff}marked\n",
        "a\rb\r\nc\n",
        "\u{2028}line\u{2029}paragraph\u{85}next",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "form\u{c}feed\u{b}tab\n",
        "\u{fffd}\u{10ffff}",
        "e\u{301}\u{302}\u{303}",
        "no end of line",
        "\n\n\n",
        " \t \n",
    ])?;
    Ok(drafted("content")
        .call("write_file", &json!({"path": "c.txt", "content": content}))
        .call("read_file", &json!({"path": "c.txt"}))
        .call(
            "patch",
            &json!({"mode": "replace", "path": "c.txt", "old_string": content, "new_string": "x"}),
        ))
}

fn huge(draw: &mut Draw) -> anyhow::Result<Draft> {
    let draft = drafted("huge");
    let n = draw.one(&[20_000_usize, 120_000])?;
    Ok(match draw.below(5)? {
        0 => draft
            .call("write_file", &json!({"path": "h.txt", "content": "x".repeat(n)}))
            .call("read_file", &json!({"path": "h.txt"})),
        1 => draft
            .call("write_file", &json!({"path": "h.txt", "content": "line\n".repeat(n / 5)}))
            .call("read_file", &json!({"path": "h.txt", "offset": 3000, "limit": 5000})),
        2 => draft.call("search_files", &json!({"pattern": "x".repeat(n / 10)})),
        3 => draft.call("patch", &json!({"mode": "replace", "path": "t.txt", "old_string": "y".repeat(n / 10), "new_string": "x"})),
        _ => draft.call("read_file", &json!({"path": format!("{}t.txt", "./".repeat(n / 20))})),
    })
}
