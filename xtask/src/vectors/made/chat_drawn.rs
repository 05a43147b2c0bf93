//! `chat-drawn`: whole conversations of ordinary work, drawn answer by answer.
//!
//! Other suites give a tool one call after the other. Here a model gives several in one
//! answer, goes on after what it was told, and says its last words: what runs beside what,
//! what is told of a repeated call and what is told of a file already read all depend on
//! the answers before. A case may look, write and run over the same few files, which it
//! names in several ways.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{at, service};
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "chat-drawn-1";
const CASES: usize = 120;

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..CASES {
        cases.push(case(&mut draw)?);
    }
    let mut defaults = super::defaults(SEED);
    defaults["user"] = json!("grant_once");
    defaults["drive"] = json!("conversation");
    defaults["deadline_ms"] = json!(180_000);
    defaults["world"] = world();
    Ok(Suite {
        name: "chat-drawn",
        description: "Drawn conversations of ordinary work: several calls in one answer, several answers, the same few files by several names.",
        flags: vec![
            service("files", "files are written and read"),
            service("commands", "commands are run beside work on files"),
            service(
                "all",
                "files, commands, searches, lists of work and scripts",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("chat-drawn", cases),
        left_out: Vec::new(),
    })
}

/// The few files such conversations are about.
pub(super) fn world() -> Value {
    json!({"cwd": super::WORKSPACE, "files": [
        {"path": at("a.txt"), "text": "one\ntwo\nthree\n"},
        {"path": at("b.txt"), "text": "two\nfour\n"},
        {"path": at("notes.md"), "text": "# Notes\n\n- one\n- two TODO\n"},
        {"path": at("src/main.py"), "text": "import sys\n\n\ndef main():\n    print('one', len(sys.argv))\n\n\nif __name__ == '__main__':\n    main()\n"},
        {"path": at("src/lib.py"), "text": "def double(n):\n    # TODO two\n    return n * 2\n"},
        {"path": at("data/x.json"), "text": "{\"one\": 1, \"two\": [2, 3]}\n"},
        {"path": at("data/long.txt"), "text": (1..=60).map(|n| format!("line {n} of two\n")).collect::<String>()},
        {"path": at("l"), "symlink": "src"},
        {"path": at("dos.txt"), "text": "one\r\ntwo\r\nthree\r\n"},
        {"path": at("data/tabs.c"), "text": "int f(void)\n{\n\tif (one)\n\t\treturn two;\n\treturn 0;\n}\n"},
        {"path": at("data/pic.png"), "base64": "iVBORw0KGgoAAAANSUhEUg=="},
        {"path": at("data/blob"), "base64": "AAECAwD/"},
    ]})
}

/// What there is, each file by its usual name first.
const FILES: [&[&str]; 9] = [
    &["a.txt", "./a.txt", "/home/u/proj/a.txt", "src/../a.txt"],
    &["b.txt", "b.txt", "data/../b.txt"],
    &["notes.md", "/home/u/proj/notes.md"],
    &["src/main.py", "l/main.py", "./src/main.py"],
    &["src/lib.py", "l/lib.py"],
    &["data/x.json", "/home/u/proj/data/x.json"],
    &["data/long.txt", "data/long.txt"],
    &["dos.txt"],
    &["data/tabs.c"],
];

/// What is there and no text, or no file.
const ODD: [&str; 7] = [
    "src",
    "data/",
    "data/pic.png",
    "data/blob",
    "a.txt/x",
    "A.TXT",
    "dat/x.json",
];

/// What may come to be there.
const NEW: [&str; 6] = [
    "new.txt",
    "src/new.py",
    "data/new.json",
    "out/r.txt",
    "notes2.md",
    "a b.txt",
];

fn known(draw: &mut Draw) -> anyhow::Result<&'static str> {
    let names = draw.one(&FILES)?;
    if draw.chance(65)? {
        return Ok(names.first().copied().unwrap_or_default());
    }
    draw.one(names)
}

fn any(draw: &mut Draw) -> anyhow::Result<&'static str> {
    if draw.chance(75)? {
        known(draw)
    } else {
        draw.one(&NEW)
    }
}

/// A tool and its arguments.
pub(super) type Call = (&'static str, Value);

fn read(draw: &mut Draw) -> anyhow::Result<Call> {
    let path = if draw.chance(12)? {
        draw.one(&ODD)?
    } else {
        any(draw)?
    };
    let mut args = json!({ "path": path });
    if draw.chance(30)? {
        args["offset"] = json!(draw.one(&[1, 2, 3, 10, 50, 100])?);
        args["limit"] = json!(draw.one(&[1, 2, 5, 20])?);
    }
    Ok(("read_file", args))
}

fn write(draw: &mut Draw) -> anyhow::Result<Call> {
    let path = any(draw)?;
    let content = match path.rsplit('.').next() {
        Some("py") => draw.one(&[
            "def double(n):\n    return n + n\n",
            "print('one')\n",
            "def broken(:\n    pass\n",
        ])?,
        Some("json") => draw.one(&["{\"one\": 2}\n", "[1, 2, 3]\n", "{\"one\": }\n"])?,
        _ => draw.one(&[
            "one\ntwo\n",
            "four\n",
            "no line end",
            "",
            "# Two\n\nwords\n",
        ])?,
    };
    Ok(("write_file", json!({"path": path, "content": content})))
}

fn replace(draw: &mut Draw) -> anyhow::Result<Call> {
    let mut args = json!({
        "mode": "replace",
        "path": any(draw)?,
        "old_string": draw.one(&[
            "one", "two", "three", "return n * 2", "not there", "line 7 of two\n", "TODO", "one\ntwo\n",
            "  return n*2", "if (one)\n    return two;", "def main():\nprint('one', len(sys.argv))", "- one\n- two",
            "\u{201c}one\u{201d}", "",
        ])?,
        "new_string": draw.one(&["ONE", "two and more", "", "return n + n", "2\n", "one", "x\n  y\n"])?,
    });
    if draw.chance(35)? {
        args["replace_all"] = json!(true);
    }
    Ok(("patch", args))
}

fn patch(draw: &mut Draw) -> anyhow::Result<Call> {
    let text = draw.one(&[
        "*** Begin Patch\n*** Update File: a.txt\n@@ one @@\n one\n-two\n+2\n three\n*** End Patch",
        "*** Begin Patch\n*** Update File: src/lib.py\n def double(n):\n-    # TODO two\n+    # done\n     return n * 2\n*** End Patch",
        "*** Begin Patch\n*** Add File: out/added.txt\n+one\n+two\n*** End Patch",
        "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch",
        "*** Begin Patch\n*** Move File: notes.md -> out/notes.md\n*** End Patch",
        "*** Begin Patch\n*** Update File: b.txt\n-two\n+2\n four\n*** Add File: new.txt\n+x\n*** End Patch",
        "*** Begin Patch\n*** Update File: b.txt\n-five\n+5\n*** Update File: a.txt\n-one\n+1\n*** End Patch",
    ])?;
    Ok(("patch", json!({"mode": "patch", "patch": text})))
}

fn search(draw: &mut Draw) -> anyhow::Result<Call> {
    let mut args = if draw.chance(70)? {
        json!({"pattern": draw.one(&["two", "TODO", "def ", "^one$", "line [57]", "nowhere"])?})
    } else {
        json!({"target": "files", "pattern": draw.one(&["*.py", "*.txt", "new*", "*.rs"])?})
    };
    // Below a directory whose name begins with a dot Hermes finds nothing, and it takes a
    // path that is not said for one.
    args["path"] = json!(draw.one(&["src", "data", "a.txt", "/home/u/proj", "nodir"])?);
    if draw.chance(25)? {
        args["output_mode"] = json!(draw.one(&["content", "files_only", "count"])?);
    }
    if draw.chance(20)? {
        args["context"] = json!(draw.one(&[1, 2])?);
    }
    // Files of the same time come in any order, so that a few of them are not always the same.
    if args.get("target").is_none() && draw.chance(15)? {
        args["limit"] = json!(draw.one(&[1, 3])?);
    }
    if draw.chance(15)? {
        args["file_glob"] = json!(draw.one(&["*.py", "*.txt"])?);
    }
    Ok(("search_files", args))
}

/// Commands that are the same wherever the session stands.
const LOOKING: [&str; 29] = [
    "pwd",
    "ls",
    "cat a.txt",
    "wc -l data/long.txt",
    "grep -rn TODO src | sort",
    "python3 -B src/main.py x y",
    "(exit 3)",
    "head -3 data/long.txt | tail -1",
    "sort a.txt b.txt | uniq -c",
    "find . -name '*.py' | sort",
    "test -f new.txt && echo there || echo none",
    "echo \"$KIND\"",
    "false",
    "cat none.txt",
    "git status",
    "printf 'a\\tb\\n'",
    "seq 1 5 | paste -sd+",
    "diff a.txt b.txt",
    "printf '\\033[31mred\\033[0m\\n'",
    "echo key=sk-abcdefghijklmnopqrstuvwxyz123456",
    "seq 1 20000 | tr '\\n' ' '",
    "ls nowhere; echo $?",
    "printf 'no end'",
    "cat < dos.txt | od -c | head -2",
    "nosuchprogram --help",
    "grep -c nothing a.txt",
    "f() { echo hi; }; f",
    "f",
    "for i in 1 2; do echo $i >&2; done",
];

/// Commands that change something.
const DOING: [&str; 16] = [
    "cd src && pwd",
    "cd src",
    "cd /home/u/proj",
    "export KIND=blue",
    "echo five >> a.txt",
    "sed -i s/two/zwei/ b.txt",
    "mkdir -p out && date -u -d @0 +%F > out/day.txt && cat out/day.txt",
    "cp a.txt new.txt",
    "mv b.txt c.txt",
    "rm notes.md",
    "touch data/empty",
    "printf 'x\\n' > 'a b.txt'",
    "ln -s a.txt link.txt",
    "chmod +x src/main.py",
    "printf 'print(1)\\n' > src/one.py && python3 -B src/one.py",
    "tac a.txt > t && mv t a.txt",
];

fn command(draw: &mut Draw) -> anyhow::Result<Call> {
    let command = if draw.chance(60)? {
        draw.one(&LOOKING)?
    } else {
        draw.one(&DOING)?
    };
    let mut args = json!({ "command": command });
    if draw.chance(10)? {
        args["workdir"] = json!(draw.one(&["/home/u/proj/src", "/home/u/proj", "data"])?);
    }
    Ok(("terminal", args))
}

/// What a script does by the same tools.
const SCRIPTS: [&str; 6] = [
    "from hermes_tools import read_file\nprint(read_file('a.txt').get('content'))",
    "from hermes_tools import write_file, read_file\nwrite_file('data/made.txt', 'one\\ntwo\\n')\nprint(read_file('data/made.txt').get('total_lines'))",
    "from hermes_tools import search_files\nprint(search_files('TODO', path='src').get('total_count'))",
    "from hermes_tools import terminal\nr = terminal('wc -l < a.txt')\nprint(r.get('output', '').strip(), r.get('exit_code'))",
    "from hermes_tools import patch\nr = patch(path='b.txt', old_string='four', new_string='4')\nprint(r.get('success'), 'error' in r)",
    "import os\nprint(sorted(os.listdir('data')))",
];

fn script(draw: &mut Draw) -> anyhow::Result<Call> {
    Ok(("execute_code", json!({"code": draw.one(&SCRIPTS)?})))
}

fn todo(draw: &mut Draw) -> anyhow::Result<Call> {
    let args = draw.one(&[
        json!({}),
        json!({"todos": [{"id": "1", "content": "look", "status": "in_progress"}, {"id": "2", "content": "write", "status": "pending"}]}),
        json!({"todos": [{"id": "1", "content": "look", "status": "completed"}], "merge": true}),
        json!({"todos": [{"id": "3", "content": "run", "status": "pending"}], "merge": true}),
    ])?;
    Ok(("todo", args))
}

/// A call of ordinary work.
pub(super) fn call(draw: &mut Draw, kind: &str) -> anyhow::Result<Call> {
    let end = match kind {
        "files" => 9,
        "commands" => 14,
        _ => 20,
    };
    match draw.below(end)? {
        0..=3 => read(draw),
        4..=5 => write(draw),
        6..=7 => replace(draw),
        8 => patch(draw),
        9..=13 => command(draw),
        14..=16 => search(draw),
        17 => todo(draw),
        _ => script(draw),
    }
}

/// The calls of an answer that tell the same each time: whether a search beside a change
/// finds the old or the new is chance under Hermes.
pub(super) fn steady(answer: Vec<Call>) -> Vec<Call> {
    let searches = answer.iter().any(|(tool, _)| *tool == "search_files");
    answer
        .into_iter()
        .filter(|(tool, _)| !(searches && matches!(*tool, "write_file" | "patch")))
        .collect()
}

/// An answer that makes these calls.
pub(super) fn answered(calls: &[Call]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| json!({"name": tool, "arguments": arguments}))
        .collect();
    json!({ "calls": calls })
}

fn case(draw: &mut Draw) -> anyhow::Result<Draft> {
    let kind = draw.one(&["files", "commands", "all"])?;
    let mut answers = Vec::new();
    let mut last: Option<Call> = None;
    for _ in 0..2 + draw.below(4)? {
        let mut answer: Vec<Call> = Vec::new();
        for _ in 0..1 + draw.below(4)? {
            // A model often does once more what it has just done.
            let next = match last.take() {
                Some(same) if draw.chance(15)? => same,
                _ => call(draw, kind)?,
            };
            last = Some(next.clone());
            answer.push(next);
        }
        answers.push(answered(&steady(answer)));
    }
    answers.push(json!({"text": "that is all"}));
    Ok(Draft::made().flag(kind).probe(
        "scripted_conversation",
        &json!({"script": {"parent": answers}}),
    ))
}
