//! `read_file` and `write_file`.

mod checked;

use serde_json::{Value, json};

use super::draw::Draw;
use super::{document, service, world};
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "file-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..230 {
        cases.push(read(&mut draw)?);
    }
    for _ in 0..60 {
        cases.push(missing(&mut draw)?);
    }
    for _ in 0..190 {
        cases.push(write(&mut draw)?);
    }
    for _ in 0..50 {
        cases.push(written_then_read(&mut draw)?);
    }
    for _ in 0..70 {
        cases.push(odd(&mut draw)?);
    }
    cases.extend(checked::cases());
    Ok(Suite {
        name: "file",
        description: "Reading and writing files, as a model does it in its workspace: parts, line ends, names that are not there, checks of what was written, arguments of the wrong type.",
        flags: vec![
            service("read", "an ordinary call of read_file"),
            service(
                "missing",
                "a read of a file that is not there, near names that are",
            ),
            service("write", "an ordinary call of write_file"),
            service("again", "a write followed by reads of the same file"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
            service(
                "checked",
                "a file that a program of its language checks after a write",
            ),
        ],
        defaults: super::defaults(SEED),
        rows: cases.len(),
        cases: super::numbered("file", cases),
        left_out: Vec::new(),
    })
}

fn case(flag: &str, files: &[(String, String)]) -> Draft {
    let draft = Draft::made().flag(flag);
    if files.is_empty() {
        draft
    } else {
        draft.field("world", world(files))
    }
}

/// A document as a file: its name and text.
fn a_file(draw: &mut Draw) -> anyhow::Result<(String, String)> {
    let kind = draw.one(&document::Kind::ALL)?;
    let lines = document::lines(draw, kind)?;
    let form = document::form(draw)?;
    let folder = draw.one(&["", "", "lib/", "deep/er/"])?;
    let name = format!("{folder}{}.{}", document::word(draw)?, kind.ending());
    Ok((name, document::text(&lines, form)))
}

fn long_lines(draw: &mut Draw) -> anyhow::Result<String> {
    let mut text = String::new();
    for _ in 0..2 + draw.below(4)? {
        let length = draw.one(&[10, 1999, 2000, 2001, 2500])?;
        let letter = draw.one(&["x", "\u{e9}", "ab "])?;
        text.push_str(&letter.repeat(length / letter.chars().count()));
        text.push('\n');
    }
    Ok(text)
}

fn read(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (name, text) = match draw.below(10)? {
        0 => ("long.txt".to_owned(), long_lines(draw)?),
        1 => {
            let count = 1 + draw.below(700)?;
            (
                "many.log".to_owned(),
                (0..count).map(|n| format!("line {n}\n")).collect(),
            )
        }
        2 => (
            "odd.txt".to_owned(),
            draw.one(&[
                "",
                "\n",
                "\n\n\n",
                "a",
                "a\rb\rc\n",
                "a\u{b}b\u{c}c\n",
                "\u{feff}",
                "tab\there\n\u{85}next\n",
                "a\u{7}bell\n",
                "x\u{1b}[31mred\u{1b}[0m\n",
            ])?
            .to_owned(),
        ),
        _ => a_file(draw)?,
    };
    let total = text.matches('\n').count();
    let mut script = Vec::new();
    let spelled = match draw.below(4)? {
        0 => super::at(&name),
        1 => format!("./{name}"),
        _ => name.clone(),
    };
    for _ in 0..1 + usize::from(draw.chance(25)?) {
        let mut args = json!({"path": spelled});
        if draw.chance(60)? {
            args["offset"] = json!(draw.below(total + 4)?);
        }
        if draw.chance(60)? {
            args["limit"] = json!(draw.one(&[1, 2, 3, 5, 10, 100, 2000, 5000])?);
        }
        script.push(args);
    }
    if draw.chance(15)? {
        let last = script.last().cloned().unwrap_or(Value::Null);
        for _ in 0..1 + draw.below(3)? {
            script.push(last.clone());
        }
    }
    let mut draft = case("read", &[(name, text)]);
    for args in &script {
        draft = draft.call("read_file", args);
    }
    Ok(draft)
}

fn missing(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut files = Vec::new();
    let folder = draw.one(&["", "lib/"])?;
    for _ in 0..1 + draw.below(4)? {
        let ending = draw.one(&["txt", "md", "cfg", "c", "TXT"])?;
        let name = format!(
            "{folder}{}{}.{ending}",
            document::word(draw)?,
            draw.one(&["", "_1", "s"])?
        );
        if !files.iter().any(|(known, _)| *known == name) {
            files.push((name, "x\n".to_owned()));
        }
    }
    let (near, _) = draw.one(&files)?;
    let wanted = match draw.below(6)? {
        0 => near.replace(".txt", ".text"),
        1 => format!("{near}.bak"),
        2 => near.to_uppercase(),
        3 => near.chars().skip(folder.len() + 1).collect(),
        4 => format!("nowhere/{near}"),
        _ => near.replace('a', "e"),
    };
    let wanted = if wanted.is_empty() || files.iter().any(|(name, _)| *name == wanted) {
        "absent.txt".to_owned()
    } else {
        wanted
    };
    let tool = draw.one(&["read_file", "read_file", "search_files"])?;
    Ok(case("missing", &files).call(
        tool,
        &if tool == "read_file" {
            json!({"path": wanted})
        } else {
            json!({"pattern": "x", "path": wanted})
        },
    ))
}

/// A text for a file with this ending, sound or (for data) sometimes broken.
fn content(draw: &mut Draw, ending: &str) -> anyhow::Result<String> {
    Ok(match ending {
        "json" => draw
            .one(&[
                "{\"a\": 1, \"b\": [true, null]}\n",
                "[]",
                "{}\n",
                "  {\"x\": \"\\u00e9\"}\n",
                "{\"a\": 1,}\n",
                "{\"a\" 1}",
                "[1, 2",
                "{'a': 1}",
                "",
                "nul",
                "{\"a\": 01}",
                "[1] x",
                "\"open",
                "{\"a\": \"b\nc\"}",
                "{\"k\": 1e5, \"k\": -0.5}",
                "{\"a\":}",
                "[1,,2]",
                "tru",
                "{\"a\": \"\\q\"}",
                "{\"a\": 1}}",
            ])?
            .to_owned(),
        "toml" => draw
            .one(&[
                "a = 1\n",
                "[t]\nk = \"v\"\n",
                "[[x]]\ny = [1, 2]\n",
                "d = 2024-01-02\n",
                "# only\n",
                "",
            ])?
            .to_owned(),
        "yaml" => draw
            .one(&[
                "a: 1\n",
                "- x\n- y\n",
                "k:\n  n: [1, 2]\n",
                "--- \na: b\n---\nc: d\n",
                "t: !x y\n",
                "# c\n",
                "s: |\n  text\n  more\n",
                "",
            ])?
            .to_owned(),
        "py" => draw
            .one(&[
                "x = 1\n",
                "def f(a, b=2):\n    return a + b\n",
                "class C:\n    \"\"\"doc\"\"\"\n\n    def m(self):\n        pass\n",
                "import os\nfrom sys import path as p\n",
                "print(f'{1 + 1}')\n",
                "",
                "# comment\n",
                "async def g():\n    await h()\n",
                "x = [\n    1,\n    2,\n]\n",
                "if True:\n    pass\nelse:\n    y = {'a': (1, 2)}\n",
                "try:\n    z()\nexcept ValueError as e:\n    raise\n",
            ])?
            .to_owned(),
        _ => {
            let kind = draw.one(&document::Kind::ALL)?;
            let lines = document::lines(draw, kind)?;
            let form = document::form(draw)?;
            document::text(
                &lines,
                document::Form {
                    mark: false,
                    ..form
                },
            )
        }
    })
}

fn write(draw: &mut Draw) -> anyhow::Result<Draft> {
    let ending = draw.one(&[
        "txt", "md", "c", "json", "json", "toml", "yaml", "yml", "py", "rs", "sh", "go",
    ])?;
    let folder = draw.one(&["", "", "src/", "new/dir/"])?;
    let name = format!("{folder}{}.{ending}", document::word(draw)?);
    let checked = if ending == "yml" { "yaml" } else { ending };
    let mut text = content(draw, checked)?;
    if draw.chance(5)? && matches!(ending, "txt" | "md") {
        text = draw
            .one(&[
                "1|a\n2|b\n3|c\n",
                "1|a\n",
                "  7|x\n  8|y\n",
                "File unchanged\n",
                "",
                "\n",
            ])?
            .to_owned();
    }
    let mut files = Vec::new();
    if draw.chance(45)? {
        let kind = draw.one(&document::Kind::ALL)?;
        let lines = document::lines(draw, kind)?;
        let form = document::form(draw)?;
        let old = match checked {
            "json" => "{\"old\": true}\n".to_owned(),
            "toml" | "yaml" | "py" => content(draw, checked)?,
            _ => document::text(&lines, form),
        };
        files.push((name.clone(), old));
    }
    let spelled = if draw.chance(30)? {
        super::at(&name)
    } else {
        name
    };
    let mut draft = case("write", &files);
    if draw.chance(20)? && !files.is_empty() {
        draft = draft.call("read_file", &json!({"path": spelled}));
    }
    Ok(draft.call("write_file", &json!({"path": spelled, "content": text})))
}

fn written_then_read(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (name, old) = a_file(draw)?;
    let text = content(draw, "txt")?;
    let mut draft = case("again", &[(name.clone(), old)]);
    if draw.chance(50)? {
        draft = draft.call(
            "read_file",
            &json!({"path": name, "limit": draw.one(&[1, 500])?}),
        );
    }
    draft = draft.call("write_file", &json!({"path": name, "content": text}));
    draft = draft.call("read_file", &json!({"path": name}));
    if draw.chance(40)? {
        draft = draft.call("read_file", &json!({"path": name}));
    }
    Ok(draft)
}

/// A value of another kind than a text or a number.
fn odd_value(draw: &mut Draw) -> anyhow::Result<Value> {
    draw.one(&[
        json!(null),
        json!(true),
        json!(false),
        json!("2"),
        json!(" 3 "),
        json!("2.0"),
        json!("2.5"),
        json!("x"),
        json!(""),
        json!(1.5),
        json!(-1),
        json!("1e1"),
        json!("1_0"),
        json!("inf"),
        json!("-4"),
        json!(10_000_000_000_i64),
        json!("+2"),
        json!(0),
    ])
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (name, text) = a_file(draw)?;
    let mut args = json!({"path": name});
    let mut tool = "read_file";
    match draw.below(4)? {
        0 => args["offset"] = odd_value(draw)?,
        1 => args["limit"] = odd_value(draw)?,
        2 => {
            tool = "write_file";
            args["content"] = draw.one(&[
                json!(null),
                json!(5),
                json!(["a"]),
                json!({"a": 1}),
                json!(true),
                json!(1.5),
                json!("x"),
            ])?;
            if draw.chance(30)? {
                args["unknown"] = json!("y");
            }
        }
        _ => {
            tool = "write_file";
            args = draw.one(&[
                json!({}),
                json!({"path": ""}),
                json!({"path": "a.txt"}),
                json!({"content": "x"}),
                json!({"path": 5, "content": "x"}),
                json!({"path": null, "content": "x"}),
                json!({"path": ["a"], "content": "x"}),
                json!({"path": "n.txt", "content": ""}),
            ])?;
        }
    }
    Ok(case("odd-argument", &[(name, text)]).call(tool, &args))
}
