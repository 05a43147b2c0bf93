//! An hour of work on one small project: reading, searching, editing, running, in any
//! order, on the same files. What one call leaves behind is what the next one meets.

use bisim_world::protocol::Step;
use serde_json::{Map, Value, json};

use super::{
    draw::Draw,
    errands::{Files, call, maybe},
    notes, programs,
    text::{block, changed, quoted, word},
};

/// A file as whoever works on it remembers it: right after an exact edit, roughly after
/// others.
struct Known {
    path: String,
    lines: Vec<String>,
}

/// The steps of the hour.
pub fn hour(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let mut known = project(draw);
    for file in &known {
        files.push((file.path.clone(), format!("{}\n", file.lines.join("\n"))));
    }
    let mut steps = Vec::new();
    let many = 6 + draw.below(10);
    while steps.len() < many {
        match draw.below(20) {
            0..=3 => steps.push(read(draw, &known)),
            4..=6 => steps.push(search(draw, &known)),
            7..=10 => steps.push(replace(draw, &mut known)),
            11 | 12 => steps.push(patch(draw, &mut known)),
            13 => steps.push(write(draw, &mut known)),
            14..=16 => steps.push(run(draw, &mut known)),
            17 => steps.push(notes::todo_call(draw, true)),
            18 => {
                let (path, first) = one(draw, &known);
                steps.push(programs::code_call(draw, &path, &first));
            }
            _ => programs::finish(draw, &mut steps),
        }
    }
    steps
}

/// The same hour in which the shell goes about, and files are named from where it is.
pub fn wander(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let mut place = "";
    let mut steps = Vec::new();
    for mut step in hour(draw, files) {
        if draw.chance(30) {
            place = draw.one(&["app", "tests", ""]);
            steps.push(go(draw, place));
        }
        if let Step::Call { args, .. } = &mut step
            && let Some(Value::String(path)) = args.get_mut("path")
        {
            *path = from_there(draw, place, path);
        }
        steps.push(step);
    }
    steps
}

/// The shell goes to one of the project's directories.
fn go(draw: &mut Draw, place: &str) -> Step {
    let whole = format!("/home/u/proj/{place}");
    let command = match draw.below(6) {
        0 => format!("cd {whole} && ls -1"),
        1 => format!("cd {whole}; pwd; false"),
        2 => format!("pushd {whole} > /dev/null && pwd"),
        3 => format!("cd {whole}\nexport PLACE=$PWD\necho \"$PLACE\""),
        // A shell of its own went there as well, and is gone.
        4 => format!("cd {whole} && (cd /home/u/proj/app && cd .. && pwd)"),
        _ => format!("cd {whole}"),
    };
    call("terminal", json!({ "command": command }))
}

/// How a file of the project is named from one of its directories.
fn from_there(draw: &mut Draw, place: &str, path: &str) -> String {
    if place.is_empty() || path.starts_with(['/', '.']) || draw.chance(10) {
        return path.to_owned();
    }
    match path
        .strip_prefix(place)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => format!("../{path}"),
    }
}

fn project(draw: &mut Draw) -> Vec<Known> {
    let (thing, other, number) = (word(draw), word(draw), draw.below(90));
    let texts = [
        (
            "app/store.py",
            format!(
                "\"\"\"Keeps every {thing}.\"\"\"\n\nimport json\n\n\nclass Store:\n    def __init__(self, path):\n        \
                 self.path = path\n        self.{thing}s = {{}}\n\n    def add(self, name, {other}={number}):\n        if \
                 name in self.{thing}s:\n            raise KeyError(name)\n        self.{thing}s[name] = {other}\n        \
                 return {other}\n\n    def total(self):\n        return sum(self.{thing}s.values())\n\n\ndef \
                 load(path):\n    with open(path) as file:\n        return json.load(file)"
            ),
        ),
        (
            "tests/test_store.py",
            format!(
                "import sys\n\nsys.path.insert(0, \".\")\n\nfrom app.store import Store\n\nstore = Store(\"x\")\nassert \
                 store.add(\"a\") == {number}\nassert store.add(\"b\", 1) == 1\nassert store.total() == {}, \
                 store.total()\nprint(\"2 passed\")",
                number + 1
            ),
        ),
        (
            "README.md",
            format!(
                "# {thing} store\n\nThe \u{201c}{thing}\u{201d} isn\u{2019}t lost\u{2026}\n\n- add a {thing}\n- count \
                 each {other}\n\n```python\nstore.add(\"{thing}\")\n```\n\n## Options\n\n--{other}  the {other} -> \
                 {number}"
            ),
        ),
        (
            "config.json",
            format!(
                "{{\n  \"{thing}\": {number},\n  \"{other}s\": [1, 2],\n  \"deep\": {{\"on\": true}}\n}}"
            ),
        ),
        (
            "Makefile",
            format!(
                "check:\n\tpython3 -B tests/test_store.py\n\n{other}:\n\techo {thing} > {other}.txt\n\n.PHONY: check"
            ),
        ),
        ("app/__init__.py", "# the package".to_owned()),
    ];
    texts
        .into_iter()
        .map(|(path, text)| Known {
            path: path.to_owned(),
            lines: text.split('\n').map(str::to_owned).collect(),
        })
        .collect()
}

/// One of the files and a line of it that is not empty.
fn one(draw: &mut Draw, known: &[Known]) -> (String, String) {
    let Some(file) = known.get(draw.below(known.len())) else {
        return ("none.txt".to_owned(), "none".to_owned());
    };
    let full: Vec<String> = file
        .lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .cloned()
        .collect();
    (file.path.clone(), draw.one(&full))
}

/// A path as it may be written.
fn spelled(draw: &mut Draw, path: &str) -> String {
    match draw.below(6) {
        0 => format!("./{path}"),
        1 => format!("/home/u/proj/{path}"),
        _ => path.to_owned(),
    }
}

fn read(draw: &mut Draw, known: &[Known]) -> Step {
    let (path, _) = one(draw, known);
    let mut args = Map::new();
    args.insert("path".to_owned(), json!(spelled(draw, &path)));
    let numbers = [json!(1), json!(3), json!(10), json!("4"), json!(500)];
    maybe(draw, &mut args, "offset", &numbers);
    maybe(draw, &mut args, "limit", &numbers);
    call("read_file", Value::Object(args))
}

fn search(draw: &mut Draw, known: &[Known]) -> Step {
    let (path, line) = one(draw, known);
    let mut args = Map::new();
    if draw.chance(25) {
        let pattern = draw.one(&[
            "*.py", "test_*", "*", "*.md", "[A-Z]*", "store.*", "app/*.py",
        ]);
        args.insert("pattern".to_owned(), json!(pattern));
        args.insert("target".to_owned(), json!("files"));
        let places = [
            json!("app"),
            json!("."),
            json!("/home/u/proj"),
            json!("tests/"),
        ];
        maybe(draw, &mut args, "path", &places);
        return call("search_files", Value::Object(args));
    }
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let pattern = match draw.below(10) {
        0 => line.trim().to_owned(),
        1 => "def .*(".to_owned(),
        2 => "^import\\|^from".to_owned(),
        3 => draw
            .one(&["->", "--", "- add", "--dry-run", "-B", "-> [0-9]"])
            .to_owned(),
        4 => "(self".to_owned(),
        5 => "\\bstore\\b".to_owned(),
        6 => "[0-9]\\+$".to_owned(),
        7 => word(draw).to_owned(),
        _ => draw.one(&words),
    };
    args.insert("pattern".to_owned(), json!(pattern));
    let place = draw.one(&[
        "/home/u/proj",
        "app",
        "tests",
        &path,
        "/home/u/proj/app/",
        "lib",
    ]);
    args.insert("path".to_owned(), json!(place));
    let globs = [
        json!("*.py"),
        json!("*.{py,md}"),
        json!("test_*"),
        json!("*"),
    ];
    maybe(draw, &mut args, "file_glob", &globs);
    let modes = [json!("content"), json!("files_only"), json!("count")];
    maybe(draw, &mut args, "output_mode", &modes);
    maybe(
        draw,
        &mut args,
        "context",
        &[json!(1), json!(2), json!("1")],
    );
    maybe(
        draw,
        &mut args,
        "limit",
        &[json!(2), json!("5"), json!(100)],
    );
    call("search_files", Value::Object(args))
}

/// The lines with the block replaced, if it is there.
fn replaced(lines: &mut Vec<String>, found: &[String], new: &[String]) {
    let at = (0..lines.len()).find(|at| lines.get(*at..at + found.len()) == Some(found));
    if let Some(at) = at {
        lines.splice(at..at + found.len(), new.iter().cloned());
    }
}

fn replace(draw: &mut Draw, known: &mut [Known]) -> Step {
    let at = draw.below(known.len());
    let Some(file) = known.get_mut(at) else {
        return read(draw, known);
    };
    let found = block(draw, &file.lines);
    let new = changed(draw, &found);
    let old = quoted(draw, &found);
    replaced(&mut file.lines, &found, &new);
    let mut args = json!({
        "path": spelled(draw, &file.path),
        "old_string": old.join("\n"),
        "new_string": new.join("\n"),
    });
    if let Some(args) = args.as_object_mut() {
        if draw.chance(60) {
            args.insert("mode".to_owned(), json!("replace"));
        }
        if draw.chance(15) {
            let all = draw.one(&[json!(true), json!("true"), json!("false"), json!(1)]);
            args.insert("replace_all".to_owned(), all);
        }
    }
    call("patch", args)
}

fn patch(draw: &mut Draw, known: &mut Vec<Known>) -> Step {
    let mut text = String::from("*** Begin Patch\n");
    let mut named: Vec<usize> = Vec::new();
    for at in 0..=draw.below(3) {
        if draw.chance(20) {
            let path = format!("app/{}{at}.txt", word(draw));
            text.push_str(&format!("*** Add File: {path}\n+{}\n+\n+end\n", word(draw)));
            known.push(Known {
                path,
                lines: vec!["end".to_owned()],
            });
            continue;
        }
        // Each file once: what a second part of it meets is no longer what is remembered.
        let place = draw.below(known.len());
        let Some(file) = known.get_mut(place).filter(|_| !named.contains(&place)) else {
            continue;
        };
        named.push(place);
        text.push_str(&format!("*** Update File: {}\n", file.path));
        for _ in 0..=draw.below(2) {
            text.push_str(&super::errands::hunk(draw, &file.lines));
        }
    }
    text.push_str("*** End Patch\n");
    call("patch", json!({"mode": "patch", "patch": text}))
}

fn write(draw: &mut Draw, known: &mut Vec<Known>) -> Step {
    if draw.chance(50) {
        let (lines, ending) = super::text::lines(draw);
        let path = format!("docs/{}.{ending}", word(draw));
        let content = format!("{}\n", lines.join("\n"));
        let step = call("write_file", json!({"path": path, "content": content}));
        known.push(Known { path, lines });
        return step;
    }
    let at = draw.below(known.len());
    let Some(file) = known.get_mut(at) else {
        return read(draw, known);
    };
    file.lines = changed(draw, &file.lines);
    let end = draw.one(&["\n", "\n", ""]);
    let content = format!("{}{end}", file.lines.join("\n"));
    let path = spelled(draw, &file.path);
    call("write_file", json!({"path": path, "content": content}))
}

/// A command: what is there is looked at, tried out, or changed behind the tools' back.
fn run(draw: &mut Draw, known: &mut Vec<Known>) -> Step {
    let (path, _) = one(draw, known);
    let (one, two) = (word(draw), word(draw));
    let command = match draw.below(18) {
        0 => "python3 -B tests/test_store.py".to_owned(),
        1 => "make check".to_owned(),
        2 => "make -s check 2>&1 | tail -3".to_owned(),
        3 => format!("sed -i 's/{one}/{two}/' {path}"),
        4 => format!("sed -n '2,5p' {path}"),
        5 => format!("grep -rn --include='*.py' '{one}' . | sort"),
        6 => format!("head -n 3 {path} && wc -l < {path}"),
        7 => format!("echo '{one} {two}' >> {path}"),
        8 => format!("cp {path} {path}.bak && diff {path} {path}.bak && echo same"),
        9 => "find . -type f -not -path './.git/*' | sort".to_owned(),
        10 => "python3 -B -c 'import app.store; print(app.store.Store(1).total())'".to_owned(),
        11 => format!("cd app && ls -1 && cd .. && test -f {path} && echo there"),
        12 => format!("export TARGET={one}; echo $TARGET"),
        13 => "echo \"${TARGET:-none}\"; pwd".to_owned(),
        14 => format!("python3 -B -m json.tool config.json | head -4; echo {two} | wc -w"),
        15 => {
            // The old name is still remembered, and asked for now and then.
            let made = format!("{path}.old");
            let lines = known
                .iter()
                .find(|file| file.path == path)
                .map(|file| file.lines.clone());
            known.push(Known {
                path: made.clone(),
                lines: lines.unwrap_or_default(),
            });
            format!("mv {path} {made}")
        }
        16 => format!("awk '{{ n += NF }} END {{ print n }}' {path}"),
        _ => format!(
            "mkdir -p build && cat app/*.py > build/all.txt && grep -c . build/all.txt; false || echo {one}"
        ),
    };
    let mut args = Map::new();
    args.insert("command".to_owned(), json!(command));
    let times = [json!(30), json!("60"), json!(120)];
    if draw.chance(30) {
        args.insert("timeout".to_owned(), draw.one(&times));
    }
    call("terminal", Value::Object(args))
}
