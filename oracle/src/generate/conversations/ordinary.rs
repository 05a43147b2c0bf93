//! Calls of ordinary work on a few files, which are named in several ways.
//!
//! What runs beside what, what is told of a repeated call and what is told of a file already
//! read all depend on the calls before, so that a few files and many ways to meet them again
//! show more than many files.

use bisim_world::protocol::{FileKind, FileSpec};
use serde_json::{Value, json};

use crate::case::CWD_DEFAULT;
use crate::generate::choices::Choices;

/// The few files such conversations are about.
#[must_use]
pub fn files() -> Vec<FileSpec> {
    let long: String = (1..=60).map(|n| format!("line {n} of two\n")).collect();
    let text = |text: &str| FileKind::Text(text.to_owned());
    let bytes = |base64: &str| FileKind::Base64(base64.to_owned());
    [
        ("a.txt", text("one\ntwo\nthree\n")),
        ("b.txt", text("two\nfour\n")),
        ("notes.md", text("# Notes\n\n- one\n- two TODO\n")),
        ("src/main.py", text("import sys\n\n\ndef main():\n    print('one', len(sys.argv))\n\n\nif __name__ == '__main__':\n    main()\n")),
        ("src/lib.py", text("def double(n):\n    # TODO two\n    return n * 2\n")),
        ("data/x.json", text("{\"one\": 1, \"two\": [2, 3]}\n")),
        ("data/long.txt", FileKind::Text(long)),
        ("l", FileKind::Symlink("src".to_owned())),
        ("dos.txt", text("one\r\ntwo\r\nthree\r\n")),
        ("data/tabs.c", text("int f(void)\n{\n\tif (one)\n\t\treturn two;\n\treturn 0;\n}\n")),
        ("data/pic.png", bytes("iVBORw0KGgoAAAANSUhEUg==")),
        ("data/blob", bytes("AAECAwD/")),
    ]
    .into_iter()
    .map(|(name, kind)| FileSpec {
        path: format!("{CWD_DEFAULT}/{name}"),
        kind,
        mode: None,
    })
    .collect()
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

fn known<D: Choices>(draw: &mut D) -> Result<&'static str, D::Error> {
    let names = draw.one(&FILES)?;
    if draw.chance(65)? {
        return Ok(names.first().copied().unwrap_or_default());
    }
    draw.one(names)
}

fn any<D: Choices>(draw: &mut D) -> Result<&'static str, D::Error> {
    if draw.chance(75)? {
        known(draw)
    } else {
        draw.one(&NEW)
    }
}

/// A tool and its arguments.
pub type Call = (&'static str, Value);

fn read<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
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

fn write<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
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

fn replace<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
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

fn patch<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
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

fn search<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
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

fn command<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
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

fn script<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
    Ok(("execute_code", json!({"code": draw.one(&SCRIPTS)?})))
}

fn todo<D: Choices>(draw: &mut D) -> Result<Call, D::Error> {
    let args = draw.one(&[
        json!({}),
        json!({"todos": [{"id": "1", "content": "look", "status": "in_progress"}, {"id": "2", "content": "write", "status": "pending"}]}),
        json!({"todos": [{"id": "1", "content": "look", "status": "completed"}], "merge": true}),
        json!({"todos": [{"id": "3", "content": "run", "status": "pending"}], "merge": true}),
    ])?;
    Ok(("todo", args))
}

/// A call of ordinary work: with `files`, with `commands` as well, or with all there is.
///
/// # Errors
/// There is no next choice.
pub fn call<D: Choices>(draw: &mut D, kind: &str) -> Result<Call, D::Error> {
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
#[must_use]
pub fn steady(answer: Vec<Call>) -> Vec<Call> {
    let searches = answer.iter().any(|(tool, _)| *tool == "search_files");
    answer
        .into_iter()
        .filter(|(tool, _)| !(searches && matches!(*tool, "write_file" | "patch")))
        .collect()
}

/// Whether a call leaves everything as it is.
#[must_use]
pub fn only_looks((tool, args): &Call) -> bool {
    match *tool {
        "read_file" | "search_files" => true,
        "terminal" => args["command"]
            .as_str()
            .is_some_and(|command| LOOKING.contains(&command)),
        _ => false,
    }
}

/// Whether a command changes where its shell is or what it exports.
#[must_use]
pub fn moves_its_shell((_, args): &Call) -> bool {
    args["command"]
        .as_str()
        .is_some_and(|command| command.contains("export") || command.contains("cd "))
}
