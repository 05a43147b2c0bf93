//! What is done: the steps of each kind of errand.

use bisim_world::protocol::Step;
use serde_json::{Map, Value, json};

use super::{
    draw::Draw,
    text::{block, changed, joined, lines, quoted, word},
};

/// Files by name, with their text.
pub type Files = Vec<(String, String)>;

/// A call of a tool.
pub fn call(tool: &str, args: Value) -> Step {
    Step::Call {
        tool: tool.to_owned(),
        args,
        by: None,
    }
}

/// A file with a name of its own.
pub fn file(draw: &mut Draw, files: &mut Files) -> (String, Vec<String>) {
    let (lines, ending) = lines(draw);
    let dir = draw.one(&["", "", "src/", "src/deep/", "docs/"]);
    let name = format!("{dir}{}{}.{ending}", word(draw), files.len());
    files.push((name.clone(), joined(draw, &lines)));
    (name, lines)
}

/// Adds one of the values to the arguments, or nothing.
pub fn maybe(draw: &mut Draw, args: &mut Map<String, Value>, name: &str, values: &[Value]) {
    if draw.chance(40) {
        args.insert(name.to_owned(), draw.one(values));
    }
}

/// Quotations of a file replaced, and the file read afterwards.
pub fn replace(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let (path, lines) = file(draw, files);
    let mut steps: Vec<Step> = (0..=draw.below(3))
        .map(|_| {
            let found = block(draw, &lines);
            let new = changed(draw, &found).join("\n");
            let mut old = quoted(draw, &found).join("\n");
            if draw.chance(15) {
                // A part of a line, likely to be there more than once.
                old = old.split(' ').next().unwrap_or_default().to_owned();
            }
            let mut args =
                json!({"mode": "replace", "path": path, "old_string": old, "new_string": new});
            if draw.chance(15)
                && let Some(args) = args.as_object_mut()
            {
                args.insert("replace_all".to_owned(), json!(true));
            }
            call("patch", args)
        })
        .collect();
    steps.push(call("read_file", json!({ "path": path })));
    steps
}

/// One hunk of a patch of a file with these lines.
pub fn hunk(draw: &mut Draw, lines: &[String]) -> String {
    let found = block(draw, lines);
    let new = changed(draw, &found);
    let mark = match draw.below(4) {
        0 => "@@ ... @@\n".to_owned(),
        1 => format!("@@ {} @@\n", found.first().map_or("", |line| line.trim())),
        _ => "@@\n".to_owned(),
    };
    let before = lines
        .iter()
        .take_while(|line| Some(*line) != found.first())
        .last();
    let mut out = mark;
    if let Some(before) = before.filter(|_| draw.chance(60)) {
        out.push_str(&format!(" {before}\n"));
    }
    let kept = found
        .iter()
        .zip(&new)
        .take_while(|(old, new)| old == new)
        .count();
    for line in found.iter().take(kept) {
        out.push_str(&format!(" {line}\n"));
    }
    for line in found.iter().skip(kept) {
        out.push_str(&format!("-{line}\n"));
    }
    for line in new.iter().skip(kept) {
        out.push_str(&format!("+{line}\n"));
    }
    out
}

/// One patch of several files in the V4A form.
pub fn v4a(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let mut patch = String::new();
    let mut read = Vec::new();
    for _ in 0..=draw.below(3) {
        let (path, lines) = file(draw, files);
        match draw.below(8) {
            0 => patch.push_str(&format!("*** Delete File: {path}\n")),
            1 => {
                let target = format!("{path}.moved");
                patch.push_str(&format!("*** Move File: {path} -> {target}\n"));
                read.push(target);
            }
            2 => {
                let (new, _) = super::text::lines(draw);
                let target = format!("made/{path}");
                patch.push_str(&format!("*** Add File: {target}\n"));
                for line in new {
                    patch.push_str(&format!("+{line}\n"));
                }
                read.push(target);
            }
            _ => {
                let header =
                    draw.one(&["*** Update File: ", "*** Update File:", "***Update File: "]);
                patch.push_str(&format!("{header}{path}\n"));
                for _ in 0..=draw.below(2) {
                    patch.push_str(&hunk(draw, &lines));
                }
            }
        }
        read.push(path);
    }
    let patch = if draw.chance(85) {
        format!("*** Begin Patch\n{patch}*** End Patch")
    } else {
        patch
    };
    let mut steps = vec![call("patch", json!({"mode": "patch", "patch": patch}))];
    steps.extend(
        read.into_iter()
            .map(|path| call("read_file", json!({ "path": path }))),
    );
    steps
}

/// Parts of a file read, again, and after a change.
pub fn read(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let (path, lines) = file(draw, files);
    let near = format!("{path}x");
    (0..2 + draw.below(4))
        .map(|_| {
            if draw.chance(15) {
                let content = format!("{}\n", changed(draw, &lines).join("\n"));
                return call("write_file", json!({"path": path, "content": content}));
            }
            let name = if draw.chance(12) { &near } else { &path };
            let mut args = Map::new();
            args.insert("path".to_owned(), json!(name));
            let numbers = [
                json!(1),
                json!(2),
                json!(5),
                json!(0),
                json!(-3),
                json!("4"),
                json!(1000),
                json!(2.0),
                json!(3000),
            ];
            maybe(draw, &mut args, "offset", &numbers);
            maybe(draw, &mut args, "limit", &numbers);
            call("read_file", Value::Object(args))
        })
        .collect()
}

/// Texts and names looked for in a few files.
pub fn search(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    for _ in 0..2 + draw.below(4) {
        file(draw, files);
    }
    (0..1 + draw.below(3))
        .map(|_| {
            let by_name = draw.chance(30);
            let plain = word(draw);
            let pattern = if by_name {
                draw.one(&["*", "*.txt", "*.md", "[a-h]*", "*e*.c", "src/*.cfg", "*1.*"])
                    .to_owned()
            } else {
                match draw.below(7) {
                    0 => format!("^{plain}"),
                    1 => format!("{plain}\\|{}", word(draw)),
                    2 => "[0-9][0-9]*".to_owned(),
                    3 => format!("{}.*{}", plain.get(..2).unwrap_or_default(), "[a-e]"),
                    4 => "= *[0-9]".to_owned(),
                    5 => plain.to_uppercase(),
                    _ => plain.to_owned(),
                }
            };
            let mut args = Map::new();
            args.insert("pattern".to_owned(), json!(pattern));
            if by_name {
                args.insert("target".to_owned(), json!("files"));
            }
            let first = files.first().map_or("src", |(name, _)| name.as_str());
            let paths = [
                json!("src"),
                json!("docs"),
                json!(first),
                json!("."),
                json!("srx"),
            ];
            maybe(draw, &mut args, "path", &paths);
            let globs = [json!("*.txt"), json!("*.c"), json!("*"), json!("[!a]*")];
            maybe(draw, &mut args, "file_glob", &globs);
            let modes = [json!("content"), json!("files_only"), json!("count")];
            maybe(draw, &mut args, "output_mode", &modes);
            maybe(
                draw,
                &mut args,
                "context",
                &[json!(0), json!(1), json!(3), json!("2")],
            );
            maybe(
                draw,
                &mut args,
                "limit",
                &[json!(1), json!(3), json!(5), json!(100)],
            );
            maybe(draw, &mut args, "offset", &[json!(0), json!(1), json!(4)]);
            call("search_files", Value::Object(args))
        })
        .collect()
}

const COMMANDS: &[&str] = &[
    "cd src 2>/dev/null; pwd",
    "cd ..; pwd; cd proj",
    "cd - ; pwd",
    "cd /home/u/proj && pwd",
    "cd nowhere; pwd",
    "(cd docs; pwd); pwd",
    "export NUMBER=7 WORDS='a  b'; echo $NUMBER",
    "echo \"${NUMBER:-none} [$WORDS]\"",
    "unset NUMBER; echo ${NUMBER-unset}",
    "LOCAL=1; echo $LOCAL",
    "echo ${LOCAL-gone}",
    "say() { echo said $1; }; say one",
    "say two",
    "printf 'a\\tb\\n\\033[31mred\\033[0m\\n'",
    "ls -1 | sort | head -3",
    "echo out; echo err >&2; exit 3",
    "false; echo $?",
    "set -e; false; echo not",
    "echo one > n.txt; echo two >> n.txt; cat n.txt",
    "cat <<'END'\n$HOME `pwd`\nEND",
    "for n in 3 1 2; do echo $n; done | sort -r",
    "wc -l n.txt",
    "grep -c o n.txt",
    "grep zzz n.txt",
    "diff n.txt /dev/null",
    "test -e n.txt && echo there || echo not there",
    "mkdir -p new/dir && touch new/dir/f && find new | sort",
    "trap 'echo bye' EXIT; echo hi",
    "echo $((6 * 7)) $(echo sub)",
    "umask 077; touch private; stat -c %a private",
    "export -n NUMBER; env | grep -c NUMBER",
    "export PATH=/nowhere:$PATH; echo ${PATH%%:*}",
    "echo ${PATH%%:*}",
    "printf '%s\\n' \"$OLDPWD\"",
    "head -c 5 n.txt; echo",
    "no_such_program --help",
    "yes line | head -2000 | tail -1",
    "seq 1 12000 | wc -c",
    "exec 3>&1; echo three >&3",
    "readonly FIXED=1; echo $FIXED",
    "pushd src >/dev/null 2>&1; pwd",
    "popd 2>&1; pwd",
    "source env.sh && foo && echo $FROM_FILE",
    "foo; echo ${FROM_FILE-none} ${UNSAID-none}",
    "set -a; . ./settings.env; set +a; echo $A $B",
    "echo \"[$A] [$B]\"",
    "arr=(1 2 3); declare -A map=([k]=v); echo ${#arr[@]} ${map[k]}",
    "echo ${arr[1]-gone} ${map[k]-gone}",
    "export -f say 2>/dev/null; declare -F | head -3",
    "shopt -s nullglob globstar; echo **/*.txt",
    "echo *.nothing",
    "set -o pipefail; false | true; echo $?",
    "false | true; echo $?",
    "set -u; echo $NOT_SET; echo after",
    "echo [$NOT_SET]",
    "X=$'a\\nb'; export X; echo \"$X\" | wc -l",
    "env | grep -A1 '^X='",
    "cat <<-END\n\tindented $((1 + 2))\n\tEND",
    "cat > made.sh <<'END'\n#!/bin/bash\necho \"made $1\"\nexit 4\nEND\nbash made.sh one; echo $?",
    "chmod +x made.sh && ./made.sh two",
    "cat <<END | sed 's/a/b/' | tee n.txt\na $NUMBER\nEND",
    "while read -r l; do echo \"<$l>\"; done < n.txt",
    "read -r x; echo \"[$x]\"",
    "sleep 0.1 & wait $!; echo waited",
    "(sleep 0.1; echo late) & wait",
    "{ echo a; echo b >&2; } 2>&1 | sort",
    "echo a > n.txt; echo b >| n.txt; cat n.txt",
    "set -C; echo c > n.txt; cat n.txt; set +C",
    "{ time true; } 2>&1 | wc -l",
    "timeout 0.2 sleep 5; echo $?",
    "kill -TERM $$; echo not",
    "echo still here",
    "exit 3",
    "return 2; echo not",
    "exec true",
    "python3 -B made.py; echo $?",
    "printf '%s\\n' 'import sys' 'print(sys.argv[1:])' 'sys.exit(3)' > made.py; python3 -B made.py a 'b c'",
    "which -a bash | head -1; type cd; command -v nothing || echo none",
    "test -t 0 || test -t 1 || echo no terminal",
    "echo \"$0 $#\"; set -- a b; echo \"$1 $#\"",
    "echo \"$# ${1-none}\"",
    "IFS=,; v=a,b; set -- $v; echo $1",
    "v='a b'; set -- $v; echo $#",
    "alias greet='echo hello'; greet",
    "ulimit -c; umask",
    "git log --oneline 2>&1 | head -2; git diff --stat",
    "t=$(mktemp) && echo x > $t && wc -l < $t && rm $t",
    "echo \"q: 'single' \\\"double\\\" \\\\ \\$x\"",
    "seq 3 | xargs -I{} sh -c 'echo item {}'",
    "find . -maxdepth 1 -type f | sort | head -4",
    "bc <<< '2^10'; echo 'scale=2; 10/4' | bc",
    "date -u -d @0 +%F; TZ=UTC date -d 2026-01-01 +%s",
    "echo done; # a comment",
    "echo 'unclosed",
    "if true; then echo yes",
    "echo a && \\\n  echo b",
    "",
    "   ",
];

/// Commands one after the other in one shell. Hermes' first command of a
/// session expands aliases and its others do not; none is about that.
pub fn shell(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    file(draw, files);
    files.push(("src/kept.txt".to_owned(), "kept\n".to_owned()));
    files.push(("docs/kept.txt".to_owned(), "kept\n".to_owned()));
    files.push((
        "env.sh".to_owned(),
        "export FROM_FILE=1\nUNSAID='2  3'\nfoo() { echo \"foo $UNSAID\"; }\n".to_owned(),
    ));
    files.push(("settings.env".to_owned(), "A=1\nB='two words'\n".to_owned()));
    (0..2 + draw.below(7))
        .map(|_| {
            let mut args = Map::new();
            args.insert("command".to_owned(), json!(draw.one(COMMANDS)));
            if draw.chance(10) {
                let dirs = [
                    json!("/home/u/proj/docs"),
                    json!("src"),
                    json!("/home/u/proj"),
                ];
                args.insert("workdir".to_owned(), draw.one(&dirs));
            }
            call("terminal", Value::Object(args))
        })
        .collect()
}

/// Files written, whose text somebody checks, and read. What is wrong with a
/// broken YAML or TOML file each side says in its own parser's words, so those
/// are left out.
pub fn write(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    file(draw, files);
    let texts = [
        ("json", "{\"a\": 1}\n"),
        ("json", "{\"a\": 1,}\n"),
        ("json", "[1, 2"),
        ("yaml", "a: 1\nb:\n  - c\n"),
        ("toml", "[a]\nb = 1\n"),
        ("py", "def f(x):\n    return x\n"),
        ("py", "def f(:\n"),
        ("sh", "echo \"x\n"),
        ("txt", ""),
        ("txt", "1|looks\n2|read\n"),
        ("txt", "no end"),
        ("txt", "caf\u{e9} \u{1f600}\r\nx\n"),
        ("md", "# t\n\n\n"),
    ];
    let mut steps = Vec::new();
    for _ in 0..1 + draw.below(3) {
        let (ending, text) = draw.one(&texts);
        let dir = draw.one(&["", "src/", "new/deep/"]);
        let path = format!("{dir}{}.{ending}", word(draw));
        steps.push(call("write_file", json!({"path": path, "content": text})));
        if draw.chance(50) {
            steps.push(call("read_file", json!({ "path": path })));
        }
    }
    steps
}

/// One answer of several calls, made in a conversation.
pub fn batch(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let names: Vec<String> = (0..3).map(|_| file(draw, files).0).collect();
    // A search waits for nobody: of a file that is changed beside it it tells either.
    let (searched, changed) = names.split_at(1);
    let calls: Vec<Value> = (0..2 + draw.below(6))
        .map(|at| {
            let kind = draw.below(7);
            let path = draw.one(match kind {
                0 | 1 => changed,
                4 => searched,
                _ => &names,
            });
            let (name, arguments) = match kind {
                0 => ("write_file", json!({"path": path, "content": format!("{at}\n")})),
                1 => (
                    "patch",
                    json!({"mode": "replace", "path": path, "old_string": word(draw), "new_string": "new"}),
                ),
                2 => ("read_file", json!({"path": format!("{path}.none")})),
                3 => ("read_file", json!({"path": path, "offset": 1 + draw.below(3)})),
                4 => ("search_files", json!({"pattern": word(draw), "path": path})),
                5 => (
                    "terminal",
                    json!({"command": draw.one(&["echo a", "pwd", "false", "ls -1"])}),
                ),
                _ => ("read_file", json!({"path": path})),
            };
            json!({"name": name, "arguments": arguments})
        })
        .collect();
    vec![Step::Probe {
        name: "tool_batch".to_owned(),
        input: json!({ "calls": calls }),
    }]
}
