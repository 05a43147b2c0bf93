//! Directories moved, copied, linked and packed; programs made to run; files that are long.

use bisim_world::protocol::Step;
use serde_json::{Value, json};

use super::{
    draw::Draw,
    errands::{Files, call},
    text::{self, word},
};

/// Where a file may be by now.
const PLACES: [&str; 7] = [
    "app/core", "app", "lib/core", "lib", "old/app", "link", "copy",
];

/// What is done with the directories. Nothing that either side asks about.
const MOVES: &[&str] = &[
    "mv app/core lib/core && find app lib | sort",
    "mkdir -p old && mv app old/ && ls -R old",
    "mv old/app app && rmdir old && ls",
    "cp -r app copy && diff -r app copy && echo same",
    "cp -a app/. copy/ 2>/dev/null; ls copy | sort",
    "mv lib/core app/core2 && ls app",
    "mv app tmp.app && mv tmp.app app && ls app",
    "ln -s app link && readlink link && ls link/",
    "ln -sfn lib link; readlink link",
    "ln -s nowhere dangling; ls -l dangling | awk '{print $NF}'; cat dangling",
    "ln app/core/one.txt hard.txt && stat -c %h hard.txt",
    "rm link; ls -d app",
    "cd link && pwd && pwd -P; cd /home/u/proj",
    "mkdir -p deep/er/and/deeper && touch deep/er/and/deeper/x && find deep -type d | wc -l",
    "rmdir lib 2>&1; ls -d lib",
    "find app lib -name '*.txt' -exec wc -l {} + | tail -1",
    "find . -path ./.git -prune -o -type f -name '*.txt' -print | sort",
    "find app -type f | sort | xargs -n1 basename",
    "for f in app/core/*.txt; do mv \"$f\" \"${f%.txt}.md\"; done; ls app/core",
    "for f in app/core/*.md; do mv \"$f\" \"${f%.md}.txt\"; done; ls app/core",
    "ls app/core/*.txt | while read -r f; do echo \"$(wc -l < \"$f\") $f\"; done",
    "tar czf app.tgz app && tar tzf app.tgz | sort | head -5",
    "mkdir -p out && tar xzf app.tgz -C out && find out -type f | sort",
    "{ tar cf - app | tar tf -; } 2>&1 | wc -l",
    "zip -qr app.zip app && unzip -Z1 app.zip | sort | head -4",
    "unzip -qo app.zip -d unzipped && find unzipped -type f | wc -l",
    "gzip -kn app/core/one.txt && zcat app/core/one.txt.gz | head -2 && ls app/core",
    "gunzip -f app/core/one.txt.gz; ls app/core",
    "sha256sum app/core/*.txt | cut -c1-12",
    "du -a app | cut -f2 | sort | head -5",
    "stat -c '%A %n' app app/core app/core/one.txt",
    "touch -d 2026-01-01 app/core/one.txt; find app -newer app/core/one.txt -name '*.txt' | sort",
    "printf '#!/bin/sh\\necho ran \"$@\"\\n' > tool && chmod u+x tool && ./tool a 'b c'",
    "./tool x; echo $?",
    "chmod -x tool; ./tool; echo $?",
    "chmod 640 app/core/one.txt && stat -c %a app/core/one.txt",
    "install -m 755 tool bin-tool && stat -c %a bin-tool",
    "d=$(mktemp -d -p .) && touch $d/x && ls $d && rm $d/x && rmdir $d",
    "comm -12 <(ls app 2>/dev/null) <(ls lib 2>/dev/null)",
    "rsync -a app/ synced/ 2>/dev/null || cp -r app synced; find synced -type f | wc -l",
    "tree app 2>/dev/null | tail -1",
    "ls -la app | awk 'NR > 1 {print $1, $NF}'",
    "[ -d app/core ] && echo dir; [ -L link ] && echo link; [ -x tool ] && echo runs",
    "realpath --relative-to=. app/core/../../lib",
    "cat app/core/*.txt | sort | uniq -c | sort -rn | head -3",
];

/// Directories go about, and files are asked for under the old name and the new.
pub fn trees(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    for name in [
        "app/core/one.txt",
        "app/core/two.txt",
        "app/main.cfg",
        "lib/three.txt",
    ] {
        let (lines, _) = text::lines(draw);
        files.push((name.to_owned(), text::joined(draw, &lines)));
    }
    (0..4 + draw.below(9))
        .map(|_| {
            if draw.chance(60) {
                return call("terminal", json!({"command": draw.one(MOVES)}));
            }
            let place = draw.one(&PLACES);
            let name = draw.one(&["one.txt", "two.txt", "main.cfg", "three.txt", "core/one.txt"]);
            let path = format!("{place}/{name}");
            match draw.below(8) {
                0 => call("write_file", json!({"path": path, "content": format!("{}\n", word(draw))})),
                1 => call(
                    "patch",
                    json!({"mode": "replace", "path": path, "old_string": word(draw), "new_string": "new", "replace_all": true}),
                ),
                2 => call(
                    "search_files",
                    json!({"pattern": draw.one(&["*.txt", "*", "*.md"]), "target": "files", "path": draw.one(&["app", "lib", "copy", "/home/u/proj"])}),
                ),
                3 => call("search_files", json!({"pattern": word(draw), "path": draw.one(&PLACES)})),
                4 => call(
                    "patch",
                    json!({"mode": "patch", "patch": format!(
                        "*** Begin Patch\n*** Move File: {path} -> {}/{name}\n*** End Patch", draw.one(&PLACES)
                    )}),
                ),
                _ => call("read_file", json!({ "path": path })),
            }
        })
        .collect()
}

/// Long files and long answers: read by parts, cut, counted and changed in the middle.
pub fn long(draw: &mut Draw, _: &mut Files) -> Vec<Step> {
    let many = draw.one(&[900, 2_000, 2_001, 6_000, 40_000]);
    let line = draw.one(&["%05g", "%g", "line %g of it", "%0120g"]);
    let made = format!("seq -f '{line}' 1 {many} > long.txt; wc -c < long.txt");
    let mut steps = vec![call("terminal", json!({ "command": made }))];
    for _ in 0..3 + draw.below(6) {
        let at = 1 + draw.below(many + 20);
        steps.push(match draw.below(9) {
            0 => part(at, draw.one(&[1, 10, 200, 500, 2_000, 2_001, 5_000])),
            1 => call("read_file", json!({"path": "long.txt"})),
            2 => call(
                "search_files",
                json!({
                    "pattern": draw.one(&["99$", "^1", "7", "0", "nothing"]), "path": "long.txt",
                    "limit": draw.one(&[2, 50, 300]), "offset": draw.one(&[0, 0, 3, 60]),
                    "output_mode": draw.one(&["content", "content", "count", "files_only"]),
                }),
            ),
            3 => call(
                "patch",
                json!({"mode": "replace", "path": "long.txt", "old_string": format!("{at}\n"), "new_string": "changed\n"}),
            ),
            4 => {
                let wide = draw.one(&[1_999, 2_000, 2_001, 9_000, 120_000]);
                call("terminal", json!({"command": format!("printf '%0{wide}d\\nend\\n' 7 >> long.txt; tail -c 20 long.txt")}))
            }
            _ => looked(draw, at),
        });
    }
    steps
}

fn part(offset: usize, limit: usize) -> Step {
    call(
        "read_file",
        json!({"path": "long.txt", "offset": offset, "limit": limit}),
    )
}

/// A command whose answer may be cut.
fn looked(draw: &mut Draw, at: usize) -> Step {
    let command = match draw.below(16) {
        0 => "cat long.txt".to_owned(),
        1 => format!("head -{at} long.txt"),
        2 => format!("tail -n +{at} long.txt | head -30"),
        3 => format!("sed -n '{at},+5p' long.txt"),
        4 => format!("sed -i '{at}d' long.txt; wc -l long.txt"),
        5 => format!("awk 'NR % {at} == 0' long.txt | tail -3"),
        6 => "cat long.txt >&2".to_owned(),
        7 => "sort -rn long.txt | head -3; sort long.txt | md5sum".to_owned(),
        8 => "cat long.txt long.txt | grep -c .".to_owned(),
        9 => "cat long.txt | less".to_owned(),
        10 => format!("grep -n {at} long.txt | head -5; echo ${{PIPESTATUS[@]}}"),
        11 => "seq 1 9000; echo the end; exit 7".to_owned(),
        12 => "printf 'x%.0s' $(seq 1 49990); echo; printf 'y%.0s' $(seq 1 30)".to_owned(),
        13 => "for n in $(seq 1 400); do printf '\\r%d of 400' $n; done; echo".to_owned(),
        14 => "yes '\u{e9}\u{1f600}' | head -20000".to_owned(),
        _ => "cp long.txt longer.txt; cat long.txt >> longer.txt; wc -l longer.txt; cmp long.txt longer.txt".to_owned(),
    };
    let mut args = json!({ "command": command });
    if draw.chance(20)
        && let Some(args) = args.as_object_mut()
    {
        let time: Value = draw.one(&[json!(20), json!("45"), json!(180)]);
        args.insert("timeout".to_owned(), time);
    }
    call("terminal", args)
}
