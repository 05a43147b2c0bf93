//! Files as other machines and other tools leave them, and settings that are kept in order.

use bisim_world::protocol::Step;
use serde_json::json;

use super::{
    draw::Draw,
    errands::{Files, call, hunk},
    text::{self, block, changed, quoted, word},
};

/// Names that are usual elsewhere.
const NAMES: [&str; 8] = [
    "read me.txt",
    "\u{fc}bung.txt",
    "\u{65e5}\u{672c}.md",
    "a'b.txt",
    "x (1).csv",
    "UPPER.TXT",
    "e\u{301}.txt",
    "data/two words/z.txt",
];

/// A file's letters are looked at, changed and looked at again.
pub fn letters(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let path = draw.one(&NAMES);
    let (lines, _) = text::lines(draw);
    let between = draw.one(&["\n", "\r\n", "\r\n", "\r"]);
    let mut text = lines.join(between);
    match draw.below(5) {
        0 => text.insert(0, '\u{feff}'),
        1 => text = text.replacen(between, "\n", 1),
        2 => text = text.replacen(between, "\r\n", 1),
        3 => text = text.replace(' ', draw.one(&["\t", "\u{a0}", " "])),
        _ => {}
    }
    if draw.chance(70) {
        text.push_str(between);
    }
    files.push((path.to_owned(), text));
    let mut steps = Vec::new();
    for _ in 0..2 + draw.below(5) {
        steps.push(one(draw, path, &lines));
        if draw.chance(40) {
            steps.push(shell(&format!("od -An -c \"{path}\" | head -8")));
        }
    }
    steps.push(call("read_file", json!({ "path": path })));
    steps
}

fn one(draw: &mut Draw, path: &str, lines: &[String]) -> Step {
    let found = block(draw, lines);
    let new = changed(draw, &found);
    let end = draw.one(&["\n", "\n", "\r\n"]);
    let plain = word(draw);
    match draw.below(16) {
        0..=3 => {
            let old = quoted(draw, &found).join(end);
            call(
                "patch",
                json!({"mode": "replace", "path": path, "old_string": old, "new_string": new.join(end)}),
            )
        }
        4 | 5 => call(
            "patch",
            json!({"mode": "patch", "patch": format!(
                "*** Begin Patch\n*** Update File: {path}\n{}*** End Patch", hunk(draw, lines)
            )}),
        ),
        6 => call(
            "write_file",
            json!({"path": path, "content": format!("{}{end}", changed(draw, lines).join(end))}),
        ),
        7 => call("read_file", json!({"path": path, "offset": 2, "limit": 3})),
        8 => call(
            "search_files",
            json!({"pattern": draw.one(&[plain, "$", "^[a-z]", "\\s"]), "path": path, "context": draw.below(2)}),
        ),
        9 => call(
            "search_files",
            json!({"pattern": draw.one(&["*.txt", "* *", "*\u{fc}*", "[A-Z]*", "*.TXT", "*(1)*"]), "target": "files", "path": "/home/u/proj"}),
        ),
        10 => shell(&format!(
            "sed -i 's/\\r$//' \"{path}\"; wc -lc < \"{path}\""
        )),
        11 => shell(&format!(
            "sed -i 's/$/\\r/' \"{path}\"; grep -c $'\\r' \"{path}\""
        )),
        12 => shell(&format!(
            "tr -d '\\r' < \"{path}\" > plain.txt; cmp plain.txt \"{path}\""
        )),
        13 => shell(&format!(
            "iconv -f utf-8 -t utf-16 \"{path}\" | wc -c; head -1 \"{path}\" | cat -A"
        )),
        14 => shell(&format!(
            "expand -t4 \"{path}\" > e.txt; diff e.txt \"{path}\" | head -3; printf %s end >> \"{path}\""
        )),
        _ => shell(&format!(
            "ls | sort; for f in *; do [ -f \"$f\" ] && printf '%q\\n' \"$f\"; done; git status -s | head -4; stat -c '%s' \"{path}\""
        )),
    }
}

fn shell(command: &str) -> Step {
    call("terminal", json!({ "command": command }))
}

/// Settings changed key by key, by tools that check them and by programs that do not. What
/// is wrong with a broken YAML or TOML file each side says in its own parser's words, so
/// none of them is broken.
pub fn settings(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let (one, two, number) = (word(draw), word(draw), draw.below(90));
    let texts = [
        (
            "conf/app.json",
            format!(
                "{{\n  \"{one}\": {number},\n  \"list\": [1, 2, 3],\n  \"deep\": {{\n    \"{two}\": \"x\"\n  }}\n}}\n"
            ),
        ),
        (
            "conf/app.yaml",
            format!(
                "# the {one}\n{one}: {number}\nlist:\n  - a\n  - b\ndeep:\n  {two}: x\n  text: |\n    one\n    two\n"
            ),
        ),
        (
            "conf/app.toml",
            format!(
                "title = \"{one}\"\n\n[deep]\n{two} = {number}\nlist = [1, 2]\n\n[[each]]\nname = \"a\"\n"
            ),
        ),
        ("setup.cfg", format!("[{one}]\n{two} = {number}\n")),
        (
            "table.csv",
            format!("name,count\n{one},{number}\n{two},7\n"),
        ),
        (
            "page.html",
            format!("<ul>\n  <li>{one}</li>\n  <li>{two}</li>\n</ul>\n"),
        ),
    ];
    for (name, text) in &texts {
        files.push(((*name).to_owned(), text.clone()));
    }
    let steps = 3 + draw.below(6);
    (0..steps)
        .map(|_| {
            let (name, text) = draw.one(&texts);
            let line = draw.one(&text.lines().map(str::to_owned).collect::<Vec<_>>());
            let new = match draw.below(4) {
                0 => line.replace(&number.to_string(), "100"),
                1 => line.replace(one, "renamed"),
                2 => line.replace('x', "a: b"),
                _ => line.replace('a', "e"),
            };
            match draw.below(9) {
                0..=3 => call(
                    "patch",
                    json!({"mode": "replace", "path": name, "old_string": line, "new_string": new}),
                ),
                4 => call("read_file", json!({ "path": name })),
                5 => call("write_file", json!({"path": name, "content": text.replace(two, "other")})),
                6 => call(
                    "patch",
                    json!({"mode": "replace", "path": "conf/app.json", "old_string": "[1, 2, 3]", "new_string": draw.one(&["[1, 2", "[1, 2, 3],", "[]", "[1, 2,]"])}),
                ),
                _ => shell(draw.one(&[
                    "jq . conf/app.json",
                    "jq -c '.list += [4] | .deep' conf/app.json",
                    "jq '.list[1:]' conf/app.json > t.json && mv t.json conf/app.json && cat conf/app.json",
                    "python3 -B -m json.tool --indent 2 conf/app.json",
                    "sed -i 's/x/y/' conf/app.yaml && grep -n y conf/app.yaml",
                    "grep -rn list conf | sort",
                    "cut -d, -f2 table.csv | tail -n +2 | paste -sd+ | bc",
                    "awk -F, 'NR > 1 { s += $2 } END { print s }' table.csv",
                    "sort -t, -k2 -n table.csv",
                    "sed 's/<[^>]*>//g' page.html",
                    "printf '%s\\n' 'name,count' 'a,1' > table.csv; cat table.csv",
                    "diff conf/app.json <(jq . conf/app.json) && echo in order",
                    "column -s, -t table.csv",
                    "cat >> setup.cfg <<END\nhome = $HOME\nnow = $((1 + 1))\nEND\ntail -2 setup.cfg",
                    "tee conf/new.ini <<'END'\n[a]\nb = $c\nEND",
                ])),
            }
        })
        .collect()
}
