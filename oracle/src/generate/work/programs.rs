//! Programs a model runs: scripts that call tools, and commands left running.

use bisim_world::protocol::Step;
use serde_json::{Value, json};

use super::{
    draw::Draw,
    errands::{Files, call},
    text::word,
};

/// Scripts that work with a few files, with tools and without.
pub fn code(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let (path, lines) = super::errands::file(draw, files);
    files.push((
        "data.json".to_owned(),
        "{\"k\": [1, 2, 3], \"s\": \"\u{e9}\"}\n".to_owned(),
    ));
    let first = lines.first().cloned().unwrap_or_default();
    let mut steps: Vec<Step> = (0..1 + draw.below(3))
        .map(|_| code_call(draw, &path, &first))
        .collect();
    if draw.chance(50) {
        steps.push(call("read_file", json!({ "path": path })));
    }
    steps
}

/// One script about a file and its first line.
pub fn code_call(draw: &mut Draw, path: &str, first: &str) -> Step {
    let (path, first) = (quoted(path), quoted(first));
    let (one, two, number) = (word(draw), word(draw), 1 + draw.below(9));
    let work = match draw.below(16) {
        0 => format!("r = read_file({path})\nprint(r.get('total_lines'), r.get('error'))"),
        1 => format!("r = read_file({path}, offset={number}, limit=2)\nprint(r)"),
        2 => format!(
            "for line in read_file({path})['content'].splitlines():\n    if {one:?} in line:\n        print(line)"
        ),
        3 => format!("print(patch({path}, {first}, {one:?}))\nprint(read_file({path}, limit=2))"),
        4 => format!("print(write_file('out/{one}.txt', {two:?} * {number}))"),
        5 => format!("print(search_files({one:?}, path='/home/u/proj', output_mode='count'))"),
        6 => "print(search_files('*.json', target='files'))".to_owned(),
        7 => format!(
            "r = terminal('wc -l < ' + shell_quote({path}))\nprint(r['output'], r['exit_code'])"
        ),
        8 => format!("print(terminal('echo {one}; exit {number}'))"),
        9 => "d = json_parse(open('data.json').read())\nprint(sorted(d), d['s'])".to_owned(),
        10 => format!(
            "text = open({path}).read()\nopen({path}, 'w').write(text.replace({one:?}, {two:?}))\nprint(len(text))"
        ),
        11 => format!("print(read_file({path})['nothing'])"),
        12 => format!(
            "for name in ({path}, 'data.json', 'none.txt'):\n    print(name, 'error' in read_file(name))"
        ),
        13 => format!(
            "terminal('mkdir -p made && cp data.json made/{one}.json')\nprint(search_files('*', target='files', path='made'))"
        ),
        14 => format!("print('{one} ' * {number}00)"),
        _ => format!(
            "import collections\nc = collections.Counter(read_file({path})['content'].split())\nprint(sorted(c.items())[:{number}])"
        ),
    };
    let imports = "from hermes_tools import json_parse, patch, read_file, search_files, shell_quote, terminal, write_file";
    call(
        "execute_code",
        json!({"code": format!("{imports}\n{work}")}),
    )
}

/// Scripts that work on a few files themselves and by the tools they call, in any order:
/// each sees what the other made.
pub fn beside(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    files.push(("a.txt".to_owned(), "one two\n".to_owned()));
    files.push(("d/c.txt".to_owned(), "three\n".to_owned()));
    (0..1 + draw.below(2)).map(|_| beside_call(draw)).collect()
}

fn beside_call(draw: &mut Draw) -> Step {
    let mut code = String::from(
        "import os, shutil\nfrom hermes_tools import patch, read_file, search_files, terminal, write_file\n\
         def tried(work):\n    try:\n        print(work())\n    except OSError as error:\n        \
         print(type(error).__name__)\n",
    );
    for _ in 0..4 + draw.below(8) {
        let names = ["a.txt", "b.txt", "d/c.txt", "d/new.txt", "e/f/g.txt"];
        let (path, other) = (draw.one(&names), draw.one(&names));
        let (one, two) = (word(draw), word(draw));
        let work = match draw.below(20) {
            0 => format!("open('{path}', 'w').write('{one}\\n')"),
            1 | 2 => format!("open('{path}', 'a').write('{one} {two}\\n')"),
            3 | 4 => format!("open('{path}').read()"),
            5 => format!("os.remove('{path}')"),
            6 => format!("os.rename('{path}', '{other}')"),
            7 => format!("shutil.copy('{path}', '{other}')"),
            8 => "os.makedirs('e/f', exist_ok=True)".to_owned(),
            9 => "sorted(os.listdir('d'))".to_owned(),
            10 => format!("[os.path.exists(name) for name in ('{path}', '{other}')]"),
            11 => format!("terminal('echo {two} >> {path}; wc -l < {path}')['output']"),
            12 | 13 => format!("terminal('cat {path} {other}')['output']"),
            14 => format!("terminal('mv {path} {other}; ls d')['output']"),
            15 => format!("terminal('sed -i s/{one}/{two}/ {path}')['exit_code']"),
            16 => format!("read_file('{path}').get('content')"),
            17 => format!("write_file('{path}', '{one} {two}\\n').get('bytes_written')"),
            18 => format!(
                "patch(path='{path}', old_string='{one}', new_string='{two}').get('success')"
            ),
            _ => "search_files('*.txt', target='files', path='d').get('files')".to_owned(),
        };
        code.push_str(&format!("tried(lambda: {work})\n"));
    }
    call("execute_code", json!({ "code": code }))
}

/// A text as a literal of the language.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

/// Commands that end by themselves, looked at once they have. What changes a file does so
/// when the step that started it is surely over: nobody can say which step a change belongs
/// to that happens meanwhile.
const ENDING: &[&str] = &[
    "echo started; sleep 0.2; echo done",
    "for n in 1 2 3; do echo line $n; done; exit 4",
    "seq 1 400",
    "cat kept.txt; echo err >&2",
    "printf 'no end'",
    "sleep 1; mkdir -p out && echo built > out/result.txt && cat out/result.txt",
    "false",
    "pwd; export LATER=1",
    "printf '\\033[32mok\\033[0m\\n'",
    "python3 -c 'print(6 * 7)'",
    "nothing_like_it",
];

/// Commands left running: started, looked at, waited for or ended. What is compared is
/// only looked at once it must be so.
pub fn running(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    files.push(("kept.txt".to_owned(), "kept\n".to_owned()));
    let mut steps = Vec::new();
    for _ in 0..1 + draw.below(2) {
        if draw.chance(30) {
            serve(draw, &mut steps);
        } else {
            finish(draw, &mut steps);
        }
    }
    steps.push(call("process", json!({"action": "list"})));
    if draw.chance(40) {
        steps.push(call(
            "terminal",
            json!({"command": "cat out/result.txt; echo ${LATER-unset}"}),
        ));
    }
    steps
}

/// Starts a command and waits for its end.
pub fn finish(draw: &mut Draw, steps: &mut Vec<Step>) {
    let command = match draw.below(4) {
        0 => format!("echo {}; exit {}", word(draw), draw.below(5)),
        1 => format!("seq {} {}", draw.below(9), draw.below(300)),
        _ => draw.one(ENDING).to_owned(),
    };
    let mut args = json!({"command": command, "background": true});
    if let Some(args) = args.as_object_mut()
        && draw.chance(50)
    {
        let notify = draw.one(&[json!(true), json!("true"), json!(false)]);
        args.insert("notify_on_complete".to_owned(), notify);
    }
    steps.push(call("terminal", args));
    let started = started(steps);
    steps.push(with("wait", &started, &[]));
    for _ in 0..draw.below(3) {
        steps.push(match draw.below(6) {
            0 | 1 => with("poll", &started, &[]),
            2 => with("log", &started, &[]),
            3 => {
                // Which are the first lines, and how many there are, can be compared only where
                // all are shown: Hermes counts a complaint of its shell that came in two pieces.
                let number = draw.one(&[json!(400), json!("400"), json!(0)]);
                with("log", &started, &[("limit", number), ("offset", json!(0))])
            }
            4 => with("kill", &started, &[]),
            _ => with("wait", &started, &[("timeout", json!("5"))]),
        });
    }
}

/// Starts what does not end and prints nothing, and ends it.
fn serve(draw: &mut Draw, steps: &mut Vec<Step>) {
    let command = draw.one(&[
        "sleep 1000",
        "tail -f /dev/null",
        "while :; do sleep 5; done",
    ]);
    steps.push(call(
        "terminal",
        json!({"command": command, "background": true}),
    ));
    let started = started(steps);
    for _ in 0..draw.below(3) {
        steps.push(match draw.below(3) {
            0 => with("poll", &started, &[]),
            1 => with("log", &started, &[]),
            _ => call("process", json!({"action": "list"})),
        });
    }
    steps.push(with("kill", &started, &[]));
    if draw.chance(40) {
        steps.push(with("poll", &started, &[]));
    }
}

/// The name of the command the last step started.
fn started(steps: &[Step]) -> Value {
    json!({"$from": steps.len(), "at": "/session_id"})
}

fn with(action: &str, started: &Value, more: &[(&str, Value)]) -> Step {
    let mut args = json!({"action": action, "session_id": started});
    if let Some(args) = args.as_object_mut() {
        for (name, value) in more {
            args.insert((*name).to_owned(), value.clone());
        }
    }
    call("process", args)
}
